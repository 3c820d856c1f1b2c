"""What the old Router tab still asks for; goes with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condviz.analysis.words import check_texts, read_words, to_csv, to_record
from condviz.methods import METHODS, ConditionalScorer, RoutedEncoder
from condviz.methods.csr import CSR
from condviz.methods.variants import VARIANTS, describe_variant
from condviz.types import ModelInfo

__all__ = ["check_texts", "read_words", "to_csv", "to_record"]


def make_variant(model: ConditionalScorer, name: str) -> ConditionalScorer:
    """Make a variant of a model."""
    return model.make_variant(name)


def list_readers(infos: Sequence[ModelInfo]) -> list[ModelInfo]:
    """Return models with a router first, the variants of the first CSR model behind it, all others last."""
    routed = [info for info in infos if method_routes(info.method)]
    base = next((info for info in routed if info.method == CSR.name), None)
    variants = [describe_variant(base, name) for name in VARIANTS] if base else []
    place = routed.index(base) + 1 if base else 0
    others = [info for info in infos if info not in routed]
    return [*routed[:place], *variants, *routed[place:], *others]


def method_routes(method: str) -> bool:
    """Return whether the models of a method weigh words by the condition."""
    return issubclass(METHODS.get(method, ConditionalScorer), RoutedEncoder)


def rank_words(values: np.ndarray) -> np.ndarray:
    """Rank words by the size of their value."""
    from scipy.stats import rankdata

    return rankdata(-np.abs(values), method="min", axis=-1).astype(int) if values.shape[-1] else values.astype(int)


def share_words(values: np.ndarray) -> np.ndarray:
    """Return the share of each word in the sizes of all words."""
    sizes = np.abs(values)
    return sizes / np.maximum(sizes.sum(axis=-1, keepdims=True), np.finfo(np.float32).tiny)
