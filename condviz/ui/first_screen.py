"""Compute what the Compare, the Map and the Links tab show before any model has loaded.

Run it again whenever the default model or the model of the small graph changes: python -m condviz.ui.first_screen
"""

from __future__ import annotations

import json
import sys
from typing import Any

from condviz.analysis.compare import compare
from condviz.analysis.links import describe_entity
from condviz.analysis.maps import EmbeddingMap, build_map
from condviz.analysis.points import scene_points
from condviz.data.examples import load_examples
from condviz.data.files import write_text
from condviz.data.kg_formats import EVERYDAY
from condviz.models.registry import link_models, load
from condviz.paths import ASSETS
from condviz.types import Result
from condviz.ui.links import START
from condviz.ui.map.view import screen
from condviz.ui.markup import read_asset
from condviz.ui.pool import ModelPool


def main() -> None:
    """Compute with the default model, and with that of the small graph, in float32, and store the results."""
    example, model = load_examples()[0], load(ModelPool().default, precision="float32")
    pair = compare(model, example.sentence1, example.sentence2, example.conditions, words=True)
    _store("first_screen", model, pair)
    scene = build_map(model, scene_points())
    _store("map_scene", model, scene, indent=None)
    _write("map_screen", screen(stored_map()), model)
    model = load(link_models(EVERYDAY)[0], precision="float32")
    _store("links_screen", model, describe_entity(model, START))


def stored_map() -> EmbeddingMap:
    """Read the map of the first screen as it is stored: rounded, which moves a label now and then."""
    return EmbeddingMap.from_dict(read_asset("map_scene.json"))


def _store(name: str, model: Any, result: Result, indent: int | None = 1) -> None:  # noqa: ANN401 - a loaded model
    _write(name, result.to_dict(), model, indent)


def _write(name: str, content: Any, model: Any, indent: int | None = 1) -> None:  # noqa: ANN401 - JSON; a loaded model
    path = ASSETS / f"{name}.json"
    write_text(path, json.dumps(content, ensure_ascii=False, indent=indent) + "\n")
    sys.stdout.write(f"{path}: {model.info.name}\n")


if __name__ == "__main__":
    main()
