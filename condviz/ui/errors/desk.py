"""What is chosen in the Errors tab, and what was found for it: shared by the panes and the folded sections."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.errors import DataError
from condviz.ui.errors.tables import ROLES, Source, Tables
from condviz.ui.pool import ModelPool
from condviz.ui.state import write_link

if TYPE_CHECKING:
    from condviz.analysis.errors.findings import ErrorStudy
    from condviz.analysis.errors.study import Study

START = "scenes:test"
WORK = 25_000_000
"""Rows times resamples that take about a second."""
MAX_RESAMPLES = 10_000


@dataclass(frozen=True)
class Choice:
    """What is chosen: all that a session keeps, and what a link restores.

    Attributes:
        source: The rows.
        first, second: The model, and one to compare with or "".
        filter: The slice.
        selected: Positions of rows chosen in the plot; () for none.
        target: What slices are looked for: a key of `TARGETS`.
        view: Key of `VIEWS`.
        row: Position of the row that is read, or None.
    """

    source: Source = field(default_factory=lambda: Source(START))
    first: str = ""
    second: str = ""
    filter: str = ""
    selected: tuple[int, ...] = ()
    target: str = "over"
    view: str = "residuals"
    row: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The one or two models."""
        return tuple(filter(None, (self.first, self.second)))

    @property
    def link(self) -> str:
        """The query string that opens this; an upload is not part of it."""
        row = "" if self.row is None else str(self.row + 1)
        pairs = [("ed", self.source.key), ("ea", self.first), ("eb", self.second), ("ef", self.filter)]
        return write_link("errors", [*pairs, ("et", self.target), ("ev", self.view), ("er", row)])


class Desk:
    """The study of a choice, and what was found in it."""

    def __init__(self, pool: ModelPool) -> None:
        """Prepare; reads nothing."""
        self.pool, self.tables = pool, Tables(pool)

    def study(self, choice: Choice) -> Study:
        """Return the rows with the scores of the chosen models; errors as in `Tables.study`."""
        return self.tables.study(choice.source, choice.names)

    def found(self, choice: Choice, *, resamples: int = 0) -> ErrorStudy:
        """Return what was found, kept without the study itself, which has a budget of its own.

        Raises:
            DataError: If the filter cannot be read or selects no row.
        """
        from condviz.analysis.errors.findings import analyse

        study = self.study(choice)
        key = (study.dataset.digest, choice.names, choice.filter, choice.selected, resamples)
        settings = {"filter": choice.filter, "selected": choice.selected, "resamples": resamples}
        bare = self.tables.remember(key, lambda: replace(analyse(study, **settings), study=None))
        return replace(bare, study=study)

    def scorer(self, name: str) -> str:
        """Return the name of a model; a column of the file cannot score other rows."""
        if name not in self.pool.names:
            raise DataError(f"{name} is a column of the file, not a model: it cannot score other rows.")
        return name


def resamples_for(study: Study) -> int:
    """Return as many resamples as take about a second."""
    return int(np.clip(WORK // len(study.dataset.pairs), 1000, MAX_RESAMPLES))


def score_rows(model: Any, pairs: Any, *, progress: Any = None) -> np.ndarray:  # noqa: ANN401 - a loaded model
    """Score pairs with a model; for `ModelPool.run`."""
    columns = [[getattr(pair, name) for pair in pairs] for name in ROLES[:3]]
    return np.asarray(model.score(*columns, progress=progress))


def needed(choice: Choice | None) -> Choice:
    """Return a choice, or say that there is none yet."""
    if choice is None:
        raise DataError("Nothing has been found yet. Press Find errors first.")
    return choice
