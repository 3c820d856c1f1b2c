"""Are the words that a model points at the words that it uses? Delete them, and as many random ones."""

from __future__ import annotations

import numpy as np

from condviz.analysis.reference import reference_pairs
from condviz.encoder.backbone import Progress
from condviz.encoder.words import leave_out
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.types import DeletionTest, TokenWeights, Word, WordReading

DRAWS = 20
MAX_DELETED = 10
HELD_OUT = 5
"""Sentences that words chosen by leaving out are tested against."""


def delete_words(
    model: ConditionalScorer,
    reading: WordReading,
    num_words: int = 2,
    *,
    layer: int = -1,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> DeletionTest:
    """Score again without the top words of a sentence, and without random words, under each condition.

    The weights of a router are tested on the pair itself: they were computed from one sentence and the condition, not
    from the score. Words of a model without a router were chosen because the score of this very pair falls without
    them, so testing them on it would confirm any choice. They are held against `HELD_OUT` other sentences instead,
    which had no part in choosing them.

    Marks without a letter or digit are deleted in neither case, and one word always stays. The random words of a draw
    are the same under every condition. A single sentence with router weights is compared with itself, shortened on one
    side.

    Args:
        model: The model of the reading.
        reading: From `condviz.analysis.words.read_words`.
        num_words: Words to delete at once, 1 to `MAX_DELETED`.
        layer: Which of the routed layers ranks the words.
        draws: Number of random draws.
        seed: Decides the random words.
        progress: As in `ConditionalScorer.score`.

    Raises:
        DataError: If `num_words` is out of range, or no sentence has two words.

    Source:
        Comprehensiveness: DeYoung et al. 2020, ERASER, arXiv:1911.03429; here against random words of the same text.
    """
    if not isinstance(num_words, int) or not 1 <= num_words <= MAX_DELETED:
        raise DataError(f"The number of words to delete must be from 1 to {MAX_DELETED}, got {num_words!r}.")
    generator = np.random.default_rng(seed)
    texts = [text.sentence for text in reading.texts]
    held_out = () if reading.source == "router" else held_out_sentences(texts)
    pairs: list[tuple[str, str, str]] = []
    sides = [side for side, text in enumerate(reading.texts) if len(_candidates(text)) > 1]
    if not sides:
        raise DataError("No sentence has two words, so none can be deleted. Write a longer sentence.")
    for side in sides:
        others = held_out or (texts[-1 - side],)
        chosen = _choose(reading.texts[side], num_words, layer=layer, draws=draws, generator=generator)
        for places in ([[]] * len(reading.conditions), *chosen):
            for condition, deleted in zip(reading.conditions, places, strict=True):
                words = [reading.texts[side].words[place] for place in deleted]
                shorter = without_words(texts[side], words)
                # The order of a pair matters to a cross-encoder: a sentence keeps its side.
                pairs += [(shorter, other, condition) if side == 0 else (other, shorter, condition) for other in others]
    scores = model.score(*map(list, zip(*pairs, strict=True)), progress=progress)
    table = scores.reshape(len(sides), 2 + draws, len(reading.conditions), -1)
    change = np.moveaxis(table[:, 1:] - table[:, :1], 0, 2)  # (1 + draws, m, sides, others)
    change = change.reshape(*change.shape[:2], -1)
    return DeletionTest(
        model=reading.model.name, num_words=num_words, top=change[0], random=change[1:], held_out=held_out
    )


def held_out_sentences(texts: list[str]) -> tuple[str, ...]:
    """Return `HELD_OUT` sentences of the stored reference pairs, spread over all, none of them among `texts`."""
    known = dict.fromkeys(pair.sentence2 for pair in reference_pairs() if pair.sentence2 not in texts)
    return tuple(list(known)[:: max(1, len(known) // HELD_OUT)][:HELD_OUT])


def without_words(text: str, words: list[Word]) -> str:
    """Return a text without some of its words."""
    for word in sorted(words, key=lambda word: -word.start):  # from the end, so that offsets in front stay right
        text = leave_out(text, word)
    return text


def _choose(
    text: TokenWeights, num_words: int, *, layer: int, draws: int, generator: np.random.Generator
) -> list[list[list[int]]]:
    """Choose the words to delete under each of m conditions: the top ones first, then each random draw."""
    candidates = _candidates(text)
    count = min(num_words, len(candidates) - 1)
    sizes = np.abs(text.weights[layer][:, candidates])
    top = [[candidates[i] for i in np.argsort(-row, kind="stable")[:count]] for row in sizes]
    random = [generator.choice(candidates, size=count, replace=False).tolist() for _ in range(draws)]
    return [top, *([draw] * len(top) for draw in random)]


def _candidates(text: TokenWeights) -> list[int]:
    """Return the places of words that may be deleted: with a letter or digit, and not behind the cut of a long text."""
    read = np.abs(text.weights).sum(axis=(0, 1)) > 0 if text.truncated else np.ones(len(text.words), dtype=bool)
    return [i for i, word in enumerate(text.words) if read[i] and any(map(str.isalnum, word.text))]
