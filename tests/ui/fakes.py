"""A core without torch: the same interface, numbers from a hash, so that the page can be tested alone."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condviz.errors import CheckpointError
from condviz.types import Attribution, Comparison, ModelInfo, Word
from condviz.ui.engine import Engine


def make_info(name: str, **changes: Any) -> ModelInfo:
    """Describe a fake model."""
    cross = name.startswith("cross")
    fields: dict[str, Any] = {
        "name": name,
        "method": "unconditional" if name == "minilm" else name,
        "title": name.replace("-", " ").title(),
        "kind": "cross" if cross else "tri" if name.startswith(("tri", "hyper")) else "bi",
        "trained": name.startswith(("hyper", "cross")),
        "source": "zero-shot",
        "revision": f"{zlib.crc32(name.encode()):08x}0000",
        "score_range": (-np.inf, np.inf) if cross else (-1.0, 1.0),
        "added_parameters": 1000 * len(name),
        "reference": "A paper (2024)",
        "summary": f"The fake model {name}.",
    }
    return ModelInfo(**{**fields, **changes})


@dataclass(frozen=True)
class FakeStats:
    """As the cache of the core."""

    hits: int = 3
    misses: int = 1
    entries: int = 1
    bytes: int = 1536
    max_bytes: int = 1_000_000

    @property
    def hit_rate(self) -> float:
        """Share of hits."""
        return self.hits / (self.hits + self.misses)


class FakeBackbone:
    """As the encoder of the core."""

    class cache:
        """As its cache."""

        stats = staticmethod(FakeStats)

    def describe(self) -> str:
        """Describe the encoder."""
        return "fake/encoder \N{MIDDLE DOT} 1 parameter \N{MIDDLE DOT} cpu \N{MIDDLE DOT} float32"


class FakeModel:
    """Score by hash."""

    def __init__(self, name: str) -> None:
        """Keep the name."""
        self.info = make_info(name)
        self.backbone = FakeBackbone()
        self.weights_hash = f"weights of {name}"

    def value(self, *texts: str | None) -> float:
        """Give a number in [-1, 1] that depends on all texts."""
        return zlib.crc32("\x1f".join([self.info.name, *map(str, texts)]).encode("utf-8", "replace")) / 2**31 - 1


def compare(models: Sequence[FakeModel], sentence1: str, sentence2: str, conditions: Sequence[str]) -> Comparison:
    """As condviz.analysis.compare.compare."""
    scores = [[m.value(sentence1, sentence2, c) for c in conditions] for m in models]
    return Comparison(
        sentence1,
        sentence2,
        tuple(conditions),
        tuple(m.info for m in models),
        np.array(scores, dtype=np.float32),
        np.array([m.value(sentence1, sentence2, None) for m in models], dtype=np.float32),
        np.array(scores, dtype=np.float32) * 50 + 50,
    )


def split(sentence: str) -> tuple[Word, ...]:
    """Give the words between blanks."""
    words, start = [], 0
    for part in sentence.split(" "):
        if part:
            words.append(Word(part, start, start + len(part)))
        start += len(part) + 1
    return tuple(words)


def attribute(model: FakeModel, sentence1: str, sentence2: str, condition: str | None) -> Attribution:
    """As condviz.analysis.attribution.leave_one_word_out."""
    words = split(sentence1), split(sentence2)
    effects = [np.array([model.value(w.text, condition) / 5 for w in ws], dtype=np.float32) for ws in words]
    return Attribution(model.info.name, condition, model.value(sentence1, sentence2, condition), *words, *effects)


def rank(model: FakeModel, sentence1: str, sentence2: str, conditions: Sequence[str]) -> list[tuple[str, float, float]]:
    """As condviz.analysis.finder.rank_conditions."""
    base = model.value(sentence1, sentence2, None)
    rows = [(c, model.value(sentence1, sentence2, c)) for c in conditions]
    return [(c, score, score - base) for c, score in sorted(rows, key=lambda row: -row[1])]


def make_engine(
    names: Sequence[str] = ("minilm", "bi-encoder", "tri-hadamard", "hyper-cl", "csr", "cross-encoder"),
    *,
    broken: Sequence[str] = (),
    load: Callable[[str], Any] = FakeModel,
) -> Engine:
    """Give an engine over fake models; those in `broken` fail to load."""

    def guarded_load(name: str) -> Any:
        if name in broken:
            raise CheckpointError(f"checkpoints/{name}/model.safetensors is truncated. Copy the folder again.")
        return load(name)

    return Engine(lambda: list(names), make_info, guarded_load, compare, attribute, rank)
