"""An evaluation, and a study of errors, as HTML: figures with intervals, worst conditions, slices; a report."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from condviz import __version__
from condviz.analysis.errors.filters import TARGETS, quote
from condviz.analysis.errors.findings import ErrorStudy, Remark
from condviz.analysis.errors.measures import HEADS, NO_ROW, AgreementReport, GroupErrors
from condviz.analysis.errors.slices import SIGNIFICANT, Search
from condviz.analysis.errors.study import CurvePoint, Judged, Study, calibration_curve
from condviz.evaluation.agreement import FIGURES
from condviz.evaluation.csts import Evaluation
from condviz.evaluation.metrics import COUNTED, Metric, between
from condviz.plots.html import cut, plain, render, signed, term, to_page
from condviz.plots.svg import BOTTOM, EDGE, LEFT, WIDTH, Axis

if TYPE_CHECKING:
    import plotly.graph_objects as go

STYLES = ("evaluation.css",)
WORST = 40
"""Rows of the report, besides those with remarks."""
MAX_POINTS = 1500
"""Of a small picture; more rows are thinned out evenly, which the picture says."""
HEIGHT = 280
_TERMS = ("spearman", "pearson", "pair-accuracy", "ties", "mean-error", "bias")
"""Those of the glossary for `HEADS`."""
_WORDS = {
    r"overlap <= [\d.]+": "the sentences share few words",
    r"overlap >= [\d.]+": "the sentences share most words",
    r"length_gap <= [\d.]+": "both sentences are equally long",
    r"length_gap >= [\d.]+": "one sentence is much longer",
    r"length <= [\d.]+": "the sentences are short",
    r"length >= [\d.]+": "the sentences are long",
    r"negation": "only one sentence has a negation",
    r"not negation": "negation plays no part",
    r"numerals": "a sentence has a number",
    r"not numerals": "no sentence has a number",
    r"numerals_differ": "the sentences have different numbers",
    r"not numerals_differ": "the sentences do not differ in numbers",
    r"seen": "the condition occurs in training",
    r"not seen": "the condition does not occur in training",
    r"trained": "the row was trained on",
    r"not trained": "the row was not trained on",
    r"gold <= 2": "the rating is low",
    r"gold >= 4": "the rating is high",
    r"gold > ([\d.]+)": "the rating is above {}",
    r"gold < ([\d.]+)": "the rating is below {}",
    r'"(.+)" in shared': "both sentences say “{}”",
    r'"(.+)" in words': "a sentence says “{}”",
    r'\w+ == "(.+)"': "it is about “{}”",
}
"""Filters of the slice finder in plain words."""


def to_html(result: ErrorStudy | Evaluation) -> Markup:
    """Render what a notebook shows: a table of models, or headline, figures, slices and worst conditions of a study."""
    if isinstance(result, ErrorStudy):
        return render("errors/study.html", headline=headline(result), **sections(result))
    rows = [
        (report, part.removeprefix("overall"), figures.n, [_bar(name, getattr(figures, name)) for name in FIGURES])
        for report in result.reports
        for part, figures in report.parts()
    ]
    return render("errors/evaluation.html", result=result, rows=rows, heads=[HEADS[name] for name in FIGURES])


def _bar(name: str, metric: Metric) -> dict[str, Any]:
    """Lay a figure out on a line from -100 or 0 to 100 %."""
    value = "\N{EN DASH}" if metric.value is None else plain(metric.value, 1)
    shown = {"value": value, "reason": metric.reason, "bar": None}
    if metric.value is None or metric.low is None or metric.high is None:
        return shown
    start = -100 if name in ("spearman", "pearson") else 0
    low, middle, high = (
        round(100 * (value - start) / (100 - start), 2) for value in (metric.low, metric.value, metric.high)
    )
    bar = {"low": low, "width": high - low, "middle": middle}
    return shown | {"bar": bar, "interval": between(metric.low, metric.high, 1)}


def headline(result: ErrorStudy, *, active: bool = False) -> Markup:
    """Render what the figures support: of one model what it gets wrong, of two which is better, where and by how much.

    What is `active` filters where it is clicked; elsewhere it only names the rows.
    """
    found, two = result.summary, len(result.titles) > 1
    target, worst = result.worst or ("", None)
    figures = (result.part or result.every).figures[0]
    groups = (*found.wins, *found.loses, *(one.value for one in (found.best, found.worst) if one))
    comparisons = found.order.n if found.order else 0
    return render(
        "errors/headline.html",
        found=found,
        first=result.titles[0],
        second=result.titles[1] if two else "",
        unit="sentence pairs" if comparisons == found.pairs else "comparisons of two conditions",
        rated=bool(result.study.rated.any()),
        here="this slice" if result.part else "these rows",
        sliced=result.part is not None,
        rows_here=int(result.mask.sum()),
        reason=figures.spearman.reason or NO_ROW,
        target=TARGETS.get(target, ""),
        worst=worst,
        worst_words=in_words(worst.filter) if worst else "",
        filters={value: f"{found.asked} == {quote(value)}" for value in groups},
        active=active,
        between=between,
        counted_below=COUNTED,
    )


def in_words(filter: str) -> str:
    """Return in plain words which rows a filter of the slice finder selects; one of another form stays as it is."""
    said = []
    for part in filter.split(" and "):
        match = next((found for pattern in _WORDS if (found := re.fullmatch(pattern, part))), None)
        if match is None:
            return filter
        said.append(_WORDS[match.re.pattern].format(*(group.replace("_", " ") for group in match.groups())))
    return " and ".join(said)


def render_report(result: ErrorStudy, *, remarks: Mapping[int, Remark] | None = None) -> str:
    """Render a page that needs nothing else: no script, no address, light and dark, fit for printing.

    Rows with remarks of a reader, given by their positions, are listed first.
    """
    remarks = remarks or {}
    noted = [row for row in sorted(remarks) if result.mask[row]]
    others = [int(row) for row in result.rows if row not in remarks]
    body = render(
        "errors/report.html",
        headline=headline(result),
        result=result,
        dataset=result.study.dataset,
        version=__version__,
        rows=[_row(result, row, remarks.get(row)) for row in [*noted, *others[:WORST]]],
        noted=len(noted),
        worst=min(WORST, len(others)),
        pictures=[
            (judged.title, residuals(result, judged), _curve(judged, curve), len(curve))
            for judged, curve in zip(result.study.judged, result.curves, strict=True)
            if curve
        ],
        **sections(result),
    )
    title = f"Errors of {' and '.join(result.titles)} on {result.study.dataset.name}"
    return to_page(title, body)


def figure_heads() -> list[Markup]:
    """Return the headings of the figures, which the page explains."""
    return [term(key, title) for key, title in zip(_TERMS, HEADS.values(), strict=True)]


def figure_rows(label: str, report: AgreementReport, titles: Sequence[str]) -> list[dict[str, Any]]:
    """Return lines of the table of figures: a line per model, by its title, then the difference of two."""
    rows: list[dict[str, Any]] = [
        {
            "rows": label, "model": title, "n": f"{one.n:,}", "items": f"{one.items:,}",
            "cells": [(*show_figure(name, getattr(one, name)), getattr(one, name).reason) for name in HEADS],
        }
        for title, one in zip(titles, report.figures, strict=True)
    ]  # fmt: skip
    if (difference := report.difference) is not None:
        cells = []
        for name in HEADS:
            exact = name == "ties_excluded"
            p = difference.mcnemar if exact else difference.p_values[name]
            value, interval = show_figure(name, difference.values[name], sign=True)
            chance = "" if p is None else f"{'McNemar p' if exact else 'p'} {show_p(p)}"
            cells.append((value, "\n".join(filter(None, (interval, chance))), ""))
        rows.append({"rows": label, "model": "difference", "n": "", "items": "", "cells": cells})
    return rows


def show_figure(name: str, figure: Metric, *, sign: bool = False) -> tuple[str, str]:
    """Format value and interval of a figure of `HEADS`; a bias, and with `sign` any, has its sign."""
    if figure.value is None:
        return "\N{EN DASH}", ""
    digits = 2 if name in ("error", "bias") else 1

    def show(value: float) -> str:  # what rounds to zero has no sign
        return (signed if (sign or name == "bias") and round(value, digits) else plain)(value, digits)

    if figure.low is None or figure.high is None:
        return show(figure.value), ""
    return show(figure.value), f"{show(figure.low)} to {show(figure.high)}"


def show_p(p: float) -> str:
    """Format a p or q value."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def sections(result: ErrorStudy) -> dict[str, Any]:
    """Lay out all parts of a study for the templates."""
    parts = [("all", result.every), ("slice", result.part), ("rest", result.rest)]
    shown = [(label, report) for label, report in parts if report is not None]
    kinds = (("aspect", result.aspects), ("condition", result.conditions))
    return {
        "models": result.titles,
        "heads": figure_heads(),
        "figures": [row for label, report in shown for row in figure_rows(label, report, result.titles)],
        "resamples": max(report.resamples for _, report in shown),
        "groups": [(title, [group_row(title, one) for one in groups]) for title, groups in kinds if groups],
        "searches": [_search(result.titles[0], target, search) for target, search in result.searches.items()],
        "blindness": [
            {"model": title, "found": one, "p": "" if one.p is None else show_p(one.p)}
            for title, one in zip(result.titles, result.blindness, strict=True)
        ],
        "confusions": [
            (judged.title, counts.tolist())
            for judged, counts in zip(result.study.judged, result.confusions, strict=True)
            if counts.sum()
        ],
    }


