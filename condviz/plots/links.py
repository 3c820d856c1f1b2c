"""Answers to questions about a knowledge graph as cards: the answers, how likely, and which ones the graph knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from condviz.analysis.answers import LinkAnswers, LinkProfile
from condviz.data.kg import clause, with_article
from condviz.plots.html import render

if TYPE_CHECKING:
    from condviz.analysis.answers import LinkAnswer

NAMED = 2
"""Answers that the headline names for one question."""
STYLES = ("links.css",)
SHOWN = 3
"""Answers of a card that stand out equally; more are behind "more answers"."""


def to_html(result: LinkAnswers | LinkProfile) -> Markup:
    """Render the answers to one question, or what the model says about one entity."""
    if isinstance(result, LinkProfile):
        return headline(result) + cards(result.answers)
    return cards([result])


def cards(results: Sequence[LinkAnswers], *, active: bool = False) -> Markup:
    """Render the answers to several questions side by side, one card each; `active` ones are buttons that ask on."""
    return render("links/cards.html", cards=[_card(result) for result in results], active=active)


def headline(profile: LinkProfile) -> Markup:
    """Render what the model says about an entity as one sentence."""
    sensible = [item for item in profile.answers if item.sensible and item.answers] or list(profile.answers[:1])
    clauses = [_clause(item) for item in sensible]
    first = profile.answers[0]
    name = first.entity.partition(":")[0] if not first.entity_id else first.entity
    return render(
        "links/headline.html",
        subject=with_article(name),
        clauses=[text for text in clauses if text],
        familiar=first.familiar,
        first=sensible[0],
    )


def _clause(result: LinkAnswers) -> str:
    names = [item.name for item in result.leading[:NAMED]]
    return clause(names, result.relation, inverse=result.direction == "head") if names else ""


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
