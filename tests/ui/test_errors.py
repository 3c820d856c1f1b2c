"""The Errors tab without a browser: state, service, handlers, markup."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from condviz.analysis.errors.study import judge, make_study
from condviz.errors import CondvizError, ConfigError, DataError
from condviz.evaluation.dataset import make_dataset
from condviz.types import Pair
from condviz.ui.errors_detail import TAGS, render_detail
from condviz.ui.errors_handlers import ErrorsHandlers
from condviz.ui.errors_rows import order_rows, render_table
from condviz.ui.errors_service import ErrorsService, Recent
from condviz.ui.errors_state import PAGE, ErrorsState, from_query
from condviz.ui.errors_view import render_conditions, render_figures, render_finder
from condviz.ui.form_state import from_query as compare_query
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service
from tests.analysis.errors.toy import toy_study
from tests.ui import fakes
from tests.ui.errors_fakes import make_errors_engine
from tests.ui.test_html import read

HOSTILE = "<img src=x onerror=alert(1)>${1+1}{{7*7}}'\"`</textarea></script>"


@pytest.fixture
def service() -> ErrorsService:
    engine = fakes.make_engine()
    return ErrorsService(Service(engine, ModelPool(engine.list_models(), engine.load)), make_errors_engine())


@pytest.fixture
def handlers(service: ErrorsService) -> ErrorsHandlers:
    return ErrorsHandlers(service)


def final(steps: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Put the updates of a run together, as the page does."""
    together: dict[str, Any] = {}
    for step in steps:
        together |= step
    return together


def opened(handlers: ErrorsHandlers) -> dict[str, Any]:
    return final(handlers.first("", None))


def test_a_link_gives_the_state_back() -> None:
    state = ErrorsState(
        "scenes:test",
        "csr",
        "hyper-cl",
        'condition == "a & b=c" and gold > 1',
        sort="apart",
        unit="items",
        target="order",
    )
    assert from_query("?" + state.to_query()) == state


@pytest.mark.parametrize(
    "query", ["", "?t=router", "?t=errors&es=odd&eu=%00&et=1", "?t=errors&ed=%FF%00&ea=", "&" * 500]
)
def test_damaged_links_give_a_usable_state_or_none(query: str) -> None:
    state = from_query(query)
    assert state is None or (state.sort, state.unit, state.target) == ("error", "rows", "over")


def test_recent_keeps_the_last_used() -> None:
    kept = Recent(2)
    for key in "ab":
        kept.put(key, key)
    assert kept.get("a") == "a"
    kept.put("c", "c")
    assert kept.get("b") is None
    assert kept.get("b", lambda: "made") == "made"


def test_the_tab_opens_full(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)
    assert (shown["first"]["value"], shown["second"]["value"]) == ("hyper-cl", "csr")
    assert "resamples" in shown["figures"]
    assert "umbrella" in shown["finder"]
    assert 'data-row="' in shown["table"]
    assert "figure" in shown["plot"] or "selection" in shown["plot"]
    assert shown["shown"]["data"] == "scenes:test"


