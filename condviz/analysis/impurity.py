"""Do the embeddings made under one condition lie together: K-means clusters against conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condviz.analysis.geometry import check_vectors
from condviz.errors import ConfigError, DataError, require
from condviz.types import Progress, Record, reporting

SHUFFLES = 200
"""Of the group labels, in all, spread evenly over the clusters of the seeds."""


@dataclass(frozen=True)
class Table:
    """Counts of members by group and cluster."""

    groups: tuple[str, ...]
    """Labels of the G rows, sorted."""
    clusters: tuple[str, ...]
    """Labels of the K columns, sorted."""
    counts: np.ndarray
    """(G, K) int64."""


@dataclass(frozen=True)
class KMeansImpurity(Record):
    """Impurity of K-means clusters over several seeds, beside what chance gives."""

    mean: float
    std: float
    """Over the seeds, nats; the deviation is divided by their number."""
    per_seed: tuple[float, ...]
    chance: float
    """Mean with group labels shuffled, same clusters and group sizes, nats."""
    p_value: float
    """Share of the shuffles (the real labels counted as one) that are as pure as the real labels or purer."""
    clusters: int
    table: Table
    """Groups by clusters, of the first seed."""
    labels: np.ndarray
    """Cluster of each embedding, (n,) int32, of the first seed."""
    computed = "bits", "normalised"
    left_out = ("labels",)

    @property
    def bits(self) -> float:
        """The mean with base 2."""
        return self.mean / math.log(2)

    @property
    def normalised(self) -> float:
        """The mean divided by its largest value, log K: in [0, 1]."""
        return self.mean / math.log(self.clusters) if self.clusters > 1 else 0.0


def group_cluster_table(groups: Sequence[str | int] | np.ndarray, clusters: Sequence[str | int] | np.ndarray) -> Table:
    """Count members, at least one, by group and cluster."""
    (rows, row), (columns, column) = (np.unique(labels, return_inverse=True) for labels in (groups, clusters))
    counts = np.bincount(row * len(columns) + column, minlength=len(rows) * len(columns))
    return Table(tuple(map(str, rows)), tuple(map(str, columns)), counts.reshape(len(rows), -1))


def impurity(groups: Sequence[str | int], clusters: Sequence[str | int]) -> float:
    """Measure how far the members of each group are spread over the clusters: nats, 0 if each lies in one cluster.

    I = - sum over groups i of |C_i| / |S| times the sum over clusters j of p_ij log p_ij, where p_ij is the share of
    group i that lies in cluster j, and 0 log 0 = 0.

    Source:
        Hyper-CL (Yoo et al. 2024), section 5.2. The base of the logarithm is not given there; natural is our choice.
    """
    return _impurity_of_counts(group_cluster_table(groups, clusters).counts)


def kmeans_impurity(
    embeddings: np.ndarray,
    groups: Sequence[str | int],
    *,
    num_clusters: int | None = None,
    seeds: Sequence[int] = tuple(range(10)),
    num_starts: int = 10,
    progress: Progress | None = None,
) -> KMeansImpurity:
    """Cluster embeddings by K-means and measure the impurity, over several seeds and beside shuffled labels.

    Args:
        embeddings: Shape (n, d), finite. Clustered as they are: scale them to length 1 first to cluster by direction.
        groups: Group (condition) of each row.
        num_clusters: K, in [1, n]; None takes the number of groups.
        seeds: Seeds of K-means, each of `num_starts` starts, and of the shuffles; at least one.
        progress: Told the seeds done.

    Source: Hyper-CL (Yoo et al. 2024), section 5.2: 3 conditions, 20 sentences each, K = 3. Settings of K-means and the
    base of the logarithm are not given there; these are ours.
    """
    vectors, (names, codes) = check_vectors(embeddings), np.unique(groups, return_inverse=True)
    if len(vectors) != len(codes):
        raise DataError(f"Every embedding needs one group; got {len(vectors)} embeddings and {len(codes)} groups.")
    clusters = len(names) if num_clusters is None else num_clusters
    if not 1 <= clusters <= len(vectors):
        raise ConfigError(f"num_clusters must be from 1 to the number of embeddings, {len(vectors)}; got {clusters}.")
    kmeans = require("sklearn.cluster", "viz").KMeans
    makers = (kmeans(clusters, n_init=num_starts, random_state=seed) for seed in reporting(seeds, progress))
    labels = [one.fit(vectors).labels_ for one in makers]
    values = np.array([_impurity_of_codes(codes, label, clusters) for label in labels])
    chance, p_value = _against_chance(codes, labels, values, seeds)
    return KMeansImpurity(
        mean=float(values.mean()),
        std=float(values.std()),
        per_seed=tuple(values.tolist()),
        chance=chance,
        p_value=p_value,
        clusters=clusters,
        table=group_cluster_table(names[codes], labels[0]),
        labels=labels[0],
    )


def _against_chance(
    codes: np.ndarray, labels: Sequence[np.ndarray], values: np.ndarray, seeds: Sequence[int]
) -> tuple[float, float]:
    generator = np.random.default_rng(list(seeds))
    which = np.arange(SHUFFLES) % len(labels)
    clusters = int(max(label.max() for label in labels)) + 1
    shuffled = [_impurity_of_codes(generator.permutation(codes), labels[int(index)], clusters) for index in which]
    # Rounding must not decide between equal tables.
    as_pure = int(np.sum(np.array(shuffled) <= values[which] + 1e-12))
    return float(np.mean(shuffled)), (1 + as_pure) / (1 + SHUFFLES)


def _impurity_of_codes(groups: np.ndarray, clusters: np.ndarray, num_clusters: int) -> float:
    counts = np.bincount(groups * num_clusters + clusters, minlength=(int(groups.max()) + 1) * num_clusters)
    return _impurity_of_counts(counts.reshape(-1, num_clusters))


def _impurity_of_counts(counts: np.ndarray) -> float:
    from scipy.special import entr  # slow to import, and the start of the page does not need it

    sizes = counts.sum(axis=1)
    return float(np.sum(sizes / sizes.sum() * entr(counts / sizes[:, None]).sum(axis=1)))
