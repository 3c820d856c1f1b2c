"""Agreement of scores and ratings on some of the rows, with 95 % intervals: the one place where they are made.

Rows of one sentence pair are not independent, and neither are rows that ask the same thing or tell of one table. So
sentence pairs are resampled with all their rows, and where aspects (or conditions) or tables repeat, these as well; the
widest of the intervals is taken. Shares have Wilson's interval on the effective number of sentence pairs that the
resamples imply, because percentiles of resamples collapse near 0 and 100 %.

Ten thousand resamples are made at once: each is a vector of counts of clusters, so every figure is a matrix product;
only Spearman needs the ranks anew, which are the running sums of the counts in the order of the scores.

Source: bootstrap over clusters, Efron and Tibshirani 1993, chapters 13 and 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from condviz.errors import check_count
from condviz.evaluation import metrics
from condviz.evaluation.metrics import LEVEL, Metric, PairAccuracy
from condviz.types import Record

RESAMPLES = 10_000
"""Of every command; the page takes fewer for large tables."""
MIN_CLUSTERS = 10
"""Fewer sentence pairs, aspects or tables cannot be resampled honestly."""
NO_ITEM = "no sentence pair is rated under two conditions"
ALL_EQUAL = "the two ratings are always equal"
CHUNK = 2**19
"""Counts held at once: memory stays bounded, and the arrays stay in the cache of the processor."""
FIGURES = ("spearman", "pearson", "ties_wrong", "ties_excluded")
Drawn = dict[str, np.ndarray]
"""Figure -> its value in each resample."""


@dataclass(frozen=True)
class Rows:
    """Rated rows, and what ties them together."""

    gold: np.ndarray
    clusters: np.ndarray
    """(n,) int, a number for each sentence pair."""
    items: np.ndarray
    """(q, 2) int, two rows that rate one sentence pair under different conditions; -1 for one that is not here."""
    aspects: np.ndarray | None = None
    """(n,) int, a number for what each row asks about; None where that is not known."""
    tables: np.ndarray | None = None
    """(n,) int, a number for the table that both sentences of a row are of; None where that is not known."""

    def clusterings(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return the numbers by which some of the rows are to be resampled: sentence pairs, aspects, tables."""
        usable = [self.clusters[rows]]
        if len(np.unique(usable[0])) < MIN_CLUSTERS:
            return []
        others = [kind[rows] for kind in (self.aspects, self.tables) if kind is not None]
        return usable + [kind for kind in others if MIN_CLUSTERS <= len(np.unique(kind)) < len(rows)]


def resample(
    rows: Rows, scores: Sequence[np.ndarray], right: Sequence[np.ndarray], *, resamples: int, seed: int
) -> list[Drawn]:
    """Compute every figure on the same resamples of the clusters for each model, whose scores, (n,), are finite.

    What is `right` is (q,) for each model, from `order_right`; all n rows are rated.

    Returns:
        Per model, for each of `FIGURES`: (resamples,) float64 in [-1, 1], NaN where a figure is not defined.
    """
    _, clusters = np.unique(rows.clusters, return_inverse=True)
    levels, level = np.unique(rows.gold, return_inverse=True)
    groups = int(clusters.max()) + 1
    level_counts = np.zeros((groups, len(levels)), dtype=np.float32)
    np.add.at(level_counts, (clusters, level), 1)
    models = [_Model(rows, *one, clusters, level) for one in zip(scores, right, strict=True)]
    parts: list[list[Drawn]] = [[] for _ in models]
    for counts in draw(groups, len(clusters), resamples=resamples, seed=seed):
        drawn = counts @ level_counts  # the centred mean rank of each level, and the sum of their squares
        total = np.cumsum(drawn, axis=1)
        ranks = total - (drawn - 1) / 2 - (total[:, -1:] + 1) / 2
        variance = np.einsum("bk,bk,bk->b", drawn, ranks, ranks, dtype=np.float64)
        for model, part in zip(models, parts, strict=True):
            part.append(model.figures(counts, ranks, variance))
    return [{name: np.concatenate([chunk[name] for chunk in part]) for name in FIGURES} for part in parts]


def resample_means(values: np.ndarray, clusters: np.ndarray, *, resamples: int, seed: int) -> np.ndarray:
    """Compute the mean of (n,) values in each resample of their clusters: (resamples,) float64."""
    _, place = np.unique(clusters, return_inverse=True)
    sums, sizes = np.bincount(place, values), np.bincount(place).astype(float)
    parts = draw(len(sizes), len(values), resamples=resamples, seed=seed)
    return np.concatenate([(counts @ sums) / (counts @ sizes) for counts in parts])


