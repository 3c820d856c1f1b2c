"""The command `benchmark kgc`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.terminal import progress_bar
from condviz.errors import ConfigError

if TYPE_CHECKING:
    from condviz.evaluation.kgc_scores import LinkScores
    from condviz.methods.base import ConditionalScorer

BASELINE = "minilm"
MARKS = ("<!-- links:start -->", "<!-- links:end -->")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of benchmarks."""
    parser = commands.add_parser(
        "kgc",
        parents=[shared.models("those of the graph"), shared.device(None)],
        help="how well they predict links",
        description="Rank the right entity among all of a knowledge graph, both directions, filtered, with and without "
        "re-ranking. Prints Markdown beside the papers' figures, and stores the results for the page.",
    )
    parser.add_argument("--graph", default="wn18rr", help="wn18rr, fb15k237 or a folder of tables (default: wn18rr)")
    parser.add_argument("--split", default="test", help="valid or test (default: test)")
    parser.add_argument("--triples", type=int, default=0, help="the first so many only (default: 0, all; stores none)")
    parser.add_argument("--stored", action="store_true", help="measure nothing: print what is stored")
    parser.add_argument("--out", metavar="FILE", help="where results are stored (default: assets/kgc.json)")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/results.md")
    parser.add_argument("--cards", action="store_true", help="write the model cards anew")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Measure; progress goes to standard error, Markdown to standard output, results into the file."""
    from condviz.data.files import check_target
    from condviz.evaluation.kgc_scores import SCORES, format_relations, format_scores, read_scores
    from condviz.evaluation.scoreboard import fill_document, read_marked

    if options.triples < 0:
        raise ConfigError(f"--triples is {options.triples}, allowed is 0 (all) or more.")
    options.out = options.out or SCORES
    check_target(options.out)
    if options.docs:
        read_marked(marks=MARKS)
    stored = read_scores(options.out)
    measured = [] if options.stored else _measure(options)
    names = {item.model for item in measured}
    scores = measured + [item for item in stored if item.model not in names]
    if measured and not options.triples and (options.graph, options.split) == ("wn18rr", "test"):
        from condviz.evaluation.kgc_scores import write_scores

        write_scores(scores, options.out)
    blocks = [format_scores(scores)]
    blocks += [f"{item.model}, by relation:\n\n{format_relations(item)}" for item in measured]
    sys.stdout.write("\n\n".join(blocks) + "\n")
    if options.docs:
        fill_document(format_scores(scores), marks=MARKS)
    if options.cards:
        _write_cards(scores)


def _measure(options: argparse.Namespace) -> list[LinkScores]:
    from condviz.data.kg_formats import load_graph
    from condviz.evaluation.kgc import evaluate_links
    from condviz.models.registry import link_models, load

    graph = load_graph(options.graph)
    found = []
    for name in dict.fromkeys(options.model or [BASELINE, *link_models(graph.name)]):
        model = load(name, device=options.device, precision="float32")
        with progress_bar(name, "text") as update:
            report = evaluate_links(model, graph, options.split, limit=options.triples, progress=update)
        mean = report.plain.mean
        sys.stderr.write(f"{name}: MRR {100 * mean.mean_reciprocal_rank:.1f}, Hits@10 {100 * mean.hits[10]:.1f}\n")
        found.append(_describe(model, report.to_dict()))
    return found


def _describe(model: ConditionalScorer, report: dict) -> LinkScores:
    """Describe what was measured: how the model was trained, on what, and with which seed."""
    from pathlib import Path

    from condviz.evaluation.kgc_scores import LinkScores
    from condviz.models.manifest import read_manifest

    training = read_manifest(Path(model.info.path))["training"] if model.info.path else {}
    tuning = training.get("recipe", {}).get("tuning") if model.info.graph else None
    how = {"frozen": "head on a frozen encoder", "full": "encoder and head"}.get(tuning, "not trained for links")
    return LinkScores(
        model=model.info.name,
        title=model.info.title,
        weights=model.weights_hash,
        encoder=model.backbone.name,
        how=how,
        hardware=training.get("device", model.backbone.device.type),
        seed=training.get("seed"),
        report=report,
    )


def _write_cards(scores: list[LinkScores]) -> None:
    """Write the cards of stored models that lie among the checkpoints, with their test figures."""
    from condviz.data.files import write_text
    from condviz.data.kg_formats import NOTICES
    from condviz.evaluation.cards import link_card
    from condviz.models.manifest import CARD, read_manifest
    from condviz.models.registry import CHECKPOINTS, describe, link_models

    here = link_models()
    for item in scores:
        if item.model in here:
            folder = CHECKPOINTS / item.model
            manifest = read_manifest(folder)
            metrics = {**manifest["metrics"], item.report["split"]: item.report["plain"]["mean"]}
            notice = NOTICES.get(item.report["graph"], "")
            card = link_card(item.model, describe(item.model), manifest["training"], metrics, notice=notice)
            write_text(folder / CARD, card)
