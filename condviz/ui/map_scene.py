"""Write assets/map_scene.json: the map that its tab shows before any model has loaded.

Three conditions with 20 sentences each, after Hyper-CL, figure 4. Run it again whenever the model changes:
python -m condviz.ui.map_scene
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from condviz.errors import CondvizError, ConfigError
from condviz.ui.assets import ASSETS
from condviz.ui.engine import Engine

PREFERRED = ("hyper-cl", "tri-hadamard", "csr", "case", "bi-encoder")
"""The first of these that is there is shown; the paper's own first."""


def choose_model(names: Sequence[str]) -> str:
    """Give the model of the first map: the first of `PREFERRED` that is there.

    Raises:
        ConfigError: If none is there.
    """
    for name in PREFERRED:
        if name in names:
            return name
    raise ConfigError(f"None of {', '.join(PREFERRED)} is there. Name a model with --model.")


def compute(engine: Engine, name: str) -> dict[str, Any]:
    """Make the map with a real model and give its record."""
    from condviz.analysis.map_builder import build_map
    from condviz.analysis.scene_points import scene_points

    return build_map(engine.load(name), scene_points()).to_dict()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m condviz.ui.map_scene", description=__doc__)
    parser.add_argument("--model", help=f"the model (default: the first there is of {', '.join(PREFERRED)})")
    parser.add_argument("--out", type=Path, default=ASSETS / "map_scene.json")
    options = parser.parse_args(arguments)
    engine = Engine()
    try:
        name = options.model or choose_model(engine.list_models())
        if name != PREFERRED[0] and not options.model:
            sys.stderr.write(f"{PREFERRED[0]} is not there; this is {name}. Run it again when it is.\n")
        record = compute(engine, name)
    except CondvizError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    options.out.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{options.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
