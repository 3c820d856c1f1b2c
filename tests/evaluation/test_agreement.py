"""Figures with intervals: against a plain bootstrap, clusters of pairs and of aspects, coverage of shares."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from condviz.evaluation.agreement import Rows, measure, resample, resample_means

Sample = tuple[Rows, list[np.ndarray], list[np.ndarray]]


def sample(count: int, seed: int, *, ties: bool = False) -> Sample:
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(count), rng.integers(1, 4, size=count))
    gold = rng.integers(1, 6, size=len(clusters)).astype(float)
    scores = gold + rng.normal(size=len(clusters))
    verdict = rng.integers(0, 2, size=count).astype(float)
    scores = scores.round(0) if ties else scores
    items = np.stack([np.searchsorted(clusters, range(count)), np.full(count, -1)], axis=1)
    return Rows(gold, clusters, items), [scores], [verdict]


def plain(made: Sample, seed: int, resamples: int) -> dict[str, list[float]]:
    """The textbook: draw clusters, put their rows together, call scipy."""
    rows, (own,), (right,) = made
    rng = np.random.default_rng(seed)
    groups = int(rows.clusters.max()) + 1
    drawn = rng.integers(groups, size=(resamples, groups), dtype=np.uint32)
    found: dict[str, list[float]] = {"spearman": [], "pearson": [], "ties_wrong": []}
    for clusters in drawn:
        picked = np.concatenate([np.flatnonzero(rows.clusters == cluster) for cluster in clusters])
        gold, scores = rows.gold[picked], own[picked]
        found["spearman"].append(spearmanr(gold, scores).statistic)
        found["pearson"].append(pearsonr(gold, scores).statistic)
        found["ties_wrong"].append(right[clusters].mean())
    return found


@pytest.mark.parametrize("ties", [False, True])
def test_resampling_gives_what_a_loop_over_scipy_gives(ties: bool) -> None:
    rows = sample(30, 3, ties=ties)
    (fast,) = resample(*rows, resamples=40, seed=7)
    for name, values in plain(rows, 7, 40).items():
        np.testing.assert_allclose(fast[name], values, atol=2e-5, err_msg=name)


def test_resamples_do_not_depend_on_the_size_of_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sample(25, 1)
    (whole,) = resample(*rows, resamples=30, seed=0)
    monkeypatch.setattr("condviz.evaluation.agreement.CHUNK", 3 * len(rows[0].gold))
    (pieces,) = resample(*rows, resamples=30, seed=0)
    for name, values in whole.items():
        np.testing.assert_allclose(pieces[name], values, atol=1e-6)


@given(st.integers(0, 10_000))
def test_intervals_repeat_with_the_seed(seed: int) -> None:
    rows = sample(12, 0)
    one, two = (resample(*rows, resamples=5, seed=seed)[0]["spearman"] for _ in range(2))
    assert (one == two).all()
    assert (np.abs(one) <= 1 + 1e-6).all()
    assert not math.isnan(float(one[0]))


def made(pairs: int, seed: int, *, aspects: int | None = None, share: float = 0.8) -> tuple[Rows, np.ndarray]:
    """Pairs of two rows; a model is right with one probability, or all or nothing by aspect."""
    rng = np.random.default_rng(seed)
    gold = np.tile([1.0, 5.0], pairs)
    asked = np.repeat(np.arange(pairs) if aspects is None else rng.integers(aspects, size=pairs), 2)
    luck = rng.random(pairs if aspects is None else aspects) < share
    right = np.repeat(luck if aspects is None else luck[asked[::2]], 2)
    scores = np.where(right, gold, 6 - gold) + 0.01 * rng.random(2 * pairs)
    items = np.arange(2 * pairs).reshape(-1, 2)
    return Rows(gold, np.repeat(np.arange(pairs), 2), items, asked if aspects else None), scores


def test_a_perfect_model_has_an_interval_below_100() -> None:
    rows, scores = made(500, 0, share=1.0)
    found = measure(rows, [scores], resamples=200)[0][0]
    assert (found.ties_wrong.value, found.ties_wrong.high) == (100, 100)
    assert found.ties_wrong.low == pytest.approx(99.24, abs=0.01)


@pytest.mark.parametrize("kind", ["aspects", "tables"])
def test_what_hangs_together_widens_the_interval(kind: str) -> None:
    rows, scores = made(300, 1, aspects=20)
    alone = Rows(rows.gold, rows.clusters, rows.items)
    rows = replace(alone, **{kind: rows.aspects})
    wide, narrow = (measure(one, [scores], resamples=300)[0][0] for one in (rows, alone))
    for name in ("spearman", "pearson", "ties_wrong"):
        one, two = getattr(wide, name), getattr(narrow, name)
        assert one.value == two.value
        assert one.high - one.low > 1.5 * (two.high - two.low)


def test_scores_that_are_not_finite_leave_correlations_undefined() -> None:
    rows, scores = made(20, 0)
    scores[3] = math.nan
    found = measure(rows, [scores], resamples=20)[0][0]
    assert found.spearman.reason == "1 of 40 scores are not finite"
    assert found.ties_wrong.value is not None


def test_resampled_means_are_those_of_the_drawn_clusters() -> None:
    values, clusters = np.arange(12.0), np.repeat(np.arange(4), 3)
    found = resample_means(values, clusters, resamples=500, seed=0)
    assert found.mean() == pytest.approx(values.mean(), abs=0.3)
    assert set(np.round(found * 4)) <= set(range(4, 41))
