"""Texts: what is kept as typed, what is cleaned, and what each refusal names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.data.texts import (
    MAX_CONDITION_CHARACTERS,
    MAX_CONDITIONS,
    MAX_SENTENCE_CHARACTERS,
    check_conditions,
    check_sentence,
)
from condviz.errors import DataError

KEPT = [
    "Café au lait", "Cafe\u0301 au lait", "ירושלים של זהב", "مرحبا بالعالم", "👩‍👩‍👧 at the beach 🏖️",
    "<img src=x onerror=alert(1)>", "${1+1} {{7*7}}", "two  blanks   stay", "x" * MAX_SENTENCE_CHARACTERS,
]  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_unusual_but_honest_text_stays_as_typed(text: str) -> None:
    assert check_sentence(text, "sentence 1") == text


def test_outer_blanks_go_and_line_breaks_become_blanks() -> None:
    assert check_sentence(" \tA man\r\nis\tsurfing.\u2028\n", "sentence 1") == "A man is surfing."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Sentence 2 is empty"),
        (" \n\t", "Sentence 2 is empty"),
        ("\u200b\u200f", "Sentence 2 is empty"),
        ("a\x00b", r"Sentence 2 has a control character \(U\+0000\) at position 2"),
        ("\x1bred", r"control character \(U\+001B\) at position 1"),
        ("\x1f", "control character"),
        ("ab\ud83d", r"Sentence 2 has half of a character \(U\+D83D\) at position 3"),
        ("x" * 100_000, r'Sentence 2 has 100,000 characters, and at most 5,000 are allowed: "x{40}…"'),
        (None, "Sentence 2 must be text, got NoneType"),
        (3.5, "Sentence 2 must be text, got float"),
    ],
)
def test_unusable_sentence_is_refused_by_name(text: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_sentence(text, "sentence 2")


def test_conditions_keep_their_order() -> None:
    assert check_conditions([" the sport ", "the mood"]) == ["the sport", "the mood"]
    assert check_conditions(("the sport",)) == ["the sport"]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], "There is no condition"),
        ("the sport", "must be a list of texts, got str"),
        (None, "must be a list of texts, got NoneType"),
        (["the sport", " "], "Condition 2 is empty"),
        (["the sport", 7], "Condition 2 must be text, got int"),
        (["the sport", "the mood", "The  SPORT"], "Conditions 1 and 3 are the same"),
        (["x" * (MAX_CONDITION_CHARACTERS + 1)], "Condition 1 has 301 characters, and at most 300"),
        ([f"condition {number}" for number in range(500)], "There are 500 conditions, and at most 20"),
    ],
)
def test_unusable_conditions_are_refused_by_position(conditions: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_conditions(conditions)


def test_the_most_conditions_can_be_raised() -> None:
    conditions = [f"condition {number}" for number in range(MAX_CONDITIONS + 1)]
    assert check_conditions(conditions, max_conditions=len(conditions)) == conditions


@given(st.text(max_size=60))
def test_any_text_is_cleaned_once_or_refused(text: str) -> None:
    try:
        cleaned = check_sentence(text, "sentence 1")
    except DataError:
        return
    assert check_sentence(cleaned, "sentence 1") == cleaned
    cleaned.encode("utf-8")
