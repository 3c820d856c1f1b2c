"""CASE's subtraction: histograms of cosines to the mean vector."""

from __future__ import annotations

import plotly.graph_objects as go

from condviz.analysis.subtraction import SIDES, Subtraction


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
