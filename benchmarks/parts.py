"""How well models follow conditions on the corpora that this project can test on: the scenes, and reviews.

Every part is cut to a fixed number of sentence pairs, so that a model takes a minute or two on two cores. Which ones
depends on a hash of their sentences: a pair that is chosen stays chosen when others are added, and two parts with the
same sentences get the same pairs.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import permutations
from typing import get_args

import numpy as np

from condviz import __version__
from condviz.data import corpora
from condviz.data.corpus import RatedPair, count_contrasts, keep_pairs
from condviz.data.examples import Example, Level
from condviz.errors import ConfigError, check_count
from condviz.evaluation.agreement import Agreement, Rows
from condviz.evaluation.agreement import measure as agree
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import FIGURES, PARTS, PLAIN, BoardSample, GroupScores, ModelScores, Part, PartScores
from condviz.methods.base import ConditionalScorer
from condviz.types import Progress, columns

PAIRS = 500
MIN_ROWS = 10
"""Aspects and domains with fewer rows get no figures of their own."""
LIBRARIES = ("torch", "transformers")
LEVELS: tuple[str, ...] = get_args(Level)


@dataclass(frozen=True)
class Chosen:
    """The rows of one part that models are scored on, the two of a sentence pair side by side."""

    part: Part
    rows: tuple[RatedPair, ...]
    sample: BoardSample


def choose(name: str, *, pairs: int = PAIRS, seed: int = 0) -> Chosen:
    """Build a part and choose its rows.

    Args:
        name: Key of `PARTS`.
        pairs: Sentence pairs at most.
        seed: Decides the pairs that are built, and which of them are chosen.

    Raises:
        ConfigError: If there is no such part, or `pairs` is too small to be resampled.
        DataError: If files are missing or damaged, or no pair is left.
    """
    if name not in PARTS:
        raise ConfigError(f"There is no part {name!r} of the benchmark. There are: {', '.join(PARTS)}.")
    if pairs < MIN_ROWS:
        raise ConfigError(f"A part needs at least {MIN_ROWS} sentence pairs, got {pairs}. {PAIRS} is usual.")
    part = PARTS[name]
    rows = corpora.build(part.corpus, part.split, seed=seed)
    kept = rows if part.whole else keep_pairs(rows, pairs, seed=seed)
    counts = {"pairs": count_contrasts(kept), "available": count_contrasts(rows)}
    sample = BoardSample(digest(kept), rows=len(kept), **counts, seed=seed)
    return Chosen(part, tuple(kept), sample)


def digest(rows: Sequence[RatedPair]) -> str:
    """Return the identity of rows, 16 hex digits: texts, conditions and ratings in their order."""
    told = [(row.sentence1, row.sentence2, row.condition, float(row.label)) for row in rows]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def measure(
    model: ConditionalScorer, chosen: Chosen, *, resamples: int = 1000, progress: Progress | None = None
) -> PartScores:
    """Score the rows of one part and compare with their ratings.

    Args:
        model: A loaded model. Plain similarity is what it gives without a condition, as in Compare.
        chosen: The rows.
        resamples: Of the bootstrap; 0 for no intervals.
        progress: Told (done, total) of the encodings that are not in the cache.

    Raises:
        ConfigError: If `resamples` is negative.
    """
    check_count("resamples", resamples, 0, 1_000_000)
    is_plain = chosen.part.name == PLAIN
    scores = _plain_scores(model, chosen.rows) if is_plain else model.score(*columns(chosen.rows), progress=progress)
    return measure_scores(chosen, scores, resamples=resamples)


def measure_scores(chosen: Chosen, scores: np.ndarray, *, resamples: int = 1000) -> PartScores:
    """Compare scores of the rows of one part with their ratings."""
    found = _agree(chosen.rows, scores, resamples=resamples, seed=chosen.sample.seed)
    groups = {}
    if chosen.part.name != PLAIN:
        kinds = {
            # Aspects of single families are too many; so are the domains that families name themselves, in place of
            # which the collections count: "sport" for sport-001.
            "aspect": [set() if ":" in row.aspect else {row.aspect} for row in chosen.rows],
            "domain": [{one.rpartition("-")[0] for one in (row.family1, row.family2)} for row in chosen.rows],
        }
        groups = {kind: made for kind, names in kinds.items() if (made := _groups(chosen.rows, scores, names))}
    return PartScores(
        digest=chosen.sample.digest,
        rows=found.n,
        pairs=found.pair_accuracy.pairs,
        resamples=resamples,
        **{
            name: Metric(*map(_rounded, (one.value, one.low, one.high)))
            for name, one in zip(FIGURES, (found.spearman, found.pearson, found.ties_excluded), strict=True)
        },
        equal_scores=found.pair_accuracy.equal_similarities,
        groups=groups,
    )


def describe(model: ConditionalScorer, parts: dict[str, PartScores]) -> ModelScores:
    """Join the scores of a model with what identifies it."""
    return ModelScores(
        weights=model.weights_hash,
        precision=model.backbone.precision,
        trained=model.info.trained,
        # Without the build, "+cpu": that is the machine's.
        versions={"condviz": __version__, **{name: version(name).partition("+")[0] for name in LIBRARIES}},
        parts=parts,
    )


@dataclass(frozen=True)
class Contrast:
    """Two conditions of one example, under the first of which its sentences are more alike.

    Attributes:
        example: id of the example.
        higher, lower: The conditions.
        higher_score, lower_score: What the model says; equal scores are not in order.
    """

    example: str
    higher: str
    lower: str
    higher_score: float
    lower_score: float

    @property
    def in_order(self) -> bool:
        """Whether the model agrees."""
        return self.higher_score > self.lower_score


def contrast(
    model: ConditionalScorer, examples: Sequence[Example], *, progress: Progress | None = None
) -> list[Contrast]:
    """Score the gallery of examples and return all pairs of conditions of which one is expected to be higher.

    Args:
        model: Scores all sentences under all their conditions in one call.
        examples: The gallery.
        progress: Told (done, total) of the encodings that are not in the cache.
    """
    rows = [(example, condition) for example in examples for condition in example.conditions]
    texts = zip(*((example.sentence1, example.sentence2, condition) for example, condition in rows), strict=True)
    scores = model.score(*map(list, texts), progress=progress)
    known = {(example.id, condition): float(score) for (example, condition), score in zip(rows, scores, strict=True)}
    return [
        Contrast(example.id, higher, lower, known[example.id, higher], known[example.id, lower])
        for example in examples
        for (higher, high), (lower, low) in permutations(zip(example.conditions, example.expected, strict=True), 2)
        if LEVELS.index(high) > LEVELS.index(low)
    ]


def _plain_scores(model: ConditionalScorer, rows: Sequence[RatedPair]) -> np.ndarray:
    return model.score_unconditional(*columns(rows)[:2])


def _agree(rows: Sequence[RatedPair], scores: np.ndarray, *, resamples: int = 0, seed: int = 0) -> Agreement:
    """Measure rows that stand side by side two by two; without a condition it is the second sentence that differs."""
    numbers = np.unique([row.pair for row in rows], return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    firsts = np.flatnonzero(np.diff(numbers[order]) == 0)
    items = np.stack([order[firsts], order[firsts + 1]], axis=1)
    aspects = np.unique([row.aspect or row.condition for row in rows], return_inverse=True)[1]
    alone = all(row.family1 == row.family2 for row in rows)
    tables = np.unique([row.family1 for row in rows], return_inverse=True)[1] if alone else None
    ties = Rows(np.array([row.label for row in rows], dtype=np.float64), numbers, items, aspects, tables)
    return agree(ties, [np.asarray(scores)], resamples=resamples, seed=seed)[0][0]


def _groups(rows: Sequence[RatedPair], scores: np.ndarray, names: Sequence[set[str]]) -> dict[str, GroupScores]:
    """Return the figures of every group that is large enough, in alphabetical order; none where there is only one."""
    members: dict[str, list[int]] = defaultdict(list)
    partners: dict[int, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        partners[row.pair].append(index)
        for name in names[index]:
            members[name].append(index)
    groups = {}
    for name, own in sorted(members.items()) if len(members) > 1 else ():
        if len(own) >= MIN_ROWS:
            # The correlation is that of its own rows, the order of conditions that of the pairs that these are in.
            pairs = dict.fromkeys(rows[index].pair for index in own)
            both = [index for pair in pairs for index in partners[pair]]
            among, within = (_agree([rows[index] for index in part], scores[part]) for part in (own, both))
            figures = map(_rounded, (among.spearman.value, within.ties_excluded.value))
            groups[name] = GroupScores(len(own), len(pairs), *figures)
    return groups


def _rounded(value: float | None) -> float | None:
    """Keep two digits: more would differ between machines."""
    return None if value is None else round(float(value), 2)
