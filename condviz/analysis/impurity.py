"""Do the embeddings made under one condition lie together: K-means clusters against conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condviz.analysis.geometry import check_vectors
from condviz.errors import ConfigError, DataError, require
from condviz.types import Progress, plain


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
class Impurity:
    """How far the members of a group are spread over clusters: 0 if each group lies in one cluster."""

    nats: float
    """Natural logarithm, in [0, log of the number of clusters]; the paper's figure."""
    bits: float
    """The same with base 2."""
    normalised: float
    """The same divided by its largest value, in [0, 1]."""


@dataclass(frozen=True)
class KMeansImpurity:
    """Impurity of K-means clusters over several seeds, beside what chance gives."""

    mean: float
    """Mean over the seeds, nats."""
    std: float
    """Standard deviation over the seeds (divided by their number), nats."""
    per_seed: tuple[float, ...]
    """One value per seed, nats."""
    chance: float
    """Mean with group labels shuffled, same clusters and group sizes, nats."""
    p_value: float
    """Share of the shuffles (the real labels counted as one) that are as pure as the real labels or purer."""
    num_clusters: int
    """K."""
    bits: float
    """The mean with base 2."""
    normalised: float
    """The mean divided by log K."""
    table: Table
    """Groups by clusters, of the first seed."""
    labels: np.ndarray
    """Cluster of each embedding, (n,) int32, of the first seed."""

    def to_dict(self) -> dict:
        """Return plain JSON, without the clusters of single embeddings."""
        return plain({"clusters" if key == "num_clusters" else key: value for key, value in vars(self).items()
                      if key != "labels"})  # fmt: skip


def group_cluster_table(groups: Sequence[str | int] | np.ndarray, clusters: Sequence[str | int] | np.ndarray) -> Table:
    """Count members by group and cluster; raises DataError if there is none, or the lengths differ."""
    rows, columns = _labels(groups, "groups"), _labels(clusters, "clusters")
    if len(rows) != len(columns):
        raise DataError(f"Every member needs a group and a cluster; got {len(rows)} and {len(columns)}.")
    from scipy.stats.contingency import crosstab  # a second to import, and the start of the page does not need it

    found: Any = crosstab(rows, columns)
    names = [tuple(str(name) for name in element) for element in found.elements]
    return Table(names[0], names[1], np.asarray(found.count))


def impurity(
    groups: Sequence[str | int], clusters: Sequence[str | int], *, num_clusters: int | None = None
) -> Impurity:
    """Measure how far the members of each group are spread over the clusters.

    I = - sum over groups i of |C_i| / |S| times the sum over clusters j of p_ij log p_ij, where p_ij is the share of
    group i that lies in cluster j, and 0 log 0 = 0.

    Args:
        groups: Group (condition) of each of n members.
        clusters: Cluster of each member.
        num_clusters: K that `normalised` refers to; None takes the clusters that have members.

    Raises:
        DataError, ConfigError: If there is no member, the lengths differ, or more than `num_clusters` have members.

    Source:
        Hyper-CL (Yoo et al. 2024), section 5.2. The base of the logarithm is not given there; natural is our choice.
    """
    counts = group_cluster_table(groups, clusters).counts
    used = counts.shape[1]
    if num_clusters is not None and num_clusters < used:
        raise ConfigError(f"num_clusters is {num_clusters}, but {used} clusters have members.")
    return _in_all_units(_impurity_of_counts(counts), num_clusters or used)


