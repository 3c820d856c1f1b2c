"""Stored scores as Markdown: the tables on standard output and in the README."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from condviz.data.files import write_text
from condviz.errors import ConfigError
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import PARTS, PLAIN, Board, PartScores

README = Path(__file__).resolve().parents[2] / "README.md"
START, END = "<!-- scores:start -->", "<!-- scores:end -->"
MARKS = (START, END)
NONE = "–"


def format_board(board: Board, models: Sequence[str], parts: Sequence[str]) -> str:
    """Write models x parts as Markdown: pair accuracy, Spearman, plain similarity, and what the parts are.

    Args:
        board: The stored scores.
        models: Names in `board`, in order.
        parts: Names in `PARTS`, in order; those that nobody was measured on are left out.
    """
    measured = [part for part in parts if any(board.find(model, part) for model in models)]
    conditional = [part for part in measured if part != PLAIN]
    blocks = []
    if conditional:
        blocks = [
            "Pair accuracy in %: the condition with the higher rating scores higher (chance: 50; equal is wrong).",
            _conditional(board, models, conditional, "pair_accuracy"),
            "Spearman × 100 of scores and ratings (chance: 0).",
            _conditional(board, models, conditional, "spearman"),
        ]
    if PLAIN in measured:
        blocks += [
            "Plain similarity, without a condition: a paraphrase against a sentence about something else.",
            _plain(board, models),
        ]
    legend = [_describe(board, part) for part in measured]
    notes = ["In brackets: 95 % bootstrap interval over sentence pairs."]
    if not all(board.models[model].trained for model in models):
        notes.append("\\* not trained.")
    for model in models:
        if outdated := [PARTS[part].title for part in board.outdated(model) if part in parts]:
            notes.append(f"{model} was measured on other rows of {', '.join(outdated)}: measure it again.")
    return "\n\n".join([*blocks, "\n".join(legend), " ".join(notes)])


def format_groups(board: Board, model: str, parts: Sequence[str], kind: str) -> str:
    """Write the aspects or domains of one model as Markdown, a table for each part, the weakest first.

    Args:
        board: The stored scores.
        model: A name in `board`.
        parts: Names in `PARTS`.
        kind: "aspect" or "domain".
    """
    blocks = []
    for part in parts:
        scores = board.find(model, part)
        if scores is None or kind not in scores.groups:
            continue
        groups = sorted(scores.groups[kind].items(), key=lambda item: (item[1].pair_accuracy or 0, item[0]))
        rows = [
            (name, f"{group.rows:,}", f"{group.pairs:,}", _number(group.pair_accuracy), _number(group.spearman))
            for name, group in groups
        ]
        head = (kind, "rows", "pairs", "pair accuracy", "Spearman")
        blocks += [f"{model}, {PARTS[part].title}, by {kind}:", markdown_table(head, rows)]
    return "\n\n".join(blocks) or f"{model}: no part that was measured has more than one {kind}."


def put_into_readme(text: str, path: str | Path | None = None, *, marks: tuple[str, str] = MARKS) -> None:
    """Replace what stands between the marks of a document; by default the README of the clone.

    Raises:
        ConfigError: If the document is missing or has no marks.
        DataError: If it cannot be written.
    """
    path = path or README
    content = read_marked(path, marks=marks)
    write_text(path, _between(marks).sub(lambda found: f"{found[1]}{text}\n{found[2]}", content))


def read_marked(path: str | Path | None = None, *, marks: tuple[str, str] = MARKS) -> str:
    """Read a document that has the marks; arguments and errors as in `put_into_readme`."""
    path = path or README
    try:
        content = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. --readme works in a clone only.") from error
    if not _between(marks).search(content):
        raise ConfigError(f"{path} has no lines {marks[0]} and {marks[1]}: put them where the table belongs.")
    return content


def _between(marks: tuple[str, str]) -> re.Pattern[str]:
    return re.compile(f"({marks[0]}\n).*({marks[1]})", re.DOTALL)


def format_figure(figure: Metric) -> str:
    """Write "73.2 [70.1, 76.0]", without brackets where there is no interval, and a dash where there is no figure."""
    if figure.value is None or figure.low is None or figure.high is None:
        return _number(figure.value)
    return f"{figure.value:.1f} [{figure.low:.1f}, {figure.high:.1f}]"


def _conditional(board: Board, models: Sequence[str], parts: Sequence[str], metric: str) -> str:
    rows = []
    for model in models:
        found = [board.find(model, part) for part in parts]
        rows.append((_name(board, model), *(_cell(scores, metric) for scores in found)))
    return markdown_table(("model", *(PARTS[part].title for part in parts)), rows)


def _cell(scores: PartScores | None, metric: str) -> str:
    if scores is None:
        return NONE
    if metric == "pair_accuracy" and scores.blind:
        return "all equal"
    return format_figure(getattr(scores, metric))


def _plain(board: Board, models: Sequence[str]) -> str:
    rows = []
    for model in models:
        scores = board.find(model, PLAIN)
        if scores is None:
            continue
        value, baseline = scores.spearman.value, scores.baseline
        change = NONE if value is None or baseline is None else f"{value - baseline:+.1f}"
        accuracy = format_figure(scores.pair_accuracy)
        rows.append((_name(board, model), format_figure(scores.spearman), change, accuracy))
    return markdown_table(("model", "Spearman × 100", "against the untrained encoder", "paraphrase is closer, %"), rows)


def _describe(board: Board, part: str) -> str:
    sample = board.samples[part]
    of = f"{sample.pairs:,} pairs" if sample.pairs == sample.available else (
        f"{sample.pairs:,} of {sample.available:,} pairs"
    )  # fmt: skip
    return f"- {PARTS[part].title}: {PARTS[part].about} ({of}, seed {sample.seed})"


def _name(board: Board, model: str) -> str:
    return f"`{model}`" + ("" if board.models[model].trained else " \\*")


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table as Markdown; all columns but the first are aligned to the right."""
    rules = ("---", *("---:" for _ in head[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rules, *rows))
