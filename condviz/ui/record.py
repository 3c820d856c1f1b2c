"""Comparisons and attributions as plain JSON and back, for gr.State (which copies its value) and the first screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from condviz.types import Attribution, Comparison, ModelInfo, Word


def pack_info(info: ModelInfo) -> dict[str, Any]:
    """Give a description as JSON; an infinite end of the score range becomes None."""
    record = asdict(info)
    record["score_range"] = [end if math.isfinite(end) else None for end in info.score_range]
    return record


def unpack_info(record: dict[str, Any]) -> ModelInfo:
    """Read what `pack_info` wrote."""
    low, high = record["score_range"]
    limits = (-math.inf if low is None else low, math.inf if high is None else high)
    return ModelInfo(**{**record, "score_range": limits})


def pack_comparison(comparison: Comparison) -> dict[str, Any]:
    """Give a comparison as JSON; missing numbers become None."""
    return {
        "sentence1": comparison.sentence1,
        "sentence2": comparison.sentence2,
        "conditions": list(comparison.conditions),
        "models": [pack_info(info) for info in comparison.models],
        "scores": [_numbers(row) for row in comparison.scores],
        "unconditional": _numbers(comparison.unconditional),
        "percentiles": [_numbers(row) for row in comparison.percentiles],
        "notes": list(comparison.notes),
    }


def unpack_comparison(record: dict[str, Any]) -> Comparison:
    """Read what `pack_comparison` wrote."""
    shape = (len(record["models"]), len(record["conditions"]))
    return Comparison(
        sentence1=record["sentence1"],
        sentence2=record["sentence2"],
        conditions=tuple(record["conditions"]),
        models=tuple(unpack_info(info) for info in record["models"]),
        scores=np.array(record["scores"], dtype=np.float32).reshape(shape),
        unconditional=np.array(record["unconditional"], dtype=np.float32),
        percentiles=np.array(record["percentiles"], dtype=np.float32).reshape(shape),
        notes=tuple(record["notes"]),
    )


def pack_attribution(result: Attribution) -> dict[str, Any]:
    """Give an attribution as JSON."""
    words = {name: [[w.text, w.start, w.end] for w in getattr(result, name)] for name in ("words1", "words2")}
    effects = {name: _numbers(getattr(result, name)) for name in ("effects1", "effects2")}
    return {"model": result.model, "condition": result.condition, "score": result.score, **words, **effects}


def unpack_attribution(record: dict[str, Any]) -> Attribution:
    """Read what `pack_attribution` wrote."""
    words = {name: tuple(Word(*word) for word in record[name]) for name in ("words1", "words2")}
    effects = {name: np.array(record[name], dtype=np.float32) for name in ("effects1", "effects2")}
    return Attribution(model=record["model"], condition=record["condition"], score=record["score"], **words, **effects)


def stack(rows: Sequence[Comparison]) -> Comparison:
    """Join comparisons of the same pair and conditions by single models into one, in the order given.

    Args:
        rows: At least one; they agree on texts and conditions.
    """
    first = rows[0]
    return Comparison(
        sentence1=first.sentence1,
        sentence2=first.sentence2,
        conditions=first.conditions,
        models=tuple(info for row in rows for info in row.models),
        scores=np.concatenate([row.scores for row in rows]),
        unconditional=np.concatenate([row.unconditional for row in rows]),
        percentiles=np.concatenate([row.percentiles for row in rows]),
        notes=tuple(dict.fromkeys(note for row in rows for note in row.notes)),
    )


def empty(sentence1: str, sentence2: str, conditions: Sequence[str]) -> Comparison:
    """Give a comparison without a model: the frame that rows are put into as they come."""
    shape = (0, len(conditions))
    return Comparison(
        sentence1, sentence2, tuple(conditions), (), np.zeros(shape), np.zeros(0), np.zeros(shape)
    )  # fmt: skip


def _numbers(values: np.ndarray) -> list[float | None]:
    # Nine digits give every float32 back exactly.
    return [float(f"{value:.9g}") if math.isfinite(value) else None for value in np.asarray(values).tolist()]
