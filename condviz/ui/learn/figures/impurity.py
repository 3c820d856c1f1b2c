"""Impurity of conditions: by hand, by K-means, beside random matrices, beside what it is blind to."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from condviz.ui.learn.figures.base import Figure
from condviz.ui.state import write_link

HAND_GROUPS = "111122223333"
"""Conditions of the twelve points."""
MODELS = (
    "bi-encoder", "case", "csr", "csr-bi", "csr-prefix", "hyper-cl", "tri-concat", "tri-hadamard", "case-zero-shot"
)  # fmt: skip
Model = Literal[*MODELS]


class ImpurityByHand(Figure):
    """Twelve points, four under each of three conditions, to be put into clusters A, B and C."""

    name: ClassVar[str] = "impurity-hand"
    clusters: Annotated[str, Field(max_length=40)] = Field("AAABBBBCCCCA", title="Cluster of each point: A, B or C")
    sums: bool = False
    """Whether the parts of the sum are shown."""

    @property
    def letters(self) -> str:
        """The clusters, twelve of them; anything else than A, B or C counts as A."""
        typed = "".join(self.clusters.upper().split())[: len(HAND_GROUPS)].ljust(len(HAND_GROUPS), "A")
        return "".join(letter if letter in "ABC" else "A" for letter in typed)

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Count, and add up."""
        from condviz.analysis.lessons import by_hand

        return by_hand(HAND_GROUPS, self.letters)

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Give each point the letters that a click on it leads to."""
        points = []
        for place, (group, letter) in enumerate(zip(HAND_GROUPS, self.letters, strict=True)):
            following = "ABC"["ABC".index(letter) - 2]
            points.append((group, letter, self.letters[:place] + following + self.letters[place + 1 :]))
        return data | {"points": points}


class ImpurityKMeans(Figure):
    """Twelve points in a plane, which K-means puts into three clusters."""

    name: ClassVar[str] = "impurity-kmeans"
    distance: Annotated[float, Field(ge=0, le=3, multiple_of=0.25)] = Field(
        0.5, title="How far apart the conditions are"
    )
    draw: Annotated[int, Field(ge=0, le=20)] = Field(0, title="Another draw of the points")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Draw the points, find the clusters, measure."""
        from condviz.analysis.impurity import kmeans_impurity

        groups = np.array([int(letter) - 1 for letter in HAND_GROUPS])
        middles = np.array([[0, 1], [-0.87, -0.5], [0.87, -0.5]])
        spread = np.random.default_rng(self.draw).standard_normal((len(groups), 2)) / 2
        points = self.distance * middles[groups] + spread
        found = kmeans_impurity(points, groups.tolist(), seeds=range(1), num_shuffles=50)
        measured = {"impurity": found.per_seed[0], "chance": found.chance}
        return {"points": points.round(3).tolist(), "labels": found.labels.tolist(), **measured}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Scale the plane, and join group and cluster to each point."""
        places = np.array(data["points"]) / max(1.0, float(np.abs(data["points"]).max())) * 90
        letters = dict(zip(dict.fromkeys(data["labels"]), "ABC", strict=False))
        points = zip(places.round(1).tolist(), HAND_GROUPS, (letters[one] for one in data["labels"]), strict=True)
        return data | {"points": [(*place, group, letter) for place, group, letter in points]}


class Spaces(Figure):
    """Sixty sentences under three conditions: alone, under a model, under random matrices, with a label stuck on."""

    name: ClassVar[str] = "spaces"
    rows: Literal["model", "random", "label"]
    """How far down the table goes."""
    answers: bool = False
    """Whether the share of neighbours with the same answer is shown."""
    model: Model = Field("bi-encoder", title="Model")
    seed: Annotated[int, Field(ge=0, le=9)] = Field(0, title="Another draw of the matrices")
    centred: bool = Field(False, title="First take off what all sentences share")
    label: Annotated[float, Field(ge=0, le=1.5, multiple_of=0.1)] = Field(0.0, title="Length of the label")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Measure every space."""
        from condviz.analysis.lessons import measure_spaces
        from condviz.analysis.points import scene_points

        settings = {"seed": self.seed, "centred": self.centred, "label": self.label}
        return {"spaces": measure_spaces(models[0], scene_points(), names=self._names(), **settings)}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Choose and name the rows."""
        titles = {"alone": "sentences alone", "model": self.model, "random": "a random matrix per condition",
                  "label": "a label stuck on", "chance": "chance"}  # fmt: skip
        shown = [(name, titles[name], data["spaces"][name]) for name in (*self._names(), "chance")]
        return {"found": shown, "spaces": data["spaces"]}

    def _names(self) -> tuple[str, ...]:
        names = ("alone", "model", "random", "label")
        return names[: names.index(self.rows) + 1]

    def link(self) -> str:
        """Open the Map tab."""
        return write_link("map", [("m", self.model)])


class Ranking(Figure):
    """All models, ranked by one measure or the other."""

    name: ClassVar[str] = "ranking"
    names: tuple[Model, ...] = MODELS
    by: Literal["impurity of conditions", "neighbours with the same answer"] = Field(
        "impurity of conditions", title="Rank by"
    )

    @property
    def key(self) -> str:
        """The order does not change what is computed."""
        return f"{self.name} {' '.join(self.names)}"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Measure every model on the same sentences."""
        from condviz.analysis.lessons import measure
        from condviz.analysis.points import scene_points

        points, rows = scene_points(), []
        for model in models:
            space = measure(model.encode(list(points.texts), list(points.conditions)), points)
            rows.append([model.info.name, space.impurity, space.agreement])
        return {"rows": rows}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Sort: low impurity, or many neighbours, first."""
        conditions = self.by == "impurity of conditions"
        rows = sorted(data["rows"], key=lambda row: row[1] if conditions else -row[2])
        places = np.argsort(np.argsort([[row[1] for row in rows], [-row[2] for row in rows]], axis=1), axis=1)
        return {"rows": rows, "conditions": conditions, "agreement": float(np.corrcoef(places)[0, 1])}


FIGURES = (ImpurityByHand, ImpurityKMeans, Spaces, Ranking)
