"""Answers to questions about a knowledge graph as cards: the answers, how likely, and which ones the graph knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from condviz.analysis.answers import LinkAnswers, LinkProfile
from condviz.data.kg import clause, with_article
from condviz.plots.html import cut, render

if TYPE_CHECKING:
    from condviz.analysis.answers import LinkAnswer

NAMED, LISTED = 2, 5
"""Answers that the headline names for one question; and of a graph that the model has not learnt."""
STYLES = ("links.css",)
DRAWN, ROW, LONGEST = 3, 24, 22
"""Ends of a relation in the picture, the height of each, and letters of a name."""
SHOWN = 3
"""Answers of a card that stand out equally; more are behind "more answers"."""


def to_html(result: LinkAnswers | LinkProfile) -> Markup:
    """Render the answers to one question, or what the model says about one entity."""
    if isinstance(result, LinkProfile):
        return headline(result) + cards(result.answers)
    return cards([result])


def cards(results: Sequence[LinkAnswers], *, active: bool = False) -> Markup:
    """Render the answers to several questions side by side, one card each; `active` ones are buttons that ask on."""
    shown = [_card(result, told=_tells(results, result)) for result in results]
    return render("links/cards.html", cards=shown, active=active)


def _tells(results: Sequence[LinkAnswers], result: LinkAnswers) -> bool:
    """Whether some answers are told: of a name for which the best fitting questions have none, others are chance."""
    fit = max(one.fit for one in results)
    return result.told and any(one.told for one in results if one.fit == fit)


def headline(profile: LinkProfile) -> Markup:
    """Render what the model says about an entity as one sentence; of one that is not in it, what it guesses."""
    answered = [item for item in profile.answers if _tells(profile.answers, item) and item.answers]
    sensible = [item for item in answered if item.sensible] or answered[:1]
    first = profile.answers[0]
    name = first.entity.partition(":")[0] if first.guess else first.entity
    return render(
        "links/headline.html",
        name=name,
        subject=f"“{name}”" if first.guess else with_article(name),
        clauses=[text for text in map(_clause, sensible) if text],
        first=sensible[0] if sensible else first,
        told=bool(sensible),
        facts=[] if first.model.graph == first.graph else [_fact(item) for item in profile.answers if item.known],
        lost=first.question if profile.asked and first not in sensible else "",
    )


def neighbourhood(profile: LinkProfile) -> Markup:
    """Draw what an entity is linked to, solid where the graph holds it and dashed where the model guesses."""
    groups = []
    for item in profile.answers:
        known = list(item.known[:DRAWN])
        guessed = [
            one
            for one in item.leading
            if _tells(profile.answers, item) and one.id not in {found.id for found in item.known}
        ]
        ends = [(one.name, True) for one in known] + [(one.name, False) for one in guessed[: DRAWN - len(known)]]
        if ends:
            text = item.relation.strip("_").replace("_", " ")
            groups.append((text if item.direction == "tail" else f"← {text}", ends))
    rows = sum(len(ends) for _, ends in groups)
    middle, place, drawn = ROW * rows / 2, 0, []
    for text, ends in groups:
        heights = [ROW * (place + number + 0.5) for number in range(len(ends))]
        place += len(ends)
        nodes = [
            {"name": cut(name, LONGEST), "known": known, "y": y} for (name, known), y in zip(ends, heights, strict=True)
        ]
        drawn.append({"text": cut(text, LONGEST), "y": sum(heights) / len(heights), "nodes": nodes})
    name = cut(profile.entity, LONGEST)
    return render("links/neighbourhood.html", name=name, groups=drawn, height=ROW * rows, middle=middle)


def _fact(result: LinkAnswers) -> str:
    """Return what a graph that the model has not learnt holds: its relations may be in any language."""
    names = ", ".join(item.name for item in result.known[:LISTED])
    names += f" and {more:,} more" if (more := len(result.known) - LISTED) > 0 else ""
    ends = [result.entity, result.relation.strip("_").replace("_", " "), names]
    return " \N{RIGHTWARDS ARROW} ".join(ends[::-1] if result.direction == "head" else ends)


def _clause(result: LinkAnswers) -> str:
    said = result.known or result.leading  # beside what the graph holds, a guess would pass for known
    names = [item.name for item in said[:NAMED]]
    told = clause(names, result.relation, inverse=result.direction == "head") if names else ""
    return f"{told} (a guess)" if told and not (result.guess or said[0].split) else told


def _card(result: LinkAnswers, *, told: bool) -> dict[str, object]:
    # What the graph holds comes before what the model guesses, however sure it is.
    guesses = [item for item in result.leading if not item.split]
    leading = [*result.known, *guesses][:SHOWN]
    shown = {item.id for item in leading}
    return {
        "result": result,
        "told": told,
        "leading": [_row(item, result) for item in leading],
        "others": [_row(item, result) for item in result.answers if item.id not in shown],
        "missed": [item.name for item in result.known if item.id not in shown][:SHOWN],
        "unsure": not (told and result.sensible),
    }


def _row(item: LinkAnswer, result: LinkAnswers) -> dict[str, object]:
    """Return what a line shows; the length of the bar is the cosine, on one scale in all cards."""
    return {
        "item": item,
        "found": item in result.leading,
        "median": result.median,
        "length": round(100 * min(max(item.score, 0.02), 1), 1),
    }
