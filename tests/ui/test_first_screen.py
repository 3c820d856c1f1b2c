"""Results that pages show first: stored with the program, and read back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.first_screen import errors_screen, leads, map_screen, stored_map
from condviz.analysis.answers import LinkProfile
from condviz.analysis.words import WordReading
from condviz.models import registry
from condviz.types import Comparison, Result
from condviz.ui import export
from condviz.ui.corpora import Searches
from condviz.ui.export import pack, read_first, unpack
from condviz.ui.markup import read_asset
from condviz.ui.pool import ModelPool
from condviz.ui.words import was_taught

STORED = {"compare": Comparison, "links": LinkProfile, "search": Searches, "words": WordReading}


@pytest.mark.parametrize("page", STORED)
def test_a_page_opens_with_a_result_of_the_model_it_leads_with(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else: python -m benchmarks.first_screen."""
    stored = read_asset(f"{page}_screen.json")
    for model, content in stored.items():
        found = read_first(STORED[page], page, model)
        assert isinstance(found, Result)
        assert pack(unpack(STORED[page], pack(found))) == pack(found) == content
        assert found._repr_html_()
    assert read_first(STORED[page], page, "another") is None
    for damaged in (None, [], {}, {model: None}, {model: {"model": 3}}):
        monkeypatch.setattr(export, "read_asset", lambda _, damaged=damaged: damaged)
        assert read_first(STORED[page], page, model) is None


@pytest.mark.parametrize("page", ["compare", "search", "map"])
def test_what_a_page_may_start_with_is_stored(page: str) -> None:
    """Else: python -m benchmarks.first_screen."""
    infos = [replace(info, missing="") for info in ModelPool().infos()]
    assert [*read_asset(f"{page}_screen.json")] == leads(infos)
    routers = [info for info in infos if was_taught(info)]
    assert [*read_asset("words_screen.json")] == leads(routers)


def test_a_result_of_a_model_that_is_gone_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "describe", lambda name: registry.load(f"no-{name}"))
    assert read_first(Comparison, "compare", ModelPool().default) is None


def test_what_errors_shows_first_is_that_of_the_stored_scores() -> None:
    """Else: python -m benchmarks.first_screen."""
    content = read_asset("errors_screen.json")
    shown = errors_screen(content["model"])
    for name in ("result", "views", "slices", "row", "still"):
        assert content[name] == str(shown[name])
    drawn, stored = (json.loads(one["figure"])["data"] for one in (shown, content))
    assert [one["ids"] for one in drawn] == [one["ids"] for one in stored]


def test_the_stored_pictures_are_those_of_the_stored_map() -> None:
    """Else: python -m benchmarks.first_screen."""
    for model, screen in read_asset("map_screen.json").items():
        scene = stored_map(model)
        assert scene.before.neighbors.indices.dtype.kind == "i"
        assert screen == json.loads(json.dumps(map_screen(scene)))
