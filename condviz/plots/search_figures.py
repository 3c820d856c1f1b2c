"""Figures of groups: where they lie, and how those of two conditions meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from condviz.plots.maps import MISSING, category_colour, plain

if TYPE_CHECKING:
    from condviz.analysis.groups import CrossTable, Group, Groups


def plot_groups(result: Groups) -> go.Figure:
    """Draw every text at its first two principal components, coloured by group; ids are rows of the source."""
    figure = go.Figure()
    named = [(group, _name(number, group), category_colour(number)) for number, group in enumerate(result.groups)]
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
    cells = [(i, j, count) for i, row in enumerate(result.counts) for j, count in enumerate(row) if count]
    first, second, counts = zip(*cells, strict=True) if cells else ((), (), ())
    dimensions = [
        {"label": plain(found.condition), "values": [_name(place, found.groups[place]) for place in places]}
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


def _name(number: int, group: Group) -> str:
    return plain(f"{number + 1}. {group.name}")
