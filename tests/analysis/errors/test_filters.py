"""The filter language: what it selects, what it refuses, and that nothing in it runs."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.analysis.errors.filters import quote, select
from condviz.errors import DataError


def objects(*values: object) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


COLUMNS = {
    "gold": np.array([1.0, 3.0, 5.0, np.nan]),
    "error": np.array([2.0, 0.0, -2.0, np.nan]),
    "right": np.array([1.0, 0.0, np.nan, np.nan]),
    "condition": objects("the sport", "The Mood", 'a "b" \\', "the sport"),
    "sentence1": objects("A dog runs.", "Cats", "Hot dogs", ""),
    "shared": objects(frozenset({"dog"}), frozenset(), frozenset({"dogs"}), frozenset()),
}


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("", [0, 1, 2, 3]),
        ("gold >= 3", [1, 2]),
        ("rating >= 3", [1, 2]),
        ("not gold >= 3", [0]),
        ("1 < gold < 5", [1]),
        ("gold == 1 or error == -2", [0, 2]),
        ("abs(error) > 1 and gold != 5", [0]),
        ("error + gold * 2 == 4", [0]),
        ("gold / 0 > 1", [0, 1, 2]),
        ("right", [0]),
        ("not right", [1]),
        ("right == 0", [1]),
        ('condition == "THE SPORT"', [0, 3]),
        ('condition == " the  sport"', [0, 3]),
        ('condition != "the sport"', [1, 2]),
        ('condition in ("the mood", "the sport")', [0, 1, 3]),
        ('condition not in ("the mood",)', [0, 2, 3]),
        ('"dog" in sentence1', [0, 2]),
        ('"dog" in shared', [0]),
        ('"dog" not in shared', [1, 2, 3]),
        ("gold in (1, 5)", [0, 2]),
        ('(gold > 1 or "dog" in shared) and not condition == "the mood"', [0, 2]),
        ("True", [0, 1, 2, 3]),
        ("dog", [0, 2]),
        ('"Hot dogs" or cats and not right', [1, 2]),
    ],
)
def test_what_a_filter_selects(expression: str, rows: list[int]) -> None:
    assert np.flatnonzero(select(expression, COLUMNS)).tolist() == rows


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("gold >", "cannot be read"),
        ("ratng > 1", "Did you mean rating"),
        ("gold = 1", "Write == for"),
        ("rihgt", "Did you mean right"),
        ("gold", "alone is not a condition"),
        ("condition > 'a'", "have no order"),
        ("condition == 1", "is text"),
        ("gold == 'x'", "is text"),
        ("'a' in gold", "a column of texts"),
        ("condition + 1 > 2", "is text"),
        ("gold is 1", "write == instead"),
        ("abs(gold, 1) > 1", "abs takes one number"),
        ("__import__('os').system('true')", "not part of a filter"),
        ("gold.__class__ == 1", "not part of a filter"),
        ("[x for x in gold] == 1", "not part of a filter"),
        ("(lambda: 1)() == 1", "not part of a filter"),
        ("gold ** 9 > 1", "not part of a filter"),
        ("open('x') == 1", "not part of a filter"),
        ("f'{gold}' == 'x'", "not part of a filter"),
        ("gold > 1j", "not part of a filter"),
        ("(gold := 1) > 0", "not part of a filter"),
        ("gold > 1; gold", "cannot be read"),
        ("x" * 3000, "at most 2,000"),
        ("gold > " + "9" * 1900, "nested too deeply, or has a damaged"),
        ("(" * 900 + "gold > 1" + ")" * 900, ""),
        ("gold > \x00", ""),
    ],
)
def test_what_a_filter_refuses(expression: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        select(expression, COLUMNS)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "expression", ["not " * 490 + "right", "(" * 150 + "gold > 1" + ")" * 150, "-" * 900 + "gold > 1"]
)
def test_deep_filters_are_read_or_refused(expression: str) -> None:
    with suppress(DataError):
        assert select(expression, COLUMNS).shape == (4,)


@given(st.text(max_size=60))
def test_any_text_selects_rows_or_gets_a_message(text: str) -> None:
    with suppress(DataError):
        assert select(text, COLUMNS).shape == (4,)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_quoted_texts_find_themselves(text: str) -> None:
    columns = {"condition": objects(text, text + "x")}
    assert select(f"condition == {quote(text)}", columns).tolist() == [True, False]


@given(
    st.sampled_from(["gold > 2", "right", "error < 1", 'condition == "the sport"']),
    st.sampled_from(["gold < 4", "right"]),
)
def test_the_laws_of_de_morgan_hold_with_what_is_not_known(one: str, two: str) -> None:
    left = select(f"not ({one} and {two})", COLUMNS)
    right = select(f"not ({one}) or not ({two})", COLUMNS)
    assert (left == right).all()
