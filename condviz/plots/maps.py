"""Pictures of a map: points before and after conditioning, what W_c does to conditions, and all of it as HTML."""

from __future__ import annotations

import html
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from condviz.analysis.geometry import FEWEST, judge_values
from condviz.analysis.maps import EmbeddingMap
from condviz.evaluation.metrics import COUNTED, counted
from condviz.plots.html import cut, render
from condviz.plots.svg import to_svg

SideName = Literal["before", "after"]
Spot = tuple[int, int, int]
Name = tuple[str, float, float, Sequence[Spot]]
SIDES: tuple[SideName, ...] = ("before", "after")
MAX_CATEGORIES = 10
CATEGORY_COLOURS = tuple(f"var(--cv-cat-{number})" for number in range(1, MAX_CATEGORIES + 1))
OTHER, MISSING = "var(--cv-cat-other)", "var(--cv-missing)"
RAMP = [[0.0, "var(--cv-ramp-low)"], [1.0, "var(--cv-ramp-high)"]]
SYMBOLS: dict[str, str] = dict(
    zip(("circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "star"), "●■◆▲✚✖⬟★", strict=True)
)
"""Shape of plotly -> the same as a character, for legends."""
NUMERIC_SHARE = 0.95
PICTURES = (290, 340, 420, 520, 640)
"""Pixels across, from a phone to a beamer: labels may touch neither each other nor points on any; a character is 7
wide, and a point 10."""
SPARSE, FEW, SOME = 12, 24, 48
LONG, SHORT, BRIEF = 32, 18, 10
"""On a map of so few different points each is labelled, with so many characters, or fewer where these find no place;
else groups are, and on one of some points whatever else there is room for."""
ABOVE = ((0, 0, 14), (0, 0, 33), (1, 0, 14), (1, 0, 33), (-1, 0, 14), (-1, 0, 33))
AROUND = ((1, 10, 0), (-1, 10, 0), (0, 0, 15), (0, 0, -15))
"""Where the label of a group, or of a point, may stand, best first: on which side, how far off, and how far up."""
CAUTION = (
    "2-D maps distort distances: how far apart two clusters lie means little. Neighbours, values and impurity are "
    "measured in the original space."
)


@dataclass(frozen=True)
class Category:
    """Points that share a mark."""

    label: str
    colour: str
    mark: str
    """The shape as a character; a circle where shapes tell conditions apart and not categories."""
    members: tuple[int, ...]
    """Positions of the points."""
    group: str = ""
    """The condition under which the legend lists it, or ""."""

    @property
    def id(self) -> str:
        """What stands for it in links."""
        return f"{self.group}: {self.label}" if self.group else self.label


@dataclass(frozen=True)
class Colouring:
    """What the points are coloured by."""

    name: str
    """One of "condition", "cluster", "change", or a column of the table."""
    categories: tuple[Category, ...] = ()
    """Commonest first; empty for numbers."""
    numbers: np.ndarray | None = None
    """(n,) NaN where missing; None for categories."""
    ends: tuple[float, float] = (0.0, 1.0)
    searched: bool = False
    """True if there are more categories than colours: all points look the same, and a reader picks one."""


def headline(result: EmbeddingMap) -> str:
    """Return the answer of a map in one sentence: what conditioning does to neighbours, as far as it can be told.

    Without values it tells of the nearest one alone: in a small map all others are among the ten nearest; where
    sentences stand under several conditions, of those under which most and fewest get another one. Conditions of which
    most sentences say nothing take no part.
    """
    points = result.points
    before, after, chance = result.before.agreement, result.after.agreement, result.after.chance
    if before is None or after is None or chance is None:
        if {*points.groups} == {*result.untold}:
            names = " or ".join(f"“{group}”" for group in points.groups)
            return f"Most sentences seem to say nothing about {names}, so where they lie after reading it means little."
        read = f"“{points.groups[0]}”" if len(points.groups) == 1 else "the condition"
        moved = {read: points.copies[0]}
        if points.within:
            moved = {group: [row for row in points.copies[0] if points.conditions[row] == group]
                     for group in points.groups}  # fmt: skip
            moved = {group: rows for group, rows in moved.items() if group not in result.untold}
        nearest = [side.neighbors.indices[:, 0] for side in (result.before, result.after)]
        shares = {group: float((nearest[0] != nearest[1])[rows].mean()) for group, rows in moved.items()}
        most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
        first, last = (counted(shares[group], len(moved[group])) for group in (most, least))
        of = first + " of" * (len(moved[most]) >= COUNTED)
        if len(moved) == 1:
            under = f"Under “{most}”" if points.within else f"Once {most} is read"
            return f"{under}, {of} sentences get a new nearest neighbour."
        other = f"under “{least}”, {last}" if first != last else "under the others about as many"
        return f"Under “{most}”, {of} sentences get a new nearest neighbour; {other}."
    sides = result.before.neighbors, result.after.neighbors
    rise, above = judge_values(*sides, points)
    if rise.says == "few":
        few = f"{rise.n} sentence{'s have' if rise.n != 1 else ' has'} a known value"
        return f"{few}, and {FEWEST} are needed to say whether the condition brings the same values together."
    name, each = "value", ""
    if points.crossed:
        name, each = f"“{points.value}”", f", under {len(points.groups)} conditions each" * (len(points.groups) > 1)
    figures = (
        f"{_percent(before)} of the nearest ones before reading the condition, {_percent(after)} after "
        f"({_percent(chance)} by chance; {rise.n:,} sentences{each})"
    )
    start = f"Under “{points.groups[0]}”, s" if len(points.groups) == 1 else "S"
    if rise.sure:
        return f"{start}entences with the same {name} are neighbours {rise.says} often: {figures}."
    if above.says == "more":
        told = "are neighbours more often than by chance; the condition makes no clear difference"
    else:
        told = "are not surely neighbours more often than by chance, and the condition makes no clear difference"
    return f"{start}entences with the same {name} {told}: {figures}."


def colouring(result: EmbeddingMap, name: str = "") -> Colouring:
    """Choose colours for the points, one choice for both sides.

    They show "condition", "cluster" (after conditioning), "change", or a column; "" takes `result.colour`.
    """
    name, points = name or result.colour, result.points
    if name == "change":
        return Colouring(name, numbers=np.asarray(result.change, dtype=np.float64))
    if name == "cluster" and result.after.measures is not None and result.after.measures.clusters is not None:
        return _categories(name, [f"cluster {cluster + 1}" for cluster in result.after.measures.clusters])
    if name not in points.columns:
        marks = {condition: SYMBOLS[shape] for condition, shape in _shapes(points.groups).items()}
        return _categories("condition", points.conditions, marks)
    cells = points.columns[name]
    numbers = _as_numbers(cells)
    if numbers is not None:
        return Colouring(name, numbers=numbers, ends=(float(np.nanmin(numbers)), float(np.nanmax(numbers))))
    return _within_conditions(result, name, cells) or _categories(name, cells)


def plot_side(result: EmbeddingMap, side: SideName, colours: Colouring) -> go.Figure:
    """Draw one side; ids are the positions of the points, shapes tell the conditions.

    Points at one place are drawn side by side in a spiral. Clusters are labelled with their distinctive words.
    """
    points, number = result.points, len(result.points.texts)
    reach = 1.08 * max(float(np.abs(getattr(result, name).layout).max(initial=0.1)) for name in SIDES)
    places = {name: _set_apart(getattr(result, name).layout, 0.022 * reach) for name in SIDES}
    shapes, badges = _shapes(points.groups), _badges(result)
    figure = go.Figure()
    for label, marker, chosen in _traces(colours):
        moved = {} if side == "before" else {"meta": {"from": dict(zip("xy", places["before"][chosen].T, strict=True))}}
        figure.add_scattergl(
            **dict(zip("xy", places[side][chosen].T, strict=True)),
            **moved,
            ids=[str(i) for i in chosen],
            name=label,
            mode="markers",
            text=[points.texts[i] for i in chosen],
            customdata=[badges[i] for i in chosen],
            hoverinfo="none",
            marker={
                "size": 10 if number <= 200 else 7 if number <= 2000 else 4,
                "opacity": 0.9,
                "symbol": [shapes.get(points.conditions[i], "circle") for i in chosen],
                **marker,
            },
            unselected={"marker": {"opacity": 0.25}},
        )
    hidden = {"visible": False, "range": [-reach, reach]}
    return figure.update_layout(
        template="none",
        showlegend=False,
        uirevision=f"{result.made} {result.model['name']} {number} {reach:.3f}",
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        xaxis=hidden,
        yaxis={**hidden, "scaleanchor": "x"},
        annotations=_labels(_named(result, side, places[side]), places[side], reach),
    )


def plot_spectra(matrices: Mapping[str, Any]) -> go.Figure:
    """Draw the singular values of W_c of each condition."""
    figure = go.Figure()
    for index, (condition, spectrum) in enumerate(zip(matrices["conditions"], matrices["spectra"], strict=True)):
        figure.add_scatter(
            x=np.arange(1, len(spectrum) + 1),
            y=np.asarray(spectrum, dtype=np.float32),
            mode="lines",
            name=condition,
            text=[condition] * len(spectrum),
            customdata=[f"no. {rank}: {value:.3f}" for rank, value in enumerate(spectrum, start=1)],
            hoverinfo="none",
            line={"color": category_colour(index), "width": 2},
        )
    figure.update_xaxes(title_text="rank of the singular value")
    figure.update_yaxes(title_text="share of the largest", rangemode="tozero")
    return figure.update_layout(template="none", showlegend=False, margin={"l": 48, "r": 12, "t": 12, "b": 44})


def plot_conditions(matrices: Mapping[str, Any]) -> go.Figure:
    """Draw the conditions by how alike their matrices are."""
    places = np.asarray(matrices["places"], dtype=np.float32).reshape(-1, 2)
    names = matrices["conditions"]
    trace = go.Scatter(
        x=places[:, 0],
        y=places[:, 1],
        ids=[f"condition {index}" for index in range(len(names))],
        mode="markers",
        text=names,
        customdata=[f"size {norm:.4f}" for norm in matrices["norms"]],
        hoverinfo="none",
        marker={"size": 13, "color": [category_colour(index) for index in range(len(names))]},
    )
    labels = [
        {"x": float(x), "y": float(y), "text": as_label(name), "showarrow": False, "yshift": 16, "font": {"size": 13}}
        for (x, y), name in zip(places.tolist(), names, strict=True)
    ]
    reach = 1.45 * float(np.abs(places).max(initial=0.1))
    hidden = {"visible": False, "range": [-reach, reach]}
    return go.Figure(trace).update_layout(
        template="none", showlegend=False, annotations=labels, xaxis=hidden, yaxis={**hidden, "scaleanchor": "x"}
    )


def to_html(result: EmbeddingMap) -> Markup:
    """Render headline, both sides, legend and measures, without a script."""
    colours = colouring(result)
    labels = {"before": "Map of the sentences alone", "after": "Map of the sentences under their conditions"}
    return render(
        "map.html",
        result=result,
        headline=headline(result),
        figures={name: to_svg(plot_side(result, name, colours), labels[name]) for name in SIDES},
        legend=legend(colours),
        caution=CAUTION,
        measured=[(name, getattr(result, name).measures) for name in SIDES if getattr(result, name).measures],
    )


def legend(colours: Colouring) -> list[tuple[str, list[Category]]]:
    """Return the categories of a legend under their conditions; "" where they belong to all."""
    groups = itertools.groupby(colours.categories, key=lambda category: category.group)
    return [(group, list(found)) for group, found in groups]


def shapes(result: EmbeddingMap, colours: Colouring) -> list[tuple[str, str]]:
    """Return mark and condition where shapes tell conditions apart and the categories of the legend do not."""
    groups = result.points.groups
    circles = all(category.mark == SYMBOLS["circle"] for category in colours.categories)
    return list(zip(SYMBOLS.values(), groups, strict=False)) if circles and 1 < len(groups) <= len(SYMBOLS) else []


def as_label(name: str) -> str:
    """Shorten a name and escape its markup: plotly reads annotations as markup."""
    return html.escape(cut(name, 32), quote=False)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def category_colour(index: int) -> str:
    """Return the colour of a category by its place."""
    return CATEGORY_COLOURS[index] if index < MAX_CATEGORIES else OTHER


def _members(labels: Iterable[Any]) -> dict[Any, tuple[int, ...]]:
    """Return the positions of each different label, the commonest label first."""
    found: dict[Any, list[int]] = {}
    for index, label in enumerate(labels):
        found.setdefault(label, []).append(index)
    return {label: tuple(found[label]) for label in sorted(found, key=lambda label: -len(found[label]))}


def _categories(name: str, labels: Sequence[str], marks: Mapping[str, str] | None = None) -> Colouring:
    """Assign each label a colour, commonest first, or list them for searching if there are too many."""
    marks, members = marks or {}, _members(labels)
    missing = members.pop("", ())
    searched = len(members) > MAX_CATEGORIES
    rows = [
        Category(label, category_colour(0 if searched else index), marks.get(label, SYMBOLS["circle"]), members[label])
        for index, label in enumerate(members)
    ]
    if missing:
        rows.append(Category("missing", MISSING, SYMBOLS["circle"], missing))
    return Colouring(name, tuple(rows), searched=searched)


def _within_conditions(result: EmbeddingMap, name: str, cells: Sequence[str]) -> Colouring | None:
    """Colour the values of each condition apart, where shapes tell the conditions; None if that does not fit.

    Three conditions with five values each need five colours and three shapes instead of fifteen colours.
    """
    points = result.points
    members = _members(zip(points.conditions, cells, strict=True))
    own = {group: [cell for of, cell in members if of == group and cell] for group in points.groups}
    if len(set(cells) - {""}) <= MAX_CATEGORIES or not 1 < len(own) <= len(SYMBOLS):
        return None
    if points.crossed or max(map(len, own.values())) > MAX_CATEGORIES:
        return None
    rows = [
        Category(cell, category_colour(index), mark, members[group, cell], group)
        for (group, found), mark in zip(own.items(), SYMBOLS.values(), strict=False)
        for index, cell in enumerate(found)
    ]
    missing = tuple(index for index, cell in enumerate(cells) if not cell)
    if missing:
        rows.append(Category("missing", MISSING, SYMBOLS["circle"], missing))
    return Colouring(name, tuple(rows))


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


def _traces(colours: Colouring) -> Iterator[tuple[str, dict[str, Any], list[int]]]:
    """Yield name, settings of the marker and members of each trace."""
    if colours.numbers is None:
        for category in colours.categories:
            yield category.label, {"color": category.colour}, list(category.members)
        return
    known = np.isfinite(colours.numbers)
    low, high = colours.ends
    marker = {"color": colours.numbers[known].astype(np.float32), "colorscale": RAMP, "showscale": False}
    marker |= {"cmin": low, "cmax": high if high > low else low + 1}
    marker |= {"line": {"color": "var(--cv-rule-strong)", "width": 1}}
    yield colours.name, marker, np.flatnonzero(known).tolist()
    if not known.all():
        yield "missing", {"color": MISSING}, np.flatnonzero(~known).tolist()


def _set_apart(layout: np.ndarray, distance: float) -> np.ndarray:
    """Move points that share a place apart, along a spiral around it: (n, 2) float32."""
    _, place = np.unique(layout, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    sizes = np.bincount(place.ravel())
    turn = np.empty(len(layout))
    turn[order] = np.concatenate([np.arange(size) for size in sizes])
    angle = turn * np.pi * (3 - np.sqrt(5))
    offset = distance * np.sqrt(turn)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return (layout + offset).astype(np.float32)


def _shapes(conditions: Sequence[str]) -> dict[str, str]:
    """Return a shape for each condition; none where there are more conditions than shapes, so that all are circles."""
    return dict(zip(conditions, SYMBOLS, strict=False)) if len(conditions) <= len(SYMBOLS) else {}


def _badges(result: EmbeddingMap) -> list[list[str]]:
    points = result.points
    columns = [points.values] if points.values else []
    moved = [f"{100 * share:.0f} % of neighbours changed" for share in result.change]
    pairs = list(zip(points.texts, points.conditions, strict=True))
    counts = Counter(pairs)
    same = [f"stands {counts[pair]} times" if counts[pair] > 1 else "" for pair in pairs]
    rows = zip(points.conditions, *columns, moved, same, strict=True)
    return [[cell for cell in row if cell] for row in rows]


def _named(result: EmbeddingMap, side: SideName, places: np.ndarray) -> list[Name]:
    """Return labels, each with the point where it belongs, and where it may stand."""
    texts, own, count = result.points.texts, getattr(result, side), len(result.points.copies[0])
    topics: list[Name] = [(", ".join(one.words), one.x, one.y, ABOVE) for one in own.topics if count > FEW]
    if count > SOME:
        return topics
    first: dict[tuple[Any, ...], Any] = {}  # of a sentence that has several marks in one place
    for text, place, at in zip(texts, own.layout.tolist(), places.tolist(), strict=True):
        first.setdefault((text, *place), at)
    sizes = (LONG, SHORT, BRIEF) if count <= SPARSE else (SHORT, BRIEF)
    return topics + [(_brief(text, size), *at, AROUND) for size in sizes for (text, *_), at in first.items()]


def _brief(text: str, size: int) -> str:
    """Cut a text, where it is too long also at its start: articles tell no two texts apart."""
    return cut(text if len(text) <= size else re.sub(r"^(the|an?)\s+", "", text, flags=re.IGNORECASE), size)


def _labels(names: Sequence[Name], places: np.ndarray, reach: float) -> list[dict[str, Any]]:
    """Place labels, the first ones first, each where it touches no point; one that finds no such place is left out.

    The points are drawn at `places`, (n, 2); `reach` is half the width of the picture. A label keeps its distance to
    what it names in pixels, so that it stays there on any screen.
    """
    pixels = 2 * reach / np.array(PICTURES)
    taken: list[tuple[np.ndarray, np.ndarray, float]] = []
    labels: list[dict[str, Any]] = []
    for words, own_x, own_y, spots in names:
        if any((one["x"], one["y"]) == (own_x, own_y) for one in labels):
            continue
        half = 3.5 * len(words)
        for side, off, up in spots:
            right = side * (half + off)
            x, y = own_x + right * pixels, own_y + up * pixels
            free = all(
                ((abs(y - other) > 18 * pixels) | (abs(x - at) > (half + width) * pixels)).all()
                for at, other, width in taken
            )
            touched = any(
                (np.abs(places - spot) < ((half + 6) * pixel, 14 * pixel)).all(axis=1).any()
                for *spot, pixel in zip(x, y, pixels, strict=True)
            )
            inside = (abs(x) + half * pixels < reach).all() and (abs(y) + 9 * pixels < reach).all()
            if not free or touched or not inside:
                continue
            taken.append((x, y, half))
            place = {"x": own_x, "y": own_y, "xshift": right, "yshift": up, "yanchor": "middle", "showarrow": False}
            labels.append({**place, "text": as_label(words), "font": {"size": 13, "color": "var(--cv-ink-soft)"}})
            break
    return labels
