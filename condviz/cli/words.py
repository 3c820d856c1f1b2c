"""The command `words`, formerly `router`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.options import format_table, load_asked, tell

if TYPE_CHECKING:
    from condviz.analysis.readings import DeletionTest, WordReading
    from condviz.methods import ConditionalScorer
    from condviz.types import TokenWeights


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "words",
        aliases=["router"],
        help="words that a model reads",
        description="Show how much each word of one or two sentences counts under each condition: the weights of a "
        "CSR model's router; for other models, what leaving out the word does to the score. Variants of a CSR model "
        "have names such as csr@hidden.",
        parents=[
            shared.models("csr"),
            shared.device(),
            shared.form("print JSON, as the /router endpoint returns it", "print a row per word, condition and layer"),
            shared.files(figures="also write Figures 5 to 7 of the CSR paper for these texts as an HTML page"),
        ],
    )
    parser.add_argument("sentences", nargs="+", metavar="SENTENCE", help="one sentence, or two")
    parser.add_argument("--condition", action="append", default=[], help='for instance "the sport"; up to 12')
    text = "also score without the K heaviest words, and 20 times without K random words"
    parser.add_argument("--delete", type=int, default=0, metavar="K", help=text)
    parser.set_defaults(command=run, default_models=["csr"])


def run(options: argparse.Namespace) -> None:
    """Read the words and print them."""
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
    forms = (lambda: _format(readings, tests), lambda: to_record(readings, tests), lambda: to_csv(readings))
    shared.show(options, *forms)


def _write_figures(path: str, models: Sequence[ConditionalScorer], readings: Sequence[WordReading]) -> None:
    """Write the words of every model, and the figures of those with a router, for every sentence and condition."""
    from condviz.analysis.attention import read_pictures
    from condviz.plots import router, words

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
                (f"{name}, sentence {number}, {condition}", router.figures(pictures, place))
                for place, condition in enumerate(reading.conditions)
            ]
    shared.write(path, words.to_page("Figures 5 to 7 of the CSR paper", parts))


def _format(readings: Sequence[WordReading], tests: Sequence[DeletionTest]) -> str:
    blocks = ["\n".join(f"[{i}] {condition}" for i, condition in enumerate(readings[0].conditions, start=1))]
    blocks += [_block(reading, text, i) for reading in readings for i, text in enumerate(reading.texts, start=1)]
    return "\n\n".join([*blocks, *map(_verdict, tests)])


def _verdict(test: DeletionTest) -> str:
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


def _block(reading: WordReading, text: TokenWeights, number: int) -> str:
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
