"""What a condition does to a corpus: groups, pairs that it tells apart, and which conditions sort it at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from condviz.analysis.compare import library
from condviz.analysis.search import MAX_HITS, embed_rows
from condviz.analysis.topics import distinctive_words
from condviz.data.texts import check_condition, check_conditions
from condviz.errors import ConfigError, DataError, require
from condviz.methods import ConditionalScorer
from condviz.models.registry import load
from condviz.store.corpus import Corpus, Progress
from condviz.store.demo import open_corpus
from condviz.types import TOLD, ModelInfo, Result, plain, table

if TYPE_CHECKING:
    import pandas as pd

MOST_TEXTS = 20_000
"""Every text is compared with many others; of more, a part has to be chosen with a store of its own."""
MOST_READ = 5_000
"""The same for a model that reads every text again."""
MOST_GROUPS = 50
MAX_VALUES = 50
"""A column with more values is no division of the corpus."""
NEIGHBOURS = 30
"""Pairs are looked for among so many nearest neighbours of each text."""
TRIED, FEWEST_TRIED = 40, 4
"""Conditions of the library that are tried on a corpus."""
READ, APPLYING = 100, 0.5
"""So many texts are read to see which conditions they tell; this share has to tell one for it to be tried."""
SAMPLE = 1_000
RANDOM_MATRICES = 8
COMPONENTS = 16
"""Principal components that HDBSCAN sees: in more dimensions all distances are alike, and it takes minutes."""
NAME_WORDS, NAMED_SHARE = 4, 0.06
Method = Literal["kmeans", "hdbscan"]


@dataclass(frozen=True)
class Group:
    """Texts that are alike under a condition.

    Attributes:
        words: What its texts say more often than others, best first; may be empty.
        rows: Rows of its texts in the source, those nearest to the middle first.
        texts: The texts.
        points: Where they are on a map: the first two principal components of the corpus under the condition.
    """

    words: tuple[str, ...]
    rows: tuple[int, ...]
    texts: tuple[str, ...]
    points: tuple[tuple[float, float], ...]

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
    """A corpus divided by a condition.

    Attributes:
        condition: The condition.
        model: The model.
        groups: The largest first.
        silhouette: How clearly they are apart, in [-1, 1]; 0 for none.
        purity: Column -> share of texts that have the most frequent value of their group, and that share by chance.
        left_over: Texts that are in no group: HDBSCAN leaves some, k-means none.
    """

    condition: str
    model: ModelInfo
    groups: tuple[Group, ...]
    silhouette: float
    purity: Mapping[str, tuple[float, float]]
    left_over: Group | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        groups = [
            plain(group) | {"name": group.name, "size": group.size, "medoid": group.medoid} for group in self.groups
        ]
        return super().to_dict() | {"groups": groups}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per text: its row in the source, the number of its group (0 for none), and the text."""
        found = [*enumerate(self.groups, start=1), *([(0, self.left_over)] if self.left_over else [])]
        return table(
            [
                {"row": row, "group": number, "name": group.name if number else "", "text": text}
                for number, group in found
                for row, text in zip(group.rows, group.texts, strict=True)
            ],
            columns=["row", "group", "name", "text"],
        )


@dataclass(frozen=True)
class CrossTable(Result):
    """The groups under one condition against those under another.

    Attributes:
        first, second: The groups.
        counts: Texts in each group of the first that are in each group of the second.
        information: Adjusted mutual information: 1 where each tells the other, about 0 where they have nothing to do
            with each other.
    """

    first: Groups
    second: Groups
    counts: tuple[tuple[int, ...], ...]
    information: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return super().to_dict() | {"first": self.first.to_dict(), "second": self.second.to_dict()}

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


@dataclass(frozen=True)
class Twin:
    """Two texts that are alike under one condition and different under another.

    Attributes:
        rows: Their rows in the source.
        texts: The texts.
        alike, different: Their similarity under the two conditions, in standard deviations above the mean pair.
    """

    rows: tuple[int, int]
    texts: tuple[str, str]
    alike: float
    different: float


