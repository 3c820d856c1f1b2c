"""The result of a comparison as one table: models down, conditions across."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from condviz.types import Comparison, ModelInfo
from condviz.ui.html import (
    arrow,
    badge,
    esc,
    join,
    letter,
    model_badges,
    number,
    ordinal,
    shade,
    signed,
    tag,
    text,
)

COSINE_LIMIT = 0.4
"""End of the colour scale for changes of a cosine; the same on every page, so that two screenshots can be compared."""
CROSS_LIMIT = 1.0
"""End of the scale for changes of a cross-encoder's output, which is in units of the human rating."""
NO_CONDITION = -1
"""Column of the score without any condition."""


@dataclass(frozen=True)
class MatrixView:
    """What the table needs beyond the numbers.

    Attributes:
        first, second: Positions of the two conditions whose difference is the headline.
        selected: (model name, column) of the cell whose words are shown; column NO_CONDITION is "no condition".
        ghosts: (model name, column) to the score before the last run.
        pending: Models that are still to be scored, with what they wait for.
        failed: Models that could not be scored, with the reason.
        query: State of the form as a query string; "" leaves the address bar alone.
        caption: Where the numbers come from.
    """

    first: int = 0
    second: int = 1
    selected: tuple[str, int] | None = None
    ghosts: Mapping[tuple[str, int], float] = field(default_factory=dict)
    pending: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    caption: str = ""


def is_cross(info: ModelInfo) -> bool:
    """Tell whether a model's scores live on a scale of their own, not on that of the cosine."""
    return info.kind == "cross" or not all(-1 <= end <= 1 for end in info.score_range)


def render_matrix(comparison: Comparison, infos: Sequence[ModelInfo], view: MatrixView) -> str:
    """Write headline, table, legends and notes.

    Args:
        comparison: The rows that are ready.
        infos: All models asked for, in order; those not in the comparison appear as pending or failed rows.
        view: Selection, ghosts and states.
    """
    rows = {info.name: row for row, info in enumerate(comparison.models)}
    cosine, cross = [i for i in infos if not is_cross(i)], [i for i in infos if is_cross(i)]
    bodies = []
    for group, title in ((cosine, "Cosine similarity"), (cross, "Cross-encoder output")):
        if group:
            bodies.append(_group(comparison, group, rows, view=view, title=title))
    table = tag("table", _head(comparison.conditions, view), *bodies, class_="cv-matrix", data_testid="matrix")
    scroller = tag(
        "div",
        table,
        class_="cv-scroll",
        role="region",
        tabindex="0",
        aria_label="Scores of every model under every condition",
    )
    notes = join(text("li", note) for note in comparison.notes)
    return tag(
        "section",
        render_headline(comparison, view),
        scroller,
        _legend(bool(cosine), bool(cross), ghosts=bool(view.ghosts)),
        tag("ul", notes, class_="cv-notes") if notes else "",
        class_="cv-result",
        data_testid="result",
        data_query=view.query or None,
        data_ready="false" if view.pending else "true",
    )


def render_headline(comparison: Comparison, view: MatrixView) -> str:
    """Write the sentence that says what the two chosen conditions do, with the two pickers."""
    conditions = comparison.conditions
    if len(conditions) < 2:
        condition = text("em", conditions[0]) if conditions else ""
        return tag("p", "What changes when the pair is read under ", condition, "?", class_="cv-headline")
    pickers = tag(
        "div",
        tag("span", "Difference between ", class_="cv-muted"),
        _picker("first", conditions, view.first),
        tag("span", " and ", class_="cv-muted"),
        _picker("second", conditions, view.second),
        class_="cv-pickers",
    )
    return tag("div", tag("p", *_verdict(comparison, view), class_="cv-headline"), pickers, class_="cv-headline-box")


def _verdict(comparison: Comparison, view: MatrixView) -> list[str]:
    gaps = [float(row[view.first] - row[view.second]) for row in comparison.scores]
    up, down = sum(gap > 0.0005 for gap in gaps), sum(gap < -0.0005 for gap in gaps)
    first, second = (text("em", comparison.conditions[i]) for i in (view.first, view.second))
    if not gaps:
        return ["Scoring the pair under ", first, " and ", second, "\N{HORIZONTAL ELLIPSIS}"]
    if not up and not down:
        return ["No chosen model tells ", first, " and ", second, " apart for this pair."]
    if down > up:
        first, second, up = second, first, down
    count = f"{up} of {len(gaps)} models" if len(gaps) > 1 else "This model"
    verb = "find" if len(gaps) > 1 and up != 1 else "finds"
    return [f"{esc(count)} {verb} the pair more alike under ", first, " than under ", second, "."]


def _picker(name: str, conditions: Sequence[str], chosen: int) -> str:
    options = [
        tag("option", f"{letter(i)} \N{MIDDLE DOT} {esc(condition)}", value=i, selected=i == chosen)
        for i, condition in enumerate(conditions)
    ]
    label = "First condition of the difference" if name == "first" else "Second condition of the difference"
    return tag("select", *options, class_="cv-select", data_pick=name, aria_label=label, data_value=chosen)


def _head(conditions: Sequence[str], view: MatrixView) -> str:
    gap = ""
    if len(conditions) > 1:
        title = f"{letter(view.first)} \N{MINUS SIGN} {letter(view.second)}"
        gap = tag("th", tag("span", title, class_="cv-letter-pair"), scope="col", class_="cv-gap-col")
    columns = [
        tag(
            "th",
            tag("span", letter(i), class_="cv-letter"),
            text("span", condition, class_="cv-condition", title=condition),
            scope="col",
        )
        for i, condition in enumerate(conditions)
    ]
    none = tag("th", tag("span", "no condition", class_="cv-condition"), scope="col", class_="cv-none-col")
    return tag("thead", tag("tr", tag("th", "Model", scope="col", class_="cv-model-col"), gap, none, *columns))


