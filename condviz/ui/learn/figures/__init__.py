"""The figures that a lesson can name."""

from __future__ import annotations

from pydantic import ValidationError

from condviz.data.lessons import Step, explain
from condviz.errors import DataError
from condviz.ui.learn.figures import errors, models, router, spaces, vectors  # noqa: F401
from condviz.ui.learn.figures.base import FIGURES, Figure


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
