"""Vectors and matrices: arrows, cosines, the matrices W_c of Hyper-CL as pictures, and their singular values."""

from __future__ import annotations

import base64
import io
import re
from typing import Annotated, Any, ClassVar

import numpy as np
from PIL import Image
from pydantic import Field

from condviz.data.texts import check_condition, check_sentence
from condviz.plots.similarity import tint
from condviz.ui.learn.figures.base import HIDDEN, Figure, Lines, Sentence
from condviz.ui.state import pair_link

# ---- lesson 2: arrows in the plane, sentences as arrows, what a cosine means -----------------------------------------

Degrees = Annotated[float, Field(ge=-180, le=180)]
Length = Annotated[float, Field(gt=0, le=1)]


def _sentences(*texts: str) -> list[str]:
    return [check_sentence(text, f"sentence {place}") for place, text in enumerate(texts, start=1)]


class Plane(Figure):
    """Two arrows to drag: directions in degrees, lengths as shares of the largest, goals as cosines to reach."""

    first: Degrees = 20
    second: Degrees = 75
    lengths: tuple[Length, Length] = (0.9, 0.7)
    goals: tuple[Annotated[float, Field(ge=-1, le=1)], ...] = ()

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Leave it to the browser."""
        return {"first": self.first, "second": self.second, "lengths": list(self.lengths), "goals": list(self.goals)}


class Angle(Figure):
    """Two sentences as two arrows; by default of the pretrained encoder, which knows no condition."""

    button: ClassVar[str] = "Show the angle"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    model: str = "minilm"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import cosine

        first, second = models[0].encode_sentences(_sentences(self.sentence1, self.sentence2))
        alike = cosine(first, second)
        numbers = [[round(float(value), 3) for value in vector[:4]] for vector in (first, second)]
        angle = float(np.degrees(np.arccos(np.clip(alike, -1, 1))))
        return {"cosine": round(alike, 4), "angle": round(angle, 2), "size": len(first), "numbers": numbers}

    def link(self) -> str:
        return pair_link("compare", (self.sentence1, self.sentence2), [])


class Cosines(Figure):
    """The cosine of every two sentences, without a condition and under one."""

    button: ClassVar[str] = "Compare all"
    sentences: Lines = Field(title="Sentences, one per line", min_length=2, max_length=5)
    condition: str = Field(title="Condition", max_length=300)
    model: str = ""

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Encode every sentence twice and take all cosines, (2, n, n)."""
        texts, condition = _sentences(*self.sentences), check_condition(self.condition, "condition")
        vectors = np.stack([models[0].encode_sentences(texts), models[0].encode(texts, [condition] * len(texts))])
        units = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return {"tables": np.round((units @ units.transpose(0, 2, 1)).astype(float), 3).tolist()}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        tables = data["tables"]
        cells = [[[{"value": value, "tint": tint(value, 1.0)} for value in row] for row in table] for table in tables]
        return {"tables": cells}


PAIR_BINS = 40


class Yardstick(Figure):
    """Where a cosine lies among the stored reference pairs of some models."""

    cosine: float = Field(default=0.3, ge=-0.5, le=1, multiple_of=0.01, title="Cosine")
    names: tuple[str, ...] = ("minilm", "hyper-cl", "bi-encoder")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Count the reference pairs of each model in bins from -0.5 to 1, and those below the cosine, in %."""
        from condviz.analysis.reference import percentile, reference_scores

        rows, pairs = [], 0
        for model in models:
            scores = reference_scores(model)
            counts, _ = np.histogram(np.clip(scores, -0.5, 1), bins=PAIR_BINS, range=(-0.5, 1))
            place = float(percentile(np.array([self.cosine]), scores)[0])
            pairs = len(scores)
            rows.append({"title": model.info.title, "counts": counts.tolist(), "place": round(place, 1)})
        return {"rows": rows, "pairs": pairs}


# ---- the matrices W_c that Hyper-CL makes from two conditions, and the thin factors of the first ---------------------

CORNER = 64
"""Rows and columns that are drawn: single numbers stay visible."""
_ZERO, _MORE, _LESS = np.array([255, 254, 251]), np.array([26, 84, 150]), np.array([190, 90, 20])


class Matrix(Figure):
    """Pictures of the upper left corner."""

    button: ClassVar[str] = "Make the matrices"
    condition1: str = Field(title="Condition", max_length=300)
    condition2: str = Field(title="Another condition", max_length=300)
    model: str = "hyper-cl"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Make both matrices and compare them as long lists of numbers: their cosine."""
        from condviz.analysis.lessons import cosine

        texts = self.condition1, self.condition2
        first, second = (models[0].condition_matrix(check_condition(text, "condition")) for text in texts)
        alike = round(cosine(first.ravel(), second.ravel()), 3)
        return {"corners": [_pack(first), _pack(second)], "alike": alike, "size": len(first)}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        return data | {"corners": [_picture(corner) for corner in data["corners"]], "corner": CORNER}


