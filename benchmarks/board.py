"""The board of models: written to its file, and set as Markdown into docs/results.md and README.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.papers.tables import find_tables
from condviz.data.files import write_text
from condviz.errors import ConfigError
from condviz.evaluation.cards import format_card
from condviz.evaluation.scoreboard import (
    BENCHMARK,
    FIGURES,
    FORMAT,
    LINK_FIGURES,
    LINK_FORMAT,
    LINK_SCORES,
    NONE,
    PARTS,
    PLAIN,
    Board,
    BoardSample,
    LinkScores,
    ModelScores,
    PartScores,
    format_figure,
    format_number,
    link_rows,
    markdown_table,
)
from condviz.methods import METHODS
from condviz.models.manifest import CARD, read_manifest
from condviz.models.registry import describe, list_models

_ROOT = Path(__file__).resolve().parents[1]


RESULTS, README = _ROOT / "docs" / "results.md", _ROOT / "README.md"
"""Documents of the clone that hold tables of scores: every figure, and the pair accuracies of trained models."""


START, END = "<!-- scores:start -->", "<!-- scores:end -->"


MARKS = (START, END)
METHOD_MARKS = ("<!-- methods:start -->", "<!-- methods:end -->")
SUMMARY = (("csts", "spearman"), ("csts", "pair_accuracy"), ("tables", "pair_accuracy"))
"""Part and figure of each column of the README's table."""
HEADS = {"spearman": "Spearman × 100", "pair_accuracy": "pair accuracy, %"}
PRINTED = {
    "bi-encoder": "hyper-cl:table-1/SimCSE-large, bi-encoder",
    "tri-hadamard": "hyper-cl:table-1/SimCSE-large, tri-encoder",
    "hyper-cl": "hyper-cl:table-1/SimCSE-large, Hyper-CL",
    "csr": "csr:table-1/SimCSE-large, CSR",
    "csr-bi": "csr:table-1/SimCSE-large, CSR bi-encoder",
    "case": "case:table-2/SimCSE-large, non-linear",
}
"""Model -> table and row of the papers that its method has there."""


def write_card(folder: Path, board: Board) -> Path:
    """Write the card of a checkpoint into its folder, and return the file."""
    write_text(folder / CARD, format_card(folder.name, read_manifest(folder), board))
    return folder / CARD


def write_board(board: Board, path: str | Path = BENCHMARK) -> None:
    """Store scores, whole or not at all, a line for each model and part."""
    samples = ",\n".join(f"  {_entry(name, asdict(sample))}" for name, sample in board.samples.items())
    models = []
    for name, scores in board.models.items():
        facts = asdict(scores)
        for part in facts["parts"].values():
            part |= {name: {key: part[name][key] for key in ("value", "low", "high")} for name in FIGURES}
        parts = ",\n".join(f"   {_entry(part, found)}" for part, found in facts.pop("parts").items())
        head = json.dumps(facts, ensure_ascii=False)[1:-1]
        models.append(f'  {json.dumps(name)}: {{{head}, "parts": {{\n{parts}\n  }}}}')
    body = ",\n".join(models)
    write_text(path, f'{{"format": {FORMAT},\n "samples": {{\n{samples}\n }},\n "models": {{\n{body}\n }}\n}}\n')


def outdated(board: Board, model: str) -> list[str]:
    """Return the parts that a model was measured on with other rows."""
    return [part for part in board.models[model].parts if board.find(model, part) is None]


def add_scores(board: Board, name: str, scores: ModelScores, samples: Mapping[str, BoardSample]) -> Board:
    """Add what was measured; parts that were not measured stay if they belong to the same model and versions."""
    old = board.models.get(name)
    if old is not None and replace(old, parts={}) == replace(scores, parts={}):
        scores = replace(scores, parts={**old.parts, **scores.parts})
    return Board({**board.samples, **samples}, {**board.models, name: scores})


def _entry(name: str, content: Mapping[str, Any]) -> str:
    return f"{json.dumps(name)}: {json.dumps(content, ensure_ascii=False)}"


def format_board(board: Board, models: Sequence[str], parts: Sequence[str]) -> str:
    """Format models x parts as Markdown: pair accuracy, Spearman with plain similarity, and what the parts are.

    Parts that nobody was measured on are left out.
    """
    measured = [part for part in parts if any(board.find(model, part) for model in models)]
    conditional = [part for part in measured if part != PLAIN]
    blocks = []
    if conditional:
        blocks = [
            "Pair accuracy in %: the condition with the higher rating scores higher (chance: 50; equal is wrong).",
            _conditional(board, models, conditional, "pair_accuracy"),
        ]
    if measured:
        blocks += [
            "Spearman × 100 of scores and ratings (chance: 0).",
            _conditional(board, models, measured, "spearman"),
        ]
    legend = []
    for part, sample in ((PARTS[name], board.samples[name]) for name in measured):
        of = "" if sample.pairs == sample.available else f" of {sample.available:,}"
        legend.append(f"- {part.title}: {part.about} ({sample.pairs:,}{of} pairs, seed {sample.seed})")
    notes = ["In brackets: 95 % interval."]
    if not all(board.models[model].trained for model in models):
        notes.append("\\* not trained.")
    for model in models:
        if old := [PARTS[part].title for part in outdated(board, model) if part in parts]:
            notes.append(f"{model} was measured on other rows of {', '.join(old)}: measure it again.")
    return "\n\n".join([*blocks, "\n".join(legend), " ".join(notes)])


