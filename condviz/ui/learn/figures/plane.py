"""Two arrows in the plane that can be dragged, and their cosine; drawn by assets/js/learn_figures.js."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from condviz.ui.learn.figures.base import Figure

Degrees = Annotated[float, Field(ge=-180, le=180)]
Length = Annotated[float, Field(gt=0, le=1)]


class Plane(Figure):
    """Directions in degrees, lengths as shares of the largest; goals are cosines to reach."""

    name: ClassVar[str] = "plane"
    first: Degrees = 20
    second: Degrees = 75
    lengths: tuple[Length, Length] = (0.9, 0.7)
    goals: tuple[Annotated[float, Field(ge=-1, le=1)], ...] = ()

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Leave it to the browser."""
        return {"first": self.first, "second": self.second, "lengths": list(self.lengths), "goals": list(self.goals)}