@dataclass(frozen=True)
class Twins(Result):
    """Pairs of a corpus that two conditions see differently.

    Attributes:
        alike, different: The conditions.
        model: The model.
        pairs: The clearest first; no text is in two of them.
    """

    alike: str
    different: str
    model: ModelInfo
    pairs: tuple[Twin, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair."""
        return table(
            [
                {"row1": pair.rows[0], "row2": pair.rows[1], "text1": pair.texts[0], "text2": pair.texts[1],
                 "alike": pair.alike, "different": pair.different}
                for pair in self.pairs
            ]
        )  # fmt: skip


@dataclass(frozen=True)
class SortingCondition:
    """How well a condition sorts a corpus.

    Attributes:
        condition: The text.
        silhouette: Of the groups under it.
        random: The same under random matrices of the same shape, on average.
        deviations: How many standard deviations of those it is above them.
        applies: Share of the texts, of some `READ`, that tell it.
    """

    condition: str
    silhouette: float
    random: float
    deviations: float
    applies: float


@dataclass(frozen=True)
class SortingConditions(Result):
    """Conditions, ranked by how clearly they divide a corpus.

    Attributes:
        model: The model.
        texts: Texts that were looked at.
        conditions: The clearest first.
    """

    model: ModelInfo
    texts: int
    conditions: tuple[SortingCondition, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per condition."""
        return table([asdict(item) for item in self.conditions])


def group_by(
    store: str | Path | Corpus,
    condition: str,
    *,
    groups: int = 8,
    method: Method = "kmeans",
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> Groups:
    """Divide a corpus into groups of texts that are alike under a condition.

    Args:
        store: Folder of a store, an open corpus, or "scenes" for the one that ships.
        condition: The condition.
        groups: How many, 2 to `MOST_GROUPS`; HDBSCAN finds as many as there are.
        method: "kmeans", or "hdbscan" (Campello et al. 2013), which leaves out texts that belong to no group.
        model: A name or a loaded model; None for the one whose vectors are stored.
        progress: Told (texts read, texts) where the model reads every text again; may raise to stop.

    Raises:
        DataError: If the condition cannot be used, or the corpus is too small or too large.
        ConfigError: If `groups` or `method` is not allowed.
    """
    condition = check_condition(condition, "the condition")
    corpus, loaded = _open(store, model, fewest=3)
    _check_count("groups", groups, 2, MOST_GROUPS)
    if method not in ("kmeans", "hdbscan"):
        raise ConfigError(f'method must be "kmeans" or "hdbscan", got {method!r}.')
    vectors = embed_rows(loaded, corpus, condition, progress=progress)
    labels = _cluster(vectors, min(groups, len(corpus) - 1)) if method == "kmeans" else _find_dense(vectors)
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
    found = sorted((describe(number, words) for number, words in enumerate(names)), key=lambda group: -group.size)
    purity = {name: _purity(labels[inside], [rows[place][name] for place in inside]) for name in corpus.columns}
    return Groups(
        condition, loaded.info, tuple(found), _silhouette(vectors[inside], labels[inside]),
        {name: share for name, share in purity.items() if share is not None},
        describe(-1) if len(inside) < len(labels) else None,
    )  # fmt: skip


def cross_table(
    store: str | Path | Corpus,
    first: str,
    second: str,
    *,
    groups: int = 6,
    method: Method = "kmeans",
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
    counts = tuple(
        tuple(len(set(one.rows).intersection(other.rows)) for other in pair[1].groups) for one in pair[0].groups
    )
    labels = [dict(zip(*found.to_frame()[["row", "group"]].to_numpy().T, strict=True)) for found in pair]
    shared = [(labels[0][row], labels[1][row]) for row in labels[0] if labels[0][row] and labels[1][row]]
    score = require("sklearn.metrics", "app").adjusted_mutual_info_score
    return CrossTable(*pair, counts, float(score(*zip(*shared, strict=True))) if shared else 0.0)


def find_twins(
    store: str | Path | Corpus,
    alike: str,
    different: str,
    *,
    k: int = 20,
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> Twins:
    """Find pairs of texts that are alike under one condition and different under another.

    Args:
        store, model, progress: As in `group_by`.
        alike, different: The two conditions.
        k: Number of pairs, at most `MAX_HITS`.

    Raises:
        DataError: If a condition cannot be used, or the corpus is too small or too large.
        ConfigError: If k is not allowed.
    """
    alike, different = check_conditions([alike, different])
    _check_count("k", k, 1, MAX_HITS)
    corpus, loaded = _open(store, model, fewest=2)
    one, two = (embed_rows(loaded, corpus, text, progress=progress) for text in (alike, different))
    draw = np.random.default_rng(0).integers(len(corpus), size=(2, 5_000))
    draw = draw[:, draw[0] != draw[1]]
    scale = [_spread(np.einsum("ij,ij->i", rows[draw[0]], rows[draw[1]])) for rows in (one, two)]
    neighbours = require("sklearn.neighbors", "app").NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(corpus)))
    nearest = neighbours.fit(one).kneighbors(one, return_distance=False)
    first = np.repeat(np.arange(len(corpus)), nearest.shape[1])
    second = nearest.ravel()
    first, second = first[first < second], second[first < second]
    scores = [
        (np.einsum("ij,ij->i", rows[first], rows[second]) - mean) / spread
        for rows, (mean, spread) in zip((one, two), scale, strict=True)
    ]
    pairs, used = [], set()
    for place in np.argsort(scores[1] - scores[0], kind="stable"):
        both = int(first[place]), int(second[place])
        if used.isdisjoint(both):
            used.update(both)
            texts = corpus.rows(both)
            pairs.append(
                Twin(
                    tuple(row["row"] for row in texts), tuple(row["text"] for row in texts),
                    float(scores[0][place]), float(scores[1][place]),
                )
            )  # fmt: skip
            if len(pairs) == k:
                break
    return Twins(alike, different, loaded.info, tuple(pairs))


def rank_sorting_conditions(
    store: str | Path | Corpus,
    conditions: Sequence[str] | None = None,
    *,
    groups: int = 8,
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> SortingConditions:
    """Rank conditions by how clearly they divide a corpus: the silhouette of k-means groups, against random matrices.

    A condition is a projection; a random one of the same shape makes groups as well, with a silhouette of its own.

    Args:
        store, model: As in `group_by`; a method that encodes sentences and conditions apart.
        conditions: Those to try; None for those of the library that the texts tell, at most `TRIED`.
        groups: How many groups.
        progress: Told (conditions tried, conditions); may raise to stop.

    Raises:
        DataError: If a condition cannot be used, or the corpus is too small.
        ConfigError: If `groups` is not allowed, or the model has no such projection.
    """
    _check_count("groups", groups, 2, MOST_GROUPS)
    corpus, loaded = _open(store, model, fewest=2 * groups, bounded=False)
    if not loaded.separable:
        raise ConfigError(
            f"{loaded.info.name} reads every text again under each condition. Choose hyper-cl or a tri-encoder."
        )
    places = np.sort(np.random.default_rng(0).permutation(len(corpus))[:SAMPLE])
    vectors, norms = corpus.vectors(places)
    part = Corpus([""] * len(places), vectors, norms, corpus.identity)
    units = vectors.astype(np.float32)
    asked = check_conditions(conditions, max_conditions=max(len(conditions), 1)) if conditions else list(library())
    texts = [row["text"] for row in corpus.rows(places[:: max(1, len(places) // READ)])]
    told = (loaded.applies(texts, asked) >= TOLD).mean(axis=0)
    tried = np.arange(len(asked))
    if not conditions:  # those that most of the texts tell, in the order of the library
        best = np.argsort(-told, kind="stable")[:TRIED]
        tried = np.sort(best[: max(FEWEST_TRIED, int((told >= APPLYING).sum()))])
    size = embed_rows(loaded, part, asked[0]).shape[1]
    draw = np.random.default_rng(0)
    by_chance = [
        _divide(units @ draw.standard_normal((units.shape[1], size)).astype(np.float32), groups)
        for _ in range(RANDOM_MATRICES)
    ]
    mean, spread = _spread(np.array(by_chance))
    found = []
    for number, place in enumerate(tried, start=1):
        value = _divide(embed_rows(loaded, part, asked[place]), groups)
        found.append(SortingCondition(asked[place], value, mean, (value - mean) / spread, float(told[place])))
        if progress:
            progress(number, len(tried))
    found.sort(key=lambda item: -item.silhouette)
    return SortingConditions(loaded.info, len(places), tuple(found))


def _check_count(name: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{name} must be a whole number from {low} to {high:,}, got {value!r}.")


def _open(
    store: str | Path | Corpus, model: str | ConditionalScorer | None, *, fewest: int, bounded: bool = True
) -> tuple[Corpus, ConditionalScorer]:
    loaded = load(model) if isinstance(model, str) else model
    corpus = open_corpus(store, loaded)
    loaded = loaded or corpus.model
    if not loaded.conditional or not loaded.encodes:
        raise ConfigError(
            f"{loaded.info.name} has no vectors under a condition. Choose another, for instance hyper-cl."
        )
    if loaded.separable:
        corpus.identity.check(loaded)
    most = MOST_TEXTS if loaded.separable else MOST_READ
    if len(corpus) < fewest or (bounded and len(corpus) > most):
        allowed = f"{fewest:,} to {most:,}" if bounded else f"at least {fewest:,}"
        raise DataError(f"The corpus has {len(corpus):,} texts; {allowed} are allowed here with {loaded.info.name}.")
    return corpus, loaded


def _cluster(vectors: np.ndarray, groups: int) -> np.ndarray:
    """Return the group of each vector, (n,)."""
    found = require("sklearn.cluster", "app").KMeans(groups, n_init=4, random_state=0).fit(vectors)
    return np.unique(found.labels_, return_inverse=True)[1]  # equal texts can leave a group empty


def _find_dense(vectors: np.ndarray) -> np.ndarray:
    """Return the group of each vector, (n,); -1 for none."""
    smallest = max(2, min(5, len(vectors) // 2), len(vectors) // 100)
    dense = require("sklearn.cluster", "app").HDBSCAN(min_cluster_size=smallest, copy=True)
    return dense.fit(_project(vectors, COMPONENTS)).labels_


def _project(vectors: np.ndarray, size: int) -> np.ndarray:
    """Return the first principal components; of vectors that have no more, the vectors."""
    if min(vectors.shape) <= size:
        return vectors
    return require("sklearn.decomposition", "app").PCA(size, random_state=0).fit_transform(vectors)


def _silhouette(vectors: np.ndarray, labels: np.ndarray) -> float:
    if not 2 <= labels.max(initial=-1) + 1 < len(labels):
        return 0.0
    score = require("sklearn.metrics", "app").silhouette_score
    return float(score(vectors, labels, sample_size=min(len(labels), 2_000), random_state=0))


def _divide(vectors: np.ndarray, groups: int) -> float:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return _silhouette(units, _cluster(units, groups))


def _purity(labels: np.ndarray, cells: Sequence[Any]) -> tuple[float, float] | None:
    """Return the share of texts with the most frequent value of their group, and by chance; None for no division."""
    values, codes = np.unique([str(cell) for cell in cells if cell is not None], return_inverse=True)
    known = labels[[cell is not None for cell in cells]]
    if not 2 <= len(values) <= MAX_VALUES:
        return None
    table = np.zeros((labels.max() + 1, len(values)))
    np.add.at(table, (known, codes), 1)
    return float(table.max(axis=1).sum() / len(codes)), float(table.sum(axis=0).max() / len(codes))


def _spread(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), max(float(values.std()), 1e-6)
