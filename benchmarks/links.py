"""The command `links`: how well models predict links of a knowledge graph."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import board as writer
from benchmarks.models import BASELINE, look_up, stored_options
from condviz.cli import options as shared
from condviz.cli.options import progress_bar
from condviz.errors import ConfigError

if TYPE_CHECKING:
    from condviz.evaluation.scoreboard import LinkScores

MARKS = ("<!-- links:start -->", "<!-- links:end -->")
HOW = {"frozen": "head on a frozen encoder", "layers": "upper layers and head", "full": "encoder and head"}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "links",
        parents=[shared.models("those of the graph"), shared.device(None), stored_options("assets/kgc.json")],
        help="how well models predict links",
        description="Rank the right entity among all of a knowledge graph, both directions, filtered, with and without "
        "re-ranking. Prints Markdown beside the papers' figures, and stores the results for the page.",
    )
    parser.add_argument("--graph", default="wn18rr", help="wn18rr, fb15k237 or a folder of tables (default: wn18rr)")
    parser.add_argument("--split", default="test", help="valid or test (default: test)")
    parser.add_argument("--triples", type=int, default=0, help="the first so many only (default: 0, all; stores none)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Measure; progress goes to standard error, Markdown to standard output, results into the file."""
    from condviz.data.files import check_target
    from condviz.evaluation.scoreboard import LINK_SCORES, read_link_scores

    if options.triples < 0:
        raise ConfigError(f"--triples is {options.triples}, allowed is 0 (all) or more.")
    options.out = options.out or LINK_SCORES
    check_target(options.out)
    if options.docs:
        writer.read_marked(marks=MARKS)
    stored = read_link_scores(options.out)
    measured = [] if options.stored else _measure_links(options)
    names = {item.model for item in measured}
    scores = measured + [item for item in stored if item.model not in names]
    if measured and not options.triples and (options.graph, options.split) == ("wn18rr", "test"):
        writer.write_link_scores(scores, options.out)
    blocks = [writer.format_link_scores(scores)]
    blocks += [f"{item.model}, by relation:\n\n{writer.format_relations(item)}" for item in measured]
    sys.stdout.write("\n\n".join(blocks) + "\n")
    if options.docs:
        writer.fill_document(writer.format_link_scores(scores), marks=MARKS)
    if options.cards:
        _write_link_cards(scores)


def _measure_links(options: argparse.Namespace) -> list[LinkScores]:
    """Measure each model, and note how it was trained, on what, and with which seed."""
    from benchmarks.ranks import evaluate_links
    from condviz.data.kg_formats import load_graph
    from condviz.evaluation.scoreboard import LinkScores
    from condviz.models.manifest import read_manifest
    from condviz.models.registry import link_models, load

    graph = load_graph(options.graph)
    look_up(options.model)
    found = []
    for name in dict.fromkeys(options.model or [BASELINE, *link_models(graph.name)]):
        model = load(name, device=options.device, precision="float32")
        with progress_bar(name, "text") as update:
            report = evaluate_links(model, graph, options.split, limit=options.triples, progress=update)
        mean = report.plain["mean"]
        sys.stderr.write(f"{name}: MRR {100 * mean['MRR']:.1f}, Hits@10 {100 * mean['hits@10']:.1f}\n")
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
