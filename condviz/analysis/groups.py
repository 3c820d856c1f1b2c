"""Divide a corpus by a condition, or by two: groups of texts that are alike under it, named and measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval

from condviz.analysis.geometry import silhouette
from condviz.analysis.layout import distinctive_words
from condviz.analysis.search import embed_rows
from condviz.data.texts import check_condition, check_conditions
from condviz.errors import DataError, require
from condviz.evaluation.metrics import ALPHA
from condviz.models.registry import load
from condviz.spec import Field, checked
from condviz.store.corpus import Corpus
from condviz.store.disk import open_corpus
from condviz.types import TOLD, ModelInfo, Progress, Record, Result, table

if TYPE_CHECKING:
    import pandas as pd

    from condviz.methods import ConditionalScorer

MAX_VALUES = 50
"""A column with more values is no division of the corpus."""
SHUFFLES = 400
"""Of the values of a column, and of the groups of a table."""
DRAWS, CLOUD = 25, 400
"""Clouds without groups, and their points: structure has to beat all of them."""
COMPONENTS = 16
"""Principal components that HDBSCAN sees: in more dimensions all distances are alike, and it takes minutes."""
NAME_WORDS, NAMED_SHARE = 4, 0.06
TOLD_TEXTS = 60
"""Texts that are read to see whether they tell a condition."""
MOST_GROUPS, GROUPED = 50, 4
"""Groups of a corpus, and texts that there have to be for each: of fewer, most groups would hold a single text."""
NumGroups = Annotated[
    int, Interval(ge=2, le=MOST_GROUPS), Doc(f"How many groups k-means makes, at most one for every {GROUPED} texts")
]
Method = Annotated[
    Literal["kmeans", "hdbscan"],
    Doc("HDBSCAN finds the number of groups by itself, and leaves out texts that belong to none"),
    Field(titles={"kmeans": "k-means", "hdbscan": "HDBSCAN"}),
]


@dataclass(frozen=True)
class Group(Record):
    """Texts that are alike under a condition."""

    words: tuple[str, ...]
    """What its texts say more often than others, best first; may be empty."""
    rows: tuple[int, ...]
    """Rows of its texts in the source, those nearest to the middle first."""
    texts: tuple[str, ...]
    points: tuple[tuple[float, float], ...]
    """Where they are on a map: the first two principal components of the corpus under the condition."""
    computed = "name", "size", "medoid"

    @property
    def size(self) -> int:
        """Number of its texts."""
        return len(self.rows)

    @property
    def medoid(self) -> str:
        """The text in its middle."""
        return self.texts[0]

    @property
    def name(self) -> str:
        """Its distinctive words, or the text in its middle."""
        return ", ".join(self.words) or self.medoid


@dataclass(frozen=True)
class Groups(Result):
    """A corpus divided by a condition."""

    condition: str
    model: ModelInfo
    groups: tuple[Group, ...]
    """The largest first."""
    silhouette: float
    """How clearly they are apart, in [-1, 1]; 0 for none."""
    chance: float
    """The highest silhouette of `DRAWS` clouds of points with the same spread and no groups at all."""
    purity: Mapping[str, tuple[float, float]]
    """Column -> share of texts that have the most frequent value of their group, and what that share stays below if
    the values are shuffled, 19 times in 20."""
    left_over: Group | None = None
    """Texts that are in no group: HDBSCAN leaves some, k-means none."""
    told: float = 1.0
    """Share of the texts, judged by a sample, that say something about the condition: of less than half, groups mean
    little."""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per text: its row in the source, the number of its group (0 for none), and the text."""
        found = [*enumerate(self.groups, start=1), *([(0, self.left_over)] if self.left_over else [])]
        return table(
            [
                {"row": row, "group": number, "name": group.name if number else "", "text": text}
                for number, group in found
                for row, text in zip(group.rows, group.texts, strict=True)
            ]
        )


