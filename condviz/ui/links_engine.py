"""The calls that the Links tab makes into the core; heavy modules are imported inside the functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condviz.paths import ASSETS

if TYPE_CHECKING:
    from condviz.data.kg import Graph
    from condviz.types import ModelInfo
    from condviz.ui.links_predictor import LinkPredictor

EVERYDAY = "everyday"
TITLES = {EVERYDAY: "Everyday world (small, ships here)", "wn18rr": "WN18RR", "fb15k237": "FB15k-237"}
NOWHERE = Path(os.devnull)
"""A folder that nothing can be written to: vectors of uploaded graphs stay in memory."""


def _graphs() -> list[str]:
    from condviz.data.corpora import data_folder

    return [name for name in TITLES if name == EVERYDAY or (data_folder() / name / "train.txt").is_file()]


def _load(name: str) -> Graph:
    from condviz.data.kg_formats import load_graph

    return load_graph(str(ASSETS / "graph" / EVERYDAY) if name == EVERYDAY else name)


def _read(folder: Path) -> Graph:
    from condviz.data.kg_formats import read_tables

    return read_tables(folder)


def _predictor(graph: Graph, model: Any, keep: bool) -> LinkPredictor:  # noqa: ANN401 - its module imports torch
    from condviz.ui.links_predictor import LinkPredictor

    return LinkPredictor(graph, model, folder=None if keep else NOWHERE)


def _models() -> list[str]:
    from condviz.models.registry import link_models

    return link_models()


def _describe(name: str) -> ModelInfo:
    from condviz.models.registry import describe

    return describe(name)


def _load_model(name: str) -> Any:  # noqa: ANN401 - a ConditionalEncoder; its module imports torch
    from condviz.models.registry import load

    return load(name)


@dataclass(frozen=True)
class LinksEngine:
    """What the tab needs from the core. Tests put a small stand-in here.

    Attributes:
        graphs: Names of the graphs that are on this machine, keys of `TITLES`.
        load: Name to Graph.
        read: Folder with three tables to Graph.
        predictor: Graph, model, and whether vectors may be kept on disk, to a LinkPredictor.
        models: Names of the models that were trained to predict links.
        describe: Name of one of them to its description.
        load_model: Name of one of them to the model; may raise CondvizError.
    """

    graphs: Callable[[], list[str]] = _graphs
    load: Callable[[str], Graph] = _load
    read: Callable[[Path], Graph] = _read
    predictor: Callable[[Graph, Any, bool], LinkPredictor] = _predictor
    models: Callable[[], list[str]] = _models
    describe: Callable[[str], ModelInfo] = _describe
    load_model: Callable[[str], Any] = _load_model

    def missing(self) -> list[str]:
        """Give the names of the graphs that are not on this machine."""
        here = self.graphs()
        return [name for name in TITLES if name not in here]
