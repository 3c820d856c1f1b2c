"""Is a text English, the only language that the shipped models have learned? Told by the words it has."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from condviz.data.corpus import read_jsonl
from condviz.paths import ASSETS

FEWEST_WORDS = 4
"""Shorter texts are not judged."""
KNOWN_SHARE = 0.6
"""A text of which a smaller share of the words is known is hardly English. Less than one half lets pass German and
French that share function words and nouns with English; two thirds stops English full of names."""

_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def not_english(*sentences: str) -> str:
    """Return which of one or two sentences may not be English: "The sentence", "Sentence 2", "The sentences", or ""."""
    odd = [number for number, text in enumerate(sentences, start=1) if not looks_english(text)]
    if len(odd) == 2:
        return "The sentences"
    return "" if not odd else "The sentence" if len(sentences) == 1 else f"Sentence {odd[0]}"


def looks_english(text: str) -> bool:
    """Tell whether a text is in Latin script and most of its words are in `vocabulary`, or it is too short to tell."""
    letters = [character for character in text if character.isalpha()]
    if sum(map(str.isascii, letters)) < len(letters) / 2:
        return False
    words = _words(text)
    return len(words) < FEWEST_WORDS or sum(word in vocabulary() for word in words) >= KNOWN_SHARE * len(words)


@cache
def vocabulary() -> frozenset[str]:
    """Return the words of at least two different sentences of the scenes; takes some tenths of a second once."""
    texts = {scene["text"] for _, entry in read_jsonl(ASSETS / "scenes") for scene in entry["sentences"]}
    counts = Counter(word for text in texts for word in set(_words(text)))
    return frozenset(word for word, count in counts.items() if count > 1)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _LETTERS.findall(text)]
