"""Layouts: vectors before and after conditioning in two dimensions, the second turned onto the first; named clusters.

Paper: McInnes et al. 2018, "UMAP", arXiv:1802.03426; umap-learn does the work. Differs from its defaults: neighbours
are exact (products of matrices), the start is the PCA and not the spectral layout, and equal rows are placed once.
Distances between clusters on such a map are no evidence: neighbours, values and impurity are measured before it.

Names of clusters: c-TF-IDF, Grootendorst 2022, "BERTopic", arXiv:2203.05794, with HDBSCAN (Campello et al. 2013) on
the map.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import numpy as np

from condviz.analysis.geometry import nearest, principal_axes, unit_rows
from condviz.errors import DataError, require
from condviz.types import Progress

Method = Literal["umap", "pca"]

FEW_POINTS = 5
"""Below this UMAP has no neighbourhoods to keep, and the PCA is shown."""
LONG_EPOCHS, SHORT_EPOCHS, LONG_POINTS = 500, 200, 500
"""Rounds of optimization up to and above so many points; umap-learn changes at 10,000. Above 500 points waiting costs
more than the last rounds improve: see the trustworthiness in benchmarks/projection.py."""
ROUNDS = "_nb_optimize_layout_euclidean_single_epoch"
"""What umap-learn calls the function that computes one of them."""
UNCACHED = ("smooth_knn_dist", "compute_membership_strengths")
"""Functions of umap-learn that take five seconds to compile, and that it compiles anew in each process."""

# Functions that umap-learn compiles for several threads must not run at once in some of numba's threading layers, and
# two layouts at once would take longer for both visitors.
_one_layout = threading.Lock()


@dataclass(frozen=True)
class Layout:
    """How a map was made, by the options of `condviz.build_map`; kept with it."""

    method: Method
    n_neighbors: int
    min_dist: float
    seed: int


def project(
    before: np.ndarray, after: np.ndarray, made: Layout, *, progress: Progress | None = None
) -> tuple[tuple[np.ndarray, np.ndarray], Layout, tuple[str, ...]]:
    """Lay out embeddings before and after conditioning, the second turned onto the first.

    Args:
        before, after: Shape (n, d) and (n, e), finite. Cosine counts: rows are scaled to length 1 first.
        made: How.
        progress: Called with (done, total) rounds; may raise to stop.

    Returns:
        Both layouts, (n, 2) float32 each; how they were really made; notes.
    """
    from scipy.linalg import orthogonal_procrustes  # slow to import, and the start of the page does not need it

    distinct = []
    for side in (before, after):
        if progress is not None:
            progress(0, 1)
        distinct.append(_distinct(unit_rows(side)))
    if len(before) != len(after):
        raise DataError(f"Both maps need the same points; got {len(before)} before and {len(after)} after.")
    fewest = min(len(rows) for rows, _ in distinct)
    notes = []
    if made.method == "umap" and fewest < FEW_POINTS:
        made = replace(made, method="pca")
        notes.append(f"UMAP needs at least {FEW_POINTS} different points, there are {fewest}; this is the PCA.")
    elif made.method == "umap" and fewest <= made.n_neighbors:
        made = replace(made, n_neighbors=fewest - 1)
        few = f"A map of {fewest} different points is rough: each has {fewest - 1} neighbours to lie by (n_neighbors)."
        notes.append(few)
    layouts = []
    for turn, (rows, places) in enumerate(distinct):
        layout = principal_axes(rows)
        if made.method == "umap":
            layout = _umap(rows, layout, made, part(progress, turn / 2, (turn + 1) / 2))
        layouts.append(_standard(layout[places]))
    rotation, _ = orthogonal_procrustes(layouts[1], layouts[0])
    return (layouts[0].astype(np.float32), (layouts[1] @ rotation).astype(np.float32)), made, tuple(notes)


def warm_up() -> None:
    """Load what UMAP needs, or compile it, which takes numba half a minute once; for a thread at the start."""
    points = np.random.default_rng(0).standard_normal((40, 8))
    project(points, points[::-1], Layout("umap", 10, 0.1, 0))


def part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Return a callback for one stretch, from one share to another, of the whole work."""
    if progress is None:
        return None
    return lambda done, total: progress(round(1000 * (start + (end - start) * done / max(total, 1))), 1000)


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that differ, in order of appearance, and the place of each row among them."""
    first: dict[bytes, int] = {}
    places = [first.setdefault(hashlib.blake2b(row.tobytes(), digest_size=16).digest(), len(first)) for row in rows]
    _, kept = np.unique(places, return_index=True)
    return rows[kept], np.array(places)


def _umap(rows: np.ndarray, start: np.ndarray, made: Layout, progress: Progress | None) -> np.ndarray:
    umap = _import_compiled("umap")
    near = nearest(
        rows, made.n_neighbors - 1, progress=None if progress is None else lambda done, total: progress(0, 1)
    )
    # umap-learn counts a point as its own first neighbour, at distance 0.
    indices = np.column_stack([np.arange(len(rows), dtype=np.int32), near.indices])
    distances = np.column_stack([np.zeros(len(rows), dtype=np.float32), 1 - near.cosines])
    # A little noise sets points apart that the PCA puts into one place, and gives width to an axis that has none.
    noise = np.random.default_rng(made.seed).normal(scale=1e-4, size=start.shape)
    reducer = umap.UMAP(
        n_neighbors=made.n_neighbors,
        min_dist=made.min_dist,
        metric="cosine",
        n_epochs=LONG_EPOCHS if len(rows) <= LONG_POINTS else SHORT_EPOCHS,
        init=10 * start / max(np.abs(start).max(), 1e-12) + noise,
        random_state=made.seed,
        n_jobs=1,
        precomputed_knn=(indices, distances, None),
        force_approximation_algorithm=True,  # below 4,096 points it would compare all of them once more
        tqdm_kwds=_watched(progress),
    )
    warnings.filterwarnings("ignore", r"precomputed_knn\[2\]")  # new points are never added to a map
    while not _one_layout.acquire(timeout=0.25):
        if progress is not None:
            progress(0, 1)  # whoever waits may leave
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        _prepare(umap)
        return reducer.fit_transform(rows)
    finally:
        _one_layout.release()
        if torch:  # numba's first loop gives this thread all processors, on which torch would compute from then on
            torch.set_num_threads(threads)


@functools.cache
def _prepare(umap: ModuleType) -> None:
    """Set how functions are compiled that nothing has called yet; another version may have other names for them."""
    rounds = getattr(umap.layouts, ROUNDS, None)
    if rounds is not None:  # else other threads wait for Python
        rounds.targetoptions["nogil"] = True
    for name in UNCACHED:
        if hasattr(umap.umap_, name):
            getattr(umap.umap_, name).enable_caching()


def _import_compiled(module: str) -> ModuleType:
    """Import what numba compiles; on a read-only file system numba gets a temporary folder for its cache."""
    try:
        return require(module, "viz")
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        numba = require("numba", "viz")
        folder = tempfile.mkdtemp(prefix="condviz-numba-")  # of this process alone: numba loads what lies there as code
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        numba.config.CACHE_DIR = folder
        return require(module, "viz")


def _watched(progress: Progress | None) -> dict[str, Any]:
    """Return settings of umap-learn's progress bar: every line goes to a callback, whose error ends the layout."""
    if progress is None:
        return {"disable": True}

    def write(text: str) -> None:
        done, _, total = text.strip().partition("/")
        if done.isdigit() and total.isdigit():
            progress(int(done), int(total))

    file = SimpleNamespace(write=write, flush=lambda: None)
    return {"disable": False, "file": file, "bar_format": "{n_fmt}/{total_fmt}", "mininterval": 0.2}


