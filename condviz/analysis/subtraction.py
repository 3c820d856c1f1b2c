"""What CASE subtracts: the condition alone, from its encoding in the light of a sentence, and what projections keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from condviz.errors import ConfigError, require

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer


def _check_subtracts(model: ConditionalScorer) -> None:
    if not hasattr(model, "encode_offsets") or not model.method_config.subtract:
        raise ConfigError(f"{model.info.name} subtracts nothing. Choose case or case-zero-shot.")


@dataclass(frozen=True)
class Offsets:
    """Encodings of sentences with one condition, of length d."""

    condition: np.ndarray
    """(d,) e(c), the condition alone."""
    joint: np.ndarray
    """(n, d) e(c | s), the condition in the light of each sentence."""

    @property
    def offsets(self) -> np.ndarray:
        """What CASE goes on with, e(c | s) - e(c): (n, d)."""
        return self.joint - self.condition


def read_offsets(model: ConditionalScorer, sentences: Sequence[str], condition: str) -> Offsets:
    """Encode sentences with a condition, before the projection; raises ConfigError if the model is not CASE."""
    _check_subtracts(model)
    alone = model.encode_sentences([condition])[0].astype(np.float64)
    return Offsets(alone, model.encode_offsets(list(sentences), [condition] * len(sentences)) + alone)


def plane(origin: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return three points in the plane through them: the first at 0, lengths and angles as in the full space.

    Args:
        origin, one, two: (d,) each.

    Returns:
        (2, 2) places of the second and third; the second lies on the first axis.
    """
    a, b = one - origin, two - origin
    length = np.linalg.norm(a)
    along = float(a @ b / length) if length else 0.0
    return np.array([[length, 0.0], [along, np.sqrt(max(0.0, float(b @ b) - along**2))]])


@dataclass(frozen=True)
class Toy:
    """Made-up offsets whose directions are known: rows are items."""

    points: np.ndarray
    """(n, d): the first two numbers hold what was asked, the third what was not, the others are noise."""
    labels: np.ndarray
    """(n,) answer of each item, 0 to 3."""


TOY_SIZE, TOY_ITEMS, TOY_STEPS = 12, 160, 200
PROJECTIONS = ("none", "pca", "ica", "linear")


def make_toy(unasked: float) -> Toy:
    """Draw items with four answers, 1 from the middle, that differ by `unasked` in what was not asked."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, TOY_ITEMS)
    points = 0.25 * generator.standard_normal((TOY_ITEMS, TOY_SIZE))
    points[:, :2] += np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])[labels]
    points[:, 2] = unasked * generator.standard_normal(TOY_ITEMS)
    return Toy(points, labels)


def project_toy(toy: Toy, name: str, dimension: int) -> np.ndarray:
    """Project all items by what the first half teaches.

    Args:
        toy: The items.
        name: Of `PROJECTIONS`; "linear" is a matrix without bias trained, as in CASE, so that the cosine of two
            items comes near 1 where they have the same answer and 0 where not.
        dimension: Of the result.
    """
    if name not in PROJECTIONS:
        raise ConfigError(f"There is no projection {name!r}. There are: {', '.join(PROJECTIONS)}.")
    half = TOY_ITEMS // 2
    if name == "none":
        return toy.points
    if name != "linear":
        # ICA is a rotation of whitened data. The rotation changes no cosine, so only the whitening is done.
        fitted = require("sklearn.decomposition", "viz").PCA(dimension, whiten=name == "ica")
        return fitted.fit(toy.points[:half]).transform(toy.points)
    return toy.points @ _train(toy.points[:half], toy.labels[:half], dimension).T


def _train(points: np.ndarray, labels: np.ndarray, dimension: int) -> np.ndarray:
    """Descend on the mean of (cosine - 1 for the same answer, else 0)^2 over all pairs: a matrix (dimension, d)."""
    matrix = np.random.default_rng(0).standard_normal((dimension, points.shape[1])) / points.shape[1] ** 0.5
    same, speed = (labels[:, None] == labels[None, :]).astype(np.float64), np.zeros_like(matrix)
    for _ in range(TOY_STEPS):
        projected = points @ matrix.T
        lengths = np.linalg.norm(projected, axis=1, keepdims=True)
        unit = projected / lengths
        slope = 4 * (unit @ unit.T - same) @ unit / same.size
        slope = (slope - (slope * unit).sum(axis=1, keepdims=True) * unit) / lengths
        speed = 0.9 * speed + slope.T @ points
        matrix = matrix - speed
    return matrix


def rank_same(points: np.ndarray, labels: np.ndarray) -> float:
    """Return how often the cosine of two items with the same answer is above that of two with different ones, [0, 1].

    Measured on the second half, which no projection has seen; chance is 0.5.
    """
    half = len(points) // 2
    unit = points[half:] / np.linalg.norm(points[half:], axis=1, keepdims=True)
    pairs = np.triu_indices(len(unit), 1)
    cosines, same = (unit @ unit.T)[pairs], (labels[half:, None] == labels[None, half:])[pairs]
    return float(require("sklearn.metrics", "viz").roc_auc_score(same, cosines))