def draw(groups: int, rows: int, *, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield (c, groups) float32: how often each cluster was drawn, in each of c resamples; c depends on `rows`."""
    rng = np.random.default_rng(seed)
    size = max(1, CHUNK // rows)
    for start in range(0, resamples, size):
        count = min(size, resamples - start)
        drawn = rng.integers(groups, size=(count, groups), dtype=np.uint32)
        drawn = drawn + np.arange(count)[:, None] * groups
        yield np.bincount(drawn.ravel(), minlength=count * groups).reshape(count, groups).astype(np.float32)


class _Model:
    """What stays the same over the resamples of one model."""

    def __init__(
        self, rows: Rows, scores: np.ndarray, right: np.ndarray, clusters: np.ndarray, level: np.ndarray
    ) -> None:
        order = np.argsort(scores, kind="stable")
        self.clusters, ordered = clusters[order], scores[order]
        # The last row of each run of equal scores, and which run a row is in.
        self.ends = np.flatnonzero(np.append(np.diff(ordered) != 0, True))
        self.run = np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=-1))
        self.ties = len(self.ends) < len(ordered)
        self.level = np.zeros((len(order), level.max() + 1), dtype=np.float32)
        self.level[np.arange(len(order)), level[order]] = 1
        x, y = _standard(rows.gold), _standard(scores)
        columns = (np.ones_like(x), x, y, x * y, x * x, y * y)
        self.sums = np.stack([np.bincount(clusters, column) for column in columns], axis=1).astype(np.float32)
        # The rows of an item that are here share its weight of one.
        here = rows.items >= 0
        weight = (here / here.sum(axis=1, keepdims=True))[here]
        verdict, of = np.repeat(right, 2)[here.ravel()], clusters[rows.items[here]]
        verdicts = (weight * (verdict == 1), weight * np.isfinite(verdict), weight)
        groups = int(clusters.max()) + 1
        self.items = np.stack([np.bincount(of, one, groups) for one in verdicts], axis=1).astype(np.float32)

    def figures(self, counts: np.ndarray, ranks: np.ndarray, variance: np.ndarray) -> Drawn:
        n, x, y, xy, xx, yy = (counts @ self.sums).astype(np.float64).T
        correct, judged, items = (counts @ self.items).astype(np.float64).T
        with np.errstate(divide="ignore", invalid="ignore"):
            pearson = (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
            return {
                "spearman": self._spearman(counts, ranks, variance),
                "pearson": np.where(np.isfinite(pearson), pearson, np.nan),
                "ties_wrong": correct / items,
                "ties_excluded": correct / judged,
            }

    def _spearman(self, counts: np.ndarray, gold_ranks: np.ndarray, gold_variance: np.ndarray) -> np.ndarray:
        drawn = np.take(counts, self.clusters, axis=1)
        total = np.cumsum(drawn, axis=1)
        middle = (total[:, -1:] + 1) / 2
        if self.ties:
            ends = total[:, self.ends]
            starts = np.concatenate([np.zeros_like(ends[:, :1]), ends[:, :-1]], axis=1)
            ranks = np.take((starts + ends + 1) / 2 - middle, self.run, axis=1)
        else:
            ranks = total
            ranks -= (drawn - 1) / 2
            ranks -= middle
        weighted = drawn * ranks
        variance = np.einsum("bn,bn->b", weighted, ranks, dtype=np.float64)
        covariance = np.einsum("bk,bk->b", weighted @ self.level, gold_ranks, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = covariance / np.sqrt(variance * gold_variance)
        return np.where(np.isfinite(value), value, np.nan)


def _standard(values: np.ndarray) -> np.ndarray:
    """Centre and scale, so that sums of squares lose nothing in single precision."""
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


@dataclass(frozen=True)
class Agreement(Record):
    """The figures of one model on some of the rows; correlations and shares times 100."""

    n: int
    items: int
    """Pairs of rated conditions of one sentence pair."""
    spearman: Metric
    pearson: Metric
    """Correlation of score and rating."""
    ties_wrong: Metric
    """Pair accuracy: pairs of conditions in the right order, equal ratings counted as wrong (CASE)."""
    ties_excluded: Metric
    """The same, pairs with equal ratings left out."""
    pair_accuracy: PairAccuracy
    """The counts behind both."""
    left_out = ("items",)


def measure(
    rows: Rows,
    scores: Sequence[np.ndarray],
    *,
    chosen: np.ndarray | None = None,
    items: np.ndarray | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[list[Agreement], list[list[Drawn]]]:
    """Compare the scores of M models with the ratings.

    Args:
        rows: p rows; unrated ones may be among them, if `chosen` leaves them out.
        scores: M arrays (p,), higher is more similar.
        chosen: (n,) positions of the rows to use; None takes all.
        items: (q, 2) positions of the items to use, each with a row in `chosen`; None takes those with both rows there.
        resamples: For the intervals, the same for every model; 0 for none, at most a million.
        seed: Of the resamples.

    Returns:
        M figures; and per clustering (sentence pairs first, then aspects) and model the resampled figures, for
        intervals of differences.
    """
    check_count("resamples", resamples, 0, 1_000_000)
    chosen = np.arange(len(rows.gold)) if chosen is None else chosen
    if items is None:
        items = rows.items[np.isin(rows.items, chosen).all(axis=1)]
    finite = all(np.isfinite(one[chosen]).all() for one in scores)
    clusterings = rows.clusterings(chosen) if resamples and finite else []
    place = np.full(len(rows.gold), -1)
    place[chosen] = np.arange(len(chosen))
    right = [order_right(rows.gold, one, items) for one in scores]
    values = [one[chosen].astype(float) for one in scores]
    samples = [Rows(rows.gold[chosen], clusters, place[items]) for clusters in clusterings]
    drawn = [resample(sample, values, right, resamples=resamples, seed=seed) for sample in samples]
    found = [
        _agreement(rows, one, chosen, items, [by[index] for by in drawn], intervals=resamples > 0)
        for index, one in enumerate(scores)
    ]
    return found, drawn


def order_right(gold: np.ndarray, scores: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return whether each of (q, 2) items is in the right order: (q,) 1, 0, or NaN for equal or missing ratings."""
    first, second = items.T
    wanted = np.sign(gold[first] - gold[second])
    known = np.isfinite(wanted) & (wanted != 0)
    return np.where(known, np.sign(scores[first] - scores[second]) == wanted, np.nan)


def interval(value: float, drawn: Iterable[np.ndarray]) -> tuple[float | None, float | None]:
    """Return the widest of the 95 % percentile intervals of some sets of resampled values; None where there is none.

    It reaches to the value: ties of few rows repeat in every resample, whose correlations then all are higher.
    """
    defined = [one[np.isfinite(one)] for one in drawn]
    ends = [np.quantile(one, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist() for one in defined if len(one)]
    if not ends:
        return None, None
    low, high = max(ends, key=lambda pair: pair[1] - pair[0])
    return min(low, value), max(high, value)


def _agreement(
    rows: Rows, scores: np.ndarray, chosen: np.ndarray, items: np.ndarray, drawn: Sequence[Drawn], *, intervals: bool
) -> Agreement:
    gold = rows.gold
    ratings, values = gold[chosen], scores[chosen]
    first, second = items.T
    unequal = gold[first] != gold[second]
    counts = metrics.pair_accuracy(gold[first], gold[second], scores[first], scores[second])

    def correlation(name: str) -> Metric:
        value = getattr(metrics, name)(ratings, values)
        if value is None:
            return Metric(None, n=len(chosen), reason=metrics.why_undefined(ratings, values))
        return Metric(100 * value, *interval(100 * value, (100 * by[name] for by in drawn)), len(chosen))

    def share(name: str, used: np.ndarray) -> Metric:
        value, n = getattr(counts, name), int(used.sum())
        if value is None:
            return Metric(None, n=n, reason=ALL_EQUAL if counts.pairs else NO_ITEM)
        if not intervals:
            return Metric(100 * value, n=n)
        # The effective number of sentence pairs is that which the spread of the resamples implies.
        variance = max((float(np.nanvar(by[name])) for by in drawn if not np.isnan(by[name]).all()), default=0.0)
        alone = value * (1 - value) / n
        # Of each sentence pair one, where nothing tells how far its pairs of conditions hang together.
        groups = len(np.unique(rows.clusters[first[used]]))
        low, high = metrics.wilson(value, n * min(1.0, alone / variance) if variance > 0 and alone > 0 else groups)
        return Metric(100 * value, 100 * low, 100 * high, n)

    return Agreement(
        n=len(chosen),
        items=counts.pairs,
        spearman=correlation("spearman"),
        pearson=correlation("pearson"),
        ties_wrong=share("ties_wrong", np.ones(len(items), dtype=bool)),
        ties_excluded=share("ties_excluded", unequal),
        pair_accuracy=counts,
    )
