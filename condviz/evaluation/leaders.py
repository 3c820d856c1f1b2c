"""Which shipped model to use for what, read from the stored benchmark; loads no model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np

from condviz.errors import DataError
from condviz.evaluation.scoreboard import read_board
from condviz.paths import ASSETS
from condviz.types import ModelInfo

OVERALL = (
    "test", "unseen_phrasings", "unseen_aspects", "own_aspects", "unseen_domains", "tables", "tables_unseen_domains",
)  # fmt: skip
"""Parts of the benchmark whose mean decides which model is best."""


@cache
def pair_accuracies() -> dict[str, dict[str, float]]:
    """Read the pair accuracy (%) of each model on each part; empty where no benchmark is stored."""
    try:
        models = read_board(ASSETS / "benchmark.json").models
    except DataError:
        return {}
    return {
        name: {part: one.pair_accuracy.value for part, one in found.parts.items()} for name, found in models.items()
    }


def mean_accuracy(parts: Mapping[str, float]) -> float:
    """Return the mean pair accuracy (%) over `OVERALL`; NaN where a part is missing."""
    return float(np.mean(np.array([parts.get(part) for part in OVERALL], dtype=float)))


def best_encoder(infos: Iterable[ModelInfo]) -> str:
    """Return the name of the trained encoder with the highest mean accuracy; "" where none is measured.

    A cross-encoder does not count: it has no vectors, so the map and the search could not follow.
    """
    return _best(info for info in infos if info.trained and info.kind != "cross" and not info.graph)


def strengths(infos: Iterable[ModelInfo]) -> dict[str, str]:
    """Return what each model is good for, in a few words; models without a distinction are left out."""
    infos = [info for info in infos if info.trained]
    found = pair_accuracies()
    texts: dict[str, list[str]] = {}

    def crown(part: str, text: str) -> None:
        scored = {info.name: found.get(info.name, {}).get(part) for info in infos}
        measured = {name: value for name, value in scored.items() if value is not None}
        if measured:
            texts.setdefault(max(measured, key=measured.__getitem__), []).append(text)

    if best := best_encoder(infos):
        texts[best] = ["best encoder overall"]
    crown("csts", "orders conditions most as people do")
    crown("tables", "best on free conditions")
    crown("cebab", "best on reviews")
    if fastest := _best(info for info in infos if info.kind == "tri"):
        texts.setdefault(fastest, []).append("one pass for any number of conditions")
    return {name: ", ".join(found_for) for name, found_for in texts.items()}


def _best(infos: Iterable[ModelInfo]) -> str:
    """Return the name with the highest mean accuracy; "" where none is measured on all parts."""
    found = pair_accuracies()
    means = {info.name: mean_accuracy(found.get(info.name, {})) for info in infos}
    return max((name for name, mean in means.items() if mean == mean), key=means.__getitem__, default="")
