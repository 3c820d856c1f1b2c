"""Make a map: encode the points, lay them out, and measure both spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condviz.analysis.condition_matrices import describe_matrices
from condviz.analysis.geometry import isotropy
from condviz.analysis.impurity import check_vectors, kmeans_impurity
from condviz.analysis.map_points import MapPoints
from condviz.analysis.map_result import EmbeddingMap, Side
from condviz.analysis.neighbors import knn_change, nearest
from condviz.analysis.projection import Progress, ProjectionConfig, project
from condviz.analysis.value_agreement import value_agreement
from condviz.errors import CondvizError, ConfigError, DataError, require
from condviz.methods.base import ConditionalEncoder, ConditionalScorer
from condviz.types import ModelInfo

NEIGHBORS = 10
"""Of the neighbours panel and of the drift."""
MAX_GROUPS = 50
"""Conditions whose impurity is measured; K-means with more clusters takes minutes."""
MANY = 2000
"""Points above which K-means runs with 3 seeds instead of 10."""
SILHOUETTE_SAMPLE = 2000
VALUE = "value"
"""Column of a table that holds the value of each sentence under its condition."""


@dataclass(frozen=True)
class Embedded:
    """Points as vectors.

    Attributes:
        before: (n, d) float32, the sentence without the condition.
        after: (n, d) float32, the sentence under its condition.
    """

    before: np.ndarray
    after: np.ndarray


def check_model(model: ConditionalScorer) -> ConditionalEncoder:
    """Give the model if a map can be made with it.

    Raises:
        ConfigError: If it gives no vectors, or none that depend on the condition.
    """
    if not isinstance(model, ConditionalEncoder):
        raise ConfigError(
            f"{model.info.name} gives a score for three texts and no vector for a sentence, so it has no map. "
            "Choose a bi- or tri-encoder, CSR, Hyper-CL or CASE."
        )
    if model.name == "unconditional":
        raise ConfigError(
            f"{model.info.name} does not read the condition: before and after are the same. Choose another."
        )
    return model


def embed_points(model: ConditionalScorer, points: MapPoints, *, progress: Progress | None = None) -> Embedded:
    """Encode every sentence without and with its condition.

    Args:
        model: Any that gives vectors.
        points: What to encode.
        progress: Told (done, total) of what is not in the cache; may raise to stop.

    Raises:
        ConfigError: If the model has no map.
        DataError: If a vector is not finite.
    """
    encoder = check_model(model)
    distinct = {text: index for index, text in enumerate(dict.fromkeys(points.texts))}
    plain = encoder.encode_sentences(list(distinct), progress=progress)
    before = plain[[distinct[text] for text in points.texts]]
    after = encoder.encode(list(points.texts), list(points.conditions), progress=progress)
    for name, vectors in (("without the condition", before), ("under its condition", after)):
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise DataError(
                f"{model.info.name} gives a vector that is not finite for {points.texts[bad[0]][:60]!r} {name}. "
                "Leave the sentence out, or load the model in float32."
            )
    return Embedded(before, after)


def measure_side(
    vectors: np.ndarray, points: MapPoints, *, num_clusters: int | None = None, num_neighbors: int = NEIGHBORS
) -> Side:
    """Measure one space; what cannot be measured is explained and takes nothing else down.

    K-means and silhouette go by direction (rows scaled to length 1), as the score of all these models is a cosine.

    Args:
        vectors: Shape (n, d).
        points: The points behind them.
        num_clusters: K; None takes the number of conditions.
        num_neighbors: k.
    """
    near = nearest(vectors, num_neighbors, groups=points.conditions if points.crossed else None)
    side, problems = Side(near), {}

    def attempt(name: str, measure: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            return measure()
        except CondvizError as error:
            problems[name] = str(error)
            return None

    clustered = attempt("impurity", lambda: _impurity(vectors, points, num_clusters))
    spread = attempt("isotropy", lambda: isotropy(vectors))
    outline = attempt("silhouette", lambda: _silhouette(vectors, points.conditions))
    values = attempt("values", lambda: _values(vectors, points)) or ()
    return replace(
        side,
        clusters=clustered.labels.astype(np.int32) if clustered else None,
        impurity=clustered.to_dict() if clustered else None,
        isotropy={
            "mean_cosine": spread.mean_cosine,
            "std_cosine": spread.std_cosine,
            "ipc": spread.ipc,
            "directions": spread.num_directions,
        }
        if spread
        else None,
        silhouette=outline,
        values=tuple(row.to_dict() for row in values),
        problems=problems,
    )


def build_map(
    model: ConditionalScorer,
    points: MapPoints,
    config: ProjectionConfig | None = None,
    *,
    num_clusters: int | None = None,
    progress: Progress | None = None,
) -> EmbeddingMap:
    """Make the whole map at once; arguments and errors as `embed_points`, `measure_side` and `project`."""
    embedded = embed_points(model, points, progress=progress)
    weights = describe_matrices(model, points.groups)
    frame = start_map(model.info, points, embedded, weights=weights, num_clusters=num_clusters)
    return finish_map(frame, embedded, config or ProjectionConfig(), progress=progress)


def start_map(
    info: ModelInfo,
    points: MapPoints,
    embedded: Embedded,
    *,
    dimensions: int = 2,
    weights: Mapping[str, Any] | None = None,
    num_clusters: int | None = None,
) -> EmbeddingMap:
    """Measure both spaces and lay them out by the PCA, which is there at once.

    Args:
        info: The model.
        points: What was encoded.
        embedded: The vectors.
        dimensions: 2 or 3.
        weights: From `describe_matrices`.
        num_clusters: K; None takes the number of conditions.
    """
    layout = project(embedded.before, embedded.after, ProjectionConfig("pca", dimensions))
    before, after = (
        measure_side(vectors, points, num_clusters=num_clusters) for vectors in (embedded.before, embedded.after)
    )
    return EmbeddingMap(
        model={"name": info.name, "title": info.title, "revision": info.revision, "trained": info.trained,
               "method": info.method},
        points=points,
        projection=layout,
        before=before,
        after=after,
        drift=knn_change(before.neighbors, after.neighbors),
        weights=weights,
        control=_control(embedded.before, points, num_clusters),
        notes=(*points.notes, *_seeds_note(points), *layout.notes),
    )  # fmt: skip


def finish_map(
    frame: EmbeddingMap, embedded: Embedded, config: ProjectionConfig, *, progress: Progress | None = None
) -> EmbeddingMap:
    """Lay the same points out by another method; arguments and errors as `project`."""
    if config == frame.projection.config:
        return frame
    layout = project(embedded.before, embedded.after, config, progress=progress)
    kept = tuple(note for note in frame.notes if note not in frame.projection.notes)
    return replace(frame, projection=layout, notes=(*kept, *layout.notes))


def _control(before: np.ndarray, points: MapPoints, num_clusters: int | None) -> dict[str, float] | None:
    """Measure what a random matrix per condition gives: different matrices alone set conditions apart."""
    if len(points.texts) > MANY or not 2 <= len(points.groups) <= MAX_GROUPS:
        return None
    generator = np.random.default_rng(0)
    turned = np.array(before, dtype=np.float64)
    conditions = np.asarray(points.conditions)
    for group in points.groups:
        own = conditions == group
        turned[own] = turned[own] @ generator.standard_normal((turned.shape[1], turned.shape[1]))
    try:
        found = _impurity(turned, points, num_clusters)
    except CondvizError:
        return None
    return {"mean": found.mean, "std": found.std}


def _impurity(vectors: np.ndarray, points: MapPoints, num_clusters: int | None) -> Any:  # noqa: ANN401
    groups = len(points.groups)
    if groups < 2:
        raise DataError("Impurity compares conditions, and there is only one. Add a second condition.")
    if groups > MAX_GROUPS:
        raise DataError(f"There are {groups:,} conditions; impurity is measured for at most {MAX_GROUPS}.")
    seeds = range(3 if len(points.texts) > MANY else 10)
    return kmeans_impurity(_unit(vectors), points.conditions, num_clusters=num_clusters, seeds=seeds)


def _values(vectors: np.ndarray, points: MapPoints) -> Any:  # noqa: ANN401
    if VALUE not in points.columns:
        return ()
    return value_agreement(_unit(vectors), points.conditions, points.columns[VALUE])


def _silhouette(vectors: np.ndarray, conditions: Sequence[str]) -> float:
    groups, counts = np.unique(conditions, return_counts=True)
    if not 2 <= len(groups) < len(conditions) or counts.max() < 2:
        raise DataError("The silhouette needs at least two conditions, and one with two sentences or more.")
    metrics = require("sklearn.metrics", "app")
    size = SILHOUETTE_SAMPLE if len(conditions) > SILHOUETTE_SAMPLE else None
    unit = _unit(vectors)
    return float(
        metrics.silhouette_score(unit, np.asarray(conditions), metric="cosine", sample_size=size, random_state=0)
    )


def _unit(vectors: np.ndarray) -> np.ndarray:
    array = check_vectors(vectors)
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    return array / np.where(norms > 0, norms, 1)


def _seeds_note(points: MapPoints) -> list[str]:
    return [f"Above {MANY:,} points, K-means runs with 3 seeds instead of 10."] if len(points.texts) > MANY else []
