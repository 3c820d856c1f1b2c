"""The command `router`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from condviz.types import DeletionTest, TokenWeights, WordReading


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "router",
        help="words that a model weighs",
        description="Show how much each word of one or two sentences counts under each condition: the weights of a "
        "CSR model's router; for other models, what leaving out the word does to the score.",
    )
    parser.add_argument("sentences", nargs="+", metavar="SENTENCE", help="one sentence, or two")
    parser.add_argument("--condition", action="append", default=[], help='for instance "the sport"; up to 12')
    parser.add_argument(
        "--model", action="append", default=[], metavar="NAME",
        help="name, folder or hub id, or a variant such as csr@hidden; may be repeated (default: csr)",
    )  # fmt: skip
    parser.add_argument(
        "--delete", type=int, default=0, metavar="K",
        help="also score without the K heaviest words, and without K random words, 20 times",
    )  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, as the /router endpoint gives it")
    form.add_argument("--csv", action="store_true", help="print one row per word, condition and layer")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Read the words and print them."""
    from condviz.analysis.router import check_texts, load_reader, read_words, to_csv, to_record

    sentences, conditions = check_texts(options.sentences, options.condition)  # before the models load
    readings, tests = [], []
    for name in dict.fromkeys(options.model or ["csr"]):
        model = load_reader(name)
        readings.append(read_words(model, sentences, conditions))
        if options.delete:
            from condviz.analysis.deletion import delete_words

            tests.append(delete_words(model, readings[-1], options.delete))
    if options.csv:
        sys.stdout.write(to_csv(readings))
    elif options.json:
        sys.stdout.write(json.dumps(to_record(readings, tests), indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(_format(readings, tests) + "\n")


def _format(readings: list[WordReading], tests: list[DeletionTest]) -> str:
    blocks = ["\n".join(f"[{i}] {condition}" for i, condition in enumerate(readings[0].conditions, start=1))]
    blocks += [_block(reading, place) for reading in readings for place in range(len(reading.texts))]
    for test in tests:
        low, high = test.interval
        words = "word" if test.num_words == 1 else "words"
        blocks.append(
            f"{test.model}, mean absolute change of the score: {test.top_move:.3f} without the {test.num_words} "
            f"heaviest {words}, {test.random_moves.mean():.3f} without as many random {words} "
            f"(95 % of {len(test.random_moves)} draws: {low:.3f} to {high:.3f}). "
            f"Draws that change as much: {test.as_far}."
        )
    return "\n\n".join(blocks)


def _block(reading: WordReading, place: int) -> str:
    """Lay out one sentence: a line for each word, a column for each condition; last routed layer."""
    found: TokenWeights = reading.texts[place]
    kind = f"router, layer {found.layers[-1] + 1}" if found.layers else "leave one word out"
    lines = [f"{reading.model.name}{'' if reading.model.trained else ' *'}, sentence {place + 1}: {kind}"]
    width = max(map(len, ("special tokens", *(word.text for word in found.words))))
    lines.append(" " * width + "".join(f"{f'[{i}]':>9}" for i in range(1, len(found.conditions) + 1)))
    values = found.weights[-1].T
    lines += [
        word.text.ljust(width) + "".join(f"{value:9.3f}" for value in row)
        for word, row in zip(found.words, values, strict=True)
    ]
    if found.layers:
        lines.append("special tokens".ljust(width) + "".join(f"{value:9.3f}" for value in found.hidden_mass[-1]))
    if not reading.model.trained:
        lines.append("* not trained")
    return "\n".join(lines)
