"""Figures of parts of the rows: by hand, against a plain bootstrap, intervals, differences, undefined cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from condviz.analysis.errors.measures import check_blindness, measure
from condviz.analysis.errors.study import judge, make_study
from condviz.errors import ConfigError
from condviz.evaluation.dataset import make_dataset
from condviz.types import Pair
from tests.analysis.errors.toy import toy_study


def test_figures_agree_with_scipy_and_lie_in_their_intervals() -> None:
    study = toy_study(second=False)
    report = measure(study, np.ones(240, bool), resamples=400)
    (figures,) = report.figures
    assert (figures.n, figures.items, report.resamples) == (240, 120, 400)
    assert figures.spearman.value == pytest.approx(100 * spearmanr(study.columns["gold"], study.first.scores).statistic)
    assert figures.error.value == pytest.approx(np.abs(study.first.error).mean())
    for name in ("spearman", "pearson", "ties_excluded", "error"):
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
    assert difference.values["ties_excluded"].value > 0
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


@pytest.mark.parametrize("count", [2, 3, 12])
def test_any_number_of_conditions_is_judged_by_all_its_pairs(count: int) -> None:
    made = [Pair(f"a{i}", "b", f"condition {j}", 1.0 + (i + j) % 5) for i in range(20) for j in range(count)]
    data = make_dataset("t", made)
    pairs = 20 * count * (count - 1) // 2
    assert (len(data.items), data.notes) == (pairs, ())
    for scores, share in ((data.gold, 100.0), (-data.gold, 0.0)):
        study = make_study(data, judge(data, "m", scores), judge(data, "n", -scores))
        found = measure(study, np.ones(len(made), bool), resamples=50)
        figures = found.figures[0]
        assert (figures.items, figures.ties_excluded.value) == (pairs, share)
        assert np.nanmax(np.abs(study.first.right - share / 100)) == 0
        unequal = figures.pair_accuracy.pairs - figures.pair_accuracy.equal_ratings
        assert sorted((found.difference.only_first, found.difference.only_second)) == [0, unequal]
        # The interval rests on twenty sentence pairs, however many pairs of conditions they make.
        assert max(figures.ties_excluded.low, 100 - figures.ties_excluded.high) < 85


def test_random_scores_do_not_follow_three_conditions() -> None:
    rng, sure = np.random.default_rng(0), 0
    data = make_dataset("t", [Pair(f"a{i}", "b", f"c{j}", 1.0 + (i + j) % 5) for i in range(15) for j in range(3)])
    for _ in range(40):
        judged = judge(data, "m", rng.random(45))
        sure += check_blindness(make_study(data, judged), judged).p < 0.05
    assert sure <= 5


def test_undefined_figures_say_why() -> None:
    made = [Pair(f"a{i}", "b", condition, 3.0) for i in range(12) for condition in ("x", "y")]
    data = make_dataset("t", made)
    study = make_study(data, judge(data, "m", np.arange(24.0)))
    (figures,) = measure(study, np.ones(24, bool), resamples=20).figures
    assert figures.spearman.value is None
    assert figures.spearman.reason == "all ratings are 3"
    assert "always equal" in figures.ties_excluded.reason
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
