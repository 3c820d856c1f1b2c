"""Point estimates: worked examples, ties, constants, what counts as seen, Wilson's interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from condviz.errors import DataError
from condviz.evaluation.metrics import (
    condition_pairs,
    pair_accuracy,
    pearson,
    spearman,
    spearman_ceiling,
    why_undefined,
    wilson,
)
from condviz.types import Pair


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


def test_all_pairs_of_different_conditions_of_a_sentence_pair_count() -> None:
    made = [Pair("a", "b", condition) for condition in ("x", "y")]
    made += [Pair("c", "d", condition) for condition in ("x", "y", "z")]
    made += [Pair("e", "f", "x"), Pair("g", "h", "x"), Pair("g", "h", " x")]
    made += [Pair("i", "j", text) for text in ("The sport", "the  sport")]
    made += [Pair("k", "l", text) for text in ("the caf\u00e9", "the cafe\u0301")]
    made += [Pair("b", "a", "x")]
    assert condition_pairs(made).tolist() == [[0, 1], [2, 3], [2, 4], [3, 4]]
    twelve = [Pair("a", "b", f"condition {i}") for i in range(12)]
    assert len(condition_pairs(twelve)) == 66
    assert len(condition_pairs([*twelve, *twelve])) == 4 * 66
    assert condition_pairs([]).shape == (0, 2)


def test_repeated_ratings_cap_spearman() -> None:
    ratings = np.repeat([1.0, 5.0], 50)
    assert spearman_ceiling(ratings) == pytest.approx(spearman(ratings, np.arange(100.0)), abs=1e-12)
    assert spearman_ceiling(ratings) == pytest.approx(0.866, abs=1e-3)
    assert spearman_ceiling([1, 2, 3]) == 1
    assert spearman_ceiling([2, 2]) is None


def test_wilson_by_hand_and_at_the_ends() -> None:
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(1.0, 500) == pytest.approx((0.99238, 1.0), abs=1e-4)
    assert wilson(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_wilson_covers_where_a_share_is_nearly_one() -> None:
    rng = np.random.default_rng(0)
    found = [wilson(hits / 500, 500) for hits in rng.binomial(500, 0.998, size=2000)]
    assert np.mean([low <= 0.998 <= high for low, high in found]) > 0.9  # resampling: 0.65
