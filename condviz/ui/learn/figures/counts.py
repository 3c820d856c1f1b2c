"""How often the encoder runs for all pairs of n sentences under m conditions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from condviz.ui.learn.figures.base import Figure


def passes(sentences: int, conditions: int) -> dict[str, int]:
    """Return how many texts each kind of encoder reads to score every pair of sentences under every condition."""
    pairs = sentences * (sentences - 1) // 2
    return {
        "Cross-encoder": pairs * conditions,
        "Bi-encoder": sentences * conditions,
        "Tri-encoder": sentences + conditions,
    }


class Counts(Figure):
    """Bars on one scale; what one more text costs beside them."""

    name: ClassVar[str] = "counts"
    n: int = Field(default=10, ge=2, le=200, title="Sentences")
    m: int = Field(default=4, ge=1, le=50, title="Conditions")
    added: Literal["nothing", "one sentence", "one condition"] = Field(default="nothing", title="Then add")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Count the passes, and the further ones after the addition."""
        before = passes(self.n, self.m)
        after = passes(self.n + (self.added == "one sentence"), self.m + (self.added == "one condition"))
        rows = [[kind, count, after[kind] - count] for kind, count in before.items()]
        return {"rows": rows, "most": max(before.values())}
