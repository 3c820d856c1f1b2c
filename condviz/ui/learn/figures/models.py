"""One pair, several models: the table of the Compare tab."""

from __future__ import annotations

from typing import Any, ClassVar

from condviz.models.registry import describe
from condviz.plots import similarity
from condviz.types import Comparison
from condviz.ui.learn.figures.compare import Compare


class Models(Compare):
    """As the figure "compare", with the models that the lesson names."""

    name: ClassVar[str] = "models"
    model: None = None
    names: tuple[str, ...] = ("cross-encoder", "bi-encoder", "hyper-cl")

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Draw models x conditions."""
        comparison = Comparison.from_dict(data, [describe(name) for name in data["models"]])
        return {"matrix": similarity.matrix(comparison)}
