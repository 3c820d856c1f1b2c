"""Figures of lesson 3: what is read together, counted and measured, and what each kind can do."""

from __future__ import annotations

import secrets
import time
from itertools import combinations
from typing import Any, ClassVar, Literal

from pydantic import Field

from condviz.evaluation.scoreboard import PARTS, pair_accuracies
from condviz.methods.catalog import CATALOG
from condviz.models.registry import describe
from condviz.ui.learn.figures.base import Figure


class Reading(Figure):
    """What is read together by cross-, bi- and tri-encoders; radio buttons choose the kind, all in the browser."""

    name: ClassVar[str] = "reading"

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


_DOINGS = ("surfs", "paints a fence", "waits for a train", "feeds two goats", "plays the cello", "bakes bread")
_ASKED = ("the activity", "the place", "the number of people", "the mood", "the weather", "the time of day")


class Measure(Figure):
    """The three kinds of encoder, counted and timed on this machine; new texts in every run, so no cache helps."""

    name: ClassVar[str] = "measure"
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
            method = CATALOG[info.method]
            once = "yes" if method.separable else "partly" if method.meets == "router" else "no"
            able = ["yes" if info.encodes else "no", once, "yes" if info.has_router else "no"]
            rows.append([info.title, info.kind, able, measured.get(name, {}).get(part)])
        return {"rows": rows, "about": PARTS[part].about}


FIGURES = (Counts, Kinds, Measure, Reading)
