"""The command `evaluate`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.options import load_asked
from condviz.cli.terminal import format_json, format_table, progress_bar, tell

if TYPE_CHECKING:
    from condviz.evaluation.csts import Evaluation
    from condviz.evaluation.metrics import Metric


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "evaluate",
        parents=[
            shared.models(required=True),
            shared.device(),
            shared.backbone(),
            shared.cluster(),
            shared.json_file("write the report"),
        ],
        help="compare with ratings",
        description="Score a table (CSV: sentence1, sentence2, condition and label, 1 to 5), or part of a corpus, "
        "and compare with its labels. Rows without a label are scored only.",
    )
    parser.add_argument(
        "--data", required=True, metavar="FILE", help="a table, - for standard input, or CORPUS:PART, as tables:test"
    )
    parser.add_argument("--train-data", metavar="FILE", help="table whose conditions count as seen in training")
    parser.add_argument("--out", metavar="FILE", help="write the table with a column score_MODEL per model")
    parser.add_argument("--resamples", type=int, default=10_000, help="for intervals (default: 10000; 0: none)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the resamples (default: 0)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Score and compare; the report goes to standard output, predictions and JSON into files."""
    from condviz.data.corpora import open_table
    from condviz.data.files import check_target, write_text
    from condviz.data.tables import format_predictions, read_pairs
    from condviz.evaluation.csts import evaluate

    for path in filter(None, (options.out, options.json)):
        check_target(path)
    table = open_table(options.data)
    training = None
    if options.train_data:
        training = {pair.condition for pair in read_pairs(options.train_data).pairs}
    asked = load_asked(options.model, device=options.device, precision=options.precision, backbone=options.backbone)
    models = [shared.on_cluster(model, options) for _, model in asked]
    with progress_bar(", ".join(model.info.name for model in models), "rows") as update:
        settings = {"resamples": options.resamples, "seed": options.seed, "progress": update}
        found = evaluate(models, table, training_conditions=training, **settings)
    tell(*found.notes)
    if options.out:
        scores = {report.model: report.predictions for report in found.reports}
        write_text(options.out, format_predictions(table, scores))
    if options.json:
        write_text(options.json, format_json({**found.to_dict(), "data": options.data}))
    print(_format(found))


def _format(found: Evaluation) -> str:
    from condviz.evaluation.csts import METRICS

    reports = found.reports
    if not reports[0].rated:
        return f"Rows scored: {reports[0].rows:,}. None has a label, so there is nothing to compare with."
    head = ("model", "rows", "n", "Spearman", "Pearson", "pair accuracy", "ties left out", "pairs")
    rows, notes = [], []
    for report in reports:
        for part, figures in report.parts():
            whole = part == "overall"
            title = report.model + ("" if report.trained else " *") if whole else f"  {part}"
            total = f"{report.rows:,}" if whole else ""
            cells = [_figure(getattr(figures, name)) for name in METRICS]
            rows.append((title, total, f"{figures.n:,}", *cells, f"{figures.items:,}"))
            if figures.spearman.value is None:
                where = report.model + ("" if whole else f", {part}")
                notes.append(f"{where}: no correlation, because {figures.spearman.reason}.")
    has_interval = any(report.overall.ties_wrong.low is not None for report in reports)
    legend = ["All figures times 100" + ("; in brackets the 95 % interval." if has_interval else ".")]
    if found.ceiling is not None and found.ceiling < 95:
        legend.append(f"Ratings repeat so much that Spearman cannot exceed {found.ceiling:.1f}.")
    legend += [
        "Pair accuracy: does the condition with the higher label score higher? Equal labels count as wrong;",
        'they are not counted in "ties left out".',
    ]
    star = [] if all(report.trained for report in reports) else ["* not trained"]
    return "\n".join([format_table(head, rows), "", *legend, *star, *notes])


def _figure(metric: Metric) -> str:
    if metric.value is None:
        return "-"
    interval = "" if metric.low is None else f" [{metric.low:.1f}, {metric.high:.1f}]"
    return f"{metric.value:.2f}{interval}"
