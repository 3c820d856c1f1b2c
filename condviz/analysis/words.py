"""Which words a model reads under a condition: the weights of a router, or what leaving out each word does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condviz.analysis.attribution import score_without_words
from condviz.analysis.familiar import unfamiliar
from condviz.data.texts import check_conditions, check_sentence, plain_cell
from condviz.encoder.backbone import Progress
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.models.registry import load
from condviz.types import DeletionTest, TokenWeights, WordReading

MAX_CONDITIONS = 12
"""Strips that can be compared by eye."""


def read_words(
    model: str | ConditionalScorer,
    sentences: str | Sequence[str],
    conditions: str | Sequence[str],
    *,
    progress: Progress | None = None,
) -> WordReading:
    """Show how much each word of one or two sentences counts under each condition.

    Args:
        model: Any model, or its name. One without a router is asked by leaving out one word at a time; a single
            sentence is then compared with itself.
        sentences: One or two.
        conditions: m different conditions, at most `MAX_CONDITIONS`.
        progress: Called with (done, total) encodings; may raise to stop.

    Raises:
        DataError: If a text cannot be used.
        UnknownModelError: If there is no model of the name.

    Example:
        >>> import condviz
        >>> condviz.read_words("csr-bi", "A man surfs.", ["the sport", "the mood"]).to_frame()
    """
    texts, conditions = check_texts(sentences, conditions)
    model = load(model) if isinstance(model, str) else model
    scores = unconditional = None
    if len(texts) == 2:
        count = len(conditions)
        scores = model.score([texts[0]] * count, [texts[1]] * count, conditions, progress=progress)
        unconditional = float(model.score_unconditional([texts[0]], [texts[1]])[0])
    if model.has_router:
        weights = tuple(model.token_weights(text, conditions) for text in texts)
    else:
        weights = _effects(model, texts, conditions, progress)
    return WordReading(
        model=model.info,
        source="router" if model.has_router else "leave-one-out",
        texts=weights,
        scores=scores,
        unconditional=unconditional,
        unfamiliar=tuple(np.flatnonzero(unfamiliar(conditions)).tolist()),
    )


def check_texts(sentences: str | Sequence[str], conditions: str | Sequence[str]) -> tuple[list[str], list[str]]:
    """Return one or two sentences and up to `MAX_CONDITIONS` conditions as they are read.

    Raises:
        DataError: If a text cannot be used, or there are too many or none.
    """
    sentences = [sentences] if isinstance(sentences, str) else list(sentences)
    if not 1 <= len(sentences) <= 2:
        raise DataError(f"One or two sentences can be read, got {len(sentences)}. Leave some out.")
    texts = [check_sentence(text, f"sentence {number}") for number, text in enumerate(sentences, start=1)]
    conditions = [conditions] if isinstance(conditions, str) else conditions
    return texts, check_conditions(conditions, max_conditions=MAX_CONDITIONS)


def _effects(
    model: ConditionalScorer, texts: list[str], conditions: list[str], progress: Progress | None
) -> tuple[TokenWeights, ...]:
    found = score_without_words(model, texts[0], texts[-1], conditions, progress=progress)
    return tuple(
        TokenWeights(
            sentence=text,
            conditions=tuple(conditions),
            words=words,
            weights=effects[None],
            layers=(),
            hidden_mass=np.zeros((1, len(conditions)), dtype=np.float32),
            tokens=(),
            token_weights=np.zeros((1, len(conditions), 0), dtype=np.float32),
            truncated=bool(model.backbone.truncated([(text,)])),
        )
        for text, words, effects in zip(texts, found.words, found.effects, strict=False)
    )


def to_record(readings: Sequence[WordReading], tests: Sequence[DeletionTest] = ()) -> dict[str, Any]:
    """Return readings of the same texts as plain JSON: what `/router` answers and `condviz router --json` prints.

    Args:
        readings: One for each model.
        tests: Deletion tests: none, or one for each reading.
    """
    models = [reading.to_dict() for reading in readings]
    for record, test in zip(models, tests, strict=False):
        record["deletion"] = test.to_dict()
    return {"conditions": list(readings[0].conditions), "models": models}


def to_csv(readings: Sequence[WordReading]) -> str:
    """Return readings as CSV: one row per model, sentence, condition, layer and word."""
    import pandas as pd

    frame = pd.concat([reading.to_frame() for reading in readings])
    frame[["condition", "word"]] = frame[["condition", "word"]].map(plain_cell)
    return frame.to_csv(index=False, float_format="%.6f")
