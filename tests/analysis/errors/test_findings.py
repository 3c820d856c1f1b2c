"""Worst conditions, blindness, rewrites, neighbours, CSV, report, command: on rows with known faults."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from condviz.analysis.errors.findings import Remark, analyse, find_errors, format_csv
from condviz.analysis.errors.measures import check_blindness, worst_conditions
from condviz.analysis.errors.rewrites import nearest_rows, negate, next_number, replace_word, rewrite
from condviz.analysis.errors.study import judge, make_study
from condviz.data.pairs import format_predictions, read_pairs
from condviz.errors import ConfigError, DataError
from condviz.evaluation.agreement import FIGURES
from condviz.evaluation.csts import evaluate
from condviz.evaluation.dataset import make_dataset, open_data
from condviz.evaluation.metrics import Metric
from condviz.plots.errors import render_report, show_figure
from condviz.types import Pair
from tests.analysis.errors.toy import WORDINGS, toy_dataset, toy_scores, toy_study
from tests.commands import Command
from tests.stand_ins import LengthModel

HOSTILE = "<img src=x onerror=alert(1)>${1}'\"</textarea>"


def test_the_worst_condition_of_each_model_comes_first() -> None:
    study = toy_study()
    swapped = make_study(study.dataset, study.second, study.first)
    worst = worst_conditions(swapped)[0]
    assert worst.value == WORDINGS["number"]
    assert worst.error[0] > 1.5 * worst.error[1]
    assert worst_conditions(swapped, column="aspect")[0].value == "number"
    assert worst_conditions(swapped, mask=np.arange(240) < 1) == []


def test_conditions_are_the_same_whatever_their_blanks() -> None:
    data = make_dataset(
        "t", [Pair(f"a{i}", "b", "the  sport" if i % 2 else "The sport", 1.0 + i % 5) for i in range(9)]
    )
    study = make_study(data, judge(data, "m", np.arange(9.0)))
    assert [group.n for group in worst_conditions(study)] == [9]


def test_a_condition_of_a_few_rows_is_no_worst_one() -> None:
    conditions, labels = ["often"] * 76 + ["seldom"] * 4, [1.0, 5.0] * 40
    pairs = [Pair(f"a{i}", "b", c, x) for i, (c, x) in enumerate(zip(conditions, labels, strict=True))]
    data = make_dataset("t", pairs)
    errors = np.r_[np.tile([1.0, 3.0], 38), [2.5] * 4]
    found = worst_conditions(make_study(data, replace(judge(data, "m", np.arange(80.0)), error=errors)))
    assert [group.value for group in found] == ["often"]


def test_a_few_unlucky_rows_are_not_the_worst_condition() -> None:
    labels = [1.0, 5.0] * 40
    conditions = ["often"] * 74 + ["rare"] * 6
    data = make_dataset(
        "t", [Pair(f"a{i}", "b", c, x) for i, (c, x) in enumerate(zip(conditions, labels, strict=True))]
    )
    judged = judge(data, "m", np.arange(80.0))
    errors = np.r_[np.full(74, 2.0), [0.1, 0.1, 0.1, 4.0, 4.0, 4.0]]
    often, rare = worst_conditions(make_study(data, replace(judged, error=errors)))
    assert (often.value, rare.value) == ("often", "rare")
    assert rare.error[0] > often.error[0]
    assert often.spread[0] == pytest.approx(0)
    low, high = scipy.stats.t.interval(0.95, 5, loc=2.05, scale=scipy.stats.sem(errors[74:]))
    assert rare.spread[0] == pytest.approx((high - low) / 2)


def test_a_blind_model_has_no_variance_between_conditions() -> None:
    data = toy_dataset()
    blind = judge(data, "blind", data.clusters.astype(float))
    found = check_blindness(make_study(data, blind), blind)
    assert found.within == 0
    assert found.verdict == "ignores the condition"
    assert found.within_gold > 0.5
    study = toy_study()
    assert check_blindness(study, study.first).within > 0.4
    assert check_blindness(study, study.first).verdict == "follows the condition"


def test_random_scores_do_not_follow_the_condition_though_half_their_variance_lies_there() -> None:
    data = toy_dataset()
    noise = judge(data, "noise", np.random.default_rng(2).normal(size=len(data.pairs)))
    found = check_blindness(make_study(data, noise), noise)
    assert 0.35 < found.within < 0.65
    assert found.chance[0] < found.follows < found.chance[1]
    assert "not follow" in found.verdict


def test_a_model_that_guesses_from_the_wording_is_seen_through() -> None:
    data = toy_dataset()
    guess = judge(data, "guess", np.array([float(len(pair.condition)) for pair in data.pairs]))
    found = check_blindness(make_study(data, guess), guess)
    assert found.wording == pytest.approx(1)
    assert found.wording_gold < 0.05


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Two dogs and 3 cats.", "Three dogs and 4 cats."),
        ("nineteen", "twenty"),
        ("TWO DOGS AND Three cats", "THREE DOGS AND Four cats"),
        ("A dog in 3.5 miles", None),
        ("Someone alone", None),
        ("No one watches the one vet.", None),
        ("1 vet and 21 dogs", "1 vet and 22 dogs"),
    ],
)
def test_numbers_go_up_by_one(text: str, changed: str | None) -> None:
    assert next_number(text) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("He is asleep.", "He is not asleep."),
        ("He is not asleep.", "He is asleep."),
        ("He can't swim.", "He can swim."),
        ("It won’t start.", "It will start."),
        ("She didn't run.", "She did run."),
        ("He never sleeps.", "He sleeps."),
        ("Dogs run.", None),
    ],
)
def test_negation_is_put_in_or_taken_out(text: str, changed: str | None) -> None:
    assert negate(text) == changed


def test_words_are_replaced_whole() -> None:
    assert replace_word("Red red redder", "red", "blue") == "blue blue redder"
    assert replace_word("a b", "a", "") == "b"
    assert replace_word("nothing", "red", "blue") is None
    assert replace_word("a \\1 b", "\\1", "\\g<0>") == "a \\g<0> b"


def test_a_rule_changes_the_slice() -> None:
    study = toy_study(second=False)
    mask = np.arange(240) < 40
    changed = rewrite(study, mask, "swap_conditions")
    assert len(changed.rows) == 40
    assert all(pair.label is None for pair in changed.pairs)
    partner = {tuple(item): item for item in study.dataset.items.tolist()}
    assert partner
    word = rewrite(study, np.ones(240, bool), "word", old="umbrella", new="parasol", max_rows=10)
    assert (len(word.rows), word.left_out, word.unchanged) == (10, 50, 180)
    assert "parasol" in word.pairs[0].sentence1


@pytest.mark.parametrize(
    ("rule", "options", "error"),
    [
        ("odd", {}, ConfigError),
        ("word", {}, DataError),
        ("negate", {}, DataError),
        ("word", {"old": "zebra"}, DataError),
    ],
)
def test_rules_that_change_nothing_say_so(rule: str, options: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        rewrite(toy_study(), np.ones(240, bool), rule, **options)


class LetterModel(LengthModel):
    """Vectors that count letters."""

    encodes = True

    def encode(self, sentences: list[str], conditions: list[str]) -> np.ndarray:
        texts = [f"{sentence} {condition}" for sentence, condition in zip(sentences, conditions, strict=True)]
        return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], float)


def test_the_nearest_training_row_is_the_row_itself_in_either_order() -> None:
    data = toy_dataset(20)
    training = data.pairs
    asked = data.pairs[6]
    turned = Pair(asked.sentence2, asked.sentence1, asked.condition)
    for pair in (asked, turned):
        found = nearest_rows(LetterModel(), pair, training, count=3)
        assert found[0].pair == asked
        assert found[0].similarity == pytest.approx(1)
        assert [one.similarity for one in found] == sorted((one.similarity for one in found), reverse=True)
    with pytest.raises(ConfigError, match="has no vectors"):
        nearest_rows(LengthModel(), asked, training)


def test_csv_can_be_read_again_and_holds_no_formulas() -> None:
    data = make_dataset("t", [Pair("=1+1", "b", "x", 1.0), Pair("=1+1", "b", "y", 5.0)])
    study = make_study(data, judge(data, "m", np.array([0.25, 0.5])))
    text = format_csv(study, [1, 0], {1: Remark(("number",), "@note, with comma")})
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["row"] for row in rows] == ["2", "1"]
    assert rows[0]["sentence1"] == "'=1+1"
    assert (rows[0]["tags"], rows[0]["note"], rows[0]["right_m"]) == ("number", "'@note, with comma", "yes")
    again = open_data(io.BytesIO(text.encode()))
    assert again.stored["m"].tolist() == [0.5, 0.25]
    assert again.gold.tolist() == [5, 1]


class Tags(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href") or name.startswith("on")]


def test_the_report_needs_nothing_else_and_escapes_texts() -> None:
    asked = ((HOSTILE, 1.0), ("y", 5.0))
    pairs = [Pair(f"{HOSTILE} {i}", "b", condition, label) for i in range(20) for condition, label in asked]
    data = make_dataset(HOSTILE, pairs)
    study = make_study(data, judge(data, HOSTILE, np.arange(40.0)))
    report = render_report(analyse(study, filter="gold >= 1", resamples=20), remarks={3: Remark(("number",), HOSTILE)})
    seen = Tags()
    seen.feed(report)
    assert not {"img", "script", "link", "iframe"} & set(seen.found)
    assert seen.addresses == []
    assert seen.found.count("svg") == 2
    assert "Worst conditions" in report
    assert len(report) < 500_000


def test_findings_are_json_without_what_json_cannot_hold() -> None:
    found = analyse(toy_study(), filter='aspect == "mood"', resamples=20).to_dict()
    content = json.loads(json.dumps(found, allow_nan=False))
    assert set(content["figures"]) == {"every", "part", "rest"}
    assert content["figures"]["part"]["n"] + content["figures"]["rest"]["n"] == 240
    assert set(content["slices"]) == {"over", "under", "large", "order", "first", "second"}
    with pytest.raises(DataError, match="No row meets the filter"):
        analyse(toy_study(), filter="gold > 9")


def test_rows_selected_by_hand_are_the_slice_of_the_report() -> None:
    found = analyse(toy_study(), filter="gold >= 2", selected=list(range(100)), resamples=20)
    assert found.part.n + found.rest.n == 240
    assert found.mask[:100].sum() == found.mask.sum() == found.part.n < 100
    assert "<code>gold &gt;= 2</code> and 100 rows selected by hand" in render_report(found)


def test_rows_selected_by_hand_may_be_an_array_and_have_to_exist() -> None:
    assert analyse(toy_study(), selected=np.arange(100), resamples=0).selected == 100
    with pytest.raises(DataError, match="position 240 to select; positions go from 0 to 239"):
        analyse(toy_study(), selected=[3, 240])
    with pytest.raises(DataError, match="among those selected by hand meets"):
        analyse(toy_study(), filter="row > 9", selected=[3])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"resamples": -1}, ConfigError),
        ({"filter": "ratng > 1"}, DataError),
        ({"filter": "score_b > 1"}, DataError),
        ({"selected": [240]}, DataError),
    ],
)
def test_settings_are_checked_before_anything_is_scored(options: dict, error: type[Exception]) -> None:
    asked = []
    with pytest.raises(error):
        find_errors(LengthModel(), toy_dataset(), progress=lambda *done: asked.append(done), **options)
    assert asked == []


def test_evaluate_and_find_errors_print_the_same_figures_and_intervals() -> None:
    data = toy_dataset()
    model = LengthModel()
    one = evaluate(model, data, resamples=100).reports[0].overall
    two = find_errors(model, data, resamples=100).every.figures[0]
    for name in FIGURES:
        assert getattr(one, name) == getattr(two, name)
        assert getattr(one, name).low is not None


def test_the_frame_has_the_rows_of_the_slice() -> None:
    frame = analyse(toy_study(), filter="gold >= 4", resamples=0).to_frame()
    assert (frame["label"] >= 4).all()
    assert {"row", "sentence1", "score_csr", "right_hyper-cl", "aspect"} <= set(frame.columns)


def test_the_headline_names_the_surest_slice_and_the_best_aspect() -> None:
    alone, found = analyse(toy_study(second=False), resamples=0), analyse(toy_study(), resamples=0)
    for one, targets in ((alone, ("over", "large")), (found, ("first",))):
        target, worst = one.worst
        assert target in targets
        assert worst.q < 0.05
    assert found.summary.wins[:1] == ("number",)


def test_the_best_and_worst_conditions_are_found_among_all_not_only_among_those_shown() -> None:
    pairs = [Pair(f"a{row}", "b", f"number {row % 24}", 1.0 + row % 5) for row in range(960)]
    data = make_dataset("t", pairs)
    errors = np.arange(960) % 24 / 10
    found = analyse(make_study(data, replace(judge(data, "m", np.arange(960.0)), error=errors)), resamples=0)
    assert len(found.conditions) == 20
    assert (found.summary.best.value, found.summary.worst.value) == ("number 0", "number 23")


def test_figures_that_round_to_zero_have_no_sign() -> None:
    assert show_figure("bias", Metric(-0.0001)) == ("0.00", "")
    assert show_figure("bias", Metric(0.5, -0.1, 0.6)) == ("+0.50", "\N{MINUS SIGN}0.10 to +0.60")
    assert show_figure("spearman", Metric(None, reason="x")) == ("\N{EN DASH}", "")


def test_unlabelled_rows_give_findings_without_figures() -> None:
    data = make_dataset("t", [Pair(f"a{i}", "b", "x") for i in range(3)])
    found = analyse(make_study(data, judge(data, "m", np.arange(3.0))))
    assert found.every.figures[0].n == 0
    assert (found.searches, found.conditions) == ({}, ())
    assert "<html" in render_report(found)


def write_table(path: Path) -> Path:
    data = toy_dataset(40)
    lines = ["sentence1,sentence2,condition,label"]
    lines += [f"{p.sentence1},{p.sentence2},{p.condition},{p.label:g}" for p in data.pairs]
    plain = path / "plain.csv"
    plain.write_text("\n".join(lines))
    scored = path / "scored.csv"
    scored.write_text(format_predictions(read_pairs(plain), toy_scores(data)))
    return scored


def test_the_command_analyses_scores_of_a_file_without_any_model(tmp_path: Path, cli: Command) -> None:
    table, page, found, rows = (write_table(tmp_path), *(tmp_path / name for name in ("r.html", "r.json", "r.csv")))
    outputs = ["--html", page, "--json", found, "--out", rows]
    out = cli("errors", table, "--resamples", "20", "--filter", "gold >= 2", *outputs).out
    assert "hyper-cl" in out
    assert "difference" in out
    assert "worst conditions" in out
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads(found.read_text())["filter"] == "gold >= 2"
    assert len(rows.read_text().splitlines()) == 1 + json.loads(found.read_text())["figures"]["part"]["n"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv", "--model", "csr"], "does not exist"),
        (["scenes:odd", "--model", "csr"], "There is no part 'odd'"),
        (["{table}", "--model", "a", "--model", "b", "--model", "c"], "got 3"),
        (["{table}", "--filter", "ratng > 1"], "Did you mean rating"),
        (["{table}", "--html", "{table}/x.html"], "does not exist"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path: Path, cli: Command, arguments: list[str], message: str) -> None:
    table = str(write_table(tmp_path))
    assert message in cli.refuse("errors", *(argument.replace("{table}", table) for argument in arguments))
