"""Isotropy and Frobenius variance by hand, their ranges and invariances; neighbours against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.neighbors import NearestNeighbors

from condviz.analysis import geometry
from condviz.analysis.geometry import (
    Neighbors,
    cosines_to_mean,
    frobenius_variance,
    isotropy,
    knn_change,
    label_agreement,
    log_partition,
    nearest,
    partition_isotropy,
    silhouette,
)
from condviz.errors import DataError

vectors = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(0.1, 10), fill=st.nothing()
)


def test_cosines_by_hand() -> None:
    # (3, 0) and (0, 5) scale to the axes; both are 45 degrees from their mean.
    np.testing.assert_allclose(cosines_to_mean([[3.0, 0.0], [0.0, 5.0]]), np.sqrt([0.5, 0.5]))


def test_partition_by_hand() -> None:
    found = log_partition([[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, -1.0]])
    np.testing.assert_allclose(np.exp(found), [np.e + 1, 1 + np.exp(-2)])


def test_partition_does_not_overflow() -> None:
    np.testing.assert_allclose(log_partition([[5000.0], [5000.0]], [[1.0]]), 5000 + np.log(2))


def test_opposite_directions_of_one_vector() -> None:
    assert partition_isotropy([[0.0, 7.0]], [[0.0, 1.0], [0.0, -1.0]]) == pytest.approx(np.exp(-2))


@given(vectors)
def test_isotropy_ranges(found: np.ndarray) -> None:
    report = isotropy(found, num_directions=20)
    cosines = cosines_to_mean(found)
    assert ((cosines >= -1) & (cosines <= 1)).all()
    assert 0 <= report.mean_cosine <= 1
    assert report.std_cosine >= 0
    assert 0 < report.ipc <= 1
    # Vectors of length 1 differ from direction to direction by exp(2) at most.
    assert report.ipc >= np.exp(-2) - 1e-12


@given(vectors, st.floats(1e-6, 1e6), st.randoms())
def test_length_and_order_do_not_matter(found: np.ndarray, factor: float, random: object) -> None:
    order = random.sample(range(len(found)), len(found))
    before, after = isotropy(found, num_directions=20), isotropy(found[order] * factor, num_directions=20)
    assert after.mean_cosine == pytest.approx(before.mean_cosine, abs=1e-12)
    assert after.std_cosine == pytest.approx(before.std_cosine, abs=1e-7)
    assert after.ipc == pytest.approx(before.ipc, abs=1e-12)


def test_vectors_of_any_length_can_be_scaled() -> None:
    for length in (1e-200, 1e200):
        np.testing.assert_allclose(cosines_to_mean(np.array([[3.0, 4.0]]) * length), [1.0])


def test_a_shift_makes_vectors_less_isotropic() -> None:
    drawn = np.random.default_rng(0).standard_normal((200, 16))
    even, shifted = isotropy(drawn), isotropy(drawn + 3)
    assert shifted.mean_cosine > 0.9 > even.mean_cosine
    assert shifted.ipc < even.ipc
    assert even.num_directions == 1000
    assert isotropy(drawn) == even


def test_frobenius_by_hand() -> None:
    # Norms 2 and 6 of 2 x 2 matrices: 1 and 3 after division by d, variance 1.
    assert frobenius_variance(np.array([np.ones((2, 2)), np.full((2, 2), 3.0)])) == pytest.approx(1.0)
    # Norms 2 and 4 of 4 numbers: 1 and 2 after division by the root of d, variance 1/4.
    assert frobenius_variance(np.array([np.ones(4), np.full(4, 2.0)])) == pytest.approx(0.25)
    assert frobenius_variance(np.ones((1, 3, 3))) == 0.0


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.zeros((2, 3)), "Row 0 of the vectors is all 0"),
        (np.array([[1.0], [np.nan]]), "Row 1 of the vectors holds a NaN"),
        (np.zeros(3), r"shape \(n, d\)"),
        (np.zeros((0, 3)), r"shape \(n, d\)"),
        (np.array([["a"]]), r"shape \(n, d\)"),
        (np.array([[1.0], [-1.0]]), "cancel each other out"),
    ],
)
def test_vectors_without_a_direction(found: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        isotropy(found)


@pytest.mark.parametrize("groups", [["rare"] + ["often"] * 9999, ["twice", "twice", *map(str, range(9998))]])
def test_a_sample_without_two_groups_has_no_silhouette(groups: list[str]) -> None:
    assert silhouette(np.ones((10_000, 2)), np.array(groups), metric="cosine") is None


POINTS = np.random.default_rng(0).standard_normal((50, 8))


@pytest.mark.parametrize("cells", [2**23, 120])
def test_they_are_those_of_scikit_learn(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "CHUNK_CELLS", cells)  # in pieces as well as in one
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
    assert knn_change(before, after, np.array([2, 2, 1, 0])).tolist() == [0, 0.5, 1, 0]
    assert knn_change(before, after, np.array([1, 1, 1, 0])).tolist() == [1, 0, 1, 0], "the nearest alone"


def test_agreement_by_hand() -> None:
    near = Neighbors(np.array([[1, 2], [0, 2], [0, 1], [0, -1]]), np.zeros((4, 2)))
    # Points 0 and 1 agree with each other only; points 2 and 3, which has a single neighbour, with nobody.
    assert label_agreement(near, ["x", "x", "y", "z"]) == pytest.approx(2 / 7)
