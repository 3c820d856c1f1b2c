"""Two sentences as two arrows: the plane that both lie in, the angle true to scale."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from condviz.ui.learn.figures.base import Figure, Sentence
from condviz.ui.state import write_link


class Angle(Figure):
    """The pretrained encoder by default: it knows no condition."""

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
