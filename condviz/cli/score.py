"""The commands `score`, `evaluate` and `errors`: score pairs, compare with ratings, find where a model is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any

from condviz.analysis.errors.findings import find_errors, format_csv
from condviz.analysis.errors.measures import HEADS
from condviz.cli import options as shared
from condviz.cli.options import add_command, format_json, format_table, load_asked, progress_bar, tell
from condviz.data.pairs import format_predictions, read_pairs
from condviz.errors import ConfigError, DataError
from condviz.evaluation.agreement import FIGURES
from condviz.evaluation.csts import evaluate
from condviz.evaluation.dataset import open_data
from condviz.types import columns, plain

if TYPE_CHECKING:
    from condviz.analysis.errors.findings import ErrorStudy
    from condviz.evaluation.csts import Evaluation
    from condviz.types import Comparison


LEGEND = (
    "Each cell: score, change against no condition, share of the reference pairs that this model scores lower, and "
    "where the model is calibrated, the rating from 1 to 5."
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to a parser."""
    encoding = [shared.device(), shared.cluster()]
    forms = shared.form("print JSON as the /compare endpoint does", dash=False)
    parser = add_command(commands, "score", run, shared.models(), *encoding, forms, shared.reading(but=["condition"]))
    parser.add_argument("sentences", nargs="+", metavar="SENTENCE", help="two sentences, or - for a table")
    parser.add_argument("--condition", action="append", default=[], help='for instance "the sport"; may be repeated')
    text = "also say whether the sentences tell what each condition asks for: from 0 to 1; below 0.5 they may not"
    parser.add_argument("--applies", action="store_true", help=text)
    seen = shared.seen("table whose conditions count as seen in training")
    files = shared.files(json="write the report", out="write the table with a column score_MODEL per model")
    parents = *encoding, files, seen, shared.reading(), shared.of_function(evaluate)
    parser = add_command(commands, "evaluate", run_evaluate, shared.models(required=True), *parents)
    text = "a table, - for standard input, CORPUS:PART, as tables:test, or hf://datasets/OWNER/NAME"
    parser.add_argument("--data", required=True, metavar="FILE", help=text)
    text = "write the scores of one model on the official C-STS test file as its owners take them: JSON, 4,732 rows"
    parser.add_argument("--submission", metavar="FILE", help=text)
    files = shared.files(
        json="write the result as JSON",
        html="write a report that can be passed on: one file",
        out="write the rows of the slice as CSV, with errors and features",
    )
    seen = shared.seen("table whose conditions count as seen (default: the model's training data)")
    asked = shared.reading(), shared.of_function(evaluate), shared.of_function(find_errors, but=["resamples"])
    models = shared.models("the columns score_MODEL of the table")
    parser = add_command(commands, "errors", run_errors, models, shared.device(), files, seen, *asked)
    parser.add_argument("data", metavar="FILE", help="the table, - for standard input, or CORPUS:PART (scenes:test)")


def run(options: argparse.Namespace) -> None:
    """Score one pair, or a table.

    Score two sentences under one or more conditions. With - instead of the sentences, read a table (CSV: sentence1,
    sentence2, condition) from standard input and print it with a column of scores per model; with --condition, all of
    its rows under that one. A table can be scored on a Ray cluster.
    """
    if options.sentences == ["-"]:
        _score_table(options)
        return
    from condviz.data.texts import check_conditions, check_sentence

    if len(options.sentences) != 2:
        raise DataError(f"Two sentences are needed, got {len(options.sentences)}. Put each one in quotes, or give -.")
    # Before the models load, which takes seconds.
    for number, sentence in enumerate(options.sentences, start=1):
        check_sentence(sentence, f"sentence {number}")
    check_conditions(options.condition)

    from condviz.analysis.compare import compare

    first, second = options.sentences
    comparison = compare([model for _, model in load_asked(options)], first, second, options.condition)
    shared.show(options, lambda: _matrix(comparison, applies=options.applies), comparison.to_dict)
    tell(*comparison.notes)


def _score_table(options: argparse.Namespace) -> None:
    if len(options.condition) > 1:
        raise DataError(
            "With a table, the conditions are in its column condition; one can be given for all of its rows."
        )
    reading = shared.given(options, read_pairs, but=["condition"])
    table = read_pairs("-", condition="".join(options.condition), **reading)
    shared.tell_table(options, table)
    texts = columns(table.pairs)
    scores = {}
    models = [model for _, model in load_asked(options)]
    for model in models:
        with progress_bar(model.info.name, "rows") as update:
            scores[model.info.name] = shared.on_cluster(model, options).score(*texts, progress=update)
    from condviz.analysis.words import tell_rows

    applies = {"applies": tell_rows(models[-1], *texts).tolist()} if options.applies else {}
    shared.show(
        options,
        text=lambda: format_predictions(table, scores, applies).rstrip("\n"),
        json=lambda: plain({"models": list(scores), "scores": list(scores.values())} | applies),
    )


