"""Curves of trainings: one line per run over the steps, with the scores of known models as straight lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from condviz.plots.maps import CATEGORY_COLOURS
from condviz.types import Trained

CURVES = (
    ("spearman", "Spearman × 100", 1),
    ("MRR", "MRR", 3),
    ("loss", "loss", 4),
)
"""Key, title and decimals of what is drawn: the first that was measured."""


@dataclass(frozen=True)
class Curve:
    """One line.

    Attributes:
        name: Of the run.
        steps, values: (n,) each; None where a value is missing.
    """

    name: str
    steps: Sequence[int]
    values: Sequence[float | None]


def plot_curves(
    curves: Sequence[Curve], title: str, *, baselines: Mapping[str, float] | None = None, digits: int = 1
) -> go.Figure:
    """Draw curves over the steps of the training.

    Args:
        curves: One per run; colours go by position.
        title: Of the vertical axis.
        baselines: Name of a model -> its value, drawn as a dotted line.
        digits: Decimals in the tips.
    """
    figure = go.Figure()
    for index, curve in enumerate(curves):
        colour = CATEGORY_COLOURS[index % len(CATEGORY_COLOURS)]
        known = sum(value is not None for value in curve.values)
        figure.add_trace(
            go.Scatter(
                x=list(curve.steps), y=list(curve.values), name=curve.name,
                mode="lines" if known > 60 else "lines+markers",
                line={"color": colour, "width": 2}, marker={"color": colour, "size": 6},
                hovertemplate=f"step %{{x:,}}: %{{y:.{digits}f}}",
            )
        )  # fmt: skip
    last = max((step for curve in curves for step in curve.steps), default=1)
    for name, value in (baselines or {}).items():
        figure.add_hline(
            y=value, line_width=1, line_dash="dot", line_color="var(--cv-muted)",
            annotation={"text": name, "font": {"size": 11, "color": "var(--cv-muted)"}, "xanchor": "left", "x": 0.01},
        )  # fmt: skip
    figure.update_layout(
        xaxis={"title": {"text": "step"}, "rangemode": "tozero", "range": None if curves else [0, last]},
        yaxis={"title": {"text": title}},
        showlegend=len(curves) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"l": 8, "r": 12, "t": 12, "b": 8},
        hovermode="x unified" if len(curves) > 1 else "closest",
    )
    return figure


def plot_training(trained: Trained) -> go.Figure:
    """Draw the figure that chose the weights over the steps, or the loss where nothing was validated."""
    for key, title, digits in CURVES:
        rows = [record for record in trained.curve if key in record and record["event"] != "end"]
        if rows:
            curve = Curve(trained.name, [row["step"] for row in rows], [row[key] for row in rows])
            return plot_curves([curve], title, digits=digits)
    return plot_curves([], "loss")


def to_html(trained: Trained) -> str:
    """Render a finished training: its curve."""
    return plot_training(trained).to_html(full_html=False, include_plotlyjs="cdn", default_height=360)
