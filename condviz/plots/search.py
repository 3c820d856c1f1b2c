"""What a search found: ranked lists, and figures of groups: where they lie, and how those of two conditions meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from condviz.analysis.answers import Hit, Hits
from condviz.analysis.search import GOOD_PERCENTILE
from condviz.data.texts import is_content, looks_english
from condviz.plots.html import render
from condviz.plots.similarity import TYPICAL, share

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from condviz.analysis.groups import CrossTable, Group, Groups
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
    return render(f"search/{type(result).__name__.lower()}.html", result=result, share=_share, needed=GOOD_PERCENTILE)


def headline(results: Sequence[Hits], *, english: bool = False) -> Markup:
    """Render what the conditions change, and under which of them nothing matches; `english` is known of the query."""
    told = [result for result in results if not result.untold]
    matched = [result for result in told if result.matches]
    first, other = [*matched, None, None][:2]
    best = next((hit for hit in first.hits if hit.good), None) if first else None
    missed = [result for result in told if result.condition and not result.matches]
    under, near = next(((one.condition, hit) for one in missed for hit in one.hits[:1]), ("", None))
    shared = len({hit.row for hit in first.hits} & {hit.row for hit in other.hits}) if first and other else 0
    return render(
        "search/headline.html",
        first=first or results[0],
        best=best,
        text=_shorten(hit.text) if (hit := best or near) else "",
        other=other,
        shared=shared,
        told=told,
        common=any(_is_common(hit) for result in told if result.condition for hit in result.hits),
        under=under,
        near=_share(near.percentile) if near else "",
        mute=", which may not say it" if near and near.untold else "",
        alike=near is not None and near.percentile >= TYPICAL,
        needed=GOOD_PERCENTILE,
        missed=[result.condition for result in missed],
        untold=[result.condition for result in results if result.untold],
        wordless=_is_wordless(results),
        foreign=not english and not looks_english(results[0].query),
    )


def columns(
    results: Sequence[Hits], *, open_hit: Callable[[Hit, Hits], Sequence[tuple[str, str]]] | None = None
) -> Markup:
    """Render ranked lists side by side; `open_hit` gives names and query strings of where else a hit can be opened.

    Of a query without a word there is nothing to show: the order of its hits says nothing.
    """
    if _is_wordless(results):
        return Markup()
    lists: list[dict] = [
        {"result": result, "rows": [_row(rank, hit, result) for rank, hit in enumerate(result.hits, start=1)]}
        for result in results
    ]
    read = any(hit.words for result in results for hit in result.hits)
    marks = {
        mark: any(row[mark] for one in lists for row in one["rows"]) for mark in ("common", "close", "far", "untold")
    }
    return render(
        "search/columns.html", lists=lists, open_hit=open_hit, read=read, share=_share, needed=GOOD_PERCENTILE,
        typical=TYPICAL, **marks,
    )  # fmt: skip


def _row(rank: int, hit: Hit, result: Hits) -> dict[str, object]:
    move = hit.plain_rank - rank if result.condition else 0
    untold, common = hit.untold, _is_common(hit) and bool(result.condition)
    missed, alike = result.condition and not (hit.good or common or untold), hit.percentile >= TYPICAL
    marks = {"untold": untold, "common": common, "close": missed and alike, "far": missed and not alike}
    return {"rank": rank, "hit": hit, "parts": _parts(hit), "move": move, **marks}


def _share(percentile: float) -> str:
    """Return a percentile in print; what misses a match by little does not look like one."""
    limit = next((one for one in (TYPICAL, GOOD_PERCENTILE) if percentile < one), None)
    return share(percentile if limit is None else min(percentile, limit - 1))


def _is_wordless(results: Sequence[Hits]) -> bool:
    return not any(map(str.isalnum, results[0].query))


def _is_common(hit: Hit) -> bool:
    """Return whether a hit is no match only because many pairs of its corpus are as close."""
    return hit.percentile >= GOOD_PERCENTILE and not hit.good and not hit.untold


def words_of(hit: Hit) -> list[str]:
    """Return the words that carry a hit, marks and function words left out, strongest first."""
    return [word for word in hit.carried_by if is_content(word)][:CARRYING]


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


def plot_groups(result: Groups) -> go.Figure:
    """Draw every text at its first two principal components, coloured by group; ids are rows of the source."""
    import plotly.graph_objects as go

    from condviz.plots.maps import MISSING, category_colour

    figure = go.Figure()
    named = [(group, _group_name(number, group), category_colour(number)) for number, group in enumerate(result.groups)]
    if result.left_over:
        named.append((result.left_over, "no group", MISSING))
    for group, name, colour in named:
        x, y = np.array(group.points, dtype=np.float32).T
        figure.add_scattergl(
            x=x, y=y, mode="markers", name=name, ids=[str(row) for row in group.rows],
            text=list(group.texts), customdata=[group.name if group.words else ""] * group.size, hoverinfo="none",
            marker={"color": colour, "size": 6, "opacity": 0.75},
        )  # fmt: skip
    axis = {"visible": False}
    legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top"}
    figure.update_layout(xaxis=axis, yaxis=axis, legend=legend, uirevision=f"{result.model.name} {result.condition}")
    return figure


def plot_flows(result: CrossTable) -> go.Figure:
    """Draw the groups under both conditions as parallel categories: a ribbon is as wide as there are texts in both."""
    import plotly.graph_objects as go

    from condviz.plots.maps import as_label, category_colour

    cells = [(i, j, count) for i, row in enumerate(result.counts) for j, count in enumerate(row) if count]
    first, second, counts = zip(*cells, strict=True) if cells else ((), (), ())
    dimensions = [
        {"label": as_label(found.condition), "values": [_group_name(place, found.groups[place]) for place in places]}
        for found, places in ((result.first, first), (result.second, second))
    ]
    colours = [category_colour(place) for place in first]
    figure = go.Figure(
        go.Parcats(
            dimensions=dimensions, counts=list(counts), line={"color": colours, "shape": "hspline"},
            hoverinfo="count", sortpaths="forward",
        )
    )  # fmt: skip
    return figure.update_layout(margin={"l": 150, "r": 150, "t": 30, "b": 10})


def _group_name(number: int, group: Group) -> str:
    from condviz.plots.maps import as_label

    return as_label(f"{number + 1}. {group.name}")
