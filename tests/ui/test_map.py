"""The Map tab without a browser: its form, its links, what is picked, and the markup."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from weakref import ref

import gradio as gr
import numpy as np
import pytest

from benchmarks.first_screen import stored_map
from condviz.analysis.points import points_from_texts, scene_points
from condviz.errors import CondvizError, DataError
from condviz.models.registry import load
from condviz.ui import limits
from condviz.ui.imports import POINTS, Reading, inspect
from condviz.ui.map import view
from condviz.ui.map.tab import TAB, MapTab
from condviz.ui.map.view import ASPECTS, Form, Maps, Shown, _bytes, doubts, listed_points
from condviz.ui.pool import ModelPool
from condviz.ui.requests import KEPT
from condviz.ui.state import MAX_TEXT, read_link, read_rows, write_link
from tests.pages import build_view
from tests.plots.test_maps import FEW, MANY

HOSTILE = "<img src=x onerror=alert(1)>"
DRAWN_OTHERWISE = {"method": "pca", "n_neighbors": 7, "min_dist": 0.25, "seed": 4}
SHOWN = Shown(ref(FEW), Form("case"), "value")


@pytest.mark.parametrize(
    "form",
    [
        Form("case"),
        Form("csr", aspects=("mood", "place"), sample=3, drawn=DRAWN_OTHERWISE),
        Form("case", "texts", sentences=f"One.\nTwo & {HOSTILE}.\nThree.", conditions="the sport\nthe mood"),
    ],
)
def test_a_link_brings_the_form_back(form: Form) -> None:
    tab, values = read_link(write_link("map", form.link()))
    assert tab == "map"
    again = Form.from_link(values, values["m"][0])
    assert again.link() == form.link()
    assert (tuple(again.aspects), again.sentences) == (tuple(form.aspects), form.sentences)


def test_a_damaged_link_gives_the_defaults() -> None:
    values = {"from": ["nowhere"], "a": ["nonsense"], "near": ["9e9"], "dist": ["x"], "seed": ["-5"], "draw": ["1.5"]}
    assert Form.from_link(values, "case").link() == Form("case").link()


@pytest.mark.parametrize(
    "form", [Form("case", "table", table=Reading("/x.csv")), Form("case", "texts", sentences="a " * 3000)]
)
def test_a_link_without_the_sentences_says_so_and_opens_no_file(form: Form) -> None:
    assert not form.linked
    assert Shown(ref(FEW), form, "value").unlinked
    again = Form.from_link(read_link(write_link("map", form.link()))[1], "case")
    assert (again.source, again.table, again.linked) == (form.source, None, False)
    other = replace(form, conditions="the weather")
    assert other.link() != form.link(), "the page keeps both in its history"


def test_conditions_that_most_sentences_say_nothing_of_are_named() -> None:
    class Judge:
        def applies(self, sentences: list[str], conditions: list[str]) -> np.ndarray:
            return np.full((len(sentences), 1), float(conditions[0] == "the sport"))

    points = points_from_texts(["One.", "Two.", "Three."], ["the sport", f"{HOSTILE}"])
    assert doubts(Judge(), Form("case", "texts"), points) == ((HOSTILE,), ())


def test_points_chosen_by_hand_are_in_the_link_up_to_a_limit() -> None:
    few = SHOWN.choose((1, 2, 3, 7))
    assert read_rows(read_link(few.link())[1]["i"][0], 20) == (1, 2, 3, 7)
    assert not few.unlinked
    many = SHOWN.choose(tuple(range(0, 3 * MAX_TEXT, 2)))
    assert "i=" not in many.link()
    assert many.unlinked
    assert "i=" not in SHOWN.with_search("sentence").link()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "table"}, "No file is chosen"),
        ({"aspects": ["mood"]}, "two to six"),
        ({"sample": 1.5}, "whole number"),
        ({"source": "texts", "sentences": "One."}, "at least 3"),
        ({"source": "texts", "sentences": "\n".join(map(str, range(limits.MAP_POINTS)))}, "at most 5,000"),
        ({"source": "texts", "conditions": " "}, "no condition"),
    ],
)
def test_what_cannot_be_drawn_says_why(changes: dict, message: str) -> None:
    with pytest.raises(CondvizError, match=message):
        Form("case", **changes).points()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"text,condition\n", "has a header but no rows"),
        (b"PK\x03\x04rest", "Excel"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"id\n1\n2\n3\n", "holds numbers"),
    ],
)
def test_bad_files_get_their_message(content: bytes, message: str, tmp_path: object) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(CondvizError, match=message):
        Form("case", "table", table=inspect(POINTS, Reading(str(path))).reading).points()


@pytest.mark.parametrize(
    "changes", [{"n_neighbors": None}, {"n_neighbors": 1}, {"min_dist": 2}, {"min_dist": None}, {"method": "tsne"}]
)
def test_settings_that_are_not_allowed_are_refused(changes: dict) -> None:
    with pytest.raises(CondvizError):
        Form.of(*list(vars(Form("case")).values())[:-1], *(DRAWN_OTHERWISE | changes).values())


def test_every_aspect_of_the_menu_can_be_drawn() -> None:
    for pair in zip(ASPECTS[::2], ASPECTS[1::2], strict=True):
        assert len(Form("case", aspects=pair).points().texts) == 40


def test_search_and_legend_choose_points() -> None:
    found = SHOWN.with_search("SENTENCE 1")
    assert found.chosen == (1, *range(10, 20))
    assert found.with_search(" ").chosen is None
    assert SHOWN.with_search("nothing like it").chosen == ()
    chosen = SHOWN.with_value("x")
    assert chosen.chosen == tuple(range(0, 20, 2))
    assert chosen.with_value("x").chosen is None
    _, values = read_link(chosen.link())
    assert values["v"] == ["x"]


def test_the_list_shows_neighbours_chosen_points_or_a_hint() -> None:
    assert "Click a point" in view.reading(FEW, None, None, "")
    assert "2 of 20 points" in view.reading(FEW, (0, 3), None, "")
    assert "No sentence contains this" in view.reading(FEW, (), None, "dog")
    both = view.reading(FEW, (0, 3), 3, "")
    assert 'href="./?s1=' in both, "to Compare with each neighbour"
    assert 'href="search?q=' in both
    assert "errors?" not in both, "which has no ratings of one's own sentences"
    assert "Sentence 3." in both
    assert "Back to the list" in both
    assert both.count("<li>") == 2 * 6, "a third of the 19 others on either side"
    assert f"{both.count('>new</span>')} of its 6 nearest neighbours" in both


def test_markup_escapes_texts() -> None:
    from tests.plots.test_maps import colouring, make_map

    made = make_map(["a", HOSTILE] * 5, [HOSTILE, "y"] * 5, [f"{HOSTILE} {i}" for i in range(10)], notes=(HOSTILE,))
    parts = [
        view.head(Shown(ref(made), Form("case"), HOSTILE, search=HOSTILE)),
        view.legend(made, colouring(made), HOSTILE),
    ]
    parts += [view.reading(made, (0, 1), None, HOSTILE), view.reading(made, None, 1, "")]
    for part in parts:
        assert "<img" not in part


def test_what_no_link_holds_is_kept_for_the_sitting() -> None:
    linked = Shown(ref(FEW), Form("minilm"), "condition")
    assert linked.keep().token == ""
    kept = replace(linked, form=Form("minilm", "texts", sentences="word " * MAX_TEXT)).keep()
    assert KEPT[kept.token].form.sentences == "word " * MAX_TEXT
    assert f'data-own="own={kept.token}"' in view.head(kept)
    assert kept.token not in kept.link()


def test_ids_from_a_browser_are_judged() -> None:
    assert view.positions(["3", 1, "x", None, "-1", "99", "²"], 10) == [1, 3]
    assert view.positions("12", 10) == []
    assert view.cell_members(FEW, "nowhere", "a", "0") == ()


def test_the_api_takes_pairs_or_crosses() -> None:
    assert listed_points(["a b", "c d", "e f"], ["x", "y", "x"], ["1", "2", "1"], False).values == ("1", "2", "1")
    assert len(listed_points(["a b", "c d", "e f"], ["x", "y"], None, True).texts) == 6
    for wrong in (
        ([], [], None, False),
        (["a"], ["x", "y"], None, False),
        (["a"], ["x"], ["1"], True),
        ("abc", ["x"], None, True),
    ):
        with pytest.raises(CondvizError):
            listed_points(*wrong)


@pytest.fixture
def tab() -> MapTab:
    pool = ModelPool(("bi-encoder", "cross-encoder"), load=lambda name: pytest.fail(f"{name} was loaded"))
    return build_view(TAB, pool)


def test_a_link_never_puts_a_model_into_the_menu_that_it_does_not_have(tab: MapTab) -> None:
    asked = {"m": ["cross-encoder"], "from": ["texts"], "s": ["One.\nTwo.\nThree."], "c": ["the sport"]}
    assert next(tab.open_link(asked, None))[tab.model]["value"] == "bi-encoder"


def test_an_unexpected_error_leaves_no_progress_on_the_pictures(tab: MapTab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tab.pool, "run", lambda *_, **__: 1 / 0)
    steps = []
    with pytest.raises(ZeroDivisionError):
        steps.extend(tab._draw(Form("bi-encoder", sample=1), SHOWN))
    assert all("previous" in str(steps[-1][panel]) for panel in tab.panels.values())


def test_a_column_without_a_name_gets_one(tab: MapTab, tmp_path: object) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(",c\na long sentence here,x\nanother long sentence,y\n")
    opened = tab.own.open(str(path))
    assert opened[tab.own.pickers["text"]]["value"] == "column_1"
    assert set(tab.own.restore(opened[tab.own.reading])) <= set(tab.own.shown), "what a page that is left restores"


def test_many_values_are_listed_for_searching() -> None:
    from condviz.plots.maps import colouring
    from tests.plots.test_maps import make_map

    made = make_map(["a"] * 40, [f"v{i % 20}" for i in range(40)])
    assert view.legend(made, colouring(made), "").count("cv-map-key") == 20
    assert view.legend(MANY, colouring(MANY), "").count("cv-map-key") == 12


def test_the_stored_map_is_that_of_the_default_model() -> None:
    stored = stored_map(ModelPool().default)
    assert stored.model["name"] == ModelPool().default
    assert stored.after.agreement > stored.before.agreement
    assert stored.points == scene_points()


def test_a_map_that_was_not_looked_at_makes_room_for_others() -> None:
    made = [replace(FEW) for _ in range(3)]
    shown = [Shown(ref(one), Form("case"), "value") for one in made]
    maps = Maps(2 * _bytes(FEW))
    for place in (0, 1, 0, 2):
        maps.keep(made[place])
    made.clear()
    assert shown[0].with_search("1").chosen
    assert shown[2].result.points == FEW.points
    with pytest.raises(DataError, match="Press Draw map"):
        shown[1].with_search("1")


def test_a_sentence_with_a_line_separator_is_one_sentence() -> None:
    form = Form("case", "texts", sentences="One\u2028two.\nThree.\n\nFour.", conditions="the sport")
    assert len(form.points().texts) == 3


def test_what_was_said_goes_with_another_source_or_file_and_stays_while_a_table_is_looked_at(
    tab: MapTab, tmp_path: object
) -> None:
    def fields(form: Form, filled: str = "") -> list:
        return [*list(vars(form).values())[:-1], *DRAWN_OTHERWISE.values(), None, filled]

    assert tab.notice not in tab.boxes(*fields(Form("case"))), "it is emptied"
    for left in ("", "the topic"):  # of a table
        shown = tab.boxes(*fields(Form("case", "texts", conditions=left), filled=left))
        assert shown[tab.conditions] == view.CONDITIONS
    path = tmp_path / "notes.csv"
    path.write_text("text\n" + "".join(f"Note {n} of the court.\n" for n in range(8)))
    new = inspect(POINTS, Reading(str(path))).reading
    assert tab.notice not in tab.conditions_of_table(*fields(Form("case", "table", table=new)))
    with pytest.raises(DataError, match="Write some in Conditions"):
        Form("case", "table", conditions=" ", table=new).points()
    changed = Form("case", "table", table=replace(new, new=False))
    assert tab.conditions_of_table(*fields(changed))[tab.notice] == gr.skip()


def test_conditions_are_typed_only_where_they_are_read(tab: MapTab, tmp_path: object) -> None:
    def after(form: Form, shown: Shown | None = None, filled: str = "") -> dict:
        values = [getattr(form, name) for name in Form.__dataclass_fields__ if name != "drawn"]
        return tab.conditions_of_table(*values, *form.drawn.values(), shown, filled)

    assert after(Form("case"))[tab.box_typed]["visible"] is False
    path = tmp_path / "notes.csv"
    path.write_text("text,topic\n" + "".join(f"Note {n} of the court.,{'ab'[n % 2]}\n" for n in range(8)))
    own = Form("case", "table", table=inspect(POINTS, Reading(str(path))).reading)
    assert after(Form("case", "table"))[tab.box_typed]["visible"] is False, "there is no file yet"
    example = Shown(lambda: None, Form("case"), "value")
    told = after(own, example)[tab.panels["after"]]["message"]["text"]
    assert "Draw map" in told, "the example is not taken for one's own texts"
    assert tab.panels["after"] not in after(Form("case"), example), "what a link draws there stays"
    assert after(own)[tab.conditions] == "the topic", "not the conditions of the example"
    assert tab.conditions not in after(replace(own, conditions="the verdict"))
    again = after(replace(own, conditions="the court"), filled="the court")
    assert again[tab.conditions] == again[tab.filled] == "the topic", "what the page filled in follows the column"
    typed = Shown(lambda: None, Form("case", "texts", conditions="the verdict"), "value")
    told = after(replace(own, conditions="the verdict"), typed)[tab.conditions]
    assert told == "the topic", "not the conditions of the sentences before"


def test_a_theme_in_the_address_is_no_link() -> None:
    """Whoever chose a table while the page was opening with it got the example back."""
    tab = build_view(TAB, ModelPool(["minilm"]))
    blocks = tab.page.site.blocks
    [opened] = [one.fn for one in blocks.fns.values() if one.name == "on_opened" and tab.source in one.outputs]
    for query, answered in (("__theme=dark&open=table", False), ("__theme=dark&from=table", True)):
        steps = list(opened(SimpleNamespace(query_params=query), None))
        assert any(tab.source in step for step in steps) == answered


def test_sentences_in_another_language_are_noted() -> None:
    german = ["Die Tomaten sind verwelkt, weil niemand sie gegossen hat.", "Die Rosen sind nach dem Frost erfroren.",
              "Der Rasen ist gelb geworden, weil es nie geregnet hat."]  # fmt: skip
    english = ["The tomatoes wilted because nobody watered them.", "The roses froze after a late frost in May.",
               "The lawn turned yellow because it never rained."]  # fmt: skip
    form = Form("case", source="texts")
    untold, (note,) = doubts(None, form, points_from_texts(german, ["the plant"]))
    assert untold == (), "what they tell cannot be judged"
    assert "may not be in English" in note
    assert doubts(load("minilm"), form, points_from_texts(english, ["the plant"])) == ((), ())
