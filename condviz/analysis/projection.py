"""Maps: embeddings before and after conditioning in two or three dimensions, laid over each other.

Paper: McInnes et al. 2018, "UMAP", arXiv:1802.03426; umap-learn does the work. Differs from its defaults: neighbours
are exact (products of matrices), the start is the PCA and not the spectral layout, and equal rows are placed once.
Distances between clusters on such a map are no evidence: impurity and neighbours are measured in the original space.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes

from condviz.analysis.impurity import check_vectors
from condviz.analysis.map_result import Projection, ProjectionConfig
from condviz.analysis.neighbors import nearest
from condviz.errors import DataError, require

Progress = Callable[[int, int], None]

FEW_POINTS = 5
"""Below this UMAP has no neighbourhoods to keep, and the PCA is shown."""
LONG_EPOCHS, SHORT_EPOCHS, LONG_POINTS = 500, 200, 500
"""Rounds of optimization up to and above so many points; umap-learn changes at 10,000. Above 500 points waiting costs
more than the last rounds improve: see the trustworthiness in benchmarks/projection.py."""

# Two of umap-learn's functions are compiled for several threads; run at once by two visitors, some of numba's
# threading layers end the process.
_graph_lock = threading.Lock()


def project(
    before: np.ndarray, after: np.ndarray, config: ProjectionConfig | None = None, *, progress: Progress | None = None
) -> Projection:
    """Lay out embeddings before and after conditioning. The same input gives the same map on every run.

    Args:
        before, after: Shape (n, d) and (n, e), finite. Cosine counts: rows are scaled to length 1 first.
        config: How; the default is UMAP in two dimensions.
        progress: Told (done, total) rounds; may raise to stop.

    Raises:
        DataError: If the rows do not match, there is none, or one is not finite.
        MissingExtraError: If scikit-learn or umap-learn is not installed.
    """
    config = config or ProjectionConfig()
    sides = [_scaled(before), _scaled(after)]
    number = len(sides[0])
    if number != len(sides[1]):
        raise DataError(f"Both maps need the same points; got {number} before and {len(sides[1])} after.")
    distinct = [_distinct(side) for side in sides]
    fewest = min(len(rows) for rows, _ in distinct)
    notes = []
    if config.method == "umap" and fewest < FEW_POINTS:
        config = replace(config, method="pca")
        notes.append(f"UMAP needs at least {FEW_POINTS} different points, there are {fewest}; this is the PCA.")
    elif config.method == "umap" and fewest < config.num_neighbors:
        notes.append(f"Fewer points than neighbours: {fewest} different points, so {fewest} neighbours were used.")
    maps = []
    for turn, (rows, places) in enumerate(distinct):
        layout = _pca(rows, config.dimensions)
        if config.method == "umap":
            layout = _umap(rows, layout, config, progress=_share(progress, turn))
        maps.append(_standard(layout[places]))
    rotation, _ = orthogonal_procrustes(maps[1], maps[0])
    return Projection(maps[0].astype(np.float32), (maps[1] @ rotation).astype(np.float32), config, tuple(notes))


def warm_up() -> None:
    """Let numba compile what UMAP needs, which takes seconds once per process; for a thread at the start.

    Raises:
        MissingExtraError: If umap-learn is not installed.
    """
    points = np.random.default_rng(0).standard_normal((40, 8))
    for dimensions in (2, 3):
        project(points, points[::-1], ProjectionConfig(dimensions=dimensions))


def _scaled(vectors: np.ndarray) -> np.ndarray:
    array = check_vectors(vectors)
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    return array / np.where(norms > 0, norms, 1)


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the rows that differ, in order of appearance, and the place of each row among them."""
    first: dict[bytes, int] = {}
    places = [first.setdefault(row.tobytes(), len(first)) for row in rows]
    _, kept = np.unique(places, return_index=True)
    return rows[kept], np.array(places)


def _standard(layout: np.ndarray) -> np.ndarray:
    centred = layout.astype(np.float64) - layout.mean(axis=0)
    spread = np.sqrt(np.square(centred).sum(axis=1).mean())
    return centred / spread if spread > 1e-12 else np.zeros_like(centred)


def _pca(rows: np.ndarray, dimensions: int) -> np.ndarray:
    """Give the first axes, (n, q) float64; axes that the rows do not have are 0."""
    if len(rows) == 1:  # scikit-learn divides by n - 1
        return np.zeros((1, dimensions))
    number = min(dimensions, *rows.shape)
    solver = "covariance_eigh" if len(rows) > rows.shape[1] else "full"
    found = require("sklearn.decomposition", "app").PCA(number, svd_solver=solver).fit_transform(rows)
    return np.pad(found, ((0, 0), (0, dimensions - number)))


def _umap(rows: np.ndarray, start: np.ndarray, config: ProjectionConfig, *, progress: Progress | None) -> np.ndarray:
    umap = require("umap.umap_", "app")
    random = require("sklearn.utils", "app").check_random_state(config.seed)
    neighbors = min(config.num_neighbors, len(rows))
    near = nearest(rows, neighbors - 1)
    # umap-learn counts a point as its own first neighbour, at distance 0.
    indices = np.column_stack([np.arange(len(rows), dtype=np.int32), near.indices])
    distances = np.column_stack([np.zeros(len(rows), dtype=np.float32), 1 - near.cosines])
    with _graph_lock:
        graph, *_ = umap.fuzzy_simplicial_set(
            rows, neighbors, random, "cosine", knn_indices=indices, knn_dists=distances
        )
    a, b = umap.find_ab_params(1.0, config.min_dist)
    layout, _ = umap.simplicial_set_embedding(
        rows,
        graph,
        n_components=config.dimensions,
        initial_alpha=1.0,
        a=a,
        b=b,
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=LONG_EPOCHS if len(rows) <= LONG_POINTS else SHORT_EPOCHS,
        init=umap.noisy_scale_coords(start, random),
        random_state=random,
        metric="cosine",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
        tqdm_kwds=_watched(progress),
    )
    return layout


def _share(progress: Progress | None, turn: int) -> Progress | None:
    """Make of the progress of one of two maps that of both."""
    return None if progress is None else lambda done, total: progress(turn * total + done, 2 * total)


class _Line:
    """Stands in for the screen that umap-learn's progress bar is written to."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def write(self, text: str) -> None:
        done, _, total = text.strip().partition("/")
        if done.isdigit() and total.isdigit():
            self.progress(int(done), int(total))

    def flush(self) -> None:
        pass


def _watched(progress: Progress | None) -> dict[str, Any]:
    """Give the settings of the bar; an error raised by `progress` ends the optimization."""
    if progress is None:
        return {"disable": True}
    return {"disable": False, "file": _Line(progress), "bar_format": "{n_fmt}/{total_fmt}", "mininterval": 0.2}
