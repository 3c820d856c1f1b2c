"""The router of CSR step by step, token by token: score, softmax, weight, new state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from condviz.errors import ConfigError
from condviz.methods import ConditionalScorer


@dataclass(frozen=True)
class RouterTrace:
    """What one routed layer does to one sentence under one condition; L tokens, special ones included.

    Attributes:
        layers: Numbers of all routed layers, from 1.
        tokens: (L,) as the tokenizer has them.
        scores: (L,) q_c . k_i / sqrt(d).
        weights: (L,) softmax of the scores divided by the temperature.
        before, after: (L, d) the output of the attention, and (1 + w) times it.
        vector: (d,) mean of the final states: the sentence under the condition.
    """

    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    scores: np.ndarray
    weights: np.ndarray
    before: np.ndarray
    after: np.ndarray
    vector: np.ndarray


@torch.no_grad()
def trace_router(
    model: ConditionalScorer, sentence: str, condition: str, *, layer: int | None = None, temperature: float = 1.0
) -> RouterTrace:
    """Follow a sentence through the routed layers of CSR.

    Args:
        model: A CSR model with the paper's router.
        sentence, condition: The texts.
        layer: Number of a routed layer, from 1; None takes the last.
        temperature: Divides the scores in every routed layer; 1 is the model as it was trained. Where it grows, all
            weights come to be 1 / L, and the condition no longer matters.

    Raises:
        ConfigError: If the model has no such router or no such layer, or the temperature is not positive.

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
    for number in routed:
        place = model.router.slot(number - 1)
        before, keys = layers.attend(number - 1, state, tokens.mask)
        after = before * (1 + weights[place])[..., None].to(before.dtype)
        if number == shown:
            break
        state = layers.finish(number - 1, after, state)
    scores = (keys.float() @ reading[0, place].float())[0] / keys.shape[-1] ** 0.5
    names = backbone.tokenizer.convert_ids_to_tokens(list(row.ids))
    # A batch of one is padded, too, in half precision on a CPU.
    per_token = (part[: len(names)] for part in (scores, weights[place][0], before[0], after[0]))
    arrays = (part.float().cpu().numpy() for part in (*per_token, vector[0]))
    return RouterTrace(routed, tuple(names), *arrays)


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    """Return the cosine of two vectors, 0 where one has no length."""
    length = float(np.linalg.norm(one) * np.linalg.norm(two))
    return float(one @ two) / length if length else 0.0
