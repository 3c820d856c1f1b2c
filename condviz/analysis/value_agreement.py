"""Do sentences with the same value lie together under one condition? Needs the values, for instance tags of scenes.

Impurity of conditions only says that projections of different conditions lie apart, which different matrices give
almost for free. This asks what a reader hopes to see: "three people" near "three people" under "the number of people".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from condviz.analysis.impurity import kmeans_impurity
from condviz.analysis.neighbors import label_agreement, nearest
from condviz.errors import DataError

NEAREST = 3
"""Neighbours asked: values of scenes often have no more than five sentences in a group."""


@dataclass(frozen=True)
class ValueAgreement:
    """Values within one condition, in one set of embeddings.

    Attributes:
        condition: The condition.
        num_points: Points whose value is known.
        num_values: Values they have.
        agreement: Share of the nearest neighbours (`NEAREST`, same condition) with the same value, in [0, 1].
        chance: What random neighbours give.
        impurity: Of K-means clusters against values, K = number of values; nats.
        impurity_chance: The same with values shuffled.
        p_value: Share of the shuffles that are as pure.
    """

    condition: str
    num_points: int
    num_values: int
    agreement: float
    chance: float
    impurity: float
    impurity_chance: float
    p_value: float

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON."""
        return asdict(self)


def value_agreement(
    embeddings: np.ndarray,
    conditions: Sequence[str],
    values: Sequence[str],
    *,
    seeds: Sequence[int] = tuple(range(5)),
    num_shuffles: int = 200,
) -> tuple[ValueAgreement, ...]:
    """Measure every condition apart, among its own points.

    Args:
        embeddings: Shape (n, d), finite.
        conditions: (n,) condition of each.
        values: (n,) value of each, "" where unknown; such points are left out.
        seeds: Of K-means.
        num_shuffles: Of the baseline.

    Returns:
        One row per condition with at least two known values, in order of appearance.

    Raises:
        DataError: If the lengths differ, or an embedding is not finite.
    """
    if not len(embeddings) == len(conditions) == len(values):
        found = f"{len(embeddings)} vectors, {len(conditions)} conditions and {len(values)} values"
        raise DataError(f"Every vector needs one condition and one value; got {found}.")
    rows = []
    for condition in dict.fromkeys(conditions):
        chosen = [i for i, name in enumerate(conditions) if name == condition and values[i]]
        labels = [values[i] for i in chosen]
        counts = np.unique(labels, return_counts=True)[1]
        if len(counts) < 2:
            continue
        own = np.asarray(embeddings)[chosen]
        clustered = kmeans_impurity(own, labels, seeds=seeds, num_shuffles=num_shuffles)
        rows.append(
            ValueAgreement(
                condition=condition,
                num_points=len(labels),
                num_values=len(counts),
                agreement=label_agreement(nearest(own, min(NEAREST, len(labels) - 1)), labels),
                chance=float((counts * (counts - 1)).sum() / (len(labels) * (len(labels) - 1))),
                impurity=clustered.mean,
                impurity_chance=clustered.chance,
                p_value=clustered.p_value,
            )
        )
    return tuple(rows)
