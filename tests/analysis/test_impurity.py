"""Impurity by hand, its range and invariances, and K-means on clusters that are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.analysis.impurity import group_cluster_table, impurity, kmeans_impurity
from condviz.errors import ConfigError, DataError

members = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


def split(rows: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    groups, clusters = zip(*rows, strict=True)
    return list(groups), list(clusters)


def test_impurity_by_hand() -> None:
    # Group a lies half in each cluster (log 2), group b in one (0); each is half of all.
    found = impurity(["a", "a", "b", "b"], [0, 1, 1, 1])
    assert found == pytest.approx(np.log(2) / 2)


def test_table_by_hand() -> None:
    table = group_cluster_table(["b", "a", "b"], [10, 2, 2])
    assert (table.groups, table.clusters) == (("a", "b"), ("2", "10"))
    assert table.counts.tolist() == [[1, 0], [1, 1]]


@given(members)
def test_range(rows: list[tuple[int, int]]) -> None:
    groups, clusters = split(rows)
    found = impurity(groups, clusters)
    assert 0 <= found <= np.log(len(set(clusters))) + 1e-12


@given(members, st.randoms(), st.permutations(range(4)), st.permutations(range(4)))
def test_order_and_names_do_not_matter(
    rows: list[tuple[int, int]], random: object, group_names: list[int], cluster_names: list[int]
) -> None:
    expected = impurity(*split(rows))
    renamed = [(group_names[group], cluster_names[cluster]) for group, cluster in random.sample(rows, len(rows))]
    assert impurity(*split(renamed)) == pytest.approx(expected, abs=1e-12)


@given(members, st.integers(2, 4))
def test_only_shares_matter(rows: list[tuple[int, int]], times: int) -> None:
    assert impurity(*split(rows * times)) == pytest.approx(impurity(*split(rows)), abs=1e-12)


@given(members)
def test_merging_clusters_never_makes_it_less_pure(rows: list[tuple[int, int]]) -> None:
    groups, clusters = split(rows)
    merged = impurity(groups, [cluster // 2 for cluster in clusters])
    assert merged <= impurity(groups, clusters) + 1e-12


def blobs(spread: float, *, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    groups = np.repeat([0, 1, 2], 20)
    noise = np.random.default_rng(seed).standard_normal((60, 5)) * spread
    return np.eye(5)[groups] * 10 + noise, [("sport", "mood", "place")[group] for group in groups]


def test_kmeans_finds_groups_that_lie_apart() -> None:
    found = kmeans_impurity(*blobs(0.1))
    assert (found.mean, found.std, found.clusters, len(found.per_seed)) == (0.0, 0.0, 3, 10)
    assert found.chance > 0.9 * np.log(3)
    assert found.p_value == pytest.approx(1 / 201)
    assert sorted(found.table.counts.max(axis=1)) == [20, 20, 20]


def test_groups_that_say_nothing_are_as_impure_as_chance() -> None:
    embeddings, groups = blobs(0.1)
    mixed = list(np.random.default_rng(1).permutation(groups))
    found = kmeans_impurity(embeddings, mixed, seeds=(0, 1))
    assert found.mean == pytest.approx(found.chance, abs=0.1)
    assert found.p_value > 0.01
    assert found.bits == pytest.approx(found.mean / np.log(2))
    assert found.normalised == pytest.approx(found.mean / np.log(3))


def test_kmeans_is_repeatable() -> None:
    first, second = kmeans_impurity(*blobs(8.0), seeds=(3,)), kmeans_impurity(*blobs(8.0), seeds=(3,))
    assert first.to_dict() == second.to_dict()


def test_number_of_clusters_can_be_chosen() -> None:
    found = kmeans_impurity(*blobs(0.1), num_clusters=2, seeds=(0,))
    assert found.table.counts.shape == (3, 2)
    assert found.normalised == pytest.approx(found.mean / np.log(2))
    assert kmeans_impurity(*blobs(0.1), num_clusters=1, seeds=(0,)).normalised == 0.0


def test_a_column_of_a_table_can_be_the_groups() -> None:
    embeddings, groups = blobs(0.1)
    assert kmeans_impurity(embeddings, pd.Series(groups), seeds=(0,)).mean == 0.0


def test_embeddings_that_cannot_be_clustered() -> None:
    embeddings, groups = blobs(0.1)
    with pytest.raises(DataError, match="60 embeddings and 59 groups"):
        kmeans_impurity(embeddings, groups[1:])
    with pytest.raises(DataError, match="Row 4"):
        kmeans_impurity(np.where(np.arange(60)[:, None] == 4, np.nan, embeddings), groups)
    for clusters in (0, 61):
        with pytest.raises(ConfigError, match=f"got {clusters}"):
            kmeans_impurity(embeddings, groups, num_clusters=clusters)
