"""What a condition does to a corpus: groups, pairs that it tells apart, and which conditions sort it at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.analysis.compare import library
from condviz.analysis.search import embed_rows
from condviz.analysis.topics import distinctive_words
from condviz.data.texts import check_condition, check_conditions
from condviz.errors import ConfigError, DataError, require
from condviz.methods import ConditionalScorer
from condviz.models.registry import load
from condviz.store.corpus import Corpus, Progress
from condviz.store.demo import open_corpus
from condviz.types import ModelInfo, Result, plain, table

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
TRIED = 40
"""Conditions of the library that are tried on a corpus."""
SAMPLE = 1_000
RANDOM_MATRICES = 8
NAME_WORDS, NAMED_SHARE = 4, 0.06


@dataclass(frozen=True)
class Group:
    """Texts that are alike under a condition.

    Attributes:
        words: What its texts say more often than others, best first; may be empty.
        medoid: The text in its middle.
        rows: Rows of its texts in the source, those nearest to the middle first.
    """

    words: tuple[str, ...]
    medoid: str
    rows: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of its texts."""
        return len(self.rows)

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
    """

    condition: str
    model: ModelInfo
    groups: tuple[Group, ...]
    silhouette: float
    purity: Mapping[str, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        groups = [plain(group) | {"name": group.name, "size": group.size} for group in self.groups]
        return super().to_dict() | {"groups": groups}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per text: its row in the source, and its group."""
        return table(
            [
                {"row": row, "group": number, "name": group.name}
                for number, group in enumerate(self.groups, start=1)
                for row in group.rows
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
    """

    condition: str
    silhouette: float
    random: float
    deviations: float


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
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> Groups:
    """Divide a corpus into groups of texts that are alike under a condition, by k-means.

    Args:
        store: Folder of a store, an open corpus, or "scenes" for the one that ships.
        condition: The condition.
        groups: How many, 2 to `MOST_GROUPS`.
        model: A name or a loaded model; None for the one whose vectors are stored.
        progress: Told (texts read, texts) where the model reads every text again; may raise to stop.

    Raises:
        DataError: If the condition cannot be used, or the corpus is too small or too large.
        ConfigError: If `groups` is not allowed.
    """
    condition = check_condition(condition, "the condition")
    corpus, loaded = _open(store, model, fewest=3)
    if not isinstance(groups, int) or not 2 <= groups <= MOST_GROUPS:
        raise ConfigError(f"groups must be a whole number from 2 to {MOST_GROUPS}, got {groups!r}.")
    vectors = embed_rows(loaded, corpus, condition, progress=progress)
    labels, centres = _cluster(vectors, min(groups, len(corpus) - 1))
    rows = corpus.rows(range(len(corpus)))
    words = distinctive_words([row["text"] for row in rows], labels, num_words=NAME_WORDS, share=NAMED_SHARE)
    found = []
    for number in range(len(centres)):
        members = np.flatnonzero(labels == number)
        order = members[np.argsort(-(vectors[members] @ centres[number]), kind="stable")]
        found.append(Group(words[number], rows[order[0]]["text"], tuple(rows[place]["row"] for place in order)))
    purity = {
        name: share for name in corpus.columns if (share := _purity(labels, [row[name] for row in rows])) is not None
    }
    found.sort(key=lambda group: -group.size)
    return Groups(condition, loaded.info, tuple(found), _silhouette(vectors, labels), purity)


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
        k: Number of pairs.

    Raises:
        DataError: If a condition cannot be used, or the corpus is too small or too large.
    """
    alike, different = check_conditions([alike, different])
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
        conditions: Those to try; None for those of the library that are nearest to the texts.
        groups: How many groups.
        progress: Told (conditions tried, conditions); may raise to stop.

    Raises:
        DataError: If a condition cannot be used, or the corpus is too small.
        ConfigError: If the model has no such projection.
    """
    corpus, loaded = _open(store, model, fewest=2 * groups, bounded=False)
    if not loaded.separable:
        raise ConfigError(
            f"{loaded.info.name} reads every text again under each condition. Choose hyper-cl or a tri-encoder."
        )
    places = np.sort(np.random.default_rng(0).permutation(len(corpus))[:SAMPLE])
    vectors, norms = corpus.vectors(places)
    part = Corpus([""] * len(places), vectors, norms, corpus.identity)
    units = vectors.astype(np.float32)
    if conditions is None:
        encoded = loaded.encode_sentences(list(library()))
        near = np.sort(units @ (encoded / np.linalg.norm(encoded, axis=1, keepdims=True)).T, axis=0)
        nearest = np.argsort(-near[-max(1, len(near) // 10) :].mean(axis=0), kind="stable")[:TRIED]
        conditions = [library()[place] for place in sorted(nearest)]
    conditions = check_conditions(conditions, max_conditions=max(len(conditions), 1))
    size = embed_rows(loaded, part, conditions[0]).shape[1]
    draw = np.random.default_rng(0)
    by_chance = [
        _divide(units @ draw.standard_normal((units.shape[1], size)).astype(np.float32), groups)
        for _ in range(RANDOM_MATRICES)
    ]
    mean, spread = _spread(np.array(by_chance))
    found = []
    for number, condition in enumerate(conditions, start=1):
        value = _divide(embed_rows(loaded, part, condition), groups)
        found.append(SortingCondition(condition, value, mean, (value - mean) / spread))
        if progress:
            progress(number, len(conditions))
    found.sort(key=lambda item: -item.silhouette)
    return SortingConditions(loaded.info, len(places), tuple(found))


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


def _cluster(vectors: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each vector (n,), and the centres."""
    found = require("sklearn.cluster", "app").KMeans(groups, n_init=4, random_state=0).fit(vectors)
    used, labels = np.unique(found.labels_, return_inverse=True)  # equal texts can leave a group empty
    return labels, found.cluster_centers_[used]


def _silhouette(vectors: np.ndarray, labels: np.ndarray) -> float:
    if not 2 <= labels.max() + 1 < len(labels):
        return 0.0
    score = require("sklearn.metrics", "app").silhouette_score
    return float(score(vectors, labels, sample_size=min(len(labels), 2_000), random_state=0))


def _divide(vectors: np.ndarray, groups: int) -> float:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return _silhouette(units, _cluster(units, groups)[0])


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
