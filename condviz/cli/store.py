"""The commands `search` and `store`: encode a corpus once, search it, and see what conditions do to it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.options import add_command, format_table, progress_bar, show, tell
from condviz.errors import DataError
from condviz.store.build import LEFT_OUT, append_store, build_store

if TYPE_CHECKING:
    from condviz.analysis.answers import Hits
    from condviz.analysis.groups import CrossTable, Groups
    from condviz.analysis.sorting import SortingConditions, Twins
    from condviz.store.disk import Store


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
    source = shared.of_function(build_store)
    source.add_argument("source", metavar="SOURCE", help=SOURCES)
    parents = source, shared.form()
    build = add_command(actions, "build", run_build, shared.models("hyper-cl", several=False), *parents)
    build.add_argument("--out", required=True, metavar="FOLDER", help="the store")
    append = add_command(actions, "append", run_append, _stored_model(), *parents)
    append.add_argument("store", metavar="FOLDER", help="the store")
    add_command(actions, "info", run_info, shared.form()).add_argument("store", metavar="FOLDER")
    _add_analyses(actions)


def _stored_model() -> argparse.ArgumentParser:
    return shared.models("the one whose vectors are stored", several=False)


def _add_analyses(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from condviz.analysis.groups import cross_table, group_by
    from condviz.analysis.sorting import find_twins, rank_sorting_conditions

    parts = (
        ("groups", group_by, _groups, ["CONDITION"], "divide the texts by a condition"),
        ("cross", cross_table, _cross, ["CONDITION", "OTHER"], "divide by two conditions; count how the groups meet"),
        ("sorts", rank_sorting_conditions, _sorts, [], "rank conditions by how clearly they divide the texts"),
        ("twins", find_twins, _twins, ["ALIKE", "DIFFERENT"], "find pairs alike in one respect, different in another"),
    )
    for name, function, lay_out, conditions, text in parts:
        parents = [_stored_model(), shared.of_function(function), shared.form(csv="print a table with all rows")]
        parser = actions.add_parser(name, help=text, parents=parents)
        parser.add_argument("store", metavar="STORE", help="folder of the store, or scenes for the sentences that ship")
        for condition in conditions:
            parser.add_argument(condition.lower(), metavar=condition, help='for instance "the sport"')
        if not conditions:
            text = "one to try; may be repeated (default: those of the library)"
            parser.add_argument("--condition", action="append", help=text)
        asked = [condition.lower() for condition in conditions] or ["condition"]
        parser.set_defaults(command=run_analysis, function=function, lay_out=lay_out, asked=asked)


# ---- what a store holds ----------------------------------------------------------------------------------------------
def run_build(options: argparse.Namespace) -> None:
    """Encode the texts of a file into a store on disk.

    Stopped or killed, it goes on where it was when the same command is run again.
    """
    store = _encode(build_store, options, options.out)
    if store.meta.left_out:
        listed = Path(options.out) / LEFT_OUT
        more = f" Those that cannot be used are listed in {listed}." if listed.is_file() else ""
        tell(f"Left out for lack of a usable text: {store.meta.left_out:,} of the rows.{more}")
    run_info(argparse.Namespace(store=options.out, json=options.json))


def run_append(options: argparse.Namespace) -> None:
    """Add the texts of another file to a store.

    They are encoded by the model of its vectors; a text that the store holds already is not encoded again. Stopped or
    killed, it goes on where it was.
    """
    from condviz.store.disk import open_store

    before = len(open_store(options.store))
    store = _encode(append_store, options, options.store)
    tell(f"{len(store) - before:,} rows were added.")
    run_info(options)


def _encode(fill: Callable[..., Store], options: argparse.Namespace, folder: str) -> Store:
    settings = shared.given(options, build_store) | {"model": options.model}
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
Table = tuple[Sequence[str], Sequence[Sequence[str]], Sequence[int], Sequence[str]]
"""Head, rows, columns of numbers, notes."""


def run_analysis(options: argparse.Namespace) -> None:
    """Ask a corpus about conditions, and print the answer."""
    asked = [getattr(options, name) for name in options.asked]
    with progress_bar("reading", "texts") as update:
        settings = shared.given(options, options.function) | {"model": options.model, "progress": update}
        found = options.function(options.store, *asked, **settings)
    head, rows, right, notes = options.lay_out(found, asked)
    text = "\n".join([format_table(head, rows[:SHOWN], right=right), *notes])
    show(options, lambda: text, found.to_dict, lambda: found.to_frame().to_csv(index=False))


def _groups(found: Groups, asked: Sequence[str]) -> Table:
    rows = [(str(n), f"{one.size:,}", ", ".join(one.words), one.medoid) for n, one in enumerate(found.groups, 1)]
    left_over = [f"{found.left_over.size:,} texts belong to no group."] if found.left_over else []
    pure = (
        f"{name}: {share:.0%} have the most frequent value of their group, {chance:.0%} without groups"
        for name, (share, chance) in found.purity.items()
    )
    notes = [*left_over, f"silhouette {found.silhouette:.2f}", *pure]
    return ("group", "texts", "words", "in the middle"), rows, (1,), notes


def _cross(found: CrossTable, asked: Sequence[str]) -> Table:
    head = (" / ".join(asked), *(group.name for group in found.second.groups))
    pairs = zip(found.first.groups, found.counts, strict=True)
    rows = [(group.name, *(f"{count:,}" for count in counts)) for group, counts in pairs]
    return head, rows, (1,), [f"adjusted mutual information {found.information:.2f}"]


def _sorts(found: SortingConditions, asked: Sequence[str]) -> Table:
    rows = []
    for item in found.conditions:
        figures = f"{item.silhouette:.3f}", f"{item.random:.3f}", f"{item.deviations:+.1f}", f"{item.applies:.0%}"
        rows.append((item.condition, *figures))
    head = ("condition", "silhouette", "random matrices", "deviations above", "texts that tell it")
    return head, rows, range(1, 5), []


def _twins(found: Twins, asked: Sequence[str]) -> Table:
    rows = [(f"{pair.alike:+.1f}", f"{pair.different:+.1f}", *pair.texts) for pair in found.pairs]
    return (*asked, "text", "text"), rows, (0, 1), []


# ---- search ----------------------------------------------------------------------------------------------------------


def _add_search(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from condviz.analysis.search import search

    forms = shared.form("print JSON, as the /search endpoint returns it", "print one row per hit with all columns")
    parser = add_command(commands, "search", run_search, _stored_model(), shared.of_function(search), forms)
    parser.add_argument("store", metavar="STORE", help="folder of the store, or scenes for the sentences that ship")
    parser.add_argument("query", metavar="QUERY", help="query text")
    parser.add_argument("--condition", help='for instance "the sport" (default: plain search)')


def run_search(options: argparse.Namespace) -> None:
    """Search a corpus under a condition.

    Find the texts of a store (see: condviz store build) that are most like a query. A model that reads sentence and
    condition together re-ranks the nearest 1,000.
    """
    from condviz.analysis.search import search

    with progress_bar("scoring", "texts") as update:
        settings = shared.given(options, search) | {"model": options.model, "progress": update}
        hits = search(options.store, options.query, options.condition, **settings)
    show(options, lambda: _format_hits(hits), hits.to_dict, lambda: hits.to_frame().to_csv(index=False))
    if not options.json and not options.csv:
        tell(*hits.notes)


def _format_hits(hits: Hits) -> str:
    from condviz.plots.search import words_of

    read = any(hit.words for hit in hits.hits)
    head = ["rank", "match", "score", "percentile", *(["plain rank"] if hits.condition else []), "row"]
    rows = []
    for rank, hit in enumerate(hits.hits, start=1):
        cells = [str(rank), "yes" if hit.good else "no", f"{hit.score:.3f}", f"{hit.percentile:.0f}"]
        rows.append([*cells, *([f"{hit.plain_rank:,}"] if hits.condition else []), f"{hit.row:,}"])
        rows[-1] += [*([", ".join(words_of(hit))] if read else []), hit.text]
    names = [*head, *(["carried by"] if read else []), "text"]
    lines = [format_table(names, rows, right=range(len(head)))]
    if hits.hits and not hits.matches:
        lines.append("None is close: the best hit is no more alike than many other pairs of texts.")
    return "\n".join(lines)
