"""The Links tab: what its handlers answer, over a small graph and a tiny model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from condviz.analysis import links as core
from condviz.analysis.answers import LinkProfile
from condviz.data import kg_formats
from condviz.errors import CondvizError, DataError
from condviz.models import registry
from condviz.ui.links import LinksTab, _link
from condviz.ui.markup import dimmed
from condviz.ui.pool import ModelPool
from condviz.ui.state import read_link
from tests.kg_toy import write_graph
from tests.pages import build_view, last, last_before_error
from tests.tiny import tiny_model


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinksTab:
    monkeypatch.setenv("CONDVIZ_CACHE", str(tmp_path / "cache"))
    model = tiny_model("tri-encoder", pooling="mean")
    model.info = registry.describe(registry.link_models("everyday")[0])
    monkeypatch.setattr(core, "_predictors", type(core._predictors)(4))
    found = build_view(LinksTab, ModelPool(["bi-encoder"], lambda name: model))
    found.trained._load = lambda name: model
    return found


def upload(tab: LinksTab, tmp_path: Path) -> tuple[str, dict]:
    folder = write_graph(tmp_path / "mine")
    return last(tab.read_upload([str(path) for path in sorted(folder.iterdir())], "", "", "", None))


def event(**data: str) -> SimpleNamespace:
    return SimpleNamespace(**{"entity": "", "relation": "", "direction": ""} | data)


def test_an_uploaded_graph_is_asked_about(tab: LinksTab, tmp_path: Path) -> None:
    done = upload(tab, tmp_path)
    key = done[tab.graph].value
    profile = done[tab.shown]
    assert key.startswith("upload-")
    assert isinstance(profile, LinkProfile)
    assert profile.answers[0].known
    assert not list((tmp_path / "cache").rglob("*"))  # nothing of a visitor's graph is written
    asked = last(tab.click(event(relation="_in", direction="head"), "cat", profile.model.name, key, None))
    first = asked[tab.shown].answers[0]
    assert (first.relation, first.direction) == ("_in", "head")
    where, values = read_link(_link(asked[tab.shown]))
    assert where == "links"
    again = last(tab.open_link(values, None))
    assert again[tab.shown].answers[0] == first
    assert ("Your graph", key) in again[tab.graph].choices  # else a new page could not ask about it again


def test_one_table_of_triples_is_a_graph(tab: LinksTab, tmp_path: Path) -> None:
    path = tmp_path / "capitals.tsv"
    path.write_text("Rome\tcapital_of\tItaly\nParis\tcapital_of\tFrance\nItaly\tlanguage\tItalian\n", encoding="utf-8")
    done = last(tab.read_upload([str(path)], "", "", "", None))
    assert done[tab.shown].entity == "Rome"
    assert "has learned nothing from this graph" in done[tab.result]
    assert "part of the training" not in done[tab.result]
    asked = last(tab.ask("What is the capital of Italy?", done[tab.model].value, done[tab.graph].value, None))
    assert (asked[tab.shown].entity, asked[tab.shown].answers[0].answers[0].name) == ("Italy", "Rome")
    again = last(tab.open_link(read_link(_link(asked[tab.shown]))[1], None))
    assert again[tab.shown].answers[0] == asked[tab.shown].answers[0], "the address keeps the question"


def test_a_first_row_of_a_graph_in_doubt_is_told_and_can_be_changed(tab: LinksTab, tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    path.write_text("thing\trelation\tother\nRome\tcapital_of\tItaly\nParis\tcapital_of\tFrance\n", encoding="utf-8")
    done = last(tab.read_upload([str(path)], "", "", "", None))
    assert "was taken as a row" in done[tab.upload_notice]
    assert "3 triples" in done[tab.upload_notice]
    done = last(tab.read_upload([str(path)], "names", "", "", None))
    assert "2 triples" in done[tab.upload_notice]
    assert "was taken" not in done[tab.upload_notice]


def test_a_graph_of_another_program_is_read_as_its_visitor_says_and_bad_rows_are_listed(
    tab: LinksTab, tmp_path: Path
) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes("Rome;capital of;Italy\nParis;capital of\nKyoto|b;in;Japan\nGenève;in;Suisse\n".encode("cp1252"))
    done = last(tab.read_upload([str(path)], "", "", "", None))
    assert "was read as Windows-1252" in done[tab.upload_notice]
    done = last(tab.read_upload([str(path)], "", "", "cp1252", None))
    assert "Windows-1252" not in done[tab.upload_notice]
    assert "3 triples of 6 entities" in done[tab.upload_notice]
    assert "line 2 has 2 columns, not 3 to 4" in done[tab.upload_notice]
    assert all(cell in done[tab.first_rows] for cell in ("Rome", "Kyoto|b", "Genève"))
    assert "Paris;capital of" not in done[tab.first_rows]
    assert "export.csv,2,2," in Path(done[tab.left_out]["value"]).read_text()
    with pytest.raises(DataError, match=r"export\.csv has no row that can.*Line 1 has 1 column, not 3 to 4"):
        last(tab.read_upload([str(path)], "", "|", "cp1252", None))


def test_anything_can_be_typed(tab: LinksTab, tmp_path: Path) -> None:
    key = upload(tab, tmp_path)[tab.graph].value
    model = registry.link_models("everyday")[0]
    done = last(tab.ask("<b>happy dogs</b>", model, key, None))
    assert "<b>happy" not in done[tab.result]
    assert done[tab.shown].entity == "<b>happy dogs</b>"
    for section in (tab.show_questions, tab.show_change, tab.show_quality):
        assert all(section(done[tab.shown]).values())
    exported = next(iter(tab.show_exports(done[tab.shown]).values()))
    assert "predict_links" in exported
    assert key not in exported.split("graph=")[1][:80]  # only this server knows the graph by its key
    assert "re-ranked" in next(iter(tab.show_papers().values()))


def test_the_menu_offers_models_that_have_come_since(tab: LinksTab) -> None:
    before = tab.offer("everyday")[tab.model]["choices"]
    tab.page.pool.add("hyper-cl")
    after = tab.offer("everyday")[tab.model]["choices"]
    assert [name for _, name in after if (_, name) not in before] == ["hyper-cl"]


@pytest.mark.parametrize(
    ("entity", "model", "graph"), [(" ", "", ""), ("How old is a cow?", "", ""), ("", "nobody", ""), ("", "", "gone")]
)
def test_an_error_leaves_the_answers_dimmed(tab: LinksTab, entity: str, model: str, graph: str) -> None:
    known = registry.link_models("everyday")[0]
    found = last(tab.ask("bee", known, "everyday", None))[tab.shown]
    left = last_before_error(tab.ask(entity or "bee", model or known, graph or "everyday", found))
    assert left[tab.result] == dimmed(tab._picture(found))
    assert tab.shown not in left, "what was answered before can still be handed out"


def test_what_is_wrong_is_told(tab: LinksTab, tmp_path: Path) -> None:
    model = registry.link_models("everyday")[0]
    with pytest.raises(DataError, match="No entity"):
        last(tab.ask("  ", model, "everyday", None))
    with pytest.raises(DataError, match="is not here"):
        last(tab.ask("bee", model, "upload-gone", None))
    with pytest.raises(CondvizError, match="nobody"):
        last(tab.ask("bee", "nobody", "everyday", None))
    part = write_graph(tmp_path / "part")
    with pytest.raises(
        DataError, match=r"Missing: relations, triples; received: entities\.tsv\. Choose one table of triples"
    ):
        kg_formats.read_files([part / "entities.tsv"])
    with pytest.raises(DataError, match=r"Missing: relations; received: entities.tsv, triples.tsv"):
        kg_formats.read_files([part / "entities.tsv", part / "triples.tsv"])
    with pytest.raises(DataError, match=r"“How old is a cow\?” cannot be answered .* as in “What .* mammal"):
        last(tab.ask("How old is a cow?", model, "everyday", None))
    with pytest.raises(DataError, match="Nothing has been asked"):
        tab.show_change(None)
    with pytest.raises(DataError, match="no graph"):
        tab.api_predict_links("bee", "eats", model, graph="/etc")
    for k in (0, 101):
        with pytest.raises(CondvizError, match="from 1 to 100"):
            tab.api_predict_links("bee", "eats", model, k=k)


def test_the_endpoint_answers_as_the_function(tab: LinksTab) -> None:
    model = registry.link_models("everyday")[0]
    found = tab.api_predict_links("bee", "produces", model, k=3)
    assert len(found["answers"]) == 3
    assert found["question"] == "What does a bee produce?"
    assert tab.api_predict_links("honey", "produces", model, inverse=True)["direction"] == "head"
    asked = tab.api_predict_links("What does a cow eat?", "", model, k=3)
    assert (asked["entity"], asked["relation"], asked["guess"]) == ("cow", "eats", False)
    assert not tab.api_predict_links("Tuesday", "kind of", model)["told"]


def test_the_stored_screen_is_that_of_the_shipped_model(tab: LinksTab) -> None:
    stored = tab.shown.value
    assert stored is not None
    assert stored.entity == "bee"


def test_a_name_stands_before_those_that_contain_it(tab: LinksTab) -> None:
    names = [name for name, _ in tab.entity.choices]
    for place, name in enumerate(names):
        assert not any(name in earlier for earlier in names[:place])


def test_where_work_forks_the_models_of_graphs_are_loaded_before(
    tab: LinksTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forking(*arguments: Any) -> ModelPool:
        pool = ModelPool(*arguments)
        pool.forks = True
        return pool

    monkeypatch.setattr("condviz.ui.links.ModelPool", forking)
    found, loaded = build_view(LinksTab, ModelPool(["bi-encoder"], tab.trained._load)), []
    found.trained._load = lambda name: loaded.append(name) or tab.trained._load(name)
    for step in found.page.site.warm_up:
        step()
    assert sorted(loaded) == sorted(found.trained.names)
