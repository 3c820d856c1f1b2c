"""The command `benchmark gallery`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.options import load_asked
from condviz.cli.terminal import format_table, progress_bar

if TYPE_CHECKING:
    from condviz.evaluation.benchmark import Contrast


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of benchmarks."""
    parser = commands.add_parser(
        "gallery",
        parents=[shared.models(), shared.device(None)],
        help="whether the examples of the page come out as expected",
        description="Score the examples of the page, and count the pairs of conditions that a model orders as a "
        "careful reader does. A check by eye, not a test: too few, and chosen to show something.",
    )
    parser.add_argument("--wrong", action="store_true", help="list what is out of order")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Score model by model and print what was found."""
    from condviz.data.examples import load_examples
    from condviz.errors import DataError
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
        wrong += [_line(model.info.name, one) for one in found if not one.in_order]
    columns = ("model", "in order", "pairs", "%", f"examples in order, of {len(examples)}")
    sys.stdout.write(format_table(columns, rows) + "\n")
    if options.wrong and wrong:
        columns = ("model", "example", "should be higher", "score", "should be lower", "score")
        sys.stdout.write("\n" + format_table(columns, wrong, right={3, 5}) + "\n")


def _line(model: str, one: Contrast) -> tuple[str, ...]:
    return model, one.example, one.higher, f"{one.higher_score:.2f}", one.lower, f"{one.lower_score:.2f}"