def _standard(layout: np.ndarray) -> np.ndarray:
    centred = layout.astype(np.float64) - layout.mean(axis=0)
    spread = np.sqrt(np.square(centred).sum(axis=1).mean())
    return centred / spread if spread > 1e-12 else np.zeros_like(centred)


# ---- clusters on a map named by the words that set them apart --------------------------------------------------------

MOST_POINTS = 10_000
"""HDBSCAN of more points takes seconds and cannot be stopped."""
MAX_TOPICS = 12
"""More labels would cover each other and the points."""
TIMES = 2
"""A word that names a cluster is so many times as frequent in it as in the others."""
# Scikit-learn's stop words hold number words; under "the number of people" they are what matters.
_NUMBERS = (
    "one two three four five six eight nine ten eleven twelve fifteen twenty forty fifty sixty hundred first third"
)
_KEPT = frozenset(_NUMBERS.split())


@dataclass(frozen=True)
class Topic:
    """A cluster on a map."""

    words: tuple[str, ...]
    """Its most distinctive words, best first."""
    x: float
    y: float
    """Its topmost point, above which a label covers none of its points."""
    size: int


def name_clusters(layout: np.ndarray, texts: Sequence[str]) -> tuple[Topic, ...]:
    """Find at most `MAX_TOPICS` clusters on a map, and name them by words that are frequent in each and rare outside.

    The largest come first; there are none of fewer than two clusters, or of more than `MOST_POINTS` points.
    """
    smallest = max(4, round(np.sqrt(len(layout)) / 2))
    if not 2 * smallest <= len(layout) <= MOST_POINTS:
        return ()
    clusters = require("sklearn.cluster", "viz").HDBSCAN(min_cluster_size=smallest, copy=True).fit(layout).labels_
    number = int(clusters.max()) + 1
    if number < 2:
        return ()
    # A sentence under several conditions is one: its words would stand in several sentences.
    numbers, different = zip(*dict.fromkeys(zip(clusters.tolist(), texts, strict=True)), strict=True)
    topics = []
    for cluster, words in enumerate(distinctive_words(different, np.array(numbers))):
        if words:
            places = layout[clusters == cluster].astype(np.float64)
            x, y = places[places[:, 1].argmax()].round(4).tolist()
            topics.append(Topic(words, x, y, len(places)))
    return tuple(sorted(topics, key=lambda topic: -topic.size)[:MAX_TOPICS])


