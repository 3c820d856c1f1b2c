"""Which conditions sort a corpus at all, and which pairs of texts do two conditions tell apart?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval
from scipy import special

from condviz.analysis.compare import ANY_TEXT, clearest, library_conditions, tell_library
from condviz.analysis.geometry import silhouette
from condviz.analysis.groups import GROUPED, NumGroups, cluster, open_with_model, spread
from condviz.analysis.reference import percentile, reference_scores
from condviz.analysis.search import MAX_HITS, TYPICAL_PERCENTILE, embed_rows
from condviz.data.texts import check_conditions
from condviz.errors import require
from condviz.evaluation.metrics import ALPHA
from condviz.spec import checked
from condviz.store.corpus import Corpus
from condviz.types import SILENT, TOLD, ModelInfo, Progress, Result, reporting, table

if TYPE_CHECKING:
    import pandas as pd

    from condviz.methods import ConditionalScorer

# ---- conditions that sort --------------------------------------------------------------------------------------------

TRIED = 40
"""Conditions of the library that are tried on a corpus, at most."""
READ, APPLYING = 100, 0.5
"""So many texts are read to see which conditions they tell; this share has to tell one for it to be tried."""
SAMPLE, FEWEST_SORTED = 1_000, 2 * GROUPED
"""Texts that are divided."""
RANDOM_MATRICES = 16


@dataclass(frozen=True)
class SortingCondition:
    """How well a condition sorts a corpus."""

    condition: str
    silhouette: float
    random: float
    """The same under random matrices of the same shape, on average."""
    deviations: float
    """How many standard deviations of those it is above them."""
    applies: float
    """Share of the texts, of some `READ`, that tell it."""


@dataclass(frozen=True)
class SortingConditions(Result):
    """Conditions, ranked by how clearly they divide a corpus."""

    model: ModelInfo
    texts: int
    conditions: tuple[SortingCondition, ...]
    """The clearest first."""
    sure: bool
    """Whether the clearest one is clearer than the clearest of as many random matrices would be."""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per condition."""
        return table(list(self.conditions))


