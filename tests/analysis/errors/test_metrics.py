"""Figures of parts of the rows: by hand, against a plain bootstrap, intervals, differences, undefined cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from condviz.analysis.errors.bootstrap import Sample, resample
from condviz.analysis.errors.dataset import make_dataset
from condviz.analysis.errors.metrics import measure
from condviz.analysis.errors.study import judge, make_study
from condviz.errors import ConfigError
from condviz.types import Pair
from tests.analysis.errors.toy import toy_study


def sample(count: int, seed: int, *, ties: bool = False) -> Sample:
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(count), rng.integers(1, 4, size=count))
    gold = rng.integers(1, 6, size=len(clusters)).astype(float)
    scores = gold + rng.normal(size=len(clusters))
    verdict = rng.integers(0, 2, size=count).astype(float)[clusters]
    scores = scores.round(0) if ties else scores
    return Sample(gold, clusters, np.ones(len(clusters), bool), [scores], [scores - gold], [verdict])


def plain(rows: Sample, seed: int, resamples: int) -> dict[str, list[float]]:
    """The textbook: draw clusters, put their rows together, call scipy."""
    rng = np.random.default_rng(seed)
    groups = int(rows.clusters.max()) + 1
    drawn = rng.integers(groups, size=(resamples, groups), dtype=np.uint32)
    found: dict[str, list[float]] = {"spearman": [], "pearson": [], "error": [], "bias": [], "accuracy": []}
    for clusters in drawn:
        picked = np.concatenate([np.flatnonzero(rows.clusters == cluster) for cluster in clusters])
        gold, scores, error = rows.gold[picked], rows.scores[0][picked], rows.errors[0][picked]
        found["spearman"].append(spearmanr(gold, scores).statistic)
        found["pearson"].append(pearsonr(gold, scores).statistic)
        found["error"].append(np.abs(error).mean())
        found["bias"].append(error.mean())
        first = np.array([np.flatnonzero(rows.clusters == cluster)[0] for cluster in clusters])
        found["accuracy"].append(rows.right[0][first].mean())
    return found


@pytest.mark.parametrize("ties", [False, True])
def test_resampling_gives_what_a_loop_over_scipy_gives(ties: bool) -> None:
    rows = sample(30, 3, ties=ties)
    (fast,) = resample(rows, resamples=40, seed=7)
    for name, values in plain(rows, 7, 40).items():
        np.testing.assert_allclose(fast[name], values, atol=2e-5, err_msg=name)


def test_resamples_do_not_depend_on_the_size_of_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sample(25, 1)
    (whole,) = resample(rows, resamples=30, seed=0)
    monkeypatch.setattr("condviz.analysis.errors.bootstrap.CHUNK", 3 * len(rows.gold))
    (pieces,) = resample(rows, resamples=30, seed=0)
    for name, values in whole.items():
        np.testing.assert_allclose(pieces[name], values, atol=1e-6)


def test_figures_agree_with_scipy_and_lie_in_their_intervals() -> None:
    study = toy_study(second=False)
    report = measure(study, np.ones(240, bool), resamples=400)
    (figures,) = report.figures
    assert (figures.n, figures.items, report.resamples) == (240, 120, 400)
    assert figures.spearman.value == pytest.approx(spearmanr(study.columns["gold"], study.first.scores).statistic)
    assert figures.error.value == pytest.approx(np.abs(study.first.error).mean())
    for name in ("spearman", "pearson", "accuracy", "error"):
        figure = getattr(figures, name)
        assert figure.low < figure.value < figure.high


def test_slice_and_rest_share_the_rows_of_all() -> None:
    study = toy_study()
    mask = study.columns["gold"] >= 3
    part, rest = (measure(study, side, resamples=0) for side in (mask, ~mask))
    assert part.figures[0].n + rest.figures[0].n == 240
    assert part.figures[0].error.low is None


def test_the_difference_of_two_models_has_a_sign_and_a_chance() -> None:
    difference = measure(toy_study(), np.ones(240, bool), resamples=300).difference
    assert difference.values["accuracy"].value > 0
    assert difference.values["error"].value < 0
    assert difference.p_values["error"] < 0.05
    assert difference.only_first > difference.only_second
    assert difference.mcnemar < 0.05


def test_a_model_against_itself_differs_in_nothing() -> None:
    study = toy_study(second=False)
    twice = make_study(study.dataset, study.first, study.first)
    difference = measure(twice, np.ones(240, bool), resamples=50).difference
    assert all(figure.value == 0 for figure in difference.values.values())
    assert all(p == 1 for p in difference.p_values.values())
    assert difference.mcnemar is None


def test_undefined_figures_say_why() -> None:
    made = [Pair(f"a{i}", "b", condition, 3.0) for i in range(12) for condition in ("x", "y")]
    data = make_dataset("t", made)
    study = make_study(data, judge(data, "m", np.arange(24.0)))
    (figures,) = measure(study, np.ones(24, bool), resamples=20).figures
    assert figures.spearman.value is None
    assert figures.spearman.reason == "all ratings are 3"
    assert "equal in every item" in figures.accuracy.reason
    assert figures.ties_wrong.value == 0


@pytest.mark.parametrize("labels", [[None, None], [2.0, None], [2.0]])
def test_few_or_no_labels_break_nothing(labels: list) -> None:
    data = make_dataset("t", [Pair("a", "b", f"c{i}", label) for i, label in enumerate(labels)])
    study = make_study(data, judge(data, "m", np.arange(float(len(labels)))))
    report = measure(study, np.ones(len(labels), bool), resamples=20)
    assert report.figures[0].n == sum(label is not None for label in labels)
    assert report.resamples == 0


def test_negative_resamples_are_refused() -> None:
    with pytest.raises(ConfigError, match="got -1"):
        measure(toy_study(), np.ones(240, bool), resamples=-1)


@given(st.integers(0, 10_000))
def test_intervals_repeat_with_the_seed(seed: int) -> None:
    rows = sample(12, 0)
    one, two = (resample(rows, resamples=5, seed=seed)[0]["spearman"] for _ in range(2))
    assert (one == two).all()
    assert (np.abs(one) <= 1 + 1e-6).all()
    assert not math.isnan(float(one[0]))
