"""The commands `models` and `gallery`: how well models follow conditions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks import board as writer
from condviz.cli import options as shared
from condviz.cli.options import format_table, load_asked, progress_bar, tell
from condviz.errors import ConfigError, DataError

if TYPE_CHECKING:
    from benchmarks.parts import Chosen
    from condviz.evaluation.scoreboard import Board

OPTIONAL = ("e2e",)
"""Parts that are measured only where they are asked for."""
BASELINE = "minilm"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both commands to a parser."""
    parser = commands.add_parser(
        "models",
        parents=[shared.models(), shared.device("float32"), stored_options("assets/benchmark.json")],
        help="how well models follow conditions",
        description="Measure how well models follow conditions, on test parts of the scenes and, where the files are "
        "there, of C-STS and reviews. Prints Markdown, and stores the scores for the page; what is not measured again "
        "stays. A new model takes its place with: python -m benchmarks models --model NAME --docs --cards.",
    )
    text = "may be repeated (default: all but e2e)"
    parser.add_argument("--part", action="append", default=[], metavar="PART", help=text)
    text = "sentence pairs of each part but C-STS, at most (default: 500)"
    parser.add_argument("--pairs", type=int, default=500, help=text)
    parser.add_argument("--seed", type=int, default=0, help="decides pairs and resamples (default: 0)")
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: 1000; 0: none)")
    parser.add_argument("--by", choices=("aspect", "domain"), help="also print the figures of each aspect or domain")
    parser.set_defaults(command=run)
    gallery = commands.add_parser(
        "gallery",
        parents=[shared.models(), shared.device(None)],
        help="whether the examples of the page come out as expected",
        description="Score the examples of the page, and count the pairs of conditions that a model orders as a "
        "careful reader does. A check by eye, not a test: too few, and chosen to show something.",
    )
    gallery.add_argument("--wrong", action="store_true", help="list what is out of order")
    gallery.set_defaults(command=run_gallery)


def stored_options(place: str) -> argparse.ArgumentParser:
    """Return the options of a command that stores what it measures."""
    stored = argparse.ArgumentParser(add_help=False)
    stored.add_argument("--stored", action="store_true", help="measure nothing: print what is stored")
    stored.add_argument("--out", metavar="FILE", help=f"where results are stored (default: {place})")
    text = "put the tables of all models into docs/results.md and, of sentences, README.md"
    stored.add_argument("--docs", action="store_true", help=text)
    stored.add_argument("--cards", action="store_true", help="write the model cards of the checkpoints anew")
    return stored


def run(options: argparse.Namespace) -> None:
    """Measure; progress goes to standard error, Markdown to standard output, scores into the file."""
    from condviz.data.files import check_target
    from condviz.evaluation import scoreboard

    options.out = options.out or scoreboard.BENCHMARK
    check_target(options.out)
    if options.docs:
        writer.read_marked(writer.README)
        writer.read_marked()  # now, and not after an hour of measuring
    known = list(scoreboard.PARTS)
    if unknown := [name for name in options.part if name not in known]:
        raise ConfigError(f"There is no part {unknown[0]!r} of the benchmark. There are: {', '.join(known)}.")
    board = scoreboard.read_board(options.out)
    names = _stored(board, options) if options.stored else None
    if names is None:
        board, names = _measure(board, options)
    parts = [name for name in known if not options.part or name in options.part]
    tables = [writer.format_board(board, names, parts)]
    if options.by:
        tables += [writer.format_groups(board, name, parts, options.by) for name in names]
    sys.stdout.write("\n\n".join(tables) + "\n")
    if options.docs:
        writer.fill_document(writer.format_board(board, _in_order(board), known))
        writer.fill_document(writer.format_summary(board, _in_order(board)), writer.README)
        writer.fill_document(writer.format_methods(), writer.README, marks=writer.METHOD_MARKS)
    if options.cards:
        from condviz.models.manifest import MANIFEST
        from condviz.paths import CHECKPOINTS

        for name in names:  # zero-shot models and folders elsewhere keep what they have
            if (CHECKPOINTS / name / MANIFEST).is_file():
                writer.write_card(CHECKPOINTS / name, board)


