"""All benchmarks in one run: python -m benchmarks [--json FILE] [--docs].

python -m benchmarks models | gallery | links | papers ...   # how well models do; --help tells the options of each
python -m benchmarks deploy OWNER/NAME                       # make or update a Space of this checkout
python -m benchmarks corpora | tables                        # what ratings give away; rules of the scene tables
python -m benchmarks engines                                 # what computes an encoder fastest on this machine
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks import corpora, deploy, engines, links, load, memory, models, page, speed, tables
from benchmarks.common import options, report
from benchmarks.papers import command as papers
from condviz.cli import main as cli

COMMANDS = {
    "models": models, "gallery": models, "links": links, "papers": papers, "deploy": deploy, "corpora": corpora,
    "tables": tables,
}  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the commands that measure models, and of those that check and send what ships."""
    parser = cli.Parser(prog="python -m benchmarks", description="How well models do; what ships.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in dict.fromkeys(COMMANDS.values()):
        module.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; without one everything that is timed, as one table."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in COMMANDS:
        return cli.main(words, parser=build_parser)
    if words[:1] == ["engines"]:
        engines.main(words[1:])
        return 0
    chosen = options(__doc__).parse_args(words)
    # Fresh processes first: nothing of this one's memory or threads is in their way yet.
    results = [*memory.run(), *page.run(), *speed.run(), *load.run()]
    report(results, chosen, "benchmark")
    return 0


if __name__ == "__main__":
    sys.exit(main())
