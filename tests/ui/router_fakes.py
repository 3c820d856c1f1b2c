"""The core of the Router tab without torch: weights from a hash, in the shapes of the real ones."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from condviz.analysis.router import check_texts, list_readers
from condviz.errors import UnknownModelError
from condviz.types import (
    AttentionRow,
    DeletionTest,
    HeadMap,
    RouterPictures,
    TokenWeights,
    Word,
    WordReading,
)
from condviz.ui.router_engine import RouterEngine
from tests.ui import fakes


def numbers(*parts: object, shape: tuple[int, ...]) -> np.ndarray:
    """Give numbers in [0, 1) that depend on all parts."""
    seed = zlib.crc32("\x1f".join(map(str, parts)).encode("utf-8", "replace"))
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def routes(name: str) -> bool:
    """Say whether a fake model has a router."""
    return name.startswith("csr")


def weigh(model: fakes.FakeModel, sentence: str, conditions: Sequence[str]) -> TokenWeights:
    """As RoutedEncoder.token_weights; two layers for csr-bi, signed effects without a router."""
    words = fakes.split(sentence)
    layers = (4, 5) if model.info.name == "csr-bi" else (5,) if routes(model.info.name) else ()
    rows = max(1, len(layers)), len(conditions)
    raw = np.stack([numbers(model.info.name, sentence, c, shape=(rows[0], len(words))) for c in conditions], axis=1)
    weights = raw / raw.sum(axis=-1, keepdims=True) * 0.8 if layers else (raw - 0.5) / 5
    halves = [Word(w.text[a:b], w.start + a, w.start + b) for w in words for a, b in ((0, 1), (1, len(w.text)))]
    return TokenWeights(
        sentence=sentence,
        conditions=tuple(conditions),
        words=words,
        weights=weights,
        layers=layers,
        hidden_mass=np.full(rows, 0.2 if layers else 0, dtype=np.float32),
        tokens=tuple(Word("", 0, 0) if i < 0 else halves[i] for i in range(-1, len(halves))) if layers else (),
        token_weights=np.concatenate([np.full((*rows, 1), 0.2), np.repeat(weights / 2, 2, axis=-1)], axis=-1)
        if layers
        else np.zeros((*rows, 0), dtype=np.float32),
        truncated="truncated" in sentence,
    )


def make_variant(model: fakes.FakeModel, name: str) -> fakes.FakeModel:
    """As condviz.analysis.router.make_variant."""
    if not routes(model.info.name):
        raise UnknownModelError(f"{model.info.name} has no variants.")
    return fakes.FakeModel(f"{model.info.name}@{name}")


def read(model: fakes.FakeModel, sentences: Sequence[str], conditions: Sequence[str]) -> WordReading:
    """As condviz.analysis.router.read_words."""
    texts = tuple(weigh(model, sentence, conditions) for sentence in sentences)
    scores = plain = None
    if len(sentences) == 2:
        scores = np.array([model.value(*sentences, c) for c in conditions], dtype=np.float32)
        plain = model.value(*sentences, None)
    return WordReading(model.info, "router" if routes(model.info.name) else "leave-one-out", texts, scores, plain)


def pictures(model: fakes.FakeModel, sentence: str, conditions: Sequence[str]) -> RouterPictures:
    """As condviz.analysis.attention.read_pictures."""
    found = weigh(model, sentence, conditions)

    def rows(share: float) -> tuple[AttentionRow, ...]:
        return tuple(
            AttentionRow(c, found.words, found.weights[-1, i], fakes.split(c), np.full(len(c.split()), share), 0.2)
            for i, c in enumerate(conditions)
        )

    router = () if model.info.name == "csr-prefix" else rows(0)
    return RouterPictures(model.info.name, rows(0), router, rows(0), varies=model.info.name != "csr")


def heads(model: fakes.FakeModel, sentence: str, condition: str) -> HeadMap:
    """As condviz.analysis.attention.read_heads."""
    words = fakes.split(sentence)
    values = [numbers(kind, sentence, condition, shape=(3, 4, len(words))) for kind in ("sentence", "condition")]
    return HeadMap(model.info.name, condition, words, values[0], None if "prefix" in model.info.name else values[1])


def delete(model: fakes.FakeModel, reading: WordReading, num_words: int) -> DeletionTest:
    """As condviz.analysis.deletion.delete_words."""
    if "boom" in reading.texts[0].sentence:
        raise RuntimeError("boom")
    size = len(reading.conditions), len(reading.texts)
    return DeletionTest(
        model.info.name, num_words, np.full(size, num_words / 10, dtype=np.float32), numbers("d", shape=(20, *size)) / 5
    )


def make_router_engine() -> RouterEngine:
    """Give the engine over fake models."""
    return RouterEngine(list_readers, make_variant, check_texts, read, pictures, heads, delete)
