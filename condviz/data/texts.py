"""Checks of the texts that people type or upload: one clear message instead of a strange score."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from condviz.errors import DataError

MAX_SENTENCE_CHARACTERS = 5_000
"""Far more than any shipped encoder reads (512 tokens); keeps a pasted book from stopping the page."""
MAX_CONDITION_CHARACTERS = 300
"""A condition is a short phrase such as "the number of people"."""
MAX_CONDITIONS = 20
"""What one matrix can show."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

_LINE_BREAKS = re.compile(r"[\t\n\r\x85\u2028\u2029]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_EXCERPT = 40


def check_sentence(text: str, field: str) -> str:
    """Return a sentence as it is scored: outer blanks removed, line breaks and tabs turned into blanks.

    Everything else stays as typed: case, accents in either Unicode form, emoji, right-to-left text, HTML.

    Args:
        text: The sentence.
        field: Where it stands, for the message: "sentence 1", or "row 3, column sentence1".

    Raises:
        DataError: If it is not text, blank, longer than `MAX_SENTENCE_CHARACTERS`, or has control characters or halves
            of surrogate pairs.
    """
    return _check(text, field, max_characters=MAX_SENTENCE_CHARACTERS, example="A man is surfing.")


def check_condition(text: str, field: str) -> str:
    """Return one condition as it is scored; as `check_sentence`, with at most `MAX_CONDITION_CHARACTERS`."""
    return _check(text, field, max_characters=MAX_CONDITION_CHARACTERS, example="the sport")


def check_conditions(conditions: Sequence[str], *, max_conditions: int = MAX_CONDITIONS) -> list[str]:
    """Return the conditions of one comparison as they are scored, in the same order.

    Raises:
        DataError: If there is none, there are too many, one is not usable (its position is named, counted from 1), or
            two are the same but for case and blanks.
    """
    if isinstance(conditions, str) or not isinstance(conditions, Sequence):
        raise DataError(f"Conditions must be a list of texts, got {type(conditions).__name__}. Put it in a list.")
    if not conditions:
        raise DataError('There is no condition. Give at least one, for instance "the sport".')
    if len(conditions) > max_conditions:
        raise DataError(
            f"There are {len(conditions):,} conditions, and at most {max_conditions:,} are allowed. "
            "Leave some out, or score a table with: condviz evaluate --data FILE.csv"
        )
    checked = [check_condition(text, f"condition {number}") for number, text in enumerate(conditions, start=1)]
    first_at: dict[str, int] = {}
    for number, text in enumerate(checked, start=1):
        key = " ".join(text.casefold().split())
        if key in first_at:
            raise DataError(
                f"Conditions {first_at[key]} and {number} are the same: {_excerpt(text)}. Remove one of them."
            )
        first_at[key] = number
    return checked


def plain_cell(text: str) -> str:
    """Return a text as a CSV cell that no spreadsheet runs as a formula: with an apostrophe in front where needed.

    Numbers stay as they are, also negative ones.
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(text) else text


def _check(text: str, field: str, *, max_characters: int, example: str) -> str:
    name = field[:1].upper() + field[1:]
    if not isinstance(text, str):
        raise DataError(f'{name} must be text, got {type(text).__name__}. Write for instance "{example}"')
    if found := _SURROGATE.search(text):
        raise DataError(
            f"{name} has half of a character (U+{ord(found.group()):04X}) at position {found.start() + 1}: "
            "the text was damaged by a conversion. Copy it again from its source."
        )
    if found := _CONTROL.search(text):
        raise DataError(
            f"{name} has a control character (U+{ord(found.group()):04X}) at position {found.start() + 1}. "
            "Only printable text, tabs and line breaks are allowed. Remove it."
        )
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