def format_summary(board: Board, models: Sequence[str]) -> str:
    """Format what the README shows of trained models as Markdown: C-STS beside published figures, free conditions."""
    trained = [model for model in models if board.models[model].trained]
    columns = [(part, metric) for part, metric in SUMMARY if any(board.find(model, part) for model in trained)]
    rows = []
    for model in trained:
        cells = [f"`{model}`"]
        for part, metric in columns:
            scores = board.find(model, part)
            cells.append(format_figure(getattr(scores, metric)) if scores else NONE)
            if (part, metric) == SUMMARY[0]:
                cells.append(_published(model))
        rows.append(cells)
    head = ["model"]
    for part, metric in columns:
        head.append(f"{PARTS[part].title}: {HEADS[metric]}")
        if (part, metric) == SUMMARY[0]:
            head.append("published, SimCSE-large")
    return markdown_table(head, rows)


def format_methods() -> str:
    """Format every method, its paper and its models as Markdown."""
    infos = [describe(name) for name in list_models()]

    def named(method: str, *, trained: bool) -> str:
        of = [f"`{info.name}`" for info in infos if (info.method, info.trained) == (method, trained)]
        return ", ".join(of) or NONE

    rows = [
        (f"`{name}`", method.kind, ", ".join(method.reference.split(", ")[:2]),
         named(name, trained=False), named(name, trained=True))
        for name, method in METHODS.items()
    ]  # fmt: skip
    table = markdown_table(("method", "kind", "paper", "without training", "trained"), rows)
    return table.replace("---:", "---")  # no figures: all columns to the left


def _published(model: str) -> str:
    """Return the first figure that the papers print for a method on SimCSE-large, trained on C-STS."""
    table, _, row = PRINTED.get(model.removesuffix("-csts").removesuffix("-mpnet"), "").partition("/")
    if not table:
        return NONE
    ((_, found),) = find_tables(table)
    return next(one.published[found.columns.index("Spearman")] for one in found.rows if one.name == row)


def format_groups(board: Board, model: str, parts: Sequence[str], kind: str) -> str:
    """Format the aspects or domains of one model as Markdown, a table for each part, the weakest first."""
    blocks, head = [], (kind, "rows", "pairs", "pair accuracy", "Spearman")
    for part in parts:
        if (scores := board.find(model, part)) and kind in scores.groups:
            groups = sorted(scores.groups[kind].items(), key=lambda item: (item[1].pair_accuracy or 0, item[0]))
            rows = [
                (name, f"{one.rows:,}", f"{one.pairs:,}", *map(format_number, (one.pair_accuracy, one.spearman)))
                for name, one in groups
            ]
            blocks += [f"{model}, {PARTS[part].title}, by {kind}:", markdown_table(head, rows)]
    return "\n\n".join(blocks) or f"{model}: no part that was measured has more than one {kind}."


def fill_document(text: str, path: str | Path | None = None, *, marks: tuple[str, str] = MARKS) -> None:
    """Replace what stands between the marks of a document; by default docs/results.md of the clone."""
    content, (start, end) = read_marked(path, marks=marks), marks
    before, _, rest = content.partition(f"{start}\n")
    write_text(path or RESULTS, f"{before}{start}\n{text}\n{end}{rest.rpartition(end)[2]}")


def read_marked(path: str | Path | None = None, *, marks: tuple[str, str] = MARKS) -> str:
    """Read a document that has the marks; raises ConfigError if it is missing or has none."""
    path = path or RESULTS
    try:
        content = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. --docs works in a clone only.") from error
    if marks[1] not in content.partition(f"{marks[0]}\n")[2]:
        raise ConfigError(f"{path} has no lines {marks[0]} and {marks[1]}: put them where the table belongs.")
    return content


def _conditional(board: Board, models: Sequence[str], parts: Sequence[str], metric: str) -> str:
    def cell(scores: PartScores | None) -> str:
        if scores is None:
            return NONE
        return "all equal" if metric == "pair_accuracy" and scores.blind else format_figure(getattr(scores, metric))

    rows = [(_name(board, model), *(cell(board.find(model, part)) for part in parts)) for model in models]
    return markdown_table(("model", *(PARTS[part].title for part in parts)), rows)


def _name(board: Board, model: str) -> str:
    return f"`{model}`" + ("" if board.models[model].trained else " \\*")


def write_link_scores(scores: Sequence[LinkScores], path: str | Path = LINK_SCORES) -> None:
    """Store results, a line for each model."""
    lines = ",\n".join(f"  {json.dumps(vars(item))}" for item in scores)
    write_text(path, f'{{"format": {LINK_FORMAT}, "models": [\n{lines}\n]}}\n')


def format_link_scores(scores: Sequence[LinkScores]) -> str:
    """Format our results, plain and re-ranked, and the papers' as one Markdown table, the best first."""
    head = ("model", "from", "encoder, hardware", "ranking", "MRR", "Hits@1", "Hits@3", "Hits@10")
    rows = [
        (
            f"`{row.model}`" if row.ours else row.model, row.source, row.encoder, row.ranking,
            *(NONE if value is None else f"{value:.1f}" for value in row.figures),
        )
        for row in link_rows(scores)
    ]  # fmt: skip
    return markdown_table(head, rows)


def format_relations(scores: LinkScores) -> str:
    """Format the figures of one model by relation as Markdown, the best first."""
    found = sorted(scores.report["by_relation"].items(), key=lambda item: -item[1]["MRR"])
    rows = [(name, f"{one['queries']:,}", *(f"{100 * one[key]:.1f}" for key in LINK_FIGURES)) for name, one in found]
    return markdown_table(("relation", "questions", "MRR", "Hits@1", "Hits@3", "Hits@10"), rows)
