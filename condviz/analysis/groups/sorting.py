"""Which conditions sort a corpus at all?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condviz.analysis.compare import library
from condviz.analysis.groups.corpus import MOST_GROUPS, check_count, cluster, open_with_model, silhouette, spread
from condviz.analysis.search import embed_rows
from condviz.data.texts import check_conditions
from condviz.errors import ConfigError
from condviz.methods import ConditionalScorer
from condviz.store.corpus import Corpus, Progress
from condviz.types import TOLD, ModelInfo, Result, table

if TYPE_CHECKING:
    import pandas as pd

TRIED, FEWEST_TRIED = 40, 4
"""Conditions of the library that are tried on a corpus."""
READ, APPLYING = 100, 0.5
"""So many texts are read to see which conditions they tell; this share has to tell one for it to be tried."""
SAMPLE = 1_000
RANDOM_MATRICES = 8


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
    check_count("groups", groups, 2, MOST_GROUPS)
    corpus, loaded = open_with_model(store, model, fewest=2 * groups, bounded=False)
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
    mean, deviation = spread(np.array(by_chance))
    found = []
    for number, place in enumerate(tried, start=1):
        value = _divide(embed_rows(loaded, part, asked[place]), groups)
        found.append(SortingCondition(asked[place], value, mean, (value - mean) / deviation, float(told[place])))
        if progress:
            progress(number, len(tried))
    found.sort(key=lambda item: -item.silhouette)
    return SortingConditions(loaded.info, len(places), tuple(found))


def _divide(vectors: np.ndarray, groups: int) -> float:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return silhouette(units, cluster(units, groups))
