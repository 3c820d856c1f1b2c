"""Spaces of sentences: impurity of conditions; what CASE subtracts, and how projections differ."""

# Choices of menus are the keys of tables, which are no literals to pyright.
# pyright: reportInvalidTypeForm=false
from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from condviz.models.registry import describe
from condviz.ui.learn.figures.base import Figure, Lines, Sentence
from condviz.ui.state import pair_link, write_link

HAND_GROUPS = "111122223333"
"""Conditions of the twelve points."""
MODELS = (
    "bi-encoder", "case", "csr", "csr-bi", "csr-prefix", "hyper-cl", "tri-concat", "tri-hadamard", "case-zero-shot"
)  # fmt: skip
Model = Literal[*MODELS]


class ImpurityHand(Figure):
    """Twelve points, four under each of three conditions, to be put into clusters A, B and C."""

    clusters: Annotated[str, Field(max_length=40)] = Field("AAABBBBCCCCA", title="Cluster of each point: A, B or C")
    sums: bool = False
    """Whether the parts of the sum are shown."""

    @property
    def letters(self) -> str:
        """The clusters, twelve of them; anything else than A, B or C counts as A."""
        typed = "".join(self.clusters.upper().split())[: len(HAND_GROUPS)].ljust(len(HAND_GROUPS), "A")
        return "".join(letter if letter in "ABC" else "A" for letter in typed)

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import by_hand

        return by_hand(HAND_GROUPS, self.letters)

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Give each point the letters that a click on it leads to."""
        points = []
        for place, (group, letter) in enumerate(zip(HAND_GROUPS, self.letters, strict=True)):
            following = "ABC"["ABC".index(letter) - 2]
            points.append((group, letter, self.letters[:place] + following + self.letters[place + 1 :]))
        return data | {"points": points}


class ImpurityKmeans(Figure):
    """Twelve points in a plane, which K-means puts into three clusters."""

    distance: Annotated[float, Field(ge=0, le=3, multiple_of=0.25)] = Field(
        0.5, title="How far apart the conditions are"
    )
    draw: Annotated[int, Field(ge=0, le=20)] = Field(0, title="Another draw of the points")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.impurity import kmeans_impurity

        groups = np.array([int(letter) - 1 for letter in HAND_GROUPS])
        middles = np.array([[0, 1], [-0.87, -0.5], [0.87, -0.5]])
        spread = np.random.default_rng(self.draw).standard_normal((len(groups), 2)) / 2
        points = self.distance * middles[groups] + spread
        found = kmeans_impurity(points, groups.tolist(), seeds=range(1))
        measured = {"impurity": found.per_seed[0], "chance": found.chance}
        return {"points": points.round(3).tolist(), "labels": found.labels.tolist(), **measured}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        places = np.array(data["points"]) / max(1.0, float(np.abs(data["points"]).max())) * 90
        letters = dict(zip(dict.fromkeys(data["labels"]), "ABC", strict=False))
        points = zip(places.round(1).tolist(), HAND_GROUPS, (letters[one] for one in data["labels"]), strict=True)
        return data | {"points": [(*place, group, letter) for place, group, letter in points]}


class Spaces(Figure):
    """Sixty sentences under three conditions: alone, under a model, under random matrices, with a label stuck on."""

    rows: Literal["model", "random", "label"]
    """How far down the table goes."""
    answers: bool = False
    """Whether the share of neighbours with the same answer is shown."""
    model: Model = Field("bi-encoder", title="Model")
    seed: Annotated[int, Field(ge=0, le=9)] = Field(0, title="Another draw of the matrices")
    centred: bool = Field(False, title="First take off what all sentences share")
    label: Annotated[float, Field(ge=0, le=1.5, multiple_of=0.1)] = Field(0.0, title="Length of the label")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import measure_spaces
        from condviz.analysis.points import scene_points

        settings = {"seed": self.seed, "centred": self.centred, "label": self.label}
        return {"spaces": measure_spaces(models[0], scene_points(), names=self._names(), **settings)}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        titles = {"alone": "sentences alone", "random": "a random matrix per condition", "label": "a label stuck on"}
        titles |= {"model": describe(self.model).full_title, "chance": "chance"}
        shown = [(name, titles[name], data["spaces"][name]) for name in (*self._names(), "chance")]
        return {"found": shown, "spaces": data["spaces"], "named": titles["model"]}

    def _names(self) -> tuple[str, ...]:
        names = ("alone", "model", "random", "label")
        return names[: names.index(self.rows) + 1]

    def link(self) -> str:
        return write_link("map", [("m", self.model)])


class Ranking(Figure):
    """All models, ranked by one measure or the other."""

    names: tuple[Model, ...] = MODELS
    by: Literal["impurity of conditions", "neighbours with the same answer"] = Field(
        "impurity of conditions", title="Rank by"
    )

    @property
    def key(self) -> str:
        """The order does not change what is computed."""
        return f"{self.name} {' '.join(self.names)}"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import measure
        from condviz.analysis.points import scene_points

        points, rows = scene_points(), []
        for model in models:
            space = measure(model.encode(list(points.texts), list(points.conditions)), points)
            rows.append([model.info.name, space["impurity"], space["agreement"]])
        return {"rows": rows}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        conditions = self.by == "impurity of conditions"
        titled: list[Any] = [(describe(name).full_title, *figures) for name, *figures in data["rows"]]
        rows = sorted(titled, key=lambda row: row[1] if conditions else -row[2])
        places = np.argsort(np.argsort([[row[1] for row in rows], [-row[2] for row in rows]], axis=1), axis=1)
        return {"rows": rows, "conditions": conditions, "agreement": float(np.corrcoef(*places)[0, 1])}


# ---- what CASE subtracts, what it does to many sentences, and how projections differ ---------------------------------
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
        return [ENCODERS[self.encoder]]


class Subtraction(_Case):
    """Two sentences seen from 0, and seen from the condition alone."""

    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    condition: Sentence = Field(title="Condition")
    subtracted: bool = True
    """Whether the second picture is shown."""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import cosine, plane, read_offsets

        found = read_offsets(models[0], [self.sentence1, self.sentence2], self.condition)
        zero = np.zeros_like(found.condition)
        return {
            "joint": cosine(*found.joint), "offset": cosine(*found.offsets),
            "length": float(np.linalg.norm(found.condition)),
            "planes": [plane(start, *found.joint).tolist() for start in (zero, found.condition)],
        }  # fmt: skip

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        largest = max(abs(number) for places in data["planes"] for place in places for number in place) or 1
        planes = [(np.array(places) / largest).tolist() for places in data["planes"]]
        left = min(-18, *(100 * x - 14 for places in planes for x, _ in places))
        lengths = [np.linalg.norm(part, axis=1) for part in data["planes"]]
        return data | {"planes": planes, "left": left, "lengths": lengths}

    def link(self) -> str:
        return pair_link("compare", (self.sentence1, self.sentence2), [self.condition], ENCODERS[self.encoder])


class SubtractionTable(_Case):
    """The cosine of a pair with and without the subtraction, under several conditions."""

    button: ClassVar[str] = "Compare"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    conditions: Lines = Field(title="Conditions, one per line")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import cosine, read_offsets

        texts = [self.sentence1, self.sentence2]
        found = {condition: read_offsets(models[0], texts, condition) for condition in self.conditions}
        return {"rows": [[name, cosine(*one.joint), cosine(*one.offsets)] for name, one in found.items()]}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        spreads = [max(column) - min(column) for column in list(zip(*data["rows"], strict=True))[1:]]
        return data | {"spreads": spreads}


class Isotropy(_Case):
    """Do sixty sentences point everywhere alike, with the condition and without it?"""

    condition: Literal["The number of people", "The time of day", "The weather"] = Field(
        "The number of people", title="Condition"
    )

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.geometry import cosines_to_mean, isotropy
        from condviz.analysis.lessons import read_offsets
        from condviz.analysis.points import scene_points

        found = read_offsets(models[0], scene_points().texts, self.condition)
        sides = {}
        for name, vectors in (("before", found.joint), ("after", found.offsets)):
            counts = np.histogram(cosines_to_mean(vectors), bins=BINS, range=(0, 1))[0].tolist()
            told = isotropy(vectors)
            sides[name] = {"counts": counts, "mean": told.mean_cosine, "std": told.std_cosine, "ipc": told.ipc}
        return {"sides": sides, "count": len(found.joint)}


class Projections(Figure):
    """Items with known answers, projected in four ways."""

    dimension: Annotated[int, Field(ge=2, le=12)] = Field(3, title="Numbers kept, of 12")
    unasked: Annotated[float, Field(ge=0, le=4, multiple_of=0.5)] = Field(
        2.0, title="How much items differ in what was not asked"
    )

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import PROJECTIONS, make_toy, project_toy, rank_same

        toy = make_toy(self.unasked)
        spaces = {name: project_toy(toy, name, self.dimension) for name in PROJECTIONS}
        return {"shares": {name: rank_same(space, toy.labels) for name, space in spaces.items()}}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        titles = {
            "none": "none, all 12 numbers", "pca": "PCA, no ratings", "ica": "ICA, no ratings",
            "linear": "linear, trained on ratings",
        }  # fmt: skip
        return {"rows": [(titles[name], value) for name, value in data["shares"].items()]}


class PaperProjections(Figure):
    """Table 2 of the paper, one encoder at a time."""

    encoder: Literal[*PAPER] = Field("NV", title="Encoder")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        titles = ("non-linear, trained", "linear, trained", "PCA", "ICA")
        return {"rows": list(zip(titles, PAPER[self.encoder], strict=True))}
