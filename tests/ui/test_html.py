"""Escaping and number formats."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.ui import html

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""
        self.values: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    return reader


@given(ANY_TEXT)
def test_text_adds_no_element_and_no_attribute(content: str) -> None:
    seen = read(html.text("p", content, title=content))
    assert seen.tags == ["p"]
    assert len(seen.values) == 2


@pytest.mark.parametrize("content", ["<img src=x onerror=alert(1)>", "${1+1}", "{{7*7}}", "'\"`&amp;", "a\tb", "שלום"])
def test_text_comes_out_as_typed(content: str) -> None:
    seen = read(html.text("p", content, title=content))
    assert seen.text == content
    assert content in seen.values


@pytest.mark.parametrize("content", ["a\x00b", "a\x07b", "a\x7fb", "a\x9fb"])
def test_control_characters_become_visible(content: str) -> None:
    assert html.esc(content) == "a\N{REPLACEMENT CHARACTER}b"


def test_lone_surrogates_become_a_question_mark() -> None:
    assert html.esc("a\ud800b") == "a?b"


def test_attributes_leave_out_false_and_write_true_bare() -> None:
    assert html.attributes(a=None, b=False, c=True, data_d=1, class_="e") == ' c data-d="1" class="e"'


@pytest.mark.parametrize(
    ("value", "plain", "change", "sign"),
    [
        (0.1234, "0.123", "+0.123", "▴\N{THIN SPACE}"),
        (-0.5, "−0.500", "−0.500", "▾\N{THIN SPACE}"),
        (-0.0001, "0.000", "±0.000", ""),
        (float("nan"), "–", "–", ""),
    ],
)
def test_numbers_have_true_minus_and_no_negative_zero(value: float, plain: str, change: str, sign: str) -> None:
    assert (html.number(value), html.signed(value), html.arrow(value)) == (plain, change, sign)


def test_shade_is_symmetric_and_clamped() -> None:
    assert html.shade(0.2, 0.4)["style"] == html.shade(-0.2, 0.4)["style"] == "--t:0.500"
    assert html.shade(9, 0.4)["style"] == "--t:1.000"
    assert html.shade(float("nan"), 0.4) == {"data_sign": "none"}
    assert html.shade(0.0, 0.4) == {"data_sign": "zero"}


def test_letters_go_on_after_z() -> None:
    assert [html.letter(i) for i in (0, 25, 26, 51, 52)] == ["A", "Z", "AA", "AZ", "BA"]


@given(ANY_TEXT)
def test_inert_markup_reads_the_same_and_opens_no_template(content: str) -> None:
    markup = html.text("p", content, title=content)
    hidden = html.inert(markup)
    assert not set("${}`\\") & set(hidden)
    assert (read(hidden).text, read(hidden).values) == (read(markup).text, read(markup).values)


@given(ANY_TEXT)
def test_a_text_in_a_script_is_one_literal(content: str) -> None:
    literal = html.script_text(content)
    assert json.loads(literal) == content
    assert not set("${}`<>&") & set(literal)