def _matrix(comparison: Comparison, *, applies: bool) -> str:
    """Format models x conditions; conditions are numbered, because they are too long for a column."""
    conditions = [f"[{number}] {text}" for number, text in enumerate(comparison.conditions, start=1)]
    head = ("model", "no condition", *(f"[{number}]" for number in range(1, len(conditions) + 1)))
    rows = []
    for info, alone, *found in zip(
        comparison.models, comparison.unconditional, comparison.scores, comparison.percentiles, comparison.ratings,
        strict=True,
    ):  # fmt: skip
        cells = [
            f"{score:.3f} {score - alone:+.3f} {percentile:3.0f}%" + ("" if isnan(rating) else f" {rating:.1f}/5")
            for score, percentile, rating in zip(*found, strict=True)
        ]
        rows.append((info.name + ("" if info.trained else " *"), f"{alone:.3f}", *cells))
    if applies:
        rows += [
            (f"sentence {number} tells it", "", *(f"{value:.2f}" for value in values))
            for number, values in enumerate(comparison.applies, start=1)
        ]
    star = [] if all(info.trained for info in comparison.models) else ["* not trained"]
    return "\n".join([*conditions, "", format_table(head, rows), "", LEGEND, *star])


def run_evaluate(options: argparse.Namespace) -> None:
    """Compare with ratings.

    Score a table (sentence1, sentence2, condition and label, 1 to 5), or part of a corpus, and compare with its labels.
    Rows without a label are scored only.
    """
    from condviz.data.csts import check_submission, format_submission
    from condviz.data.files import check_target, write_text

    if options.submission:  # now, and not after scoring
        check_target(options.submission)
        if len(options.model) != 1:
            raise ConfigError(f"--submission takes the scores of one model, and {len(options.model)} are named.")
    dataset = open_data(options.data, max_rows=None, **shared.given(options, read_pairs))
    shared.tell_table(options, dataset)
    if options.submission:
        check_submission(len(dataset.pairs))
    training = shared.seen_conditions(options)
    models = [shared.on_cluster(model, options) for _, model in load_asked(options)]
    with progress_bar(", ".join(model.info.name for model in models), "rows") as update:
        settings = shared.given(options, evaluate)
        found = evaluate(models, dataset, training_conditions=training, **settings, progress=update)
    if options.out and dataset.table is not None:
        scores = {report.model: report.predictions for report in found.reports}
        shared.write(options.out, format_predictions(dataset.table, scores))
    if options.submission:
        write_text(options.submission, format_submission(found.reports[0].predictions))
    if options.json:
        shared.write(options.json, format_json({**found.to_dict(), "data": options.data}))
    if not shared.output_taken(options):
        print(_format(found))


def _format(found: Evaluation) -> str:
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
            cells = [title, total, f"{figures.n:,}"]
            for metric in (getattr(figures, name) for name in FIGURES):
                interval = "" if metric.low is None else f" [{metric.low:.1f}, {metric.high:.1f}]"
                cells.append("-" if metric.value is None else f"{metric.value:.2f}{interval}")
            rows.append((*cells, f"{figures.items:,}"))
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


# ---- errors ----------------------------------------------------------------------------------------------------------
def run_errors(options: argparse.Namespace) -> None:
    """Find where and why a model is wrong.

    Score a table (CSV: sentence1, sentence2, condition, label from 1 to 5) with one model, or with two to compare, and
    print figures, the worst conditions, and slices in which a model fails. Columns score_MODEL, as `evaluate --out`
    writes them, are taken as they are.
    """
    from condviz.models.registry import load
    from condviz.plots.errors import render_report

    dataset = open_data(options.data, **shared.given(options, read_pairs))
    shared.tell_table(options, dataset)
    names = list(dict.fromkeys(options.model)) or list(dataset.stored)[:2]
    if not 1 <= len(names) <= 2:
        stored = f" The file has scores of: {', '.join(dataset.stored)}." if dataset.stored else ""
        raise ConfigError(f"One model or two can be analysed, got {len(names)}. Name them with --model.{stored}")
    asked = shared.given(options, find_errors)
    asked["training_conditions"] = shared.seen_conditions(options)
    settings = {"device": options.device, "precision": options.precision}
    models = [name if name in dataset.stored else load(name, **settings) for name in names]
    with progress_bar(" and ".join(names), "rows") as update:
        found = find_errors(models, dataset, **asked, seed=options.seed, progress=update)
    if options.html:
        shared.write(options.html, render_report(found))
    if options.json:
        shared.write(options.json, format_json(found.to_dict()))
    if options.out:
        shared.write(options.out, format_csv(found.study, found.mask.nonzero()[0]))
    if not shared.output_taken(options):
        print(_format_study(found))


def _format_study(found: ErrorStudy) -> str:
    """Format the tables of a study that page and report have, too."""
    from condviz.plots.errors import headline, sections

    told = sections(found)

    def cells(row: Mapping[str, Any], form: str = "{} {}") -> list[str]:
        shown = ((value, small.replace("\n", "; ")) for value, small, *_ in row["cells"])
        return [form.format(value, small) if small else str(value) for value, small in shown]

    figures = [(row["rows"], row["model"], row["n"], row["items"], *cells(row, "{} [{}]")) for row in told["figures"]]
    head = ("rows", "model", "n", "items", *HEADS.values())
    parts = [headline(found).striptags(), format_table(head, figures, right=range(2, len(head)))]
    names = [f"{name} {model}" for model in found.titles for name in ("error", "bias", "wrong order")]
    for title, groups in told["groups"]:
        rows = [(one["value"], f"{one['n']:,}", *cells(one)) for one in groups[:10]]
        parts.append(format_table((f"worst {title}s", "n", *names), rows))
    for search in told["searches"]:
        head = (search["title"], "rows", "inside", "outside", "q")
        none = f"{search['title']}: none of {search['tried']} filters stands out"
        parts.append(format_table(head, search["rows"][:5]) if search["rows"] else none)
    return "\n\n".join(parts)