@dataclass(frozen=True)
class CrossTable(Result):
    """The groups under one condition against those under another."""

    first: Groups
    second: Groups
    counts: tuple[tuple[int, ...], ...]
    """Texts in each group of the first that are in each group of the second."""
    information: float
    """Adjusted mutual information: 1 where each tells the other, about 0 where they have nothing to do with each
    other."""
    p: float
    """How often groups that are dealt out at random have as much to do with each other."""

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each pair of groups that share texts."""
        return table(
            [
                {self.first.condition: one.name, self.second.condition: other.name, "texts": count}
                for one, row in zip(self.first.groups, self.counts, strict=True)
                for other, count in zip(self.second.groups, row, strict=True)
                if count
            ]
        )


@checked
def group_by(
    store: str | Path | Corpus,
    condition: str,
    *,
    method: Method = "kmeans",
    groups: NumGroups = 8,
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> Groups:
    """Divide a corpus into groups of texts that are alike under a condition.

    Args:
        store: Folder of a store, an open corpus, or "scenes" for the one that ships.
        condition: The condition.
        method, groups: As the signature says. HDBSCAN is that of Campello et al. 2013.
        model: A name or a loaded model; None for the one whose vectors are stored.
        progress: Told (texts read, texts) where the model reads every text again; may raise to stop.

    Raises:
        DataError: If the condition cannot be used, or the corpus is too small or too large.
        ConfigError: If `groups` or `method` is not allowed.
    """
    condition = check_condition(condition, "the condition")
    corpus, loaded = open_with_model(store, model, fewest=3)
    vectors = embed_rows(loaded, corpus, condition, progress=progress)
    labels = cluster(vectors, groups) if method == "kmeans" else _find_dense(vectors)
    rows = corpus.rows(range(len(corpus)))
    points = _project(vectors, 2)

    def describe(number: int, words: tuple[str, ...] = ()) -> Group:
        members = np.flatnonzero(labels == number)
        members = members[np.argsort(-(vectors[members] @ vectors[members].mean(axis=0)), kind="stable")]
        chosen = [rows[place] for place in members]
        return Group(
            words, tuple(row["row"] for row in chosen), tuple(row["text"] for row in chosen),
            tuple(map(tuple, points[members].tolist())),
        )  # fmt: skip

    inside = np.flatnonzero(labels >= 0)
    texts = [row["text"] for row in rows]
    names = distinctive_words(texts, labels, num_words=NAME_WORDS, share=NAMED_SHARE) if len(inside) else []
    chance = _by_chance(vectors, lambda drawn: cluster(drawn, len(names)) if method == "kmeans" else _find_dense(drawn))
    found = sorted((describe(number, words) for number, words in enumerate(names)), key=lambda group: -group.size)
    purity = {name: _purity(labels[inside], [rows[place][name] for place in inside]) for name in corpus.columns}
    return Groups(
        condition, loaded.info, tuple(found), silhouette(vectors[inside], labels[inside]) or 0.0, chance,
        {name: share for name, share in purity.items() if share is not None},
        describe(-1) if len(inside) < len(labels) else None, told_share(loaded, texts, condition),
    )  # fmt: skip


def told_share(model: ConditionalScorer, texts: Sequence[str], condition: str) -> float:
    """Return the share in [0, 1] of some `TOLD_TEXTS` of the texts that say something about a condition."""
    return float((model.applies(texts[:: -(-len(texts) // TOLD_TEXTS)], [condition]) >= TOLD).mean())


@checked
def cross_table(
    store: str | Path | Corpus,
    first: str,
    second: str,
    *,
    method: Method = "kmeans",
    groups: NumGroups = 6,
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> CrossTable:
    """Divide a corpus by two conditions, and count how the groups meet.

    Args:
        store, groups, method, model, progress: As in `group_by`.
        first, second: The conditions.

    Raises:
        DataError, ConfigError: As in `group_by`; also if the conditions are the same.
    """
    pair = [
        group_by(store, condition, groups=groups, method=method, model=model, progress=progress)
        for condition in check_conditions([first, second])
    ]
    labels = [{row: number for number, group in enumerate(found.groups) for row in group.rows} for found in pair]
    shared = [(number, labels[1][row]) for row, number in labels[0].items() if row in labels[1]]
    met = Counter(shared)
    counts = tuple(tuple(met[one, other] for other in range(len(pair[1].groups))) for one in range(len(pair[0].groups)))
    score = require("sklearn.metrics", "viz").adjusted_mutual_info_score
    information = float(score(*zip(*shared, strict=True))) if shared else 0.0
    chance = _p_of_table(np.array(shared, dtype=np.int64).reshape(-1, 2))
    return CrossTable(pair[0], pair[1], counts, information, chance)


def _p_of_table(shared: np.ndarray) -> float:
    """Return how often shuffling one of two labels, (n, 2), makes a table as far from independent (G-test)."""

    def mutual(one: np.ndarray, other: np.ndarray) -> float:
        table = np.bincount(one * (shared.max(initial=0) + 1) + other)
        return float((table * np.log(np.maximum(table, 1))).sum())  # the margins are always the same

    draw, (one, other) = np.random.default_rng(0), shared.T
    drawn = np.array([mutual(one, draw.permutation(other)) for _ in range(SHUFFLES)])
    return float((1 + (drawn >= mutual(one, other) - 1e-9).sum()) / (SHUFFLES + 1))


def _purity(labels: np.ndarray, cells: Sequence[Any]) -> tuple[float, float] | None:
    """Return the share of texts with the top value of their group, and what 95 % of shuffled values stay below."""
    values, codes = np.unique([str(cell) for cell in cells if cell is not None], return_inverse=True)
    known = labels[[cell is not None for cell in cells]]
    if not 2 <= len(values) <= min(MAX_VALUES, len(codes) - 1):  # a number of its own for each text says nothing
        return None
    size = (labels.max() + 1, len(values))

    def share(of: np.ndarray) -> float:
        return float(np.bincount(known * len(values) + of, minlength=size[0] * size[1]).reshape(size).max(axis=1).sum())

    draw = np.random.default_rng(0)
    drawn = [share(draw.permutation(codes)) for _ in range(SHUFFLES)]
    return share(codes) / len(codes), float(np.quantile(drawn, 1 - ALPHA)) / len(codes)


def _by_chance(vectors: np.ndarray, divide: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the highest silhouette of clouds of normal points with the variances of the principal components."""
    some = vectors[np.random.default_rng(0).permutation(len(vectors))[:CLOUD]]
    spreads = np.linalg.svd(some - some.mean(axis=0), compute_uv=False) / np.sqrt(len(some))
    draw, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        drawn = draw.standard_normal((len(some), len(spreads))) * spreads
        labels = divide(drawn)
        found.append(silhouette(drawn[labels >= 0], labels[labels >= 0]) or 0.0)
    return max(found)


