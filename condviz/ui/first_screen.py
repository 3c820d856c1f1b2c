"""Compute what the Compare, the Map and the Links tab show before any model has loaded.

Run it again whenever the default model or the model of the small graph changes: python -m condviz.ui.first_screen
"""

from __future__ import annotations

import json
import sys

from condviz.analysis.compare import compare
from condviz.analysis.links import describe_entity
from condviz.analysis.maps import build_map
from condviz.analysis.points import scene_points
from condviz.data.examples import load_examples
from condviz.data.files import write_text
from condviz.data.kg_formats import EVERYDAY
from condviz.models.registry import link_models, load
from condviz.paths import ASSETS
from condviz.ui.links import START
from condviz.ui.pool import ModelPool


def main() -> None:
    """Score the first example of the gallery with the default model, in float32, and store the result."""
    example = load_examples()[0]
    model = load(ModelPool().default, precision="float32")
    result = compare(model, example.sentence1, example.sentence2, example.conditions, words=True)
    path = ASSETS / "first_screen.json"
    write_text(path, json.dumps(result.to_dict(), ensure_ascii=False, indent=1) + "\n")
    sys.stdout.write(f"{path}: {model.info.name}\n")
    path = ASSETS / "map_scene.json"
    write_text(path, json.dumps(build_map(model, scene_points()).to_dict(), ensure_ascii=False) + "\n")
    sys.stdout.write(f"{path}: {model.info.name}\n")
    links()


def links() -> None:
    """Ask about the first example of the Links tab, and store the answers."""
    model = load(link_models(EVERYDAY)[0], precision="float32")
    path = ASSETS / "links_screen.json"
    write_text(path, json.dumps(describe_entity(model, START).to_dict(), ensure_ascii=False, indent=1) + "\n")
    sys.stdout.write(f"{path}: {model.info.name}\n")


if __name__ == "__main__":
    main()
