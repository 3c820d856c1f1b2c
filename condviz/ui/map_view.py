"""Markup of the Map tab: headline, legend, table of points, neighbours."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence

import numpy as np

from condviz.analysis.map_result import EmbeddingMap, Side
from condviz.data.texts import plain_cell
from condviz.ui.exports import finite
from condviz.ui.html import badge, join, notice, number, tag, text

MAX_ROWS = 200
NOTE = (
    "Distances between clusters on a map are no evidence: UMAP and PCA bend and leave out. Impurity, neighbours and "
    "change below are measured in the original space."
)
_MARKS = {
    "circle": "\N{BLACK CIRCLE}",
    "square": "\N{BLACK SQUARE}",
    "diamond": "\N{BLACK DIAMOND}",
    "triangle-up": "\N{BLACK UP-POINTING TRIANGLE}",
    "cross": "+",
    "x": "\N{MULTIPLICATION SIGN}",
    "pentagon": "\N{BLACK PENTAGON}",
    "star": "\N{BLACK STAR}",
}


def render_head(result: EmbeddingMap) -> str:
    """Write what the map shows: the main number, the model, how it was made."""
    before, after = result.before.impurity, result.after.impurity
    if before and after:
        line = (
            f"Impurity of the conditions {number(before['mean'])} before, ",
            tag("em", number(after["mean"])),
            " after conditioning.",
        )
        title = tag("h2", *line, class_="cv-headline", data_testid="map-headline")
    else:
        title = text("h2", "Before and after conditioning", class_="cv-headline", data_testid="map-headline")
    made, points = result.projection.config, result.points
    name = {"umap": "UMAP", "pca": "PCA"}[made.method]
    facts = [
        f"{result.model['title']}{'' if result.model['trained'] else ' (not trained)'}",
        f"{len(points.texts):,} points",
        f"{len(points.groups):,} {'condition' if len(points.groups) == 1 else 'conditions'}",
        f"{name}, {made.dimensions} dimensions",
    ]
    if made.method == "umap":
        facts += [f"{made.num_neighbors} neighbours", f"min. distance {made.min_dist:g}", f"seed {made.seed}"]
    facts.append(f"revision {result.model['revision']}")
    notes = join(text("li", note) for note in result.notes)
    return tag(
        "div",
        title,
        text("p", " \N{MIDDLE DOT} ".join(facts), class_="cv-muted cv-map-facts"),
        tag("ul", notes, class_="cv-notes") if notes else "",
    )


def render_legend(
    name: str, rows: Sequence[tuple[str, str, int]], ends: tuple[float, float], groups: Sequence[str]
) -> str:
    """Write the legend of both maps: colours with counts, or a ramp; shapes of the conditions.

    Args:
        name: What the colours stand for.
        rows: (label, colour, count); empty for numbers.
        ends: Lowest and highest number.
        groups: The conditions.
    """
    if rows:
        items = [
            tag("li", tag("span", class_="cv-key", style=f"--key:{colour}"), text("span", label), _count(count))
            for label, colour, count in rows
        ]
        colours = tag("ul", *items, class_="cv-legend-list")
    else:
        low, high = (f"{end:.3g}" for end in ends)
        colours = tag(
            "span", text("span", low), tag("span", class_="cv-ramp"), text("span", high), class_="cv-ramp-box"
        )
    shapes = ""
    if name != "condition" and 1 < len(groups) <= len(_MARKS):
        items = [
            tag("li", tag("span", mark, class_="cv-shape", aria_hidden="true"), text("span", group))
            for mark, group in zip(_MARKS.values(), groups, strict=False)
        ]
        shapes = tag("ul", *items, class_="cv-legend-list cv-legend-shapes", aria_label="Shapes")
    titles = {"drift": "share of neighbours that changed", "cluster": "K-means cluster after conditioning"}
    return tag("div", text("span", titles.get(name, name), class_="cv-label"), colours, shapes, class_="cv-map-legend")


def render_table(result: EmbeddingMap, chosen: Sequence[int] | None, marked: int | None) -> str:
    """Write the points as a table: the selected ones, or all; at most `MAX_ROWS`.

    Args:
        result: The map.
        chosen: Positions of the selected points, or None.
        marked: Position of the marked point, or None.
    """
    points = result.points
    rows = list(range(len(points.texts))) if chosen is None else list(chosen)
    value = points.columns.get("value")
    columns = ["Sentence", "Condition", *(["Value"] if value else []), "Cluster", "Changed"]
    head = tag("tr", *[tag("th", name, scope="col") for name in columns])
    body = join(_row(result, i, value=value[i] if value else None, marked=i == marked) for i in rows[:MAX_ROWS])
    more = len(rows) - MAX_ROWS
    left = text("p", f"{more:,} more are in the CSV.", class_="cv-muted") if more > 0 else ""
    shown = f"{len(rows):,} / {len(points.texts):,} points" if chosen is not None else f"{len(points.texts):,} points"
    buttons = [
        tag("button", label, type="button", class_="cv-button", data_act=act, data_testid=f"map-{act}")
        for act, label in (("csv", "Save CSV"), ("json", "Save JSON"))
    ]
    title = tag("h3", "Points ", text("small", shown, class_="cv-muted", data_testid="map-shown"))
    bar = tag("div", title, tag("div", *buttons, class_="cv-map-buttons"), class_="cv-map-bar")
    table = tag(
        "table", tag("thead", head), tag("tbody", body), class_="cv-table cv-map-table", data_testid="map-table"
    )
    return tag(
        "div",
        bar,
        tag("div", table, class_="cv-scroll cv-scroll-y", role="region", tabindex="0", aria_label="Points"),
        left,
    )


def render_neighbors(result: EmbeddingMap, marked: int | None) -> str:
    """Write the nearest sentences of a point before and after, and what stayed, left and entered."""
    title = tag("h3", "Nearest sentences")
    if marked is None:
        hint = "Click a point or a row to see which sentences are nearest to it, before and after."
        return tag("div", title, text("p", hint, class_="cv-muted"), data_testid="map-neighbors")
    points = result.points
    lists = {"before": result.before.neighbors.indices[marked], "after": result.after.neighbors.indices[marked]}
    sets = {name: {int(i) for i in found if i >= 0} for name, found in lists.items()}
    scope = "sentences under the same condition" if points.crossed else "all points"
    head = tag(
        "p",
        text("span", points.texts[marked], class_="cv-map-sentence"),
        badge(points.conditions[marked]),
        tag("span", f"among {scope}; cosine in the original space", class_="cv-muted"),
        class_="cv-map-marked",
    )
    columns = tag(
        "div",
        _column("Before", result, result.before, marked, kept=sets["after"], change="left"),
        _column("After", result, result.after, marked, kept=sets["before"], change="entered"),
        class_="cv-map-columns",
    )
    return tag("div", title, head, columns, data_testid="map-neighbors")


def rows_csv(result: EmbeddingMap, chosen: Sequence[int] | None) -> str:
    """Give the points as CSV: texts, columns, coordinates, clusters, change."""
    points, layout = result.points, result.projection
    axes = "xyz"[: layout.config.dimensions]
    out = io.StringIO()
    writer = csv.writer(out)
    coordinates = [f"{side}_{axis}" for side in ("before", "after") for axis in axes]
    writer.writerow(
        ["id", "text", "condition", *points.columns, *coordinates, "cluster_before", "cluster_after", "changed"]
    )
    for i in range(len(points.texts)) if chosen is None else chosen:
        cells = [plain_cell(column[i]) for column in points.columns.values()]
        places = [f"{value:.4f}" for side in (layout.before, layout.after) for value in side[i]]
        clusters = ["" if s.clusters is None else int(s.clusters[i]) for s in (result.before, result.after)]
        texts = plain_cell(points.texts[i]), plain_cell(points.conditions[i])
        writer.writerow([i, *texts, *cells, *places, *clusters, f"{result.drift[i]:.3f}"])
    return out.getvalue()


def map_json(result: EmbeddingMap) -> str:
    """Give the whole map as JSON; missing numbers are null."""
    return json.dumps(finite(result.to_dict()), ensure_ascii=False)


def render_failure(message: str) -> str:
    """Write a notice on a map that could not be drawn."""
    return notice("This map cannot be drawn", message)


def _count(count: int) -> str:
    return tag("span", f"{count:,}", class_="cv-muted cv-num")


def _row(result: EmbeddingMap, index: int, *, value: str | None, marked: bool) -> str:
    points = result.points
    clusters = [side.clusters for side in (result.before, result.after)]
    moved = "\N{EN DASH}" if clusters[0] is None else f"{clusters[0][index]} \N{RIGHTWARDS ARROW} {clusters[1][index]}"
    sentence = tag(
        "button",
        text("span", points.texts[index]),
        type="button",
        class_="cv-link cv-map-open",
        data_act="open",
        data_id=str(index),
        aria_pressed="true" if marked else "false",
    )
    return tag(
        "tr",
        tag("th", sentence, scope="row"),
        text("td", points.conditions[index]),
        "" if value is None else text("td", value or "\N{EN DASH}"),
        tag("td", moved, class_="cv-num"),
        tag("td", f"{100 * float(result.drift[index]):.0f} %", class_="cv-num"),
        data_id=str(index),
        class_="cv-map-marked-row" if marked else None,
    )


def _column(
    title: str, result: EmbeddingMap, side: Side, marked: int, *, kept: set[int], change: str
) -> str:  # fmt: skip
    items = []
    pairs = zip(side.neighbors.indices[marked].tolist(), side.neighbors.cosines[marked].tolist(), strict=True)
    for index, cosine in pairs:
        if index < 0 or not math.isfinite(cosine):
            continue
        stayed = index in kept
        items.append(
            tag(
                "li",
                tag(
                    "button",
                    tag("span", text("span", result.points.texts[index]), _about(result, index), class_="cv-rank-name"),
                    tag("span", number(cosine), class_="cv-num"),
                    badge("stayed" if stayed else change, tone="plain" if stayed else change),
                    type="button",
                    class_="cv-rank cv-near",
                    data_act="open",
                    data_id=str(index),
                ),
            )
        )
    return tag("div", tag("h4", title), tag("ol", *items, class_="cv-rank-list") if items else tag("p", "None."))


def _about(result: EmbeddingMap, index: int) -> str:
    points = result.points
    value = points.columns.get("value")
    parts = [points.conditions[index], *([value[index]] if value and value[index] else [])]
    return text("small", " \N{MIDDLE DOT} ".join(parts))


def positions(ids: object, number_of_points: int) -> list[int]:
    """Read ids that a browser sent as positions; whatever is none is left out."""
    if not isinstance(ids, list):
        return []
    found = {int(item) for item in ids if isinstance(item, str | int) and str(item).isascii() and str(item).isdigit()}
    return [int(i) for i in np.sort(list(found)) if i < number_of_points] if found else []
