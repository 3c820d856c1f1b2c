"""The command `benchmark`: how well models follow conditions (`models`, `gallery`) and predict links (`kgc`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.options import format_table, load_asked, progress_bar, tell
from condviz.errors import ConfigError, DataError

if TYPE_CHECKING:
    from condviz.evaluation.benchmark import Chosen
    from condviz.evaluation.kgc_scores import LinkScores
    from condviz.evaluation.scoreboard import Board


OPTIONAL = ("e2e",)
"""Parts that are measured only where they are asked for."""
BASELINE = "minilm"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    benchmark = commands.add_parser(
        "benchmark", help="measure models on test parts", description="Measure models on fixed test parts."
    )
    benchmarks = benchmark.add_subparsers(required=True, metavar="models | gallery | kgc")
    stored = argparse.ArgumentParser(add_help=False)
    stored.add_argument("--stored", action="store_true", help="measure nothing: print what is stored")
    text = "where results are stored (default: assets/benchmark.json, of kgc assets/kgc.json)"
    stored.add_argument("--out", metavar="FILE", help=text)
    text = "put the tables of all models into docs/results.md and, of sentences, README.md"
    stored.add_argument("--docs", action="store_true", help=text)
    stored.add_argument("--cards", action="store_true", help="write the model cards of the checkpoints anew")
    parser = benchmarks.add_parser(
        "models",
        parents=[shared.models(), shared.device("float32"), stored],
        help="how well they follow conditions",
        description="Measure how well models follow conditions, on test parts of the scenes and, where the files are "
        "there, of reviews. Prints Markdown, and stores the scores for the page; what is not measured again stays.",
    )
    text = "may be repeated (default: all but e2e)"
    parser.add_argument("--part", action="append", default=[], metavar="PART", help=text)
    parser.add_argument("--pairs", type=int, default=500, help="sentence pairs of each part, at most (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="decides pairs and resamples (default: 0)")
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: 1000; 0: none)")
    parser.add_argument("--by", choices=("aspect", "domain"), help="also print the figures of each aspect or domain")
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
    parser = benchmarks.add_parser(
        "kgc",
        parents=[shared.models("those of the graph"), shared.device(None), stored],
        help="how well they predict links",
        description="Rank the right entity among all of a knowledge graph, both directions, filtered, with and without "
        "re-ranking. Prints Markdown beside the papers' figures, and stores the results for the page.",
    )
    parser.add_argument("--graph", default="wn18rr", help="wn18rr, fb15k237 or a folder of tables (default: wn18rr)")
    parser.add_argument("--split", default="test", help="valid or test (default: test)")
    parser.add_argument("--triples", type=int, default=0, help="the first so many only (default: 0, all; stores none)")
    parser.set_defaults(command=run_links)


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
        from condviz.evaluation.cards import write_card
        from condviz.models.manifest import MANIFEST
        from condviz.paths import CHECKPOINTS

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
    from condviz.evaluation.benchmark import describe, measure
    from condviz.evaluation.scoreboard import PLAIN, format_figure, write_board
    from condviz.models.registry import load

    _look_up(options.model)
    chosen = _choose(options)
    baseline = None
    if any(item.part.name == PLAIN for item in chosen):
        baseline = load(BASELINE, device=options.device, precision=options.precision)
    samples = {item.part.name: item.sample for item in chosen}
    names: list[str] = []
    for _, model in load_asked(options):
        name = model.info.name
        names.append(name)
        found = {}
        for item in chosen:
            title = f"{name}, {item.part.title}"
            with progress_bar(title, "text") as update:
                scores = measure(model, item, baseline=baseline, resamples=options.resamples, progress=update)
            figures = f"pair accuracy {format_figure(scores.pair_accuracy)}, Spearman {format_figure(scores.spearman)}"
            sys.stderr.write(f"{title}: {figures}\n")
            found[item.part.name] = scores
        board = board.with_scores(name, describe(model, found), samples)
        write_board(board, options.out)
    return board, names


def _look_up(names: Sequence[str]) -> None:
    """Tell a wrong name at once, and not after the models before it have been measured."""
    from condviz.models.registry import describe

    for name in names:
        if "/" not in name:  # no folder and no hub id
            describe(name)


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


def run_gallery(options: argparse.Namespace) -> None:
    """Score model by model and print what was found."""
    from condviz.data.examples import load_examples
    from condviz.evaluation.benchmark import contrast

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


# ---- links of a knowledge graph --------------------------------------------------------------------------------------

MARKS = ("<!-- links:start -->", "<!-- links:end -->")
HOW = {"frozen": "head on a frozen encoder", "layers": "upper layers and head", "full": "encoder and head"}


def run_links(options: argparse.Namespace) -> None:
    """Measure; progress goes to standard error, Markdown to standard output, results into the file."""
    from condviz.data.files import check_target
    from condviz.evaluation.kgc_scores import SCORES, format_relations, format_scores, read_scores, write_scores
    from condviz.evaluation.scoreboard import fill_document, read_marked

    if options.triples < 0:
        raise ConfigError(f"--triples is {options.triples}, allowed is 0 (all) or more.")
    options.out = options.out or SCORES
    check_target(options.out)
    if options.docs:
        read_marked(marks=MARKS)
    stored = read_scores(options.out)
    measured = [] if options.stored else _measure_links(options)
    names = {item.model for item in measured}
    scores = measured + [item for item in stored if item.model not in names]
    if measured and not options.triples and (options.graph, options.split) == ("wn18rr", "test"):
        write_scores(scores, options.out)
    blocks = [format_scores(scores)]
    blocks += [f"{item.model}, by relation:\n\n{format_relations(item)}" for item in measured]
    sys.stdout.write("\n\n".join(blocks) + "\n")
    if options.docs:
        fill_document(format_scores(scores), marks=MARKS)
    if options.cards:
        _write_link_cards(scores)


def _measure_links(options: argparse.Namespace) -> list[LinkScores]:
    """Measure each model, and note how it was trained, on what, and with which seed."""
    from condviz.data.kg_formats import load_graph
    from condviz.evaluation.kgc import evaluate_links
    from condviz.evaluation.kgc_scores import LinkScores
    from condviz.models.manifest import read_manifest
    from condviz.models.registry import link_models, load

    graph = load_graph(options.graph)
    _look_up(options.model)
    found = []
    for name in dict.fromkeys(options.model or [BASELINE, *link_models(graph.name)]):
        model = load(name, device=options.device, precision="float32")
        with progress_bar(name, "text") as update:
            report = evaluate_links(model, graph, options.split, limit=options.triples, progress=update)
        mean = report.plain.mean
        sys.stderr.write(f"{name}: MRR {100 * mean.mean_reciprocal_rank:.1f}, Hits@10 {100 * mean.hits[10]:.1f}\n")
        info = model.info
        training = read_manifest(Path(info.path))["training"] if info.path else {}
        tuning = training.get("recipe", {}).get("tuning") if info.graph else None
        facts = {
            "encoder": model.backbone.name,
            "how": HOW.get(tuning, "not trained for links"),
            "hardware": training.get("device", model.backbone.device.type),
            "seed": training.get("seed"),
            "report": report.to_dict(),
        }
        found.append(LinkScores(model=info.name, title=info.title, weights=model.weights_hash, **facts))
    return found


def _write_link_cards(scores: list[LinkScores]) -> None:
    """Write the cards of stored models that lie among the checkpoints, with their test figures."""
    from condviz.data.files import write_text
    from condviz.data.kg_formats import NOTICES
    from condviz.evaluation.cards import link_card
    from condviz.models.manifest import CARD, read_manifest
    from condviz.models.registry import describe, find_folder, link_models

    here = link_models()
    for item in scores:
        if item.model in here:
            folder = find_folder(item.model)
            manifest = read_manifest(folder)
            metrics = {**manifest["metrics"], item.report["split"]: item.report["plain"]["mean"]}
            notice = NOTICES.get(item.report["graph"], "")
            card = link_card(item.model, describe(item.model), manifest["training"], metrics, notice=notice)
            write_text(folder / CARD, card)
