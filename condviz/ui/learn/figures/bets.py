"""Predict, then reveal: pairs to bet on, with the answer of a model and of whoever wrote them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from condviz.ui.learn.figures.base import Figure, Sentence
from condviz.ui.state import write_link


class Bet(BaseModel):
    """One pair; without a condition no answer is right."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sentence1: Sentence
    sentence2: Sentence
    condition: str = ""
    answer: Literal["alike", "unlike", ""] = ""


class Bets(Figure):
    """One pair at a time; the browser keeps what was bet."""

    name: ClassVar[str] = "bets"
    pairs: tuple[Bet, ...] = Field(min_length=1, max_length=20)
    model: str = ""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Say where the model puts each pair among its reference pairs, in %."""
        from condviz.analysis.compare import compare

        places = []
        for pair in self.pairs:
            found = compare(models, pair.sentence1, pair.sentence2, pair.condition or "anything")
            place = found.percentiles[0, 0] if pair.condition else found.unconditional_percentiles[0]
            places.append(round(float(place), 1))
        return {"model": models[0].info.title, "places": places}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Put each pair beside its answers and the link that opens it."""
        rows = [
            {
                "pair": pair,
                "place": round(place),
                "said": "alike" if place >= 50 else "unlike",
                "link": write_link("compare", [("s1", pair.sentence1), ("s2", pair.sentence2), ("c", pair.condition)]),
            }
            for pair, place in zip(self.pairs, data["places"], strict=True)
        ]
        return {"rows": rows, "model": data["model"]}
