"""What CASE subtracts, what it does to many sentences, and how projections differ."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from condviz.ui.learn.figures.base import Figure, Lines, Sentence
from condviz.ui.state import pair_link

BINS = 20
ENCODERS = {"not trained": "case-zero-shot", "trained here": "case"}
Encoder = Literal[*ENCODERS]
PAPER = {
    "NV": (69.08, 69.95, 32.04, 19.13), "SFR": (62.85, 59.22, 19.86, -1.99), "GTE": (64.16, 56.10, 22.82, 7.26),
    "E5": (62.12, 47.03, 11.43, -0.17), "SimCSE large": (56.67, 45.96, 8.22, -4.89),
    "SimCSE base": (56.60, 39.54, 6.19, -1.66),
}  # fmt: skip
"""CASE, Table 2: Spearman at 512 numbers of the non-linear projection, the linear one, PCA and ICA."""


class _Case(Figure):
    """A figure of CASE; its `encoder` says of which."""

    encoder: Encoder = Field("not trained", title="Encoder")

    def models(self, default: str) -> list[str]:
        """See `Figure`."""
        return [ENCODERS[self.encoder]]


class Subtraction(_Case):
    """Two sentences seen from 0, and seen from the condition alone."""

    name: ClassVar[str] = "subtraction"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    condition: Sentence = Field(title="Condition")
    subtracted: bool = True
    """Whether the second picture is shown."""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Encode both with the condition, and lay each plane out."""
        from condviz.analysis.lessons import cosine
        from condviz.analysis.subtraction import plane, read_offsets

        found = read_offsets(models[0], [self.sentence1, self.sentence2], self.condition)
        zero = np.zeros_like(found.condition)
        return {
            "joint": cosine(*found.joint), "offset": cosine(*found.offsets),
            "length": float(np.linalg.norm(found.condition)),
            "planes": [plane(start, *found.joint).tolist() for start in (zero, found.condition)],
        }  # fmt: skip

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Scale both planes alike."""
        largest = max(abs(number) for places in data["planes"] for place in places for number in place) or 1
        planes = [(np.array(places) / largest).tolist() for places in data["planes"]]
        left = min(-18, *(100 * x - 14 for places in planes for x, _ in places))
        lengths = [np.linalg.norm(part, axis=1) for part in data["planes"]]
        return data | {"planes": planes, "left": left, "lengths": lengths}

    def link(self) -> str:
        """Open the Compare tab."""
        return pair_link("compare", (self.sentence1, self.sentence2), [self.condition], ENCODERS[self.encoder])


class SubtractionTable(_Case):
    """The cosine of a pair with and without the subtraction, under several conditions."""

    name: ClassVar[str] = "subtraction-table"
    button: ClassVar[str] = "Compare"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    conditions: Lines = Field(title="Conditions, one per line")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Encode the pair under each condition."""
        from condviz.analysis.lessons import cosine
        from condviz.analysis.subtraction import read_offsets

        texts = [self.sentence1, self.sentence2]
        found = {condition: read_offsets(models[0], texts, condition) for condition in self.conditions}
        return {"rows": [[name, cosine(*one.joint), cosine(*one.offsets)] for name, one in found.items()]}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Add how far the conditions are apart."""
        spreads = [max(column) - min(column) for column in list(zip(*data["rows"], strict=True))[1:]]
        return data | {"spreads": spreads}


class Isotropy(_Case):
    """Do sixty sentences point everywhere alike, with the condition and without it?"""

    name: ClassVar[str] = "isotropy"
    condition: Literal["The number of people", "The time of day", "The weather"] = Field(
        "The number of people", title="Condition"
    )

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Measure the sentences of the map under one condition."""
        from condviz.analysis.geometry import cosines_to_mean, isotropy
        from condviz.analysis.points import scene_points
        from condviz.analysis.subtraction import read_offsets

        found = read_offsets(models[0], scene_points().texts, self.condition)
        sides = {}
        for name, vectors in (("before", found.joint), ("after", found.offsets)):
            counts = np.histogram(cosines_to_mean(vectors), bins=BINS, range=(0, 1))[0].tolist()
            told = isotropy(vectors)
            sides[name] = {"counts": counts, "mean": told.mean_cosine, "std": told.std_cosine, "ipc": told.ipc}
        return {"sides": sides, "count": len(found.joint)}


class Projections(Figure):
    """Items with known answers, projected in four ways."""

    name: ClassVar[str] = "projections"
    dimension: Annotated[int, Field(ge=2, le=12)] = Field(3, title="Numbers kept, of 12")
    unasked: Annotated[float, Field(ge=0, le=4, multiple_of=0.5)] = Field(
        2.0, title="How much items differ in what was not asked"
    )

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Draw the items, project them, and count how often the same answer is nearer."""
        from condviz.analysis.subtraction import PROJECTIONS, make_toy, project_toy, rank_same

        toy = make_toy(self.unasked)
        spaces = {name: project_toy(toy, name, self.dimension) for name in PROJECTIONS}
        return {"shares": {name: rank_same(space, toy.labels) for name, space in spaces.items()}}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Name the projections."""
        titles = {
            "none": "none, all 12 numbers", "pca": "PCA, no ratings", "ica": "ICA, no ratings",
            "linear": "linear, trained on ratings",
        }  # fmt: skip
        return {"rows": [(titles[name], value) for name, value in data["shares"].items()]}


class PaperProjections(Figure):
    """Table 2 of the paper, one encoder at a time."""

    name: ClassVar[str] = "paper-projections"
    encoder: Literal[*PAPER] = Field("NV", title="Encoder")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Look the row up."""
        titles = ("non-linear, trained", "linear, trained", "PCA", "ICA")
        return {"rows": list(zip(titles, PAPER[self.encoder], strict=True))}


FIGURES = (Subtraction, SubtractionTable, Isotropy, Projections, PaperProjections)
