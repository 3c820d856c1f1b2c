"""Point estimates: how well the scores of a model agree with ratings. Loads no torch.

Correlations as in C-STS (Deshpande et al. 2023, arXiv:2305.15093), pair accuracy as in CASE (equations 6 to 9).
Intervals are made in `condviz.evaluation.agreement`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from condviz.data.texts import fold
from condviz.errors import DataError
from condviz.types import Record, Texts

LEVEL = 0.95
"""Of every interval."""
MOST_CONDITIONS = 60
"""Of one sentence pair, that are compared with each other: 1,770 pairs."""
Z = 1.959963984540054
"""Standard normal quantile of (1 + LEVEL) / 2."""


@dataclass(frozen=True)
class Metric(Record):
    """One figure with its 95 % interval, in the unit in which it is printed.

    Correlations and shares are times 100, from -100 or 0 to 100. Errors are in steps of the rating. The same type and
    the same unit everywhere: commands, API, page, stored scores.
    """

    value: float | None
    """None where it is not defined."""
    low: float | None = None
    high: float | None = None
    """95 % interval; None without resamples, or from too few sentence pairs."""
    n: int | None = None
    """What it rests on: rows, or sentence pairs for pair accuracy; None where that is not recorded."""
    reason: str = ""
    """Why `value` is None; otherwise ""."""


@dataclass(frozen=True)
class PairAccuracy:
    """How often the condition with the higher rating gets the higher similarity, for one sentence pair at a time.

    The three shares are None where they would divide by zero.
    """

    pairs: int
    """Pairs of rated conditions of one sentence pair."""
    equal_ratings: int
    """Those whose two ratings are equal."""
    equal_similarities: int
    """Those whose two similarities are equal."""
    correct: int
    """Those where the higher rating has the strictly higher similarity."""
    ties_wrong: float | None
    """Correct / pairs, in [0, 1]: equal ratings can never be right. What CASE most likely prints."""
    ties_excluded: float | None
    """Correct / pairs with different ratings, in [0, 1]."""
    ties_excluded_half: float | None
    """As ties_excluded, but equal similarities count one half."""


def rank(values: ArrayLike) -> np.ndarray:
    """Return the ranks of (p,) finite values from 1, float64; equal values share their mean rank."""
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def spearman(ratings: ArrayLike, predictions: ArrayLike) -> float | None:
    """Compute the rank correlation of two (p,) arrays, in [-1, 1], or None: see `why_undefined`. Ties share a rank."""
    return None if why_undefined(ratings, predictions) else pearson(rank(ratings), rank(predictions))


def pearson(ratings: ArrayLike, predictions: ArrayLike) -> float | None:
    """Compute the linear correlation of two (p,) arrays, in [-1, 1], or None as in `spearman`."""
    if why_undefined(ratings, predictions):
        return None
    return float(np.corrcoef(np.asarray(ratings), np.asarray(predictions))[0, 1])


def why_undefined(ratings: ArrayLike, predictions: ArrayLike) -> str:
    """Return why a correlation is undefined (fewer than two rows, a constant, non-finite values), or ""."""
    ratings, predictions = _parallel(ratings, predictions)
    if len(ratings) < 2:
        return f"at least 2 rated rows are needed, got {len(ratings)}"
    if not np.isfinite(ratings).all():
        return "some ratings are not finite"
    if infinite := int((~np.isfinite(predictions)).sum()):
        return f"{infinite} of {len(predictions)} scores are not finite"
    if np.ptp(ratings) == 0:
        return f"all ratings are {ratings[0]:g}"
    if np.ptp(predictions) == 0:
        return f"all scores are {predictions[0]:.6g}"
    return ""


def spearman_ceiling(ratings: ArrayLike) -> float | None:
    """Compute the highest Spearman that scores without ties can reach on (p,) ratings, in [0, 1].

    Ratings that repeat cap it: two ratings in equal numbers at 0.866. None for fewer than two different ratings.
    """
    counts = np.unique(np.asarray(ratings), return_counts=True)[1].astype(float)
    n = counts.sum()
    return None if len(counts) < 2 else float(np.sqrt(1 - (counts**3 - counts).sum() / (n**3 - n)))


def pair_accuracy(
    ratings_a: ArrayLike, ratings_b: ArrayLike, similarities_a: ArrayLike, similarities_b: ArrayLike
) -> PairAccuracy:
    """Count for how many sentence pairs the model orders the two conditions a and b as the ratings do.

    Args:
        ratings_a, ratings_b: (q,) ratings of q sentence pairs under their first and second condition.
        similarities_a, similarities_b: (q,) scores under either; non-finite ones are never right.

    Source:
        CASE, equations 6 to 9. The paper does not say how ties count, so both rules are computed.
    """
    ratings_a, ratings_b = _parallel(ratings_a, ratings_b)
    similarities_a, similarities_b = _parallel(similarities_a, similarities_b)
    _parallel(ratings_a, similarities_a)
    usable = np.isfinite(similarities_a) & np.isfinite(similarities_b)
    order = 1.0 * (similarities_a > similarities_b) - (similarities_a < similarities_b)
    wanted, found = np.sign(ratings_a - ratings_b), np.where(usable, order, np.nan)
    pairs, equal_ratings = len(wanted), int((wanted == 0).sum())
    different = pairs - equal_ratings
    correct = int(((wanted == found) & (wanted != 0)).sum())
    undecided = int(((found == 0) & (wanted != 0)).sum())
    return PairAccuracy(
        pairs=pairs,
        equal_ratings=equal_ratings,
        equal_similarities=int((found == 0).sum()),
        correct=correct,
        ties_wrong=correct / pairs if pairs else None,
        ties_excluded=correct / different if different else None,
        ties_excluded_half=(correct + undecided / 2) / different if different else None,
    )


def condition_pairs(pairs: Sequence[Texts]) -> np.ndarray:
    """Find all pairs of different conditions under which one sentence pair is rated.

    Returns:
        (q, 2) int64: two rows with the same sentences, those of one sentence pair together. Two conditions make one
        pair, as in C-STS; three make three. Of a sentence pair under more than `MOST_CONDITIONS` the first ones count.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        groups[pair.sentence1, pair.sentence2].append(index)
    folded = [fold(pair.condition) for pair in pairs]
    twos = (two for rows in groups.values() for two in combinations(rows[:MOST_CONDITIONS], 2))
    return np.array([two for two in twos if folded[two[0]] != folded[two[1]]], dtype=np.int64).reshape(-1, 2)


def is_seen(conditions: Iterable[str], training: Collection[str]) -> np.ndarray:
    """Return which of p conditions are among those of a training, (p,) bool: the one definition of "seen"."""
    known = {fold(condition) for condition in training}
    return np.array([fold(condition) in known for condition in conditions], dtype=bool)


def wilson(share: float, n: float) -> tuple[float, float]:
    """Compute Wilson's 95 % interval of a share in [0, 1]; unlike resampling it keeps its coverage near 0 and 1.

    Args:
        share: The share.
        n: How many it is of; may be an effective number, smaller than the count, for observations that hang together.

    Source:
        Wilson 1927; with an effective number: Dean and Pagano 2015 (doi:10.1093/jssam/smv024).
    """
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    # At the ends rounding would leave 1e-17 where the formula has 0.
    return float(middle - half) if share > 0 else 0.0, float(middle + half) if share < 1 else 1.0


def _parallel(first: ArrayLike, second: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(f"Two lists of equal length are needed, got shapes {first.shape} and {second.shape}.")
    return first, second
