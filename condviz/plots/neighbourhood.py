"""The neighbourhood of a question to a knowledge graph: entities, the question, and how the relation moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from condviz.plots.maps import plain

ROLES = {
    "query": ("the entity alone", "var(--cv-ink)", "square"),
    "asked": ("under the relation", "var(--cv-ink)", "star"),
    "right": ("known answer", "var(--cv-cat-1)", "circle"),
    "answer": ("other answer", "var(--cv-cat-2)", "circle"),
    "near": ("near the entity alone", "var(--cv-cat-10)", "circle-open"),
}
"""Role of a point -> name in the legend, colour, shape."""
MARKS = {
    "square": "\N{BLACK SQUARE}",
    "star": "\N{BLACK STAR}",
    "circle": "\N{BLACK CIRCLE}",
    "circle-open": "\N{WHITE CIRCLE}",
}
"""Shape -> the same as a character."""
NAMED = 14
"""Points with their name beside them; more would cover each other."""


def legend(points: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, int]]:
    """Give (label, colour, mark, count) of the roles that occur."""
    counts = {role: sum(point["role"] == role for point in points) for role in ROLES}
    return [(*ROLES[role][:2], MARKS[ROLES[role][2]], count) for role, count in counts.items() if count]


def plot_neighbourhood(points: Sequence[Mapping[str, Any]], title: str) -> go.Figure:
    """Draw the points; ids are those of the entities, the question itself has the id "?".

    Args:
        points: {"id", "name", "description", "score", "role", "x", "y"}, the most important first.
        title: What was asked; a new one resets the zoom.
    """
    figure = go.Figure()
    for role, (label, colour, shape) in ROLES.items():
        chosen = [point for point in points if point["role"] == role]
        if chosen:
            figure.add_trace(_trace(chosen, label, {"color": colour, "symbol": shape, "size": _size(role)}))
    hidden = {"visible": False, **_reach(points)}
    labels = [_label(point) for point in points[:NAMED]]
    return figure.update_layout(
        template="none",
        showlegend=False,
        uirevision=title,
        annotations=[*_arrow(points), *labels],
        xaxis=hidden,
        yaxis={**hidden, "scaleanchor": "x"},
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
    )


def _trace(chosen: Sequence[Mapping[str, Any]], label: str, marker: dict[str, Any]) -> go.Scatter:
    badges = [[label, f"score {p['score']:.3f}"] if p["score"] is not None else [label] for p in chosen]
    return go.Scatter(
        x=np.array([point["x"] for point in chosen], dtype=np.float32),
        y=np.array([point["y"] for point in chosen], dtype=np.float32),
        ids=[point["id"] for point in chosen],
        name=label,
        mode="markers",
        text=[_tip(point) for point in chosen],
        customdata=badges,
        hoverinfo="none",
        marker={**marker, "opacity": 0.95},
        unselected={"marker": {"opacity": 0.25}},
    )


def _size(role: str) -> int:
    return {"query": 13, "asked": 16}.get(role, 10)


def _tip(point: Mapping[str, Any]) -> str:
    return f"{point['name']}: {point['description']}" if point["description"] else point["name"]


def _reach(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    reach = 1.15 * max(0.1, *(abs(point[axis]) for point in points for axis in "xy"))
    return {"range": [-reach, reach]}


def _arrow(points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Draw an arrow from the entity alone to the entity under the relation."""
    ends = {point["role"]: point for point in points if point["role"] in ("query", "asked")}
    if len(ends) < 2:
        return []
    start, end = ends["query"], ends["asked"]
    return [
        {
            "x": end["x"], "y": end["y"], "ax": start["x"], "ay": start["y"], "xref": "x", "yref": "y",
            "axref": "x", "ayref": "y", "showarrow": True, "arrowhead": 3, "arrowwidth": 1.5, "text": "",
            "arrowcolor": "var(--cv-muted)", "standoff": 10, "startstandoff": 9,
        }
    ]  # fmt: skip


def _label(point: Mapping[str, Any]) -> dict[str, Any]:
    # The question often lies close to its entity: their names must not.
    place = {"x": point["x"], "y": point["y"], "yshift": -17 if point["role"] == "asked" else 15}
    return {**place, "text": plain(point["name"]), "showarrow": False, "font": {"size": 12}}
