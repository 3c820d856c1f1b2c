"""Two small pictures as SVG for the report, which must not carry five megabytes of a plotting library."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from condviz.analysis.errors.study import CurvePoint, Judged

WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 38, 10, 10, 34
MAX_POINTS = 1500

Scale = Callable[[float], float]


def draw_residuals(judged: Judged, rows: np.ndarray) -> str:
    """Draw the error of rows by their score; more than `MAX_POINTS` are thinned out evenly, which the picture says.

    Args:
        judged: A model.
        rows: Positions of rows with an error.
    """
    step = max(1, int(np.ceil(len(rows) / MAX_POINTS)))
    shown = rows[np.argsort(judged.scores[rows], kind="stable")][::step]
    x, y = _scale(judged.scores[rows], LEFT, WIDTH - RIGHT), _between(-4, 4, HEIGHT - BOTTOM, TOP)
    dots = "".join(
        f'<circle cx="{x(judged.scores[row]):.1f}" cy="{y(judged.error[row]):.1f}" r="2.2" '
        f'class="{"pos" if judged.error[row] > 0 else "neg"}"/>'
        for row in shown
    )
    note = f"every {step}th of {len(rows):,} rows" if step > 1 else f"{len(rows):,} rows"
    axes = _frame(judged.scores[rows], x, y, ticks=(-4, -2, 0, 2, 4), label=f"score ({note})")
    zero = f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(0):.1f}" y2="{y(0):.1f}"/>'
    return _svg(axes + zero + dots, "Error by score")


def draw_curve(judged: Judged, curve: Sequence[CurvePoint]) -> str:
    """Draw mean ratings of groups of rows, two standard errors up and down, and the fit through all rows."""
    knots, fit = judged.calibration.scores, judged.calibration.ratings
    x, y = _scale(knots, LEFT, WIDTH - RIGHT), _between(1, 5, HEIGHT - BOTTOM, TOP)
    places = np.unique(np.linspace(0, len(knots) - 1, 200).astype(int))
    line = " ".join(f"{'L' if i else 'M'}{x(knots[k]):.1f} {y(fit[k]):.1f}" for i, k in enumerate(places))
    marks = "".join(
        f'<line class="bar" x1="{x(p.score):.1f}" x2="{x(p.score):.1f}" y1="{y(max(1, p.rating - 2 * p.error)):.1f}" '
        f'y2="{y(min(5, p.rating + 2 * p.error)):.1f}"/><circle class="mean" cx="{x(p.score):.1f}" '
        f'cy="{y(p.rating):.1f}" r="3"/>'
        for p in curve
    )
    axes = _frame(knots, x, y, ticks=(1, 2, 3, 4, 5), label="score")
    return _svg(f'{axes}<path d="{line}"/>{marks}', "Mean rating by score")


def _svg(content: str, label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{content}</svg>'


def _frame(values: np.ndarray, x: Scale, y: Scale, *, ticks: Sequence[float], label: str) -> str:
    bottom = HEIGHT - BOTTOM
    lines = f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{bottom}"/>'
    lines += f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
    marks = "".join(
        f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{_show(f"{tick:g}")}</text>' for tick in ticks
    )
    ends = (float(values.min()), "start"), (float(values.max()), "end")
    marks += "".join(
        f'<text x="{x(value):.1f}" y="{bottom + 15}" text-anchor="{anchor}">{_show(f"{value:.2f}")}</text>'
        for value, anchor in ends
    )
    middle = (LEFT + WIDTH - RIGHT) / 2
    return f'{lines}{marks}<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{label}</text>'


def _show(number: str) -> str:
    return number.replace("-", "\N{MINUS SIGN}")


def _scale(values: np.ndarray, start: float, end: float) -> Scale:
    low, high = float(values.min()), float(values.max())
    return _between(low, high if high > low else low + 1, start, end)


def _between(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (float(value) - low) / (high - low) * (end - start)
