"""The command `links`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from condviz.cli.options import device, form, format_table, models, progress_bar, reading, reading_of, show, tell
from condviz.errors import ConfigError, DataError

if TYPE_CHECKING:
    from condviz.analysis.answers import LinkAnswer, LinkAnswers
    from condviz.data.kg import Graph

FURTHER = 10
"""Known answers below the best ones that are printed."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    default = "the first one trained on the graph, else minilm"
    parser = commands.add_parser(
        "links",
        help="predict links of a knowledge graph",
        parents=[models(default, several=False), device(precision=None), form(), reading(pairs=False)],
        description="Rank all entities of a graph as answers, for instance to: condviz links bee produces. Any text "
        'may stand for the entity: answers about it are guesses. Or ask a question: condviz links "What does a bee '
        'produce?" The first time, all entities are encoded, which takes minutes for a large graph; '
        "the vectors are kept in CONDVIZ_CACHE (default: ~/.cache/condviz).",
    )
    parser.add_argument(
        "entity", metavar="ENTITY", help="name, label or id of an entity, any other text, or a question"
    )
    relation = 'text or id, or "inverse RELATION"; default: those that fit'
    parser.add_argument("relation", nargs="*", metavar="RELATION", help=relation)
    parser.add_argument("--inverse", action="store_true", help="ask backwards: what has this relation to the entity")
    graph = "everyday, wn18rr, fb15k237, a folder or one table (default: that of the model, else the first one on this "
    parser.add_argument("--graph", help=f"{graph}machine with such a relation)")
    parser.add_argument("-k", type=int, default=10, help="number of answers (default: 10)")
    parser.add_argument("--rerank", action="store_true", help="prefer entities close by in the train graph (SimKGC)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Print the answers to each question, as text or JSON."""
    if options.k < 1:
        raise ConfigError(f"-k is {options.k}, allowed is 1 or more.")
    from condviz.analysis.links import get_predictor
    from condviz.data.kg import parse_question
    from condviz.models.registry import link_models, load

    graph = _choose_graph(options)
    tell(*graph.notes)
    entity, relations = options.entity, [graph.find_relation(text) for text in options.relation]
    if not relations and (question := parse_question(graph, entity)):  # before the model loads
        entity, relations = question[0], [question[1]]
    name = options.model or next(iter(link_models(graph.name)), "minilm")
    predictor = get_predictor(load(name, device=options.device), graph)
    with progress_bar("entities", "text") as update:
        predictor.prepare(update)
    chosen = relations or predictor.relations_for(entity)
    settings = {"direction": "head" if options.inverse else "tail", "k": options.k, "reranked": options.rerank}
    found = [predictor.ask(entity, relation, **settings) for relation in chosen]
    show(options, text=lambda: "\n\n".join(map(format_answers, found)), json=lambda: [item.to_dict() for item in found])


def _choose_graph(options: argparse.Namespace) -> Graph:
    """Open the graph asked for, or that of the model, or the first one that has the relation."""
    from condviz.data.kg_formats import EVERYDAY, list_graphs, load_graph
    from condviz.models.registry import describe

    trained_on = describe(options.model).graph if options.model and not options.graph else ""
    if options.graph or trained_on:
        return load_graph(options.graph or trained_on, **reading_of(options))
    for name in list_graphs():
        graph = load_graph(name)
        try:
            [graph.find_relation(text) for text in options.relation]
        except DataError:
            continue
        return graph
    return load_graph(EVERYDAY)


def format_answers(found: LinkAnswers) -> str:
    """Format the answers to one question as text, and where those are that the graph knows."""
    head = ("rank", "score", "answer", "in the graph")
    shown = {item.id for item in found.answers}
    below = [item for item in found.known if item.id not in shown]
    lines = [found.question, format_table(head, [_row(item) for item in found.answers], right=(0, 1))]
    if below:
        lines += [f"further down, {len(below)} known:", format_table(head, [_row(item) for item in below[:FURTHER]])]
    if not found.known:
        lines.append("The graph knows no answer.")
    if not found.told:
        lines.append(f"I don't know {found.entity!r}: it is not in the graph (nearest: {found.nearest}).")
    elif found.guess:
        lines.append(f"{found.entity!r} is not in the graph (nearest: {found.nearest}): a guess.")
    elif not found.sensible:
        lines.append("The graph answers this of few similar entities: the question may make no sense.")
    return "\n".join(lines)


def _row(item: LinkAnswer) -> tuple[str, ...]:
    known = f"{item.split}, filtered rank {item.filtered_rank:g}" if item.split else ""
    return f"{item.rank:g}", f"{item.score:.3f}", item.label, known
