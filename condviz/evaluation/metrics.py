"""Figures: how well the scores of a model agree with ratings, and what that allows to say. Loads no torch.

Correlations as in C-STS (Deshpande et al. 2023, arXiv:2305.15093), pair accuracy as in CASE (equations 6 to 9).
Intervals are made in `condviz.evaluation.agreement`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

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

    The number n may be smaller than the count, an effective one, for observations that hang together.

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


# ---- what figures allow to say ---------------------------------------------------------------------------------------
# A verdict is "more" or "less" only if its p is below `ALPHA`, divided by how many figures were looked at, and its 95 %
# interval leaves out what chance gives. "few" means that no outcome of so few could have told. Headlines ask here.

ALPHA = 0.04
"""Below .05, so that also of a thousand draws without any effect at most one in twenty claims one."""
COUNTED = 30
"""Of fewer, a headline names how many of how many, and no percentage."""
LEAST = 5
"""Fewer means, or sentence pairs, cannot tell how far they scatter."""
LEAST_CORRELATED = 8
"""Fewer rows correlate by .7 and more by chance."""


@dataclass(frozen=True)
class Verdict(Record):
    """A figure, and what it allows to say."""

    says: Literal["more", "less", "none", "few"]
    """Against chance, or what it is compared with; "none": the interval covers both; "few": too few rows to tell."""
    value: float
    low: float | None
    high: float | None
    """Its 95 % interval; None where there are too few for one."""
    n: int

    @property
    def sure(self) -> bool:
        """Whether it says "more" or "less"."""
        return self.says in ("more", "less")


def judge(
    value: float, low: float | None, high: float | None, n: int, *, p: float = 0.0, chance: float = 0.0, tries: int = 1
) -> Verdict:
    """Judge a figure that rests on n by its 95 % interval, None where there are too few, and by its two-sided p.

    It is held against what it is by `chance`, without any effect; `tries` figures were looked at to find this one.
    """
    if low is None or high is None or not np.isfinite([value, low, high]).all():
        return Verdict("few", float(value), None, None, n)
    sure = p * tries < ALPHA and not low <= chance <= high
    return Verdict(("more" if value > chance else "less") if sure else "none", float(value), float(low), float(high), n)


def judge_share(hits: ArrayLike, *, clusters: ArrayLike | None = None) -> Verdict:
    """Judge the share of (n,) outcomes of 0 or 1 against one half, by the exact binomial test.

    Outcomes of one cluster, for instance of a sentence pair under several conditions, hang together: with `clusters`,
    (n,), the test is that of their means (`judge_mean`), and the interval is Wilson's on the effective number.
    """
    hits = np.asarray(hits, dtype=float)
    n = len(hits)
    groups = n if clusters is None else len(np.unique(clusters))
    if n == 0 or 2 * 0.5**groups >= ALPHA:
        return Verdict("few", float(hits.mean()) if n else np.nan, None, None, n)
    share, effective = float(hits.mean()), float(n)
    if groups == n:
        k = round(hits.sum())
        p = min(1.0, 2 * min(special.bdtr(k, n, 0.5), special.bdtrc(k - 1, n, 0.5) if k else 1.0))
    else:
        error, p = error_and_p(hits - 0.5, np.asarray(clusters))
        if error > 0:
            effective = min(effective, share * (1 - share) / error**2)
        effective = max(1.0, effective) if error > 0 else float(groups)
    return judge(share, *wilson(share, effective), n, p=float(p), chance=0.5)


def judge_mean(values: ArrayLike, *, clusters: ArrayLike | None = None, tries: int = 1) -> Verdict:
    """Judge the mean of (n,) values against 0 by Student's t; values of one cluster hang together."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    groups = np.arange(n) if clusters is None else np.asarray(clusters)
    count = len(np.unique(groups))
    if count < LEAST:
        return Verdict("few", float(values.mean()) if n else np.nan, None, None, n)
    error, p = error_and_p(values, groups)
    reach = float(special.stdtrit(count - 1, 0.975)) * error
    mean = float(values.mean())
    return judge(mean, mean - reach, mean + reach, n, p=p, tries=tries)


