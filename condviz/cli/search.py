"""The commands `store` and `search`: encode a corpus once, search it under a condition."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from condviz.cli.options import json_flag, models
from condviz.cli.terminal import format_table, progress_bar, tell
from condviz.errors import DataError

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
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, as the /search endpoint returns it")
    form.add_argument("--csv", action="store_true", help="print one row per hit with all columns")
    parser.set_defaults(command=run)

    stores = commands.add_parser("store", help="encode a corpus for searching")
    actions = stores.add_subparsers(title="actions", required=True, metavar="build | info")
    build = actions.add_parser(
        "build",
        help="encode the texts of a file",
        description="Encode texts into a store on disk. Stopped or killed, it goes on where it was when the same "
        "command is run again.",
        parents=[models("hyper-cl", several=False), json_flag()],
    )
    build.add_argument("source", metavar="SOURCE", help="CSV, TSV, JSONL, TXT or Parquet file, or a folder of those")
    build.add_argument("--out", required=True, metavar="FOLDER", help="the store")
    build.add_argument("--column", default="", metavar="NAME", help="column of the texts (default: text, sentence)")
    build.add_argument("--skip-bad", action="store_true", help="leave out rows whose text cannot be used")
    build.set_defaults(command=run_build)
    info = actions.add_parser("info", help="what a store holds", parents=[json_flag()])
    info.add_argument("store", metavar="FOLDER")
    info.set_defaults(command=run_info)


def run(options: argparse.Namespace) -> None:
    """Search, and print the hits."""
    from condviz.analysis.search import search

    with progress_bar("scoring", "texts") as update:
        hits = search(
            options.store, options.query, options.condition, k=options.k, model=options.model, where=options.where,
            contains=options.contains, progress=update,
        )  # fmt: skip
    if options.json:
        sys.stdout.write(json.dumps(hits.to_dict(), indent=2, ensure_ascii=False) + "\n")
    elif options.csv:
        sys.stdout.write(hits.to_frame().to_csv(index=False))
    else:
        sys.stdout.write(_format(hits) + "\n")
        tell(*hits.notes)


def _format(hits: Hits) -> str:
    head = ["rank", "score", "percentile", *(["plain rank"] if hits.condition else []), "row", "text"]
    rows = []
    for rank, hit in enumerate(hits.hits, start=1):
        cells = [str(rank), f"{hit.score:.3f}", f"{hit.percentile:.0f}"]
        rows.append([*cells, *([f"{hit.plain_rank:,}"] if hits.condition else []), f"{hit.row:,}", hit.text])
    lines = [format_table(head, rows, right=range(len(head) - 1))]
    if hits.hits and not hits.matches:
        lines.append("No good match: the best hit is no more alike than many pairs that differ.")
    return "\n".join(lines)


def run_build(options: argparse.Namespace) -> None:
    """Build a store, and say what it holds."""
    from condviz.store.disk import build_store

    with progress_bar("encoding", "texts") as update:
        store = build_store(
            options.source, options.out, column=options.column, model=options.model, skip_bad=options.skip_bad,
            progress=_told(update),
        )  # fmt: skip
    if store.meta.left_out:
        tell(f"{store.meta.left_out:,} rows have no usable text and were left out.")
    run_info(argparse.Namespace(store=options.out, json=options.json))


def run_info(options: argparse.Namespace) -> None:
    """Print what a store holds."""
    from condviz.store.disk import open_store

    store = open_store(options.store)
    meta = store.meta
    content = {
        "store": options.store, "texts": len(store), "total": meta.total, "complete": store.complete,
        "left_out": meta.left_out, "column": meta.column, "columns": meta.columns, "model": meta.identity.model,
        "weights": meta.identity.weights[:12], "precision": meta.identity.precision, "source": meta.source,
    }  # fmt: skip
    if options.json:
        sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return
    content["columns"] = ", ".join(f"{name} ({kind})" for name, kind in meta.columns.items()) or "none"
    rows = [(name.replace("_", " "), f"{value:,}" if type(value) is int else str(value))
            for name, value in content.items() if name != "complete"]  # fmt: skip
    sys.stdout.write(format_table(("", ""), rows, right=()) + "\n")
    if not store.complete:
        raise DataError(f"{options.store} is not complete. Run the build again: it goes on where it stopped.")


def _told(update: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Where there is no bar, write a line now and then: rows, rows per second, time left."""
    first, last = None, 0.0

    def tell_all(done: int, total: int) -> None:
        nonlocal first, last
        update(done, total)
        now = time.monotonic()
        if first is None:
            first = done, now
        elif not sys.stderr.isatty() and (now - last > 30 or done == total):
            last, rate = now, (done - first[0]) / max(1e-9, now - first[1])
            left = (total - done) / max(rate, 1e-9)
            tell(f"{done:,} of {total:,} texts, {rate:,.0f} a second, {left / 60:,.0f} minutes left")

    return tell_all
