"""How the page is served, without its tabs."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from condviz.ui import app
from condviz.ui.pool import ModelPool


def test_a_running_page_gives_freed_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given_back, options = threading.Event(), []
    library = SimpleNamespace(malloc_trim=lambda kept: given_back.set(), mallopt=lambda *option: options.append(option))
    monkeypatch.setattr(app.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(app.sys, "platform", "linux")
    monkeypatch.setattr(app, "TRIM_SECONDS", 0.001)
    page = app.build_app(app.Settings(pool=lambda: ModelPool(("minilm",)), tabs=(), preload=False))
    with ThreadPoolExecutor(1) as own:  # the thread of the tests may have a loop that runs, that of a browser
        own.submit(asyncio.run, page.run_extra_startup_events()).result()
    assert given_back.wait(10)
    assert options == [(app.M_ARENA_MAX, app.HEAPS)]
