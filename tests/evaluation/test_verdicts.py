"""What a headline may claim: at most one in twenty claims of an effect where there is none, and effects are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from condviz.evaluation.metrics import (
    Verdict,
    between,
    counted,
    judge,
    judge_correlation,
    judge_drawn,
    judge_mean,
    judge_rise,
    judge_share,
    spearman,
)

DRAWS = 1_000
Draw = Callable[[np.random.Generator], Verdict]


def claims(draw: Draw, draws: int = DRAWS) -> float:
    rng = np.random.default_rng(0)
    return float(np.mean([draw(rng).sure for _ in range(draws)]))


def shares(n: int) -> Draw:
    return lambda rng: judge_share(rng.random(n) < 0.5)


def in_threes(n: int) -> Draw:
    """Outcomes of which three and three are nearly the same."""
    clusters = np.repeat(np.arange(n), 3)
    return lambda rng: judge_share(
        np.where(rng.random(3 * n) < 0.9, np.repeat(rng.random(n) < 0.5, 3), rng.random(3 * n) < 0.5), clusters=clusters
    )


def rises(n: int, *, correlation: bool) -> Draw:
    def draw(rng: np.random.Generator) -> Verdict:
        if not correlation:
            return judge_rise(*(rng.random((2, n)) < 0.5).mean(axis=1), n)
        ratings = rng.integers(1, 6, n)
        return judge_rise(*(spearman(ratings, rng.random(n)) for _ in range(2)), n, correlation=True)

    return draw


def correlations(n: int) -> Draw:
    return lambda rng: judge_correlation(spearman(rng.integers(1, 6, n), rng.random(n)) or 0.0, n)


def best_of_ten(rng: np.random.Generator) -> Verdict:
    found = [judge_mean(rng.standard_normal(12), tries=10) for _ in range(10)]
    return max(found, key=lambda one: (one.sure, one.value))


NULLS: dict[str, Draw] = {
    **{f"share of {n}": shares(n) for n in (1, 3, 6, 12, 60, 400)},
    **{f"{3 * n} outcomes in threes": in_threes(n) for n in (12, 60)},
    **{f"mean of {n}": lambda rng, n=n: judge_mean(rng.standard_normal(n)) for n in (3, 6, 60)},
    "best of ten": best_of_ten,
    **{f"rise of a share of {n}": rises(n, correlation=False) for n in (4, 12, 60, 400)},
    **{f"rise of a correlation of {n}": rises(n, correlation=True) for n in (8, 30, 200)},
    **{
        f"correlation of {n}": lambda rng, n=n: judge_correlation(
            spearman(rng.integers(1, 6, n), rng.random(n)) or 0, n
        )
        for n in (5, 12, 60)
    },
    "figure of shuffled values": lambda rng: judge_drawn(rng.standard_normal(), rng.standard_normal(400), 50),
}


@pytest.mark.parametrize("name", NULLS)
def test_at_most_one_claim_in_twenty_where_there_is_no_effect(name: str) -> None:
    assert claims(NULLS[name]) <= 0.05


def test_effects_are_found() -> None:
    assert judge_share([1] * 45 + [0] * 15).says == "more"
    assert judge_share([1] * 5 + [0] * 55).says == "less"
    assert judge_mean(np.linspace(0.5, 1.5, 20)).says == "more"
    assert judge_mean([-1.0] * 8).says == "less"
    assert judge_correlation(0.8, 60).says == "more"
    assert judge_rise(0.5, 0.8, 100).says == "more"
    assert judge_rise(0.6, 0.1, 100, correlation=True).says == "less"
    assert judge_drawn(5.0, np.linspace(-1, 1, 400), 50).says == "more"


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_so_few_say_nothing_whatever_they_are(n: int) -> None:
    assert judge_share([1] * n).says == "few"
    assert judge_mean([1.0] * min(n, 4)).says == "few"
    assert judge_correlation(1.0, n).says == "few"
    assert judge_rise(0.0, 1.0, n).says == "few"
    assert judge(1.0, None, None, n).says == "few"


def test_an_interval_that_covers_chance_claims_nothing_however_small_its_p() -> None:
    assert judge(0.6, 0.5, 0.7, 30, p=0.001, chance=0.5).says == "none"
    assert judge(0.6, 0.51, 0.7, 30, p=0.03, chance=0.5, tries=2).says == "none"
    assert judge(0.6, 0.51, 0.7, 30, p=0.03, chance=0.5).says == "more"


def test_no_percentage_of_a_few() -> None:
    assert (counted(0.75, 12), counted(0.75, 29), counted(0.75, 60)) == ("9 of 12", "22 of 29", "75\N{NO-BREAK SPACE}%")
    assert between(-4.2, 12.1) == "\N{MINUS SIGN}4 to 12"
    assert between(-0.004, 0.12, 2) == "0.00 to 0.12"
