"""The Models tab: sorting, cards, links, and what is shown of stored scores."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.papers.tables import find_tables, papers
from condviz.errors import DataError
from condviz.evaluation.scoreboard import best_encoder
from condviz.ui.models import ModelsTab, View
from condviz.ui.pool import ModelPool
from condviz.ui.state import read_link
from tests.pages import build_view


@pytest.fixture(scope="module")
def tab() -> ModelsTab:
    return build_view(ModelsTab, ModelPool())


def names(markup: str) -> list[str]:
    """Return the names of the models of a table, from top to bottom."""
    return [part.partition('"')[0] for part in markup.split('data-card="')[1:]]


def event(**data: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"name": "", "by": "", "metric": ""} | data)


def test_the_best_comes_first_and_untrained_models_are_folded(tab: ModelsTab) -> None:
    listed = names(tab._table(View()))
    assert listed[0] == tab._best(), "that of the headline, on the column that it speaks of"
    # Whether the encoder of the best is on this machine or not.
    by_mean = names(tab._table(View(by="mean")))
    assert by_mean[0] == best_encoder(replace(info, missing="") for info in tab.pool.infos())
    assert not any(name.endswith("-zero-shot") for name in listed)
    folded = names(tab.show_untrained()[tab.twins])
    assert set(folded) == {info.name for info in tab.pool.infos() if not info.trained}


def test_sorting_has_a_link(tab: ModelsTab) -> None:
    by_name = tab.sort(event(by="name"), View("case"))
    titles = [tab.pool.info(name).title.casefold() for name in names(by_name[tab.table])]
    assert titles == sorted(titles)
    assert by_name[tab.view] == View("case", "pair_accuracy", "name")
    other = tab.sort(event(metric="spearman"), by_name[tab.view])
    where, values = read_link(other[tab.view].link)
    assert where == "models"
    assert tab.open_link(values)[tab.view] == other[tab.view]
    with pytest.raises(DataError, match="cannot be sorted"):
        tab.sort(event(by="<b>"), View())


def test_each_model_has_a_card(tab: ModelsTab) -> None:
    for info in tab.pool.infos():
        shown = tab.show_card(event(name=info.name), View())
        assert info.name in shown[tab.head]
        assert shown[tab.card]
        assert not shown[tab.card].startswith("---")  # the front matter is for the hub
    with pytest.raises(DataError, match="no model 'nobody'"):
        tab.show_card(event(name="nobody"), View())
    assert "everyday-concat" in names(tab.show_graphs()[tab.links])
    assert "everyday" in tab.show_card(event(name="everyday-concat"), View())[tab.card]


def test_scores_of_other_weights_are_not_shown(tab: ModelsTab, monkeypatch: pytest.MonkeyPatch) -> None:
    board, _ = tab._board()
    assert tab._figures(board, "case", "spearman")
    other = SimpleNamespace(weights_hash="0" * 64, info=tab.pool.info("case"))
    monkeypatch.setitem(tab.pool._models, "case", other)
    assert not tab._figures(board, "case", "spearman")


def test_damaged_scores_are_told(tab: ModelsTab, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged() -> None:
        raise DataError("benchmark.json cannot be read")

    monkeypatch.setattr("condviz.ui.models.read_board", damaged)
    assert "cannot be read" in tab._table(View())


def test_claims_and_tables_of_the_papers_are_folded_below(tab: ModelsTab) -> None:
    markup = tab.show_papers()[tab.claims]
    for paper in papers():
        assert all(claim.says.split("`")[0] in unescape(markup) for claim in paper.claims)
        assert all(table.title in unescape(markup) for table in paper.tables)
    ((_, table),) = find_tables("hyper-cl:table-3")
    published = {cell for row in table.rows for cell in row.published}
    assert all(f">{cell}</td>" in markup for cell in published)
    assert "`" not in markup


def test_the_server_names_each_encoder_once_with_all_its_caches(
    tab: ModelsTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(name: str, cache: SimpleNamespace) -> SimpleNamespace:
        facts = {"device": SimpleNamespace(type="cpu"), "precision": "float32"}
        parameters = SimpleNamespace(num_parameters=lambda: 22_600_000)
        return SimpleNamespace(backbone=SimpleNamespace(name=name, model=parameters, cache=cache, **facts))

    one, two = (SimpleNamespace(entries=n, bytes=0, max_bytes=0, hits=n, misses=0) for n in (3, 4))
    models = [model("MiniLM", one), model("MiniLM", one), model("MiniLM", two), model("MPNet", two)]
    monkeypatch.setattr(tab.pool, "loaded", dict(zip(tab.pool.names, models, strict=False)).get)
    shown = tab.show_runtime()[tab.runtime]
    assert (shown.count("MiniLM"), shown.count("MPNet"), "7 of 7 look-ups" in shown) == (1, 1, True)


def test_the_endpoint_lists_all(tab: ModelsTab) -> None:
    found = tab.api_models()
    assert [item["name"] for item in found] == list(tab.pool.names)
    assert all("path" not in item for item in found)


def test_after_the_model_that_was_shown_has_been_deleted_the_default_is(tab: ModelsTab) -> None:
    shown = tab.refresh(View("deleted", "spearman", "name"))
    assert shown[tab.view] == View(tab._best(), "spearman", "name")
    assert f'"{tab._best()}"' in unescape(str(shown[tab.head]))


def test_the_first_card_is_that_of_the_model_that_the_headline_names(tab: ModelsTab) -> None:
    headline = str(tab.table.value).partition("cv-headline")[2]
    assert tab.pool.info(tab._best()).title == re.search(r"<strong>(.*?)</strong>", headline)[1]
    assert f'load("{tab._best()}")' in unescape(str(tab.head.value))


def test_a_chosen_model_that_was_deleted_leaves_the_menu() -> None:
    from condviz.ui.page import _menu

    choices = [("Bi-encoder", "bi-encoder"), ("Mine", "mine")]
    assert _menu(choices[:1], "mine")["value"] == "bi-encoder"
    assert "value" not in _menu(choices, "mine"), "what is chosen stays chosen"
    assert _menu([], "mine")["value"] is None
