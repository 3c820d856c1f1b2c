"""Models without weights, for tests that are about what happens around a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from condviz.methods import ConditionalScorer
from condviz.types import ModelInfo


def interrupt(*_: int) -> None:
    """Take progress as somebody does who stops the work at once."""
    raise KeyboardInterrupt


class LengthModel:
    """Scores by the length of the condition, a tenth per letter; enough to follow figures by hand."""

    encodes = False
    check_able = ConditionalScorer.check_able

    def __init__(self, name: str = "length", *, trained: bool = False) -> None:
        ends = (-np.inf, np.inf)
        self.info = ModelInfo(
            name, "length", "Length", "tri", trained, "zero-shot", "abc", ends, 1234, "A paper (2024)", ""
        )

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> np.ndarray:
        """Give (p,) float32 scores."""
        assert len(sentences1) == len(sentences2) == len(conditions)
        if progress:
            progress(len(conditions), len(conditions))
        return np.array([len(condition) / 10 for condition in conditions], np.float32)
