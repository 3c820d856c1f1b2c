"""ErrorStudy as one HTML file that needs nothing else: no script, no address, light and dark, fit for printing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from string import Template

import numpy as np

from condviz.analysis.errors.columns import TARGETS
from condviz.analysis.errors.drawing import draw_curve, draw_residuals
from condviz.analysis.errors.findings import ErrorStudy, Remark
from condviz.analysis.errors.measures import (
    HEADS,
    Blindness,
    Difference,
    Figures,
    Group,
    Report,
    show_figure,
    show_p,
)
from condviz.analysis.errors.slices import SIGNIFICANT, Search
from condviz.evaluation.dataset import ASPECT
from condviz.evaluation.metrics import Metric
from condviz.paths import ASSETS
from condviz.version import __version__

TEMPLATE = ASSETS / "error_report.html"
WORST = 40
_SLICES = (
    "<p class=small>Filters whose rows have more errors than the other rows. Inside, outside: mean of these and of the "
    "others; for too similar and too different the signed error beyond that of equally rated rows, for the order the "
    "share of wrong ones, for two models how much closer the first one is to the rating.</p>"
)


def render_report(findings: ErrorStudy, *, remarks: Mapping[int, Remark] | None = None) -> str:
    """Write the report.

    Args:
        findings: What was found.
        remarks: Tags and notes of a reader, by position of the row; those rows are listed first.
    """
    dataset, names = findings.study.dataset, [judged.model for judged in findings.study.judged]
    title = f"Errors of {' and '.join(names)} on {dataset.name}"
    known = "; ".join(f"{name} {findings.revisions.get(name, '')}".strip() for name in names)
    hand = f"{findings.selected:,} rows selected by hand" if findings.selected else ""
    asked = f"<code>{escape(findings.filter)}</code>" if findings.filter else ""
    chosen = f"<p>Slice: {' and '.join(filter(None, (asked, hand)))}</p>" if asked or hand else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in dataset.notes)
    head = (
        f"<h1>{escape(title)}</h1><p class='muted'>{len(dataset.pairs):,} rows, {len(dataset.items):,} sentence pairs "
        f"with two conditions; {escape(dataset.ratings)}. Models: {escape(known)}. CondViz {__version__}, data "
        f"{dataset.digest[:12]}.</p>"
        f"{chosen}{f'<ul class=small>{notes}</ul>' if notes else ''}"
    )
    sections = [head, _figures(findings), _plots(findings), _conditions(findings), _slices(findings)]
    sections += [_blindness(findings.blindness), _confusions(findings), _rows(findings, remarks or {})]
    frame = Template(TEMPLATE.read_text(encoding="utf-8"))
    return frame.substitute(title=escape(title), generator=f"CondViz {__version__}", body="\n".join(sections))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int, over: str = "") -> str:
    """Lay out cells that are already markup; the last `numbers` columns are numbers, `over` a line above the head."""
    first = len(head) - numbers

    def line(name: str, cells: Sequence[str]) -> str:
        parts = (f"<{name}{' class=num' if i >= first else ''}>{cell}</{name}>" for i, cell in enumerate(cells))
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<div class=scroll><table><thead>{over}{line('th', head)}</thead><tbody>{body}</tbody></table></div>"


def _cell(name: str, figure: Metric, *, sign: bool = False) -> str:
    value, interval = show_figure(name, figure, sign=sign)
    return value + (f"<span class=interval>{interval}</span>" if interval else "")


def _figures(findings: ErrorStudy) -> str:
    parts = [("all", findings.every), ("slice", findings.part), ("rest", findings.rest)]
    rows = [row for label, report in parts if report is not None for row in _report_rows(label, report)]
    resamples = max(report.resamples for _, report in parts if report is not None)
    intervals = f" Below each figure: 95 % interval from {resamples:,} resamples." if resamples else ""
    text = (
        f"<p class=small>Correlations and accuracies times 100; errors in steps of the rating (1 to 5).{intervals}</p>"
    )
    return "<h2>Figures</h2>" + _table(("rows", "model", "n", "items", *HEADS.values()), rows, numbers=8) + text


def _report_rows(label: str, report: Report) -> list[list[str]]:
    def line(figures: Figures) -> list[str]:
        cells = [_cell(name, getattr(figures, name)) for name in HEADS]
        return [label, escape(figures.model), f"{figures.n:,}", f"{figures.items:,}", *cells]

    rows = [line(figures) for figures in report.figures]
    if report.difference is not None:
        rows.append([label, "difference", "", "", *_difference_cells(report.difference)])
    return rows


def _difference_cells(difference: Difference) -> list[str]:
    cells = []
    for name in HEADS:
        p = difference.mcnemar if name == "ties_excluded" else difference.p_values[name]
        which = "McNemar p" if name == "ties_excluded" else "p"
        shown = "" if p is None else f"<span class=interval>{which} {show_p(p)}</span>"
        cells.append(_cell(name, difference.values[name], sign=True) + shown)
    return cells


def _plots(findings: ErrorStudy) -> str:
    parts = []
    for judged, curve in zip(findings.study.judged, findings.curves, strict=True):
        if not curve:
            continue
        rows = np.flatnonzero(findings.mask & np.isfinite(judged.error))
        caption = f"{escape(judged.model)}: error by score. Above zero: too similar."
        parts.append(f"<figure>{draw_residuals(judged, rows)}<figcaption>{caption}</figcaption></figure>")
        caption = (
            f"{escape(judged.model)}: mean rating in {len(curve)} groups of rows by score, and the fit to all rows."
        )
        parts.append(f"<figure>{draw_curve(judged, curve)}<figcaption>{caption}</figcaption></figure>")
    return f"<h2>Errors and calibration</h2><div class=figures>{''.join(parts)}</div>" if parts else ""


def _conditions(findings: ErrorStudy) -> str:
    names = [judged.model for judged in findings.study.judged]
    kinds = ((ASPECT, findings.aspects), ("condition", findings.conditions))
    tables = [_group_table(title, groups, names) for title, groups in kinds if groups]
    if not tables:
        return ""
    lead = (
        f"<p class=small>First where {escape(names[0])} is surely off: by the lower end of mean error "
        "\N{PLUS-MINUS SIGN} 95 %. Those with fewer than five rows are left out.</p>"
    )
    return f"<h2>Worst conditions</h2>{lead}{'<p></p>'.join(tables)}"


def _group_table(title: str, groups: Sequence[Group], names: Sequence[str]) -> str:
    over = "".join(f"<th colspan=3 class=num>{escape(name)}</th>" for name in names)
    head = [title, "n", *("mean error", "bias", "wrong order") * len(names)]

    def line(group: Group) -> list[str]:
        cells = [escape(group.value.replace("_", " ") if title == ASPECT else group.value), f"{group.n:,}"]
        for error, spread, bias, wrong in zip(group.error, group.spread, group.bias, group.wrong, strict=True):
            cells += [f"{error:.2f}<span class=interval>\N{PLUS-MINUS SIGN}{spread:.2f}</span>"]
            cells += [f"{bias:+.2f}".replace("-", "\N{MINUS SIGN}")]
            cells.append(f"{100 * wrong:.0f} %" if np.isfinite(wrong) else "\N{EN DASH}")
        return cells

    rows = [line(group) for group in groups]
    return _table(head, rows, numbers=len(head) - 1, over=f"<tr><td colspan=2 class=wide></td>{over}</tr>")


def _slices(findings: ErrorStudy) -> str:
    parts = []
    for target, search in findings.searches.items():
        sure = [one for one in search.slices if one.q < SIGNIFICANT]
        title = f"Where {escape(findings.study.first.model)} {TARGETS[target]}"
        if not sure:
            parts.append(f"<h3>{title}</h3><p class=small>None of {search.tried:,} filters stands out.</p>")
            continue
        parts.append(f"<h3>{title}</h3>{_slice_table(search, len(sure))}")
    return f"<h2>Slices</h2>{_SLICES}{''.join(parts)}" if parts else ""


def _slice_table(search: Search, count: int) -> str:
    rows = [
        [
            f"<code>{escape(one.filter)}</code>",
            f"{one.n:,}",
            *(f"{round(value, 2) + 0.0:.2f}".replace("-", "\N{MINUS SIGN}") for value in (one.inside, one.outside)),
            show_p(one.q),
        ]
        for one in search.slices[:count]
    ]
    return _table(("filter", "rows", "inside", "outside", "q"), rows, numbers=4)


def _blindness(found: Sequence[Blindness]) -> str:
    rows = [
        [
            escape(one.model),
            one.verdict,
            "\N{EN DASH}" if one.p is None else f"{one.follows:.2f}, p {show_p(one.p)}",
            *(_share(value) for value in (one.within, one.within_gold, one.wording, one.wording_gold)),
        ]
        for one in found
    ]
    head = (
        "model",
        "verdict",
        "follows the ratings",
        "between two conditions",
        "ratings",
        "from the wording",
        "ratings",
    )
    text = (
        "<p class=small>Follows: correlation of the changes of score and rating from one condition of a pair to the "
        "other; p: how often swapping the two scores at random does as well. The other columns are shares of the "
        "variance of the scores, and of the ratings beside them. Random scores have one half between two conditions; a "
        "model that guesses from the question has much from the wording.</p>"
    )
    return f"<h2>Does the model follow the condition?</h2>{text}{_table(head, rows, numbers=5)}"


def _share(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{100 * value:.1f} %"


def _confusions(findings: ErrorStudy) -> str:
    parts = []
    for judged, counts in zip(findings.study.judged, findings.confusions, strict=True):
        if counts.sum():
            rows = [[str(level + 1), *(f"{count:,}" for count in line)] for level, line in enumerate(counts)]
            head = ("rating", *(str(level) for level in range(1, 6)))
            parts.append(
                f"<figure>{_table(head, rows, numbers=5)}<figcaption>{escape(judged.model)}</figcaption></figure>"
            )
    text = "<p class=small>Rows: rating. Columns: the rating that the score predicts.</p>"
    return f"<h2>Confusion</h2>{text}<div class=figures>{''.join(parts)}</div>" if parts else ""


def _rows(findings: ErrorStudy, remarks: Mapping[int, Remark]) -> str:
    study = findings.study
    error = np.nan_to_num(np.abs(study.first.error), nan=-1.0)
    noted = [row for row in sorted(remarks) if findings.mask[row]]
    worst = [int(row) for row in np.argsort(-error, kind="stable") if findings.mask[row] and row not in remarks]
    rows = [_row(findings, row, remarks.get(row)) for row in [*noted, *worst[:WORST]]]
    models = [escape(judged.model) for judged in study.judged]
    head = ("row", "sentences", "condition", "rating", *models)
    text = f"{len(noted):,} rows with remarks, then " if noted else ""
    text = (
        f"<p class=small>{text}the {min(WORST, len(worst))} rows with the largest error. Fitted rating and error.</p>"
    )
    return f"<h2>Rows</h2>{text}{_table(head, rows, numbers=1 + len(models))}"


def _row(findings: ErrorStudy, row: int, remark: Remark | None) -> list[str]:
    study = findings.study
    pair = study.dataset.pairs[row]
    tags = "".join(f" <span class=tag>{escape(one)}</span>" for one in remark.tags) if remark else ""
    note = f"<br><i>{escape(remark.note)}</i>" if remark and remark.note else ""
    cells = []
    for judged in study.judged:
        fitted, error = judged.fitted[row], judged.error[row]
        if not np.isfinite(fitted):
            cells.append(f"score {judged.scores[row]:.3f}")
            continue
        shown = f"<span class=interval>{error:+.2f}</span>".replace("-", "\N{MINUS SIGN}") if np.isfinite(error) else ""
        cells.append(f"{fitted:.2f}{shown}")
    rating = "\N{EN DASH}" if pair.label is None else f"{pair.label:g}"
    texts = f"{escape(pair.sentence1)}<br>{escape(pair.sentence2)}{note}"
    return [str(study.dataset.numbers[row]), texts, escape(pair.condition) + tags, rating, *cells]
