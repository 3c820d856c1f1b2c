"""From the state of the Errors tab to what its components show. Quick parts come first, intervals last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.errors import CondvizError
from condviz.ui.errors_detail import render_detail
from condviz.ui.errors_rows import render_table
from condviz.ui.errors_service import ErrorsService
from condviz.ui.errors_state import VIEWS, ErrorsState
from condviz.ui.errors_view import (
    act,
    render_blindness,
    render_conditions,
    render_confusions,
    render_figures,
    render_finder,
)
from condviz.ui.html import tag
from condviz.ui.plotly_panel import panel_update

if TYPE_CHECKING:
    from condviz.analysis.errors.measures import Report
    from condviz.analysis.errors.slices import Search
    from condviz.analysis.errors.study import Study

Step = dict[str, Any]
WORK = 25_000_000
"""Rows times resamples that take about a second."""
SHOWN_CONDITIONS = 40
_NOTHING = '{"data": [], "layout": {}}'


class Painter:
    """Gives the updates of the components, by name, for a state."""

    def __init__(self, service: ErrorsService) -> None:
        """Keep where studies come from."""
        self.service = service

    def study(self, state: ErrorsState) -> Study:
        """Give the study of a state.

        Raises:
            CondvizError: If data or scores are missing.
        """
        return self.service.study(state.data, state.first, state.second or None)

    def mask(self, study: Study, state: ErrorsState) -> np.ndarray:
        """Give the slice: rows that meet the filter and, if any are selected in the figure, are among those.

        Raises:
            DataError: If the filter cannot be read.
        """
        from condviz.analysis.errors.filters import select
        from condviz.analysis.errors.findings import among

        return select(state.filter, study.columns) & among(state.brush, len(study.dataset.pairs))

    def everything(self, state: ErrorsState) -> Iterator[Step]:
        """Show another dataset or other models."""
        yield from self.slice(state, figure=self.figure(self.study(state), state))

    def slice(self, state: ErrorsState, *, keep_selection: bool = False, figure: Step | None = None) -> Iterator[Step]:
        """Show another slice.

        Args:
            state: What is chosen.
            keep_selection: The figure already shows the selection, because it comes from there.
            figure: Updates that draw another figure.
        """
        study = self.study(state)
        mask = self.mask(study, state)
        figure = figure or {"plot": panel_update()}
        plain = self._reports(study, state, mask, resamples=0)
        step = {
            "notice": "",
            "figures": render_figures(plain, resamples_wait=bool(study.rated.any())),
            "worst": self.worst(study, state, mask),
            "detail": render_detail(study, state.row),
            "more": self._more(study, mask),
            "shown": state.to_dict(),
            **self.table(study, state, mask),
        }
        if not keep_selection:
            chosen = np.flatnonzero(mask) if state.filter.strip() or state.brush else ()
            step |= {**figure, "plot": figure["plot"] | panel_update(selection=[str(row) for row in chosen])}
        yield step
        yield {"finder": self.finder(study, state, mask)}
        if study.rated.any():
            yield {"figures": render_figures(self._reports(study, state, mask, resamples=resamples_for(study)))}

    def table(self, study: Study, state: ErrorsState, mask: np.ndarray | None = None) -> Step:
        """Show a page of the table."""
        mask = self.mask(study, state) if mask is None else mask
        return {"table": render_table(study, mask, state), "shown": state.to_dict()}

    def finder(self, study: Study, state: ErrorsState, mask: np.ndarray | None = None) -> str:
        """Search slices of one kind."""
        from condviz.analysis.errors.slices import find_slices

        mask = self.mask(study, state) if mask is None else mask

        def make() -> Search:
            return find_slices(study, state.target, mask=mask)

        try:
            search = self.service.reports.get(self._key(study, mask, f"search {state.target}"), make)
        except CondvizError as error:
            return render_finder(None, state, problem=str(error))
        return render_finder(search, state)

    def worst(self, study: Study, state: ErrorsState, mask: np.ndarray | None = None) -> str:
        """List the worst conditions."""
        from condviz.analysis.errors.measures import worst_conditions

        mask = self.mask(study, state) if mask is None else mask
        columns = _text_columns(study)
        column = state.column if state.column in columns else columns[0]
        groups = worst_conditions(study, column=column, mask=mask)[:SHOWN_CONDITIONS]
        models = [judged.model for judged in study.judged]
        return render_conditions(groups, column=column, columns=columns, models=models)

    def figure(self, study: Study, state: ErrorsState) -> Step:
        """Draw the chosen figure."""
        from condviz.analysis.errors.study import calibration_curve
        from condviz.plots.error_figures import plot_against, plot_calibration, plot_residuals

        views = [name for name in VIEWS if name != "against" or study.second is not None]
        view = state.view if state.view in views else views[0]
        buttons = [
            act(VIEWS[name], "view", class_="cv-err-choice", view=name, pressed=str(name == view).lower())
            for name in views
        ]
        head = tag("div", *buttons, class_="cv-err-choices", role="group", aria_label="Figure")
        if not study.rated.any():
            message = "No row has a label: there is no error to draw."
            return {"views": head, "plot": panel_update(figure=_NOTHING, message=message)}
        if view == "calibration":
            curves = [calibration_curve(judged.scores, study.columns["gold"]) for judged in study.judged]
            drawn = plot_calibration(study, curves)
        else:
            drawn = plot_against(study) if view == "against" else plot_residuals(study)
        return {"views": head, "plot": panel_update(figure=drawn, message="")}

    def _more(self, study: Study, mask: np.ndarray) -> str:
        from condviz.analysis.errors.measures import check_blindness
        from condviz.analysis.errors.study import confusion

        names = [judged.model for judged in study.judged]
        counts = [confusion(study.columns["gold"][mask], judged.fitted[mask]) for judged in study.judged]
        read = render_blindness([check_blindness(study, judged) for judged in study.judged])
        table = tag(
            "details", tag("summary", "Confusion by rating"), render_confusions(names, counts), class_="cv-details"
        )
        return tag("h3", "Does the model read the condition?") + read + table

    def _reports(
        self, study: Study, state: ErrorsState, mask: np.ndarray, *, resamples: int
    ) -> dict[str, Report | None]:
        from condviz.analysis.errors.measures import measure

        sliced = bool(state.filter.strip() or state.brush)
        parts = {
            "all": np.ones(len(mask), dtype=bool),
            "slice": mask if sliced else None,
            "rest": ~mask if sliced else None,
        }
        return {
            name: None
            if part is None
            else self.service.reports.get(
                self._key(study, part, resamples), lambda part=part: measure(study, part, resamples=resamples)
            )
            for name, part in parts.items()
        }

    def _key(self, study: Study, mask: np.ndarray, what: object) -> tuple[object, ...]:
        names = tuple(judged.model for judged in study.judged)
        return study.dataset.digest, names, hashlib.sha256(np.packbits(mask).tobytes()).hexdigest(), what


def resamples_for(study: Study) -> int:
    """Give as many resamples as take about a second, at most 10,000."""
    return int(np.clip(WORK // len(study.dataset.pairs), 1000, 10_000))


def _text_columns(study: Study) -> list[str]:
    """Give columns of texts with values that repeat: the aspect first, where there is one, then the condition."""
    extra = [
        name
        for name in study.dataset.extra
        if study.columns[name].dtype == object and len(set(study.columns[name])) <= len(study.dataset.pairs) / 2
    ]
    return sorted([*extra, "condition"], key=lambda name: (name != "aspect", name != "condition"))[:5]