def _group(
    comparison: Comparison, group: Sequence[ModelInfo], rows: Mapping[str, int], *, view: MatrixView, title: str
) -> str:
    width = len(comparison.conditions) + 2 + (len(comparison.conditions) > 1)
    cross = is_cross(group[0])
    scale = "its own unbounded scale" if cross else f"from {number(-1, 0)} to 1"
    inner = tag("span", esc(title), tag("span", f" {scale}", class_="cv-muted"), class_="cv-group-title")
    head = tag("tr", tag("th", inner, colspan=width, scope="rowgroup"), class_="cv-group-head")
    lines = [_row(comparison, info, rows.get(info.name), view) for info in group]
    return tag("tbody", head, *lines, class_="cv-group-cross" if cross else "cv-group-cosine")


def _row(comparison: Comparison, info: ModelInfo, row: int | None, view: MatrixView) -> str:
    head = tag(
        "th",
        text("span", info.title, class_="cv-model-title", title=info.summary),
        tag("span", model_badges(info), class_="cv-badges"),
        scope="row",
        class_="cv-model-col",
    )
    width = len(comparison.conditions) + 1 + (len(comparison.conditions) > 1)
    if row is None:
        failed = view.failed.get(info.name)
        message = failed or view.pending.get(info.name, "waiting")
        cell = text("td", message, colspan=width, class_="cv-row-failed" if failed else "cv-row-pending")
        return tag("tr", head, cell, data_model=info.name)
    scores, base = comparison.scores[row], float(comparison.unconditional[row])
    limit = CROSS_LIMIT if is_cross(info) else COSINE_LIMIT
    gap = ""
    if len(scores) > 1:
        gap = _gap_cell(float(scores[view.first] - scores[view.second]), limit)
    cells = [
        _cell(
            info,
            i,
            float(score),
            change=float(score) - base,
            percentile=float(comparison.percentiles[row][i]),
            view=view,
        )
        for i, score in enumerate(scores)
    ]
    none = _cell(info, NO_CONDITION, base, change=None, percentile=math.nan, view=view)
    return tag("tr", head, gap, none, *cells, data_model=info.name)


def _gap_cell(gap: float, limit: float) -> str:
    bar = tag("span", tag("span", class_="cv-bar", **shade(gap, 2 * limit)), class_="cv-bar-track", aria_hidden="true")
    return tag("td", tag("span", signed(gap), class_="cv-gap", data_testid="gap"), bar, class_="cv-gap-col")


def _cell(
    info: ModelInfo, column: int, score: float, *, change: float | None, percentile: float, view: MatrixView
) -> str:
    """Write one cell as a button; the colour shows the change, arrow and sign repeat it without colour."""
    ghost = view.ghosts.get((info.name, column))
    lines = [tag("span", number(score), class_="cv-score")]
    spoken = [f"score {number(score)}"]
    if change is not None:
        lines.append(tag("span", f"{arrow(change)}{signed(change)}", class_="cv-change"))
        spoken.append(f"{signed(change)} against no condition")
        lines.append(tag("span", ordinal(percentile), class_="cv-percentile"))
        if math.isfinite(percentile):
            spoken.append(f"higher than {round(percentile)} % of the reference pairs")
    if ghost is not None:
        lines.append(tag("span", tag("s", number(ghost)), class_="cv-ghost"))
        spoken.append(f"before {number(ghost)}")
    limit = CROSS_LIMIT if is_cross(info) else COSINE_LIMIT
    colour = shade(change, limit) if change is not None else {"data_sign": "zero"}
    chosen = view.selected == (info.name, column)
    button = tag(
        "button",
        *lines,
        type="button",
        class_="cv-cell",
        data_model=info.name,
        data_column=column,
        aria_pressed="true" if chosen else "false",
        aria_label=f"{info.title}: {', '.join(spoken)}. Show the words.",
        tabindex="0" if chosen else "-1",
        title=", ".join(spoken),
        **colour,
    )
    return tag("td", button, class_="cv-none-col" if column == NO_CONDITION else None)


def _legend(cosine: bool, cross: bool, *, ghosts: bool) -> str:
    parts = []
    for shown, name, limit in ((cosine, "cosine", COSINE_LIMIT), (cross, "cross", CROSS_LIMIT)):
        if shown:
            unit = "change of the cosine" if name == "cosine" else "change of the cross-encoder's output"
            parts.append(_scale(name, limit, unit))
    key = f"{badge('P87')} higher than 87 % of the model\N{RIGHT SINGLE QUOTATION MARK}s reference pairs"
    parts.append(tag("span", key, class_="cv-legend-key"))
    if ghosts:
        parts.append(tag("span", tag("s", "0.512"), " value before the last run", class_="cv-legend-key"))
    return tag("div", *parts, class_="cv-legend")


def _scale(name: str, limit: float, unit: str) -> str:
    steps = [tag("span", class_="cv-swatch", **shade(limit * i / 4, limit)) for i in range(-4, 5)]
    ends = f"{number(-limit, 1)} less alike", f"+{number(limit, 1)} more alike"
    return tag(
        "span",
        tag("span", ends[0]),
        tag("span", *steps, class_="cv-swatches", aria_hidden="true"),
        tag("span", ends[1]),
        tag("span", f"{unit} against no condition", class_="cv-muted"),
        class_=f"cv-legend-scale cv-group-{name}",
    )
