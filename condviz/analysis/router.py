"""Which words a model reads under a condition: the weights of a router, or what leaving out each word does."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from condviz.analysis.attribution import leave_one_word_out
from condviz.data.texts import check_conditions, check_sentence, plain_cell
from condviz.errors import DataError, UnknownModelError
from condviz.methods import METHODS, ConditionalScorer
from condviz.methods.csr import CSR
from condviz.methods.routing import RoutedEncoder
from condviz.models.registry import load
from condviz.types import DeletionTest, ModelInfo, TokenWeights, WordReading

MAX_CONDITIONS = 12
"""Strips that can be compared by eye."""
MARK = "@"
"""Between the name of a model and that of its variant."""
HEAVY_SEED = 0
"""Seed of the layers that the variant "heavy" adds: they are never trained here."""


@dataclass(frozen=True)
class Variant:
    """A model made from a CSR model by other settings, on the same encoder (paper, Tables 1 and 3, Figure 4)."""

    title: str
    summary: str
    changes: dict[str, Any]


VARIANTS = {
    "hidden": Variant("Hidden", "Compares hidden states instead of query and key.", {"router": "hidden"}),
    "heavy": Variant("Heavy", "Query and key layers of its own, here at random.", {"router": "heavy"}),
    "random": Variant("Random Weight", "Weights that know nothing: a control.", {"router": "random"}),
    "only-weight": Variant("Only Weight", "Multiplies by w instead of 1 + w.", {"weighting": "only"}),
    "three-layers": Variant("three layers", "Routes the last three layers.", {"num_routed_layers": 3}),
}


def has_router(model: ConditionalScorer) -> bool:
    """Say whether a model weighs words by the condition."""
    return isinstance(model, RoutedEncoder) and model.method_config.num_routed_layers > 0


def list_readers(infos: Sequence[ModelInfo]) -> list[ModelInfo]:
    """Put models with a router first, the variants of the first CSR model behind it, all others last.

    Args:
        infos: Models as the registry describes them.
    """
    routed = [info for info in infos if method_routes(info.method)]
    base = next((info for info in routed if info.method == CSR.name), None)
    variants = [describe_variant(base, name) for name in VARIANTS] if base else []
    place = routed.index(base) + 1 if base else 0
    others = [info for info in infos if info not in routed]
    return [*routed[:place], *variants, *routed[place:], *others]


def describe_variant(info: ModelInfo, name: str) -> ModelInfo:
    """Describe a variant of a model. It counts as not trained: its weights were trained for another router.

    Raises:
        UnknownModelError: If there is no such variant.
    """
    found = _variant(name)
    return replace(
        info, name=f"{info.name}{MARK}{name}", title=f"{info.title}, {found.title}", trained=False,
        summary=found.summary, path="",
    )  # fmt: skip


def make_variant(model: ConditionalScorer, name: str) -> CSR:
    """Make a variant of a CSR model; the encoder is shared.

    Raises:
        UnknownModelError: If there is no such variant, or the model is not a CSR model.
        ConfigError: If the encoder does not fit, for instance its size the heads of "heavy".
    """
    changes = _variant(name).changes
    if not isinstance(model, CSR):
        raise UnknownModelError(
            f"{model.info.name} has no variants: only models of the method csr have. Leave out {MARK}{name}."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(HEAVY_SEED)
        made = CSR(model.backbone, replace(model.method_config, **changes))
    made = made.to(model.backbone.device).eval()
    made.info = replace(describe_variant(model.info, name), revision=made.fingerprint[:12])
    return made


def load_reader(name: str) -> ConditionalScorer:
    """Load a model, or a variant of one by a name such as "csr@hidden". See `condviz.load`."""
    base, mark, variant = name.rpartition(MARK)
    return make_variant(load(base), variant) if mark and variant in VARIANTS else load(name)


def check_texts(sentences: Sequence[str], conditions: Sequence[str]) -> tuple[list[str], list[str]]:
    """Give one or two sentences and up to `MAX_CONDITIONS` conditions as they are read.

    Raises:
        DataError: If a text cannot be used, or there are too many or none.
    """
    if isinstance(sentences, str) or not 1 <= len(sentences) <= 2:
        raise DataError(f"One or two sentences can be read, got {len(sentences)}. Put each one into a list.")
    texts = [check_sentence(text, f"sentence {number}") for number, text in enumerate(sentences, start=1)]
    return texts, check_conditions(conditions, max_conditions=MAX_CONDITIONS)


def read_words(model: ConditionalScorer, sentences: Sequence[str], conditions: Sequence[str]) -> WordReading:
    """Show how much each word of one or two sentences counts under each condition.

    Args:
        model: Any model. One without a router is asked by leaving out one word at a time; a single sentence is then
            compared with itself.
        sentences: One or two.
        conditions: m different conditions, at most `MAX_CONDITIONS`.

    Raises:
        DataError: If a text cannot be used.
    """
    texts, conditions = check_texts(sentences, conditions)
    scores = unconditional = None
    if len(texts) == 2:
        count = len(conditions)
        scores = model.score([texts[0]] * count, [texts[1]] * count, conditions)
        unconditional = float(model.score_unconditional([texts[0]], [texts[1]])[0])
    if has_router(model):
        return WordReading(
            model.info, "router", tuple(model.token_weights(text, conditions) for text in texts), scores, unconditional
        )
    return WordReading(model.info, "leave-one-out", _effects(model, texts, conditions), scores, unconditional)


def rank_words(values: np.ndarray) -> np.ndarray:
    """Rank words by the size of their value: (..., w) -> (..., w) int from 1, the largest; equal ones share a rank."""
    from scipy.stats import rankdata  # importing it takes half a second

    if not values.shape[-1]:
        return np.zeros(values.shape, dtype=int)
    return rankdata(-np.abs(values), method="min", axis=-1).astype(int)


def share_words(values: np.ndarray) -> np.ndarray:
    """Give the share of each word in the sizes of all words: (..., w) -> (..., w) in [0, 1]."""
    sizes = np.abs(values)
    return sizes / np.maximum(sizes.sum(axis=-1, keepdims=True), np.finfo(np.float32).tiny)


def to_record(readings: Sequence[WordReading], tests: Sequence[DeletionTest] = ()) -> dict[str, Any]:
    """Give the answer of the `/router` endpoint as plain JSON; tests are none, or one for each reading."""
    models = [_to_dict(reading) for reading in readings]
    for record, test in zip(models, tests, strict=False):
        record["deletion"] = test.to_dict()
    return {"conditions": list(readings[0].conditions), "models": models}


def to_csv(readings: Sequence[WordReading]) -> str:
    """Write one row per model, sentence, condition, layer and word. Layers count from 1; without a router, blank."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([
        "model", "revision", "source", "sentence", "condition", "layer", "position", "start", "end", "word", "value",
        "rank", "share",
    ])  # fmt: skip
    for reading in readings:
        for number, text in enumerate(reading.texts, start=1):
            ranks, shares = rank_words(text.weights), share_words(text.weights)
            for layer, condition, place in np.ndindex(text.weights.shape):
                word, cell = text.words[place], (layer, condition, place)
                writer.writerow([
                    reading.model.name, reading.model.revision, reading.source, number,
                    plain_cell(text.conditions[condition]), text.layers[layer] + 1 if text.layers else "", place + 1,
                    word.start, word.end, plain_cell(word.text), f"{text.weights[cell]:.6f}", ranks[cell],
                    f"{shares[cell]:.6f}",
                ])  # fmt: skip
    return out.getvalue()


