"""Which training rows are nearest to a row in the eyes of a model: what it may have learnt its answer from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.data import corpora
from condviz.errors import ConfigError, require
from condviz.types import Pair

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer

CANDIDATES = 200
"""Training rows that are encoded for one question; those that share most words with the row."""


@dataclass(frozen=True)
class Neighbour:
    """A training row.

    Attributes:
        pair: The row, with its rating.
        similarity: Mean cosine of the two sentence vectors under their conditions to those of the row asked for, in
            [-1, 1]; the sentences are matched in the better of the two orders.
    """

    pair: Pair
    similarity: float


class TrainingRows:
    """Training rows that can be asked for those with most words in common.

    Args:
        pairs: Rated rows.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = tuple(pairs)
        vectorizer = require("sklearn.feature_extraction.text", "app").TfidfVectorizer
        self._vectorizer = vectorizer(sublinear_tf=True)
        self._rows = self._vectorizer.fit_transform([_joined(pair) for pair in self.pairs])

    def candidates(self, pair: Pair, count: int) -> list[Pair]:
        """Give the rows that share most words with a row, rare words counting more."""
        likeness = (self._rows @ self._vectorizer.transform([_joined(pair)]).T).toarray().ravel()
        return [self.pairs[index] for index in np.argsort(-likeness, kind="stable")[:count]]


@cache
def scene_training_rows() -> TrainingRows:
    """Give the training part of the scenes, on which the shipped models were trained."""
    rows = corpora.build("scenes", "train")
    return TrainingRows([Pair(row.sentence1, row.sentence2, row.condition, float(row.label)) for row in rows])


def nearest_rows(
    model: ConditionalScorer, pair: Pair, training: TrainingRows, *, count: int = 5, candidates: int = CANDIDATES
) -> list[Neighbour]:
    """Find the training rows whose conditioned embeddings are nearest to those of a row.

    Args:
        model: A model with vectors.
        pair: The row.
        training: Where to look.
        count: How many to give.
        candidates: How many to encode, chosen by shared words.

    Returns:
        The nearest first.

    Raises:
        ConfigError: If the model has no vectors, as a cross-encoder.
    """
    if not model.encodes:
        raise ConfigError(
            f"{model.info.title} reads all texts at once and has no vectors to compare. Choose one marked bi or tri."
        )
    rows = [pair, *training.candidates(pair, candidates)]
    sentences = [text for row in rows for text in (row.sentence1, row.sentence2)]
    conditions = [row.condition for row in rows for _ in range(2)]
    vectors = _unit(model.encode(sentences, conditions)).reshape(len(rows), 2, -1)
    cosines = np.einsum("ad,nbd->nab", vectors[0], vectors[1:])
    straight, crossed = cosines[:, 0, 0] + cosines[:, 1, 1], cosines[:, 0, 1] + cosines[:, 1, 0]
    similarity = np.maximum(straight, crossed) / 2
    order = np.argsort(-similarity, kind="stable")[:count]
    return [Neighbour(rows[1 + index], float(similarity[index])) for index in order]


def _joined(pair: Pair) -> str:
    return f"{pair.sentence1} {pair.sentence2} {pair.condition}"


def _unit(vectors: Any) -> np.ndarray:  # noqa: ANN401 - numpy or something like it
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
