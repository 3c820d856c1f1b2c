"""Put the scores of any model on the scale of the ratings, so that errors of different models can be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

BINS = 10
"""Points of a calibration curve, each with as many rows as the others."""


@dataclass(frozen=True)
class Calibration:
    """The rating that a score stands for: the best fit that never falls as the score grows.

    A model that follows people closely gives a steep curve; one that does not gives a flat line at the mean rating,
    because its scores say nothing.

    Attributes:
        scores: (k,) knots, ascending.
        ratings: (k,) mean rating at each knot, ascending.
    """

    scores: np.ndarray
    ratings: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Give ratings for scores: linear between knots, constant outside; NaN for scores that are not finite."""
        result = np.full(len(scores), np.nan)
        finite = np.isfinite(scores)
        if len(self.scores):
            result[finite] = np.interp(np.asarray(scores)[finite], self.scores, self.ratings)
        return result


@dataclass(frozen=True)
class CurvePoint:
    """Rows whose scores lie next to each other.

    Attributes:
        score: Their mean score.
        rating: Their mean rating, 1 to 5.
        error: Standard error of that mean.
        n: How many.
    """

    score: float
    rating: float
    error: float
    n: int


def fit_calibration(scores: np.ndarray, gold: np.ndarray) -> Calibration:
    """Fit the isotonic regression of rating on score.

    Args:
        scores: (p,), in any range; rows that are not finite are left out.
        gold: (p,) ratings, NaN where there is none.

    Source:
        Pool adjacent violators: Barlow et al. 1972; scipy.optimize.isotonic_regression.
    """
    used = np.isfinite(scores) & np.isfinite(gold)
    if not used.any():
        return Calibration(np.zeros(0), np.zeros(0))
    # Equal scores must get one rating, whatever the order of the rows.
    knots, place = np.unique(scores[used], return_inverse=True)
    counts = np.bincount(place)
    means = np.bincount(place, weights=gold[used]) / counts
    return Calibration(knots, isotonic_regression(means, weights=counts).x)


def calibration_curve(scores: np.ndarray, gold: np.ndarray, *, bins: int = BINS) -> tuple[CurvePoint, ...]:
    """Give the mean rating of rows with neighbouring scores, `bins` groups of equal size.

    Args:
        scores: (p,).
        gold: (p,), NaN where there is none.
        bins: Number of groups; fewer if there are fewer rows.
    """
    used = np.flatnonzero(np.isfinite(scores) & np.isfinite(gold))
    order = used[np.argsort(scores[used], kind="stable")]
    points = []
    for rows in np.array_split(order, min(bins, len(order)) or 1):
        if len(rows):
            spread = float(gold[rows].std(ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else 0.0
            points.append(CurvePoint(float(scores[rows].mean()), float(gold[rows].mean()), spread, len(rows)))
    return tuple(points)


def confusion(gold: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """Count rows by rating and by what the score stands for, both rounded: (5, 5) int64, ratings in rows."""
    used = np.isfinite(gold) & np.isfinite(fitted)
    # Halves go up, as people round; numpy would send 2.5 and 3.5 to even levels.
    levels = [np.clip(np.floor(values[used] + 0.5), 1, 5).astype(np.int64) - 1 for values in (gold, fitted)]
    return np.bincount(levels[0] * 5 + levels[1], minlength=25).reshape(5, 5)
