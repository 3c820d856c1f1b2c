"""Some sentences, and the cosine of every two of them: without a condition and under one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from condviz.plots.similarity import tint
from condviz.ui.learn.figures.base import Figure, Lines


class Cosines(Figure):
    """Two tables side by side."""

    name: ClassVar[str] = "cosines"
    button: ClassVar[str] = "Compare all"
    sentences: Lines = Field(title="Sentences, one per line", min_length=2, max_length=5)
    condition: str = Field(title="Condition", max_length=300)
    model: str = ""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Encode every sentence twice and take all cosines, (2, n, n)."""
        from condviz.data.texts import check_condition, check_sentence

        texts = [check_sentence(text, f"sentence {place}") for place, text in enumerate(self.sentences, start=1)]
        condition = check_condition(self.condition, "condition")
        vectors = np.stack([models[0].encode_sentences(texts), models[0].encode(texts, [condition] * len(texts))])
        units = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return {"tables": np.round((units @ units.transpose(0, 2, 1)).astype(float), 3).tolist()}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Tint each cell on one scale from -1 to 1."""
        tables = [
            [[{"value": value, "tint": tint(value, 1.0)} for value in row] for row in table] for table in data["tables"]
        ]
        return {"tables": tables}