def judge_correlation(value: float, n: int) -> Verdict:
    """Judge a rank correlation in [-1, 1] of n independent rows by Student's t.

    Source:
        The interval: Bonett and Wright 2000 (doi:10.1007/BF02294183).
    """
    if n < LEAST_CORRELATED:
        return Verdict("few", value, None, None, n)
    inside = float(np.clip(value, -0.9999, 0.9999))
    t = inside * np.sqrt((n - 2) / (1 - inside**2))
    reach = Z * np.sqrt((1 + inside**2 / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(inside) + np.array([-reach, reach]))
    return judge(value, low, high, n, p=float(2 * special.stdtr(n - 2, -abs(t))))


def judge_rise(before: float, after: float, n: int, *, correlation: bool = False, tries: int = 1) -> Verdict:
    """Judge how far a share, or a correlation, has risen on the same n rows whose single outcomes are not known.

    Both count as independent, which makes the interval wider than it need be where they go together.
    """
    value, step = after - before, 0.0
    if n < LEAST_CORRELATED:
        return Verdict("few", value, None, None, n)
    if correlation:
        middle = (before + after) / 2
        error = (1 - middle**2) * np.sqrt(2 * (1 + middle**2 / 2) / (n - 3))
    else:
        # One more outcome of either kind, as no spread would leave no doubt (Agresti and Caffo 2000).
        shares = [(one * n + 1) / (n + 2) for one in (before, after)]
        error, step = np.sqrt(sum(share * (1 - share) / (n + 2) for share in shares)), 1 / n
    p = float(2 * special.ndtr(-max(0.0, abs(value) - step) / error))
    reach = Z * error + step
    return judge(value, value - reach, value + reach, n, p=p, tries=tries)


def judge_drawn(value: float, drawn: ArrayLike, n: int, *, error: float = 0.0) -> Verdict:
    """Judge a figure against what it is in (r,) draws in which there is no effect, for instance with shuffled values.

    The interval has the spread of the draws, or the standard `error` of the figure where that is larger.
    """
    drawn = np.asarray(drawn, dtype=float)
    chance = float(drawn.mean())
    p = (1 + int((np.abs(drawn - chance) >= abs(value - chance) - 1e-12).sum())) / (len(drawn) + 1)
    reach = Z * max(error, float(drawn.std()))
    return judge(value, value - reach, value + reach, n, p=p, chance=chance)


def judge_gap(first: Metric, second: Metric, *, tries: int = 1) -> Verdict:
    """Judge how far one figure is above another, both with intervals, as if they were independent."""
    known = [
        one for one in (first.value, first.low, first.high, second.value, second.low, second.high) if one is not None
    ]
    if len(known) < 6:
        return Verdict("few", np.nan, None, None, first.n or 0)
    value, error = known[0] - known[3], np.hypot(known[2] - known[1], known[5] - known[4]) / (2 * Z)
    p = float(2 * special.ndtr(-abs(value) / error)) if error > 0 else float(value == 0)
    return judge(value, value - Z * error, value + Z * error, first.n or 0, p=p, tries=tries)


def counted(share: float, n: int) -> str:
    """Return a share in [0, 1] of n as headlines name it: "9 of 12" of a few, else "75 %"."""
    return f"{round(share * n)} of {n}" if n < COUNTED else f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def between(low: float, high: float, digits: int = 0) -> str:
    """Return an interval as headlines name it: "62 to 84", with a real minus."""
    ends = (f"{round(end, digits) + 0.0:.{digits}f}".replace("-", "\N{MINUS SIGN}") for end in (low, high))
    return " to ".join(ends)


def error_and_p(values: np.ndarray, clusters: np.ndarray) -> tuple[float, float]:
    """Return the standard error of a mean over clusters, and the two-sided p of a mean of 0."""
    _, place = np.unique(clusters, return_inverse=True)
    sums = np.bincount(place, values - values.mean())
    groups = len(sums)
    if groups < 2:
        return 0.0, 1.0
    error = float(np.sqrt((sums**2).sum() * groups / (groups - 1)) / len(values))
    if error < 1e-12:  # all alike: as many signs that agree
        return 0.0, float(min(1.0, 2 * 0.5**groups)) if values.mean() else 1.0
    return error, float(2 * special.stdtr(groups - 1, -abs(values.mean()) / error))
