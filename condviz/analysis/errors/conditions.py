"""Which conditions a model handles worst, and whether its scores follow the condition at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from condviz.analysis.errors.study import Judged, Study


@dataclass(frozen=True)
class Group:
    """Rows with one condition (or one value of another column of texts).

    Attributes:
        value: The condition as written most often.
        n: Rated rows.
        error: Mean absolute error per model, in steps of the rating.
        spread: Half of the 95 % interval of `error` (Student's t).
        bias: Mean error per model: positive where it finds pairs too similar.
        wrong: Share of items in the wrong order per model; NaN where no row is part of an item with two ratings.
    """

    value: str
    n: int
    error: tuple[float, ...]
    spread: tuple[float, ...]
    bias: tuple[float, ...]
    wrong: tuple[float, ...]


@dataclass(frozen=True)
class Blindness:
    """How much of the variance of the scores comes from the condition; shares in [0, 1].

    Attributes:
        model: Its name.
        within: Of the scores of items, the share that lies between the two conditions of a pair. 0: the score is the
            same whatever is asked.
        within_gold: The same share of the ratings: what a perfect model would have.
        wording: Share of the variance of all scores that the wording of the condition alone explains, whatever the
            sentences are; corrected for the number of wordings (epsilon squared), so that chance gives 0. What a model
            guesses from the question.
        wording_gold: The same share of the ratings.
        items: How many items `within` rests on.

    Each is None where it is not defined.
    """

    model: str
    within: float | None
    within_gold: float | None
    wording: float | None
    wording_gold: float | None
    items: int


def worst_conditions(
    study: Study, *, column: str = "condition", least: int = 5, mask: np.ndarray | None = None
) -> list[Group]:
    """List conditions by the lower end of the interval of the first model's mean absolute error, the worst first.

    So a condition is not the worst because of a few unlucky rows.

    Args:
        study: Rows and models.
        column: A column of texts: "condition", "aspect" or one of the file.
        least: Rarer values are left out.
        mask: (p,) bool, these rows only; None for all.
    """
    rows = np.flatnonzero(study.rated & (True if mask is None else mask) & np.isfinite(study.first.error))
    values = study.columns[column][rows]
    if not len(rows):
        return []
    folded = np.array([str(value).casefold() for value in values])
    _, first, place = np.unique(folded, return_index=True, return_inverse=True)
    counts = np.bincount(place)

    def means(numbers: np.ndarray) -> np.ndarray:
        known = np.isfinite(numbers)
        with np.errstate(invalid="ignore"):
            return np.bincount(place, np.where(known, numbers, 0)) / np.bincount(place, known)

    def judge(judged: Judged) -> tuple[np.ndarray, ...]:
        error = np.abs(judged.error[rows])
        mean = means(error)
        spread = np.sqrt(means((error - mean[place]) ** 2) / np.maximum(counts - 1, 1)) * t.ppf(0.975, counts - 1)
        return mean, spread, means(judged.error[rows]), means(1 - judged.right[rows])

    judged = [judge(one) for one in study.judged]
    groups = [
        Group(str(values[first[i]]), int(counts[i]), *(tuple(float(j[part][i]) for j in judged) for part in range(4)))
        for i in range(len(counts))
        if counts[i] >= least
    ]
    return sorted(groups, key=lambda group: (group.spread[0] - group.error[0], group.value))


def check_blindness(study: Study, judged: Judged) -> Blindness:
    """Ask whether scores change with the condition, and whether the condition's wording alone decides them."""
    items = study.dataset.items
    gold = study.columns["gold"]
    rated = np.isfinite(gold[items]).all(axis=1) & np.isfinite(judged.scores[items]).all(axis=1)
    used = items[rated] if rated.any() else items
    return Blindness(
        judged.model,
        within=_within(judged.scores, used),
        within_gold=_within(gold, items[rated]),
        wording=_explained(judged.scores, study.columns["condition"]),
        wording_gold=_explained(gold, study.columns["condition"]),
        items=len(used),
    )


def _within(values: np.ndarray, items: np.ndarray) -> float | None:
    """Share of the sum of squares that lies inside the pairs."""
    if len(items) < 2:
        return None
    chosen = values[items]
    whole = ((chosen - chosen.mean()) ** 2).sum()
    return float(((chosen - chosen.mean(axis=1, keepdims=True)) ** 2).sum() / whole) if whole > 0 else None


def _explained(values: np.ndarray, conditions: Sequence[str]) -> float | None:
    """Epsilon squared of a one-way analysis of variance, not below 0."""
    known = np.isfinite(values)
    used = values[known]
    _, place = np.unique([str(c).casefold() for c in np.asarray(conditions)[known]], return_inverse=True)
    if not len(used):
        return None
    counts = np.bincount(place)
    n, k = len(used), len(counts)
    whole = ((used - used.mean()) ** 2).sum()
    if k < 2 or n <= k or whole == 0:
        return None
    means = np.bincount(place, used) / counts
    inside = ((used - means[place]) ** 2).sum()
    return float(max(0.0, 1 - (inside / (n - k)) / (whole / (n - 1))))
