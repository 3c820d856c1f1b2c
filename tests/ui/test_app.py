"""How the pages are served."""

from __future__ import annotations

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from condviz.ui import app
from condviz.ui.pool import ModelPool
from condviz.ui.state import path_of

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return app.build_app(app.Settings(pool=lambda: ModelPool(("minilm",)), preload=False)).config


def test_each_view_is_a_page_and_no_listener_knows_a_component_of_another(config: dict[str, Any]) -> None:
    assert list(config["page"]) == [path_of(tab.id) for tab in app.TABS]
    listeners = {one["id"]: one for one in config["dependencies"]}
    for page in config["page"].values():
        for number in page["dependencies"]:
            used = listeners[number]
            assert {*used["inputs"], *used["outputs"]} <= set(page["components"]), used["api_name"]


def test_endpoints_keep_their_names(config: dict[str, Any]) -> None:
    named = {one["api_name"] for one in config["dependencies"] if one["api_visibility"] == "public"}
    told = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split("## HTTP")[1]
    assert named == set(re.findall(r"`/(\w+)\(", told))
