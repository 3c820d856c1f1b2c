"""Time from the start of the process to the page's first answer, beside the time that importing gradio takes.

python -m benchmarks.page [--json FILE] [--rounds N]
"""

from __future__ import annotations

import http.client
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from benchmarks.common import Result, options, report, times_in_turns

ALLOWED_S = 2.0
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
    chosen = options(__doc__, rounds=3, docs=False).parse_args()
    report(run(rounds=chosen.rounds), chosen, "page")


if __name__ == "__main__":
    main()
