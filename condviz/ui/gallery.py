"""Cards with examples in three grades; a click fills the form."""

from __future__ import annotations

from collections.abc import Sequence

from condviz.data.examples import Example
from condviz.ui.assets import GRADES
from condviz.ui.html import join, tag, text


def render_gallery(examples: Sequence[Example]) -> str:
    """Write the gallery: a switch of the three grades, and the cards of the chosen one."""
    if not examples:
        return ""
    present = [grade for grade in GRADES if any(example.grade == grade for example in examples)]
    switch = join(
        tag(
            "label",
            f'<input type="radio" name="cv-grade" value="{grade}"{" checked" if i == 0 else ""}>',
            text("span", f"{GRADES[grade]} ({sum(e.grade == grade for e in examples)})"),
        )
        for i, grade in enumerate(present)
    )
    cards = join(
        tag(
            "div",
            *[_card(example) for example in examples if example.grade == grade],
            class_="cv-cards",
            data_grade=grade,
            hidden=i > 0,
        )
        for i, grade in enumerate(present)
    )
    head = tag(
        "div",
        tag("h2", "Examples", id="cv-examples-title"),
        tag("div", switch, class_="cv-segments", role="radiogroup", aria_label="Grade of the examples"),
        class_="cv-section-head",
    )
    return tag("section", head, cards, class_="cv-gallery", aria_labelledby="cv-examples-title", data_testid="gallery")


def _card(example: Example) -> str:
    conditions = join(text("span", condition, class_="cv-chip") for condition in example.conditions)
    return tag(
        "button",
        tag("span", text("span", example.domain), class_="cv-card-domain"),
        text("span", example.title, class_="cv-card-title"),
        text("span", example.sentence1, class_="cv-card-sentence"),
        text("span", example.sentence2, class_="cv-card-sentence"),
        tag("span", conditions, class_="cv-chips"),
        text("span", example.note, class_="cv-card-note") if example.note else "",
        type="button",
        class_="cv-card",
        data_example=example.id,
    )