def group_row(title: str, group: GroupErrors) -> dict[str, Any]:
    """Lay out one value of a column: error, bias and share of wrong orders of each model."""
    cells = []
    for error, spread, bias, wrong in zip(group.error, group.spread, group.bias, group.wrong, strict=True):
        share = f"{100 * wrong:.0f} %" if np.isfinite(wrong) else "\N{EN DASH}"
        # An interval that reaches below 0 says nothing of the error.
        known = f"\N{PLUS-MINUS SIGN}{spread:.2f}" if spread < error else "too few"
        cells += [(plain(error), known), (signed(bias), ""), (share, "")]
    return {"value": plain_name(group.value) if title == "aspect" else group.value, "n": group.n, "cells": cells}


def plain_name(name: str) -> str:
    """Return the name of a column, or of an aspect, as people say it."""
    return {"aspect": "what is asked", "asks": "what is asked"}.get(name, name.replace("_", " "))


def _search(model: str, target: str, search: Search) -> dict[str, Any]:
    sure = [one for one in search.slices if one.q < SIGNIFICANT]
    rows = [(one.filter, f"{one.n:,}", plain(one.inside), plain(one.outside), show_p(one.q)) for one in sure]
    return {"title": f"Where {model} {TARGETS[target]}", "rows": rows, "tried": f"{search.tried:,}"}


