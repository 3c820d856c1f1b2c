"""The command `links`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from condviz.cli.terminal import progress_bar
from condviz.errors import ConfigError

if TYPE_CHECKING:
    from condviz.analysis.links import Candidate, LinkPrediction


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "links",
        help="predict links of a knowledge graph",
        description='Rank all entities of a graph as answers, for instance to: condviz links "land reform" hypernym. '
        "The first time, all entities are encoded, which takes minutes; the vectors are kept in CONDVIZ_CACHE "
        "(default: ~/.cache/condviz).",
    )
    parser.add_argument("entity", metavar="ENTITY", help="name, label or id of the entity that is asked about")
    parser.add_argument(
        "relation", nargs="*", metavar="RELATION", help='text or id, or "inverse RELATION"; none: all that it has'
    )
    parser.add_argument("--inverse", action="store_true", help="ask backwards: what has this relation to the entity")
    parser.add_argument("--model", help="name or folder (default: the first one trained on the graph, else minilm)")
    parser.add_argument("--graph", default="wn18rr", help="wn18rr, fb15k237 or a folder of tables (default: wn18rr)")
    parser.add_argument("-k", type=int, default=10, help="how many answers (default: 10)")
    parser.add_argument("--rerank", action="store_true", help="prefer entities close by in the train graph (SimKGC)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Answer; JSON or a table on standard output, progress on standard error."""
    if options.k < 1:
        raise ConfigError(f"-k is {options.k}, allowed is 1 or more.")
    from condviz.data.kg_formats import load_graph

    graph = load_graph(options.graph)
    entity = graph.find_entity(options.entity)  # a wrong name is told before the model loads
    relations = [graph.find_relation(text) for text in options.relation]

    from condviz.analysis.links import LinkPredictor
    from condviz.models.registry import link_models, load

    name = options.model or next(iter(link_models(graph.name)), "minilm")
    predictor = LinkPredictor(graph, load(name, device=options.device))
    with progress_bar("entities", "text") as update:
        predictor.prepare(update)
    found = [
        predictor.predict(entity, relation, inverse=options.inverse, k=options.k, reranked=options.rerank)
        for relation in relations or predictor.relations_of(entity)
    ]
    if options.json:
        sys.stdout.write(json.dumps([item.to_dict() for item in found], indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("\n\n".join(format_prediction(item) for item in found) + "\n")


def format_prediction(found: LinkPrediction) -> str:
    """Write the answers to one question as text, and where those are that the graph knows."""
    lines = [f"{found.head.label}, {found.relation} ({found.model}; median score {found.median:.3f})"]
    lines += [_line(item) for item in found.candidates]
    shown = {item.entity for item in found.candidates}
    below = [item for item in found.answers if item.entity not in shown]
    if below:
        lines += [f"further down: {len(below)} known"] + [_line(item) for item in below[:10]]
    if not found.answers:
        lines.append("the graph knows no answer")
    return "\n".join(lines)


def _line(item: Candidate) -> str:
    known = f"  [{item.split}, filtered rank {item.filtered_rank:g}]" if item.split else ""
    return f"{item.rank:>8g}  {item.score:6.3f}  {item.label}{known}: {item.description[:60]}"
