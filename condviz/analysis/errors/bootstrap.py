"""Ten thousand resamples at once: sentence pairs are drawn with replacement, figures follow from how often each came.

A resample is a vector of counts, so every figure is a matrix product; only Spearman needs the ranks anew, which are the
running sums of the counts in the order of the scores.

Source: percentile bootstrap over clusters, Efron and Tibshirani 1993, chapters 13 and 16.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

CHUNK = 2**19
"""Counts held at once: memory stays bounded, and the arrays stay in the cache of the processor."""


@dataclass(frozen=True)
class Sample:
    """Rows to resample, all rated and scored.

    Attributes:
        gold: (n,) ratings.
        clusters: (n,) int, rows of one sentence pair share a number.
        in_item: (n,) bool, whether the row is one of the two of an item.
        scores: One (n,) array per model.
        errors: One (n,) array per model: fitted minus rating.
        right: One (n,) array per model: 1, 0 or NaN, the same in all rows of a cluster.
    """

    gold: np.ndarray
    clusters: np.ndarray
    in_item: np.ndarray
    scores: Sequence[np.ndarray]
    errors: Sequence[np.ndarray]
    right: Sequence[np.ndarray]


def resample(sample: Sample, *, resamples: int, seed: int) -> list[dict[str, np.ndarray]]:
    """Compute every figure on the same resamples for each model.

    Args:
        sample: The rows.
        resamples: How many.
        seed: Seed of the draws.

    Returns:
        Per model: "spearman", "pearson", "accuracy" (ties left out), "ties_wrong", "error" (mean absolute), "bias"
        (mean): (resamples,) float64 each, NaN where a figure is not defined.
    """
    _, clusters = np.unique(sample.clusters, return_inverse=True)
    levels, level = np.unique(sample.gold, return_inverse=True)
    groups = int(clusters.max()) + 1
    level_counts = np.zeros((groups, len(levels)), dtype=np.float32)
    np.add.at(level_counts, (clusters, level), 1)
    models = [_Model(sample, index, clusters, level) for index in range(len(sample.scores))]
    parts: list[list[dict[str, np.ndarray]]] = [[] for _ in models]
    for counts in _draws(groups, len(clusters), resamples=resamples, seed=seed):
        gold_ranks = _level_ranks(counts @ level_counts)
        for model, part in zip(models, parts, strict=True):
            part.append(model.figures(counts, *gold_ranks))
    return [{name: np.concatenate([chunk[name] for chunk in part]) for name in part[0]} for part in parts]


class _Model:
    """What stays the same over the resamples of one model."""

    def __init__(self, sample: Sample, index: int, clusters: np.ndarray, level: np.ndarray) -> None:
        scores, error, right = sample.scores[index], sample.errors[index], sample.right[index]
        order = np.argsort(scores, kind="stable")
        self.clusters, ordered = clusters[order], scores[order]
        # The last row of each run of equal scores, and which run a row is in.
        self.ends = np.flatnonzero(np.append(np.diff(ordered) != 0, True))
        self.run = np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=-1))
        self.ties = len(self.ends) < len(ordered)
        self.level = np.zeros((len(order), level.max() + 1), dtype=np.float32)
        self.level[np.arange(len(order)), level[order]] = 1
        x, y = _standard(sample.gold), _standard(scores)
        known = np.isfinite(right)
        columns = (np.ones_like(x), x, y, x * y, x * x, y * y, np.abs(error), error)
        self.sums = np.stack([np.bincount(clusters, column) for column in columns], axis=1).astype(np.float32)
        # One item has two rows with the same verdict: it counts once.
        verdicts = (np.where(known, right, 0), known, sample.in_item)
        rows = np.bincount(clusters)
        self.items = np.stack([np.bincount(clusters, one) / rows for one in verdicts], axis=1).astype(np.float32)

    def figures(self, counts: np.ndarray, ranks: np.ndarray, variance: np.ndarray) -> dict[str, np.ndarray]:
        n, x, y, xy, xx, yy, absolute, signed = (counts @ self.sums).astype(np.float64).T
        correct, judged, items = (counts @ self.items).astype(np.float64).T
        with np.errstate(divide="ignore", invalid="ignore"):
            pearson = (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
            return {
                "spearman": self._spearman(counts, ranks, variance),
                "pearson": np.where(np.isfinite(pearson), pearson, np.nan),
                "accuracy": correct / judged,
                "ties_wrong": correct / items,
                "error": absolute / n,
                "bias": signed / n,
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


def _draws(groups: int, rows: int, *, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Yield (c, groups) float32: how often each cluster was drawn, in each of c resamples."""
    rng = np.random.default_rng(seed)
    size = max(1, CHUNK // rows)
    for start in range(0, resamples, size):
        count = min(size, resamples - start)
        drawn = rng.integers(groups, size=(count, groups), dtype=np.uint32)
        drawn = drawn + np.arange(count)[:, None] * groups
        yield np.bincount(drawn.ravel(), minlength=count * groups).reshape(count, groups).astype(np.float32)


def _level_ranks(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the centred mean rank of each level, (c, k), and the sum of squares, (c,), from counts (c, k)."""
    total = np.cumsum(counts, axis=1)
    ranks = total - (counts - 1) / 2 - (total[:, -1:] + 1) / 2
    return ranks, np.einsum("bk,bk,bk->b", counts, ranks, ranks, dtype=np.float64)


def _standard(values: np.ndarray) -> np.ndarray:
    """Centre and scale, so that sums of squares lose nothing in single precision."""
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)
