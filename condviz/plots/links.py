"""Answers to questions about a knowledge graph as cards: the answers, how likely, and which ones the graph knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from condviz.plots.html import render

if TYPE_CHECKING:
    from condviz.types import LinkAnswer, LinkAnswers

SHOWN = 5
"""Answers of a card that stand out equally; more are behind "more answers"."""


def to_html(result: LinkAnswers) -> Markup:
    """Render the answers to one question."""
    return render_cards([result])


def render_cards(results: Sequence[LinkAnswers]) -> Markup:
    """Render the answers to several questions side by side, one card each."""
    return render("links.html", cards=[_card(result) for result in results])


def _card(result: LinkAnswers) -> dict[str, object]:
    leading = result.leading[:SHOWN]
    shown = {item.id for item in result.answers}
    return {
        "result": result,
        "leading": [_row(item, result) for item in leading],
        "others": [_row(item, result) for item in result.answers[len(leading) :]],
        "below": [_row(item, result) for item in result.known if item.id not in shown][:SHOWN],
        "unsure": not (result.familiar and result.sensible),
    }


def _row(item: LinkAnswer, result: LinkAnswers) -> dict[str, object]:
    """Return what a line shows; the length of the bar is 0 for an unrelated entity and 1 for a perfect match."""
    length = (item.score - result.median) / max(1 - result.median, 1e-6)
    return {"item": item, "median": result.median, "length": round(100 * min(max(length, 0.02), 1), 1)}
