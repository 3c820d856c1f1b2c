"""Figures of the error analysis: errors by score, one model against another, and calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from condviz.analysis.errors.study import CurvePoint, Study, calibration_curve

TIP_CHARACTERS = 110
RIGHT = 0.05
"""Steps of the rating up to which a row is on no side: it rounds to zero."""
_COLOURS = ("var(--cv-pos)", "var(--cv-neg)")


def plot(study: Study, view: str) -> go.Figure:
    """Draw "residuals", "against" or "calibration"; nothing where no row has a rating."""
    if not study.rated.any():
        return go.Figure(layout={"template": "none"})
    if view == "calibration":
        return plot_calibration(study, [calibration_curve(one.scores, study.columns["gold"]) for one in study.judged])
    return (plot_against if view == "against" else plot_residuals)(study)


def plot_residuals(study: Study) -> go.Figure:
    """Draw the error of every rated row by the score of the first model; ids are positions in the dataset."""
    judged = study.first
    known, right = np.isfinite(judged.error), np.abs(judged.error) < RIGHT
    sides = {"too similar": judged.error > 0, "too different": judged.error < 0}
    sides = {name: known & side & ~right for name, side in sides.items()} | {"as rated": known & right}
    figure = _plot_sides(study, sides, judged.scores, judged.error)
    _finish(figure, f"score of {judged.model}", "error, in steps of the rating")
    figure.add_hline(y=0, line_width=1, line_color="var(--cv-ink)")
    return figure


def plot_against(study: Study) -> go.Figure:
    """Draw the error of the first model against that of the second; ids are positions in the dataset."""
    first, second = study.judged
    known = np.isfinite(first.error) & np.isfinite(second.error)
    gain = np.abs(second.error) - np.abs(first.error)
    sides = {f"{first.model} is closer": gain >= RIGHT, f"{second.model} is closer": gain <= -RIGHT}
    sides = {name: known & side for name, side in sides.items()} | {"as close": known & (np.abs(gain) < RIGHT)}
    figure = _plot_sides(study, sides, second.error, first.error)
    _finish(figure, f"error of {second.model}", f"error of {first.model}")
    figure.add_hline(y=0, line_width=1, line_color="var(--cv-rule-strong)")
    figure.add_vline(x=0, line_width=1, line_color="var(--cv-rule-strong)")
    return figure


def plot_calibration(study: Study, curves: Sequence[Sequence[CurvePoint]]) -> go.Figure:
    """Draw the mean rating of rows with neighbouring scores, a curve per model.

    Scores are shown as shares of the model's rows with lower scores, as ranges differ.
    """
    figure = go.Figure()
    for judged, curve, colour in zip(study.judged, curves, _COLOURS, strict=False):
        if not curve:
            continue
        ordered = np.sort(judged.scores)
        share = 100 * np.searchsorted(ordered, [point.score for point in curve]) / len(ordered)
        spread = {"type": "data", "array": [2 * point.error for point in curve], "thickness": 1.2, "width": 3}
        figure.add_scatter(
            x=share, y=[point.rating for point in curve], error_y=spread, name=judged.model, mode="lines+markers",
            line={"color": colour}, marker={"color": colour, "size": 7},
        )  # fmt: skip
    _finish(figure, "score percentile", "mean rating")
    figure.update_layout(yaxis={"range": [0.9, 5.1]})
    return figure


def _plot_sides(study: Study, sides: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> go.Figure:
    """Draw the rows of one side, of the other, and of neither, in a colour each."""
    figure, tips = go.Figure(), _Texts()
    for (name, chosen), colour in zip(sides.items(), (*_COLOURS, "var(--cv-rule-strong)"), strict=True):
        rows = np.flatnonzero(chosen).tolist()
        if not len(rows) and name in ("as rated", "as close"):
            continue
        figure.add_scattergl(
            x=x[rows].astype(np.float32), y=y[rows].astype(np.float32), mode="markers", name=name,
            ids=[str(row) for row in rows], hoverinfo="none", **tips.of(study, rows),
            marker={"color": colour, "size": 6, "opacity": 0.65}, selected={"marker": {"opacity": 0.9}},
            unselected={"marker": {"opacity": 0.12}},
        )  # fmt: skip
    return figure.update_layout(meta={"texts": list(tips)})


class _Texts(dict[str, int]):
    """Numbers of texts: each is sent once, though every pair of sentences stands under two conditions."""

    def of(self, study: Study, rows: Sequence[int]) -> dict[str, list]:
        pairs = [study.dataset.pairs[row] for row in rows]
        sentences = (f"{_cut(pair.sentence1)}\n{_cut(pair.sentence2)}" for pair in pairs)
        facts = ((_cut(pair.condition), f"rating {pair.label:g}") for pair in pairs)
        return {"text": [*map(self._number, sentences)], "customdata": [[*map(self._number, fact)] for fact in facts]}

    def _number(self, text: str) -> int:
        return self.setdefault(text, len(self))


def _cut(text: str) -> str:
    return text if len(text) <= TIP_CHARACTERS else f"{text[: TIP_CHARACTERS - 1]}…"


def _finish(figure: go.Figure, x: str, y: str) -> None:
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    figure.update_layout(xaxis_title=x, yaxis_title=y, legend=legend, dragmode="select", uirevision=f"{x}|{y}")
