"""What W_c does to sentences, singular value by singular value: a score, and a map of some sentences."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from condviz.ui.learn.figures.base import HIDDEN, Figure, Sentence
from condviz.ui.state import write_link

MOST = 48
"""Singular values of the shipped model."""


class Spectrum(Figure):
    """W_c = U S V^T with some singular values left out, or a random matrix of the same rank in its place."""

    name: ClassVar[str] = "spectrum"
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
        """Multiply the pair and the sentences of the map by what is left of W_c."""
        from condviz.analysis.reference import percentile, reference_scores
        from condviz.data.texts import check_condition, check_sentence

        model, condition = models[0], check_condition(self.condition, "condition")
        pair = [check_sentence(self.sentence1, "sentence 1"), check_sentence(self.sentence2, "sentence 2")]
        vectors = model.encode_sentences([*pair, *(text for texts in self.groups.values() for text in texts)])
        left, values, right = np.linalg.svd(model.condition_matrix(condition))
        count = min(MOST, int((values > 1e-5 * values[0]).sum()))
        out = {int(number) for number in re.findall(r"\d{1,3}", self.off)}
        on = np.array([place <= self.keep and place not in out for place in range(1, count + 1)])
        whole = (left[:, :count] * values[:count]) @ right[:count]
        used = (left[:, :count] * (values[:count] * on)) @ right[:count]
        if self.random:
            drawn = np.random.default_rng(self.draw).normal(size=(2, len(whole), count))
            used = drawn[0] @ drawn[1].T / count
        scores = [_cosine(*(vectors[:2] @ matrix.T)) for matrix in (np.eye(len(whole)), whole, used)]
        places = percentile(np.array(scores), reference_scores(model))
        labels = np.repeat(np.arange(len(self.groups)), [len(texts) for texts in self.groups.values()])
        after = _units(vectors[2:] @ used.T)
        axes = _axes(after if self.random else _units(vectors[2:] @ whole.T))
        plain = _units(vectors[2:])
        return {
            "values": np.round(values[:count].astype(float), 3).tolist(),
            "on": on.tolist(),
            "scores": [round(float(value), 4) for value in scores],
            "places": [round(float(value), 1) for value in places],
            "before": _project(plain, _axes(plain)),
            "after": _project(after, axes),
            "beside": [_neighbours(plain, labels), _neighbours(after, labels)],
            "labels": labels.tolist(),
        }

    def link(self) -> str:
        """Open the Compare tab with this model."""
        pairs = [("s1", self.sentence1), ("s2", self.sentence2), ("c", self.condition), ("m", self.model)]
        return write_link("compare", pairs)


def _cosine(first: np.ndarray, second: np.ndarray) -> float:
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / lengths) if lengths > 0 else 0.0


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
