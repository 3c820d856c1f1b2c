"""Curves of trainings, and plotly's scatter figures, as SVG without a script: in any theme, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from markupsafe import Markup

from condviz.plots.html import plain, render
from condviz.types import Trained

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 460
LEFT, BOTTOM, EDGE = 52, 40, 14
"""Room for ticks and titles of axes; and on the other sides."""
_POLYGONS = {
    "square": "-.9,-.9 .9,-.9 .9,.9 -.9,.9",
    "diamond": "0,-1.25 1.25,0 0,1.25 -1.25,0",
    "triangle-up": "0,-1.2 1.1,.8 -1.1,.8",
    "cross": "-.4,-1.1 .4,-1.1 .4,-.4 1.1,-.4 1.1,.4 .4,.4 .4,1.1 -.4,1.1 -.4,.4 -1.1,.4 -1.1,-.4 -.4,-.4",
    "x": "0,-.55 .6,-1.15 1.15,-.6 .55,0 1.15,.6 .6,1.15 0,.55 -.6,1.15 -1.15,.6 -.55,0 -1.15,-.6 -.6,-1.15",
    "pentagon": "0,-1.15 1.1,-.35 .7,.95 -.7,.95 -1.1,-.35",
    "star": "0,-1.3 .35,-.4 1.25,-.4 .55,.15 .8,1.05 0,.5 -.8,1.05 -.55,.15 -1.25,-.4 -.35,-.4",
}
"""Corners of plotly's symbols, for a radius of 1; what is not here is a circle."""


@dataclass(frozen=True)
class Axis:
    """One axis: its range, and where its ends lie, in pixels or per cent."""

    low: float
    high: float
    start: float
    end: float
    title: str = ""
    drawn: bool = True

    def place(self, value: float) -> float:
        """Return where a value lies."""
        share = (float(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return about five round values with their places."""
        step = 10.0 ** np.floor(np.log10((self.high - self.low) / 4))
        step *= next((times for times in (1, 2, 5) if (self.high - self.low) / (step * times) <= 6), 10)
        values = np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1) * step + 0.0  # no -0
        return [(self.place(value), f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")) for value in values]


def to_svg(figure: go.Figure, label: str) -> Markup:
    """Draw markers, lines and annotations of scatter traces; texts of points are shown when the mouse rests on them.

    Axes that are not visible get equal units and a square. `label` is for those who cannot see it. Pixels
    are those at the natural width of `WIDTH`, though the picture is as wide as its place.
    """
    layout: Any = figure.layout  # plotly types neither by what they hold
    traces: list[Any] = [trace for trace in cast("Any", figure.data) if trace.x is not None and len(trace.x)]
    square = layout.xaxis.visible is False
    left, bottom, height = (EDGE, EDGE, WIDTH) if square else (LEFT, BOTTOM, 300)
    across = _axis(layout.xaxis, [trace.x for trace in traces], left, WIDTH - EDGE)
    up = _axis(layout.yaxis, [trace.y for trace in traces], height - bottom, EDGE)
    marks = [mark for trace in traces for mark in _marks(trace, across.place, up.place)]
    texts = [
        (across.place(one.x), up.place(one.y) - (one.yshift or 0), one.text, one.font.color)
        for one in layout.annotations or ()
    ]
    paths = [(path, trace.line.color) for trace in traces for path in _paths(trace, across.place, up.place)]
    return render(
        "figure.svg", width=WIDTH, height=height, x=across, y=up, marks=marks, paths=paths, texts=texts, label=label
    )


def _axis(axis: Any, columns: Sequence[Any], start: float, end: float) -> Axis:  # noqa: ANN401 - plotly's x or y axis
    title, drawn = axis.title.text or "", axis.visible is not False
    if axis.range:
        return Axis(float(axis.range[0]), float(axis.range[1]), start, end, title, drawn)
    values = np.concatenate([np.asarray(column, dtype=np.float64) for column in columns] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if axis.rangemode == "tozero":
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.06 * (high - low) or 0.5
    return Axis(0.0 if low == 0 and axis.rangemode == "tozero" else low - room, high + room, start, end, title, drawn)


def _marks(trace: Any, x: Callable, y: Callable) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - a trace of plotly
    if "markers" not in (trace.mode or "markers"):
        return
    marker, texts = trace.marker, trace.text if trace.text is not None else ()
    for index, (across, up) in enumerate(zip(trace.x, trace.y, strict=True)):
        if up is None or not np.isfinite(up):
            continue
        symbol = marker.symbol if marker.symbol is None or isinstance(marker.symbol, str) else marker.symbol[index]
        shown = {"x": x(across), "y": y(up), "radius": round(0.5 * (marker.size or 6), 1), "line": marker.line.color}
        text = texts if isinstance(texts, str) else texts[index] if index < len(texts) else ""
        yield shown | {"polygon": _POLYGONS.get(symbol or ""), "colour": _colour(marker, index), "text": text}


def _colour(marker: Any, index: int) -> str:  # noqa: ANN401 - plotly's marker
    if marker.color is None or isinstance(marker.color, str):
        return marker.color or "var(--cv-cat-1)"
    value = marker.color[index]
    if isinstance(value, str):
        return value
    share = 100 * (float(value) - marker.cmin) / (marker.cmax - marker.cmin)
    return f"color-mix(in oklab, var(--cv-ramp-high) {share:.0f}%, var(--cv-ramp-low))"


def _paths(trace: Any, x: Callable, y: Callable) -> Iterator[str]:  # noqa: ANN401 - a trace of plotly
    """Yield a path for each stretch of known values."""
    if "lines" not in (trace.mode or ""):
        return
    stretch: list[str] = []
    for across, up in [*zip(trace.x, trace.y, strict=True), (0, None)]:
        if up is not None and np.isfinite(up):
            stretch.append(f"{x(across)},{y(up)}")
        elif stretch:
            yield f"M{' '.join(stretch)}"
            stretch = []


# ---- curves of trainings ---------------------------------------------------------------------------------------------

FIGURES = (("spearman", "Spearman × 100", 1), ("MRR", "MRR", 3), ("loss", "loss", 4))
"""Key, title and decimals of what is drawn of a finished training: the first that was measured."""
COLOURS = 10
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
    kept = any(curve.kept is not None for curve in curves)
    return render("curves.html", x=x, y=y, lines=lines[::-1], levels=named.items(), kept=kept)


def to_html(result: Trained) -> str:
    """Render the figure of a training that chose the weights, else the loss."""
    for key, title, digits in FIGURES:
        rows = [record for record in result.curve if key in record and record["event"] != "end"]
        if rows:
            measured = [row for row in rows if row["event"] == "evaluation"]
            kept = max(measured, key=lambda row: row[key] or 0, default={"step": None})["step"]
            curve = Curve([row["step"] for row in rows], [row[key] for row in rows], kept, name=result.name)
            return draw_curves([curve], title, digits=digits)
    return ""