def _row(result: ErrorStudy, row: int, remark: Remark | None) -> dict[str, Any]:
    pair, cells = result.study.dataset.pairs[row], []
    for judged in result.study.judged:
        fitted, error = judged.fitted[row], judged.error[row]
        known = np.isfinite(fitted)
        small = signed(error) if known and np.isfinite(error) else ""
        cells.append((plain(fitted) if known else f"score {plain(judged.scores[row], 3)}", small))
    label = "\N{EN DASH}" if pair.label is None else f"{pair.label:g}"
    number = int(result.study.dataset.numbers[row])
    return {"number": number, "pair": pair, "label": label, "cells": cells, "remark": remark or Remark()}


def residuals(result: ErrorStudy, judged: Judged, most: int = MAX_POINTS) -> Markup:
    """Draw the error of the rows of the slice by their score, as SVG; more than `most` are thinned out."""
    rows = np.flatnonzero(result.mask & np.isfinite(judged.error))
    step = max(1, int(np.ceil(len(rows) / most)))
    shown = rows[np.argsort(judged.scores[rows], kind="stable")][::step]
    note = f"every {step}th of {len(rows):,} rows" if step > 1 else f"{len(rows):,} rows"
    x, y = _score_axis(judged.scores[rows], f"score ({note})"), Axis(-4, 4, HEIGHT - BOTTOM, EDGE, "error")
    places = zip(judged.scores[shown].tolist(), judged.error[shown].tolist(), strict=True)
    marks = [_mark(x.place(score), y.place(error), 2.2, SIDE_COLOURS[int(error <= 0)]) for score, error in places]
    zero = f"M{x.start},{y.place(0)} {x.end},{y.place(0)}", "var(--cv-muted)"
    return _draw("Error by score", x, y, marks, [zero])


