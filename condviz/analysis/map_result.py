"""A map as it was made: settings, coordinates, clusters, neighbours and geometry, as plain data that fits into JSON.

Loads nothing but numpy: the page shows a stored map before anything else is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from condviz.analysis.map_points import MapPoints
from condviz.errors import ConfigError

Method = Literal["umap", "pca"]
DIGITS = 4
"""Of coordinates and cosines in JSON."""


@dataclass(frozen=True)
class Neighbors:
    """The nearest others of each point.

    Attributes:
        indices: (n, k) int32, nearest first; -1 where there are fewer than k others.
        cosines: (n, k) float32 in [-1, 1]; NaN where the index is -1.
    """

    indices: np.ndarray
    cosines: np.ndarray


@dataclass(frozen=True)
class ProjectionConfig:
    """How a map is made; kept with it.

    Attributes:
        method: "umap" or "pca".
        dimensions: 2 or 3.
        num_neighbors: Neighbours that UMAP keeps together, the point itself among them; at least 2.
        min_dist: Smallest distance of points on UMAP's map, in [0, 1).
        seed: Of UMAP's optimization; the PCA needs none.
    """

    method: Method = "umap"
    dimensions: int = 2
    num_neighbors: int = 15
    min_dist: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ConfigError(f"method must be one of {', '.join(get_args(Method))}, got {self.method!r}.")
        if self.dimensions not in (2, 3):
            raise ConfigError(f"dimensions must be 2 or 3, got {self.dimensions!r}.")
        if not 2 <= self.num_neighbors <= 200:
            raise ConfigError(f"num_neighbors must be from 2 to 200, got {self.num_neighbors!r}.")
        if not 0 <= self.min_dist < 1:
            raise ConfigError(f"min_dist must be at least 0 and below 1, got {self.min_dist!r}.")
        if not 0 <= self.seed < 2**32:
            raise ConfigError(f"seed must be from 0 to 4294967295, got {self.seed!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Projection:
    """One map before and one after conditioning.

    Both are centred on 0 and have the same spread (root of the mean squared distance to the centre: 1, or 0 if all
    points coincide). The second is turned, and mirrored if need be, to lie as close to the first as it can.

    Attributes:
        before, after: (n, q) float32, row i is point i in both.
        config: How it was really made: a method that could not be used is replaced, and `notes` say why.
        notes: What the reader should know.
    """

    before: np.ndarray
    after: np.ndarray
    config: ProjectionConfig
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Side:
    """Embeddings of all points, before or after conditioning, measured in their own space.

    Attributes:
        neighbors: The nearest others of each point.
        clusters: (n,) K-means cluster of each point, or None where impurity does not apply.
        impurity: `KMeansImpurity.to_dict()`, or None.
        isotropy: `Isotropy.to_dict()`, or None.
        silhouette: Mean silhouette of the conditions (cosine), in [-1, 1], or None.
        values: `ValueAgreement.to_dict()` per condition; empty where no values are known.
        problems: Name of a measure -> why it is not there.
    """

    neighbors: Neighbors
    clusters: np.ndarray | None = None
    impurity: Mapping[str, Any] | None = None
    isotropy: Mapping[str, Any] | None = None
    silhouette: float | None = None
    values: tuple[Mapping[str, Any], ...] = ()
    problems: Mapping[str, str] | None = None

    def measures(self) -> dict[str, Any]:
        """Give what was measured as plain JSON, without single points."""
        return {
            "impurity": self.impurity,
            "isotropy": self.isotropy,
            "silhouette": self.silhouette,
            "values": [dict(row) for row in self.values],
            "problems": dict(self.problems or {}),
        }


@dataclass(frozen=True)
class EmbeddingMap:
    """One set of points under one model.

    Attributes:
        model: Name, title, revision and whether it is trained.
        points: The sentences and conditions.
        projection: Coordinates before and after.
        before, after: What was measured in the original spaces.
        drift: (n,) float32 in [0, 1]: share of the neighbours that changed.
        weights: What is known of the matrices W_c (`condviz.analysis.condition_matrices`), or None.
        control: Impurity (mean, std, nats) with a random matrix per condition in place of the model, or None.
        notes: What the reader should know.
    """

    model: Mapping[str, Any]
    points: MapPoints
    projection: Projection
    before: Side
    after: Side
    drift: np.ndarray
    weights: Mapping[str, Any] | None = None
    control: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON that `from_dict` reads; coordinates and cosines with four digits."""
        return {
            "model": dict(self.model),
            "texts": list(self.points.texts),
            "conditions": list(self.points.conditions),
            "columns": {name: list(cells) for name, cells in self.points.columns.items()},
            "crossed": self.points.crossed,
            "projection": {
                **self.projection.config.to_dict(),
                "before": _rows(self.projection.before),
                "after": _rows(self.projection.after),
            },
            "before": _pack(self.before),
            "after": _pack(self.after),
            "drift": _rows(self.drift),
            "weights": self.weights,
            "control": self.control,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> EmbeddingMap:
        """Read what `to_dict` wrote."""
        columns = {name: tuple(cells) for name, cells in record["columns"].items()}
        points = MapPoints(tuple(record["texts"]), tuple(record["conditions"]), columns, record["crossed"])
        made = dict(record["projection"])
        before, after = (np.array(made.pop(side), dtype=np.float32) for side in ("before", "after"))
        return cls(
            model=record["model"],
            points=points,
            projection=Projection(before, after, ProjectionConfig(**made)),
            before=_unpack(record["before"]),
            after=_unpack(record["after"]),
            drift=np.array(record["drift"], dtype=np.float32),
            weights=record["weights"],
            control=record["control"],
            notes=tuple(record["notes"]),
        )


def _rows(values: np.ndarray) -> list:
    return np.asarray(values, dtype=np.float64).round(DIGITS).tolist()


def _pack(side: Side) -> dict[str, Any]:
    cosines = [[None if index < 0 else value for index, value in zip(*row, strict=True)] for row in _pairs(side)]
    return {
        **side.measures(),
        "clusters": None if side.clusters is None else side.clusters.tolist(),
        "neighbors": side.neighbors.indices.tolist(),
        "cosines": cosines,
    }


def _pairs(side: Side) -> list[tuple[Sequence[int], Sequence[float]]]:
    return list(zip(side.neighbors.indices.tolist(), _rows(side.neighbors.cosines), strict=True))


def _unpack(record: Mapping[str, Any]) -> Side:
    cosines = [[np.nan if value is None else value for value in row] for row in record["cosines"]]
    return Side(
        neighbors=Neighbors(np.array(record["neighbors"], dtype=np.int32), np.array(cosines, dtype=np.float32)),
        clusters=None if record["clusters"] is None else np.array(record["clusters"], dtype=np.int32),
        impurity=record["impurity"],
        isotropy=record["isotropy"],
        silhouette=record["silhouette"],
        values=tuple(record["values"]),
        problems=record["problems"],
    )