def _effects(model: ConditionalScorer, texts: list[str], conditions: list[str]) -> tuple[TokenWeights, ...]:
    found = [leave_one_word_out(model, texts[0], texts[-1], condition) for condition in conditions]
    sides = [("words1", "effects1"), ("words2", "effects2")][: len(texts)]
    return tuple(
        TokenWeights(
            sentence=text,
            conditions=tuple(conditions),
            words=getattr(found[0], words),
            weights=np.stack([getattr(result, effects) for result in found])[None],
            layers=(),
            hidden_mass=np.zeros((1, len(conditions)), dtype=np.float32),
            tokens=(),
            token_weights=np.zeros((1, len(conditions), 0), dtype=np.float32),
            truncated=bool(model.backbone.truncated([(text,)])),
        )
        for text, (words, effects) in zip(texts, sides, strict=True)
    )


def _variant(name: str) -> Variant:
    if name not in VARIANTS:
        raise UnknownModelError(f"There is no variant {name[:40]!r}. Variants: {', '.join(VARIANTS)}.")
    return VARIANTS[name]


def method_routes(method: str) -> bool:
    """Say whether the models of a method weigh words by the condition."""
    return issubclass(METHODS.get(method, ConditionalScorer), RoutedEncoder)


def _to_dict(reading: WordReading) -> dict[str, Any]:
    return {
        "model": reading.model.name,
        "revision": reading.model.revision,
        "trained": reading.model.trained,
        "source": reading.source,
        "scores": None if reading.scores is None else [float(score) for score in reading.scores],
        "unconditional": reading.unconditional,
        "sentences": [
            {
                "sentence": text.sentence,
                "words": [[word.text, word.start, word.end] for word in text.words],
                "layers": [layer + 1 for layer in text.layers],
                "weights": text.weights.tolist(),
                "ranks": rank_words(text.weights).tolist(),
                "shares": share_words(text.weights).tolist(),
                "special_tokens": text.hidden_mass.tolist(),
                "truncated": text.truncated,
            }
            for text in reading.texts
        ],
    }
