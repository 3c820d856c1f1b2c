"""How the page is served, without its tabs."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from condviz.ui import app
from condviz.ui.pool import ModelPool


def test_a_running_page_gives_freed_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given_back = threading.Event()
    library = SimpleNamespace(malloc_trim=lambda kept: given_back.set())
    monkeypatch.setattr(app.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(app.sys, "platform", "linux")
    monkeypatch.setattr(app, "TRIM_SECONDS", 0.001)
    monkeypatch.setattr(app, "SWITCH_SECONDS", app.sys.getswitchinterval())
    page = app.build_app(app.Settings(pool=lambda: ModelPool(("minilm",)), tabs=(), preload=False))
    with ThreadPoolExecutor(1) as own:  # the thread of the tests may have a loop that runs, that of a browser
        own.submit(asyncio.run, page.run_extra_startup_events()).result()
    assert given_back.wait(10)


def test_threads_of_a_running_page_hand_the_interpreter_on_early() -> None:
    before = sys.getswitchinterval()
    try:
        with ThreadPoolExecutor(1) as own:
            own.submit(asyncio.run, app._take_turns()).result()
        assert sys.getswitchinterval() == pytest.approx(app.SWITCH_SECONDS)
    finally:
        sys.setswitchinterval(before)