class Factors(Figure):
    """A tall and a wide matrix whose product is W_c."""

    button: ClassVar[str] = "Make the matrix"
    condition: str = Field(title="Condition", max_length=300)
    model: str = "hyper-cl"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Ask the two hypernetworks for their factors, (d, K) and (K, d)."""
        import torch

        model = models[0]
        with torch.no_grad():
            encoded = model.encode_conditions([check_condition(self.condition, "condition")], convert_to_tensor=True)
            left, right = (factor[0].float().cpu().numpy() for factor in model.factors(encoded))
        # A row vector is multiplied by left, then by right; W_c, which multiplies a column, is the transpose of that.
        packed = {"tall": _pack(right.T), "wide": _pack(left.T), "whole": _pack((left @ right).T)}
        return packed | {"size": len(left), "rank": left.shape[1]}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        return data | {key: _picture(data[key]) for key in ("tall", "wide", "whole")} | {"corner": CORNER}


class Size(Figure):
    """How many numbers a hypernetwork has to make, and how many it is made of."""

    width: int = Field(default=384, ge=64, le=1024, multiple_of=64, title="Numbers in a sentence vector, H")
    rank: int = Field(default=48, ge=1, le=256, title="Rank, K")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        made = [self.width**2, 2 * self.width * self.rank]
        return {"made": made, "learned": [(self.width + 1) * count for count in made]}


def _pack(matrix: np.ndarray) -> dict[str, Any]:
    """Keep the corner of a matrix as whole numbers from -127 to 127: full colour at three standard deviations."""
    corner = matrix[:CORNER, :CORNER]
    levels = np.clip(127 * corner / (3 * matrix.std()), -127, 127).astype(np.int8)
    return {"shape": list(levels.shape), "levels": base64.b64encode(levels.tobytes()).decode("ascii")}


def _picture(packed: dict[str, Any]) -> str:
    """Paint a packed corner: blue above zero, orange below; an address for an img."""
    levels = np.frombuffer(base64.b64decode(packed["levels"]), np.int8).reshape(packed["shape"]) / 127
    ends = np.where(levels[..., None] > 0, _MORE, _LESS)
    colours = _ZERO + np.abs(levels[..., None]) * (ends - _ZERO)
    image = Image.fromarray(colours.astype(np.uint8))
    buffer = io.BytesIO()
    image.resize((4 * image.width, 4 * image.height), Image.Resampling.NEAREST).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


# ---- singular values -------------------------------------------------------------------------------------------------

MOST = 48
"""Singular values of the shipped model."""


class Spectrum(Figure):
    """W_c = U S V^T with some singular values left out, or a random matrix of the same rank in its place."""

    condition: str = Field(title="Condition", max_length=300)
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    keep: int = Field(default=MOST, ge=1, le=MOST, title="Singular values kept, the largest first")
    off: str = Field(default="", max_length=200, title="Switched off, by number", json_schema_extra=HIDDEN)
    random: bool = Field(default=False, title="Use a random matrix instead")
    draw: int = Field(default=1, ge=0, le=9, title="Another draw of the random matrix")
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    model: str = "hyper-cl"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import cosine
        from condviz.analysis.reference import percentile, reference_scores

        model, condition = models[0], check_condition(self.condition, "condition")
        pair, groups = _sentences(self.sentence1, self.sentence2), self.groups.values()
        vectors = model.encode_sentences([*pair, *(text for texts in groups for text in texts)])
        left, values, right = np.linalg.svd(model.condition_matrix(condition))
        count = min(MOST, int((values > 1e-5 * values[0]).sum()))
        out = {int(number) for number in re.findall(r"\d{1,3}", self.off)}
        on = np.array([place <= self.keep and place not in out for place in range(1, count + 1)])
        whole = (left[:, :count] * values[:count]) @ right[:count]
        used = (left[:, :count] * (values[:count] * on)) @ right[:count]
        if self.random:
            drawn = np.random.default_rng(self.draw).normal(size=(2, len(whole), count))
            used = drawn[0] @ drawn[1].T / count
        scores = [cosine(*(vectors[:2] @ matrix.T)) for matrix in (np.eye(len(whole)), whole, used)]
        places = percentile(np.array(scores), reference_scores(model))
        labels = np.repeat(np.arange(len(groups)), [len(texts) for texts in groups])
        after = _units(vectors[2:] @ used.T)
        axes = _axes(after if self.random else _units(vectors[2:] @ whole.T))
        plain = _units(vectors[2:])
        return {
            "values": np.round(values[:count].astype(float), 3).tolist(), "on": on.tolist(), "labels": labels.tolist(),
            "scores": [round(float(value), 4) for value in scores],
            "places": [round(float(value), 1) for value in places],
            "before": _project(plain, _axes(plain)), "after": _project(after, axes),
            "beside": [_neighbours(plain, labels), _neighbours(after, labels)],
        }  # fmt: skip

    def link(self) -> str:
        return pair_link("compare", (self.sentence1, self.sentence2), [self.condition], self.model)


def _units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _axes(units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the first two principal axes, whose sign is fixed so that the map does not flip."""
    if len(units) < 3:
        return np.zeros(units.shape[1]), np.eye(2, units.shape[1])
    mean = units.mean(axis=0)
    axes = np.linalg.svd(units - mean, full_matrices=False)[2][:2]
    return mean, axes * np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]


def _project(units: np.ndarray, axes: tuple[np.ndarray, np.ndarray]) -> list[list[float]]:
    """Return the places on a map that reaches from -100 to 100."""
    points = ((units - axes[0]) @ axes[1].T).astype(float)
    return np.round(100 * points / max(np.abs(points).max(initial=0.0), 1e-9), 1).tolist()


def _neighbours(units: np.ndarray, labels: np.ndarray) -> int:
    """Count the sentences whose nearest other sentence is of their own group."""
    if len(units) < 2:
        return 0
    alike = units @ units.T - 9 * np.eye(len(units))
    return int((labels[alike.argmax(axis=1)] == labels).sum())
