"""The command `models`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from condviz.cli import options as shared
from condviz.cli.terminal import format_table
from condviz.errors import CheckpointError

if TYPE_CHECKING:
    from condviz.types import ModelInfo

HEAD = ("name", "method", "kind", "trained", "added parameters", "source", "paper")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "models",
        parents=[shared.json_flag()],
        help="list the models",
        description="List the models that can be loaded.",
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Print the models of sentences, then those of knowledge graphs."""
    from condviz.models.registry import describe, link_models, list_models

    infos, broken = [], {}
    for name in (*list_models(), *link_models()):
        try:
            infos.append(describe(name))
        except CheckpointError as error:
            broken[name] = str(error)
    if options.json:
        rows = [_to_dict(info) for info in infos] + [{"name": name, "broken": why} for name, why in broken.items()]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    rows = [
        (info.name, info.title, info.kind, "yes" if info.trained else "no", f"{info.added_parameters:,}", info.source,
         info.reference)
        for info in infos
    ]  # fmt: skip
    print(format_table(HEAD, rows, right={4}))
    for name, why in broken.items():
        print(f"{name} is damaged: {why}")


def _to_dict(info: ModelInfo) -> dict:
    """Return JSON that any parser reads: an infinite end of the score range becomes null."""
    finite = [None if abs(end) == float("inf") else end for end in info.score_range]
    return {**vars(info), "score_range": finite}
