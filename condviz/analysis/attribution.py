"""Which words carry the similarity: leave each one out and see what the score loses. Works for every method."""

from __future__ import annotations

import numpy as np

from condviz.data.texts import check_condition, check_sentence
from condviz.encoder.backbone import Progress
from condviz.encoder.words import leave_out, split_words
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.types import Attribution

MAX_WORDS = 400
"""Words of both sentences together: each costs a score."""


def leave_one_word_out(
    model: ConditionalScorer,
    sentence1: str,
    sentence2: str,
    condition: str | None,
    *,
    progress: Progress | None = None,
) -> Attribution:
    """Score the pair again without each single word.

    Args:
        model: Any model.
        sentence1, sentence2: The pair.
        condition: The condition, or None for the score without a condition.
        progress: As in `ConditionalScorer.score`.

    Raises:
        DataError: If a text is not usable or the two have more than `MAX_WORDS` words.

    Source:
        Occlusion: Zeiler and Fergus 2014; erasure: Li, Monroe and Jurafsky 2016, arXiv:1612.08220.
    """
    sentence1, sentence2 = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
    words1, words2 = split_words(sentence1), split_words(sentence2)
    if len(words1) + len(words2) > MAX_WORDS:
        raise DataError(
            f"The two sentences have {len(words1) + len(words2)} words, and at most {MAX_WORDS} can be left out one by "
            "one. Shorten them."
        )
    # A sentence of one word cannot be left without it: an empty text has no meaning to compare.
    shorter1 = [leave_out(sentence1, word) or sentence1 for word in words1]
    shorter2 = [leave_out(sentence2, word) or sentence2 for word in words2]
    first = [sentence1, *shorter1, *[sentence1] * len(words2)]
    second = [sentence2, *[sentence2] * len(words1), *shorter2]
    if condition is None:
        scores = model.score_unconditional(first, second)
    else:
        condition = check_condition(condition, "condition")
        scores = model.score(first, second, [condition] * len(first), progress=progress)
    effects = (scores[0] - scores[1:]).astype(np.float32)
    return Attribution(
        model=model.info.name,
        condition=condition,
        score=float(scores[0]),
        words1=words1,
        words2=words2,
        effects1=effects[: len(words1)],
        effects2=effects[len(words1) :],
    )
