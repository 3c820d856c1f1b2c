"""Curves of trainings: one figure over the steps, and the step whose weights are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from condviz.plots.maps import CATEGORY_COLOURS
from condviz.plots.svg import to_svg
from condviz.types import Trained

FIGURES = (("spearman", "Spearman × 100", 1), ("MRR", "MRR", 3), ("loss", "loss", 4))
"""Key, title and decimals of what is drawn of a finished training: the first that was measured."""


@dataclass(frozen=True)
class Curve:
    """Values over steps."""

    steps: Sequence[int] = ()
    values: Sequence[float | None] = ()
    """(n,) each; None where a value is missing."""
    kept: int | None = None
    """Step whose weights are kept; None where that is not known."""
    end: int = 0
    """Last step of the training; 0 where that is not known."""


def plot_curve(curve: Curve, title: str = "", *, digits: int = 1) -> go.Figure:
    """Draw a curve over the steps of a training; a ring marks the step that is kept, `digits` are those of the tips."""
    colour, tip = CATEGORY_COLOURS[0], f"step %{{x:,}}: %{{y:.{digits}f}}<extra></extra>"
    figure = go.Figure(
        go.Scatter(
            x=list(curve.steps), y=list(curve.values), mode="lines" if len(curve.values) > 60 else "lines+markers",
            line={"color": colour, "width": 2}, marker={"color": colour, "size": 6}, hovertemplate=tip,
        )
    )  # fmt: skip
    if curve.kept is not None and curve.kept in curve.steps:
        value = curve.values[list(curve.steps).index(curve.kept)]
        figure.add_scatter(
            x=[curve.kept], y=[value], mode="markers+text", text=["kept"], textposition="top center", cliponaxis=False,
            marker={"size": 13, "color": "rgba(0,0,0,0)", "line": {"color": colour, "width": 2}}, hovertemplate=tip,
        )  # fmt: skip
    figure.update_layout(
        xaxis={"title": {"text": "step"}, "rangemode": "tozero", "range": [0, 1.02 * curve.end] if curve.end else None},
        yaxis={"title": {"text": title}},
        showlegend=False,
        margin={"l": 8, "r": 20, "t": 24, "b": 8},
        hovermode="closest",
    )
    return figure


def plot_training(trained: Trained) -> go.Figure:
    """Draw the figure that chose the weights over the steps, or the loss where nothing was validated."""
    for key, title, digits in FIGURES:
        rows = [record for record in trained.curve if key in record and record["event"] != "end"]
        if rows:
            kept = max(
                (row for row in rows if row["event"] == "evaluation"), key=lambda row: row[key] or 0, default=None
            )
            curve = Curve([row["step"] for row in rows], [row[key] for row in rows], kept["step"] if kept else None)
            return plot_curve(curve, title, digits=digits)
    return plot_curve(Curve())


def to_html(trained: Trained) -> str:
    """Render a finished training: its curve, without a script."""
    figure = plot_training(trained)
    return to_svg(figure, f"{figure.layout.yaxis.title.text} over the steps of {trained.name}")