def _stored(board: Board, options: argparse.Namespace) -> list[str]:
    if not board.models:
        raise DataError(f"{options.out} holds no scores yet. Run: python -m benchmarks models")
    if missing := [name for name in options.model if name not in board.models]:
        raise DataError(f"There are no scores of {missing[0]!r} in {options.out}. Run the command without --stored.")
    return list(dict.fromkeys(options.model)) or _in_order(board)


def _in_order(board: Board) -> list[str]:
    """Return the models that are stored, in the order of the page."""
    from condviz.models.registry import list_models

    listed = list_models()
    return sorted(board.models, key=lambda name: (listed.index(name) if name in listed else len(listed), name))


def _measure(board: Board, options: argparse.Namespace) -> tuple[Board, list[str]]:
    """Measure model by model; each finished one is stored."""
    from benchmarks.parts import describe, measure
    from condviz.evaluation.scoreboard import format_figure

    look_up(options.model)
    chosen = _choose(options)
    samples = {item.part.name: item.sample for item in chosen}
    names: list[str] = []
    for _, model in load_asked(options):
        name = model.info.name
        names.append(name)
        found = {}
        for item in chosen:
            title = f"{name}, {item.part.title}"
            with progress_bar(title, "text") as update:
                scores = measure(model, item, resamples=options.resamples, progress=update)
            figures = f"pair accuracy {format_figure(scores.pair_accuracy)}, Spearman {format_figure(scores.spearman)}"
            sys.stderr.write(f"{title}: {figures}\n")
            found[item.part.name] = scores
        board = writer.add_scores(board, name, describe(model, found), samples)
        writer.write_board(board, options.out)
    return board, names


def look_up(names: Sequence[str]) -> None:
    """Tell a wrong name at once, and not after the models before it have been measured."""
    from condviz.models.registry import describe

    for name in names:
        if "/" not in name:  # no folder and no hub id
            describe(name)


def _choose(options: argparse.Namespace) -> list[Chosen]:
    """Build the parts; where none was asked for, leave out those whose files are missing, and say so."""
    from benchmarks.parts import choose
    from condviz.evaluation.scoreboard import PARTS

    chosen = []
    for name in PARTS:
        if name not in options.part if options.part else name in OPTIONAL:
            continue
        try:
            chosen.append(choose(name, pairs=options.pairs, seed=options.seed))
        except DataError as error:
            if options.part:
                raise
            tell(f"{PARTS[name].title} is left out: {error}")
    if not chosen:
        raise DataError("No part could be built. See the notes above, or name one with --part.")
    return chosen


def run_gallery(options: argparse.Namespace) -> None:
    """Score model by model and print what was found."""
    from benchmarks.parts import contrast
    from condviz.data.examples import load_examples

    examples = load_examples()
    if not examples:
        raise DataError("There are no examples: assets/examples.json is missing. Copy it again.")
    rows, wrong = [], []
    for _, model in load_asked(options):
        with progress_bar(model.info.name, "text") as update:
            found = contrast(model, examples, progress=update)
        right = sum(one.in_order for one in found)
        whole = {one.example for one in found} - {one.example for one in found if not one.in_order}
        rows.append((model.info.name, str(right), str(len(found)), f"{100 * right / len(found):.1f}", str(len(whole))))
        for one in found:
            if not one.in_order:
                scores = f"{one.higher_score:.2f}", f"{one.lower_score:.2f}"
                wrong.append((model.info.name, one.example, one.higher, scores[0], one.lower, scores[1]))
    columns = ("model", "in order", "pairs", "%", f"examples in order, of {len(examples)}")
    sys.stdout.write(format_table(columns, rows) + "\n")
    if options.wrong and wrong:
        columns = ("model", "example", "should be higher", "score", "should be lower", "score")
        sys.stdout.write("\n" + format_table(columns, wrong, right={3, 5}) + "\n")
