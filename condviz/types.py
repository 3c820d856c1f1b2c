"""Results that travel between the parts of the package: small, frozen, free of torch.

Letters for shapes, used in every docstring: n sentences, m conditions, p pairs, b batch, L tokens, d dimensions,
k low rank, w words, R routed layers, T layers, M models, E entities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["cross", "bi", "tri"]
"""How a model reads its input: all three texts at once, sentence with condition, or each text apart."""


@dataclass(frozen=True)
class Pair:
    """Two sentences, a condition and, where it is known, the human rating from 1 (different) to 5 (same)."""

    sentence1: str
    sentence2: str
    condition: str
    label: float | None = None


@dataclass(frozen=True)
class ModelInfo:
    """What can be said about a model without loading its weights.

    Attributes:
        name: The name that `condviz.load` takes.
        method: Key in `condviz.METHODS`.
        title: Name for people, for instance "Hyper-CL".
        kind: "cross", "bi" or "tri".
        trained: False for models that use the pretrained encoder as it is. Shown wherever the model appears.
        source: "zero-shot", "checkpoint", "folder", "hub", or "memory" for a model made by hand.
        revision: Fingerprint of the weights that decide the scores (first 12 hex digits), or "" before loading.
        score_range: Lowest and highest score the method can give; infinite for the cross-encoder.
        added_parameters: Parameters on top of the shared encoder.
        reference: Paper.
        summary: One sentence on how it works.
        path: Folder of the checkpoint, or "" for zero-shot models.
    """

    name: str
    method: str
    title: str
    kind: Kind
    trained: bool
    source: str
    revision: str
    score_range: tuple[float, float]
    added_parameters: int
    reference: str
    summary: str
    path: str = ""


@dataclass(frozen=True)
class Comparison:
    """One sentence pair under several conditions, scored by several models.

    Attributes:
        sentence1, sentence2: The texts as they were scored.
        conditions: m conditions, in the order given.
        models: M descriptions, in the order given.
        scores: (M, m) float32, higher is more similar; the range is that of each model.
        unconditional: (M,) float32, the score of the same model without any condition.
        percentiles: (M, m) float32 in [0, 100]: share of the stored reference pairs that this model scores lower.
        notes: Things the reader has to know, for instance that a text was cut.
    """

    sentence1: str
    sentence2: str
    conditions: tuple[str, ...]
    models: tuple[ModelInfo, ...]
    scores: np.ndarray
    unconditional: np.ndarray
    percentiles: np.ndarray
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict:
        """Give plain JSON: the answer of the `/compare` endpoint."""
        return {
            "models": [info.name for info in self.models],
            "conditions": list(self.conditions),
            "scores": [[float(value) for value in row] for row in self.scores],
            "unconditional": [float(value) for value in self.unconditional],
            "percentiles": [[float(value) for value in row] for row in self.percentiles],
        }


@dataclass(frozen=True)
class Word:
    """A word of a text: the text itself and where it stands (characters, half open)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class TokenWeights:
    """How much weight a router gives to each word of one sentence under several conditions.

    Attributes:
        sentence: The text.
        conditions: m conditions.
        words: w words with their offsets; their tokens' weights are added up.
        weights: (R, m, w) float32, each row >= 0; sums to 1 - hidden_mass.
        layers: Index of each routed layer, counted from 0, lowest first; length R.
        hidden_mass: (R, m) float32: weight on special tokens, which are not shown.
        tokens: The sub-tokens with their offsets; special tokens have an empty span.
        token_weights: (R, m, number of tokens) float32, sums to 1.
        truncated: True if the end of the sentence was cut off.
    """

    sentence: str
    conditions: tuple[str, ...]
    words: tuple[Word, ...]
    weights: np.ndarray
    layers: tuple[int, ...]
    hidden_mass: np.ndarray
    tokens: tuple[Word, ...]
    token_weights: np.ndarray
    truncated: bool = False


@dataclass(frozen=True)
class Attribution:
    """What each word does to the score of one pair under one condition, by leaving it out.

    Attributes:
        model: Name of the model.
        condition: The condition, or None for the score without a condition.
        score: Score of the whole pair.
        words1, words2: Words of the two sentences.
        effects1, effects2: (w,) float32 each: score of the whole pair minus the score without the word. Positive: the
            word makes the sentences more alike under this condition. Not additive.
    """

    model: str
    condition: str | None
    score: float
    words1: tuple[Word, ...]
    words2: tuple[Word, ...]
    effects1: np.ndarray
    effects2: np.ndarray
