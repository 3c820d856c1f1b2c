"""Are the words that a model points at the words that it uses? Delete them, and as many random ones."""

from __future__ import annotations

import numpy as np

from condviz.encoder.backbone import Progress
from condviz.encoder.words import leave_out
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.types import DeletionTest, TokenWeights, Word, WordReading

DRAWS = 20
MAX_DELETED = 10


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

    Marks without a letter or digit are deleted in neither case, and one word always stays. The random words of a draw
    are the same under every condition. A single sentence is compared with itself, shortened on one side.

    Args:
        model: The model that gave the reading.
        reading: From `condviz.analysis.router.read_words`.
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
    pairs: list[tuple[str, str, str]] = []
    sides = [side for side, text in enumerate(reading.texts) if len(_candidates(text)) > 1]
    if not sides:
        raise DataError("No sentence has two words, so none can be deleted. Write a longer sentence.")
    texts = [text.sentence for text in reading.texts]
    pairs += [(texts[0], texts[-1], condition) for condition in reading.conditions]
    for side in sides:
        text, candidates = reading.texts[side], _candidates(reading.texts[side])
        count = min(num_words, len(candidates) - 1)
        sizes = np.abs(text.weights[layer][:, candidates])
        top = [[candidates[i] for i in np.argsort(-row, kind="stable")[:count]] for row in sizes]
        random = [generator.choice(candidates, size=count, replace=False).tolist() for _ in range(draws)]
        for places in (top, *([draw] * len(top) for draw in random)):
            for condition, chosen in zip(reading.conditions, places, strict=True):
                shorter = without_words(text.sentence, [text.words[place] for place in chosen])
                first, second = (shorter, texts[-1]) if side == 0 else (texts[0], shorter)
                pairs.append((first, second, condition))
    scores = model.score(*map(list, zip(*pairs, strict=True)), progress=progress)
    size = len(reading.conditions)
    base = scores[:size]
    change = scores[size:].reshape(len(sides), 1 + draws, size) - base
    return DeletionTest(
        model=reading.model.name,
        num_words=num_words,
        top=change[:, 0].T,
        random=change[:, 1:].transpose(1, 2, 0),
    )


def without_words(text: str, words: list[Word]) -> str:
    """Give a text without some of its words."""
    for word in sorted(words, key=lambda word: -word.start):  # from the end, so that offsets in front stay right
        text = leave_out(text, word)
    return text


def _candidates(text: TokenWeights) -> list[int]:
    """Give the places of words that may be deleted: with a letter or digit, and not behind the cut of a long text."""
    read = np.abs(text.weights).sum(axis=(0, 1)) > 0 if text.truncated else np.ones(len(text.words), dtype=bool)
    return [i for i, word in enumerate(text.words) if read[i] and any(map(str.isalnum, word.text))]
