"""The calls of the Map tab without torch: vectors from a hash, groups that part under their condition."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from condviz.analysis.map_builder import Embedded, start_map
from condviz.analysis.map_points import MapPoints
from condviz.analysis.map_result import EmbeddingMap
from condviz.errors import DataError
from condviz.ui.map_engine import MapEngine
from tests.ui.fakes import make_info

SIZE = 12


def vector(*texts: str) -> np.ndarray:
    """Give a vector that depends on all texts."""
    return np.random.default_rng(zlib.crc32("\x1f".join(texts).encode())).standard_normal(SIZE)


def embed(model: Any, points: MapPoints, progress: Any = None) -> Embedded:
    """As condviz.analysis.map_builder.embed_points."""
    if any("broken" in text for text in points.texts):
        raise DataError("The model gives a vector that is not finite for 'broken'. Leave the sentence out.")
    before = np.stack([vector(text) for text in points.texts])
    after = before + 5 * np.stack([vector(condition) for condition in points.conditions])
    return Embedded(before.astype(np.float32), after.astype(np.float32))


def describe(model: Any, conditions: tuple[str, ...]) -> dict[str, Any] | None:
    """As condviz.analysis.condition_matrices.describe_matrices."""
    if model.info.method != "hyper-cl":
        return None
    number = len(conditions)
    return {
        "conditions": list(conditions),
        "left_out": 0,
        "spectra": [[1.0, 0.5, 0.1]] * number,
        "norms": [0.05] * number,
        "variance": 0.0,
        "rank": [2] * number,
        "distances": (1 - np.eye(number)).tolist(),
        "places": [[float(i), float(i % 2)] for i in range(number)] if number > 2 else [],
    }


def scene(names: tuple[str, ...], seed: int) -> MapPoints:
    """As condviz.analysis.scene_points.scene_points: eight sentences per condition, two values each."""
    rows = [(f"Sentence {i} of {name}, draw {seed}.", f"The {name}", "xy"[i % 2]) for name in names for i in range(8)]
    texts, conditions, values = zip(*rows, strict=True)
    return MapPoints(texts, conditions, {"value": values})


def make_map_engine() -> MapEngine:
    """Give the calls."""
    return MapEngine(embed, describe, scene, lambda: None)


def make_map(names: tuple[str, ...] = ("sport", "mood", "<b>place</b>")) -> EmbeddingMap:
    """Make a stored map."""
    points = scene(names, 0)
    info = make_info("hyper-cl")
    weights = describe(type("Model", (), {"info": info}), points.groups)
    return start_map(info, points, embed(None, points), weights=weights)
