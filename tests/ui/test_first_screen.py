"""The command that stores what the page shows first."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from condviz.data.kg_formats import EVERYDAY
from condviz.models.registry import link_models
from condviz.ui import first_screen
from condviz.ui.markup import read_asset
from condviz.ui.pool import ModelPool


def test_each_screen_is_stored_once_with_its_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, str]] = []

    def compute(model: Any, *_: Any, **__: Any) -> SimpleNamespace:
        return SimpleNamespace(to_dict=lambda: {"model": model.info.name})

    monkeypatch.setattr(first_screen, "screen", lambda shown: {"model": shown.to_dict()["model"]})
    for name in ("compare", "build_map", "describe_entity"):  # half a minute together
        monkeypatch.setattr(first_screen, name, compute)
    monkeypatch.setattr(
        first_screen, "write_text", lambda path, text: written.append((path.name, json.loads(text)["model"]))
    )
    default, graph = ModelPool().default, link_models(EVERYDAY)[0]
    stored = SimpleNamespace(to_dict=lambda: {"model": default})
    monkeypatch.setattr(first_screen, "stored_map", lambda: stored)
    first_screen.main()
    maps = [("map_scene.json", default), ("map_screen.json", default)]
    assert written == [("first_screen.json", default), *maps, ("links_screen.json", graph)]


def test_the_stored_pictures_are_those_of_the_stored_map() -> None:
    """Else: python -m condviz.ui.first_screen."""
    shown = first_screen.screen(first_screen.stored_map())
    assert read_asset("map_screen.json") == json.loads(json.dumps(shown))
