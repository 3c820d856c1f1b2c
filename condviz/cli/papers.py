"""The command `papers`."""

from __future__ import annotations

import argparse
import sys

from condviz.cli.terminal import format_table, tell
from condviz.errors import ConfigError

ABOUT = (
    "List every table and figure of the papers: what it needs, and how many of its rows have been measured in the "
    "paper's own setting and on open data with MiniLM."
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser("papers", help="tables of the papers beside ours", description=ABOUT)
    parser.add_argument("--write", action="store_true", help="write all tables into docs/papers.md")
    parser.set_defaults(command=run, action="list")
    actions = parser.add_subparsers(metavar="show | run")
    for name, text in (("show", "print a table"), ("run", "carry out what is missing of a table, then print it")):
        action = actions.add_parser(name, help=text, description=text.capitalize() + ".")
        action.add_argument(
            "table", metavar="PAPER:TABLE", help="for instance hyper-cl:table-5; a paper alone is all of its"
        )
        action.add_argument("--write", action="store_true", help="write all tables into docs/papers.md, too")
        action.set_defaults(action=name)
    # Only `run` measures.
    action.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="trainings of each row, from seed 42 (default: 1)"
    )
    action.add_argument("--row", default="", metavar="TEXT", help="only rows with this text in their name")
    action.add_argument(
        "--paper", action="store_true", help="the paper's own data and encoder, not MiniLM on open data"
    )
    action.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")


def run(options: argparse.Namespace) -> None:
    """List, print or carry out; tables go to standard output, what comes out of each run to standard error."""
    from condviz.evaluation import papers
    from condviz.evaluation.scoreboard import fill_document

    if options.action == "list":
        print(_listing())
    else:
        found = papers.find_tables(options.table)
        if options.action == "run":
            _carry_out(found, options)
        results = papers.read_results()
        print("\n\n".join(f"{one.title}, {two.title}\n\n{papers.format_table(results, two)}" for one, two in found))
    if options.write:
        fill_document(papers.format_page(papers.read_results()), papers.PAGE, marks=papers.MARKS)


def _carry_out(found: list, options: argparse.Namespace) -> None:
    from condviz.training.papers import run_table

    setting = "paper" if options.paper else "here"
    if options.seeds < 1:
        raise ConfigError(f"--seeds is {options.seeds}, allowed is 1 or more. The papers take 3, the t-test of CSR 10.")
    chosen = [table for _, table in found if table.runs(setting)] if len(found) > 1 else [found[0][1]]
    for table in chosen:
        run_table(table, setting=setting, seeds=options.seeds, row=options.row, device=options.device, report=_tell)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _listing() -> str:
    from condviz.evaluation import papers

    results = papers.read_results()
    rows = []
    for paper in papers.papers():
        for table in paper.tables:
            done = (papers.format_state(results, table, setting) for setting in ("paper", "here"))
            takes = (text or papers.NONE for text in (table.needs, table.time))
            rows.append((f"{paper.id}:{table.id}", table.title, *done, *takes))
    tell("`paper`: rows measured with the paper's data and encoder. `here`: on open data with MiniLM.")
    return format_table(("table", "what", "paper", "here", "needs", "time"), rows, right=())
