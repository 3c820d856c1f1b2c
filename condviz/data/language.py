"""Is a text English, the only language that the shipped models have learned? Told by py3langid.

Measured by benchmarks/language.py. Source: Lui and Baldwin 2012, "langid.py", ACL; the package holds the model.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

FEWEST_WORDS = 4
"""Shorter texts are not judged."""
TIMES = 5
"""So many times as probable as English another language has to be: of terms and names alone many are a little so."""

_COMMON = re.compile(
    r"\b(the|and|are|were|been|have|with|without|from|into|this|that|these|those|its|his|they|their|you|your|which|what|"
    r"there)\b",
    re.IGNORECASE,
)
"""A text in which a fourth of the words are these is English, without py3langid, which takes a second and 100 MB."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def not_english(*sentences: str) -> str:
    """Return which of one or two sentences may not be English: "The sentence", "Sentence 2", "The sentences", or ""."""
    odd = [number for number, text in enumerate(sentences, start=1) if not looks_english(text)]
    if len(odd) == 2:
        return "The sentences"
    return "" if not odd else "The sentence" if len(sentences) == 1 else f"Sentence {odd[0]}"


def looks_english(text: str) -> bool:
    """Return whether a text is in Latin script and may be English, or is too short to tell."""
    letters = [character for character in text if character.isalpha()]
    if sum(map(str.isascii, letters)) < len(letters) / 2:
        return False
    words, common = len(_WORD.findall(text)), len(_COMMON.findall(text))
    return words < FEWEST_WORDS or 4 * common >= words or not is_foreign(text)


def is_foreign(text: str) -> bool:
    """Return whether one of the languages that py3langid knows is `TIMES` as probable as English; loads it once."""
    ranked = _identifier().rank(text)
    return ranked[0][1] >= TIMES * dict(ranked)["en"]


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
