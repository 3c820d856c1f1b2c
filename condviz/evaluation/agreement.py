"""Agreement of scores and ratings on some of the rows, with 95 % intervals: the one place where they are made.

Rows of one sentence pair are not independent, and neither are rows that ask the same thing. So sentence pairs are
resampled with all their rows, and where aspects (or conditions) repeat, these are resampled as well; the wider of the
two intervals is taken. Shares have Wilson's interval on the effective number of sentence pairs that the resamples
imply, because percentiles of resamples collapse near 0 and 100 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condviz.errors import ConfigError
from condviz.evaluation.bootstrap import Sample, resample
from condviz.evaluation.metrics import (
    LEVEL,
    Metric,
    PairAccuracy,
    pair_accuracy,
    pearson,
    spearman,
    why_undefined,
    wilson,
)

RESAMPLES = 10_000
"""Of every command; the page takes fewer for large tables."""
MIN_CLUSTERS = 10
"""Fewer sentence pairs, or aspects, cannot be resampled honestly."""
NO_ITEM = "no sentence pair is rated under exactly two conditions"
ALL_EQUAL = "both ratings are equal in every sentence pair"


@dataclass(frozen=True)
class Rows:
    """Rated rows, and what ties them together.

    Attributes:
        gold: (n,) ratings.
        clusters: (n,) int, a number for each sentence pair.
        items: (q, 2) int, the two rows of each sentence pair that is rated under two conditions.
        aspects: (n,) int, a number for what each row asks about; None where that is not known.
    """

    gold: np.ndarray
    clusters: np.ndarray
    items: np.ndarray
    aspects: np.ndarray | None = None

    def clusterings(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return the numbers by which some of the rows are to be resampled: sentence pairs, then aspects."""
        usable = [self.clusters[rows]] if len(np.unique(self.clusters[rows])) >= MIN_CLUSTERS else []
        if usable and self.aspects is not None:
            aspects = self.aspects[rows]
            if MIN_CLUSTERS <= len(np.unique(aspects)) < len(aspects):
                usable.append(aspects)
        return usable


@dataclass(frozen=True)
class Agreement:
    """The figures of one model on some of the rows; correlations and shares times 100.

    Attributes:
        n: Rated rows.
        items: Sentence pairs with two rated conditions.
        spearman, pearson: Correlation of score and rating.
        ties_wrong: Pair accuracy: sentence pairs in the right order, equal ratings counted as wrong (CASE).
        ties_excluded: The same, sentence pairs with equal ratings left out.
        accuracy: The counts behind both.
    """

    n: int
    items: int
    spearman: Metric
    pearson: Metric
    ties_wrong: Metric
    ties_excluded: Metric
    accuracy: PairAccuracy


