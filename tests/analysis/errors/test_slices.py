"""The slice finder: planted faults are found, chance is not, filters mean what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import fisher_exact, ttest_ind

from condviz.analysis.errors.filters import select
from condviz.analysis.errors.slices import SIGNIFICANT, contrast, find_slices
from condviz.analysis.errors.study import judge, make_study
from condviz.errors import ConfigError, DataError
from tests.analysis.errors.toy import toy_dataset, toy_study


def test_planted_faults_are_found_first() -> None:
    study = toy_study()
    over = find_slices(study, "over").slices[0]
    assert '"umbrella" in shared' in over.filter or '"umbrella" in words' in over.filter
    assert over.q < 0.001
    assert over.inside > 0 > over.outside
    first = find_slices(study, "first").slices[0]
    assert "number" in first.filter
    assert first.q < 0.001


def test_under_and_second_are_the_other_side() -> None:
    study = toy_study()
    swapped = make_study(study.dataset, study.second, study.first)
    one, two = find_slices(study, "first").slices[0], find_slices(swapped, "second").slices[0]
    assert one.filter == two.filter
    assert one.effect == pytest.approx(-two.effect)
    assert all(one.effect < 0 for one in find_slices(study, "under").slices)


@pytest.mark.parametrize("target", ["over", "under", "large", "order"])
def test_chance_is_not_found(target: str) -> None:
    data = toy_dataset(150)
    rng = np.random.default_rng(5)
    study = make_study(data, judge(data, "m", data.gold + rng.normal(scale=2, size=len(data.pairs))))
    sure = [one.filter for one in find_slices(study, target).slices if one.q < SIGNIFICANT]
    assert all("gold" in one for one in sure)  # ratings at the ends are further off in any model


@pytest.mark.parametrize("target", ["over", "large", "order", "first"])
def test_every_filter_selects_as_many_rows_as_it_says(target: str) -> None:
    study = toy_study()
    known = np.isfinite(study.first.right) if target == "order" else np.ones(240, bool)
    found = find_slices(study, target)
    assert found.slices
    for one in found.slices:
        assert (select(one.filter, study.columns) & known).sum() == one.n >= found.min_support
        assert 0 < one.p <= one.q <= 1


def test_values_are_the_same_whatever_their_blanks() -> None:
    data = toy_dataset()
    pairs = [
        replace(pair, condition=pair.condition.replace(" ", " " * (1 + i % 3))) for i, pair in enumerate(data.pairs)
    ]
    study = make_study(replace(data, pairs=tuple(pairs)), *toy_study().judged)
    filters = [one.filter for one in find_slices(study, "large").slices]
    assert any(select(one, study.columns).sum() > 60 for one in filters if one.startswith("condition =="))


def test_a_search_can_stay_inside_a_slice() -> None:
    study = toy_study()
    mask = select('aspect == "number"', study.columns)
    assert all(one.n <= mask.sum() for one in find_slices(study, "over", mask=mask).slices)


def test_to_lose_by_less_is_not_to_win() -> None:
    data = toy_dataset()
    rng = np.random.default_rng(4)
    mood = np.array([pair.condition == "the mood" for pair in data.pairs])
    noise = rng.normal(size=len(data.pairs))
    worse = judge(data, "worse", data.gold + np.where(mood, 0.6, 3) * noise)
    study = make_study(data, worse, judge(data, "good", data.gold + 0.1 * noise))
    leads = np.abs(study.second.error) - np.abs(study.first.error)
    assert leads[~mood].mean() < leads[mood].mean() < 0
    assert all(one.inside > 0 for one in find_slices(study, "first").slices)
    assert all(one.inside < 0 for one in find_slices(study, "second").slices)


@pytest.mark.parametrize("target", ["over", "under"])
def test_a_slice_inside_a_slice_is_what_its_target_says(target: str) -> None:
    study = toy_study()
    found = find_slices(study, target, mask=select('not "umbrella" in shared', study.columns)).slices
    assert found
    assert all((one.inside > 0) == (target == "over") for one in found)


def test_all_sure_filters_are_counted_beyond_those_listed() -> None:
    found = find_slices(toy_study(), "over", limit=1)
    assert len(found.slices) == 1
    assert 1 < found.sure < found.tried


def test_contrast_is_welch_where_every_row_is_its_own_pair() -> None:
    rng = np.random.default_rng(0)
    values, mask = rng.normal(size=80), np.arange(80) < 30
    inside, outside, p = contrast(values, mask[None], np.arange(80))
    assert inside[0] == pytest.approx(values[:30].mean())
    assert outside[0] == pytest.approx(values[30:].mean())
    assert p[0] == pytest.approx(ttest_ind(values[:30], values[30:], equal_var=False).pvalue, abs=0.02)


def test_a_small_slice_that_is_all_wrong_has_fishers_p() -> None:
    values = np.r_[np.ones(8), np.tile([0.0, 0.0, 0.0, 1.0], 50)]
    mask = np.arange(208) < 8
    p = contrast(values, mask[None], np.arange(208))[2][0]
    assert p == pytest.approx(2 * fisher_exact([[8, 0], [50, 150]], alternative="greater").pvalue, rel=1e-6)


def test_equal_errors_in_a_small_slice_are_not_taken_for_certainty() -> None:
    rng = np.random.default_rng(0)
    values = np.r_[np.full(8, 1.0), rng.normal(size=200)]
    p = contrast(values, (np.arange(208) < 8)[None], np.arange(208))[2][0]
    assert p > 1e-3


def test_rows_of_one_pair_do_not_count_twice() -> None:
    rng = np.random.default_rng(0)
    values, mask = rng.normal(size=60), np.arange(60) < 30
    _, _, once = contrast(values, mask[None], np.arange(60))
    twice = contrast(np.repeat(values, 2), np.repeat(mask, 2)[None], np.repeat(np.arange(60), 2))[2]
    assert twice[0] == pytest.approx(once[0], rel=1e-6)


def test_impossible_searches_are_refused() -> None:
    study = toy_study(second=False)
    with pytest.raises(ConfigError, match="compares two models"):
        find_slices(study, "first")
    with pytest.raises(DataError, match="Only 10 rows"):
        find_slices(study, "over", mask=np.arange(240) < 10)
