"""The Links tab without a browser: state, service, markup, files, and what its handlers yield."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from condviz.errors import DataError
from condviz.plots.neighbourhood import legend, plot_neighbourhood
from condviz.ui.links_examples import find_examples
from condviz.ui.links_export import to_csv, to_json, to_python
from condviz.ui.links_handlers import LinksHandlers
from condviz.ui.links_help import HOW, render_others
from condviz.ui.links_metrics import Row, render_metrics
from condviz.ui.links_service import LinksService
from condviz.ui.links_state import LinksState, from_query
from condviz.ui.links_view import rank, render_nearest, render_relations, render_result
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service
from tests.ui import fakes
from tests.ui.links_fakes import make_graph, make_links_engine

NAMES = ("minilm", "hyper-cl", "case", "cross-encoder")
BEE = LinksState("everyday", "everyday-concat", "bee", "produces")
ENTITIES = "id\tname\tdescription\na\tapple\ta fruit\nb\ttree\t\n"
RELATIONS = "grows_on\tgrows on\n"
TRIPLES = "a\tgrows_on\tb\n"


@pytest.fixture
def service() -> LinksService:
    engine = fakes.make_engine(NAMES)
    return LinksService(Service(engine, ModelPool(NAMES, engine.load)), make_links_engine())


@pytest.fixture
def record(service: LinksService) -> dict[str, Any]:
    return service.answer(service.check(BEE))


def form(state: LinksState = BEE, *, text: str = "", shown: Any = None) -> tuple[Any, ...]:
    entity = {"id": "" if text else state.entity, "text": text}
    return (state.graph, state.model, entity, state.relation, state.inverse, state.count, shown)


def write_tables(folder: Path, **changes: str) -> list[str]:
    files = {"entities": ENTITIES, "relations": RELATIONS, "triples": TRIPLES} | changes
    for name, content in files.items():
        (folder / f"{name}.tsv").write_text(content, encoding="utf-8")
    return [str(folder / f"{name}.tsv") for name in files]


@pytest.mark.parametrize("state", [BEE, BEE.change(inverse=True, count=50, entity="ü & <b>")])
def test_a_link_restores_the_state(state: LinksState) -> None:
    assert from_query("?" + state.to_query()) == state
    assert LinksState.from_dict(state.to_dict()) == state


@pytest.mark.parametrize("query", ["", "t=router&le=bee", "s1=a", "%ff=&&&=", "t=links" + "&x=1" * 300])
def test_other_addresses_are_no_links_to_this_tab(query: str) -> None:
    assert from_query(query) is None


def test_damaged_links_fall_back() -> None:
    assert from_query("t=links&lk=999999&li=yes&le=" + "x" * 5000) == LinksState(entity="x" * 300)


def test_models_of_links_come_first_and_unfit_ones_are_left_out(service: LinksService) -> None:
    assert [info.name for info in service.infos("everyday")] == ["everyday-concat", "hyper-cl"]
    assert service.choices("everyday")[0] == ("everyday-concat (trained on Everyday world)", "everyday-concat")
    assert service.complete(LinksState()).model == "everyday-concat"


def test_suggestions_follow_what_is_typed(service: LinksService) -> None:
    assert [entity["id"] for entity in service.find({"graph": "everyday", "text": "fores"})] == ["forest"]
    assert service.find({"graph": "everyday", "text": "forrest"})[0]["id"] == "forest"
    assert len(service.find({"graph": "everyday", "text": ""})) == 12
    for hostile in (None, [], {"graph": "../etc", "text": "a"}, {"graph": 3, "text": {"a": 1}}):
        assert isinstance(service.find(hostile), list)


def test_an_answer_has_everything_that_the_views_show(record: dict[str, Any]) -> None:
    assert [item["rank"] for item in record["rows"]] == list(range(1, 11))
    assert [item["id"] for item in record["answers"]] == ["honey"]
    assert record["answers"][0]["split"] == "train"
    assert sum(column["relation"] == "produces" and not column["inverse"] for column in record["columns"]) == 1
    assert "bee" not in {item["id"] for item in (*record["alone"], *record["under"])}
    assert [point["role"] for point in record["points"][:2]] == ["query", "asked"]
    assert len({point["id"] for point in record["points"]}) == len(record["points"])
    json.dumps(record)


def test_the_question_may_be_asked_by_text_and_backwards(service: LinksService) -> None:
    asked = service.check(BEE.change(entity="Forest", relation="inverse lives in"))
    assert (asked.state.entity, asked.state.relation, asked.state.inverse) == ("forest", "lives_in", True)
    answers = service.answer(asked)["answers"]
    assert {item["id"]: item["split"] for item in answers} == {"bear": "train", "fox": "test", "bee": "test"}
    assert all(item["filtered_rank"] <= item["rank"] for item in answers)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"entity": "forrest"}, "Similar: forest"),
        ({"relation": "eats"}, "There is no relation 'eats'"),
        ({"relation": ""}, "No relation is chosen"),
        ({"model": "cross-encoder"}, "No model that predicts links is called 'cross-encoder'"),
        ({"graph": "upload-0"}, "upload it again"),
        ({"count": 10**9}, "from 1 to 100 can"),
        ({"count": "10"}, "from 1 to 100 can"),
    ],
)
def test_bad_questions_say_what_to_do(service: LinksService, change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        service.check(BEE.change(**change))


def test_an_uploaded_graph_can_be_asked(service: LinksService, tmp_path: Path) -> None:
    key, title = service.upload(write_tables(tmp_path))
    assert title == "Your graph, 2 entities"
    state = service.complete(LinksState(key))
    assert (state.model, state.entity, state.relation) == ("hyper-cl", "a", "grows_on")
    assert [item["id"] for item in service.answer(service.check(state))["answers"]] == ["b"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"triples": "a\tgrows_on\tx\n"}, r"^triples.tsv, row 1: entity 'x' is not in the list"),
        ({"triples": "a\teats\tb\n"}, r"^triples.tsv, row 1: relation 'eats'"),
        ({"triples": "a\tgrows_on\tb\tnever\n"}, "allowed are train, valid, test"),
        ({"triples": "head\trelation\ttail\n"}, "triples.tsv has no rows"),
        ({"entities": ENTITIES + "a\tagain\t\n"}, "^your graph: entity 'a' is in rows 1 and 3"),
        ({"entities": ENTITIES + "c\t \t\n"}, "entity 'c' has no name"),
        ({"entities": "a b c\n"}, r"^entities.tsv, line 1: 1 columns"),
        ({"relations": ""}, "0 relations"),
    ],
)
def test_bad_tables_are_named_by_row(service: LinksService, tmp_path: Path, changes: dict[str, str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        service.upload(write_tables(tmp_path, **changes))


def test_uploads_are_limited(service: LinksService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_tables(tmp_path)
    with pytest.raises(DataError, match=r"relations.tsv did not come.*came: entities.tsv, triples.tsv"):
        service.upload([paths[0], paths[2]])
    monkeypatch.setattr("condviz.ui.links_service.MAX_ENTITIES", 1)
    with pytest.raises(DataError, match="2 entities and 1 triples; at most 1"):
        service.upload(paths)
    monkeypatch.setattr("condviz.ui.links_service.MAX_TABLE_BYTES", 10)
    with pytest.raises(DataError, match=r"entities.tsv is larger"):
        service.upload(paths)


def test_the_result_escapes_texts_and_says_what_is_right(service: LinksService, record: dict[str, Any]) -> None:
    shown = render_result({**record, "link": True})
    assert "<b>moss</b>" not in shown
    assert "&lt;b&gt;moss&lt;/b&gt;" in render_result(service.answer(service.check(BEE.change(count=25))))
    assert "The one answer that the graph knows, honey, has rank" in shown
    assert f'data-query="{BEE.to_query().replace("&", "&amp;")}"' in shown
    assert "data-query" not in render_result({**record, "link": False})
    unknown = service.answer(service.check(BEE.change(relation="uses")))
    assert "does not know any answer" in render_result(unknown)


def test_answers_further_down_are_listed(service: LinksService) -> None:
    found = service.answer(service.check(BEE.change(entity="forest", relation="lives_in", inverse=True)))
    first = {**found, "rows": found["rows"][:1]}
    below = len({"bear", "fox", "bee"} - {found["rows"][0]["id"]})
    assert f"Further down: {below} more answers" in render_result(first)


def test_other_relations_and_neighbours(record: dict[str, Any]) -> None:
    relations = render_relations(record)
    assert relations.count('aria-current="true"') == 1
    assert "1 known, best at" in relations
    nearest = render_nearest(record)
    assert ("entered" in nearest) == ("left" in nearest)


@pytest.mark.parametrize(("value", "said"), [(1, "1"), (40943.0, "40,943"), (2.5, "2.5")])
def test_ranks_are_written_short(value: float, said: str) -> None:
    assert rank(value) == said


def test_the_figure_has_every_role_and_no_markup(record: dict[str, Any]) -> None:
    points = record["points"]
    figure = plot_neighbourhood(points, "bee")
    assert sum(len(trace.ids) for trace in figure.data) == len(points)
    assert sum(count for *_, count in legend(points)) == len(points)
    assert any(note.arrowhead for note in figure.layout.annotations)
    assert "<b>" not in " ".join(note.text for note in figure.layout.annotations)


def test_what_is_handed_out(record: dict[str, Any]) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(record))))
    assert [row["id"] for row in rows[:10]] == [item["id"] for item in record["rows"]]
    assert {row["split"] for row in rows} == {"", "train"}
    content = json.loads(to_json(record))
    assert content["relation"] == "produces"
    assert set(content["model"]) == {"name", "revision", "trained"}
    script = to_python(record)
    compile(script, "script", "exec")
    assert 'ASSETS / "graph" / "everyday"' in script


def test_metrics_name_backbones_and_put_ours_among_the_papers() -> None:
    shown = render_metrics([Row("Ours", "a command", "MiniLM", (50.0, 40.0, 55.0, None), ours=True)])
    assert shown.index("SimKGC") < shown.index("Ours") < shown.index("Hadamard")
    assert shown.count("BERT-base") >= 6
    assert "66.6" in shown


def test_absent_graphs_are_explained() -> None:
    shown = render_others(make_links_engine().missing())
    assert all(address in shown for _, address, _ in HOW.values())
    assert render_others([]) == ""


def test_questions_of_other_graphs_are_drawn_from_their_triples() -> None:
    examples = find_examples("upload-1", make_graph())
    assert {example.relation for example in examples} == {"produces", "lives_in", "uses"}


# ---- handlers


def last(steps: Any) -> dict[str, Any]:
    return {name: update for step in steps for name, update in step.items()}


def test_the_first_opening_answers_an_example(service: LinksService) -> None:
    handlers = LinksHandlers(service)
    done = last(handlers.first("", *form()))
    assert done["shown"]["state"]["model"] == "everyday-concat"
    assert "links-table" in done["result"]
    assert set(last(handlers.first("", *form(shown=done["shown"])))) == {"notice"}
    assert set(last(handlers.first("t=links&le=bee", *form()))) == {"notice"}


def test_a_stored_answer_needs_no_model(service: LinksService, record: dict[str, Any]) -> None:
    stored = LinksService(service.service, service.engine, record)
    done = last(LinksHandlers(stored).first("", *form()))
    assert "links-table" in done["result"]
    assert stored.pool.loaded("everyday-concat") is None


def test_links_to_what_is_not_here_show_the_form_and_why(service: LinksService) -> None:
    handlers = LinksHandlers(service)
    steps = []
    with pytest.raises(DataError, match="'wn18rr' is not here"):
        steps.extend(handlers.open_link("t=links&lg=wn18rr&le=x&lr=y", *form()))
    done = last(handlers.open_link("t=links&lm=nobody&le=fox&lr=uses", *form()))
    assert done["shown"]["state"] == BEE.change(entity="fox", relation="uses").to_dict()


def test_a_typed_name_is_looked_up(service: LinksService) -> None:
    handlers = LinksHandlers(service)
    assert last(handlers.ask(*form(text="BEAR")))["shown"]["state"]["entity"] == "bear"
    with pytest.raises(DataError, match="Similar: forest"):
        last(handlers.ask(*form(text="forrest")))
    with pytest.raises(DataError, match="No entity is chosen"):
        last(handlers.ask(*form(LinksState("everyday", "hyper-cl", "", "uses"))))


def test_buttons_change_the_question(service: LinksService) -> None:
    handlers = LinksHandlers(service)
    shown = {"state": BEE.to_dict()}
    state = last(handlers.act({"act": "entity", "id": "fox"}, *form(shown=shown)))["shown"]["state"]
    assert (state["entity"], state["relation"]) == ("fox", "produces")
    state = last(handlers.act({"act": "relation", "relation": "lives_in", "inverse": "1"}, *form(shown=shown)))
    assert state["shown"]["state"]["inverse"] is True
    assert last(handlers.point({"id": "fox"}, *form(shown=shown)))["shown"]["state"]["entity"] == "fox"
    for nothing in (None, {"act": "boom"}, {"act": ["x"]}):
        assert set(last(handlers.act(nothing, *form(shown=shown)))) == {"notice"}
    with pytest.raises(DataError, match="no entity"):
        last(handlers.act({"act": "entity", "id": "<script>"}, *form(shown=shown)))


def test_one_broken_part_leaves_the_others(service: LinksService, record: dict[str, Any]) -> None:
    handlers = LinksHandlers(service)
    done = handlers._paint({**record, "points": [{"role": "query"}], "columns": None})
    assert "Unexpected error" in done["relations"]
    assert "Unexpected error" in done["legend"]
    assert "links-table" in done["result"]
