"""The Map tab without a browser: form, markup, figures, files, and what its handlers yield."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from condviz.analysis.map_result import EmbeddingMap
from condviz.errors import ConfigError, DataError
from condviz.plots.old_maps import MAX_CATEGORIES, colouring, plot_side
from condviz.ui.map_form import TYPED, MapForm
from condviz.ui.map_handlers import MapHandlers
from condviz.ui.map_measures import render_measures, render_weights
from condviz.ui.map_scene import choose_model
from condviz.ui.map_service import FIRST, MapService
from condviz.ui.map_view import positions, render_head, render_legend, render_neighbors, render_table, rows_csv
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service
from tests.ui import fakes
from tests.ui.map_fakes import make_map, make_map_engine

NAMES = ("minilm", "hyper-cl", "csr", "cross-encoder")


def form(**changes: Any) -> MapForm:
    fields: dict[str, Any] = {
        "model": "hyper-cl", "source": "scenes", "aspects": ["sport", "mood"], "draw": 0, "sentences": "",
        "conditions": "", "table": None, "text_column": None, "condition_column": TYPED, "sample": 0, "method": "pca",
        "dimensions": 2, "neighbors": 15, "min_dist": 0.1, "seed": 0, "clusters": 0,
    }  # fmt: skip
    return MapForm(**{**fields, **changes})


@pytest.fixture(scope="module")
def made() -> EmbeddingMap:
    return make_map()


@pytest.fixture
def service(made: EmbeddingMap) -> MapService:
    engine = fakes.make_engine(NAMES)
    return MapService(Service(engine, ModelPool(NAMES, engine.load)), make_map_engine(), made)


def run(handlers: MapHandlers, asked: MapForm) -> list[dict[str, Any]]:
    return list(handlers.draw(*vars(asked).values(), None))


def test_only_models_with_a_map_are_offered(service: MapService) -> None:
    assert [info.name for info in service.infos()] == ["hyper-cl", "csr"]


def test_the_form_reads_every_source(tmp_path: Path) -> None:
    engine = make_map_engine()
    assert len(form().points(engine).texts) == 16
    typed = form(source="texts", sentences="One.\nTwo.\n\nThree.", conditions="the mood\nthe sport")
    assert len(typed.points(engine).texts) == 6
    path = tmp_path / "table.csv"
    path.write_text("text,about\nOne.,x\nTwo.,y\nThree.,x\n")
    table = form(source="table", table=str(path), text_column="text", condition_column="about")
    assert table.points(engine).groups == ("x", "y")
    crossed = form(source="table", table=str(path), text_column="text", conditions="the mood")
    assert crossed.points(engine).crossed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aspects": []}, "two to six"),
        ({"source": "table"}, "Upload a CSV"),
        ({"source": "texts", "sentences": "One.\nTwo.\nThree."}, "There is no condition"),
        ({"source": "texts", "sentences": "One.", "conditions": "the mood"}, "one sentence"),
        ({"draw": -1}, "draw must be a whole number"),
    ],
)
def test_a_form_that_cannot_be_drawn_says_why(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError if "draw" not in changes else ConfigError, match=message):
        form(**changes).points(make_map_engine())


def test_settings_are_checked_on_the_server() -> None:
    for changes in ({"neighbors": 1}, {"min_dist": 2}, {"seed": 0.5}, {"dimensions": None}, {"method": "tsne"}):
        with pytest.raises(ConfigError):
            form(**changes).config()
    assert form(clusters=4).num_clusters() == 4
    assert form().num_clusters() is None


def test_drawing_shows_everything_and_the_map_can_be_asked_for_more(service: MapService) -> None:
    handlers = MapHandlers(service)
    steps = run(handlers, form())
    shown = next(step["shown"] for step in reversed(steps) if "shown" in step)
    names = set().union(*steps)
    assert names >= {"before", "after", "legend", "head", "table", "neighbors", "measures", "colour", "box_weights"}
    (opened,) = handlers.open({"id": "3"}, shown)
    assert "Sentence 3 of sport" in opened["neighbors"]
    assert opened["after"]["marked"]["id"] == "3"
    (selected,) = handlers.select({"ids": ["1", "2", "99", "x"]}, shown)
    assert selected["shown"]["chosen"] == [1, 2]
    assert "2 / 16 points" in selected["table"]
    (cell,) = handlers.act({"act": "cell", "side": "after", "group": "The sport", "cluster": "0"}, shown)
    assert len(cell["shown"]["chosen"]) in (0, 8)
    (coloured,) = handlers.colour("value", shown)
    assert "x" in coloured["legend"]
    (saved,) = handlers.act({"act": "csv"}, selected["shown"])
    assert saved["out"]["file"]["content"].count("\n") == 3


def test_an_error_leaves_no_half_drawn_map(service: MapService) -> None:
    with pytest.raises(DataError, match="not finite"):
        run(MapHandlers(service), form(source="texts", sentences="a\nb\nbroken", conditions="the mood"))


def test_a_map_that_is_gone_says_what_to_do(service: MapService) -> None:
    with pytest.raises(DataError, match="Press Draw"):
        next(MapHandlers(service).open({"id": "1"}, {"key": "gone", "chosen": None, "marked": None, "colour": ""}))
    assert service.get(FIRST) is service.first


def test_models_without_matrices_hide_them(service: MapService) -> None:
    steps = run(MapHandlers(service), form(model="csr"))
    assert next(step["box_weights"] for step in steps if "box_weights" in step)["visible"] is False


def test_markup_escapes_and_tables_say_how_many(made: EmbeddingMap) -> None:
    markup = "".join(
        [render_head(made), render_table(made, None, 2), render_neighbors(made, 2), render_measures(made),
         render_weights(made.weights)]
    )  # fmt: skip
    assert "<b>place" not in markup
    assert "&lt;b&gt;place" in markup
    assert markup.count("cv-map-marked-row") == 1
    assert "24 points" in markup
    assert 'data-act="cell"' in markup
    assert "random matrices" in markup


def test_a_measure_that_is_missing_says_why() -> None:
    single = make_map(("sport",))
    markup = render_measures(single)
    assert "there is only one" in markup
    assert "Isotropy" in markup


def test_neighbours_are_marked_as_stayed_left_or_entered(made: EmbeddingMap) -> None:
    markup = render_neighbors(made, 0)
    before, after = (set(side.neighbors.indices[0].tolist()) for side in (made.before, made.after))
    assert markup.count(">stayed<") == 2 * len(before & after)
    assert markup.count(">left<") == len(before - after)
    assert markup.count(">entered<") == len(after - before)


def test_colours_are_ten_at_most_and_the_rest_is_other(made: EmbeddingMap) -> None:
    record = made.to_dict()
    record["columns"] = {"many": [f"v{i % 14}" for i in range(24)], "number": [str(i) for i in range(23)] + [""]}
    many = colouring(EmbeddingMap.from_dict(record), "many")
    assert len(many.categories) == MAX_CATEGORIES
    assert many.categories[-1][0] == "other"
    assert sum(count for _, _, count in many.categories) == 24
    number = colouring(EmbeddingMap.from_dict(record), "number")
    assert number.ends == (0, 22)
    names = [trace.name for trace in plot_side(EmbeddingMap.from_dict(record), "before", number).data]
    assert names == ["number", "missing"]
    assert "22" in render_legend(number.name, number.categories, number.ends, made.points.groups)


def test_figures_hold_every_point_once_and_remember_where_it_was(made: EmbeddingMap) -> None:
    figure = plot_side(made, "after", colouring(made, "condition"))
    ids = sorted(int(i) for trace in figure.data for i in trace.ids)
    assert ids == list(range(24))
    assert all(trace.meta["from"]["x"].shape == trace.x.shape for trace in figure.data)
    assert plot_side(made, "before", colouring(made, "drift")).data[0].meta is None


def test_csv_guards_formulas(made: EmbeddingMap) -> None:
    record = made.to_dict()
    record["texts"][0] = "=1+1"
    rows = list(csv.DictReader(io.StringIO(rows_csv(EmbeddingMap.from_dict(record), [0, 1]))))
    assert rows[0]["text"] == "'=1+1"
    assert len(rows) == 2
    assert {"before_x", "after_y", "cluster_after", "changed"} <= set(rows[0])


def test_positions_take_only_what_is_one() -> None:
    assert positions(["2", "1", "2", "-1", "x", None, "9", 0], 5) == [0, 1, 2]
    assert positions("12", 5) == []


def test_the_first_map_is_of_the_papers_model_where_it_is_there() -> None:
    assert choose_model(["csr", "hyper-cl"]) == "hyper-cl"
    assert choose_model(["minilm", "csr", "case"]) == "csr"
    with pytest.raises(ConfigError, match="--model"):
        choose_model(["minilm"])
