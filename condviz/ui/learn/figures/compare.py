"""Pairs of sentences: bets on them, the bars of the Compare tab, and its table of several models."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

import condviz
from condviz.plots import similarity
from condviz.types import Comparison
from condviz.ui.first_screen import pack, unpack
from condviz.ui.learn.figures.base import Figure, Lines, Sentence
from condviz.ui.state import pair_link


class Compare(Figure):
    """The bars of one model, by default the one that leads the page; they move as one types."""

    name: ClassVar[str] = "compare"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    conditions: Lines = Field(title="Conditions, one per line")
    model: str | None = ""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Score the pair under each condition."""
        return pack(condviz.compare(models, self.sentence1, self.sentence2, self.conditions))

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Draw headline and bars as in the Compare tab."""
        comparison = unpack(Comparison, data)
        return {"headline": similarity.headline(comparison), "bars": similarity.bars(comparison)}

    def link(self) -> str:
        """Open the Compare tab."""
        return pair_link("compare", (self.sentence1, self.sentence2), self.conditions, self.model or "")


class Models(Compare):
    """As the figure "compare", with the models that the lesson names."""

    name: ClassVar[str] = "models"
    model: None = None
    names: tuple[str, ...] = ("cross-encoder", "bi-encoder", "hyper-cl")

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Draw models x conditions."""
        comparison = unpack(Comparison, data)
        return {"matrix": similarity.matrix(comparison)}


# ---- predict, then reveal: pairs to bet on, with the answer of a model and of whoever wrote them ---------------------


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
        places = []
        for pair in self.pairs:
            found = condviz.compare(models, pair.sentence1, pair.sentence2, pair.condition or "anything")
            place = found.percentiles[0, 0] if pair.condition else found.unconditional_percentiles[0]
            places.append(round(float(place), 1))
        return {"model": models[0].info.title, "places": places}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Put each pair beside its answers and the link that opens it."""
        rows = []
        for pair, place in zip(self.pairs, data["places"], strict=True):
            link = pair_link("compare", (pair.sentence1, pair.sentence2), [pair.condition])
            said = "alike" if place >= 50 else "unlike"
            rows.append({"pair": pair, "place": round(place), "said": said, "link": link})
        return {"rows": rows, "model": data["model"]}


FIGURES = (Bets, Compare, Models)
