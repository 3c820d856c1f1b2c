"""The yardstick behind percentiles: what each model gives for the stored pairs, on which no model was trained.

`benchmarks.stored reference` scores them again.
"""

from __future__ import annotations

import csv
import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from cachetools import cached

from condviz.paths import ASSETS
from condviz.types import Pair, columns

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

PAIRS = ASSETS / "reference_pairs.csv"
SCORES = ASSETS / "reference_scores.json"


@cache
def reference_pairs() -> tuple[Pair, ...]:
    """Read the stored pairs that percentiles refer to: written for this project, balanced over labels 1 to 5."""
    with PAIRS.open(encoding="utf-8", newline="") as file:
        return tuple(
            Pair(row["sentence1"], row["sentence2"], row["condition"], float(row["label"]))
            for row in csv.DictReader(file)
        )


@cached(WeakKeyDictionary(), key=lambda model: model)
def reference_scores(model: ConditionalScorer) -> np.ndarray:
    """Return the scores of the reference pairs by a model in ascending order.

    Those of shipped models are stored; those of others are computed once per loaded model.
    """
    stored = _stored().get(model.weights_hash)
    return compute_scores(model) if stored is None else np.array(stored, dtype=np.float32)


def compute_scores(model: ConditionalScorer) -> np.ndarray:
    """Score the reference pairs: float32 in ascending order."""
    return np.sort(model.score(*columns(reference_pairs())))


def percentile(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the share of reference scores below each score, equal ones counted half, in [0, 100], float32."""
    below = np.searchsorted(reference, scores, side="left") + np.searchsorted(reference, scores, side="right")
    return (50.0 * below / len(reference)).astype(np.float32)


def pairs_digest() -> str:
    """Return the SHA-256 of the pairs that stored scores belong to, whatever the line ends."""
    return hashlib.sha256("\n".join(PAIRS.read_text(encoding="utf-8").splitlines()).encode()).hexdigest()


@cache
def _stored() -> dict[str, list[float]]:
    """Read stored scores by the hash of the weights; nothing where they belong to other pairs."""
    if not SCORES.is_file():
        return {}
    content = json.loads(SCORES.read_text(encoding="utf-8"))
    if content["pairs"] != pairs_digest():
        return {}
    return {model["weights"]: model["scores"] for model in content["models"].values()}
