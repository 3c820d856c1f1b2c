"""Curves of trainings and histograms of cosines, without a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from condviz.analysis.subtraction import SIDES, Subtraction
from condviz.plots.html import plain, render
from condviz.plots.svg import Axis, to_svg
from condviz.types import Trained

FIGURES = (("spearman", "Spearman × 100", 1), ("MRR", "MRR", 3), ("loss", "loss", 4))
"""Key, title and decimals of what is drawn of a finished training: the first that was measured."""
COLOURS = 10
BINS = np.arange(-1, 1.0001, 0.025)
"""Of histograms of cosines."""
MOST_DOTS = 60
"""A curve with more values is a line alone."""


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
    name: str = ""
    """Of the training, for the legend."""

    def points(self) -> list[tuple[int, float]]:
        """Return the steps with a value."""
        pairs = zip(self.steps, self.values, strict=True)
        return [(step, value) for step, value in pairs if value is not None and np.isfinite(value)]


def draw_curves(
    curves: Sequence[Curve], title: str = "", *, levels: Mapping[str, float] | None = None, digits: int = 1
) -> Markup:
    """Draw curves over the steps, the first in front; a ring marks the step that is kept. "" where there is none.

    `levels` are names and values drawn as dashed lines, for instance those before the training; `digits` are those of
    tips.
    """
    levels = levels or {}
    found = [curve.points() for curve in curves]
    values = [*(value for points in found for _, value in points), *levels.values()]
    if not any(found):
        return Markup("")
    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 0.5
    last = max([step for points in found for step, _ in points] + [curve.end for curve in curves])
    x, y = Axis(0, max(last, 1), 0, 100, "step"), Axis(low - room, high + room, 100, 0, title)
    lines = []
    for number, (curve, points) in enumerate(zip(curves, found, strict=True)):
        placed = [
            (x.place(step), y.place(value), f"step {step:,}: {plain(value, digits)}", step) for step, value in points
        ]
        path = "M" + " ".join(f"{across},{up}" for across, up, *_ in placed) if placed else ""
        dots = placed if len(placed) <= MOST_DOTS else [one for one in placed if one[-1] == curve.kept]
        lines.append((path, f"var(--cv-cat-{number % COLOURS + 1})", dots, curve))
    named: dict[float, str] = {}
    for name, value in levels.items():
        place = y.place(value)
        named[place] = f"{named[place]}; {name}" if place in named else name
    return render("curves.html", x=x, y=y, lines=lines[::-1], levels=named.items())


def to_html(result: Trained | Subtraction) -> str:
    """Render cosines to the mean vector, or of a training the figure that chose the weights, else the loss."""
    if isinstance(result, Subtraction):
        return _histograms(result)
    for key, title, digits in FIGURES:
        rows = [record for record in result.curve if key in record and record["event"] != "end"]
        if rows:
            measured = [row for row in rows if row["event"] == "evaluation"]
            kept = max(measured, key=lambda row: row[key] or 0, default={"step": None})["step"]
            curve = Curve([row["step"] for row in rows], [row[key] for row in rows], kept, name=result.name)
            return draw_curves([curve], title, digits=digits)
    return ""


def _histograms(found: Subtraction) -> str:
    """Draw the cosines to the mean vector with the condition and without it, without a script."""
    import plotly.graph_objects as go

    figure = go.Figure().update_layout(xaxis_title_text="cosine to the mean vector", yaxis_title_text="sentences")
    key = [(side, f"var(--cv-cat-{number})") for number, side in enumerate(SIDES, start=1)]
    for (_, colour), cosines in zip(key, found.cosines, strict=True):
        counts, _ = np.histogram(cosines, BINS)
        figure.add_scatter(
            x=np.repeat(BINS, 2)[1:-1], y=np.repeat(counts, 2), mode="lines", line={"color": colour, "width": 2}
        )
    return to_svg(figure, "Cosines to the mean vector") + render("key.html", key=key)