def _curve(judged: Judged, curve: tuple[CurvePoint, ...]) -> Markup:
    """Draw the mean ratings of groups of rows, two standard errors up and down, and the fit through all rows."""
    knots, fit = judged.calibration.scores, judged.calibration.ratings
    x, y = _score_axis(knots, "score"), Axis(1, 5, HEIGHT - BOTTOM, EDGE, "mean rating")
    places = np.unique(np.linspace(0, len(knots) - 1, 200).astype(int))
    points = zip(knots[places].tolist(), fit[places].tolist(), strict=True)
    line = " ".join(f"{x.place(score)},{y.place(rating)}" for score, rating in points)
    paths, marks = [(f"M{line}", "var(--cv-ink)")], []
    for point in curve:
        across, reach = x.place(point.score), 2 * point.error
        ends = y.place(max(1, point.rating - reach)), y.place(min(5, point.rating + reach))
        paths.append((f"M{across},{ends[0]} {across},{ends[1]}", "var(--cv-muted)"))
        marks.append(_mark(across, y.place(point.rating), 3, "var(--cv-ink)"))
    return _draw("Mean rating by score", x, y, marks, paths)


def _score_axis(values: np.ndarray, title: str) -> Axis:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    return Axis(low, high if high > low else low + 1, LEFT, WIDTH - EDGE, title)


def _mark(x: float, y: float, radius: float, colour: str) -> dict[str, Any]:
    return {"x": x, "y": y, "radius": radius, "colour": colour, "polygon": "", "line": "", "text": ""}


def _draw(label: str, x: Axis, y: Axis, marks: list[dict[str, Any]], paths: list[tuple[str, str]]) -> Markup:
    size = {"width": WIDTH, "height": HEIGHT}
    return render("figure.svg", **size, x=x, y=y, marks=marks, paths=paths, texts=(), label=label)


# ---- figures of the page: errors by score, one model against another, calibration ------------------------------------

TIP = 110
"""Characters of each text in a tip."""
AS_RATED = 0.05
"""Steps of the rating up to which a row is on no side: it rounds to zero."""
SIDE_COLOURS = ("var(--cv-pos)", "var(--cv-neg)")


def plot(study: Study, view: str, mask: np.ndarray) -> go.Figure:
    """Draw "residuals", "against", "scores" or, of the rows of the slice, "calibration"."""
    if view == "calibration":
        return plot_calibration(study, mask)
    return {"against": plot_against, "scores": plot_scores}.get(view, plot_residuals)(study)


def plot_residuals(study: Study) -> go.Figure:
    """Draw the error of every rated row by the score of the first model; ids are positions in the dataset."""
    judged = study.first
    known, right = np.isfinite(judged.error), np.abs(judged.error) < AS_RATED
    sides = {"too similar": judged.error > 0, "too different": judged.error < 0}
    sides = {name: known & side & ~right for name, side in sides.items()} | {"as rated": known & right}
    figure = _plot_sides(study, sides, judged.scores, judged.error)
    _finish(figure, f"score of {judged.title}", "error, in steps of the rating")
    figure.add_hline(y=0, line_width=1, line_color="var(--cv-ink)")
    return figure


def plot_against(study: Study) -> go.Figure:
    """Draw the error of the first model against that of the second; ids are positions in the dataset."""
    first, second = study.judged
    known = np.isfinite(first.error) & np.isfinite(second.error)
    gain = np.abs(second.error) - np.abs(first.error)
    sides = {f"{first.title} is closer": gain >= AS_RATED, f"{second.title} is closer": gain <= -AS_RATED}
    sides = {name: known & side for name, side in sides.items()} | {"as close": known & (np.abs(gain) < AS_RATED)}
    figure = _plot_sides(study, sides, second.error, first.error)
    _finish(figure, f"error of {second.title}", f"error of {first.title}")
    figure.add_hline(y=0, line_width=1, line_color="var(--cv-rule-strong)")
    figure.add_vline(x=0, line_width=1, line_color="var(--cv-rule-strong)")
    return figure


