"""Models: pairs to bet on, bars and table as in Compare; kinds of encoders, what each reads, and what it can do."""

from __future__ import annotations

import secrets
import time
from itertools import combinations
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

import condviz
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import PARTS, pair_accuracies
from condviz.methods.catalog import CATALOG
from condviz.models.registry import describe
from condviz.plots import similarity
from condviz.types import Comparison
from condviz.ui.export import pack, unpack
from condviz.ui.learn.figures.base import Figure, Lines, Sentence
from condviz.ui.state import pair_link


class Compare(Figure):
    """The bars of one model, by default the one that leads the page; they move as one types."""

    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    conditions: Lines = Field(title="Conditions, one per line")
    model: Any = ""
    """A name; None where there are `names`."""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        return pack(condviz.compare(models, self.sentence1, self.sentence2, self.conditions))

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        comparison = unpack(Comparison, data)
        return {"headline": similarity.headline(comparison), "bars": similarity.bars(comparison)}

    def link(self) -> str:
        return pair_link("compare", (self.sentence1, self.sentence2), self.conditions, self.model or "")


class Models(Compare):
    """As the figure "compare", with the models that the lesson names."""

    model: None = None
    names: tuple[str, ...] = ("cross-encoder", "bi-encoder", "hyper-cl")

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
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
            rows.append({"pair": pair, "place": place, "share": similarity.share(place), "said": said, "link": link})
        return {"rows": rows, "model": data["model"]}


# ---- kinds of encoders: what is read together, counted and measured, and what each can do ----------------------------
class Reading(Figure):
    """What is read together by cross-, bi- and tri-encoders; radio buttons choose the kind, all in the browser."""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """List the passes through the encoder of each kind, and what is made of them."""
        combined = "each sentence is combined with the condition; then the cosine of two vectors"
        bi = [["sentence 1", "condition"], ["sentence 2", "condition"]]
        return {
            "kinds": [
                ["Cross-encoder", [["sentence 1", "sentence 2", "condition"]], "a score"],
                ["Bi-encoder", bi, "cosine of two vectors"],
                ["Tri-encoder", [["sentence 1"], ["sentence 2"], ["condition"]], combined],
            ]
        }


def passes(sentences: int, conditions: int) -> dict[str, int]:
    """Return how many texts each kind of encoder reads to score every pair of sentences under every condition."""
    cross = sentences * (sentences - 1) // 2 * conditions
    return {"Cross-encoder": cross, "Bi-encoder": sentences * conditions, "Tri-encoder": sentences + conditions}


class Counts(Figure):
    """How often the encoder runs for all pairs; bars on one scale, and beside them what one more text costs."""

    n: int = Field(default=10, ge=2, le=200, title="Sentences")
    m: int = Field(default=4, ge=1, le=50, title="Conditions")
    added: Literal["nothing", "one sentence", "one condition"] = Field(default="nothing", title="Then add")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        before = passes(self.n, self.m)
        after = passes(self.n + (self.added == "one sentence"), self.m + (self.added == "one condition"))
        rows = [[kind, count, after[kind] - count] for kind, count in before.items()]
        return {"rows": rows, "most": max(before.values())}


_DOINGS = ("surfs", "paints a fence", "waits for a train", "feeds two goats", "plays the cello", "bakes bread")
_ASKED = ("the activity", "the place", "the number of people", "the mood", "the weather", "the time of day")


class Measure(Figure):
    """The three kinds of encoder, counted and timed on this machine; new texts in every run, so no cache helps."""

    button: ClassVar[str] = "Measure again"
    kept: ClassVar[bool] = False
    n: int = Field(default=6, ge=2, le=12, title="Sentences")
    m: int = Field(default=3, ge=1, le=6, title="Conditions")
    names: tuple[str, str, str] = ("cross-encoder", "bi-encoder", "hyper-cl")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Score all pairs under all conditions, count what goes through the encoder, and take the time."""
        rows = []
        for model in models:
            mark = secrets.token_hex(2)
            sentences = [f"Person {mark}-{place} {_DOINGS[place % len(_DOINGS)]}." for place in range(self.n)]
            conditions = [f"{text}, question {mark}" for text in _ASKED[: self.m]]
            counted: list[int] = []

            def told(done: int, total: int, counted: list[int] = counted) -> None:
                if done == total:
                    counted.append(total)

            start = time.perf_counter()
            if model.encodes:
                model.encode_grid(sentences, conditions, progress=told)
            else:
                rated = [(*pair, condition) for pair in combinations(sentences, 2) for condition in conditions]
                model.score(*map(list, zip(*rated, strict=True)), progress=told)
            seconds = time.perf_counter() - start
            rows.append([model.info.title, model.info.kind, sum(counted), round(1000 * seconds)])
        return {"rows": rows, "most": max(row[3] for row in rows), "pairs": self.n * (self.n - 1) // 2}


_PARTS = {
    "new sentences": "test",
    "new wordings": "unseen_phrasings",
    "conditions never asked before": "unseen_aspects",
}


class Kinds(Figure):
    """What models can do and how often they are right: from the catalogue and the stored benchmark."""

    measured: Literal["new sentences", "new wordings", "conditions never asked before"] = Field(
        default="new sentences", title="Tested on"
    )
    listed: tuple[str, ...] = ("cross-encoder", "bi-encoder", "csr-bi", "tri-hadamard", "hyper-cl", "csr")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        part, measured = _PARTS[self.measured], pair_accuracies()
        rows = []
        for name in self.listed:
            info = describe(name)
            method = CATALOG[info.method]
            once = "yes" if method.separable else "partly" if method.meets == "router" else "no"
            able = ["yes" if info.encodes else "no", once, "yes" if info.has_router else "no"]
            rows.append([info.title, info.kind, able, measured.get(name, {}).get(part, Metric(None)).value])
        return {"rows": rows, "about": PARTS[part].about}
