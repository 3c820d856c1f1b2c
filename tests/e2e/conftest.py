"""A server with all pages and a browser, once per session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ports import free_ports

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Error, Page

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 600
PATIENCE_MS = 60_000
"""Of every click and every expectation: a busy machine is no failure."""
SHOWN_CHARACTERS = 6_000
"""Of each page, behind a failure."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def serve(command: list[str], port: int, log: Path) -> Iterator[str]:
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_SERVER_NAME": "127.0.0.1"}
    environment |= {"GRADIO_ANALYTICS_ENABLED": "False", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
    serving = threading.Event()
    reader = threading.Thread(target=_follow, args=(process, log, serving), daemon=True)
    reader.start()
    try:
        if not serving.wait(START_SECONDS):
            pytest.fail(f"The app did not answer in {START_SECONDS} s:\n{log.read_text()}")
        if process.poll() is not None:
            pytest.fail(f"The app stopped with code {process.returncode}:\n{log.read_text()}")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(timeout=20)
        reader.join(timeout=20)


def _follow(process: subprocess.Popen[str], log: Path, serving: threading.Event) -> None:
    """Copy what the app prints into a log; set the event when it names its address, or when it ends."""
    with log.open("w") as out:
        for line in process.stdout:
            out.write(line)
            out.flush()
            if "Running on" in line:
                serving.set()
    process.wait()
    serving.set()


def app_of(item: pytest.Item) -> str:
    """Return the app that a test asks for with the mark `app`; "" is the one that ships."""
    mark = item.get_closest_marker("app")
    return mark.args[0] if mark else ""


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the server: `checkpoints` with a tiny encoder, and `jobs`."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def addresses(request: pytest.FixtureRequest, served: Path) -> Iterator[dict[str, str]]:
    """Addresses of the apps that the tests of this run ask for, all of one server."""
    names = sorted({"", *map(app_of, request.session.items)})
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    places = [f"{port}={name}" for name, port in ports.items()]
    command = [sys.executable, "-m", "tests.e2e.serve", str(served), *places]
    for _ in serve(command, ports[""], served.with_suffix(".log")):
        yield {name: f"http://127.0.0.1:{port}/" for name, port in ports.items()}


@pytest.fixture
def address(addresses: dict[str, str], request: pytest.FixtureRequest) -> str:
    """Address of the app that the test asks for."""
    return addresses[app_of(request.node)]


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """One profile for all tests: the program of the page is large, and the browser keeps it compiled in a folder.

    Without a Chromium, it skips on a laptop and fails where CI is set.
    """
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=PATIENCE_MS)
    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
    with sync_api.sync_playwright() as playwright:
        launch, profile = playwright.chromium.launch_persistent_context, tmp_path_factory.mktemp("profile")
        try:
            context = launch(profile, executable_path=CHROMIUM, args=arguments)
        except sync_api.Error as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"No Chromium can be started: {error}")
        yield context
        context.close()


@pytest.fixture(scope="session")
def browser(context: BrowserContext) -> Browser:
    """The browser, for profiles in which nothing is kept."""
    return context.browser


@contextmanager
def visiting(context: BrowserContext) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens an address; in the end nothing of it stays, and a script error fails the test.

    A tab is used again: its process has read the program of the page, which takes a new one half a second.
    """
    pages, errors = [], []

    def note(event: Error | Dialog) -> None:
        errors.append(event.message)

    def open_(address: str, *, width: int = 1280, height: int = 900, script: str = "", **media: Any) -> Page:
        left = [] if script else [page for page in context.pages if page.url == "about:blank"]
        page = left[0] if left else context.new_page()
        pages.append((page, script))
        page.bring_to_front()
        page.set_default_timeout(PATIENCE_MS)
        page.set_viewport_size({"width": width, "height": height})
        # Each frame of a motion is computed.
        page.emulate_media(**{"media": "null", "reduced_motion": "reduce", **media})
        page.add_init_script(script)
        page.on("pageerror", note)
        page.on("dialog", note)
        page.goto(address, wait_until="commit")
        return page

    yield open_
    for page, script in pages:
        # As it is left, a page notes its texts for the others: cleared behind that.
        page.evaluate("() => addEventListener('pagehide', () => { localStorage.clear(); sessionStorage.clear(); })")
        page.remove_listener("pageerror", note)
        page.remove_listener("dialog", note)
        page.close() if script else page.goto("about:blank")
    assert not errors


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Tell with a failure what the pages show: a browser that waits in vain says only what did not come."""
    report = yield
    context = getattr(item, "funcargs", {}).get("context")
    if report.when == "call" and report.failed and context is not None:
        for page in context.pages:
            if page.url != "about:blank":
                report.sections.append((page.url, page.locator("body").inner_text()[:SHOWN_CHARACTERS]))
    return report


def wait_for_page(page: Page) -> Page:
    """Wait until the page of the program stands, and its scripts, which give it its title, have run."""
    page.locator(".cv-nav [aria-current]").wait_for()
    page.wait_for_function("document.title.endsWith(' · CondViz')")
    return page


@pytest.fixture
def open_page(context: BrowserContext, address: str) -> Iterator[Callable[..., Page]]:
    """Open a page by its link: "map", or "map?near=30"."""
    with visiting(context) as open_:
        yield lambda link="", **options: wait_for_page(open_(address + link, **options))


def go(page: Page, link: str) -> None:
    """Open a link in the page that is there, as Back and Forward do, which takes a fraction of reading it anew."""
    page.evaluate("link => { history.pushState({}, '', link); dispatchEvent(new PopStateEvent('popstate')); }", link)


def follow_link(page: Page, name: str) -> None:
    """Go to another page by its link in the header."""
    page.locator(".cv-nav").get_by_role("link", name=name, exact=True).click()
    page.locator(".cv-nav [aria-current]", has_text=name).wait_for()
    wait_for_page(page)
