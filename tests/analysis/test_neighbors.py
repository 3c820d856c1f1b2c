"""Nearest neighbours against scikit-learn, and what changes between two spaces."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from condviz.analysis import neighbors as module
from condviz.analysis.geometry import Neighbors, knn_change, label_agreement, nearest
from condviz.errors import DataError

POINTS = np.random.default_rng(0).standard_normal((50, 8))


@pytest.mark.parametrize("cells", [2**23, 120])
def test_they_are_those_of_scikit_learn(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_CELLS", cells)  # in pieces as well as in one
    found = nearest(POINTS, 5)
    distances, indices = NearestNeighbors(n_neighbors=5, metric="cosine").fit(POINTS).kneighbors()
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.cosines, 1 - distances, atol=1e-6)


def test_groups_keep_to_themselves() -> None:
    groups = ["a", "b"] * 25
    found = nearest(POINTS, 5, groups=groups)
    assert (found.indices % 2 == (np.arange(50) % 2)[:, None]).all()
    alone = nearest(POINTS[::2], 5)
    np.testing.assert_array_equal(found.indices[::2], alone.indices * 2)


def test_fewer_points_than_neighbours_leave_places_empty() -> None:
    found = nearest(POINTS[:3], 5)
    assert (found.indices[:, 2:] == -1).all()
    assert np.isnan(found.cosines[:, 2:]).all()
    assert nearest(POINTS[:1], 2).indices.tolist() == [[-1, -1]]


def test_a_row_of_zeros_is_at_right_angles_to_all() -> None:
    found = nearest(np.vstack([np.zeros(8), POINTS]), 3)
    np.testing.assert_array_equal(found.cosines[0], 0)


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(DataError, match="NaN"):
        nearest(np.full((3, 2), np.nan), 1)


def test_change_by_hand() -> None:
    before = Neighbors(np.array([[1, 2], [0, 2], [0, -1], [-1, -1]]), np.zeros((4, 2)))
    after = Neighbors(np.array([[2, 1], [0, 3], [1, -1], [-1, -1]]), np.zeros((4, 2)))
    assert knn_change(before, after).tolist() == [0, 0.5, 1, 0]


def test_agreement_by_hand() -> None:
    near = Neighbors(np.array([[1, 2], [0, 2], [0, 1], [0, -1]]), np.zeros((4, 2)))
    # Points 0 and 1 agree with each other only; points 2 and 3, which has a single neighbour, with nobody.
    assert label_agreement(near, ["x", "x", "y", "z"]) == pytest.approx(2 / 7)
