"""Nearest neighbours by cosine in the original space: exact, from products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condviz.analysis.impurity import check_vectors
from condviz.analysis.map_result import Neighbors
from condviz.errors import ConfigError, DataError

CHUNK_CELLS = 2**23
"""Cosines held at once: 32 MB."""


def nearest(vectors: np.ndarray, k: int, *, groups: Sequence[str | int] | None = None) -> Neighbors:
    """Find the k nearest others of every vector.

    Compared with all, not with a sample: at 10,000 vectors of 384 numbers the product of matrices takes less time than
    the approximate search of umap-learn (NN-descent), see `python -m benchmarks.projection`.

    Args:
        vectors: Shape (n, d), finite. A row of zeros has the cosine 0 with everything.
        k: How many, at least 1.
        groups: Group of each row; others are then looked for in its group only.

    Raises:
        DataError: If the vectors cannot be used, or the groups do not match them.
        ConfigError: If k is below 1.
    """
    unit = _unit(vectors)
    if k < 1:
        raise ConfigError(f"The number of neighbours must be at least 1, got {k}.")
    indices = np.full((len(unit), k), -1, dtype=np.int32)
    cosines = np.full((len(unit), k), np.nan, dtype=np.float32)
    for rows in _members(groups, len(unit)):
        number = min(k, len(rows) - 1)
        if number:
            found, values = _top(unit[rows], number)
            indices[rows, :number], cosines[rows, :number] = rows[found], values
    return Neighbors(indices, cosines)


def knn_change(before: Neighbors, after: Neighbors) -> np.ndarray:
    """Give the share of each point's neighbours that are others than before: (n,) float32 in [0, 1].

    0 where a point has no neighbours at all. Both are of the same points and the same k.
    """
    stayed = [len(np.intersect1d(a[a >= 0], b[b >= 0])) for a, b in zip(before.indices, after.indices, strict=True)]
    count = np.maximum((before.indices >= 0).sum(axis=1), 1)
    changed = 1 - np.array(stayed, dtype=np.float32) / count.astype(np.float32)
    return np.where((before.indices >= 0).any(axis=1), changed, 0).astype(np.float32)


def label_agreement(neighbors: Neighbors, labels: Sequence[str]) -> float:
    """Give the share of all neighbours that have the label of their point, in [0, 1].

    Args:
        neighbors: Of n points.
        labels: (n,) one each; "" stands for an unknown label, such points do not count, nor do they as neighbours.

    Returns:
        NaN if no point with a label has a neighbour with one.

    Raises:
        DataError: If there is not one label per point.
    """
    names = np.asarray(labels, dtype=object)
    if len(names) != len(neighbors.indices):
        raise DataError(f"Every point needs one label; got {len(neighbors.indices)} points and {len(names)} labels.")
    known = names != ""
    usable = (neighbors.indices >= 0) & known[:, None] & known[neighbors.indices]
    same = names[neighbors.indices] == names[:, None]
    return float(same[usable].mean()) if usable.any() else float("nan")


def _unit(vectors: np.ndarray) -> np.ndarray:
    array = check_vectors(vectors)
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    return (array / np.where(norms > 0, norms, 1)).astype(np.float32)


def _members(groups: Sequence[str | int] | None, number: int) -> list[np.ndarray]:
    if groups is None:
        return [np.arange(number)]
    if len(groups) != number:
        raise DataError(f"Every vector needs a group; got {number} vectors and {len(groups)} groups.")
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _top(unit: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Give indices and cosines of the k nearest others, (n, k) each."""
    import torch  # its product and selection use all cores; numpy's selection uses one

    table = torch.from_numpy(unit)
    found, values = [], []
    step = max(1, CHUNK_CELLS // len(unit))
    for start in range(0, len(unit), step):
        part = table[start : start + step] @ table.T
        rows = torch.arange(len(part))
        part[rows, rows + start] = -torch.inf
        best = part.topk(k, dim=1)
        found.append(best.indices.numpy())
        values.append(best.values.clamp(-1, 1).numpy())
    return np.concatenate(found), np.concatenate(values)
