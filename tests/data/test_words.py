"""Words as people see them, and sub-token values over them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.data.texts import add_up_words, leave_out, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't touch the well-known man’s 3.5 cats!", "Don't|touch|the|well-known|man’s|3.5|cats|!"),
        ("1,000 dogs, or more...", "1,000|dogs|,|or|more|.|.|."),
        ("猫が好き", "猫|が|好|き"),
        ("a 👩‍👩‍👧 surfs 🏄🏽‍♀️", "a|👩‍👩‍👧|surfs|🏄🏽‍♀️"),
        ("cafe\u0301 naïve", "cafe\u0301|naïve"),
        ("مرحبا بالعالم", "مرحبا|بالعالم"),
        ("  spaced \t out\n", "spaced|out"),
        ("<b>x</b>", "<|b|>|x|<|/|b|>"),
        ("", ""),
    ],
)
def test_words(text: str, words: str) -> None:
    found = split_words(text)
    assert "|".join(word.text for word in found) == words
    assert all(text[word.start : word.end] == word.text for word in found)


@given(st.text(max_size=60))
def test_words_cover_all_but_blanks_in_order(text: str) -> None:
    words = split_words(text)
    places = [i for word in words for i in range(word.start, word.end)]
    assert places == sorted(set(places))
    assert all(text[i].isspace() for i in set(range(len(text))) - set(places))


def test_a_sub_token_belongs_to_the_word_it_overlaps_most() -> None:
    words = split_words("don't surf")
    spans = [(0, 0), (0, 3), (3, 5), (4, 8), (8, 10), (5, 6), (0, 0)]
    values = np.array([[9.0, 1, 2, 4, 8, 16, 9]])
    # (4, 8) has one character of the first word and two of the second; (5, 6) is a blank.
    np.testing.assert_array_equal(add_up_words(words, spans, values), [[3, 12]])
    assert add_up_words((), spans, values).shape == (1, 0)


@pytest.mark.parametrize(
    ("text", "place", "rest"),
    [
        ("a man surfs", 0, "man surfs"),
        ("a man surfs", 1, "a surfs"),
        ("a man surfs", 2, "a man"),
        ("well, yes", 1, "well yes"),
        ("surfs", 0, ""),
        ("猫が好き", 1, "猫好き"),
    ],
)
def test_a_word_is_left_out_with_its_blank(text: str, place: int, rest: str) -> None:
    assert leave_out(text, split_words(text)[place]) == rest
