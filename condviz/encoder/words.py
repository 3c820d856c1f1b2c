"""Words of a text as readers see them, and values of sub-tokens summed over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import regex

from condviz.types import Word

_WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}]"  # scripts without spaces: one character at a time
    r"|[\p{L}\p{M}\p{N}]+(?:['’.,\-‐][\p{L}\p{M}\p{N}]+)*"  # don't, well-known, 3.5, 1,000
    r"|\X"  # anything else, an emoji with its modifiers in one piece
)


def split_words(text: str) -> tuple[Word, ...]:
    """Split a text into words and punctuation marks, with offsets; blanks are left out.

    Contractions, hyphenated words and numbers stay in one piece; Chinese and Japanese characters stand alone; an emoji
    keeps its modifiers.
    """
    return tuple(
        Word(match.group(), match.start(), match.end()) for match in _WORD.finditer(text) if not match.group().isspace()
    )


def add_up_words(words: Sequence[Word], spans: Sequence[tuple[int, int]], values: np.ndarray) -> np.ndarray:
    """Sum values of sub-tokens over words; a sub-token belongs to the word that it overlaps most.

    Args:
        words: w words.
        spans: Character span of each of L sub-tokens; empty for special tokens, which belong to no word.
        values: (..., L).

    Returns:
        (..., w) float32. What belongs to no word is left out.
    """
    result = np.zeros((*values.shape[:-1], len(words)), dtype=np.float32)
    for column, (start, end) in enumerate(spans):
        overlaps = [min(end, word.end) - max(start, word.start) for word in words]
        if overlaps and max(overlaps) > 0:
            result[..., int(np.argmax(overlaps))] += values[..., column]
    return result


def leave_out(text: str, word: Word) -> str:
    """Return the text without one word and without the double blank that would remain."""
    before, after = text[: word.start], text[word.end :]
    if before.endswith(" ") and (not after or after.startswith(" ")):
        before = before[:-1]
    return (before + after).strip()
