"""Nearest neighbours by cosine in the original space: exact, from products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from condviz.analysis.geometry import unit_rows
from condviz.data.texts import fold
from condviz.evaluation.metrics import Verdict, judge_drawn
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.analysis.points import MapPoints

CHUNK_CELLS = 2**23
"""Cosines held at once: 32 MB."""
NEAREST = 3
"""Neighbours that are asked for their value: values of scenes often have no more than five sentences in a group."""

FEWEST = 10
"""Fewer points with values say nothing of neighbours."""
SHUFFLES, SHUFFLED_CELLS = 400, 2**20
"""Of the values, and how many are held at once."""


@dataclass(frozen=True)
class Neighbors:
    """The nearest others of each point."""

    indices: np.ndarray
    """(n, k) int32, nearest first; -1 where there are fewer than k others."""
    cosines: np.ndarray
    """(n, k) float32 in [-1, 1]; NaN where the index is -1."""

    def with_copies(self, first: np.ndarray, of: np.ndarray) -> Neighbors:
        """Return the neighbours of all n points, if these are those of the points `first` (see `MapPoints.copies`)."""
        found = np.where(self.indices >= 0, first[self.indices], -1)
        return Neighbors(found[of].astype(np.int32), self.cosines[of])


@dataclass(frozen=True)
class ValueAgreement:
    """Whether sentences with the same value are neighbours under one condition."""

    condition: str
    num_points: int
    """Points whose value is known."""
    num_values: int
    """Values they have."""
    agreement: float
    """Share of the nearest neighbours (`NEAREST`, same condition) with the same value, in [0, 1]."""
    chance: float
    """What random neighbours give."""


def nearest(
    vectors: np.ndarray, k: int, *, groups: Sequence[str | int] | None = None, progress: Progress | None = None
) -> Neighbors:
    """Find the k nearest others of every vector.

    Compared with all, not with a sample: at 10,000 vectors of 384 numbers the product of matrices takes less time than
    the approximate search of umap-learn (NN-descent), see `python -m benchmarks.projection`.

    Args:
        vectors: Shape (n, d), finite. A row of zeros has the cosine 0 with everything.
        k: How many, at least 1.
        groups: Group of each row; others are then looked for in its group only.
        progress: Told the rows done, several times a second.
    """
    unit = unit_rows(vectors).astype(np.float32)
    indices = np.full((len(unit), k), -1, dtype=np.int32)
    cosines = np.full((len(unit), k), np.nan, dtype=np.float32)
    done = 0
    for rows in _members(groups, len(unit)):
        number = min(k, len(rows) - 1)
        if number:
            own = unit[rows]
            step = max(1, CHUNK_CELLS // len(own))
            for start in range(0, len(own), step):
                if progress is not None:
                    progress(done + start, len(unit))
                part = rows[start : start + step]
                found, values = _top(own, start, start + step, number)
                indices[part, :number], cosines[part, :number] = rows[found], values
        done += len(rows)
    return Neighbors(indices, cosines)


def knn_change(before: Neighbors, after: Neighbors) -> np.ndarray:
    """Return the share of each point's neighbours that are others than before: (n,) float32 in [0, 1].

    0 where a point has no neighbours at all. Both are of the same points and the same k.
    """
    stayed = [len(np.intersect1d(a[a >= 0], b[b >= 0])) for a, b in zip(before.indices, after.indices, strict=True)]
    count = np.maximum((before.indices >= 0).sum(axis=1), 1)
    changed = 1 - np.array(stayed, dtype=np.float32) / count.astype(np.float32)
    return np.where((before.indices >= 0).any(axis=1), changed, 0).astype(np.float32)


def label_agreement(neighbors: Neighbors, labels: Sequence[str]) -> float:
    """Return the share of all neighbours, of which there have to be some, with the label of their point, in [0, 1]."""
    names = np.asarray(labels, dtype=object)
    same = names[neighbors.indices] == names[:, None]
    return float(same[neighbors.indices >= 0].mean())


def value_agreement(
    embeddings: np.ndarray, conditions: Sequence[str], values: Sequence[str]
) -> tuple[ValueAgreement, ...]:
    """Measure every condition apart, among its own points.

    Impurity of conditions only says that projections of different conditions lie apart, which different matrices give
    almost for free. This asks what a reader hopes to see: "three people" near "three people" under "the number of
    people".

    Args:
        embeddings: Shape (n, d), finite.
        conditions: (n,) condition of each.
        values: (n,) value of each, "" where unknown; such points are left out.

    Returns:
        One row per condition with at least two known values, in order of appearance.
    """
    return tuple(
        ValueAgreement(
            condition=condition,
            num_points=len(labels),
            num_values=len(set(labels)),
            agreement=label_agreement(nearest(own, NEAREST), labels),
            chance=_chance(labels),
        )
        for condition, own, labels in by_condition(embeddings, conditions, values)
    )


def judge_values(before: Neighbors, after: Neighbors, points: MapPoints) -> tuple[Verdict, Verdict]:
    """Judge whether sentences with the same value are neighbours, against values shuffled within each condition.

    Args:
        before, after: Nearest others of n points without and with the condition; no copies.
        points: The points, of whose copies the first counts.

    Returns:
        Of the share of the nearest neighbours (`NEAREST`, same condition) with the same value: how far it has risen,
        and how far it is above chance after conditioning. Both rest on the number of different sentences, as a
        sentence under several conditions is no further evidence.
    """
    _, places = np.unique(np.asarray(points.conditions, dtype=object).astype(str), return_inverse=True)
    codes = np.unique(np.asarray(points.values, dtype=object).astype(str), return_inverse=True)[1]
    known = np.zeros(len(codes), dtype=bool)
    known[points.copies[0]] = True
    known &= np.array(list(map(bool, points.values)))
    sides = []
    for side in (before, after):
        usable = (side.indices >= 0) & known[:, None] & known[side.indices] & (places[side.indices] == places[:, None])
        first = np.argsort(~usable, axis=1, kind="stable")[:, :NEAREST]
        indices, usable = (np.take_along_axis(cells, first, axis=1) for cells in (side.indices, usable))
        sides.append((indices, usable, np.maximum(usable.sum(axis=1), 1)))
    chosen = np.flatnonzero(np.all([usable.any(axis=1) for _, usable, _ in sides], axis=0))
    number = len({fold(points.texts[row]) for row in chosen})
    if number < FEWEST:
        few = Verdict("few", np.nan, None, None, number)
        return few, few

    def shares(labels: np.ndarray) -> list[np.ndarray]:
        """Return the share of neighbours with the same label, (draws, points), of either side for labels (draws, n)."""
        equal = (labels[:, indices] == labels[:, :, None] for indices, *_ in sides)
        same = ((one & usable).sum(axis=2) / count for one, (_, usable, count) in zip(equal, sides, strict=True))
        return [share[:, chosen] for share in same]

    own, drawn, draw = [share[0] for share in shares(codes[None])], [], np.random.default_rng(0)
    members = [np.flatnonzero((places == place) & known) for place in range(places.max() + 1)]
    step = max(1, SHUFFLED_CELLS // len(codes))
    for start in range(0, SHUFFLES, step):
        shuffled = np.tile(codes, (min(step, SHUFFLES - start), 1))
        for rows in members:
            shuffled[:, rows] = draw.permuted(shuffled[:, rows], axis=1)
        drawn.append(np.stack([share.mean(axis=1) for share in shares(shuffled)], axis=1))
    drawn = np.concatenate(drawn)
    rise, error = own[1] - own[0], 1 / np.sqrt(number)
    return (
        judge_drawn(float(rise.mean()), drawn[:, 1] - drawn[:, 0], number, error=float(rise.std()) * error),
        judge_drawn(float(own[1].mean()), drawn[:, 1], number, error=float(own[1].std()) * error),
    )


def by_condition(
    embeddings: np.ndarray, conditions: Sequence[str], values: Sequence[str]
) -> list[tuple[str, np.ndarray, list[str]]]:
    """Return (condition, vectors, values) of the points with a known value, of conditions with two values or more."""
    parts = []
    for condition in dict.fromkeys(conditions):
        chosen = [i for i, name in enumerate(conditions) if name == condition and values[i]]
        labels = [values[i] for i in chosen]
        if len(set(labels)) > 1:
            parts.append((condition, np.asarray(embeddings)[chosen], labels))
    return parts


def _chance(labels: Sequence[str]) -> float:
    counts = np.unique(labels, return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (len(labels) * (len(labels) - 1)))


def _members(groups: Sequence[str | int] | None, number: int) -> list[np.ndarray]:
    """Return the rows of each group, by one sort: with a condition per text there are thousands of groups."""
    if groups is None:
        return [np.arange(number)]
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _top(unit: np.ndarray, start: int, stop: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and cosines of the k nearest others of some rows, (rows, k) each."""
    import torch  # its product and selection use all cores; numpy's selection uses one

    table = torch.from_numpy(unit)
    part = table[start:stop] @ table.T
    rows = torch.arange(len(part))
    part[rows, rows + start] = -torch.inf
    best = part.topk(k, dim=1)
    return best.indices.numpy(), best.values.clamp(-1, 1).numpy()