def kmeans_impurity(
    embeddings: np.ndarray,
    groups: Sequence[str | int],
    *,
    num_clusters: int | None = None,
    seeds: Sequence[int] = tuple(range(10)),
    num_starts: int = 10,
    num_shuffles: int = 200,
    progress: Progress | None = None,
) -> KMeansImpurity:
    """Cluster embeddings by K-means and measure the impurity, over several seeds and beside shuffled labels.

    Args:
        embeddings: Shape (n, d), finite. Clustered as they are: scale them to length 1 first to cluster by direction.
        groups: Group (condition) of each row.
        num_clusters: K; None takes the number of groups.
        seeds: Seeds of K-means, each of `num_starts` starts, and of the shuffles.
        num_shuffles: How often the group labels are shuffled, in all, spread evenly over the seeds' clusters.
        progress: Told the seeds done.

    Raises:
        DataError: If embeddings and groups do not fit each other, or the embeddings hold a NaN.
        ConfigError: If K is not in [1, n], there is no seed, or no shuffle.

    Source: Hyper-CL (Yoo et al. 2024), section 5.2: 3 conditions, 20 sentences each, K = 3. Settings of K-means and the
    base of the logarithm are not given there; these are ours.
    """
    vectors, (names, codes) = check_vectors(embeddings), np.unique(_labels(groups, "groups"), return_inverse=True)
    if len(vectors) != len(codes):
        raise DataError(f"Every embedding needs one group; got {len(vectors)} embeddings and {len(codes)} groups.")
    clusters = len(names) if num_clusters is None else num_clusters
    if not 1 <= clusters <= len(vectors):
        raise ConfigError(f"num_clusters must be from 1 to the number of embeddings, {len(vectors)}; got {clusters}.")
    if not len(seeds) or num_shuffles < 1:
        raise ConfigError(f"Needs at least one seed and one shuffle, got {len(seeds)} and {num_shuffles}.")
    kmeans = require("sklearn.cluster", "viz").KMeans
    labels = []
    for number, seed in enumerate(seeds):
        if progress is not None:
            progress(number, len(seeds))
        labels.append(kmeans(clusters, n_init=num_starts, random_state=seed).fit(vectors).labels_)
    values = np.array([_impurity_of_codes(codes, label, clusters) for label in labels])
    chance, p_value = _against_chance(codes, labels, values, num_shuffles=num_shuffles, seeds=seeds)
    units = _in_all_units(float(values.mean()), clusters)
    return KMeansImpurity(
        mean=units.nats,
        std=float(values.std()),
        per_seed=tuple(values.tolist()),
        chance=chance,
        p_value=p_value,
        num_clusters=clusters,
        bits=units.bits,
        normalised=units.normalised,
        table=group_cluster_table(names[codes], labels[0]),
        labels=labels[0],
    )


def _against_chance(
    codes: np.ndarray, labels: Sequence[np.ndarray], values: np.ndarray, *, num_shuffles: int, seeds: Sequence[int]
) -> tuple[float, float]:
    generator = np.random.default_rng(list(seeds))
    which = np.arange(num_shuffles) % len(labels)
    clusters = int(max(label.max() for label in labels)) + 1
    shuffled = [_impurity_of_codes(generator.permutation(codes), labels[int(index)], clusters) for index in which]
    # Rounding must not decide between equal tables.
    as_pure = int(np.sum(np.array(shuffled) <= values[which] + 1e-12))
    return float(np.mean(shuffled)), (1 + as_pure) / (1 + num_shuffles)


def _impurity_of_codes(groups: np.ndarray, clusters: np.ndarray, num_clusters: int) -> float:
    counts = np.bincount(groups * num_clusters + clusters, minlength=(int(groups.max()) + 1) * num_clusters)
    return _impurity_of_counts(counts.reshape(-1, num_clusters))


def _impurity_of_counts(counts: np.ndarray) -> float:
    from scipy.special import entr  # slow to import, and the start of the page does not need it

    sizes = counts.sum(axis=1)
    return float(np.sum(sizes / sizes.sum() * entr(counts / sizes[:, None]).sum(axis=1)))


def _in_all_units(nats: float, num_clusters: int) -> Impurity:
    return Impurity(nats, nats / math.log(2), nats / math.log(num_clusters) if num_clusters > 1 else 0.0)


def _labels(labels: Sequence[str | int] | np.ndarray, field: str) -> np.ndarray:
    array = np.asarray(labels)
    if array.dtype == object and all(isinstance(label, str) for label in array.flat):
        array = array.astype(np.str_)  # A column of a table of pandas.
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "USiub":
        raise DataError(
            f"{field} must be one label (text or integer) per member, at least one; got {array.shape}, {array.dtype}."
        )
    return array
