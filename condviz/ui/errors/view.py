"""What the Errors tab shows of a study: one row in full, found slices, rewrites; results into templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from condviz.analysis.errors.filters import quote
from condviz.analysis.errors.findings import ErrorStudy
from condviz.analysis.errors.measures import GroupErrors
from condviz.analysis.errors.rewrites import Rewritten
from condviz.analysis.errors.slices import MIN_SUPPORT, SIGNIFICANT, Slice
from condviz.analysis.errors.study import Study
from condviz.data.texts import split_words
from condviz.evaluation.metrics import LEAST, counted
from condviz.plots import errors as pictures
from condviz.ui.errors.desk import Choice
from condviz.ui.markup import render
from condviz.ui.state import pair_link

TAGS = ("label looks wrong", "condition missed", "negation", "number", "same words", "needs knowledge", "ambiguous",
        "interesting", "other")  # fmt: skip
"""What a reader may call a row; the digits 1 to 9 set them."""
SHOWN = 8
"""Slices, and rows of a rewrite."""
LEAST_STEPS, LEAST_SHARE = 0.25, 0.1
"""Difference to the other rows, in steps or as a share, from which a hint that may be chance is shown."""
SINGLE = 5
"""Rows that are shown where there are too few for groups."""
TITLES = {
    "over": "too similar",
    "under": "too different",
    "large": "far off",
    "order": "wrong order",
    "first": "first model closer",
    "second": "second model closer",
}
VIEWS = {
    "residuals": "Error by score", "against": "Model against model", "calibration": "Calibration", "scores": "Scores",
}  # fmt: skip


def parts(study: ErrorStudy, choice: Choice, *, waiting: bool = False, asked: bool = False) -> dict[str, Markup]:
    """Render what the page shows of a study above its sections; `waiting` and `asked` as below."""
    return {
        "result": result(study, choice, asked=asked),
        "views": render("errors/views.html", views=_views(study), view=_view(study, choice)),
        "slices": slices(study, choice.target),
        "row": row(study, choice),
        "figures": figures(study, waiting=waiting),
    }


def figure(study: ErrorStudy, choice: Choice) -> str:
    """Draw the picture that is chosen, as JSON of plotly."""
    return str(pictures.plot(study.study, _view(study, choice), study.mask).to_json())


def _views(study: ErrorStudy) -> dict[str, str]:
    without = {"scores"} if _has_errors(study.study) else {"residuals", "against", "calibration"}
    without |= {"against"} if study.study.second is None else set()
    return {name: title for name, title in VIEWS.items() if name not in without}


def _view(study: ErrorStudy, choice: Choice) -> str:
    views = _views(study)
    return choice.view if choice.view in views else "against" if "against" in views else next(iter(views))


def _has_errors(study: Study) -> bool:
    return bool(np.isfinite(study.first.error).any())


def row(study: ErrorStudy, choice: Choice) -> Markup:
    """Render the row that is read, by default the worst of the slice."""
    order = study.rows
    shown = choice.row if choice.row is not None else int(order[0]) if len(order) else None
    if shown is None or shown >= len(study.study.dataset.pairs):
        return render("errors/nothing.html")
    here = np.flatnonzero(order == shown)
    return row_view(study.study, shown, int(here[0]) if len(here) else -1, len(order))


def result(study: ErrorStudy, choice: Choice, *, picked: bool = False, asked: bool = False) -> Markup:
    """Render the headline of the tab, with the address of what is shown.

    Where only the row or the picture is `picked`, open sections stay, and the address before is replaced. What a link
    `asked` for is not the tab's own example.
    """
    headline = pictures.headline(study, active=True)
    return render("errors/result.html", headline=headline, study=study, choice=choice, picked=picked, asked=asked)


def figures(study: ErrorStudy, *, waiting: bool) -> Markup:
    """Render the table of figures; `waiting` says that intervals are still being computed. None without ratings."""
    if not study.study.rated.any():
        return Markup()
    parts = [("all", study.every), ("slice", study.part), ("rest", study.rest)]
    shown = [(label, report) for label, report in parts if report is not None]
    rows = [row for label, report in shown for row in pictures.figure_rows(label, report, study.titles)]
    resamples = max(report.resamples for _, report in shown)
    table = {"heads": pictures.figure_heads(), "figures": rows, "resamples": resamples}
    return render("errors/figures.html", waiting=waiting, **table)


def slices(study: ErrorStudy, target: str) -> Markup:
    """Render the choice of what to look for, and the slices that were found as buttons that filter by them."""
    target = target or (study.worst or ("",))[0] or "over"
    search = study.searches.get(target)
    found = search.slices if search else ()
    sure = [one for one in found if one.q < SIGNIFICANT]
    least = LEAST_SHARE if target == "order" else LEAST_STEPS
    weak = [one for one in found if abs(one.effect) >= least][:3]
    titles = {name: title for name, title in TITLES.items() if len(study.models) > 1 or name not in ("first", "second")}
    rows = [
        {"filter": one.filter, "words": pictures.in_words(one.filter), "n": one.n, "q": pictures.show_p(one.q),
         "said": _against_rest(study, target, one)}
        for one in (sure or weak)[:SHOWN]
    ]  # fmt: skip
    shown = {
        "search": search,
        "sure": len(sure),
        "rows": rows,
        "targets": titles,
        "target": target,
        "fewest": 2 * MIN_SUPPORT,
    }
    return render("errors/slices.html", rated=int((study.mask & study.study.rated).sum()), **shown)


def row_view(study: Study, row: int, place: int, count: int) -> Markup:
    """Render one row in full: both conditions of its item, what each model says, links to other tabs, tags, a note.

    It is the row at `place`, from 0, of `count` rows of the slice.
    """
    dataset, pair = study.dataset, study.dataset.pairs[row]
    lines = [_judged(study, one, current=one == row) for one in item_of(study, row)]
    conditions = [line["condition"] for line in sorted(lines, key=lambda line: not line["current"])]
    models, shared = [judged.title for judged in study.judged], study.columns["shared"][row]
    texts = pair.sentence1, pair.sentence2
    named = next((cells[row] for column, cells in dataset.extra.items() if column.casefold() == "id"), "")
    compare, words = (pair_link(tab, texts, conditions, study.first.model) for tab in ("compare", "words"))
    return render(
        "errors/row.html", number=int(dataset.numbers[row]), row=row, place=place, count=count, lines=lines,
        sentences=[_marked(text, shared) for text in texts], shared=bool(shared), models=models, compare=compare,
        words=words, tags=TAGS, named=named, fitted=bool(np.isfinite(study.first.fitted).any()),
    )  # fmt: skip


def item_of(study: Study, row: int) -> tuple[int, ...]:
    """Return all rows that rate the same sentences under different conditions, the highest rated first."""
    items = study.dataset.items
    rows = np.unique([row, *items[(items == row).any(axis=1)].ravel()])
    return tuple(rows[np.argsort(-study.columns["gold"][rows], kind="stable")].tolist())


def worst(column: str, groups: Sequence[GroupErrors], study: ErrorStudy) -> Markup:
    """Render the values of a column with the most certain errors, or single rows; a click filters by one."""
    rows = [{**pictures.group_row(column, group), "filter": f"{column} == {quote(group.value)}"} for group in groups]
    dataset = study.study.dataset
    alone = study.rows[:SINGLE].tolist() if _has_errors(study.study) and not rows else []
    single = [(int(dataset.numbers[row]), dataset.pairs[row], study.study.first.error[row]) for row in alone]
    about = {"column": column, "named": pictures.plain_name(column), "models": study.titles, "least": LEAST}
    return render("errors/worst.html", groups=rows, rows=single, **about)


def effects(study: Study, rewritten: Rewritten, scores: Sequence[np.ndarray]) -> Markup:
    """Render before and after of a rewrite, whose `scores` are (k,) of each model, the largest change first."""
    sides = [(judged.scores[rewritten.rows], after) for judged, after in zip(study.judged, scores, strict=True)]
    change = np.nan_to_num(np.abs(sides[0][1] - sides[0][0]))
    rows = []
    for place in np.argsort(-change, kind="stable")[:SHOWN]:
        moves = [(float(before[place]), float(after[place])) for before, after in sides]
        number = int(study.dataset.numbers[rewritten.rows[place]])
        rows.append({"number": number, "pair": rewritten.pairs[place], "moves": moves})
    lines = []
    for judged, (before, after) in zip(study.judged, sides, strict=True):
        moved, ratings = after - before, [judged.calibration(side) for side in (before, after)]
        fitted = None if np.isnan(ratings[0]).any() else tuple(side.mean() for side in ratings)
        up, down = int((moved > 1e-6).sum()), int((moved < -1e-6).sum())
        lines.append({"model": judged.title, "up": up, "down": down, "mean": float(np.mean(moved)), "fitted": fitted})
    return render("errors/effect.html", rewritten=rewritten, lines=lines, rows=rows)


def _judged(study: Study, row: int, *, current: bool) -> dict[str, Any]:
    pair, cells = study.dataset.pairs[row], []
    for judged in study.judged:
        fitted, error = float(judged.fitted[row]), float(judged.error[row])
        cells.append({
            "fitted": fitted if np.isfinite(fitted) else None,
            # Adding 0 takes the sign from what rounds to zero.
            "error": round(error, 1) + 0.0 if np.isfinite(error) else None,
            "score": float(judged.scores[row]),
            "right": None if np.isnan(judged.right[row]) else float(judged.right[row]),
        })  # fmt: skip
    return {"condition": pair.condition, "label": pair.label, "cells": cells, "current": current}


def _marked(sentence: str, shared: frozenset[str]) -> list[tuple[str, bool]]:
    """Split a sentence into pieces; True where both sentences have the word."""
    parts, end = [], 0
    for word in split_words(sentence):
        parts.append((sentence[end : word.start], False))
        parts.append((word.text, word.text.casefold().replace("’", "'") in shared))
        end = word.end
    return [*parts, (sentence[end:], False)]


def _against_rest(study: ErrorStudy, target: str, found: Slice) -> str:
    """Return what a slice has more of than the other rows: "0.43 more similar"."""
    if target == "order":
        return f"Wrong order in {counted(found.inside, found.n)}; other rows {100 * found.outside:.0f} %"
    if target in ("first", "second"):
        names = study.titles if target == "first" else study.titles[::-1]
        sign = 1 if target == "first" else -1
        other = names[0] if sign * found.outside >= 0 else names[1]
        return f"{names[0]} closer by {abs(found.inside):.2f}; other rows: {other} by {abs(found.outside):.2f}"
    if target == "large":
        return f"Off by {found.inside:.2f}; other rows by {found.outside:.2f}"
    return f"{abs(found.effect):.2f} {'more' if found.effect >= 0 else 'less'} similar"
