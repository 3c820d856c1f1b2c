"""What a cosine means to different models: where it lies among the stored reference pairs of each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from condviz.ui.learn.figures.base import Figure

BINS = 40


class Yardstick(Figure):
    """One histogram of reference pairs per model, and where a cosine falls in it."""

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
