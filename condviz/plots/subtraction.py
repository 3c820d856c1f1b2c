"""CASE's subtraction: histograms of cosines to the mean vector."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from condviz.analysis.subtraction import SIDES, Subtraction
from condviz.plots.html import render
from condviz.plots.maps import CATEGORY_COLOURS
from condviz.plots.svg import to_svg

BINS = np.arange(-1, 1.0001, 0.025)


def to_html(found: Subtraction) -> str:
    """Draw the cosines to the mean vector with the condition and without it, without a script."""
    figure = go.Figure().update_layout(xaxis_title_text="cosine to the mean vector", yaxis_title_text="sentences")
    key = list(zip(SIDES, CATEGORY_COLOURS, strict=False))
    for (_, colour), cosines in zip(key, found.cosines, strict=True):
        counts, _ = np.histogram(cosines, BINS)
        figure.add_scatter(
            x=np.repeat(BINS, 2)[1:-1], y=np.repeat(counts, 2), mode="lines", line={"color": colour, "width": 2}
        )
    return to_svg(figure, "Cosines to the mean vector") + render("key.html", key=key)