def distinctive_words(
    texts: Sequence[str], clusters: np.ndarray, *, num_words: int = 3, share: float = 0.25
) -> list[tuple[str, ...]]:
    """Return the words that are frequent in each cluster and rare outside, best first, `num_words` at most.

    Each occurs in two sentences of its cluster or more, and in this share of them. The clusters are numbers of n texts,
    from 0; negative for none.
    """
    number = int(clusters.max()) + 1
    text = require("sklearn.feature_extraction.text", "viz")
    counter = text.CountVectorizer(stop_words=sorted(text.ENGLISH_STOP_WORDS - _KEPT))
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no text has a word that is none of the stop words
        return [()] * number
    names = counter.get_feature_names_out()
    members = np.equal.outer(np.arange(number), clusters).astype(int)
    totals, spread = members @ counts, members @ (counts > 0)
    part = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1)
    weights = part * np.log1p(totals.sum() / number / np.maximum(totals.sum(axis=0), 1))
    # A word that is about as frequent elsewhere names nothing.
    sizes = members.sum(axis=1, keepdims=True)
    elsewhere = (spread.sum(axis=0) - spread) / np.maximum(sizes.sum() - sizes, 1)
    weights[(spread < np.maximum(2, share * sizes)) | (spread < TIMES * elsewhere * sizes)] = 0
    best = [
        [index for index in np.argsort(-row, kind="stable")[:num_words] if row[index] > row.max() / 2]
        for row in weights
    ]
    return [tuple(names[found].tolist()) for found in best]