def test_what_the_tab_opens_with_can_be_made_before(handlers: ErrorsHandlers, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers.warm_up()
    monkeypatch.setattr("condviz.analysis.errors.measures.measure", None)
    monkeypatch.setattr("condviz.analysis.errors.slices.find_slices", None)
    assert "Spearman" in opened(handlers)["figures"]


def test_what_cannot_be_made_before_is_no_fault(service: ErrorsService, caplog: pytest.LogCaptureFixture) -> None:
    def missing(corpus: str, part: str) -> None:
        raise DataError("The scenes are missing.")

    service.engine = replace(service.engine, dataset=missing)
    ErrorsHandlers(service).warm_up()
    assert "The scenes are missing." in caplog.text


def test_the_tab_opens_once(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"]
    assert list(final(handlers.first("", shown))) == ["notice"]
    assert list(final(handlers.first("?t=errors", None))) == ["notice"]


def test_the_lead_of_the_second_model_is_positive_too(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"] | {"first": "csr", "second": "hyper-cl"}
    found = read(final(handlers.act({"act": "target", "target": "second"}, shown))["finder"]).text
    assert "how much closer hyper-cl is" in found
    assert "number" in found


def test_a_filter_makes_slice_and_rest(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"]
    step = final(handlers.apply(' aspect == "number" ', shown))
    assert step["shown"]["filter"] == 'aspect == "number"'
    assert "Slice" in step["figures"]
    assert "Rest" in step["figures"]
    with pytest.raises(DataError, match="Did you mean"):
        final(handlers.apply("golf > 1", shown))
    with pytest.raises(DataError, match="no scores to filter"):
        final(handlers.apply("gold > 1", None))


def test_slices_join_the_filter(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"] | {"filter": "gold == 1 or gold == 5"}
    step = final(handlers.act({"act": "filter", "filter": 'aspect == "mood"', "join": "1"}, shown))
    assert step["filter"] == '(gold == 1 or gold == 5) and aspect == "mood"'


def test_a_selection_in_the_figure_is_the_slice(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"]
    step = final(handlers.brush({"ids": ["3", "7", "nonsense", "99999"]}, shown))
    assert step["shown"]["brush"] == [3, 7, 99999]
    assert "2 / 240 rows" in step["table"]
    assert "plot" not in step
    assert "240 / 240" in final(handlers.brush({"ids": []}, step["shown"]))["table"]


@pytest.mark.parametrize(
    ("asked", "name", "text"),
    [
        ({"act": "target", "target": "order"}, "finder", 'data-target="order"'),
        ({"act": "unit", "unit": "items"}, "table", "120 / 120 items"),
        ({"act": "sort", "sort": "row"}, "table", 'data-number="1"'),
        ({"act": "page", "page": "2"}, "table", "Page 3 of 10"),
        ({"act": "page", "page": "99999"}, "table", "Page 10 of 10"),
        ({"act": "row", "row": "5"}, "detail", "Row 6"),
        ({"act": "column", "column": "condition"}, "worst", "the number of people"),
        ({"act": "view", "view": "calibration"}, "views", "Calibration"),
        ({"act": "view", "view": "against"}, "views", "One model"),
        ({"act": "export", "kind": "csv", "remarks": "{"}, "out", "condviz-errors.csv"),
        ({"act": "export", "kind": "report"}, "out", "condviz-errors.html"),
    ],
)
def test_buttons_do_what_they_say(handlers: ErrorsHandlers, asked: dict, name: str, text: str) -> None:
    shown = opened(handlers)["shown"]
    assert text in final(handlers.act(asked, shown))[name]


@pytest.mark.parametrize(
    "asked", [{"act": "page", "page": "-1"}, {"act": "row", "row": "1e3"}, {"act": "row", "row": "999"},
              {"act": "sort", "sort": "x"}, {"act": "target"}, {"act": "neighbours"}]
)  # fmt: skip
def test_what_the_browser_sends_is_checked(handlers: ErrorsHandlers, asked: dict) -> None:
    with pytest.raises(DataError):
        final(handlers.act(asked, opened(handlers)["shown"]))


@pytest.mark.parametrize("asked", [None, {}, {"act": "odd"}, [], "x"])
def test_unknown_events_do_nothing(handlers: ErrorsHandlers, asked: Any) -> None:
    assert list(final(handlers.act(asked, opened(handlers)["shown"]))) == ["notice"]


def test_tags_and_notes_go_out(handlers: ErrorsHandlers) -> None:
    remarks = json.dumps({"1": {"tags": [TAGS[0], "odd"], "note": "look"}, "x": 3, "999": {}})
    shown = opened(handlers)["shown"] | {"sort": "row"}
    out = final(handlers.act({"act": "export", "kind": "csv", "remarks": remarks}, shown))["out"]
    line = read(out).text.strip().splitlines()[1]
    assert line.endswith(f"{TAGS[0]},look")


def test_unscored_data_ask_for_scoring_and_then_show(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"]
    step = final(handlers.choose("scenes:dev", "minilm", "", "", shown))
    assert "Press Score" in step["notice"]
    assert step["shown"] is None
    steps = list(handlers.score("scenes:dev", "minilm", "", "", None))
    assert "0 of 60 rows" in steps[0]["notice"]
    assert any("60 of 60 rows" in step.get("notice", "") for step in steps)
    assert "60 / 60 rows" in final(iter(steps))["table"]
    assert "not been scored" not in final(handlers.choose("scenes:dev", "minilm", "", "", None))["notice"]


def test_a_table_with_scores_needs_no_model(handlers: ErrorsHandlers, tmp_path: Path) -> None:
    lines = ["sentence1,sentence2,condition,label,score_mine"]
    lines += [f"a{i},b{i},{c},{label},{label / 5}" for i in range(20) for c, label in (("x", 1), ("y", 4))]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines))
    step = final(handlers.upload(str(path), [], "", "", None))
    assert step["first"]["value"] == "mine"
    assert ("mine.csv", step["shown"]["data"]) in step["data"]["choices"]
    assert "100.0" in step["figures"]
    with pytest.raises(DataError, match="is a column of the file"):
        final(handlers.rewrite("swap_sentences", "", "", step["shown"]))
    note = final(handlers.act({"act": "neighbours"}, step["shown"] | {"row": 0}))["extra"]
    assert "has no vectors" in read(note).text or "column of the file" in read(note).text


def test_the_chosen_models_stay_when_a_table_comes(handlers: ErrorsHandlers, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("sentence1,sentence2,condition,label\na,b,c,1\n")
    step = final(handlers.upload(str(path), [], "csr", "hyper-cl", None))
    assert (step["first"]["value"], step["second"]["value"]) == ("csr", "hyper-cl")
    assert "1 row" in read(step["notice"]).text
    assert step["score"]["interactive"]
    scored = final(handlers.score(step["data"]["value"], "csr", "hyper-cl", "", None))
    assert not scored["score"]["interactive"]


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "sentence1,sentence2,condition\na,b,c,d\n"])
def test_bad_uploads_are_refused(handlers: ErrorsHandlers, tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=r"bad\.csv"):
        final(handlers.upload(str(path), [], "", "", None))


def test_an_upload_without_labels_and_one_row_shows_scores_only(handlers: ErrorsHandlers, tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("sentence1,sentence2,condition,score_mine\na,b,c,0.5\n")
    step = final(handlers.upload(str(path), [], "", "", None))
    assert "No row has a label" in read(step["notice"]).text
    assert "0.500" in step["table"]


def test_a_row_shows_its_item_and_links_onward(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"]
    step = final(handlers.point({"id": "0"}, shown))
    assert step["detail"].count('scope="row"') == 2
    assert "s1=Runner" in step["detail"]
    assert "t=router" in step["detail"]
    pairs = handlers.service.dataset("scenes:test").pairs
    for row in (0, 1):  # the condition that was clicked comes first, and Compare shows the words of the first model
        detail = final(handlers.point({"id": str(row)}, shown))["detail"]
        (link,) = re.findall(r'href="(\?s1=[^"]*)"', detail)
        form = compare_query(html.unescape(link))
        assert form.conditions == (pairs[row].condition, pairs[1 - row].condition)
        assert form.words == "hyper-cl"
    near = final(handlers.act({"act": "neighbours"}, step["shown"]))["extra"]
    assert "Trained: Runner" in near
    assert "0.875" in near


def test_rewrites_show_before_and_after(handlers: ErrorsHandlers) -> None:
    shown = opened(handlers)["shown"] | {"filter": '"umbrella" in shared'}
    steps = list(handlers.rewrite("word", "umbrella", "parasol", shown))
    assert "0 of 60 changed rows" in steps[0]["notice"]
    assert steps[0]["cancel"]["visible"]
    effect = final(iter(steps))["effect"]
    assert not steps[-1]["cancel"]["visible"]
    assert "60 rows changed" in effect
    assert "parasol" in effect
    assert effect.count("scores rise") == 2


def test_a_rewrite_tells_how_far_it_is(handlers: ErrorsHandlers, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = opened(handlers)["shown"] | {"filter": '"umbrella" in shared'}
    score, seen, pieces = handlers.service.engine.score, threading.Event(), []

    def waiting(model: Any, texts: Any) -> Any:
        if pieces:  # the second piece waits until the page has heard of the first
            assert seen.wait(60)
        pieces.append(len(texts[0]))
        return score(model, texts)

    monkeypatch.setattr(handlers.service, "engine", replace(handlers.service.engine, score=waiting))
    for step in handlers.rewrite("word", "umbrella", "parasol", shown):
        if "50 of 60 changed rows" in step["notice"]:
            seen.set()
    assert pieces == [50, 10, 50, 10]


def test_a_model_is_not_compared_with_itself(service: ErrorsService) -> None:
    with pytest.raises(ConfigError, match="with itself"):
        service.study("scenes:test", "csr", "csr")
    with pytest.raises(ConfigError, match="has not been scored"):
        service.study("scenes:test", "minilm", None)
    with pytest.raises(CondvizError, match="not in memory any more"):
        service.dataset("abcdef")


def test_no_text_becomes_markup() -> None:
    pairs = [Pair(f"{HOSTILE} {i}", HOSTILE, c, label) for i in range(20) for c, label in ((HOSTILE, 1.0), ("y", 5.0))]
    data = make_dataset(HOSTILE, pairs, extra={HOSTILE: [HOSTILE] * 40})
    scores = data.gold
    study = make_study(data, judge(data, HOSTILE, scores), judge(data, "b", -scores))
    from condviz.analysis.errors.measures import measure, worst_conditions
    from condviz.analysis.errors.slices import find_slices

    mask = study.columns["gold"] > 0
    state = ErrorsState("x", HOSTILE, "b", HOSTILE, row=3)
    parts = [
        render_table(study, mask, state),
        render_table(study, mask, state.change(unit="items")),
        render_detail(study, 3),
        render_figures({"all": measure(study, mask, resamples=5)}),
        render_finder(find_slices(study, "large"), state),
        render_conditions(
            worst_conditions(study), column="condition", columns=["condition", "b"], models=[HOSTILE, "b"]
        ),
    ]
    for part in parts:
        assert "<img" not in part
        assert not {"img", "script"} & set(read(part).tags)


@pytest.mark.parametrize("unit", ["rows", "items"])
@pytest.mark.parametrize("sort", ["error", "over", "under", "apart", "row"])
def test_every_order_shows_every_row_once(unit: str, sort: str) -> None:
    study = toy_study()
    mask = study.columns["gold"] > 1
    ordered = order_rows(study, mask, ErrorsState(unit=unit, sort=sort))
    assert len(set(ordered.tolist())) == len(ordered)
    assert len(ordered) == (mask.sum() if unit == "rows" else mask[study.dataset.items].any(axis=1).sum())
    if (unit, sort) == ("rows", "over"):
        assert study.first.error[ordered[0]] == study.first.error[mask].max()
    assert len(ordered) > PAGE
