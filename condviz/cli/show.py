"""The commands `words`, `map` and `links`: what a model reads in texts, where it places them, what it links."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from condviz.analysis.maps import build_map
from condviz.analysis.points import points_from_table, scene_points
from condviz.cli import options as shared
from condviz.cli.options import add_command, format_table, load_asked, progress_bar, tell
from condviz.data.tables import read_table
from condviz.errors import ConfigError, DataError

if TYPE_CHECKING:
    from condviz.analysis.answers import LinkAnswer, LinkAnswers
    from condviz.analysis.maps import EmbeddingMap
    from condviz.analysis.words import DeletionTest, WordReading
    from condviz.data.kg import Graph
    from condviz.methods import ConditionalScorer
    from condviz.types import TokenWeights

FURTHER = 10
"""Known answers below the best ones that are printed."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to a parser."""
    _add_words(commands)
    _add_map(commands)
    _add_links(commands)


# ---- words, formerly router ------------------------------------------------------------------------------------------
def _add_words(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    forms = shared.form("print JSON, as the /router endpoint returns it", "print a row per word, condition and layer")
    files = shared.files(figures="also write Figures 5 to 7 of the CSR paper for these texts as an HTML page")
    parents = shared.models("csr"), shared.device(), forms, files
    parser = add_command(commands, "words", run_words, *parents, aliases=["router"])
    parser.add_argument("sentences", nargs="+", metavar="SENTENCE", help="one sentence, or two")
    parser.add_argument("--condition", action="append", default=[], help='for instance "the sport"; up to 12')
    text = "also score without the K heaviest words, and 20 times without K random words"
    parser.add_argument("--delete", type=int, default=0, metavar="K", help=text)
    parser.set_defaults(default_models=["csr"])


def run_words(options: argparse.Namespace) -> None:
    """Words that a model reads.

    Show how much each word of one or two sentences counts under each condition: the weights of a CSR model's router;
    for other models, what leaving out the word does to the score. Variants of a CSR model have names such as
    csr@hidden.
    """
    from condviz.analysis.words import check_texts, delete_words, read_words, to_csv, to_record

    sentences, conditions = check_texts(options.sentences, options.condition)  # before the models load
    options.model = options.model or options.default_models
    models = [model for _, model in load_asked(options)]
    readings = [read_words(model, sentences, conditions) for model in models]
    tests = []
    if options.delete:
        tests = [delete_words(m, reading, options.delete) for m, reading in zip(models, readings, strict=True)]
    if options.figures:
        _write_figures(options.figures, models, readings)
    forms = (lambda: _format_words(readings, tests), lambda: to_record(readings, tests), lambda: to_csv(readings))
    shared.show(options, *forms)


def _write_figures(path: str, models: Sequence[ConditionalScorer], readings: Sequence[WordReading]) -> None:
    """Write the words of every model, and the figures of those with a router, for every sentence and condition."""
    from condviz.analysis.attention import read_pictures
    from condviz.plots import words
    from condviz.plots.html import to_page

    parts = []
    for model, reading in zip(models, readings, strict=True):
        name = reading.model.name
        parts.append((f"{name}: words under every condition", words.strips([reading])))
        if not model.has_router:
            tell(f"{name} has no router, so {path} has no Figures 5 to 7 for it.")
            continue
        for number, text in enumerate(reading.texts, start=1):
            pictures = read_pictures(model, text.sentence, reading.conditions)
            parts += [
                (f"{name}, sentence {number}, {condition}", words.figures(pictures, place))
                for place, condition in enumerate(reading.conditions)
            ]
    body = Markup("").join(Markup("<h2>{}</h2>{}").format(*part) for part in parts)
    shared.write(path, to_page("Figures 5 to 7 of the CSR paper", body, *words.STYLES))


def _format_words(readings: Sequence[WordReading], tests: Sequence[DeletionTest]) -> str:
    blocks = ["\n".join(f"[{i}] {condition}" for i, condition in enumerate(readings[0].conditions, start=1))]
    blocks += [_sentence(reading, text, i) for reading in readings for i, text in enumerate(reading.texts, start=1)]
    return "\n\n".join([*blocks, *map(_format_deletion, tests)])


def _format_deletion(test: DeletionTest) -> str:
    low, high = test.interval
    words = "word" if test.num_words == 1 else "words"
    against = f", against {len(test.held_out)} held-out sentences" if test.held_out else ""
    chosen = (
        f"\n{test.model} has no router: its words were chosen by leaving them out of this pair, which a test on the "
        "same pair could only confirm. The held-out sentences had no part in the choice."
    )
    return (
        f"{test.model}, mean absolute change of the score{against}: {test.top_move:.3f} without the {test.num_words} "
        f"heaviest {words}, {test.random_moves.mean():.3f} without as many random {words} "
        f"(middle 95 % of {len(test.random_moves)} draws: {low:.3f} to {high:.3f}). "
        f"Draws that change it as much: {test.as_far}.{chosen if test.held_out else ''}"
    )


def _sentence(reading: WordReading, text: TokenWeights, number: int) -> str:
    """Lay out one sentence: a line for each word, a column for each condition; last routed layer."""
    kind = f"router, layer {text.layers[-1] + 1}" if text.layers else "leave one word out"
    rows = [
        (word.text, *(f"{value:.3f}" for value in values))
        for word, values in zip(text.words, text.weights[-1].T, strict=True)
    ]
    if text.layers:
        rows.append(("(no word)", *(f"{value:.3f}" for value in text.hidden_mass[-1])))
    head = ("word", *(f"[{i}]" for i in range(1, len(text.conditions) + 1)))
    star = [] if reading.model.trained else ["* not trained"]
    title = f"{reading.model.name}{'' if reading.model.trained else ' *'}, sentence {number}: {kind}"
    return "\n".join([title, format_table(head, rows), *star])


# ---- map -------------------------------------------------------------------------------------------------------------
def _add_map(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    files = shared.files(json="write everything as JSON", html="write both pictures and the measures as one page")
    layout = shared.of_function(points_from_table), shared.of_function(build_map, n_neighbors="neighbors")
    models, table = shared.models("hyper-cl", several=False), shared.reading(read_table)
    parents = models, shared.device(None), shared.cluster(), files, table, *layout
    parser = add_command(commands, "map", run_map, *parents)
    parser.add_argument("table", metavar="FILE", help="CSV or TSV, - for standard input, or scenes for our example")
    parser.add_argument("--condition", action="append", help="put every sentence under it; may be repeated")


def run_map(options: argparse.Namespace) -> None:
    """Lay sentences out before and after conditioning, and measure both.

    Encode the sentences of a table without and with their conditions, lay both out in one alignment, and print values,
    impurity, isotropy and silhouette. Without a column of conditions, give --condition.
    """
    # Settings and table are checked before the model loads, which takes seconds.
    settings, of_table = shared.given(options, build_map), shared.given(options, points_from_table)
    if options.table == "scenes":
        given = of_table | {"condition": options.condition}
        if asked := [name for name, value in given.items() if value is not None]:
            raise ConfigError(f"scenes has conditions of its own: leave out --{asked[0].replace('_', '-')}.")
        points = scene_points(seed=options.seed)
    else:
        table = read_table(options.table, **shared.given(options, read_table), names=("text",))
        points = points_from_table(table, **of_table, conditions=options.condition, seed=options.seed)

    from condviz.models.registry import load

    model = shared.on_cluster(load(options.model, device=options.device), options)
    with progress_bar("map", "‰") as update:
        made = build_map(model, points, **settings, progress=update)
    if options.html:
        from condviz.plots.html import to_page
        from condviz.plots.maps import to_html

        shared.write(options.html, to_page(f"{made.model['title']}: map", to_html(made)))
    if options.json:
        shared.write(options.json, json.dumps(made.to_dict(), ensure_ascii=False) + "\n")
    tell(*made.notes)
    if not shared.output_taken(options):
        print(format_measures(made))


def format_measures(made: EmbeddingMap) -> str:
    """Format what was measured: a table of measures, and one of values where they are known."""
    points, sides = made.points, (made.before, made.after)
    groups = f"{len(points.groups):,} {'condition' if len(points.groups) == 1 else 'conditions'}"
    lines = [f"{made.model['name']}: {len(points.texts):,} points, {groups}", ""]
    if made.before.values:
        share = "{:.0f} %".format
        rows = [
            (new.condition, share(100 * old.agreement), share(100 * new.agreement), share(100 * new.chance))
            for old, new in zip(made.before.values, made.after.values, strict=True)
        ]
        lines += [format_table(("nearest 3 with the same value", "before", "after", "by chance"), rows), ""]
    rows, problems = [], {}
    for name, side in zip(("before", "after"), sides, strict=True):
        found = side.measures
        if found is None:
            continue
        problems |= found.problems
        clustered, spread = found.impurity or {}, found.isotropy or {}
        cells = [*map(clustered.get, ("mean", "std", "chance")), found.silhouette]
        cells += map(spread.get, ("mean_cosine", "ipc"))
        rows.append((name, *("-" if cell is None else f"{cell:.3f}" for cell in cells)))
    if made.random_matrices:
        rows.append(("random matrices", f"{made.random_matrices['mean']:.3f}", *[""] * 5))
    head = ("", "impurity", "sd", "by chance", "silhouette", "mean cosine", "IPC")
    lines.append(format_table(head, rows))
    lines += [f"no {name}: {reason}" for name, reason in problems.items()]
    return "\n".join(lines)


# ---- links -----------------------------------------------------------------------------------------------------------
def _add_links(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    models = shared.models("the first one trained on the graph, else minilm", several=False)
    parents = models, shared.device(None), shared.form(), shared.reading(read_table)
    parser = add_command(commands, "links", run_links, *parents)
    named = "name, label or id of an entity, any other text, or a question"
    parser.add_argument("entity", metavar="ENTITY", help=named)
    relation = 'text or id, or "inverse RELATION"; default: those that fit'
    parser.add_argument("relation", nargs="*", metavar="RELATION", help=relation)
    parser.add_argument("--inverse", action="store_true", help="ask backwards: what has this relation to the entity")
    graph = "everyday, wn18rr, fb15k237, a folder or one table (default: that of the model, else the first one on this "
    parser.add_argument("--graph", help=f"{graph}machine with such a relation)")
    parser.add_argument("-k", type=int, default=10, help="number of answers (default: 10)")
    parser.add_argument("--rerank", action="store_true", help="prefer entities close by in the train graph (SimKGC)")


def run_links(options: argparse.Namespace) -> None:
    """Predict links of a knowledge graph.

    Rank all entities of a graph as answers, for instance to: condviz links bee produces. Any text may stand for the
    entity: answers about it are guesses. Or ask a question: condviz links "What does a bee produce?" The first time,
    all entities are encoded, which takes minutes for a large graph; the vectors are kept in CONDVIZ_CACHE (default:
    ~/.cache/condviz).
    """
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
    shared.show(options, lambda: "\n\n".join(map(format_answers, found)), lambda: [item.to_dict() for item in found])


def _choose_graph(options: argparse.Namespace) -> Graph:
    """Open the graph asked for, or that of the model, or the first one that has the relation."""
    from condviz.data.kg_formats import EVERYDAY, list_graphs, load_graph
    from condviz.models.registry import describe

    trained_on = describe(options.model).graph if options.model and not options.graph else ""
    if options.graph or trained_on:
        return load_graph(options.graph or trained_on, **shared.given(options, read_table))
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
    lines = [found.question, format_table(head, [_answer(item) for item in found.answers], right=(0, 1))]
    if below:
        lines += [f"further down, {len(below)} known:", format_table(head, [_answer(item) for item in below[:FURTHER]])]
    if not found.known:
        lines.append("The graph knows no answer.")
    if not found.told:
        lines.append(f"I don't know {found.entity!r}: it is not in the graph (nearest: {found.nearest}).")
    elif found.guess:
        lines.append(f"{found.entity!r} is not in the graph (nearest: {found.nearest}): a guess.")
    elif not found.sensible:
        lines.append("The graph answers this of few similar entities: the question may make no sense.")
    return "\n".join(lines)


def _answer(item: LinkAnswer) -> tuple[str, ...]:
    known = f"{item.split}, filtered rank {item.filtered_rank:g}" if item.split else ""
    return f"{item.rank:g}", f"{item.score:.3f}", item.label, known
