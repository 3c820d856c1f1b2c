"""The upper half of the Errors tab as markup: figures, worst conditions, slices, and whether the condition is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from condviz.ui.errors_state import ErrorsState
from condviz.ui.html import MINUS, esc, number, signed, tag, text

if TYPE_CHECKING:
    import numpy as np

    from condviz.analysis.errors.measures import Blindness, Difference, Group, Report
    from condviz.analysis.errors.slices import Search

PARTS = (("all", "All rows"), ("slice", "Slice"), ("rest", "Rest"))
HELP = {
    "spearman": "Rank correlation of score and rating, times 100",
    "pearson": "Linear correlation of score and rating, times 100",
    "ties_wrong": "Share of sentence pairs whose two conditions are in the right order; equal ratings count as wrong",
    "ties_excluded": "The same, with equal ratings left out",
    "error": "Mean absolute error in steps of the rating, after the best rising fit of rating on score",
    "bias": "Mean error: positive where the model finds pairs too similar",
}
CONDITION_HELP = {
    "error": "Mean absolute error, in steps of the rating",
    "bias": HELP["bias"],
    "wrong": "Share of rows whose sentence pair is in the wrong order",
}


def act(label: str, name: str, /, *, class_: str = "cv-link", **data: object) -> str:
    """Write a button that sends an event: `name` and the data reach the handler."""
    values = {f"data_{key}": value for key, value in data.items()}
    return tag("button", esc(label), type="button", class_=class_, data_act=name, **values)


def render_figures(reports: dict[str, Report | None], *, resamples_wait: bool = False) -> str:
    """Write the table of figures.

    Args:
        reports: "all", "slice" and "rest"; None where there is no slice.
        resamples_wait: Intervals are still being computed.
    """
    from condviz.analysis.errors.measures import HEADS

    head = [tag("th", name, scope="col") for name in ("Rows", "Model")]
    head += [tag("th", name, scope="col", class_="cv-num") for name in ("n", "items")]
    head += [tag("th", title, scope="col", class_="cv-num", title=HELP[name]) for name, title in HEADS.items()]
    body = "".join(_part(title, report) for key, title in PARTS if (report := reports.get(key)) is not None)
    known = max((report.resamples for report in reports.values() if report), default=0)
    note = f"Small: 95 % intervals from {known:,} resamples of sentence pairs." if known else ""
    if resamples_wait:
        note = "Intervals are being computed \N{HORIZONTAL ELLIPSIS}"
    table = tag("table", tag("thead", tag("tr", *head)), body, class_="cv-table cv-err-figures", data_testid="figures")
    scroll = tag("div", table, class_="cv-scroll", role="region", tabindex="0", aria_label="Figures")
    return scroll + tag(
        "p", f"Correlations and accuracies times 100, errors in steps of the rating. {note}",
        class_="cv-muted cv-err-note", data_wait=resamples_wait or None,
    )  # fmt: skip


def _part(title: str, report: Report) -> str:
    from condviz.analysis.errors.measures import HEADS, show_figure

    lines = []
    count = len(report.figures) + (report.difference is not None)
    for index, figures in enumerate(report.figures):
        first = tag("th", esc(title), text("small", f"{report.n:,} rows"), scope="rowgroup", rowspan=count)
        cells = [
            _figure(*show_figure(name, getattr(figures, name)), reason=getattr(figures, name).reason) for name in HEADS
        ]
        counts = [tag("td", f"{value:,}", class_="cv-num") for value in (figures.n, figures.items)]
        lines.append(tag("tr", first if not index else "", text("td", figures.model), *counts, *cells))
    if report.difference is not None:
        lines.append(_difference(report.difference))
    return tag("tbody", *lines)


def _figure(value: str, interval: str, *, reason: str = "", p: str = "") -> str:
    small = "".join(tag("small", esc(part)) for part in (interval, p) if part)
    return tag("td", esc(value), small, class_="cv-num", title=reason or None)


def _difference(difference: Difference) -> str:
    from condviz.analysis.errors.measures import HEADS, show_figure, show_p

    cells = []
    for name in HEADS:
        p = difference.mcnemar if name == "ties_excluded" else difference.p_values[name]
        label = "McNemar p" if name == "ties_excluded" else "p"
        shown = "" if p is None else f"{label} {show_p(p)}"
        cells.append(_figure(*show_figure(name, difference.values[name], sign=True), p=shown))
    apart = f"{difference.only_first:,} : {difference.only_second:,}"
    help_ = "Items that only the first model orders rightly : only the second"
    alone = tag("td", esc(apart), text("small", "right alone"), class_="cv-num", title=help_)
    empty = tag("td", class_="cv-num"), alone
    return tag("tr", tag("td", "difference"), *empty, *cells, class_="cv-err-difference")


def render_finder(search: Search | None, state: ErrorsState, *, problem: str = "") -> str:
    """Write the slice finder: what to look for, and the slices that were found as buttons.

    Args:
        search: What was found; None while it is not known.
        state: What is chosen.
        problem: Why nothing could be searched.
    """
    titles = {"over": "too similar", "under": "too different", "large": "far off", "order": "wrong order"}
    if state.second:
        titles |= {"first": f"{state.first} closer", "second": f"{state.second} closer"}
    options = [
        act(title, "target", class_="cv-err-choice", target=name, pressed=str(name == state.target).lower())
        for name, title in titles.items()
    ]
    parts = [tag("div", *options, class_="cv-err-choices", role="group", aria_label="What to look for")]
    if search is None:
        parts.append(text("p", problem or "Looking for slices \N{HORIZONTAL ELLIPSIS}", class_="cv-muted"))
    else:
        closer = {"first": state.first, "second": state.second}.get(search.target, "")
        parts += _slices(search, closer)
    return tag("div", *parts, data_testid="finder", data_target=state.target)


def _slices(search: Search, closer: str) -> list[str]:
    """List found slices; `closer` is the model whose lead is looked for, if any."""
    from condviz.analysis.errors.slices import SIGNIFICANT

    sure = [one for one in search.slices if one.q < SIGNIFICANT]
    unit = {"large": "mean error, in steps of the rating", "order": "wrong orders, in %"}.get(search.target)
    if closer:
        unit = f"how much closer {closer} is to the rating, in steps"
    unit = unit or "mean signed error beyond that of equally rated rows, in steps"
    lead = (
        f"{search.sure:,} of {search.tried:,} filters stand out (q below {SIGNIFICANT}). The surest, no near twins:"
        if sure
        else f"None of {search.tried:,} filters stands out; these come nearest."
    )
    shown = (sure or list(search.slices[:5]))[:10]
    if not shown:
        return [text("p", "No filter selects rows of this kind.", class_="cv-muted")]
    scale = {"order": 100, "second": -1}.get(search.target, 1)
    digits = 0 if search.target == "order" else 2
    rows = [
        tag(
            "tr",
            tag("td", act(one.filter, "filter", class_="cv-err-slice", filter=one.filter, join="1")),
            tag("td", f"{one.n:,}", class_="cv-num"),
            tag("td", number(scale * one.inside, digits), class_="cv-num"),
            tag("td", number(scale * one.outside, digits), class_="cv-num"),
            tag("td", _q(one.q), class_="cv-num"),
        )
        for one in shown
    ]
    head = [tag("th", "Slice: click to filter", scope="col")]
    head += [tag("th", name, scope="col", class_="cv-num") for name in ("rows", "inside", "outside", "q")]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="cv-table", data_testid="slices")
    return [
        text("p", lead, class_="cv-muted cv-err-note"),
        tag("div", table, class_="cv-scroll cv-scroll-y"),
        text("p", f"Inside, outside: {unit}. q: p, corrected for all filters.", class_="cv-muted cv-err-note"),
    ]


def _q(value: float) -> str:
    from condviz.analysis.errors.measures import show_p

    return esc(show_p(value))


def render_conditions(groups: Sequence[Group], *, column: str, columns: Sequence[str], models: Sequence[str]) -> str:
    """Write the leaderboard of worst conditions; a click filters by one.

    Args:
        groups: The worst first.
        column: The column they are values of.
        columns: Columns to choose from.
        models: Names, as in the groups.
    """
    from condviz.analysis.errors.filters import quote

    options = [
        act(f"by {name}", "column", class_="cv-err-choice", column=name, pressed=str(name == column).lower())
        for name in columns
    ]
    chooser = tag("div", *options, class_="cv-err-choices", role="group") if len(columns) > 1 else ""
    if not groups:
        return chooser + text("p", "No value of this column has five rated rows.", class_="cv-muted")
    longest = max(group.error[0] for group in groups) or 1.0
    rows = []
    for group in groups:
        bar = tag("span", tag("span", style=f"width:{100 * group.error[0] / longest:.0f}%"), class_="cv-err-bar")
        label = group.value.replace("_", " ") if column == "aspect" else group.value
        name = act(label, "filter", class_="cv-err-slice", filter=f"{column} == {quote(group.value)}", join="1")
        cells = [tag("td", name), tag("td", f"{group.n:,}", class_="cv-num")]
        parts = zip(group.error, group.spread, group.bias, group.wrong, strict=True)
        for index, (error, spread, bias, wrong) in enumerate(parts):
            share = f"{100 * wrong:.0f} %" if math.isfinite(wrong) else "\N{EN DASH}"
            half = text("small", f"\N{PLUS-MINUS SIGN}{number(spread, 2)}")
            cells.append(tag("td", number(error, 2), half, bar if not index else "", class_="cv-num cv-err-first"))
            cells += [tag("td", value, class_="cv-num") for value in (signed(bias, 2), share)]
        rows.append(tag("tr", *cells))
    head = _condition_head(column, models)
    table = tag("table", head, tag("tbody", *rows), class_="cv-table cv-err-figures", data_testid="worst")
    lead = f"First where {models[0]} is surely off: by the lower end of error \N{PLUS-MINUS SIGN} 95 %."
    return chooser + text("p", lead, class_="cv-muted cv-err-note") + tag("div", table, class_="cv-scroll cv-scroll-y")


def _condition_head(column: str, models: Sequence[str]) -> str:
    """Write a line of models above a line of what is known of each."""
    over = [text("th", model, scope="colgroup", colspan=3, class_="cv-err-over") for model in models]
    under = [tag("th", esc(column), scope="col"), tag("th", "n", scope="col", class_="cv-num")]
    for _ in models:
        under += [
            tag("th", name, scope="col", class_=f"cv-num{'' if index else ' cv-err-first'}", title=line)
            for index, (name, line) in enumerate(CONDITION_HELP.items())
        ]
    return tag("thead", tag("tr", tag("td", colspan=2), *over), tag("tr", *under))


def render_blindness(found: Sequence[Blindness]) -> str:
    """Say for each model how much of its scores comes from the condition."""
    lines = []
    for one in found:
        if one.within is None:
            lines.append(text("p", f"{one.model}: {one.verdict}."))
            continue
        share, gold = 100 * one.within, "" if one.within_gold is None else f"; of ratings {100 * one.within_gold:.0f} %"
        wording = (
            "" if one.wording is None else f" The wording of the condition alone explains {100 * one.wording:.0f} %"
        )
        if one.wording_gold is not None:
            wording += f" (ratings: {100 * one.wording_gold:.0f} %)"
        chance = ""
        if one.p is not None:
            low, high = one.chance
            chance = (
                f" (its changes and those of ratings correlate by {one.follows:.2f}, chance {low:.2f} to {high:.2f})"
            )
        sentence = (
            f" {one.verdict}{chance}. {share:.0f} % of the variance of its scores lies between the two conditions of a "
            f"pair (of random scores 50 %{gold})."
        )
        lines.append(tag("p", text("b", one.model), esc(sentence), esc(wording + "." if wording else "")))
    return tag("div", *lines, class_="cv-err-blind", data_testid="blindness")


def render_confusions(names: Sequence[str], confusions: Sequence[np.ndarray]) -> str:
    """Write one table of ratings against fitted ratings per model, each row tinted by its shares."""
    tables = []
    for name, counts in zip(names, confusions, strict=True):
        rows = []
        for level, line in enumerate(counts.tolist(), start=1):
            total = max(1, sum(line))
            cells = [
                tag("td", f"{count:,}", class_="cv-num cv-err-cell", style=f"--t:{count / total:.2f}") for count in line
            ]
            rows.append(tag("tr", tag("th", str(level), scope="row", class_="cv-num"), *cells))
        head = [tag("th", "rating", scope="col", class_="cv-num")]
        head += [tag("th", str(level), scope="col", class_="cv-num") for level in range(1, 6)]
        table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="cv-table cv-err-confusion")
        tables.append(tag("div", text("h4", name), tag("div", table, class_="cv-scroll")))
    lead = "Rows: rating. Columns: the rating that the score predicts. Tint: share of the row."
    return text("p", lead, class_="cv-muted cv-err-note") + tag("div", *tables, class_="cv-err-pair")


def show_error(value: float) -> str:
    """Write an error with its sign and direction as an arrow, so that it needs no colour."""
    if not math.isfinite(value):
        return "\N{EN DASH}"
    if abs(value) < 0.005:
        return "0.00"
    return f"{'+' if value > 0 else MINUS}{abs(value):.2f}"
