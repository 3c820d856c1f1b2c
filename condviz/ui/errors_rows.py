"""The rows of the Errors tab as markup: by row or by item, page by page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from condviz.ui.errors_state import PAGE, SORTS, ErrorsState
from condviz.ui.errors_view import act, show_error
from condviz.ui.html import badge, esc, number, shade, tag, text

if TYPE_CHECKING:
    from condviz.analysis.errors.study import Judged, Study

LIMIT = 4.0
"""Largest possible error: the end of the colour scale."""
_ROW_HEAD = ("Condition", "Rating", "fitted rating, and error")
_ITEM_HEAD = ("Conditions: rated higher, rated lower", "Ratings", "fitted ratings; order right?")


def order_rows(study: Study, mask: np.ndarray, state: ErrorsState) -> np.ndarray:
    """Give the rows of the slice in the order of the table; in the view by items, one row per item (the first)."""
    rows = np.flatnonzero(mask)
    if state.unit == "items":
        rows = study.dataset.items[:, 0][mask[study.dataset.items].any(axis=1)]
    return rows[np.argsort(-_sort_key(study, state, rows), kind="stable")]


def _sort_key(study: Study, state: ErrorsState, rows: np.ndarray) -> np.ndarray:
    """Larger comes first; what is not known comes last."""
    if state.sort == "row":
        return -rows.astype(float)
    if state.unit == "items" and state.sort in ("error", "apart"):
        margin = study.first.margin[rows]
        key = -margin if state.sort == "error" or study.second is None else study.second.margin[rows] - margin
        return np.nan_to_num(key, nan=-np.inf)
    error = study.first.error[rows]
    keys = {"error": np.abs(error), "over": error, "under": -error}
    if state.sort == "apart" and study.second is not None:
        return np.nan_to_num(np.abs(error - study.second.error[rows]), nan=-np.inf)
    return np.nan_to_num(keys.get(state.sort, np.abs(error)), nan=-np.inf)


def render_table(study: Study, mask: np.ndarray, state: ErrorsState) -> str:
    """Write one page of the table with its controls."""
    ordered = order_rows(study, mask, state)
    pages = max(1, math.ceil(len(ordered) / PAGE))
    page = min(state.page, pages - 1)
    shown = ordered[page * PAGE : (page + 1) * PAGE]
    by_item = state.unit == "items"
    head, line = (_ITEM_HEAD, _item) if by_item else (_ROW_HEAD, _row)
    body = [line(study, int(row), state) for row in shown]
    table = tag(
        "table", tag("thead", tag("tr", *_head(study, *head))), tag("tbody", *body), class_="cv-table cv-err-rows",
        data_testid="rows",
    )  # fmt: skip
    unit = "items" if by_item else "rows"
    everything = len(study.dataset.items) if by_item else len(study.dataset.pairs)
    count = tag("span", f"{len(ordered):,} / {everything:,} {unit}", class_="cv-num", data_testid="count")
    empty = text("p", "No row meets filter and selection. Change a limit, or clear them.", class_="cv-muted")
    scroll = tag("div", table, class_="cv-scroll") if len(shown) else empty
    return tag(
        "div", _controls(study, state, count), scroll, _pager(page, pages), class_="cv-err-table", data_page=page,
        data_digest=study.dataset.digest[:16], data_query=state.to_query(),
    )  # fmt: skip


def _controls(study: Study, state: ErrorsState, count: str) -> str:
    units = [
        act(title, "unit", class_="cv-err-choice", unit=name, pressed=str(name == state.unit).lower())
        for name, title in (("rows", "by row"), ("items", "by item"))
    ]
    sorts = [
        tag("option", esc(title), value=name, selected=name == state.sort)
        for name, title in SORTS.items()
        if name != "apart" or study.second is not None
    ]
    chooser = tag("select", *sorts, class_="cv-select", data_change="sort", aria_label="Order")
    return tag("div", tag("div", *units, class_="cv-err-choices"), chooser, count, class_="cv-err-controls")


def _pager(page: int, pages: int) -> str:
    if pages == 1:
        return ""
    back = tag("button", "Previous", type="button", class_="cv-button", data_act="page", data_page=page - 1,
               disabled=page == 0)  # fmt: skip
    on = tag("button", "Next", type="button", class_="cv-button", data_act="page", data_page=page + 1,
             disabled=page == pages - 1)  # fmt: skip
    return tag("div", back, tag("span", f"Page {page + 1:,} of {pages:,}", class_="cv-num"), on, class_="cv-err-pager")


def _head(study: Study, conditions: str, ratings: str, judgement: str) -> list[str]:
    columns = [tag("th", name, scope="col") for name in ("Row", "Sentences", conditions)]
    columns.append(tag("th", ratings, scope="col", class_="cv-num"))
    for judged in study.judged:
        columns.append(text("th", judged.model, scope="col", class_="cv-num", title=judgement))
    return columns


def _row(study: Study, row: int, state: ErrorsState) -> str:
    pair = study.dataset.pairs[row]
    cells = [
        tag("th", str(study.dataset.numbers[row]), scope="row", class_="cv-num"),
        tag("td", text("p", pair.sentence1), text("p", pair.sentence2), class_="cv-err-texts"),
        tag("td", text("span", pair.condition), tag("span", class_="cv-err-tags")),
        tag("td", show_rating(pair.label), class_="cv-num", data_of="rating"),
        *(show_judgement(judged, row, verdict=True) for judged in study.judged),
    ]
    return _line(study, row, state, cells)


def _item(study: Study, row: int, state: ErrorsState) -> str:
    high, low = item_of(study, row)
    pairs = study.dataset.pairs
    cells = [
        tag("th", str(study.dataset.numbers[row]), scope="row", class_="cv-num"),
        tag("td", text("p", pairs[row].sentence1), text("p", pairs[row].sentence2), class_="cv-err-texts"),
        tag("td", *(text("p", pairs[one].condition) for one in (high, low)), tag("span", class_="cv-err-tags")),
        tag(
            "td", *(tag("p", show_rating(pairs[one].label)) for one in (high, low)), class_="cv-num", data_of="ratings"
        ),
    ]
    for judged in study.judged:
        values = [tag("p", number(judged.fitted[one], 2)) for one in (high, low)]
        cells.append(tag("td", *values, _verdict(judged.right[row]), class_="cv-num", data_of=judged.model))
    return _line(study, row, state, cells)


def _line(study: Study, row: int, state: ErrorsState, cells: Sequence[str]) -> str:
    chosen = row == state.row
    return tag(
        "tr", *cells, data_row=row, data_number=int(study.dataset.numbers[row]), tabindex="0" if chosen else "-1",
        aria_selected="true" if chosen else "false",
    )  # fmt: skip


def item_of(study: Study, row: int) -> tuple[int, ...]:
    """Give the two rows of an item, the one that people rate higher first; the row alone if it has no partner."""
    found = np.flatnonzero((study.dataset.items == row).any(axis=1))
    if not len(found):
        return (row,)
    one, two = map(int, study.dataset.items[found[0]])
    gold = study.columns["gold"]
    return (two, one) if gold[two] > gold[one] else (one, two)


def show_rating(label: float | None) -> str:
    """Write a rating, or a dash."""
    return "\N{EN DASH}" if label is None else f"{label:g}"


def show_judgement(judged: Judged, row: int, *, verdict: bool = False) -> str:
    """Write a cell with fitted rating and error of one model, and whether the order of its item is wrong."""
    fitted, error = judged.fitted[row], judged.error[row]
    if not math.isfinite(fitted):
        title = "score; there is nothing to fit it to"
        return tag("td", number(judged.scores[row]), class_="cv-num", data_of=judged.model, title=title)
    chip = (
        tag("span", show_error(error), class_="cv-change-chip", **shade(error, LIMIT)) if math.isfinite(error) else ""
    )
    wrong = _verdict(judged.right[row]) if verdict and judged.right[row] == 0 else ""
    title = f"score {judged.scores[row]:.3f}"
    return tag("td", number(fitted, 2), " ", chip, wrong, class_="cv-num", data_of=judged.model, title=title)


def _verdict(right: float) -> str:
    if not math.isfinite(right):
        return ""
    return badge("right") if right else badge("wrong order", tone="warn")
