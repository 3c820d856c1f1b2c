"""Counted encodings and measured time of the three kinds of encoder, on the machine that serves the page."""

from __future__ import annotations

import secrets
import time
from itertools import combinations
from typing import Any, ClassVar

from pydantic import Field

from condviz.ui.learn.figures.base import Figure

_DOINGS = ("surfs", "paints a fence", "waits for a train", "feeds two goats", "plays the cello", "bakes bread")
_ASKED = ("the activity", "the place", "the number of people", "the mood", "the weather", "the time of day")


class Measure(Figure):
    """Texts are new in every run, so that nothing comes from a cache."""

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
