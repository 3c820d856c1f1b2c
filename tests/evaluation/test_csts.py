"""Agreement with people: worked examples, ties, constants, intervals, seen and unseen conditions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from condviz.errors import ConfigError, DataError
from condviz.evaluation.csts import condition_pairs, evaluate, pair_accuracy, pearson, spearman, why_undefined
from condviz.types import Pair
from tests.stand_ins import LengthModel


def rows(count: int, seed: int = 0) -> list[Pair]:
    """Give `count` sentence pairs under two conditions each, with ratings that follow the scores loosely."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        for length in rng.choice(np.arange(1, 10), size=2, replace=False):
            label = float(np.clip(round(length / 2 + rng.normal()), 1, 5))
            made.append(Pair(f"s{number}", f"t{number}", "x" * length, label))
    return made


def test_correlations_agree_with_scipy() -> None:
    rng = np.random.default_rng(0)
    ratings, scores = rng.integers(1, 6, size=200), rng.normal(size=200).round(1)
    assert math.isclose(pearson(ratings, scores), pearsonr(ratings, scores).statistic, abs_tol=1e-12)
    assert math.isclose(spearman(ratings, scores), spearmanr(ratings, scores).statistic, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("ratings", "scores", "reason"),
    [
        ([1, 2, 3], [0.5, 0.5, 0.5], "all scores are 0.5"),
        ([2, 2], [0.1, 0.2], "all ratings are 2"),
        ([1], [0.1], "at least 2 rated rows are needed, got 1"),
        ([], [], "got 0"),
        ([1, 2, 3], [0.1, math.nan, math.inf], "2 of 3 scores are not finite"),
        ([1, math.nan], [0.1, 0.2], "some ratings are not finite"),
    ],
)
def test_an_undefined_correlation_is_none_with_a_reason(ratings: list, scores: list, reason: str) -> None:
    assert spearman(ratings, scores) is None
    assert pearson(ratings, scores) is None
    assert reason in why_undefined(ratings, scores)


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(DataError, match="equal length"):
        spearman([1, 2], [1])


def test_pair_accuracy_by_hand() -> None:
    #                       right, wrong, equal ratings, equal similarities
    found = pair_accuracy([5, 1, 3, 4], [1, 5, 3, 2], [0.9, 0.9, 0.5, 0.4], [0.1, 0.1, 0.2, 0.4])
    assert (found.pairs, found.correct, found.equal_ratings, found.equal_similarities) == (4, 1, 1, 1)
    assert found.ties_wrong == 1 / 4
    assert found.ties_excluded == 1 / 3
    assert found.ties_excluded_half == 1.5 / 3


def test_pair_accuracy_without_pairs_is_none() -> None:
    assert pair_accuracy([], [], [], []).ties_wrong is None
    only_ties = pair_accuracy([3], [3], [0.1], [0.2])
    assert (only_ties.ties_wrong, only_ties.ties_excluded, only_ties.ties_excluded_half) == (0.0, None, None)


def test_scores_that_are_not_finite_are_never_right() -> None:
    found = pair_accuracy([5, 5], [1, 1], [math.inf, math.nan], [math.inf, 0.0])
    assert (found.correct, found.equal_similarities) == (0, 0)


@given(st.lists(st.tuples(*[st.integers(1, 5)] * 2, *[st.floats(-1, 1, width=32)] * 2), max_size=20))
def test_pair_accuracy_does_not_depend_on_which_condition_is_first(cases: list) -> None:
    a, b, s, t = (list(column) for column in zip(*cases, strict=True)) if cases else ([], [], [], [])
    assert pair_accuracy(a, b, s, t) == pair_accuracy(b, a, t, s)


def test_only_groups_of_two_different_conditions_count() -> None:
    made = [Pair("a", "b", condition) for condition in ("x", "y")]
    made += [Pair("c", "d", condition) for condition in ("x", "y", "z")]
    made += [Pair("e", "f", "x"), Pair("g", "h", "x"), Pair("g", "h", " x")]
    made += [Pair("b", "a", "x")]
    assert condition_pairs(made).tolist() == [[0, 1]]
    assert condition_pairs([]).shape == (0, 2)


def test_report_holds_the_figures_of_all_seen_and_unseen_rows() -> None:
    made = [*rows(40), Pair("s", "t", "not rated")]
    report = evaluate(LengthModel(), made, training_conditions={"x", "xx ", "xxx"}, resamples=50)
    assert (report.rows, report.rated, len(report.predictions)) == (81, 80, 81)
    assert report.seen.n + report.unseen.n == 80
    assert report.seen.n == sum(len(pair.condition) <= 3 for pair in made[:-1])
    labels = [pair.label for pair in made[:-1]]
    assert report.overall.spearman.value == pytest.approx(100 * spearman(labels, report.predictions[:-1]))
    for metric in (report.overall.spearman, report.overall.pearson, report.overall.ties_wrong):
        assert metric.low < metric.value < metric.high
    assert report.overall.accuracy.pairs == 40
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["overall"]["n"] == 80


def test_intervals_repeat_with_the_seed_and_vanish_without_resamples() -> None:
    first, second = (evaluate(LengthModel(), rows(20), resamples=20, seed=1).overall for _ in range(2))
    assert first == second
    assert first != evaluate(LengthModel(), rows(20), resamples=20, seed=2).overall
    assert evaluate(LengthModel(), rows(20), resamples=0).overall.spearman.low is None


def test_a_handful_of_pairs_gets_no_interval() -> None:
    assert evaluate(LengthModel(), rows(9), resamples=20).overall.pearson.low is None
    assert evaluate(LengthModel(), rows(10), resamples=20).overall.pearson.low is not None


def test_a_constant_model_fails_visibly() -> None:
    made = [Pair("a", f"b{label}", "same", label) for label in (1.0, 3.0, 5.0)]
    overall = evaluate(LengthModel(), made, resamples=10).overall
    assert overall.spearman.value is None
    assert overall.spearman.reason == "all scores are 0.4"
    assert overall.ties_wrong.reason == "no sentence pair is rated under exactly two conditions"


def test_rows_without_ratings_are_scored_only() -> None:
    report = evaluate(LengthModel(), [Pair("a", "b", "c")], training_conditions=[])
    assert report.rated == 0
    assert report.predictions.tolist() == [np.float32(0.1)]
    assert report.seen.spearman.value is None


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        evaluate(LengthModel(), [])
    with pytest.raises(ConfigError, match="got -1"):
        evaluate(LengthModel(), rows(2), resamples=-1)
