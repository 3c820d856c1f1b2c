"""An evaluation as HTML: a table of models, each figure with a bar for its interval."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from condviz.evaluation.csts import METRICS, Evaluation
from condviz.evaluation.metrics import Metric
from condviz.plots.html import plain, render

STYLES = ("evaluation.css",)
HEADS = {"spearman": "Spearman", "pearson": "Pearson", "ties_wrong": "pair accuracy", "ties_excluded": "ties left out"}


def to_html(result: Evaluation) -> Markup:
    """Render what a notebook shows."""
    rows = [
        {
            "model": report.model,
            "trained": report.trained,
            "part": "" if part == "overall" else part,
            "n": figures.n,
            "cells": [_cell(name, getattr(figures, name)) for name in METRICS],
        }
        for report in result.reports
        for part, figures in report.parts()
    ]
    return render("errors/evaluation.html", result=result, rows=rows, heads=[HEADS[name] for name in METRICS])


def _cell(name: str, metric: Metric) -> dict[str, Any]:
    """Lay a figure out on a line from -100 or 0 to 100 %."""
    if metric.value is None:
        return {"value": "\N{EN DASH}", "reason": metric.reason, "bar": None}
    start = -100 if name in ("spearman", "pearson") else 0

    def place(value: float) -> float:
        return round(100 * (value - start) / (100 - start), 2)

    if metric.low is None or metric.high is None:
        return {"value": plain(metric.value, 1), "reason": "", "bar": None}
    bar = {"low": place(metric.low), "width": place(metric.high) - place(metric.low), "middle": place(metric.value)}
    interval = f"{plain(metric.low, 1)} to {plain(metric.high, 1)}"
    return {"value": plain(metric.value, 1), "reason": "", "bar": bar, "interval": interval}
