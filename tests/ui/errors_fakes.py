"""The calls of the Errors tab over rows with known faults: no model, no corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condviz.analysis.errors.rewrites import Neighbour
from condviz.analysis.errors.stored import Stored
from condviz.errors import DataError
from condviz.evaluation.dataset import Dataset
from condviz.types import Pair
from condviz.ui.errors_engine import ErrorsEngine
from tests.analysis.errors.toy import toy_dataset, toy_scores
from tests.ui.fakes import FakeModel


def dataset(corpus: str, part: str) -> Dataset:
    """Give the toy for "scenes:test", smaller rows that nobody has scored for "scenes:dev"."""
    if (corpus, part) == ("scenes", "test"):
        return toy_dataset()
    if (corpus, part) == ("scenes", "dev"):
        return toy_dataset(30, seed=3)
    raise DataError(f"There is no part {part!r} of {corpus}. There are: test, dev.")


def stored(rows: Dataset) -> dict[str, Stored]:
    """Give scores of two models for the toy."""
    if len(rows.pairs) != len(toy_dataset().pairs):
        return {}
    return {name: Stored(f"weights of {name}", scores) for name, scores in toy_scores(rows).items()}


def score(model: FakeModel, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Score by hash."""
    return np.array([model.value(*row) for row in zip(*texts, strict=True)], dtype=np.float32)


def neighbours(model: FakeModel, pair: Pair) -> list[Neighbour]:
    """Give one row, as if from training."""
    return [Neighbour(Pair(f"Trained: {pair.sentence1}", pair.sentence2, pair.condition, 4.0), 0.875)]


def make_errors_engine() -> ErrorsEngine:
    """Give the stand-in."""
    parts = [("Toy scenes, test", "scenes:test"), ("Toy scenes, dev", "scenes:dev")]
    return ErrorsEngine(lambda: parts, dataset, stored, score, neighbours)
