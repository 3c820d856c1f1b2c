"""One pair under some conditions: the bars of the Compare tab, and its table of several models."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from condviz.models.registry import describe
from condviz.plots import similarity
from condviz.types import Comparison
from condviz.ui.learn.figures.base import Figure, Lines, Sentence
from condviz.ui.state import write_link


class Compare(Figure):
    """The bars of one model, by default the one that leads the page."""

    name: ClassVar[str] = "compare"
    button: ClassVar[str] = "Compare"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    conditions: Lines = Field(title="Conditions, one per line")
    model: str | None = ""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Score the pair under each condition."""
        from condviz.analysis.compare import compare

        return compare(models, self.sentence1, self.sentence2, self.conditions).to_dict()

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Draw headline and bars as in the Compare tab."""
        comparison = Comparison.from_dict(data, [describe(name) for name in data["models"]])
        return {"headline": similarity.headline(comparison), "bars": similarity.bars(comparison)}

    def link(self) -> str:
        """Open the Compare tab."""
        pairs = [("s1", self.sentence1), ("s2", self.sentence2), *(("c", text) for text in self.conditions)]
        return write_link("compare", [*pairs, ("m", self.model or "")])


class Models(Compare):
    """As the figure "compare", with the models that the lesson names."""

    name: ClassVar[str] = "models"
    model: None = None
    names: tuple[str, ...] = ("cross-encoder", "bi-encoder", "hyper-cl")

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Draw models x conditions."""
        comparison = Comparison.from_dict(data, [describe(name) for name in data["models"]])
        return {"matrix": similarity.matrix(comparison)}
