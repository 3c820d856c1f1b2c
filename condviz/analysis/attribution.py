"""Which words carry the similarity: leave each one out and see what the score loses. Works for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condviz.data.texts import check_condition, check_sentence
from condviz.encoder.backbone import Progress
from condviz.encoder.words import leave_out, split_words
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.types import Attribution, Word

MAX_WORDS = 400
"""Words of both sentences together: each costs a score."""


@dataclass(frozen=True)
class WordEffects:
    """What leaving out each word of a pair does under m conditions.

    Attributes:
        words: Words of the two sentences.
        scores: (m,) scores of the whole pair.
        effects: (m, w) float32 for each sentence: score of the whole pair minus the score without the word.
    """

    words: tuple[tuple[Word, ...], tuple[Word, ...]]
    scores: np.ndarray
    effects: tuple[np.ndarray, np.ndarray]


def leave_one_word_out(
    model: ConditionalScorer, sentence1: str, sentence2: str, condition: str | None, *, progress: Progress | None = None
) -> Attribution:
    """Score the pair again without each single word.

    Args:
        model: Any model.
        sentence1, sentence2: The pair.
        condition: The condition, or None for the score without a condition.
        progress: As in `ConditionalScorer.score`.

    Raises:
        DataError: If a text cannot be used or the two have more than `MAX_WORDS` words.

    Source:
        Occlusion: Zeiler and Fergus 2014; erasure: Li, Monroe and Jurafsky 2016, arXiv:1612.08220.
    """
    sentence1, sentence2 = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
    condition = None if condition is None else check_condition(condition, "condition")
    found = score_without_words(model, sentence1, sentence2, [condition], progress=progress)
    return Attribution(
        model=model.info.name,
        condition=condition,
        score=float(found.scores[0]),
        words1=found.words[0],
        words2=found.words[1],
        effects1=found.effects[0][0],
        effects2=found.effects[1][0],
    )


def score_without_words(
    model: ConditionalScorer,
    sentence1: str,
    sentence2: str,
    conditions: Sequence[str] | Sequence[None],
    *,
    progress: Progress | None = None,
) -> WordEffects:
    """Compute what leaving out each word does under each condition; texts that are checked already.

    Args:
        model: Any model.
        sentence1, sentence2: The pair.
        conditions: m conditions, or a single None for the score without a condition.
        progress: As in `ConditionalScorer.score`.

    Raises:
        DataError: If the two sentences have more than `MAX_WORDS` words.
    """
    words = split_words(sentence1), split_words(sentence2)
    count = len(words[0]) + len(words[1])
    if count > MAX_WORDS:
        raise DataError(
            f"The two sentences have {count} words, and at most {MAX_WORDS} can be left out one by one. Shorten them."
        )
    # A sentence of one word cannot be left without it: an empty text has no meaning to compare.
    shorter = [
        [leave_out(text, word) or text for word in found]
        for text, found in zip((sentence1, sentence2), words, strict=True)
    ]
    first = [sentence1, *shorter[0], *[sentence1] * len(words[1])]
    second = [sentence2, *[sentence2] * len(words[0]), *shorter[1]]
    if conditions[0] is None:
        scores = model.score_unconditional(first, second)
    else:
        under = [condition for condition in conditions for _ in first]
        scores = model.score(first * len(conditions), second * len(conditions), under, progress=progress)
    table = scores.reshape(len(conditions), -1)
    effects = (table[:, :1] - table[:, 1:]).astype(np.float32)
    return WordEffects(words, table[:, 0], (effects[:, : len(words[0])], effects[:, len(words[0]) :]))
