"""Maps: sentences before and after conditioning in two dimensions, and what holds in the original space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval

from condviz.analysis import geometry
from condviz.analysis.geometry import Neighbors, ValueAgreement, unit_rows
from condviz.analysis.impurity import KMeansImpurity, kmeans_impurity
from condviz.analysis.layout import Layout, Method, Topic, name_clusters, part, project
from condviz.analysis.points import MAX_POINTS, NEIGHBORS, MapPoints, points_from_table, points_from_texts
from condviz.errors import CondvizError, ConfigError, DataError, check_count
from condviz.spec import Field, Key, checked
from condviz.types import Progress, Record, Result, table

if TYPE_CHECKING:
    import pandas as pd

    from condviz.methods.base import ConditionalScorer

MAX_GROUPS = 50
"""Conditions whose impurity is measured; K-means with more clusters takes minutes."""
MANY = 2000
"""Points above which K-means runs with 3 seeds of one start each, instead of 10 of ten."""
NO_SILHOUETTE = (
    "The silhouette needs at least two conditions, and one with two sentences or more; of more than "
    f"{geometry.SILHOUETTE_SAMPLE:,} points, in a random sample of so many."
)
DIGITS = 4
"""Of coordinates and cosines in JSON."""
TITLES = {"umap": "UMAP", "pca": "PCA"}
NEAR, DIST = Key("near", ("n_neighbors", "num_neighbors", "neighbors")), Key("dist", ("min_dist",))
BUILT_IN_COLOURS = ("condition", "cluster", "change")


@dataclass(frozen=True)
class Measures(Record):
    """How the vectors of one side lie in their own space; plain JSON, None where a measure does not apply."""

    clusters: np.ndarray | None
    """(n,) K-means cluster of each point."""
    impurity: Mapping[str, Any] | None
    """Fields of `KMeansImpurity`."""
    isotropy: Mapping[str, Any] | None
    """Fields of `Isotropy`."""
    silhouette: float | None
    """Mean silhouette of the conditions by cosine, in [-1, 1]."""
    values: tuple[Mapping[str, Any], ...]
    """Per condition with values: "condition", and impurity of K-means clusters against values ("impurity", "chance",
    "p_value"; nats)."""
    problems: Mapping[str, str]
    """Name of a measure -> why it is missing."""
    left_out = ("clusters",)


@dataclass(frozen=True)
class Side:
    """All points before or after conditioning."""

    layout: np.ndarray
    """(n, 2) float32, centred on 0, root of the mean squared distance to the centre 1 (0 if all coincide)."""
    neighbors: Neighbors
    values: tuple[ValueAgreement, ...] = ()
    """Whether sentences with the same value are neighbours; a row per condition, empty without values."""
    topics: tuple[Topic, ...] = ()
    measures: Measures | None = None
    """Impurity, isotropy and the like, or None where they were not asked for."""

    @property
    def agreement(self) -> float | None:
        """Share of the nearest neighbours with the same value, over all conditions, or None without values."""
        return _pooled(self.values, "agreement")

    @property
    def chance(self) -> float | None:
        """What `agreement` would be with random neighbours."""
        return _pooled(self.values, "chance")


@dataclass(frozen=True)
class EmbeddingMap(Result):
    """One set of points under one model."""

    model: Mapping[str, Any]
    """Name, title, revision, method, and whether it is trained."""
    points: MapPoints
    made: Layout
    """How it was really made: a method that could not be used is replaced, and `notes` say why."""
    before: Side
    after: Side
    """Without and with the condition; row i is point i in both. `after.layout` is turned, and mirrored if need be,
    to lie as close to `before.layout` as it can."""
    change: np.ndarray
    """(n,) float32 in [0, 1]: share of the nearest neighbours, `points.compared`, that are others than before."""
    colour: str = "condition"
    """What pictures are coloured by: "condition", "cluster", "change" or a column."""
    matrices: Mapping[str, Any] | None = None
    """What is known of W_c (`geometry.describe_matrices`), or None."""
    random_matrices: Mapping[str, float] | None = None
    """Impurity ("mean", "std"; nats) with a random matrix per condition in place of the model."""
    notes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    """Conditions of which most sentences may say nothing, where that was asked."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; coordinates and cosines with four digits."""
        sides = {"before": self.before, "after": self.after}
        return {
            "model": dict(self.model),
            "texts": list(self.points.texts),
            "conditions": list(self.points.conditions),
            "columns": {name: list(cells) for name, cells in self.points.columns.items()},
            "value": self.points.value,
            "crossed": self.points.crossed,
            "projection": asdict(self.made) | {name: _rounded(side.layout) for name, side in sides.items()},
            **{name: _pack(side) for name, side in sides.items()},
            "change": _rounded(self.change),
            "colour": self.colour,
            "matrices": self.matrices,
            "random_matrices": self.random_matrices,
            "notes": list(self.notes),
            "untold": list(self.untold),
        }

    def with_measures(self, other: EmbeddingMap) -> EmbeddingMap:
        """Return this map with what was measured for another of the same points and model."""
        return replace(
            self,
            before=replace(self.before, measures=other.before.measures),
            after=replace(self.after, measures=other.after.measures),
            matrices=other.matrices,
            random_matrices=other.random_matrices,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row per point: text, condition, columns, coordinates and clusters before and after, change."""
        frame = table({"text": self.points.texts, "condition": self.points.conditions})
        for name, cells in self.points.columns.items():
            frame[name if name not in frame else f"{name} (column)"] = cells
        for name, side in (("before", self.before), ("after", self.after)):
            frame[f"x_{name}"], frame[f"y_{name}"] = side.layout.T
            if side.measures is not None and side.measures.clusters is not None:
                frame[f"cluster_{name}"] = side.measures.clusters
        return frame.assign(neighbours_changed=self.change)


@checked
def build_map(
    model: ConditionalScorer | str,
    sentences: Sequence[str] | pd.DataFrame | MapPoints,
    conditions: Sequence[str] | None = None,
    *,
    method: Annotated[Method, Doc("How vectors become points"), Field("Method", titles=TITLES)] = "umap",
    n_neighbors: Annotated[int, Interval(ge=2, le=200), Doc("Neighbours that UMAP keeps together"), NEAR] = 15,
    min_dist: Annotated[float, Interval(ge=0, lt=1), Doc("How close points may lie by UMAP"), DIST] = 0.1,
    seed: Annotated[int, Interval(ge=0, le=2**32 - 1), Doc("Of UMAP: the same one gives the same map")] = 0,
    clusters: Annotated[int | None, Interval(ge=1), Doc("K behind the impurity; else the number of conditions")] = None,
    colour: Annotated[str | None, Doc("condition, cluster, change or a column; else the values"), Key("by")] = None,
    measures: bool = True,
    progress: Progress | None = None,
) -> EmbeddingMap:
    """Lay sentences out before and after conditioning, and measure both spaces.

    Args:
        model: A model that gives vectors, or its name.
        sentences: At least three different ones; or a table (a frame, or lists by column) with a column of texts, and
            optionally of conditions ("condition") and of values ("value"); or points that were read from one.
        conditions: Every sentence is put under each of these. None takes the conditions of the table.
        method, n_neighbors, min_dist, seed, clusters, colour: As the signature says of each.
        measures: Whether impurity, isotropy and W_c are measured; neighbours and values always are.
        progress: Called with (done, total), several times a second; may raise to stop.

    Raises:
        ConfigError: If the model gives no vectors that depend on a condition, or a setting is not allowed.
        DataError: If a text cannot be used, there are too few or too many, or a vector is not finite.
        MissingExtraError: If scikit-learn or umap-learn is not installed.
    """
    made = Layout(method, n_neighbors, min_dist, seed)
    points = _as_points(sentences, conditions)
    if clusters is not None:
        check_count("clusters", clusters, 1, len(points.texts))
    shown = colour or points.value or "condition"
    if shown not in (*BUILT_IN_COLOURS, *points.columns):
        raise ConfigError(f"colour must be one of {', '.join((*BUILT_IN_COLOURS, *points.columns))}; got {shown!r}.")
    if isinstance(model, str):
        from condviz.models.registry import load  # figures of maps do without torch

        model = load(model)
    model.check_able("encodes", "conditional")
    before, after = _embed(model, points, part(progress, 0, 0.6))
    layouts, made, notes = project(before, after, made, progress=part(progress, 0.6, 0.8))
    sides = []
    first, of = points.copies
    once = points.take(first)
    groups = once.conditions if points.within else None
    for turn, (vectors, layout) in enumerate(zip((before, after), layouts, strict=True)):
        step = part(progress, 0.8 + 0.08 * turn, 0.88 + 0.08 * turn)
        near = geometry.nearest(vectors[first], NEIGHBORS, groups=groups, progress=part(step, 0, 0.2))
        values = geometry.value_agreement(vectors[first], once.conditions, once.values) if once.values else ()
        topics = name_clusters(layout, points.texts)
        found = measure_space(vectors, points, clusters=clusters, progress=part(step, 0.2, 1)) if measures else None
        sides.append(Side(layout, near.with_copies(first, of), values, topics, found))
    info = model.info
    rest = part(progress, 0.96, 1)
    if measures and len(points.texts) > MANY:
        notes = (*notes, f"Above {MANY:,} points, K-means runs with 3 seeds instead of 10.")
    return EmbeddingMap(
        model={name: getattr(info, name) for name in ("name", "title", "revision", "trained", "method")},
        points=points,
        made=made,
        before=sides[0],
        after=sides[1],
        change=geometry.knn_change(sides[0].neighbors, sides[1].neighbors, points.compared),
        colour=shown,
        matrices=geometry.describe_matrices(model, points.groups, progress=part(rest, 0, 0.5)) if measures else None,
        random_matrices=_random_matrices(before, points, clusters, part(rest, 0.5, 1)) if measures else None,
        notes=(*points.notes, *notes),
    )


def measure_space(
    vectors: np.ndarray, points: MapPoints, *, clusters: int | None = None, progress: Progress | None = None
) -> Measures:
    """Measure one space, (n, d); what cannot be measured is explained and takes nothing else down.

    K-means, of as many clusters as there are conditions unless it is said, and silhouette go by direction (rows scaled
    to length 1), as the score of all these models is a cosine.
    """
    unit, problems = unit_rows(vectors), {}
    first, _ = points.copies

    def attempt(name: str, measure: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            return measure()
        except CondvizError as error:
            problems[name] = str(error)
            return None

    clustered = attempt("impurity", lambda: _impurity(unit, points, clusters, part(progress, 0, 0.6)))
    spread = attempt("isotropy", lambda: geometry.isotropy(vectors, progress=part(progress, 0.6, 0.7)))
    apart = geometry.silhouette(unit, np.asarray(points.conditions), metric="cosine")
    if apart is None:
        problems["silhouette"] = NO_SILHOUETTE
    return Measures(
        clusters=clustered.labels.astype(np.int32) if clustered else None,
        impurity=clustered.to_dict() if clustered else None,
        isotropy=asdict(spread) if spread else None,
        silhouette=apart,
        values=_value_impurity(unit[first], points.take(first), part(progress, 0.7, 1)) if points.values else (),
        problems=problems,
    )


def _as_points(sentences: Sequence[str] | pd.DataFrame | MapPoints, conditions: Sequence[str] | None) -> MapPoints:
    if isinstance(sentences, MapPoints):
        return sentences
    if conditions is not None and not isinstance(conditions, str):
        conditions = list(conditions)
    one = sentences[0] if isinstance(sentences, list | tuple) and sentences else sentences
    if isinstance(one, Mapping) or hasattr(one, "columns") or hasattr(one, "column_names"):
        return points_from_table(cast("Any", sentences), conditions=conditions, max_points=MAX_POINTS)
    return points_from_texts(cast("Sequence[str]", sentences), conditions or ())


def _embed(encoder: ConditionalScorer, points: MapPoints, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of every sentence without and under its condition, (n, d) float32 each."""
    before = encoder.encode_sentences(list(points.texts), progress=part(progress, 0, 0.4))
    after = encoder.encode(list(points.texts), list(points.conditions), progress=part(progress, 0.4, 1))
    for name, vectors in (("without the condition", before), ("under its condition", after)):
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise DataError(
                f"{encoder.info.name} gives a vector that is not finite for {points.texts[bad[0]][:60]!r} {name}. "
                "Leave the sentence out, or load the model in float32."
            )
    return before, after


def _impurity(unit: np.ndarray, points: MapPoints, clusters: int | None, progress: Progress | None) -> KMeansImpurity:
    groups = len(points.groups)
    if groups < 2:
        raise DataError("Impurity compares conditions, and there is only one. Add a second condition.")
    if groups > MAX_GROUPS:
        raise DataError(f"There are {groups:,} conditions; impurity is measured for at most {MAX_GROUPS}.")
    effort = {"seeds": range(3), "num_starts": 1} if len(unit) > MANY else {}
    return kmeans_impurity(unit, points.conditions, num_clusters=clusters, progress=progress, **effort)


def _value_impurity(unit: np.ndarray, points: MapPoints, progress: Progress | None) -> tuple[Mapping[str, Any], ...]:
    parts = geometry.by_condition(unit, points.conditions, points.values)
    rows = []
    for number, (condition, own, labels) in enumerate(parts):
        if len(set(labels)) > MAX_GROUPS:
            continue
        effort: dict[str, Any] = {"seeds": range(3), "num_starts": 1} if len(own) > MANY else {"seeds": range(5)}
        share = part(progress, number / len(parts), (number + 1) / len(parts))
        found = kmeans_impurity(own, labels, progress=share, **effort)
        rows.append({"condition": condition, "impurity": found.mean, "chance": found.chance, "p_value": found.p_value})
    return tuple(rows)


def _random_matrices(
    before: np.ndarray, points: MapPoints, clusters: int | None, progress: Progress | None
) -> dict[str, float] | None:
    """Measure the impurity that a random matrix per condition gives."""
    if len(points.texts) > MANY or not 2 <= len(points.groups) <= MAX_GROUPS:
        return None
    try:
        found = _impurity(unit_rows(geometry.turn_at_random(before, points.conditions)), points, clusters, progress)
    except CondvizError:
        return None
    return {"mean": found.mean, "std": found.std}


def _pooled(rows: Sequence[ValueAgreement], name: str) -> float | None:
    if not rows:
        return None
    return float(np.average([getattr(row, name) for row in rows], weights=[row.num_points for row in rows]))


def _rounded(values: np.ndarray) -> list:
    return np.asarray(values, dtype=np.float64).round(DIGITS).tolist()


def _pack(side: Side) -> dict[str, Any]:
    cosines = [[None if value != value else value for value in row] for row in _rounded(side.neighbors.cosines)]
    found = side.measures
    return {
        "neighbors": side.neighbors.indices.tolist(),
        "cosines": cosines,
        "agreement": [asdict(row) for row in side.values],
        "topics": [asdict(topic) | {"words": list(topic.words)} for topic in side.topics],
        "clusters": None if found is None or found.clusters is None else found.clusters.tolist(),
        **(found.to_dict() if found else {}),
    }
