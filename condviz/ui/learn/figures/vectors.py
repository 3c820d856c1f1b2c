"""Figures of lesson 2: arrows in the plane, sentences as arrows, and what a cosine means."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from condviz.plots.similarity import tint
from condviz.ui.learn.figures.base import Figure, Lines, Sentence
from condviz.ui.state import write_link

Degrees = Annotated[float, Field(ge=-180, le=180)]
Length = Annotated[float, Field(gt=0, le=1)]


class Plane(Figure):
    """Two arrows to drag: directions in degrees, lengths as shares of the largest, goals as cosines to reach."""

    name: ClassVar[str] = "plane"
    first: Degrees = 20
    second: Degrees = 75
    lengths: tuple[Length, Length] = (0.9, 0.7)
    goals: tuple[Annotated[float, Field(ge=-1, le=1)], ...] = ()

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Leave it to the browser."""
        return {"first": self.first, "second": self.second, "lengths": list(self.lengths), "goals": list(self.goals)}


class Angle(Figure):
    """Two sentences as two arrows; by default of the pretrained encoder, which knows no condition."""

    name: ClassVar[str] = "angle"
    button: ClassVar[str] = "Show the angle"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    model: str = "minilm"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Encode both and measure the angle, in degrees."""
        from condviz.data.texts import check_sentence

        texts = [check_sentence(self.sentence1, "sentence 1"), check_sentence(self.sentence2, "sentence 2")]
        first, second = models[0].encode_sentences(texts)
        cosine = float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
        numbers = [[round(float(value), 3) for value in vector[:4]] for vector in (first, second)]
        angle = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
        return {"cosine": round(cosine, 4), "angle": round(angle, 2), "size": len(first), "numbers": numbers}

    def link(self) -> str:
        """Open the Compare tab."""
        return write_link("compare", [("s1", self.sentence1), ("s2", self.sentence2)])


class Cosines(Figure):
    """The cosine of every two sentences, without a condition and under one."""

    name: ClassVar[str] = "cosines"
    button: ClassVar[str] = "Compare all"
    sentences: Lines = Field(title="Sentences, one per line", min_length=2, max_length=5)
    condition: str = Field(title="Condition", max_length=300)
    model: str = ""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Encode every sentence twice and take all cosines, (2, n, n)."""
        from condviz.data.texts import check_condition, check_sentence

        texts = [check_sentence(text, f"sentence {place}") for place, text in enumerate(self.sentences, start=1)]
        condition = check_condition(self.condition, "condition")
        vectors = np.stack([models[0].encode_sentences(texts), models[0].encode(texts, [condition] * len(texts))])
        units = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return {"tables": np.round((units @ units.transpose(0, 2, 1)).astype(float), 3).tolist()}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Tint each cell on one scale from -1 to 1."""
        tables = [
            [[{"value": value, "tint": tint(value, 1.0)} for value in row] for row in table] for table in data["tables"]
        ]
        return {"tables": tables}


BINS = 40


class Yardstick(Figure):
    """Where a cosine lies among the stored reference pairs of some models."""

    name: ClassVar[str] = "yardstick"
    cosine: float = Field(default=0.3, ge=-0.5, le=1, multiple_of=0.01, title="Cosine")
    names: tuple[str, ...] = ("minilm", "hyper-cl", "bi-encoder")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Count the reference pairs of each model in bins from -0.5 to 1, and those below the cosine, in %."""
        from condviz.analysis.reference import percentile, reference_scores

        rows = []
        for model in models:
            scores = reference_scores(model)
            counts, _ = np.histogram(np.clip(scores, -0.5, 1), bins=BINS, range=(-0.5, 1))
            place = float(percentile(np.array([self.cosine]), scores)[0])
            rows.append({"title": model.info.title, "counts": counts.tolist(), "place": round(place, 1)})
        return {"rows": rows, "pairs": len(scores)}