@checked
def rank_sorting_conditions(
    store: str | Path | Corpus,
    conditions: Sequence[str] | None = None,
    *,
    groups: NumGroups = 8,
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> SortingConditions:
    """Rank conditions by how clearly they divide a corpus: the silhouette of k-means groups, against random matrices.

    A condition is a projection; a random one of the same shape makes groups as well, with a silhouette of its own.

    Args:
        store, model: As in `group_by`; a method that encodes sentences and conditions apart.
        conditions: Those to try; None for those of the library that the texts tell, at most `TRIED`.
        groups: As the signature says.
        progress: Told (conditions tried, conditions); may raise to stop.

    Raises:
        DataError: If a condition cannot be used, or the corpus is too small.
        ConfigError: If `groups` is not allowed, or the model has no such projection.
    """
    corpus, loaded = open_with_model(store, model, fewest=FEWEST_SORTED, bounded=False)
    loaded.check_able("separable")
    places = np.sort(np.random.default_rng(0).permutation(len(corpus))[:SAMPLE])
    vectors, norms = corpus.vectors(places)
    part = Corpus([""] * len(places), vectors, norms, corpus.identity)
    units = vectors.astype(np.float32)
    asked = check_conditions(conditions, max_conditions=len(conditions)) if conditions else list(library_conditions())
    texts = [row["text"] for row in corpus.rows(places[:: max(1, len(places) // READ)])]
    if conditions:
        told, tried = (loaded.applies(texts, asked) >= TOLD).mean(axis=0), list(range(len(asked)))
    else:  # those that the texts tell most clearly, each meaning once
        found, each = tell_library(texts)
        told, clear = found.mean(axis=0), np.median(each, axis=0)
        tried = clearest(told >= APPLYING, clear)[:TRIED] or list(map(asked.index, ANY_TEXT))
    size = embed_rows(loaded, part, asked[0]).shape[1]
    draw = np.random.default_rng(0)
    by_chance = [
        _divide(units @ draw.standard_normal((units.shape[1], size)).astype(np.float32), groups)
        for _ in range(RANDOM_MATRICES)
    ]
    mean, deviation = spread(np.array(by_chance))
    found = []
    for place in reporting(tried, progress):
        value = _divide(embed_rows(loaded, part, asked[place]), groups)
        found.append(SortingCondition(asked[place], value, mean, (value - mean) / deviation, float(told[place])))
    found.sort(key=lambda item: -item.silhouette)
    return SortingConditions(
        loaded.info, len(places), tuple(found), is_clearer(found[0].silhouette, by_chance, len(tried))
    )


def is_clearer(value: float, by_chance: Sequence[float], tries: int) -> bool:
    """Whether the highest of so many values is above those by chance: Student's t of as many further draws."""
    count, (mean, deviation) = len(by_chance), spread(np.array(by_chance))
    t = (value - mean) / (deviation * np.sqrt(count / (count - 1)) * np.sqrt(1 + 1 / count))
    return float(special.stdtr(count - 1, -t)) * tries < ALPHA


def _divide(vectors: np.ndarray, groups: int) -> float:
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return silhouette(units, cluster(units, groups)) or 0.0


# ---- twins: alike under one condition, different under another -------------------------------------------------------

READ_FOR_TWINS = 200
"""Texts that are read to see whether they tell both conditions: a text that tells neither is like any other."""
ABOVE = 1.0
"""Standard deviations above the mean pair from which two texts are alike."""
NEIGHBOURS = 30
"""Pairs are looked for among so many nearest neighbours of each text."""


@dataclass(frozen=True)
class Twin:
    """Two texts that are alike under one condition and different under another."""

    rows: tuple[int, int]
    texts: tuple[str, str]
    alike: float
    different: float
    """Their similarity under the two conditions, in standard deviations above the mean pair of the corpus."""
    percentiles: tuple[float, float]
    """The same as shares, in %, of the reference pairs that are less alike, as of hits."""


@dataclass(frozen=True)
class Twins(Result):
    """Pairs of a corpus that two conditions see differently."""

    alike: str
    different: str
    model: ModelInfo
    pairs: tuple[Twin, ...]
    """The clearest first; no text is in two of them."""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair."""
        rows = [(*pair.rows, *pair.texts, pair.alike, pair.different, *pair.percentiles) for pair in self.pairs]
        named = ["row1", "row2", "text1", "text2", "alike", "different", "alike_percentile", "different_percentile"]
        return table(rows, named)


@checked
def find_twins(
    store: str | Path | Corpus,
    alike: str,
    different: str,
    *,
    k: Annotated[int, Interval(ge=1, le=MAX_HITS), Doc("Number of pairs")] = 20,
    model: str | ConditionalScorer | None = None,
    progress: Progress | None = None,
) -> Twins:
    """Find pairs of texts that are alike under one condition and different under another, and that tell both.

    Alike is what is well above the mean pair of these texts and above a typical reference pair, different what is below
    one, and farther from the mean pair by a standard deviation or more.

    Args:
        store, model, progress: As in `group_by`.
        alike, different: The two conditions.
        k: As the signature says.

    Raises:
        DataError: If a condition cannot be used, or the corpus is too small or too large.
        ConfigError: If k is not allowed.
    """
    alike, different = check_conditions([alike, different])
    corpus, loaded = open_with_model(store, model, fewest=2)
    one, two = (embed_rows(loaded, corpus, text, progress=progress) for text in (alike, different))
    draw = np.random.default_rng(0).integers(len(corpus), size=(2, 5_000))
    draw = draw[:, draw[0] != draw[1]]
    scale = [spread(np.einsum("ij,ij->i", rows[draw[0]], rows[draw[1]])) for rows in (one, two)]
    neighbours = require("sklearn.neighbors", "viz").NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(corpus)))
    nearest = neighbours.fit(one).kneighbors(one, return_distance=False)
    first = np.repeat(np.arange(len(corpus)), nearest.shape[1])
    second, texts = nearest.ravel(), corpus.column("text")
    two_texts = (first < second) & (texts[first] != texts[second])
    first, second = first[two_texts], second[two_texts]
    cosines = [np.einsum("ij,ij->i", rows[first], rows[second]) for rows in (one, two)]
    scores = [(found - mean) / deviation for found, (mean, deviation) in zip(cosines, scale, strict=True)]
    shares = [percentile(found, reference_scores(loaded)) for found in cosines]
    apart = (scores[0] >= ABOVE) & (shares[0] >= TYPICAL_PERCENTILE) & (shares[1] < TYPICAL_PERCENTILE)
    apart &= scores[0] - scores[1] >= ABOVE
    pairs, used, tells = [], set(), {}
    order = np.argsort(scores[1] - scores[0], kind="stable")
    for place in order[apart[order]]:
        both = int(first[place]), int(second[place])
        found = str(texts[both[0]]), str(texts[both[1]])
        if not used.isdisjoint(found):  # also of a text that the corpus holds twice
            continue
        if new := [text for text in found if text not in tells]:
            tells |= zip(new, map(all, loaded.applies(new, [alike, different]) >= SILENT), strict=True)
        if all(tells[text] for text in found):
            used.update(found)
            numbers = tuple(row["row"] for row in corpus.rows(both))
            figures = [float(each[place]) for each in (*scores, *shares)]
            pairs.append(Twin(numbers, found, figures[0], figures[1], (figures[2], figures[3])))
        if len(pairs) == k or len(tells) >= READ_FOR_TWINS:
            break
    return Twins(alike, different, loaded.info, tuple(pairs))
