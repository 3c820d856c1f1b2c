"""What lessons compute beyond the tabs: a router number by number, what impurity is blind to, what CASE subtracts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Any, cast

import numpy as np
import torch
from cachetools import LRUCache, cached

from condviz.analysis.geometry import turn_at_random, unit_rows, value_agreement
from condviz.analysis.impurity import KMeansImpurity, impurity, kmeans_impurity
from condviz.analysis.points import MapPoints
from condviz.errors import ConfigError, require
from condviz.methods import ConditionalEncoder, ConditionalScorer

# ---- a router, number by number --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RouterTrace:
    """What one routed layer does to one sentence under one condition; L tokens, special ones included."""

    tokens: tuple[str, ...]
    """(L,) as the tokenizer has them."""
    scores: np.ndarray
    """(L,) q_c . k_i / sqrt(d)."""
    weights: np.ndarray
    """(L,) softmax of the scores divided by the temperature."""
    before: np.ndarray
    """(L, d) the output of the attention, which the router multiplies by 1 + w."""
    vector: np.ndarray
    """(d,) mean of the final states: the sentence under the condition."""


@torch.no_grad()
def trace_router(
    model: ConditionalScorer, sentence: str, condition: str, *, layer: int | None = None, temperature: float = 1.0
) -> RouterTrace:
    """Follow a sentence through the routed layers of CSR.

    Args:
        model: A CSR model with the paper's router; another one raises ConfigError.
        sentence, condition: The texts.
        layer: Number of a routed layer, from 1; None takes the last.
        temperature: Above 0, divides the scores in every routed layer; 1 is the model as it was trained. Where it
            grows, all weights come to be 1 / L, and the condition no longer matters.

    Source:
        Lin et al. 2024, Eq. 1. The temperature is ours.
    """
    if not model.has_router or getattr(model.method_config, "router", "") != "query_key":
        raise ConfigError(f"{model.info.name} has no router that compares a query with keys. Choose csr.")
    routed = tuple(number + 1 for number in model.routed_layers)
    shown = routed[-1] if layer is None else layer
    if shown not in routed or not temperature > 0:
        raise ConfigError(f"Needs a layer among {routed} and a temperature above 0, got {shown} and {temperature}.")
    backbone, layers = model.backbone, model.backbone.layers
    (row,), asked = backbone.tokenize([(sentence,)]), backbone.collate(backbone.tokenize([(condition,)]))
    tokens, reading = backbone.collate([row]), model.read(asked)
    state = model.enter(tokens)
    # Scores are linear in what is read from the condition.
    vector, weights = model.route(state, tokens, reading / temperature)
    for number in range(routed[0], shown):
        before = layers.attend(number - 1, state, tokens.mask)
        scale = 1 + weights[model.routed_layers.index(number - 1)]
        state = layers.finish(number - 1, before * scale[..., None].to(before.dtype), state)
    place = model.routed_layers.index(shown - 1)
    before, keys = layers.attend(shown - 1, state, tokens.mask), layers.key(shown - 1, state)
    scores = (keys.float() @ reading[0, place].float())[0] / keys.shape[-1] ** 0.5
    names = cast("Any", backbone.tokenizer).convert_ids_to_tokens(list(row.ids))
    # A batch of one is padded, too, in half precision on a CPU.
    per_token = (part[: len(names)] for part in (scores, weights[place][0], before[0]))
    arrays = (part.float().cpu().numpy() for part in (*per_token, vector[0]))
    return RouterTrace(tuple(names), *arrays)


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    """Return the cosine of two vectors, 0 where one has no length."""
    length = float(np.linalg.norm(one) * np.linalg.norm(two))
    return float(one @ two) / length if length else 0.0


# ---- the same sentences placed in four ways --------------------------------------------------------------------------

SEEDS = range(3)
SPACES = ("alone", "model", "random", "label")


# Whoever draws another matrix or makes the label longer changes one space of four.
@cached(LRUCache(200), key=lambda unit, conditions: (sha256(unit.tobytes()).digest(), tuple(conditions)), lock=Lock())
def _cluster(unit: np.ndarray, conditions: Sequence[str]) -> KMeansImpurity:
    return kmeans_impurity(unit, conditions, seeds=SEEDS, num_starts=5)


def measure(vectors: np.ndarray, points: MapPoints) -> dict[str, Any]:
    """Measure one space, (n, d) with a vector per point, by direction, as the score is a cosine.

    Returns:
        "impurity" of K-means clusters against conditions (nats, mean over `SEEDS`); "agreement", the share of the
        nearest three neighbours, under the same condition, that have the same answer; and "table", the counts of
        conditions by clusters of the first seed.
    """
    unit = unit_rows(vectors)
    found = _cluster(unit, points.conditions)
    agreement = np.mean([row.agreement for row in value_agreement(unit, points.conditions, points.values)])
    return {"impurity": found.mean, "agreement": float(agreement), "table": found.table.counts.tolist()}


def measure_spaces(
    model: ConditionalEncoder,
    points: MapPoints,
    *,
    names: Sequence[str] = SPACES,
    seed: int = 0,
    centred: bool = False,
    label: float = 1.0,
) -> dict[str, dict[str, Any]]:
    """Measure sentences alone, under the model, under random matrices, and with their condition stuck on.

    Args:
        model: Any with vectors.
        points: Sentences, each under a condition, with its answer.
        names: Of `SPACES`, those to measure; "chance" is behind them, with shuffled answers and conditions.
        seed: Of the random matrices, one per condition.
        centred: Take the mean of all sentences off before the random matrices.
        label: Length of the piece with which a vector of length 1 is made longer: one number per condition, `label` for
            its own and 0 for the others. Two sentences under one condition keep the order of their cosines.
    """
    alone = unit_rows(model.encode_sentences(list(points.texts)))
    own = np.array([points.groups.index(condition) for condition in points.conditions])
    plain = alone - alone.mean(axis=0) if centred else alone
    spaces = {
        "alone": lambda: alone,
        "model": lambda: model.encode(list(points.texts), list(points.conditions)),
        "random": lambda: turn_at_random(plain, points.conditions, seed=seed),
        "label": lambda: np.hstack([alone, label * np.eye(len(points.groups))[own]]),
    }
    found = {name: measure(spaces[name](), points) for name in names}
    shuffled = _cluster(alone, points.conditions).chance
    agreement = np.mean([row.chance for row in value_agreement(alone, points.conditions, points.values)])
    return found | {"chance": {"impurity": shuffled, "agreement": float(agreement), "table": []}}


def by_hand(groups: str, clusters: str) -> dict[str, Any]:
    """Return the impurity of members sorted by hand, with its parts.

    Returns:
        "counts" (groups by clusters), "shares" p_ij, "terms" -p_ij log p_ij, "rows" (their sum per group), "impurity"
        and "most", the logarithm of the number of clusters "A" to "C".
    """
    rows, columns = sorted({*groups}), sorted({*clusters, *"ABC"})
    met = Counter(zip(groups, clusters, strict=True))
    counts = np.array([[met[row, column] for column in columns] for row in rows])
    shares = counts / counts.sum(axis=1, keepdims=True)
    terms = -shares * np.log(np.where(shares > 0, shares, 1))
    return {
        "groups": rows, "clusters": columns, "counts": counts.tolist(), "shares": shares.tolist(),
        "terms": terms.tolist(), "rows": terms.sum(axis=1).tolist(),
        "impurity": impurity(list(groups), list(clusters)), "most": float(np.log(len(columns))),
    }  # fmt: skip


# ---- what CASE subtracts, and what projections keep ------------------------------------------------------------------


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
    if not hasattr(model, "encode_offsets") or not model.method_config.subtract:
        raise ConfigError(f"{model.info.name} subtracts nothing. Choose case or case-zero-shot.")
    alone = model.encode_sentences([condition])[0].astype(np.float64)
    return Offsets(alone, model.encode_offsets(list(sentences), [condition] * len(sentences)) + alone)


def plane(origin: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return points (d,) in the plane through them, lengths and angles as in the full space: (2, 2).

    The origin is at 0, the first point on the first axis.
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
    """Project all items to a dimension by what the first half teaches.

    Of `PROJECTIONS`, "linear" is a matrix without bias trained, as in CASE, so that the cosine of two items comes near
    1 where they have the same answer and 0 where not.
    """
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
