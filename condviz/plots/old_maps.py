"""Figures of a map: points before and after conditioning, and what W_c does to conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from condviz.analysis.map_result import EmbeddingMap

SideName = Literal["before", "after"]
MAX_CATEGORIES = 10
CATEGORY_COLOURS = tuple(f"var(--cv-cat-{number})" for number in range(1, MAX_CATEGORIES + 1))
OTHER, MISSING = "var(--cv-cat-other)", "var(--cv-missing)"
RAMP = [[0.0, "var(--cv-ramp-low)"], [1.0, "var(--cv-ramp-high)"]]
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "star")
SYMBOLS_3D = ("circle", "square", "diamond", "cross", "x", "circle-open", "square-open", "diamond-open")
NUMERIC_SHARE = 0.95


@dataclass(frozen=True)
class Colouring:
    """What the points are coloured by.

    Attributes:
        name: "condition", "cluster", "drift", or a column of the table.
        categories: (label, colour, count), commonest first; empty for numbers.
        labels: (n,) label of each point among the categories; empty for numbers.
        numbers: (n,) NaN where missing; None for categories.
        ends: Lowest and highest number.
    """

    name: str
    categories: tuple[tuple[str, str, int], ...] = ()
    labels: tuple[str, ...] = ()
    numbers: np.ndarray | None = None
    ends: tuple[float, float] = (0.0, 1.0)


def colouring(result: EmbeddingMap, name: str) -> Colouring:
    """Choose colours for the points; one choice for both maps.

    Args:
        result: The map.
        name: "condition", "cluster" (after conditioning), "drift", or a column. Unknown names count as "condition".
    """
    points = result.points
    if name == "drift":
        return Colouring(name, numbers=np.asarray(result.drift, dtype=np.float64))
    if name == "cluster" and result.after.clusters is not None:
        return _categories(name, [f"cluster {cluster}" for cluster in result.after.clusters.tolist()])
    if name in points.columns:
        cells = points.columns[name]
        numbers = _as_numbers(cells)
        if numbers is not None:
            return Colouring(name, numbers=numbers, ends=(float(np.nanmin(numbers)), float(np.nanmax(numbers))))
        return _categories(name, [cell or "missing" for cell in cells])
    return _categories("condition", points.conditions)


def plot_side(result: EmbeddingMap, side: SideName, colours: Colouring) -> go.Figure:
    """Draw one of the two maps; ids are the positions of the points, shapes tell the conditions.

    Args:
        result: The map.
        side: Which.
        colours: From `colouring`.
    """
    points, layout = result.points, result.projection
    places = layout.before if side == "before" else layout.after
    shapes = _shapes(result, layout.config.dimensions)
    badges = _badges(result)
    figure = go.Figure()
    for label, colour, chosen in _parts(colours, len(points.texts)):
        marker: dict[str, Any] = {"size": _size(len(points.texts), layout.config.dimensions), "opacity": 0.9}
        marker["symbol"] = [shapes[i] for i in chosen]
        marker |= {"color": colour} if colours.numbers is None else _ramp(colours, chosen)
        figure.add_trace(
            _trace(places[chosen], layout.before[chosen] if side == "after" else None)(
                ids=[str(i) for i in chosen],
                name=label,
                mode="markers",
                text=[points.texts[i] for i in chosen],
                customdata=[badges[i] for i in chosen],
                hoverinfo="none",
                marker=marker,
                unselected={"marker": {"opacity": 0.25}},
            )
        )
    return figure.update_layout(_frame(result))


def plot_spectra(weights: Mapping[str, Any]) -> go.Figure:
    """Draw the singular values of W_c of each condition."""
    figure = go.Figure()
    for index, (condition, spectrum) in enumerate(zip(weights["conditions"], weights["spectra"], strict=True)):
        colour = CATEGORY_COLOURS[index] if index < MAX_CATEGORIES else OTHER
        figure.add_trace(
            go.Scatter(
                x=np.arange(1, len(spectrum) + 1),
                y=np.asarray(spectrum, dtype=np.float32),
                mode="lines",
                name=condition,
                text=[condition] * len(spectrum),
                customdata=[f"no. {rank}: {value:.3f}" for rank, value in enumerate(spectrum, start=1)],
                hoverinfo="none",
                line={"color": colour, "width": 2},
            )
        )
    figure.update_xaxes(title_text="rank of the singular value")
    figure.update_yaxes(title_text="share of the largest", rangemode="tozero")
    return figure.update_layout(template="none", showlegend=False, margin={"l": 48, "r": 12, "t": 12, "b": 44})


def plot_conditions(weights: Mapping[str, Any]) -> go.Figure:
    """Draw the conditions by how alike their matrices are."""
    places = np.asarray(weights["places"], dtype=np.float32).reshape(-1, 2)
    names = weights["conditions"]
    colours = [CATEGORY_COLOURS[i] if i < MAX_CATEGORIES else OTHER for i in range(len(names))]
    trace = go.Scatter(
        x=places[:, 0],
        y=places[:, 1],
        ids=[f"condition {index}" for index in range(len(names))],
        mode="markers",
        text=names,
        customdata=[f"size {norm:.4f}" for norm in weights["norms"]],
        hoverinfo="none",
        marker={"size": 13, "color": colours},
    )
    labels = [
        # Annotations are read as markup, so that of a reader's text is taken away.
        {"x": float(x), "y": float(y), "text": plain(name), "showarrow": False, "yshift": 16, "font": {"size": 12}}
        for (x, y), name in zip(places.tolist(), names, strict=True)
    ]
    figure = go.Figure(trace)
    reach = 1.45 * float(np.abs(places).max(initial=0.1))
    hidden = {"visible": False, "range": [-reach, reach]}
    return figure.update_layout(
        template="none", showlegend=False, annotations=labels, xaxis=hidden, yaxis={**hidden, "scaleanchor": "x"}
    )


def _categories(name: str, labels: Sequence[str]) -> Colouring:
    counts = Counter(label for label in labels if label != "missing").most_common()
    shown = counts if len(counts) <= MAX_CATEGORIES else counts[: MAX_CATEGORIES - 1]
    kept = {label for label, _ in shown}
    rest = sum(count for label, count in counts if label not in kept)
    rows = [(label, colour, count) for (label, count), colour in zip(shown, CATEGORY_COLOURS, strict=False)]
    rows += [("other", OTHER, rest)] if rest else []
    missing = sum(label == "missing" for label in labels)
    rows += [("missing", MISSING, missing)] if missing else []
    grouped = tuple(label if label in kept or label == "missing" else "other" for label in labels)
    return Colouring(name, tuple(rows), grouped)


def _as_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """Read a column as numbers if nearly all of its cells are and there are more than ten different ones."""
    numbers = np.array([_number(cell) for cell in cells])
    filled = sum(bool(cell) for cell in cells)
    enough = filled and np.isfinite(numbers).sum() >= NUMERIC_SHARE * filled
    return numbers if enough and len(set(cells)) > MAX_CATEGORIES else None


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan


def _parts(colours: Colouring, number: int) -> list[tuple[str, str, list[int]]]:
    if colours.numbers is not None:
        known = np.isfinite(colours.numbers)
        parts = [(colours.name, "", np.flatnonzero(known).tolist())]
        return parts + ([("missing", MISSING, np.flatnonzero(~known).tolist())] if not known.all() else [])
    members: dict[str, list[int]] = {label: [] for label, _, _ in colours.categories}
    for index in range(number):
        members[colours.labels[index]].append(index)
    return [(label, colour, members[label]) for label, colour, _ in colours.categories]


def _ramp(colours: Colouring, chosen: Sequence[int]) -> dict[str, Any]:
    values = colours.numbers[chosen].astype(np.float32)
    if not np.isfinite(values).all():
        return {"color": MISSING}
    low, high = colours.ends
    return {
        "color": values,
        "colorscale": RAMP,
        "cmin": low,
        "cmax": high if high > low else low + 1,
        "showscale": False,
        "line": {"color": "var(--cv-rule-strong)", "width": 1},
    }


def _trace(places: np.ndarray, start: np.ndarray | None) -> Any:  # noqa: ANN401 - a trace class with its coordinates
    coordinates = dict(zip("xyz", places.T.astype(np.float32), strict=False))
    if len(coordinates) == 3:
        return lambda **rest: go.Scatter3d(**coordinates, **{k: v for k, v in rest.items() if k != "unselected"})
    moved = {} if start is None else {"meta": {"from": {"x": start[:, 0].copy(), "y": start[:, 1].copy()}}}
    return lambda **rest: go.Scattergl(**coordinates, **moved, **rest)


def _shapes(result: EmbeddingMap, dimensions: int) -> list[str]:
    symbols = SYMBOLS if dimensions == 2 else SYMBOLS_3D
    number = {group: index for index, group in enumerate(result.points.groups)}
    if len(number) > len(symbols):
        return ["circle"] * len(result.points.texts)
    return [symbols[number[condition]] for condition in result.points.conditions]


def _badges(result: EmbeddingMap) -> list[list[str]]:
    points = result.points
    extra = [name for name in ("value",) if name in points.columns]
    drift = [f"{100 * share:.0f} % of neighbours changed" for share in result.drift]
    columns = [points.columns[name] for name in extra]
    return [list(row) for row in zip(points.conditions, *columns, drift, strict=True)]


def _size(number: int, dimensions: int) -> float:
    size = 9 if number <= 200 else 7 if number <= 2000 else 4
    return size if dimensions == 2 else 0.6 * size


def _frame(result: EmbeddingMap) -> dict[str, Any]:
    """Give axes that hold both maps and everything between them, so that points stay in sight while they move."""
    layout = result.projection
    reach = 1.08 * float(max(np.abs(layout.before).max(initial=0), np.abs(layout.after).max(initial=0), 0.1))
    hidden = {"visible": False, "range": [-reach, reach]}
    made = layout.config
    revision = f"{made} {result.model['name']} {len(result.points.texts)} {reach:.3f}"
    common = {
        "template": "none",
        "showlegend": False,
        "uirevision": revision,
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
    }
    if made.dimensions == 3:
        return {**common, "scene": {"xaxis": hidden, "yaxis": hidden, "zaxis": hidden, "aspectmode": "cube"}}
    return {**common, "xaxis": hidden, "yaxis": {**hidden, "scaleanchor": "x"}}


def plain(text: str) -> str:
    """Shorten a name and take its markup away: plotly reads annotations as markup."""
    short = text if len(text) <= 32 else f"{text[:31]}\N{HORIZONTAL ELLIPSIS}"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
