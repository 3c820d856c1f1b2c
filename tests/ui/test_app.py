"""How the pages are served."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.state_holder import SessionState

from condviz.models import registry
from condviz.types import Comparison
from condviz.ui import app
from condviz.ui.pool import ModelPool
from condviz.ui.speed import VARIABLE
from condviz.ui.state import path_of
from tests.pages import run_alone

ROOT = Path(__file__).resolve().parents[2]


def test_a_running_page_gives_freed_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given_back, options = threading.Event(), []
    library = SimpleNamespace(malloc_trim=lambda kept: given_back.set(), mallopt=lambda *option: options.append(option))
    monkeypatch.setattr(app.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(app.sys, "platform", "linux")
    monkeypatch.setattr(app, "TRIM_SECONDS", 0.001)
    page = app.build_app(app.Settings(pool=lambda: ModelPool(("minilm",)), tabs=(), preload=False))
    run_alone(page.run_extra_startup_events())
    assert given_back.wait(10)
    assert options == [(app.M_ARENA_MAX, app.HEAPS)]


def first_shown(page: gr.Blocks) -> tuple[str, str, str]:
    """The model that Compare starts with, that of the result in its state, and what a new visitor is sent of it."""
    tab = next(one for one in page.default_config.blocks.values() if one.elem_id == "cv-model")
    sent = {one["id"]: one["props"] for one in page.config["components"]}
    result = next(one["value"] for one in sent.values() if one.get("elem_id") == "cv-result")
    states = [one.value for one in page.default_config.blocks.values() if isinstance(one, gr.State)]
    shown = next(one for one in states if isinstance(one, Comparison))
    assert sent[tab._id]["choices"][0][1] == sent[tab._id]["value"]
    return sent[tab._id]["value"], shown.models[0].name, result


def test_whoever_comes_after_the_machine_was_measured_gets_the_best_model_and_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "auto")
    pool = ModelPool(("bi-encoder-csts", "case-mpnet"))
    pool._infos = {name: replace(registry.describe(name), missing="") for name in pool.names}
    page = app.build_app(app.Settings(pool=lambda: pool, tabs=app.TABS[:1], preload=False))
    before = first_shown(page)
    assert before[:2] == ("bi-encoder-csts", "bi-encoder-csts")
    state = next(one for one in page.default_config.blocks.values() if isinstance(one, gr.State) and one.value)
    session = SessionState(page)
    opened = session[state._id]
    pool._took = {"pair": 0.01, "many": 0.01}
    pool.when_measured()
    after = first_shown(page)
    assert after[:2] == ("case-mpnet", "case-mpnet")
    assert after[2] != before[2]
    assert session[state._id] is opened  # whoever had the page open keeps what is there
    assert SessionState(page)[state._id].models[0].name == "case-mpnet"


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


def test_a_menu_keeps_its_models_in_the_copy_that_gradio_makes_for_a_visitor() -> None:
    page = app.build_app(app.Settings(pool=lambda: ModelPool(("bi-encoder-csts",)), preload=False))
    menus = [part for part in page.default_config.blocks.values() if isinstance(part, gr.Dropdown) and part.choices]
    for menu in menus:
        copy = gr.Dropdown(**menu.constructor_args | {"value": None, "render": False})
        assert copy.choices == menu.choices, menu.elem_id
