"""Write assets/links_scene.json: the answer that the Links tab shows before any model has loaded.

Run it again whenever the model or the graph changes: python -m condviz.ui.links_scene
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from condviz.errors import CondvizError
from condviz.ui.assets import ASSETS
from condviz.ui.engine import Engine
from condviz.ui.links_answer import Record
from condviz.ui.links_service import LinksService
from condviz.ui.links_state import LinksState
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service


def compute(engine: Engine, name: str = "") -> Record:
    """Answer the first example of the small graph with a real model.

    Args:
        engine: The calls into the core.
        name: Of the model; "" takes the one that the page would.
    """
    links = LinksService(Service(engine, ModelPool(engine.list_models(), engine.load)), engine.links)
    return links.answer(links.check(links.complete(LinksState(model=name))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m condviz.ui.links_scene", description=__doc__)
    parser.add_argument("--model", default="", help="the model (default: the one that the page chooses)")
    parser.add_argument("--out", type=Path, default=ASSETS / "links_scene.json")
    options = parser.parse_args(arguments)
    try:
        record = compute(Engine(), options.model)
    except CondvizError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    record["model"]["path"] = ""  # a folder of this machine is nobody else’s business
    options.out.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{options.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