def _find_dense(vectors: np.ndarray) -> np.ndarray:
    """Return the group of each vector, (n,); -1 for none."""
    smallest = max(2, min(5, len(vectors) // 2), len(vectors) // 100)
    dense = require("sklearn.cluster", "viz").HDBSCAN(min_cluster_size=smallest, copy=True)
    return dense.fit(_project(vectors, COMPONENTS)).labels_


def _project(vectors: np.ndarray, size: int) -> np.ndarray:
    """Return the first principal components; of vectors that have no more, the vectors."""
    if min(vectors.shape) <= size:
        return vectors
    return require("sklearn.decomposition", "viz").PCA(size, random_state=0).fit_transform(vectors)


# ---- what twins and the sorting of conditions share ------------------------------------------------------------------

MOST_TEXTS = 20_000
"""Every text is compared with many others; of more, a part has to be chosen with a store of its own."""
MOST_READ = 5_000
"""The same for a model that reads every text again."""


def open_with_model(
    store: str | Path | Corpus, model: str | ConditionalScorer | None, *, fewest: int, bounded: bool = True
) -> tuple[Corpus, ConditionalScorer]:
    """Open a corpus, of `fewest` texts or more and, where it is `bounded`, not too many, with the model that reads it.

    Raises ConfigError if the model has no vectors under a condition.
    """
    loaded = None if model is None else load(model)
    corpus = open_corpus(store, loaded)
    loaded = loaded or corpus.model
    loaded.check_able("encodes", "conditional")
    if loaded.separable:
        corpus.identity.check(loaded)
    most = MOST_TEXTS if loaded.separable else MOST_READ
    if len(corpus) < fewest or (bounded and len(corpus) > most):
        allowed = f"{fewest:,} to {most:,}" if bounded else f"at least {fewest:,}"
        other = "Take more." if len(corpus) < fewest else "Take fewer."
        raise DataError(f"There are {len(corpus):,} texts; this takes {allowed} with {loaded.info.title}. {other}")
    return corpus, loaded


def cluster(vectors: np.ndarray, groups: int) -> np.ndarray:
    """Return the group of each vector, (n,): at most so many groups, and one for every `GROUPED` vectors, but two."""
    count = min(groups, max(2, len(vectors) // GROUPED))
    found = require("sklearn.cluster", "viz").KMeans(count, n_init=4, random_state=0).fit(vectors)
    return np.unique(found.labels_, return_inverse=True)[1]  # equal texts can leave a group empty


def spread(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation, the latter never 0."""
    return float(values.mean()), max(float(values.std()), 1e-6)
