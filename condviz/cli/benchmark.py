"""The commands `benchmark models` and `benchmark gallery`; `benchmark kgc` is in its own file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from condviz.cli import benchmark_links
from condviz.cli import options as shared
from condviz.cli.options import load_asked
from condviz.cli.terminal import format_table, progress_bar, tell
from condviz.errors import ConfigError, DataError

if TYPE_CHECKING:
    from condviz.evaluation.benchmark import Chosen, Contrast
    from condviz.evaluation.scoreboard import Board, PartScores
    from condviz.methods.base import ConditionalScorer

OPTIONAL = ("e2e",)
"""Parts that are measured only where they are asked for."""
BASELINE = "minilm"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    benchmark = commands.add_parser(
        "benchmark", help="measure models on test parts", description="Measure models on fixed test parts."
    )
    benchmarks = benchmark.add_subparsers(required=True, metavar="models | gallery | kgc")
    parser = benchmarks.add_parser(
        "models",
        parents=[shared.models(), shared.device("float32")],
        help="how well they follow conditions",
        description="Measure how well models follow conditions, on test parts of the scenes and, where the files are "
        "there, of reviews. Prints Markdown, and stores the scores for the page; what is not measured again stays.",
    )
    parser.add_argument(
        "--part", action="append", default=[], metavar="PART", help="may be repeated (default: all but e2e)"
    )
    parser.add_argument("--pairs", type=int, default=500, help="sentence pairs of each part, at most (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="decides pairs and resamples (default: 0)")
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: 1000; 0: none)")
    parser.add_argument("--by", choices=("aspect", "domain"), help="also print the figures of each aspect or domain")
    parser.add_argument("--stored", action="store_true", help="measure nothing: print what is stored")
    parser.add_argument("--out", metavar="FILE", help="where scores are stored (default: assets/benchmark.json)")
    parser.add_argument(
        "--docs", action="store_true", help="put the tables of all models into docs/results.md and README.md"
    )
    parser.add_argument("--cards", action="store_true", help="write the model cards of the checkpoints anew")
    parser.set_defaults(command=run)
    gallery = benchmarks.add_parser(
        "gallery",
        parents=[shared.models(), shared.device(None)],
        help="whether the examples of the page come out as expected",
        description="Score the examples of the page, and count the pairs of conditions that a model orders as a "
        "careful reader does. A check by eye, not a test: too few, and chosen to show something.",
    )
    gallery.add_argument("--wrong", action="store_true", help="list what is out of order")
    gallery.set_defaults(command=run_gallery)
    benchmark_links.add_to(benchmarks)


def run(options: argparse.Namespace) -> None:
    """Measure; progress goes to standard error, Markdown to standard output, scores into the file."""
    from condviz.data.files import check_target
    from condviz.evaluation import scoreboard

    options.out = options.out or scoreboard.BENCHMARK
    check_target(options.out)
    if options.docs:
        scoreboard.read_marked(scoreboard.README)
        scoreboard.read_marked()  # now, and not after an hour of measuring
    known = list(scoreboard.PARTS)
    if unknown := [name for name in options.part if name not in known]:
        raise ConfigError(f"There is no part {unknown[0]!r} of the benchmark. There are: {', '.join(known)}.")
    board = scoreboard.read_board(options.out)
    names = _stored(board, options) if options.stored else None
    if names is None:
        board, names = _measure(board, options)
    parts = [name for name in known if not options.part or name in options.part]
    tables = [scoreboard.format_board(board, names, parts)]
    if options.by:
        tables += [scoreboard.format_groups(board, name, parts, options.by) for name in names]
    sys.stdout.write("\n\n".join(tables) + "\n")
    if options.docs:
        scoreboard.fill_document(scoreboard.format_board(board, _in_order(board), known))
        scoreboard.fill_document(scoreboard.format_summary(board, _in_order(board)), scoreboard.README)
    if options.cards:
        _write_cards(board, names)


def _write_cards(board: Board, names: Sequence[str]) -> None:
    from condviz.evaluation.cards import write_card
    from condviz.models.manifest import MANIFEST
    from condviz.models.registry import CHECKPOINTS

    for name in names:  # zero-shot models and folders elsewhere keep what they have
        if (CHECKPOINTS / name / MANIFEST).is_file():
            write_card(CHECKPOINTS / name, board)


def _stored(board: Board, options: argparse.Namespace) -> list[str]:
    if not board.models:
        raise DataError(f"{options.out} holds no scores yet. Run: python -m condviz benchmark models")
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
    from condviz.evaluation.benchmark import describe
    from condviz.evaluation.scoreboard import PLAIN, write_board
    from condviz.models.registry import describe as look_up
    from condviz.models.registry import load

    for asked in options.model:
        if "/" not in asked:  # a folder or a hub id
            look_up(asked)  # a wrong name is told at once, not after the models before it
    chosen = _choose(options)
    baseline = None
    if any(item.part.name == PLAIN for item in chosen):
        baseline = load(BASELINE, device=options.device, precision=options.precision)
    samples = {item.part.name: item.sample for item in chosen}
    names: list[str] = []
    for asked, model in load_asked(options.model, device=options.device, precision=options.precision):
        name = model.info.name
        if name in names:
            raise ConfigError(f"Two of the models are called {name!r}: {asked} is the second. Rename its folder.")
        names.append(name)
        scores = describe(model, _measure_one(model, chosen, baseline, options))
        board = board.with_scores(name, scores, samples)
        write_board(board, options.out)
    return board, names


def _choose(options: argparse.Namespace) -> list[Chosen]:
    """Build the parts; where none was asked for, leave out those whose files are missing, and say so."""
    from condviz.evaluation.benchmark import choose
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


def _measure_one(
    model: ConditionalScorer, chosen: list[Chosen], baseline: ConditionalScorer | None, options: argparse.Namespace
) -> dict[str, PartScores]:
    from condviz.evaluation.benchmark import measure
    from condviz.evaluation.scoreboard import format_figure

    found = {}
    for item in chosen:
        title = f"{model.info.name}, {item.part.title}"
        with progress_bar(title, "text") as update:
            scores = measure(model, item, baseline=baseline, resamples=options.resamples, progress=update)
        figures = f"pair accuracy {format_figure(scores.pair_accuracy)}, Spearman {format_figure(scores.spearman)}"
        sys.stderr.write(f"{title}: {figures}\n")
        found[item.part.name] = scores
    return found


def run_gallery(options: argparse.Namespace) -> None:
    """Score model by model and print what was found."""
    from condviz.data.examples import load_examples
    from condviz.evaluation.benchmark import contrast

    examples = load_examples()
    if not examples:
        raise DataError("There are no examples: assets/examples.json is missing. Copy it again.")
    rows, wrong = [], []
    for _, model in load_asked(options.model, device=options.device, precision="float32"):
        with progress_bar(model.info.name, "text") as update:
            found = contrast(model, examples, progress=update)
        right = sum(one.in_order for one in found)
        whole = {one.example for one in found} - {one.example for one in found if not one.in_order}
        rows.append((model.info.name, str(right), str(len(found)), f"{100 * right / len(found):.1f}", str(len(whole))))
        wrong += [_wrong_order(model.info.name, one) for one in found if not one.in_order]
    columns = ("model", "in order", "pairs", "%", f"examples in order, of {len(examples)}")
    sys.stdout.write(format_table(columns, rows) + "\n")
    if options.wrong and wrong:
        columns = ("model", "example", "should be higher", "score", "should be lower", "score")
        sys.stdout.write("\n" + format_table(columns, wrong, right={3, 5}) + "\n")


def _wrong_order(model: str, one: Contrast) -> tuple[str, ...]:
    return model, one.example, one.higher, f"{one.higher_score:.2f}", one.lower, f"{one.lower_score:.2f}"
