"""Scores of the shipped models on the test part of the scenes, so that the page has something to show at once.

`benchmarks.stored errors` scores them again.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from condviz.analysis.errors.findings import with_training_of
from condviz.analysis.errors.study import Study, judge, make_study
from condviz.errors import DataError
from condviz.evaluation.dataset import Dataset, corpus_dataset
from condviz.paths import ASSETS

FILE = ASSETS / "error_scores.json"
CORPUS, PART = "scenes", "test"


@dataclass(frozen=True)
class Stored:
    """Scores of one model."""

    weights: str
    """Hash of the weights that gave them."""
    scores: np.ndarray
    """(p,) float32, in the order of the rows."""


def read_stored(dataset: Dataset) -> dict[str, Stored]:
    """Return stored scores by the name of the model; none where they belong to other rows, or there is no file."""
    if not FILE.is_file():
        return {}
    content = json.loads(FILE.read_text(encoding="utf-8"))
    if content["rows"] != dataset.digest:
        return {}
    return {name: Stored(entry["weights"], _unpack(entry["scores"])) for name, entry in content["models"].items()}


@lru_cache(maxsize=1)
def stored_study(model: str) -> Study:
    """Return a study of a shipped model on the test part of the scenes, made of its stored scores."""
    dataset = with_training_of(corpus_dataset(CORPUS, PART), model)
    found = read_stored(dataset)
    if model not in found:
        raise DataError(f"No scores of {model[:40]!r} are stored. There are: {', '.join(found)}.")
    return make_study(dataset, judge(dataset, model, found[model].scores))


def _unpack(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32)
