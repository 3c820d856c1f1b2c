"""Links: what is written is read again, and nothing that a visitor pastes breaks the page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from condviz.ui.state import (
    MAX_TEXT,
    conditions_of,
    first,
    lines,
    number,
    place,
    read_link,
    read_rows,
    write_link,
    write_rows,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(st.lists(st.tuples(st.sampled_from(["s1", "c", "m"]), TEXTS), max_size=8))
def test_a_link_is_read_as_it_was_written(pairs: list[tuple[str, str]]) -> None:
    tab, values = read_link(write_link("map", pairs))
    assert tab == "map"
    assert [value for found in (values.get(key, []) for key in ("s1", "c", "m")) for value in found] == [
        text for key in ("s1", "c", "m") for name, text in pairs if name == key
    ]


@given(st.text(max_size=200))
def test_any_query_is_read_without_an_error(query: str) -> None:
    tab, values = read_link(query)
    assert isinstance(tab, str)
    assert all(len(value) <= MAX_TEXT for found in values.values() for value in found)


def test_links_of_the_first_edition_open_compare() -> None:
    assert read_link("?s1=a&s2=b&c=x&c=y&m=csr&d=1-0") == (
        "compare",
        {"s1": ["a"], "s2": ["b"], "c": ["x", "y"], "m": ["csr"], "d": ["1-0"]},
    )


def test_numbers_stay_in_their_range() -> None:
    assert number({"k": ["12"]}, "k", 5, low=1, high=10) == 10
    assert number({"k": ["-3"]}, "k", 5, low=1, high=10) == 1
    for damaged in ("99999999999999", "x", "", "-", "--3", "3-", "\u0663"):
        assert number({"k": [damaged]}, "k", 5, low=1, high=10) == 5
    assert first({}, "none", "d") == "d"


def test_chosen_rows_come_back_as_runs_and_anything_else_is_left_out() -> None:
    assert write_rows([9, 2, 3, 4]) == "2-4.9"
    assert read_rows("2-4.9", 9) == (2, 3, 4)
    assert read_rows("7-3.x.-1.1-2-3.\u0663.5", 9) == (5,)
    assert read_rows("0-99999999", 3) == (0, 1, 2)
    assert write_rows(range(0, 2 * MAX_TEXT + 1, 2)) == ""


def test_a_position_that_a_browser_sent_is_checked() -> None:
    assert [place(value, 5) for value in ("4", 3, 0)] == [4, 3, 0]
    for wrong in ("5", "²", "\u0663", "-1", "1.0", "", None, "9" * 5000):
        assert place(wrong, 5) is None


def test_lone_surrogates_do_not_reach_the_address() -> None:
    assert read_link(write_link("compare", [("s1", "a\ud800b")]))[1]["s1"] == ["a?b"]


def test_lines_keep_what_the_core_has_to_report() -> None:
    assert lines(" the sport \r\n\nthe\x0bmood\r") == ("the sport", "the\x0bmood")
    assert conditions_of("the sport\nthe mood\nThe  sport\n") == ("the sport", "the mood"), "each is asked once"


def test_a_page_opens_by_its_name_and_by_the_one_before() -> None:
    for link in ("words?s1=a", "router?s1=a", "?t=words&s1=a", "?tab=Router&s1=a"):
        assert read_link(link) == ("words", {"s1": ["a"]})
    assert read_link("") == read_link("./") == ("compare", {})
