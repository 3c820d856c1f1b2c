"""The command `errors`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from condviz.cli.terminal import format_table, progress_bar, tell
from condviz.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from condviz.analysis.errors.dataset import Dataset
    from condviz.analysis.errors.findings import Findings
    from condviz.analysis.errors.metrics import Report
    from condviz.evaluation.csts import Metric


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "errors",
        help="find where and why a model is wrong",
        description="Score a table (CSV: sentence1, sentence2, condition, label from 1 to 5) with one model, or with "
        "two to compare, and print figures, the worst conditions, and slices in which a model fails. Columns "
        "score_MODEL, as `evaluate --out` writes them, are taken as they are.",
    )
    parser.add_argument("data", metavar="FILE", help="the table, - for standard input, or CORPUS:PART (scenes:test)")
    parser.add_argument("--model", action="append", default=[], help="name, folder or hub id; once or twice")
    parser.add_argument("--filter", default="", help='a slice, for instance: gold >= 4 and "dog" in shared')
    parser.add_argument("--html", metavar="FILE", help="write a report that can be passed on: one file")
    parser.add_argument("--json", metavar="FILE", help="write what was found")
    parser.add_argument("--out", metavar="FILE", help="write the rows of the slice as CSV, with errors and features")
    parser.add_argument("--train-data", metavar="FILE", help="table whose conditions count as seen (default: scenes)")
    parser.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples (default: 10000; 0: none)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    parser.add_argument("--precision", default="auto", help="auto, float32, bfloat16 or float16 (default: auto)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Analyse; tables go to standard output, progress and notes to standard error."""
    from condviz.analysis.errors.export import format_csv
    from condviz.analysis.errors.findings import find
    from condviz.analysis.errors.report import render_report
    from condviz.analysis.errors.study import judge, make_study
    from condviz.data.files import check_target, write_text

    for path in filter(None, (options.html, options.json, options.out)):
        check_target(path)
    dataset = _read(options)
    names = list(dict.fromkeys(options.model)) or list(dataset.stored)[:2]
    if not 1 <= len(names) <= 2:
        stored = f" The file has scores of: {', '.join(dataset.stored)}." if dataset.stored else ""
        raise ConfigError(f"One model or two can be analysed, got {len(names)}. Name them with --model.{stored}")
    tell(*dataset.notes)
    revisions, judged = {}, []
    for name in names:
        scores, revisions[name] = _score(name, dataset, options)
        judged.append(judge(dataset, name, scores))
    findings = find(make_study(dataset, *judged), filter=options.filter, resamples=options.resamples, seed=options.seed)
    if options.html:
        write_text(options.html, render_report(findings, revisions=revisions))
    if options.json:
        write_text(options.json, json.dumps(findings.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    if options.out:
        write_text(options.out, format_csv(findings.study, [int(row) for row in findings.mask.nonzero()[0]]))
    sys.stdout.write(_summary(findings))


def _read(options: argparse.Namespace) -> Dataset:
    from condviz.analysis.errors.dataset import corpus_dataset, read_dataset, scene_conditions
    from condviz.data.corpora import CORPORA
    from condviz.data.tables import read_pairs

    corpus = re.fullmatch(r"([\w-]+):(\w+)", options.data)
    if corpus and corpus.group(1) in CORPORA and not Path(options.data).exists():
        return corpus_dataset(*corpus.groups())
    training = scene_conditions()
    if options.train_data:
        training = {pair.condition for pair in read_pairs(options.train_data).pairs}
    return read_dataset(options.data, training_conditions=training)


def _score(name: str, dataset: Dataset, options: argparse.Namespace) -> tuple[np.ndarray, str]:
    """Give scores and revision: those that the table brought along, else those of the loaded model."""
    if name in dataset.stored:
        return dataset.stored[name], "from the file"
    from condviz.models.registry import load

    model = load(name, device=options.device, precision=options.precision)
    with progress_bar(name, "row") as update:
        return model.score(*dataset.texts(), progress=update), model.info.revision


def _summary(findings: Findings) -> str:
    from condviz.analysis.errors.names import TARGETS
    from condviz.analysis.errors.slices import SIGNIFICANT

    study = findings.study
    parts = [_figures(label, report) for label, report in _parts(findings)]
    models = [judged.model for judged in study.judged]
    for title, groups in (("worst aspects", findings.aspects), ("worst conditions", findings.conditions)):
        if groups:
            rows = [
                (
                    one.value,
                    f"{one.n:,}",
                    *(f"{error:.2f} ±{spread:.2f}" for error, spread in zip(one.error, one.spread, strict=True)),
                    *(f"{bias:+.2f}" for bias in one.bias),
                )
                for one in groups[:10]
            ]
            head = (title, "n", *(f"error {name}" for name in models), *(f"bias {name}" for name in models))
            parts.append(format_table(head, rows))
    for target, search in findings.searches.items():
        sure = [one for one in search.slices if one.q < SIGNIFICANT][:5]
        title = f"where {study.first.model} {TARGETS[target]}"
        if sure:
            rows = [
                (
                    one.filter,
                    f"{one.n:,}",
                    *(f"{round(v, 2) + 0.0:.2f}" for v in (one.inside, one.outside)),
                    f"{one.q:.1g}",
                )
                for one in sure
            ]
            parts.append(format_table((title, "rows", "inside", "outside", "q"), rows))
        else:
            parts.append(f"{title}: none of {search.tried:,} filters stands out")
    return "\n\n".join(parts) + "\n"


def _parts(findings: Findings) -> list[tuple[str, Report]]:
    named = (("all", findings.every), ("slice", findings.part), ("rest", findings.rest))
    return [(label, report) for label, report in named if report is not None]


def _figures(label: str, report: Report) -> str:
    from condviz.analysis.errors.report import HEADS, show_figure, show_p

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
            rows.append((f"p, McNemar ({apart})", "", "", "", "", show_p(difference.mcnemar), "", "", ""))
    return format_table((label, "n", "items", *HEADS.values()), rows)
