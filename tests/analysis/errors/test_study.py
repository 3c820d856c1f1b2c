"""From scores to ratings: monotone, equal scores alike, worked example, confusion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.analysis.errors.filters import explain_nothing, select
from condviz.analysis.errors.study import calibration_curve, confusion, cross_fit, fit_calibration, judge, make_study
from condviz.data.pairs import read_pairs
from condviz.errors import DataError
from condviz.evaluation.dataset import table_dataset
from tests.analysis.errors.toy import toy_study

ROWS = st.lists(st.tuples(st.floats(-5, 5, width=32), st.integers(1, 5)), min_size=1, max_size=40)


def test_pool_adjacent_violators_by_hand() -> None:
    fit = fit_calibration(np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 4.0, 2.0, 5.0]))
    assert fit.ratings.tolist() == [1, 3, 3, 5]
    np.testing.assert_allclose(fit(np.array([-9.0, 0.25, 0.35, 9.0])), [1, 3, 4, 5])


@given(ROWS)
def test_the_fit_rises_stays_in_range_and_keeps_the_mean(rows: list) -> None:
    scores, gold = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    fitted = fit_calibration(scores, gold)(scores)
    order = np.argsort(scores, kind="stable")
    assert (np.diff(fitted[order]) >= -1e-9).all()
    assert fitted.min() >= gold.min() - 1e-9
    assert fitted.max() <= gold.max() + 1e-9
    assert abs(fitted.mean() - gold.mean()) < 1e-6


@given(ROWS, st.floats(0.1, 10), st.floats(-3, 3))
def test_models_that_differ_in_scale_only_get_the_same_errors(rows: list, factor: float, shift: float) -> None:
    scores, gold = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    scores = scores.round(2)
    moved = (factor * scores + shift).round(9)
    np.testing.assert_allclose(fit_calibration(scores, gold)(scores), fit_calibration(moved, gold)(moved), atol=1e-6)


def test_what_is_not_finite_is_left_out() -> None:
    fit = fit_calibration(np.array([0.1, np.nan, 0.3]), np.array([1.0, 5.0, np.nan]))
    assert np.isnan(fit(np.array([np.nan, 0.2]))).tolist() == [True, False]
    assert np.isnan(fit_calibration(np.array([0.1]), np.array([np.nan]))(np.array([0.1]))).all()


def test_curve_has_groups_of_equal_size() -> None:
    scores = np.arange(100.0)
    points = calibration_curve(scores, scores / 25 + 1, bins=4)
    assert [point.n for point in points] == [25] * 4
    assert [point.score for point in points] == [12, 37, 62, 87]
    assert calibration_curve(np.zeros(0), np.zeros(0)) == ()


def test_confusion_counts_ratings_in_rows() -> None:
    counts = confusion(np.array([1.0, 5.0, 2.5, np.nan]), np.array([1.4, 3.5, 9.0, 2.0]))
    assert counts.sum() == 3
    assert (counts[0, 0], counts[4, 3], counts[2, 4]) == (1, 1, 1)


def test_noise_does_not_beat_a_constant_out_of_its_own_fold() -> None:
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(40):
        gold = rng.integers(1, 6, size=100).astype(float)
        fitted = cross_fit(rng.normal(size=100), gold, np.repeat(np.arange(50), 2))
        gains.append(((gold - gold.mean()) ** 2).mean() - ((gold - fitted) ** 2).mean())
    assert np.mean(gains) < 0


def test_few_rated_rows_predict_no_rating() -> None:
    fitted = cross_fit(np.arange(7.0), np.arange(7.0), np.arange(7))
    assert np.isnan(fitted).all(), "two rows in the right order would come out as wrong as can be"


def test_filters_know_texts_and_ratings_by_the_names_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("Satz 1,Satz 2,Kriterium,Wert\na b,c d,der Ton,ja\ne f,g h,das Anliegen,nein\n", encoding="utf-8")
    roles = {"sentence1": "Satz 1", "sentence2": "Satz 2", "condition": "Kriterium", "label": "Wert"}
    dataset = table_dataset(read_pairs(path, columns=roles, labels={"ja": 5, "nein": 1}), path.name)
    study = make_study(dataset, judge(dataset, "m", np.arange(2.0)))
    assert select('Kriterium == "der ton" and Wert == "ja" and "a" in satz_1', study.named).tolist() == [True, False]
    assert 'one has "der Ton"' in explain_nothing('Kriterium == "der Tom"', study.named)
    with pytest.raises(DataError, match='rating >= 4 and "dog" in sentence1'):
        select("Wert >", study.named)
    assert select('"E F"', study.named).tolist() == [False, True]


def test_rows_of_one_pair_share_a_fold_and_resampled_errors_surround_the_mean() -> None:
    study = toy_study()
    fitted = cross_fit(np.where(np.arange(20) < 10, 0.0, 1.0), np.repeat([1.0, 5.0], 10), np.repeat(np.arange(10), 2))
    assert fitted.tolist() == [1.0] * 10 + [5.0] * 10
    means = study.refits(0, resamples=100, seed=0).means(np.arange(240))
    low, high = np.quantile(means["error"], [0.01, 0.99])
    assert low < np.abs(study.first.error).mean() < high
    assert study.refits(0, resamples=100, seed=0) is study.refits(0, resamples=100, seed=0)
