"""The calls that the Map tab makes into the core; heavy modules are imported inside the functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from condviz.analysis.map_points import MapPoints


def _embed(model: Any, points: MapPoints, progress: Any = None) -> Any:  # noqa: ANN401 - its module imports torch
    from condviz.analysis.map_builder import embed_points

    return embed_points(model, points, progress=progress)


def _describe(model: Any, conditions: Sequence[str]) -> dict[str, Any] | None:  # noqa: ANN401
    from condviz.analysis.condition_matrices import describe_matrices

    return describe_matrices(model, conditions)


def _scene(names: Sequence[str], seed: int) -> MapPoints:
    from condviz.analysis.scene_points import scene_points

    return scene_points(names, seed=seed)


def _warm_up() -> None:
    from condviz.analysis.projection import warm_up

    warm_up()


@dataclass(frozen=True)
class MapEngine:
    """What the tab needs from the core. Tests put a small stand-in here.

    Attributes:
        embed: Model, points, progress to an Embedded.
        describe: Model and conditions to what is known of W_c, or None.
        scene: Names of aspects and a seed to points.
        warm_up: Compiles what UMAP needs.
    """

    embed: Callable[..., Any] = _embed
    describe: Callable[..., dict[str, Any] | None] = _describe
    scene: Callable[[Sequence[str], int], MapPoints] = _scene
    warm_up: Callable[[], None] = _warm_up
