"""The commands `search` and `store`: encode a corpus once, search it, and see what conditions do to it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from condviz.cli.options import cluster, form, format_table, models, progress_bar, reading, reading_of, show, tell
from condviz.errors import DataError

if TYPE_CHECKING:
    from condviz.store.disk import Store
    from condviz.types import Hits, Result


SOURCES = "CSV, TSV, JSON, JSONL, TXT, Parquet or Arrow file, a folder of those, or hf://datasets/OWNER/NAME"
SHOWN = 20
"""Rows of a table; --csv and --json hold all."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands `search` and `store` to a parser."""
    _add_search(commands)
    stores = commands.add_parser("store", help="encode a corpus for searching; groups, twins, conditions that sort it")
    actions = stores.add_subparsers(
        title="actions", required=True, metavar="build | append | info | groups | cross | sorts | twins"
    )
    build = actions.add_parser(
        "build",
        help="encode the texts of a file",
        description="Encode texts into a store on disk. Stopped or killed, it goes on where it was when the same "
        "command is run again.",
        parents=[models("hyper-cl", several=False), _source(), cluster(), form()],
    )
    build.add_argument("--out", required=True, metavar="FOLDER", help="the store")
    build.set_defaults(command=run_build)
    append = actions.add_parser(
        "append",
        help="add the texts of another file",
        description="Add the rows of another file to a store, by the model of its vectors. A text that the store holds "
        "already is not encoded again. Stopped or killed, it goes on where it was.",
        parents=[_stored_model(), _source(), cluster(), form()],
    )
    append.add_argument("store", metavar="FOLDER", help="the store")
    append.set_defaults(command=run_append)
    info = actions.add_parser("info", help="what a store holds", parents=[form()])
    info.add_argument("store", metavar="FOLDER")
    info.set_defaults(command=run_info)
    _add_analyses(actions)


def _stored_model() -> argparse.ArgumentParser:
    return models("the one whose vectors are stored", several=False)


def _source() -> argparse.ArgumentParser:
    parser = reading(pairs=False)
    parser.add_argument("source", metavar="SOURCE", help=SOURCES)
    parser.add_argument("--column", default="", metavar="NAME", help="column of the texts (default: text, sentence)")
    return parser


