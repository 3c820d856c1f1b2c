"""What a search found: a ranked list for each condition, with the place that each text has without the condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from condviz.data.language import looks_english
from condviz.plots.html import render
from condviz.plots.similarity import share
from condviz.plots.words import is_quiet
from condviz.types import TOLD, Hit, Hits

if TYPE_CHECKING:
    from condviz.analysis.groups import CrossTable, Groups
    from condviz.analysis.sorting import SortingConditions, Twins

STYLES = ("evaluation.css", "search.css")
QUOTED = 90
"""Characters of a text that a headline quotes."""
CARRYING = 3
"""Words marked in a hit."""


def to_html(result: Hits | Groups | CrossTable | Twins | SortingConditions) -> Markup:
    """Render the hits of one search, or of several side by side; others have templates of their names."""
    if results := [result] if isinstance(result, Hits) else getattr(result, "results", ()):
        return headline(results) + columns(results)
    return render(f"search/{type(result).__name__.lower()}.html", result=result)


def headline(results: Sequence[Hits]) -> Markup:
    """Render what the conditions change as one sentence."""
    asked = [result for result in results if result.condition] or list(results[:1])
    first = next((result for result in asked if result.matches and not result.untold), asked[0])
    best = next((hit for hit in first.hits if hit.good), None)
    others = (result for result in results if result is not first and result.matches and not result.untold)
    other = next(others, None)
    shared = len({hit.row for hit in first.hits} & {hit.row for hit in other.hits}) if other else 0
    return render(
        "search/headline.html",
        first=first,
        best=best,
        text=_shorten(best.text) if best else "",
        other=other,
        shared=shared,
        matched=bool(first.matches) and not first.untold,
        foreign=not looks_english(first.query),
    )


def columns(
    results: Sequence[Hits], *, open_hit: Callable[[Hit, Hits], Sequence[tuple[str, str]]] | None = None
) -> Markup:
    """Render ranked lists side by side.

    Args:
        results: As in `headline`.
        open_hit: Returns where else on the page a hit can be opened: names, and query strings.
    """
    lists = [
        {"result": result, "rows": [_row(rank, hit, result) for rank, hit in enumerate(result.hits, start=1)]}
        for result in results
    ]
    read = any(hit.words for result in results for hit in result.hits)
    return render("search/columns.html", lists=lists, open_hit=open_hit, read=read, share=share)


def _row(rank: int, hit: Hit, result: Hits) -> dict[str, object]:
    move = hit.plain_rank - rank if result.condition else 0
    untold = hit.applies is not None and hit.applies < TOLD
    return {"rank": rank, "hit": hit, "parts": _parts(hit), "move": move, "untold": untold}


def words_of(hit: Hit) -> list[str]:
    """Return the words that carry a hit, marks and function words left out, strongest first."""
    return [word for word in hit.carried_by if not is_quiet(word)][:CARRYING]


def _parts(hit: Hit) -> list[tuple[str, float | None]]:
    """Split the text at the words that carry it; these come with their effects."""
    carrying = words_of(hit)
    parts, end = [], 0
    for word, effect in zip(hit.words.words2, hit.words.effects2, strict=True) if carrying and hit.words else ():
        if word.text.lower() in carrying and effect > 0:
            parts += [(hit.text[end : word.start], None), (word.text, float(effect))]
            end = word.end
    return [*parts, (hit.text[end:], None)]


def _shorten(text: str) -> str:
    text = text.rstrip(" .")
    return text if len(text) <= QUOTED else text[: QUOTED - 1].rsplit(" ", 1)[0] + "…"
