"""Descriptions of models as JSON, for tabs of the first edition."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from condviz.types import ModelInfo


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
