"""The command `errors`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from condviz.analysis.errors.findings import find_errors
from condviz.cli import options as shared
from condviz.cli.options import format_json, format_table, progress_bar
from condviz.data.pairs import read_pairs
from condviz.errors import ConfigError
from condviz.evaluation.csts import evaluate
from condviz.evaluation.dataset import open_data

if TYPE_CHECKING:
    from condviz.analysis.errors.findings import ErrorStudy
    from condviz.analysis.errors.measures import Report
    from condviz.evaluation.metrics import Metric


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    files = shared.files(
        json="write the result as JSON",
        html="write a report that can be passed on: one file",
        out="write the rows of the slice as CSV, with errors and features",
    )
    seen = shared.seen("table whose conditions count as seen (default: the model's training data)")
    asked = shared.reading(), shared.of_function(evaluate), shared.of_function(find_errors, but=["resamples"])
    models = shared.models("the columns score_MODEL of the table")
    parser = shared.add_command(commands, "errors", run, models, shared.device(), files, seen, *asked)
    parser.add_argument("data", metavar="FILE", help="the table, - for standard input, or CORPUS:PART (scenes:test)")


def run(options: argparse.Namespace) -> None:
    """Find where and why a model is wrong.

    Score a table (CSV: sentence1, sentence2, condition, label from 1 to 5) with one model, or with two to compare, and
    print figures, the worst conditions, and slices in which a model fails. Columns score_MODEL, as `evaluate --out`
    writes them, are taken as they are.
    """
    from condviz.analysis.errors.findings import format_csv
    from condviz.models.registry import load
    from condviz.plots.errors import render_report

    dataset = open_data(options.data, **shared.given(options, read_pairs))
    shared.tell_table(options, dataset)
    names = list(dict.fromkeys(options.model)) or list(dataset.stored)[:2]
    if not 1 <= len(names) <= 2:
        stored = f" The file has scores of: {', '.join(dataset.stored)}." if dataset.stored else ""
        raise ConfigError(f"One model or two can be analysed, got {len(names)}. Name them with --model.{stored}")
    training = shared.seen_conditions(options)
    settings = {"device": options.device, "precision": options.precision}
    models = [name if name in dataset.stored else load(name, **settings) for name in names]
    with progress_bar(" and ".join(names), "rows") as update:
        found = find_errors(
            models,
            dataset,
            training_conditions=training,
            **shared.given(options, find_errors),
            seed=options.seed,
            progress=update,
        )
    if options.html:
        shared.write(options.html, render_report(found))
    if options.json:
        shared.write(options.json, format_json(found.to_dict()))
    if options.out:
        shared.write(options.out, format_csv(found.study, found.mask.nonzero()[0]))
    if not shared.output_taken(options):
        print(_summary(found))


def _summary(findings: ErrorStudy) -> str:
    from condviz.analysis.errors.filters import TARGETS
    from condviz.analysis.errors.slices import SIGNIFICANT
    from condviz.plots.errors import headline

    study = findings.study
    named = (("all", findings.every), ("slice", findings.part), ("rest", findings.rest))
    parts = [headline(findings).striptags()]
    parts += [_figures(label, report) for label, report in named if report is not None]
    models = [judged.model for judged in study.judged]
    for title, groups in (("worst aspects", findings.aspects), ("worst conditions", findings.conditions)):
        if groups:
            head = (title, "n", *(f"error {name}" for name in models), *(f"bias {name}" for name in models))
            rows = []
            for one in groups[:10]:
                errors = (f"{error:.2f} ±{spread:.2f}" for error, spread in zip(one.error, one.spread, strict=True))
                rows.append((one.value, f"{one.n:,}", *errors, *(f"{bias:+.2f}" for bias in one.bias)))
            parts.append(format_table(head, rows))
    for target, search in findings.searches.items():
        title = f"where {study.first.model} {TARGETS[target]}"
        rows = []
        for one in [one for one in search.slices if one.q < SIGNIFICANT][:5]:
            sides = (f"{round(value, 2) + 0.0:.2f}" for value in (one.inside, one.outside))
            rows.append((one.filter, f"{one.n:,}", *sides, f"{one.q:.1g}"))
        none = f"{title}: none of {search.tried:,} filters stands out"
        parts.append(format_table((title, "rows", "inside", "outside", "q"), rows) if rows else none)
    return "\n\n".join(parts)


def _figures(label: str, report: Report) -> str:
    from condviz.analysis.errors.measures import HEADS, show_figure, show_p

    def cell(name: str, figure: Metric, *, sign: bool = False) -> str:
        value, interval = show_figure(name, figure, sign=sign)
        return f"{value} [{interval}]" if interval else value

    rows = [
        (one.model, f"{one.n:,}", f"{one.items:,}", *(cell(name, getattr(one, name)) for name in HEADS))
        for one in report.figures
    ]
    if difference := report.difference:
        shown = [cell(name, difference.values[name], sign=True) for name in HEADS]
        rows.append(("difference", "", "", *shown))
        chances = [show_p(p) if (p := difference.p_values[name]) is not None else "" for name in HEADS]
        rows.append(("p, paired bootstrap", "", "", *chances))
        if difference.mcnemar is not None:
            apart = f"{difference.only_first} to {difference.only_second} items"
            rows.append((f"p, McNemar ({apart})", "", "", "", "", "", show_p(difference.mcnemar), "", ""))
    return format_table((label, "n", "items", *HEADS.values()), rows)
