"""Tables of the papers as bars, learning curves as lines, and histograms of cosines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import plotly.graph_objects as go

from condviz.analysis.subtraction import SIDES, Subtraction
from condviz.evaluation.papers import Table, heading, values


def plot_table(results: Mapping[str, Any], table: Table) -> go.Figure:
    """Draw what was measured for a table: means over seeds, with their standard deviation, a colour per `series`."""
    bars: dict[str, list[tuple[str, float, float]]] = {}
    for setting in ("paper", "here"):
        for figure in getattr(table, f"{setting}_figures"):
            for row in table.rows:
                if len(found := values(results, getattr(row, setting), figure)):
                    series, place = heading(setting, figure), row.name
                    if table.series == "rows":
                        series, place = place, series
                    spread = found.std(ddof=1) if len(found) > 1 else 0.0
                    bars.setdefault(series, []).append((place, found.mean(), spread))
    curves = any(figure.startswith("curve.") for figure in table.here_figures)
    shape = partial(go.Scatter, mode="lines+markers") if curves else go.Bar
    drawn = [
        shape(x=x, y=y, error_y={"array": spread}, name=name)
        for name, rows in bars.items()
        for x, y, spread in [zip(*rows, strict=True)]
    ]
    return go.Figure(drawn).update_layout(template="none", title={"text": table.title}, barmode="group")


def to_html(found: Subtraction) -> str:
    """Draw the cosines to the mean vector with the condition and without it."""
    drawn = [
        go.Histogram(x=cosines, name=name, xbins={"start": -1, "end": 1, "size": 0.025}, opacity=0.7)
        for name, cosines in zip(SIDES, found.cosines, strict=True)
    ]
    figure = go.Figure(drawn).update_layout(
        template="none",
        barmode="overlay",
        xaxis={"title": {"text": "cosine to the mean vector"}},
        yaxis={"title": {"text": "sentences"}},
    )
    return figure.to_html(full_html=False, include_plotlyjs="cdn", default_height=360)
