"""The command line: python -m condviz serve | models | score | evaluate | router | ...

User errors give one line on standard error and exit code 2. Results go to standard output, everything else to standard
error, so that output can be piped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from condviz.cli import benchmark, data, errors, links, train, words
from condviz.cli import map as map_command
from condviz.cli.asked_models import load_asked
from condviz.cli.terminal import format_table, progress_bar, tell
from condviz.errors import CondvizError, ConfigError, DataError, require

if TYPE_CHECKING:
    from condviz.data.tables import PairTable
    from condviz.evaluation.csts import EvaluationReport, Metric, Subset
    from condviz.methods.base import ConditionalScorer
    from condviz.types import Comparison, ModelInfo

USER_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
"""Exit codes; the last two are what a shell gives to a program that a signal stopped."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after the program's name; None takes them from the process.

    Returns:
        Exit code: 0, or 2 after a message about what the user gave, 130 after Ctrl-C, 141 if the reader of a pipe went.
    """
    options = build_parser().parse_args(arguments)
    try:
        with _short_warnings():
            options.command(options)
        sys.stdout.flush()
    except CondvizError as error:
        print(f"condviz: {' '.join(str(error).split())}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("condviz: stopped.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes once more when it ends; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Give the parser of all commands."""
    from condviz.version import __version__

    parser = argparse.ArgumentParser(prog="condviz", description="How similar are two sentences, given a condition?")
    parser.add_argument("--version", action="version", version=f"condviz {__version__}")
    commands = parser.add_subparsers(
        title="commands",
        required=True,
        metavar="serve | models | score | evaluate | errors | router | map | links | data | train | jobs | benchmark",
    )

    serve = commands.add_parser("serve", help="start the page", description="Start the page and print its address.")
    serve.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    serve.add_argument("--port", type=int, help="port to listen on (default: 7860)")
    serve.set_defaults(command=_serve)

    models = commands.add_parser("models", help="list the models", description="List the models that can be loaded.")
    models.add_argument("--json", action="store_true", help="print JSON")
    models.set_defaults(command=_models)

    score = commands.add_parser(
        "score",
        help="score one pair, or a table",
        description="Score two sentences under one or more conditions. With - instead of the sentences, read a table "
        "(CSV: sentence1, sentence2, condition) from standard input and print it with a column of scores per model.",
    )
    score.add_argument("sentences", nargs="+", metavar="SENTENCE", help="two sentences, or - for a table")
    score.add_argument("--condition", action="append", default=[], help='for instance "the sport"; may be repeated')
    _add_model_options(score, help_suffix="may be repeated (default: all)")
    score.add_argument("--json", action="store_true", help="print JSON, as the /compare endpoint gives it")
    score.set_defaults(command=_score)

    evaluate = commands.add_parser(
        "evaluate",
        help="compare with human ratings",
        description="Score a table (CSV: sentence1, sentence2, condition and label from 1 to 5) and compare with its "
        "labels. Rows without a label are scored only.",
    )
    _add_model_options(evaluate, help_suffix="may be repeated", required=True)
    evaluate.add_argument("--data", required=True, metavar="FILE", help="the table, or - for standard input")
    evaluate.add_argument("--train-data", metavar="FILE", help="table whose conditions count as seen in training")
    evaluate.add_argument("--out", metavar="FILE", help="write the table with a column score_MODEL per model")
    evaluate.add_argument("--json", metavar="FILE", help="write the report")
    evaluate.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: 1000; 0: none)")
    evaluate.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    evaluate.set_defaults(command=_evaluate)
    for command in (words, map_command, links, data, train, benchmark, errors):
        command.add_to(commands)
    return parser


