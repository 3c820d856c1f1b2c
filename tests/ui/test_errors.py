"""The Errors tab without a browser: tables and their budget, links, remarks, what a filter says in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from condviz.analysis.errors.findings import analyse
from condviz.analysis.errors.measures import worst_conditions
from condviz.analysis.errors.study import judge, make_study
from condviz.data.pairs import PAIR_COLUMNS
from condviz.errors import DataError
from condviz.evaluation.dataset import make_dataset
from condviz.plots.errors import in_words
from condviz.types import Pair
from condviz.ui import imports
from condviz.ui.errors import desk as module
from condviz.ui.errors import view
from condviz.ui.errors.desk import Choice, Desk, Source, read_groups, write_groups
from condviz.ui.errors.sections import read_remarks
from condviz.ui.errors.tab import TAB, ErrorsTab
from condviz.ui.pool import ModelPool
from condviz.ui.state import MAX_TEXT, read_link
from tests.analysis.errors.toy import toy_study
from tests.pages import build_view, last


def write(path: Path, head: str) -> Path:
    rows = [f"a{i},b{i},{c},{label},0.{i:02}{label}" for i in range(20) for c, label in (("x", 1), ("y", 4))]
    path.write_text("\n".join([head, *rows]))
    return path


def source_of(path: Path) -> Source:
    return Source("upload", imports.inspect(imports.RATED, imports.Reading(str(path))).reading)


@pytest.fixture
def desk() -> Desk:
    return Desk(ModelPool(["minilm"], load=lambda name: pytest.fail(f"{name} was loaded")))


@pytest.fixture
def tab(desk: Desk) -> ErrorsTab:
    return build_view(TAB, desk.pool)


def uploaded(tab: ErrorsTab, folder: Path) -> Choice:
    path = write(folder / "t.csv", "sentence1,sentence2,condition,label,score_m")
    return last(tab.read_upload(source_of(path).reading, "minilm", "", None))[tab.choice]


def pressed(tab: ErrorsTab, choice: Choice, filter_: str) -> Choice:
    return last(tab.press(SimpleNamespace(name="filter", value=filter_), choice))[tab.choice]


def test_a_further_filter_narrows_the_slice_and_no_filter_is_cut(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = pressed(tab, uploaded(tab, tmp_path), 'gold >= 4 and condition == "y"')
    assert pressed(tab, choice, 'condition == "y"').filter == choice.filter
    brushed = last(tab.brush(SimpleNamespace(ids=["0", "1", "5"]), uploaded(tab, tmp_path)))[tab.choice]
    narrowed = pressed(tab, brushed, "gold >= 4")
    assert tab.desk.found(narrowed).rows.tolist() == [1, 5]
    assert pressed(tab, choice, "gold >= 3 or seen").filter == f"{choice.filter} and (gold >= 3 or seen)"
    with pytest.raises(DataError, match="2,000"):
        last(tab.find("upload", "m", "", f"gold >= 4{' ' * 2_000}and nonsense", False, choice.source, choice))


def test_rows_that_trained_the_model_are_left_out_when_asked(tab: ErrorsTab, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "sentence1,sentence2,condition,label,score_m")
    choice = last(tab.read_upload(source_of(path).reading, "minilm", "", None))[tab.choice]
    left_out = last(tab.find("upload", "m", "", "", True, choice.source, choice))[tab.choice]
    assert left_out.exclude_seen
    assert read_link(left_out.link)[1]["ex"] == ["True"]
    assert tab.options.read(read_link(left_out.link)[1]) == {"filter": "", "exclude_seen": True}
    assert "exclude_seen=True" in tab.sections.show_exports(left_out)[tab.sections.hand_out]


def test_the_main_button_takes_the_table_that_waits(tab: ErrorsTab, tmp_path: Path) -> None:
    source = source_of(write(tmp_path / "t.csv", "sentence1,sentence2,condition,label,score_m"))
    waiting = last(tab.find_here(source.reading, "scenes:test", "minilm", "", "", False, None, None))
    assert waiting[tab.choice].source.reading == source.reading
    used = waiting[tab.uploaded]
    again = last(tab.find_here(source.reading, "upload", "m", "", "gold >= 4", False, used, waiting[tab.choice]))
    assert again[tab.choice].filter == "gold >= 4", "once it is used, the form is what is asked"


def test_a_column_of_the_file_before_is_no_model_of_other_rows(tab: ErrorsTab, tmp_path: Path) -> None:
    assert uploaded(tab, tmp_path).names == ("m",)
    other = write(tmp_path / "other.csv", "sentence1,sentence2,condition,label,number")
    tab.desk.keep(tab.desk.dataset(source_of(other)), "minilm", np.arange(40.0))
    assert last(tab.read_upload(source_of(other).reading, "m", "minilm", None))[tab.choice].names == ("minilm",)


def test_the_table_of_rows_opens_a_row(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = uploaded(tab, tmp_path)
    table = tab.sections.show_rows(choice)[tab.sections.rows].value
    assert table["headers"] == ["row", "sentence1", "sentence2", "condition", "rating", "error of m"]
    assert len(table["data"]) == 40
    *_, rating, error = table["metadata"]["display_value"][0]
    assert error[0] in "+\N{MINUS SIGN}"
    assert rating == f"{float(rating):g}", "a rating of 1 is no 1.000000"
    event = SimpleNamespace(row_value=table["data"][0])
    assert tab.pick(event, choice)[tab.choice].row == table["data"][0][0] - 1


def test_conditions_are_grouped_as_the_visitor_writes_it(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = uploaded(tab, tmp_path)
    steps = list(tab.regroup("both: x; y", choice))
    grouped = next(step[tab.choice] for step in steps if tab.choice in step)
    assert "both" in steps[-1][tab.sections.worst]
    assert steps[-1][tab.sections.groups] == "both: x; y"
    values = {**read_link(grouped.link)[1], "ed": [grouped.source.token]}
    assert last(tab.open_link(values, None))[tab.choice].groups == "both: x; y"
    assert "wordings" in tab.sections.show_exports(grouped)[tab.sections.hand_out]
    with pytest.raises(DataError, match="no condition"):
        list(tab.regroup("both: x; z", choice))


def test_what_a_link_cannot_open_leaves_nothing_looking_current(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = uploaded(tab, tmp_path)
    for rows in ("", "1"):
        steps = tab.open_link({"ed": ["upload-gone"], "es": [rows]}, choice)
        assert any("cv-dimmed" in step.get(tab.result, "") for step in (next(steps), next(steps)))
        with pytest.raises(DataError, match="Upload it again"):
            list(steps)


def test_what_is_about_another_row_or_slice_is_closed(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = uploaded(tab, tmp_path)
    opened = tab.point(SimpleNamespace(id="3"), choice)
    assert opened[tab.choice].row == 3
    assert opened[tab.sections.near_part.accordion].open is False
    brushed = last(tab.brush(SimpleNamespace(ids=["0", "1"]), choice))
    assert brushed[tab.sections.effect] == ""
    python = tab.sections.show_exports(brushed[tab.choice])[tab.sections.hand_out]
    assert "selected=[0, 1]" in python


def test_another_picture_leaves_the_slice_that_is_on_its_way_and_its_figures(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = uploaded(tab, tmp_path)
    first, *_, final = tab.press(SimpleNamespace(name="filter", value="gold >= 4"), choice)
    assert "cv-dimmed" in first[tab.result], "the page takes no other press until the slice is there"
    assert list(final) == [tab.figures], "intervals, which a press on another picture must not stop"
    looked = tab.look(SimpleNamespace(name="view", value="calibration"), choice)
    assert looked[tab.choice].view == "calibration"
    assert tab.figures not in looked
    assert tab.look(SimpleNamespace(name="view", value="another"), choice) == {}


def test_an_unexpected_error_leaves_no_progress_on_the_plot(
    tab: ErrorsTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice, steps = uploaded(tab, tmp_path), []
    monkeypatch.setattr(tab, "_score", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        steps.extend(tab.find("upload", "m", "", "", False, choice.source, choice))
    assert "previous" in str(steps[-1][tab.plot])


def test_a_table_with_any_columns_is_read(desk: Desk, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "one,two,asked,points,score_m")
    assert dict(source_of(path).reading.columns) == dict(
        zip(PAIR_COLUMNS, ("one", "two", "asked", "points"), strict=True)
    )
    dataset = desk.dataset(source_of(path))
    assert (len(dataset.pairs), len(dataset.items), list(dataset.stored)) == (40, 20, ["m"])
    assert desk.study(Choice(source_of(path), "m")).first.model == "m"


def test_a_column_of_ratings_is_taken_for_the_label(desk: Desk, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "sentence1,sentence2,condition,Rating,score_m")
    assert source_of(path).reading.column("label") == "Rating"
    assert set(desk.dataset(source_of(path)).gold) == {1.0, 4.0}
    write(path, "sentence1,gold,condition,label,score_m")
    assert source_of(path).reading.column("label") == "label"


def test_a_table_in_doubt_is_looked_at_first(tab: ErrorsTab, tmp_path: Path) -> None:
    reading = source_of(write(tmp_path / "doubt.csv", "one,two,asked,points,score_m")).reading
    shown = uploaded(tab, tmp_path)
    looked = last(tab.read_upload(reading, "minilm", "", shown))
    assert tab.choice not in looked
    assert "cv-dimmed" in looked[tab.result], "the findings before are of other rows"
    assert "Use this table" in looked[tab.own.told], "beside its button"
    step, *_ = tab.use_upload(reading, "minilm", "", shown)
    assert step[tab.own.told] == ""
    assert last(tab.use_upload(reading, "minilm", "", shown))[tab.choice].names == ("m",)


def test_scores_that_were_dropped_are_told(desk: Desk, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "sentence1,sentence2,condition,label,score_m")
    source = source_of(path)
    with pytest.raises(DataError, match="Find errors"):
        desk.study(Choice(source, "minilm"))
    desk.keep(desk.dataset(source), "minilm", np.arange(40.0))
    assert desk.study(Choice(source, "minilm")).first.model == "minilm"


def test_the_same_rows_under_another_name_keep_their_own(desk: Desk, tmp_path: Path) -> None:
    choices = []
    for name in ("alice.csv", "bob.csv"):
        path = write(tmp_path / name, "sentence1,sentence2,condition,label,score_m")
        choices.append(Choice(source_of(path), "m"))
    assert [desk.found(choice).study.dataset.name for choice in choices] == ["alice.csv", "bob.csv"]


def test_scores_of_a_model_are_not_those_of_the_next_of_its_name(desk: Desk, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "sentence1,sentence2,condition,label,score_m")
    source = source_of(path)
    desk.keep(desk.dataset(source), "minilm", np.arange(40.0))
    assert desk.study(Choice(source, "minilm"))
    desk.pool.remove("minilm")
    desk.pool.add("minilm")
    assert desk.known(desk.dataset(source), "minilm") is None
    with pytest.raises(DataError, match="Find errors"):
        desk.study(Choice(source, "minilm"))


def test_both_menus_offer_what_has_come_since_and_the_columns_of_the_file(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = uploaded(tab, tmp_path)
    tab.pool.add("csr")
    for chosen, own in ((choice, ["m"]), (None, [])):
        menus = tab.offer(chosen)
        assert {name for _, name in menus[tab.first]["choices"]} == {*own, "minilm", "csr"}
        assert {name for _, name in menus[tab.second]["choices"]} == {"", *own, "minilm", "csr"}


def test_rows_that_are_none_are_not_chosen(tab: ErrorsTab, tmp_path: Path) -> None:
    choice = uploaded(tab, tmp_path)
    shown = last(tab.brush(SimpleNamespace(ids=["3", "²", "99", "1"]), choice))
    assert shown[tab.choice].selected == (1, 3)
    with pytest.raises(DataError, match="no row '²'"):
        tab.point(SimpleNamespace(id="²"), choice)


def test_a_budget_drops_what_was_used_longest_ago(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DATASETS", 60_000)
    small = Desk(desk.pool)
    sources = []
    for name in ("a.csv", "b.csv", "c.csv"):
        path = write(tmp_path / name, "sentence1,sentence2,condition,label,score_m")
        path.write_text(path.read_text().replace("a1", f"{name}1"))
        sources.append(source_of(path))
    kept = [small.dataset(source) for source in sources]
    assert small.dataset(sources[2]) is kept[2]
    assert small.dataset(sources[0]) is not kept[0], "it was dropped, and is read again"
    (tmp_path / "b.csv").unlink()
    with pytest.raises(DataError, match="Upload it again"):
        small.dataset(sources[1])


def test_thirty_visitors_with_tables_of_their_own_lose_none(desk: Desk, tmp_path: Path) -> None:
    sources = []
    for i in range(30):
        path = write(tmp_path / f"{i}.csv", "sentence1,sentence2,condition,label,score_m")
        path.write_text(path.read_text().replace("a1", f"visitor {i}"))
        sources.append(source_of(path))
    first = [desk.study(Choice(source, "m")).dataset.digest for source in sources]
    assert len(set(first)) == 30
    assert [desk.study(Choice(source, "m")).dataset.digest for source in sources] == first


@pytest.mark.parametrize("key", ["/etc/passwd", "scenes:train", "nowhere:test", ""])
def test_only_known_rows_can_be_asked_for(desk: Desk, key: str) -> None:
    with pytest.raises(DataError, match="Choose a corpus"):
        desk.dataset(Source(key))


def test_a_link_holds_the_choice_but_for_the_default_row() -> None:
    choice = Choice(Source("scenes:test"), "csr", "", 'gold >= 4 and "a" in shared', row=6)
    tab, values = read_link(choice.link)
    assert tab == "errors"
    assert (values["ea"], values["er"]) == (["csr"], ["7"])
    assert values["ef"] == [choice.filter]
    assert "eb" not in values


def test_rows_chosen_in_the_plot_are_in_the_link_up_to_a_limit() -> None:
    few = Choice(first="case", selected=(0, 1, 5))
    assert read_link(few.link)[1]["es"] == ["0-1.5"]
    assert not few.unlinked
    assert Choice(selected=tuple(range(0, 3 * MAX_TEXT, 2))).unlinked
    assert Choice(Source("upload", imports.Reading("/x.csv"))).unlinked


def test_damaged_remarks_are_left_out() -> None:
    study = toy_study(second=False)
    found = read_remarks('{"3": {"tags": ["number", "<b>"], "note": "n"}, "x": {}, "4": 7}', study)
    assert list(found) == [2]
    assert (found[2].tags, found[2].note) == (("number",), "n")
    assert read_remarks("[", study) == {}


def test_without_a_choice_the_slices_are_of_the_kind_that_the_headline_names() -> None:
    found = analyse(toy_study(second=False), resamples=0)
    target, worst = found.worst
    shown = view.slices(found, "")
    assert f'data-target="{target}"' in shown.partition(">")[0]
    assert in_words(worst.filter) in shown


@pytest.mark.parametrize(
    ("filter_", "said"),
    [
        ("overlap >= 0.75", "the sentences share most words"),
        ('negation and "dog" in shared', "only one sentence has a negation and both sentences say “dog”"),
        ("abs(error) > 2", "abs(error) > 2"),
    ],
)
def test_filters_in_plain_words(filter_: str, said: str) -> None:
    assert in_words(filter_) == said


def test_texts_are_escaped_wherever_they_are_shown() -> None:
    study = toy_study()
    found = analyse(study, filter='aspect == "mood"', resamples=0)
    row = int(found.rows[0])
    shown = view.row_view(study, row, 0, len(found.rows))
    assert f'data-number="{study.dataset.numbers[row]}"' in shown
    assert "wrong order" in view.row_view(study, int(np.flatnonzero(study.first.right == 0)[0]), 0, 1)
    assert "data-filter" in view.slices(found, "large")
    assert "row == " in view.worst("condition", [], found), "single rows, where no value has enough of them"


def test_a_row_is_named_as_its_file_does() -> None:
    """By its number there, also where rows before it were left out, and by its id if it has one."""
    study = toy_study()
    ids = {"ID": tuple(f"no. {place}" for place in range(len(study.dataset.pairs)))}
    study = replace(study, dataset=replace(study.dataset, numbers=study.dataset.numbers + 100, extra=ids))
    found = analyse(study, resamples=0)
    row = int(found.rows[0])
    assert f'data-filter="row == {row + 101}"' in view.worst("condition", [], found)
    shown = view.row_view(study, row, 0, 1)
    assert f"Row {row + 101}, id" in shown
    assert f"no. {row}<" in shown


def test_groups_are_written_and_read_by_lines() -> None:
    conditions = ["the taste", "how it  tastes", "the price", "what it costs"]
    text = "taste: The taste; how it tastes\n\nprice: the price"
    groups = read_groups(text, conditions)
    assert groups == {"the taste": "taste", "how it  tastes": "taste", "the price": "price"}
    data = make_dataset("t", [Pair(f"a{i}", "b", conditions[i % 4], 1.0 + i % 5) for i in range(40)])
    study = make_study(data, judge(data, "m", np.arange(40.0)), asks=groups)
    assert [(one.value, one.n) for one in worst_conditions(study, column="asks") if one.value == "taste"] == [
        ("taste", 20)
    ]
    written = write_groups(study)
    assert written.startswith("taste: ")
    assert read_groups(written, conditions) == {name: "taste" for name in conditions[:2]}
    for wrong, told in (
        ("taste", "Line 1"),
        ("x: the tast", "the taste"),
        ("a: the taste\nb: the taste", "two groups"),
    ):
        with pytest.raises(DataError, match=told):
            read_groups(wrong, conditions)
