"""Texts that people type or upload, checked with one clear message, not a strange score; their words and language."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import regex

from condviz.errors import DataError
from condviz.types import Word

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

MAX_SENTENCE_CHARACTERS = 5_000
"""Far more than any shipped encoder reads (512 tokens); keeps a pasted book from stopping the page."""
MAX_CONDITION_CHARACTERS = 300
"""A condition is a short phrase such as "the number of people"."""
MAX_CONDITIONS = 20
"""What one matrix can show."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

_FUNCTION_WORDS = """
a about above across after all along although am among an and any are around as at be because been before behind being
below beneath beside besides between both but by can could did do does down during each either for from had has have he
her hers him his how i if in inside into is it its itself may me might mine must my near of off on onto or our ours out
outside over own shall she should since so some such than that the their theirs them then there these they this those
though through to toward towards under until up upon us was we were what when where which while who whom whose will with
within would you your yours
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English function words; numerals and negations are not among them."""


def is_content(word: str) -> bool:
    """Return whether a word is neither a mark nor a function word."""
    return word.casefold() not in FUNCTION_WORDS and any(map(str.isalnum, word))


_LINE_BREAKS = re.compile(r"[\t\n\r\x85\u2028\u2029]+")
SURROGATE = re.compile(r"[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_EXCERPT = 40


def check_sentence(text: str, field: str) -> str:
    """Return a sentence as it is scored: outer blanks removed, line breaks and tabs turned into blanks.

    Everything else stays as typed: case, accents in either Unicode form, emoji, right-to-left text, HTML. The `field`
    is where it stands, for the message: "sentence 1", or "row 3, column sentence1".

    Raises:
        DataError: If it is not text, blank, longer than `MAX_SENTENCE_CHARACTERS`, or has control characters or halves
            of surrogate pairs.
    """
    return _check(text, field, max_characters=MAX_SENTENCE_CHARACTERS, example="A man is surfing.")


def check_condition(text: str, field: str) -> str:
    """Return one condition as it is scored; as `check_sentence`, with at most `MAX_CONDITION_CHARACTERS`."""
    return _check(text, field, max_characters=MAX_CONDITION_CHARACTERS, example="the sport")


def check_conditions(conditions: Iterable[str], *, max_conditions: int = MAX_CONDITIONS) -> list[str]:
    """Return the conditions of one comparison as they are scored, in the same order.

    Raises:
        DataError: If there is none, there are too many, one is not usable (its position is named, counted from 1), or
            two are the same but for case and blanks.
    """
    if isinstance(conditions, str | bytes) or not isinstance(conditions, Iterable):
        raise DataError(f"Conditions must be a list of texts, got {type(conditions).__name__}. Put it in a list.")
    conditions = list(conditions)
    if not conditions:
        raise DataError('There is no condition. Give at least one, for instance "the sport".')
    if len(conditions) > max_conditions:
        raise DataError(
            f"There are {len(conditions):,} conditions, and at most {max_conditions:,} are allowed. "
            "Leave some out, and ask for them afterwards."
        )
    checked = [check_condition(text, f"condition {number}") for number, text in enumerate(conditions, start=1)]
    first_at: dict[str, int] = {}
    for number, text in enumerate(checked, start=1):
        first = first_at.setdefault(fold(text), number)
        if first != number:
            raise DataError(f"Conditions {first} and {number} are the same: {_excerpt(text)}. Remove one of them.")
    return checked


def fold(name: str) -> str:
    """Return a name as it is compared where nothing is the same to the letter.

    Upper and lower case, the two Unicode forms of accents, and runs of blanks are alike.
    """
    return " ".join(unicodedata.normalize("NFC", name.casefold()).split())


class Names:
    """Finds n things by their names, in columns such as ids and labels; looser readings come after stricter ones."""

    def __init__(self, *columns: Sequence[str]) -> None:
        self.columns = [list(column) for column in columns]

    def find(self, name: str) -> list[int]:
        """Return the positions of all that a name means, ascending; several where it does not say which.

        The same to the letter in the first column that has it, else the same in composed Unicode, else in any column
        but for case and blanks (`fold`).
        """
        composed = unicodedata.normalize("NFC", name)
        keys = [name] * len(self.columns) + [composed] * len(self.columns) + [fold(name)]
        return next((sorted(table[key]) for table, key in zip(self._tables, keys, strict=True) if key in table), [])

    @cached_property
    def _tables(self) -> list[dict[str, set[int]]]:
        composed = [[unicodedata.normalize("NFC", name) for name in column] for column in self.columns]
        levels = [[column] for column in (*self.columns, *composed)]
        levels.append([[fold(name) for name in column] for column in self.columns])
        tables = []
        for level in levels:
            tables.append(table := defaultdict(set))
            for column in level:
                for position, name in enumerate(column):
                    table[name].add(position)
        return [dict(table) for table in tables]


def plain_cell(text: str) -> str:
    """Return a text as a CSV cell that no spreadsheet runs as a formula: with an apostrophe in front where needed.

    Numbers stay as they are, also negative ones.
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(text) else text


def _check(text: str, field: str, *, max_characters: int, example: str) -> str:
    name = field[:1].upper() + field[1:]
    if not isinstance(text, str):
        raise DataError(f'{name} must be text, got {type(text).__name__}. Write for instance "{example}"')
    for pattern, what, why in (
        (SURROGATE, "half of a character", "the text was damaged by a conversion. Copy it again from its source."),
        (_CONTROL, "a control character", "only printable text, tabs and line breaks are allowed. Remove it."),
    ):
        if found := pattern.search(text):
            raise DataError(f"{name} has {what} (U+{ord(found[0]):04X}) at position {found.start() + 1}: {why}")
    cleaned = _LINE_BREAKS.sub(" ", text.strip())
    if all(character.isspace() or unicodedata.category(character) == "Cf" for character in cleaned):
        raise DataError(f'{name} is empty. Write for instance "{example}"')
    if len(cleaned) > max_characters:
        raise DataError(
            f"{name} has {len(cleaned):,} characters, and at most {max_characters:,} are allowed: "
            f"{_excerpt(cleaned)}. Shorten it."
        )
    return cleaned


def _excerpt(text: str) -> str:
    return f'"{text}"' if len(text) <= _EXCERPT else f'"{text[:_EXCERPT]}…"'


# ---- words as readers see them, and values of sub-tokens summed over them --------------------------------------------

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


def content_words(text: str) -> set[str]:
    """Return the words of a text that are neither marks nor function words, in lower case."""
    return {word.text.casefold() for word in split_words(text) if is_content(word.text)}


def add_up_words(words: Sequence[Word], spans: Sequence[tuple[int, int]], values: np.ndarray) -> np.ndarray:
    """Sum values of sub-tokens, (..., L), over the words that they overlap most: (..., w) float32.

    The spans are those of the characters of each sub-token; empty ones, of special tokens, belong to no word.
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


# ---- is a text English, the only language that the shipped models have learned? --------------------------------------

FEWEST_WORDS = 4
"""Shorter texts are not judged."""
JUDGED = 20
"""Of many texts."""
FOREIGN = "These sentences may not be in English, the only language that models here have learned."
TIMES = 5
"""So many times as probable as English another language has to be: of terms and names alone many are a little so."""

_COMMON = re.compile(
    r"\b(the|and|are|were|been|have|with|without|from|into|this|that|these|those|its|his|they|their|you|your|which|what|"
    r"there)\b",
    re.IGNORECASE,
)
"""A text in which a fourth of the words are these is English, without py3langid, which takes a second and 100 MB."""
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


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
    words, common = len(_LETTERS.findall(text)), len(_COMMON.findall(text))
    return words < FEWEST_WORDS or 4 * common >= words or not is_foreign(text)


def mostly_foreign(texts: Iterable[str]) -> bool:
    """Return whether more than half of the first `JUDGED` different texts may not be English."""
    some = list(dict.fromkeys(texts))[:JUDGED]
    return 2 * sum(map(looks_english, some)) < len(some)


def is_foreign(text: str) -> bool:
    """Return whether one of the languages that py3langid knows is `TIMES` as probable as English; loads it once.

    Measured by benchmarks/language.py. Source: Lui and Baldwin 2012, "langid.py", ACL; the package holds the model.
    """
    ranked = _identifier().rank(text)
    return ranked[0][1] >= TIMES * dict(ranked)["en"]


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
