"""Find the conditions that make a pair most alike and most different."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from condviz.data.texts import check_conditions, check_sentence
from condviz.encoder.backbone import Progress
from condviz.methods import ConditionalScorer
from condviz.models.registry import load
from condviz.paths import ASSETS

FITTING = 60
"""Conditions of the library that are tried for a pair."""
LIBRARY = ASSETS / "conditions.json"


@dataclass(frozen=True)
class RankedCondition:
    """A condition with what it does to a pair.

    Attributes:
        condition: The text.
        score: Similarity under it.
        change: Score minus the score without a condition.
    """

    condition: str
    score: float
    change: float


@cache
def library() -> tuple[str, ...]:
    """Read the conditions written for this project."""
    return tuple(row["condition"] for row in json.loads(LIBRARY.read_text(encoding="utf-8")))


def fitting(sentence1: str, sentence2: str) -> tuple[str, ...]:
    """Return the `FITTING` conditions of the library that are nearest to both sentences by plain similarity.

    Others, such as the number of animals where there are none, get scores that mean nothing.
    """
    plain, conditions = load("minilm"), library()
    near = [plain.score_unconditional([sentence] * len(conditions), conditions) for sentence in (sentence1, sentence2)]
    order = np.argsort(-np.minimum(*near), kind="stable")[:FITTING]
    return tuple(conditions[index] for index in sorted(order))


def rank_conditions(
    model: ConditionalScorer,
    sentence1: str,
    sentence2: str,
    conditions: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
) -> list[RankedCondition]:
    """Rank conditions by the similarity of a pair under them, highest first.

    Args:
        model: Any model.
        sentence1, sentence2: The pair.
        conditions: Those to try; by default those of the library that fit the sentences.
        progress: As in `ConditionalScorer.score`.

    Raises:
        DataError: If a text is not usable.
    """
    sentence1, sentence2 = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
    chosen = fitting(sentence1, sentence2) if conditions is None else conditions
    chosen = check_conditions(chosen, max_conditions=max(len(chosen), 1))
    scores = model.score([sentence1] * len(chosen), [sentence2] * len(chosen), chosen, progress=progress)
    plain = float(model.score_unconditional([sentence1], [sentence2])[0])
    ranked = [RankedCondition(text, float(s), float(s) - plain) for text, s in zip(chosen, scores, strict=True)]
    return sorted(ranked, key=lambda row: -row.score)
