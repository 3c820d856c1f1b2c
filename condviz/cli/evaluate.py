"""The command `evaluate`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.asked_models import load_asked
from condviz.cli.terminal import format_table, progress_bar, tell

if TYPE_CHECKING:
    from condviz.evaluation.csts import EvaluationReport, Metric, Subset


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "evaluate",
        parents=[shared.models(required=True), shared.device(), shared.json_file("write the report")],
        help="compare with ratings",
        description="Score a table (CSV: sentence1, sentence2, condition and label from 1 to 5) and compare with its "
        "labels. Rows without a label are scored only.",
    )
    parser.add_argument("--data", required=True, metavar="FILE", help="the table, or - for standard input")
    parser.add_argument("--train-data", metavar="FILE", help="table whose conditions count as seen in training")
    parser.add_argument("--out", metavar="FILE", help="write the table with a column score_MODEL per model")
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: 1000; 0: none)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Score and compare; the report goes to standard output, predictions and JSON into files."""
    from condviz.data.files import check_target, write_text
    from condviz.data.tables import read_pairs, write_predictions
    from condviz.evaluation.csts import evaluate

    for path in filter(None, (options.out, options.json)):
        check_target(path)
    table = read_pairs(options.data)
    tell(*table.notes)
    training = None
    if options.train_data:
        training = {pair.condition for pair in read_pairs(options.train_data).pairs}
    reports = []
    for _, model in load_asked(options.model, device=options.device, precision=options.precision):
        with progress_bar(model.info.name, "rows") as update:
            reports.append(
                evaluate(
                    model,
                    table.pairs,
                    training_conditions=training,
                    resamples=options.resamples,
                    seed=options.seed,
                    progress=update,
                )
            )
    if options.out:
        write_predictions(options.out, table, {report.model: report.predictions for report in reports})
    if options.json:
        content = {"data": options.data, "models": [report.to_dict() for report in reports]}
        write_text(options.json, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    print(_report(reports))


def _report(reports: Sequence[EvaluationReport]) -> str:
    if not reports[0].rated:
        return f"Rows scored: {reports[0].rows:,}. None has a label, so there is nothing to compare with."
    head = ("model", "rows", "n", "Spearman", "Pearson", "pair accuracy", "ties left out", "pairs")
    rows, reasons = [], []
    for report in reports:
        name = report.model + ("" if report.trained else " *")
        for label, subset in (("", report.overall), ("seen", report.seen), ("unseen", report.unseen)):
            if subset is None:
                continue
            title, total = (f"  {label}", "") if label else (name, f"{report.rows:,}")
            rows.append((title, total, f"{subset.n:,}", *_figures(subset), f"{subset.accuracy.pairs:,}"))
            if subset.spearman.value is None:
                where = report.model + (label and f", {label}")
                reasons.append(f"{where}: no correlation, because {subset.spearman.reason}.")
    has_interval = any(report.overall.spearman.low is not None for report in reports)
    bracket = "; in brackets the 95 % bootstrap interval over sentence pairs" if has_interval else ""
    legend = [
        f"All figures times 100{bracket}.",
        "Pair accuracy: does the condition with the higher label score higher? Equal labels count as wrong;",
        'they are not counted in "ties left out".',
    ]
    star = [] if all(report.trained for report in reports) else ["* not trained"]
    return "\n".join([format_table(head, rows), "", *legend, *star, *reasons])


def _figures(subset: Subset) -> list[str]:
    return [_figure(metric) for metric in (subset.spearman, subset.pearson, subset.ties_wrong, subset.ties_excluded)]


def _figure(metric: Metric) -> str:
    if metric.value is None:
        return "-"
    interval = "" if metric.low is None else f" [{metric.low:.1f}, {metric.high:.1f}]"
    return f"{metric.value:.2f}{interval}"
