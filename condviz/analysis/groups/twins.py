"""Pairs of a corpus that are alike under one condition and different under another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condviz.analysis.groups.corpus import check_count, open_with_model, spread
from condviz.analysis.search import MAX_HITS, embed_rows
from condviz.data.texts import check_conditions
from condviz.errors import require
from condviz.methods import ConditionalScorer
from condviz.store.corpus import Corpus, Progress
from condviz.types import ModelInfo, Result, table

if TYPE_CHECKING:
    import pandas as pd

NEIGHBOURS = 30
"""Pairs are looked for among so many nearest neighbours of each text."""


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
    check_count("k", k, 1, MAX_HITS)
    corpus, loaded = open_with_model(store, model, fewest=2)
    one, two = (embed_rows(loaded, corpus, text, progress=progress) for text in (alike, different))
    draw = np.random.default_rng(0).integers(len(corpus), size=(2, 5_000))
    draw = draw[:, draw[0] != draw[1]]
    scale = [spread(np.einsum("ij,ij->i", rows[draw[0]], rows[draw[1]])) for rows in (one, two)]
    neighbours = require("sklearn.neighbors", "app").NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(corpus)))
    nearest = neighbours.fit(one).kneighbors(one, return_distance=False)
    first = np.repeat(np.arange(len(corpus)), nearest.shape[1])
    second = nearest.ravel()
    first, second = first[first < second], second[first < second]
    scores = [
        (np.einsum("ij,ij->i", rows[first], rows[second]) - mean) / deviation
        for rows, (mean, deviation) in zip((one, two), scale, strict=True)
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
