"""What the models of each kind can do, and how often they are right."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from condviz.evaluation.leaders import pair_accuracies
from condviz.evaluation.scoreboard import PARTS
from condviz.models.registry import describe
from condviz.ui.learn.figures.base import Figure

_PARTS = {
    "new sentences": "test",
    "new wordings": "unseen_phrasings",
    "conditions never asked before": "unseen_aspects",
}


class Kinds(Figure):
    """From the catalogue and the stored benchmark; no model is loaded."""

    name: ClassVar[str] = "kinds"
    measured: Literal["new sentences", "new wordings", "conditions never asked before"] = Field(
        default="new sentences", title="Tested on"
    )
    listed: tuple[str, ...] = ("cross-encoder", "bi-encoder", "csr-bi", "tri-hadamard", "hyper-cl", "csr")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Read abilities and pair accuracies, in %."""
        part, measured = _PARTS[self.measured], pair_accuracies()
        rows = []
        for name in self.listed:
            info = describe(name)
            able = [info.encodes, info.kind == "tri", info.has_router]
            rows.append([info.title, info.kind, able, measured.get(name, {}).get(part)])
        return {"rows": rows, "about": PARTS[part].about}