def measure(
    rows: Rows,
    scores: Sequence[np.ndarray],
    *,
    chosen: np.ndarray | None = None,
    items: np.ndarray | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[list[Agreement], list[list[dict[str, np.ndarray]]]]:
    """Compare the scores of M models with the ratings.

    Args:
        rows: p rows; unrated ones may be among them, if `chosen` leaves them out.
        scores: M arrays (p,), higher is more similar.
        chosen: (n,) positions of the rows to use; None takes all.
        items: (q, 2) positions of the items to use, each with a row in `chosen`; None takes those with both rows there.
        resamples: 0 for no intervals.
        seed: Of the resamples, which are the same for every model.

    Returns:
        M figures; and per clustering (sentence pairs first, then aspects) and model the resampled figures, for
        intervals of differences.

    Raises:
        ConfigError: If `resamples` is negative.
    """
    if resamples < 0:
        raise ConfigError(f"resamples must be 0 (no intervals) or more, got {resamples}. {RESAMPLES:,} is usual.")
    chosen = np.arange(len(rows.gold)) if chosen is None else chosen
    if items is None:
        items = rows.items[np.isin(rows.items, chosen).all(axis=1)]
    finite = all(np.isfinite(one[chosen]).all() for one in scores)
    clusterings = rows.clusterings(chosen) if resamples and finite else []
    samples = [_sample(rows, scores, chosen, items, clusters) for clusters in clusterings]
    drawn = [resample(sample, resamples=resamples, seed=seed) for sample in samples]
    found = [
        _agreement(rows.gold, one, chosen, items, [by[index] for by in drawn], intervals=resamples > 0)
        for index, one in enumerate(scores)
    ]
    return found, drawn


def order_right(gold: np.ndarray, scores: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return per row whether its item is in the right order: (p,) 1, 0, or NaN (no item, equal or missing ratings)."""
    right = np.full(len(gold), np.nan)
    first, second = items.T
    wanted = np.sign(gold[first] - gold[second])
    known = np.isfinite(wanted) & (wanted != 0)
    verdict = (np.sign(scores[first] - scores[second]) == wanted)[known]
    right[first[known]] = right[second[known]] = verdict
    return right


def interval(drawn: Sequence[np.ndarray]) -> tuple[float | None, float | None]:
    """Return the widest of the 95 % percentile intervals of some sets of resampled values; None where there is none."""
    ends = [np.quantile(one, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) for one in map(_defined, drawn) if len(one)]
    if not ends:
        return None, None
    low, high = max(ends, key=lambda pair: pair[1] - pair[0])
    return float(low), float(high)


def share_interval(share: float, n: int, drawn: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return Wilson's interval of a share, on the effective number that the spread of its resamples implies."""
    variance = max((float(one.var()) for one in map(_defined, drawn) if len(one)), default=0.0)
    alone = share * (1 - share) / n
    return wilson(share, n * min(1.0, alone / variance) if variance > 0 and alone > 0 else n)


def _defined(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def _sample(
    rows: Rows, scores: Sequence[np.ndarray], chosen: np.ndarray, items: np.ndarray, clusters: np.ndarray
) -> Sample:
    item = np.full(len(rows.gold), -1)
    item[items] = np.arange(len(items))[:, None]
    right = [order_right(rows.gold, one, items)[chosen] for one in scores]
    return Sample(rows.gold[chosen], clusters, item[chosen], [one[chosen].astype(float) for one in scores], right)


def _agreement(
    gold: np.ndarray,
    scores: np.ndarray,
    chosen: np.ndarray,
    items: np.ndarray,
    drawn: Sequence[dict[str, np.ndarray]],
    *,
    intervals: bool,
) -> Agreement:
    ratings, values = gold[chosen], scores[chosen].astype(np.float64)
    first, second = items.T
    counts = pair_accuracy(gold[first], gold[second], *(scores[side].astype(np.float64) for side in (first, second)))
    reason = why_undefined(ratings, values)

    def correlation(name: str, value: float | None) -> Metric:
        if value is None:
            return Metric(None, n=len(chosen), reason=reason)
        low, high = interval([by[name] for by in drawn])
        return Metric(100 * value, _hundredfold(low), _hundredfold(high), len(chosen))

    def share(name: str, value: float | None, n: int) -> Metric:
        if value is None:
            return Metric(None, n=n, reason=ALL_EQUAL if counts.pairs else NO_ITEM)
        low, high = share_interval(value, n, [by[name] for by in drawn]) if intervals else (None, None)
        return Metric(100 * value, _hundredfold(low), _hundredfold(high), n)

    return Agreement(
        n=len(chosen),
        items=counts.pairs,
        spearman=correlation("spearman", spearman(ratings, values)),
        pearson=correlation("pearson", pearson(ratings, values)),
        ties_wrong=share("ties_wrong", counts.ties_wrong, counts.pairs),
        ties_excluded=share("ties_excluded", counts.ties_excluded, counts.pairs - counts.equal_ratings),
        accuracy=counts,
    )


def _hundredfold(value: float | None) -> float | None:
    return None if value is None else 100 * value
