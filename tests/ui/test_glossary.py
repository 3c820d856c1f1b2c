"""The glossary: every term that the page marks has an entry, and opens it."""

from __future__ import annotations

import re

import pytest

from condviz.plots.html import TEMPLATES as PICTURES
from condviz.plots.html import term as mark
from condviz.ui.markup import TEMPLATES, TERMS, render

MARKED = {
    key
    for folder in (PICTURES, TEMPLATES)
    for path in folder.rglob("*.html")
    for key in re.findall(r"""term\(["']([a-z_-]+)["']""", path.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize("key", sorted(MARKED))
def test_a_marked_term_is_in_the_glossary(key: str) -> None:
    assert TERMS[key]["text"]


def test_a_term_of_a_picture_becomes_a_button_and_texts_stay_texts() -> None:
    typed = '<dfn data-term="router">x</dfn>'
    markup = render("compare/words.html", pictures=[mark("percentile", "percentile"), typed])
    assert 'popovertarget="cv-term-percentile">percentile</button>' in markup
    assert "cv-term-router" not in markup
