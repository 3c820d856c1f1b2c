"""Ten thousand resamples at once: clusters of rows are drawn with replacement, figures follow from the counts.

A resample is a vector of counts, so every figure is a matrix product; only Spearman needs the ranks anew, which are the
running sums of the counts in the order of the scores.

Source: bootstrap over clusters, Efron and Tibshirani 1993, chapters 13 and 16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

CHUNK = 2**19
"""Counts held at once: memory stays bounded, and the arrays stay in the cache of the processor."""
FIGURES = ("spearman", "pearson", "ties_wrong", "ties_excluded")


@dataclass(frozen=True)
class Sample:
    """Rows to resample, all rated and scored.

    Attributes:
        gold: (n,) ratings.
        clusters: (n,) int, rows that are drawn together share a number.
        item: (n,) int, rows of one item (a sentence pair under two conditions) share a number; -1 for rows of none.
        scores: One (n,) array per model, finite.
        right: One (n,) array per model: 1, 0 or NaN (equal ratings), the same in all rows of an item.
    """

    gold: np.ndarray
    clusters: np.ndarray
    item: np.ndarray
    scores: Sequence[np.ndarray]
    right: Sequence[np.ndarray]


def resample(sample: Sample, *, resamples: int, seed: int) -> list[dict[str, np.ndarray]]:
    """Compute every figure on the same resamples for each model.

    Args:
        sample: The rows.
        resamples: How many.
        seed: Seed of the draws.

    Returns:
        Per model, for each of `FIGURES`: (resamples,) float64 in [-1, 1], NaN where a figure is not defined.
    """
    _, clusters = np.unique(sample.clusters, return_inverse=True)
    levels, level = np.unique(sample.gold, return_inverse=True)
    groups = int(clusters.max()) + 1
    level_counts = np.zeros((groups, len(levels)), dtype=np.float32)
    np.add.at(level_counts, (clusters, level), 1)
    models = [_Model(sample, index, clusters, level) for index in range(len(sample.scores))]
    parts: list[list[dict[str, np.ndarray]]] = [[] for _ in models]
    for counts in draw(groups, len(clusters), resamples=resamples, seed=seed):
        gold_ranks = _level_ranks(counts @ level_counts)
        for model, part in zip(models, parts, strict=True):
            part.append(model.figures(counts, *gold_ranks))
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

    def __init__(self, sample: Sample, index: int, clusters: np.ndarray, level: np.ndarray) -> None:
        scores, right = sample.scores[index], sample.right[index]
        order = np.argsort(scores, kind="stable")
        self.clusters, ordered = clusters[order], scores[order]
        # The last row of each run of equal scores, and which run a row is in.
        self.ends = np.flatnonzero(np.append(np.diff(ordered) != 0, True))
        self.run = np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=-1))
        self.ties = len(self.ends) < len(ordered)
        self.level = np.zeros((len(order), level.max() + 1), dtype=np.float32)
        self.level[np.arange(len(order)), level[order]] = 1
        x, y = _standard(sample.gold), _standard(scores)
        columns = (np.ones_like(x), x, y, x * y, x * x, y * y)
        self.sums = np.stack([np.bincount(clusters, column) for column in columns], axis=1).astype(np.float32)
        # The rows of an item carry the same verdict and share its weight of one.
        within = sample.item >= 0
        weight = np.zeros(len(scores))
        weight[within] = 1 / np.bincount(sample.item[within])[sample.item[within]] if within.any() else 0
        verdicts = (weight * (right == 1), weight * np.isfinite(right), weight)
        self.items = np.stack([np.bincount(clusters, one) for one in verdicts], axis=1).astype(np.float32)

    def figures(self, counts: np.ndarray, ranks: np.ndarray, variance: np.ndarray) -> dict[str, np.ndarray]:
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


def _level_ranks(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centred mean rank of each level, (c, k), and the sum of squares, (c,), from counts (c, k)."""
    total = np.cumsum(counts, axis=1)
    ranks = total - (counts - 1) / 2 - (total[:, -1:] + 1) / 2
    return ranks, np.einsum("bk,bk,bk->b", counts, ranks, ranks, dtype=np.float64)


def _standard(values: np.ndarray) -> np.ndarray:
    """Centre and scale, so that sums of squares lose nothing in single precision."""
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)
