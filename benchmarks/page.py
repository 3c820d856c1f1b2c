"""Time to the first answer of a started server, and what a visitor waits for in Chromium, beside gradio's empty page.

python -m benchmarks.page [--json FILE] [--rounds N] [--part start|browser]

In the browser, each page of the header is opened in a fresh profile: until its links stand, until its first result
stands, and from there until the links of the next page stand. In the same turns, an app of one empty gr.HTML is opened.
"""

from __future__ import annotations

import http.client
import os
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from benchmarks.common import Result, options, report, times_in_turns
from condviz.ui.app import TABS
from condviz.ui.state import path_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ALLOWED_S = 2.0
STANDS_S, RESULT_S, NEXT_S = 1.0, 0.5, 1.2
"""Targets in the browser: a page beyond gradio's empty one, its first result beyond its links, from page to page."""
EMPTY = """import gradio as gr
with gr.Blocks() as app:
    gr.HTML("<p id=empty>Nothing.</p>")
app.launch(server_port={port}, quiet=True)"""
LINKS, LOADED = ".cv-nav [aria-current]", "#cv-status:has-text('models are loaded.')"
_RESULTS = "[data-ready=true], .cv-figure-still, .cv-lesson-card, .cv-curves"
RESULT = f"#cv-page :is({_RESULTS}):visible"
GIVE_UP_S = 120.0
POLL_S = 0.02


def free_port() -> int:
    """Return a port that nobody listens on."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def import_gradio() -> None:
    """Start an interpreter that imports gradio and ends."""
    subprocess.run([sys.executable, "-c", "import gradio"], check=True)


def start_page(port: int) -> subprocess.Popen:
    """Start the page in its own process and return when it answers with status 200.

    Raises:
        RuntimeError: If it ends or says nothing for two minutes.
    """
    command = [sys.executable, "-m", "condviz", "serve", "--port", str(port)]
    return _answering(command, port)


def _answering(command: list[str], port: int) -> subprocess.Popen:
    environment = os.environ | {"GRADIO_ANALYTICS_ENABLED": "False"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    give_up = time.monotonic() + GIVE_UP_S
    while time.monotonic() < give_up and process.poll() is None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=GIVE_UP_S)) as connection:
            try:
                connection.request("GET", "/")
                if connection.getresponse().status == http.client.OK:
                    return process
            except OSError:
                time.sleep(POLL_S)
    ended = process.poll()
    stop(process)
    raise RuntimeError(f"The page gave no answer; its process ended with {ended}. Try: {' '.join(command)}")


def stop(process: subprocess.Popen) -> None:
    """End a process and wait until it has."""
    process.terminate()
    process.wait()


@contextmanager
def serve(port: int = 0) -> Iterator[str]:
    """Serve the page for the length of a block; yields its address.

    Args:
        port: To listen on; 0 takes a free one.
    """
    port = port or free_port()
    process = start_page(port)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        stop(process)


def run_browser(*, rounds: int = 3) -> list[Result]:
    """Measure in Chromium, in turns; a minute a round."""
    from playwright.sync_api import sync_playwright

    from benchmarks.screens import CHROMIUM

    port = free_port()
    empty = _answering([sys.executable, "-c", EMPTY.format(port=port)], port)
    try:
        with serve() as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            warm = browser.new_page()
            warm.goto(address)
            warm.locator(LOADED).wait_for(timeout=1000 * GIVE_UP_S)
            warm.close()
            seconds = _visits(browser, f"http://127.0.0.1:{port}/", address, rounds)
            browser.close()
    finally:
        stop(empty)
    middle = {what: statistics.median(found) for what, found in seconds.items()}
    results = []
    for tab in TABS:
        stands, shown, onward = (middle[f"{tab.id}: {what}"] for what in ("stands", "result", "next"))
        more, after = stands - middle["empty"], shown - stands
        results.append(
            Result(
                f"Page {tab.label}: stands, first result, next page",
                f"≤ empty page + {STANDS_S:g} s, ≤ {RESULT_S:g} s later, ≤ {NEXT_S:g} s",
                f"{stands:.2f} s (empty {middle['empty']:.2f} s), {after:.2f} s later, {onward:.2f} s",
                more <= STANDS_S and after <= RESULT_S and onward <= NEXT_S,
                more,
                {"seconds": {what: found for what, found in seconds.items() if what.startswith((tab.id, "empty"))}},
            )
        )
    return results


def _visits(browser: Browser, empty: str, address: str, rounds: int) -> dict[str, list[float]]:
    """Open each page `rounds` times in a fresh profile, and the empty page in the same turns; seconds by what."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for turn in range(-1, rounds):
        for place, tab in enumerate(TABS):
            found = {}
            with closing(browser.new_context()) as context:
                context.set_default_timeout(1000 * GIVE_UP_S)
                page = context.new_page()
                start = time.perf_counter()
                page.goto(empty, wait_until="commit")
                page.locator("#empty").wait_for()
                found["empty"] = time.perf_counter() - start
            with closing(browser.new_context()) as context:
                context.set_default_timeout(1000 * GIVE_UP_S)
                page = context.new_page()
                start = time.perf_counter()
                page.goto(address + path_of(tab.id), wait_until="commit")
                page.locator(LINKS).wait_for()
                found[f"{tab.id}: stands"] = time.perf_counter() - start
                page.locator(RESULT).first.wait_for()
                found[f"{tab.id}: result"] = time.perf_counter() - start
                onward = TABS[(place + 1) % len(TABS)].id
                start = time.perf_counter()
                page.locator(f".cv-nav [data-to={onward}]").click(no_wait_after=True)
                page.locator(f"{LINKS}[data-to={onward}]").wait_for()
                found[f"{tab.id}: next"] = time.perf_counter() - start
            if turn >= 0:  # the first round fills the caches of the server
                for what, value in found.items():
                    seconds[what].append(value)
    return seconds


def run(*, rounds: int = 3) -> list[Result]:
    """Measure in fresh processes, in turns; half a minute."""
    pages: list[subprocess.Popen] = []

    def stop_all() -> None:
        while pages:
            stop(pages.pop())

    jobs = {"import gradio": import_gradio, "first answer": lambda: pages.append(start_page(free_port()))}
    try:
        seconds = times_in_turns(jobs, rounds=rounds, before=stop_all)
    finally:
        stop_all()
    imported, answered = (statistics.median(seconds[name]) for name in jobs)
    return [
        Result(
            "Page: first answer after the start of the process",
            f"≤ {ALLOWED_S:g} s + importing gradio",
            f"{answered:.2f} s, {answered - imported:.2f} s more than importing gradio ({imported:.2f} s)",
            answered <= imported + ALLOWED_S,
            answered - imported,
            {"seconds": seconds},
        )
    ]


def main() -> None:
    """Run from the command line."""
    parser = options(__doc__, rounds=3, docs=False)
    parts = {"start": run, "browser": run_browser}
    parser.add_argument("--part", choices=parts, help="what is measured (default: both)")
    chosen = parser.parse_args()
    named = [chosen.part] if chosen.part else list(parts)
    report([result for name in named for result in parts[name](rounds=chosen.rounds)], chosen, "page")


if __name__ == "__main__":
    main()