def _add_analyses(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    texts = (
        ("groups", run_groups, ["CONDITION"], "divide the texts by a condition"),
        ("cross", run_cross, ["CONDITION", "OTHER"], "divide them by two conditions, and count how the groups meet"),
        ("sorts", run_sorts, [], "rank conditions by how clearly they divide the texts"),
        ("twins", run_twins, ["ALIKE", "DIFFERENT"], "find pairs alike under one condition, different under another"),
    )
    for name, command, conditions, text in texts:
        parents = [_stored_model(), form(csv="print a table with all rows")]
        parser = actions.add_parser(name, help=text, parents=parents)
        parser.add_argument("store", metavar="STORE", help="folder of the store, or scenes for the sentences that ship")
        for condition in conditions:
            parser.add_argument(condition.lower(), metavar=condition, help='for instance "the sport"')
        if name == "twins":
            parser.add_argument("-k", type=int, default=20, help="number of pairs (default: 20)")
        else:
            parser.add_argument("--groups", type=int, default=6 if name == "cross" else 8, metavar="N", help="how many")
        if name in ("groups", "cross"):
            parser.add_argument("--method", choices=("kmeans", "hdbscan"), default="kmeans", help="(default: kmeans)")
        if name == "sorts":
            text = "one to try; may be repeated (default: those of the library)"
            parser.add_argument("--condition", action="append", help=text)
        parser.set_defaults(command=command)


# ---- what a store holds ----------------------------------------------------------------------------------------------
def run_build(options: argparse.Namespace) -> None:
    """Build a store, and say what it holds."""
    from condviz.store.build import LEFT_OUT, build_store

    store = _encode(build_store, options, options.out)
    if store.meta.left_out:
        listed = Path(options.out) / LEFT_OUT
        more = f" Those that cannot be used are listed in {listed}." if listed.is_file() else ""
        tell(f"Left out for lack of a usable text: {store.meta.left_out:,} of the rows.{more}")
    run_info(argparse.Namespace(store=options.out, json=options.json))


def run_append(options: argparse.Namespace) -> None:
    """Add to a store, and say what it holds."""
    from condviz.store.build import append_store
    from condviz.store.disk import open_store

    before = len(open_store(options.store))
    store = _encode(append_store, options, options.store)
    tell(f"{len(store) - before:,} rows were added.")
    run_info(options)


def _encode(fill: Callable[..., Store], options: argparse.Namespace, folder: str) -> Store:
    settings = {name: getattr(options, name) for name in ("column", "model", "ray", "workers")} | reading_of(options)
    with progress_bar("encoding", "texts") as update:
        return fill(options.source, folder, **settings, progress=_told(update))


def run_info(options: argparse.Namespace) -> None:
    """Print what a store holds."""
    from condviz.store.disk import open_store

    store = open_store(options.store)
    meta = store.meta
    content = {
        "store": options.store, "texts": len(store), "total": meta.total, "complete": store.complete,
        "left_out": meta.left_out, "column": meta.column, "columns": meta.columns, "model": meta.identity.model,
        "weights": meta.identity.weights[:12], "precision": meta.identity.precision,
        "sources": [part.source for part in meta.parts],
    }  # fmt: skip
    columns = ", ".join(f"{name} ({kind})" for name, kind in meta.columns.items()) or "none"
    shown = {**content, "columns": columns, "sources": ", ".join(content["sources"])}
    del shown["complete"]
    rows = [(key.replace("_", " "), f"{value:,}" if type(value) is int else str(value)) for key, value in shown.items()]
    show(options, lambda: format_table(("", ""), rows, right=()), lambda: content)
    if not store.complete and not options.json:
        raise DataError(f"{options.store} is not complete. Run the same command again: it goes on where it stopped.")


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


# ---- what conditions do to it ----------------------------------------------------------------------------------------
def run_groups(options: argparse.Namespace) -> None:
    """Print the groups under a condition, and how pure they are in each column."""
    from condviz.analysis.groups import group_by

    settings = {"groups": options.groups, "method": options.method, "model": options.model}
    with progress_bar("reading", "texts") as update:
        found = group_by(options.store, options.condition, **settings, progress=update)
    rows = [(str(n), f"{one.size:,}", ", ".join(one.words), one.medoid) for n, one in enumerate(found.groups, 1)]
    left_over = [f"{found.left_over.size:,} texts belong to no group."] if found.left_over else []
    pure = (
        f"{name}: {share:.0%} have the most frequent value of their group, {chance:.0%} without groups"
        for name, (share, chance) in found.purity.items()
    )
    notes = [*left_over, f"silhouette {found.silhouette:.2f}", *pure]
    _show(options, found, ("group", "texts", "words", "in the middle"), rows, notes=notes)


def run_cross(options: argparse.Namespace) -> None:
    """Print how the groups under two conditions meet."""
    from condviz.analysis.groups import cross_table

    settings = {"groups": options.groups, "method": options.method, "model": options.model}
    with progress_bar("reading", "texts") as update:
        found = cross_table(options.store, options.condition, options.other, **settings, progress=update)
    head = (f"{options.condition} / {options.other}", *(group.name for group in found.second.groups))
    pairs = zip(found.first.groups, found.counts, strict=True)
    rows = [(group.name, *(f"{count:,}" for count in counts)) for group, counts in pairs]
    _show(options, found, head, rows, notes=[f"adjusted mutual information {found.information:.2f}"])


def run_sorts(options: argparse.Namespace) -> None:
    """Print which conditions divide the texts most clearly."""
    from condviz.analysis.sorting import rank_sorting_conditions

    settings = {"groups": options.groups, "model": options.model}
    with progress_bar("trying", "conditions") as update:
        found = rank_sorting_conditions(options.store, options.condition, **settings, progress=update)
    rows = []
    for item in found.conditions:
        figures = f"{item.silhouette:.3f}", f"{item.random:.3f}", f"{item.deviations:+.1f}", f"{item.applies:.0%}"
        rows.append((item.condition, *figures))
    head = ("condition", "silhouette", "random matrices", "deviations above", "texts that tell it")
    _show(options, found, head, rows, right=range(1, 5))


def run_twins(options: argparse.Namespace) -> None:
    """Print pairs that two conditions see differently."""
    from condviz.analysis.sorting import find_twins

    settings = {"k": options.k, "model": options.model}
    with progress_bar("reading", "texts") as update:
        found = find_twins(options.store, options.alike, options.different, **settings, progress=update)
    rows = [(f"{pair.alike:+.1f}", f"{pair.different:+.1f}", *pair.texts) for pair in found.pairs]
    _show(options, found, (options.alike, options.different, "text", "text"), rows, right=(0, 1))


def _show(
    options: argparse.Namespace, found: Result, head: Sequence[str], rows: Sequence[Sequence[str]], *,
    right: Sequence[int] = (1,), notes: Sequence[str] = (),
) -> None:  # fmt: skip
    text = "\n".join([format_table(head, rows[:SHOWN], right=right), *notes])
    show(options, lambda: text, found.to_dict, lambda: found.to_frame().to_csv(index=False))


# ---- search ----------------------------------------------------------------------------------------------------------


def _add_search(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    forms = form("print JSON, as the /search endpoint returns it", "print one row per hit with all columns")
    parser = commands.add_parser(
        "search",
        help="search a corpus under a condition",
        parents=[_stored_model(), forms],
        description="Find the texts of a store (see: condviz store build) that are most like a query under a "
        "condition. A model that reads sentence and condition together re-ranks the nearest 1,000.",
    )
    parser.add_argument("store", metavar="STORE", help="folder of the store, or scenes for the sentences that ship")
    parser.add_argument("query", metavar="QUERY", help="query text")
    parser.add_argument("--condition", help='for instance "the sport" (default: plain search)')
    parser.add_argument("-k", type=int, default=10, help="number of hits (default: 10)")
    text = 'filter on the columns, for instance: stars >= 4 and kind == "a"'
    parser.add_argument("--where", metavar="FILTER", help=text)
    parser.add_argument("--contains", metavar="TEXT", help="text that each hit contains; /.../ is a regular expression")
    parser.add_argument("--words", action="store_true", help="also print the words that carry the first ten hits")
    parser.set_defaults(command=run_search)


def run_search(options: argparse.Namespace) -> None:
    """Search, and print the hits."""
    from condviz.analysis.search import search

    settings = {name: getattr(options, name) for name in ("k", "model", "where", "contains", "words")}
    with progress_bar("scoring", "texts") as update:
        hits = search(options.store, options.query, options.condition, **settings, progress=update)
    show(options, lambda: _format_hits(hits), hits.to_dict, lambda: hits.to_frame().to_csv(index=False))
    if not options.json and not options.csv:
        tell(*hits.notes)


def _format_hits(hits: Hits) -> str:
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
        lines.append("None is close: the best hit is no more alike than many pairs that differ.")
    return "\n".join(lines)
