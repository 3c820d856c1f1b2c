"""The command `papers`: the papers' tables beside ours, and what architectures cost on any table."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from condviz.cli import options as shared
from condviz.cli.options import format_table, tell
from condviz.errors import ConfigError, require
from condviz.paths import is_folder

MB = 2**20
ABOUT = (
    "List every table and figure of the papers: what it needs, and how many of its rows have been measured in the "
    "paper's own setting, and here: on C-STS re-annotated and on our texts."
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser("papers", help="tables of the papers beside ours", description=ABOUT)
    parser.add_argument(
        "--write", action="store_true", help="write all tables into docs/papers.md and for the page of the models"
    )
    parser.set_defaults(command=run, action="list", html=None)
    actions = parser.add_subparsers(metavar="show | run | costs")
    for name, text in (("show", "print a table"), ("run", "carry out what is missing of a table, then print it")):
        parents = [shared.files(html="draw what was measured"), *([shared.device(None)] if name == "run" else [])]
        action = actions.add_parser(name, parents=parents, help=text, description=text.capitalize() + ".")
        table = "for instance hyper-cl:table-5; a paper alone is all of its"
        action.add_argument("table", metavar="PAPER:TABLE", help=table)
        action.add_argument(
            "--write", action="store_true", help="write all tables into docs/papers.md and for the page, too"
        )
        action.set_defaults(action=name)
    # Only `run` measures.
    seeds = "trainings of each row, from seed 42 (default: 1)"
    action.add_argument("--seeds", type=int, default=1, metavar="N", help=seeds)
    action.add_argument("--row", default="", metavar="TEXT", help="only rows with this text in their name")
    text = "the paper's own data and encoder, not MiniLM on open data"
    action.add_argument("--paper", action="store_true", help=text)
    costs = actions.add_parser(
        "costs",
        parents=[shared.device("float32")],
        help="hits, memory and time of every architecture on a table or graph",
        description="Count cache hits and memory of every architecture on rated rows or a graph, and estimate its time "
        "with caches that start empty (online) or are full (offline): Hyper-CL's tables 3 and 4, CSR's figure 4 (b).",
    )
    costs.add_argument("table", metavar="DATA", help="a CSV file, a part of a corpus such as scenes:test, or a graph")
    costs.add_argument("--backbone", metavar="HUB_ID_OR_FOLDER", help="the encoder (default: MiniLM)")
    costs.add_argument("--rank", type=int, default=64, metavar="K", help="of the low-rank hypernetwork (default: 64)")
    costs.add_argument("--calls", type=int, default=50, metavar="N", help="calls that are timed (default: 50)")
    costs.set_defaults(command=run_costs)


def run(options: argparse.Namespace) -> None:
    """List, print or carry out; tables go to standard output, what comes out of each run to standard error."""
    from benchmarks.papers import page
    from benchmarks.papers import tables as papers

    if options.html:
        require("plotly", "viz")  # now, and not after hours of training
    if options.action == "list":
        print(_listing())
    else:
        found = papers.find_tables(options.table)
        if options.action == "run":
            _carry_out(found, options)
        results = papers.read_results()
        print("\n\n".join(f"{one.title}, {two.title}\n\n{page.format_table(results, two)}" for one, two in found))
    if options.html:
        _draw(found, options.html)
    if options.write:
        page.write_pages(papers.read_results())


def run_costs(options: argparse.Namespace) -> None:
    """Print what every architecture costs."""
    from benchmarks.papers.costs import count_costs, count_csr, graph_demand, row_demand, time_costs
    from condviz.data.kg_formats import EVERYDAY, LARGE, load_graph
    from condviz.encoder import DEFAULT_BACKBONE
    from condviz.encoder.pretrained import load_backbone
    from condviz.evaluation.dataset import open_data

    if options.table in (EVERYDAY, *LARGE) or is_folder(options.table):
        demand = graph_demand(load_graph(options.table), samples=options.calls)
    else:
        demand = row_demand(open_data(options.table, max_rows=None).pairs)
    backbone = load_backbone(options.backbone or DEFAULT_BACKBONE, device=options.device, precision=options.precision)
    full = count_costs(demand, backbone.hidden_size)
    low = count_costs(demand, backbone.hidden_size, rank=options.rank)
    rows = []
    for name, (online, offline) in time_costs(demand, backbone, rank=options.rank, calls=options.calls).items():
        if name.startswith("csr"):
            cost = count_csr(demand, backbone, int(name.split()[1]))
        else:
            cost = (low if "rank" in name else full).get(name.partition(",")[0], full["tri-encoder"])
        times = (f"{seconds:,.2f}" if seconds is not None else "-" for seconds in (online, offline))
        counts = (f"{cost.requests:,}", f"{cost.sequences:,}", f"{100 * cost.hit_rate:.2f}", f"{cost.bytes / MB:,.2f}")
        rows.append((name, *counts, *times))
    head = ("architecture", "requests", "encoded", "hits, %", "cache, MB", "online, s", "offline, s")
    print(format_table(head, rows, right=set(range(1, 7))))
    tell(f"Batch 1, {backbone.name} on {backbone.device}; times of {options.calls} calls times the counts.")


def _draw(found: list, path: str) -> None:
    from benchmarks.papers.page import plot_table
    from benchmarks.papers.tables import read_results
    from condviz.data.files import write_text

    results = read_results()
    figures = [plot_table(results, table) for _, table in found]
    if not any(figure.data for figure in figures):
        raise ConfigError(f"Nothing of {found[0][1].title} has been measured, so there is nothing to draw.")
    drawn = [figure for figure in figures if figure.data]
    parts = [figure.to_html(full_html=False, include_plotlyjs=number == 0) for number, figure in enumerate(drawn)]
    write_text(path, "<!doctype html><meta charset=utf-8>" + "\n".join(parts))


def _carry_out(found: list, options: argparse.Namespace) -> None:
    from benchmarks.papers.runs import run_table

    setting = "paper" if options.paper else "here"
    if options.seeds < 1:
        raise ConfigError(f"--seeds is {options.seeds}, allowed is 1 or more. The papers take 3, the t-test of CSR 10.")
    chosen = [table for _, table in found if table.runs(setting)] if len(found) > 1 else [found[0][1]]
    for table in chosen:
        settings = {"setting": setting, "seeds": options.seeds, "row": options.row, "device": options.device}
        run_table(table, **settings, report=partial(print, file=sys.stderr))


def _listing() -> str:
    from benchmarks.papers import tables as papers

    results = papers.read_results()
    rows = []
    for paper in papers.papers():
        for table in paper.tables:
            done = (papers.format_state(results, table, setting) for setting in ("paper", "here"))
            takes = (text or papers.NONE for text in (table.needs, table.time))
            rows.append((f"{paper.id}:{table.id}", table.title, *done, *takes))
    tell("`paper`: rows measured with the paper's data and encoder. `here`: on C-STS re-annotated or our texts.")
    return format_table(("table", "what", "paper", "here", "needs", "time"), rows, right=())