def _add_model_options(parser: argparse.ArgumentParser, *, help_suffix: str, required: bool = False) -> None:
    parser.add_argument(
        "--model", action="append", default=[], required=required, help=f"name, folder or hub id; {help_suffix}"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    parser.add_argument("--precision", default="auto", help="auto, float32, bfloat16 or float16 (default: auto)")


def _serve(options: argparse.Namespace) -> None:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    require("gradio", "app")
    from condviz.ui.app import build_app, launch_options

    asked = {"server_name": options.host, "server_port": options.port}
    launch = launch_options() | {name: value for name, value in asked.items() if value is not None}
    try:
        build_app().launch(**launch)
    except OSError as error:
        place = f"{launch['server_name']}:{launch['server_port']}"
        raise ConfigError(
            f"The page cannot be served at {place}: the port is taken, or the host is not this machine. "
            "Choose another --port or --host."
        ) from error


def _models(options: argparse.Namespace) -> None:
    from condviz.models.registry import describe, link_models, list_models

    infos = [describe(name) for name in (*list_models(), *link_models())]
    if options.json:
        print(json.dumps([_info_dict(info) for info in infos], indent=2, ensure_ascii=False))
        return
    head = ("name", "method", "kind", "trained", "added parameters", "source", "paper")
    rows = [
        (info.name, info.title, info.kind, "yes" if info.trained else "no", f"{info.added_parameters:,}", info.source,
         info.reference)
        for info in infos
    ]  # fmt: skip
    print(format_table(head, rows, right={4}))


def _score(options: argparse.Namespace) -> None:
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

    comparison = compare(_load(options), *options.sentences, options.condition)
    if options.json:
        print(json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False))
    else:
        print(_matrix(comparison))
    tell(*comparison.notes)


def _score_table(options: argparse.Namespace) -> None:
    from condviz.data.tables import format_predictions, read_pairs

    if options.condition:
        raise DataError("With a table, the conditions stand in its column condition. Leave out --condition.")
    table = read_pairs("-")
    tell(*table.notes)
    columns = _columns(table)
    scores = {}
    for model in _load(options):
        with progress_bar(model.info.name, "row") as update:
            scores[model.info.name] = model.score(*columns, progress=update)
    if options.json:
        rows = [[float(value) for value in values] for values in scores.values()]
        print(json.dumps({"models": list(scores), "scores": rows}, indent=2))
    else:
        sys.stdout.write(format_predictions(table, scores))


def _evaluate(options: argparse.Namespace) -> None:
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
    for model in _load(options):
        with progress_bar(model.info.name, "row") as update:
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


def _load(options: argparse.Namespace) -> list[ConditionalScorer]:
    asked = load_asked(options.model, device=options.device, precision=options.precision)
    return [model for _, model in asked]


def _columns(table: PairTable) -> tuple[list[str], list[str], list[str]]:
    pairs = table.pairs
    return [p.sentence1 for p in pairs], [p.sentence2 for p in pairs], [p.condition for p in pairs]


def _info_dict(info: ModelInfo) -> dict:
    """Give JSON that any parser reads: an infinite end of the score range becomes null."""
    finite = [None if abs(end) == float("inf") else end for end in info.score_range]
    return {**vars(info), "score_range": finite}


def _matrix(comparison: Comparison) -> str:
    """Lay out models x conditions; the conditions are numbered, because they are too long for a column."""
    conditions = [f"[{number}] {text}" for number, text in enumerate(comparison.conditions, start=1)]
    head = ("model", "no condition", *(f"[{number}]" for number in range(1, len(conditions) + 1)))
    rows = []
    for info, alone, scores, percentiles in zip(
        comparison.models, comparison.unconditional, comparison.scores, comparison.percentiles, strict=True
    ):
        cells = [
            f"{score:.3f} {score - alone:+.3f} {percentile:3.0f}%"
            for score, percentile in zip(scores, percentiles, strict=True)
        ]
        rows.append((info.name + ("" if info.trained else " *"), f"{alone:.3f}", *cells))
    legend = "Each cell: score, change against no condition, share of the reference pairs that this model scores lower."
    star = [] if all(info.trained for info in comparison.models) else ["* not trained"]
    return "\n".join([*conditions, "", format_table(head, rows), "", legend, *star])


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


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings, for instance about cut texts, as one line without the place in our code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: tell(" ".join(str(message).split()))
        yield