def plot_scores(study: Study) -> go.Figure:
    """Draw scores where there is no error to draw: by those of the second model, by the rating, or in their order."""
    x = study.first.scores
    if study.second is not None:
        y, other = study.second.scores, f"score of {study.second.title}"
    elif study.rated.any():
        y, other = study.columns["gold"], "rating"
    else:
        y, other = 100 * np.searchsorted(np.sort(x), x) / len(x), "% of all rows that score lower"
    figure = _plot_sides(study, {"row": np.isfinite(x) & np.isfinite(y)}, x, y)
    _finish(figure, f"score of {study.first.title}", other)
    return figure


def plot_calibration(study: Study, mask: np.ndarray) -> go.Figure:
    """Draw the mean rating of rows of the slice, (p,) bool, with neighbouring scores, a curve per model.

    Scores are shown as shares of all of the model's rows with lower scores, as ranges differ.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for judged, colour in zip(study.judged, SIDE_COLOURS, strict=False):
        if not (curve := calibration_curve(judged.scores[mask], study.columns["gold"][mask])):
            continue
        ordered = np.sort(judged.scores)
        share = 100 * np.searchsorted(ordered, [point.score for point in curve]) / len(ordered)
        spread = {"type": "data", "array": [2 * point.error for point in curve], "thickness": 1.2, "width": 3}
        figure.add_scatter(
            x=share, y=[point.rating for point in curve], error_y=spread, name=judged.title, mode="lines+markers",
            line={"color": colour}, marker={"color": colour, "size": 7},
        )  # fmt: skip
    whose = "all rows" if mask.all() else "the slice"
    _finish(figure, "% of all rows that score lower", f"mean rating of {whose}, with 95 % interval")
    figure.update_layout(yaxis={"range": [0.9, 5.1]})
    return figure


def _plot_sides(study: Study, sides: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> go.Figure:
    """Draw the rows of one side, of the other, and of neither, in a colour each."""
    import plotly.graph_objects as go

    figure = go.Figure()
    tips: dict[str, int] = defaultdict(lambda: len(tips))
    for (name, chosen), colour in zip(sides.items(), (*SIDE_COLOURS, "var(--cv-rule-strong)"), strict=False):
        rows = np.flatnonzero(chosen).tolist()
        if not len(rows) and name in ("as rated", "as close"):
            continue
        figure.add_scattergl(
            x=x[rows].astype(np.float32), y=y[rows].astype(np.float32), mode="markers", name=name,
            ids=[str(row) for row in rows], hoverinfo="none", **_tips(study, rows, tips),
            marker={"color": colour, "size": 6, "opacity": 0.65}, selected={"marker": {"opacity": 0.9}},
            unselected={"marker": {"opacity": 0.12}},
        )  # fmt: skip
    return figure.update_layout(meta={"texts": list(tips)})


def _tips(study: Study, rows: Sequence[int], ids: dict[str, int]) -> dict[str, list]:
    """Number the texts of rows: each is sent once, though every pair of sentences stands under two conditions."""
    pairs = [study.dataset.pairs[row] for row in rows]
    sentences = (f"{cut(pair.sentence1, TIP)}\n{cut(pair.sentence2, TIP)}" for pair in pairs)
    ratings = ("not rated" if pair.label is None else f"rating {pair.label:g}" for pair in pairs)
    facts = zip((cut(pair.condition, TIP) for pair in pairs), ratings, strict=True)
    return {"text": [ids[text] for text in sentences], "customdata": [[ids[one] for one in two] for two in facts]}


def _finish(figure: go.Figure, x: str, y: str) -> None:
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    figure.update_layout(xaxis_title=x, yaxis_title=y, legend=legend, dragmode="select", uirevision=f"{x}|{y}")
