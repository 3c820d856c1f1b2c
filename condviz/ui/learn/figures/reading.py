"""What is read together by cross-, bi- and tri-encoders: a drawing that moves, all in the browser."""

from __future__ import annotations

from typing import Any, ClassVar

from condviz.ui.learn.figures.base import Figure


class Reading(Figure):
    """Radio buttons choose the kind."""

    name: ClassVar[str] = "reading"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """List the passes through the encoder of each kind, and what is made of them."""
        return {
            "kinds": [
                ["Cross-encoder", [["sentence 1", "sentence 2", "condition"]], "a score"],
                ["Bi-encoder", [["sentence 1", "condition"], ["sentence 2", "condition"]], "cosine of two vectors"],
                [
                    "Tri-encoder",
                    [["sentence 1"], ["sentence 2"], ["condition"]],
                    "each sentence is combined with the condition; then the cosine of two vectors",
                ],
            ]
        }
