"""The command `search`: find the texts of a store under a condition."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from condviz.cli.options import models
from condviz.cli.terminal import format_json, format_table, progress_bar, tell

if TYPE_CHECKING:
    from condviz.types import Hits


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to a parser."""
    parser = commands.add_parser(
        "search",
        help="search a corpus under a condition",
        parents=[models("the one whose vectors are stored", several=False)],
        description="Find the texts of a store (see: condviz store build) that are most like a query under a "
        "condition. A model that reads sentence and condition together re-ranks the nearest 1,000.",
    )
    parser.add_argument("store", metavar="STORE", help="folder of the store, or scenes for the sentences that ship")
    parser.add_argument("query", metavar="QUERY", help="a text like those that are wanted")
    parser.add_argument("--condition", help='for instance "the sport" (default: plain search)')
    parser.add_argument("-k", type=int, default=10, help="number of hits (default: 10)")
    parser.add_argument(
        "--where", metavar="FILTER", help='filter on the columns, for instance: stars >= 4 and kind == "a"'
    )
    parser.add_argument("--contains", metavar="TEXT", help="text that each hit contains; /.../ is a regular expression")
    parser.add_argument("--words", action="store_true", help="also print the words that carry the first ten hits")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, as the /search endpoint returns it")
    form.add_argument("--csv", action="store_true", help="print one row per hit with all columns")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Search, and print the hits."""
    from condviz.analysis.search import search

    with progress_bar("scoring", "texts") as update:
        hits = search(
            options.store, options.query, options.condition, k=options.k, model=options.model, where=options.where,
            contains=options.contains, words=options.words, progress=update,
        )  # fmt: skip
    if options.json:
        sys.stdout.write(format_json(hits.to_dict()))
    elif options.csv:
        sys.stdout.write(hits.to_frame().to_csv(index=False))
    else:
        sys.stdout.write(_format(hits) + "\n")
        tell(*hits.notes)


def _format(hits: Hits) -> str:
    from condviz.plots.search import words_of

    read = any(hit.words for hit in hits.hits)
    head = ["rank", "score", "percentile", *(["plain rank"] if hits.condition else []), "row"]
    rows = []
    for rank, hit in enumerate(hits.hits, start=1):
        cells = [str(rank), f"{hit.score:.3f}", f"{hit.percentile:.0f}"]
        rows.append([*cells, *([f"{hit.plain_rank:,}"] if hits.condition else []), f"{hit.row:,}"])
        rows[-1] += [*([", ".join(words_of(hit))] if read else []), hit.text]
    names = [*head, *(["carried by"] if read else []), "text"]
    lines = [format_table(names, rows, right=range(len(head)))]
    if hits.hits and not hits.matches:
        lines.append("No good match: the best hit is no more alike than many pairs that differ.")
    return "\n".join(lines)
