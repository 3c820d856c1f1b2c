"""The figures that a lesson can name."""

from __future__ import annotations

from pydantic import ValidationError

from condviz.data.lessons import Step, explain
from condviz.errors import DataError
from condviz.ui.learn.figures import errors, impurity, router, subtraction
from condviz.ui.learn.figures.base import Figure
from condviz.ui.learn.figures.bets import Bets
from condviz.ui.learn.figures.compare import Compare, Models
from condviz.ui.learn.figures.encoders import Counts, Kinds, Measure, Reading
from condviz.ui.learn.figures.matrix import Factors, Matrix, Size
from condviz.ui.learn.figures.spectrum import Spectrum
from condviz.ui.learn.figures.vectors import Angle, Cosines, Plane, Yardstick

FIGURES: dict[str, type[Figure]] = {
    figure.name: figure
    for figure in (
        *(
            Angle,
            Bets,
            Compare,
            Cosines,
            Counts,
            Factors,
            Kinds,
            Matrix,
            Measure,
            Models,
            Plane,
            Reading,
            Size,
            Spectrum,
        ),
        *(Yardstick, *router.FIGURES, *subtraction.FIGURES, *impurity.FIGURES, *errors.FIGURES),
    )
}


def make_figure(step: Step) -> Figure | None:
    """Return the figure of a step; None where it has none.

    Raises:
        DataError: If there is no such figure, or a parameter is not allowed; names file and line.
    """
    if not step.figure:
        return None
    name = step.figure["name"]
    if name not in FIGURES:
        raise DataError(f"{step.place}: no figure is called {name!r}. There are: {', '.join(sorted(FIGURES))}.")
    try:
        return FIGURES[name](**{key: value for key, value in step.figure.items() if key != "name"})
    except ValidationError as error:
        allowed = ", ".join(FIGURES[name].model_fields)
        raise DataError(f"{step.place}: figure {name!r}: {explain(error)} Its parameters: {allowed}.") from error
