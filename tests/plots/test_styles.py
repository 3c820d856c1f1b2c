"""Pictures carry every style that they use, and notebooks cannot take their colours away."""

from __future__ import annotations

import re
from importlib import import_module

import plotly.graph_objects as go
import pytest

from condviz.plots import PICTURES
from condviz.plots.html import with_styles
from condviz.plots.svg import to_svg


@pytest.mark.parametrize("module", sorted(set(PICTURES.values())))
def test_every_colour_that_a_picture_uses_comes_with_it(module: str) -> None:
    css = with_styles("", *getattr(import_module(module), "STYLES", ()))
    defined = set(re.findall(r"(--cv-[\w-]+):", css))
    used = set(re.findall(r"var\((--cv-[\w-]+)\)", css))
    assert used <= defined


def test_colours_of_a_picture_outrank_those_of_a_dark_notebook() -> None:
    # JupyterLab's are as specific as two classes and two elements: [theme] .output :not(pre) > code.
    css = with_styles("")
    for element in ("code", ":is(table, thead, tbody, tr)"):
        assert f".cv-picture.cv-picture.cv-picture {element} {{ color:" in css
    assert "color-scheme: light" in css  # or a box to tick is black on white


def test_lines_break_where_values_are_missing_and_markers_leave_them_out() -> None:
    figure = go.Figure(go.Scatter(x=[1, 2, 3, 4], y=[1.0, None, 2.0, 1.5], mode="lines+markers", text=["<a>"] * 4))
    svg = to_svg(figure, "A <curve>")
    assert svg.count("<path") == 2
    assert svg.count("<circle") == 3
    assert "<a>" not in svg
    assert "A &lt;curve&gt;" in svg


def test_numbers_become_shades_and_symbols_shapes() -> None:
    marker = {"color": [0.0, 1.0], "cmin": 0, "cmax": 1, "symbol": ["circle", "star"], "size": 8}
    hidden = {"visible": False, "range": [-1, 1]}
    figure = go.Figure(go.Scatter(x=[0, 0.5], y=[0, 0.5], mode="markers", marker=marker))
    svg = to_svg(figure.update_layout(xaxis=hidden, yaxis=hidden), "Map")
    assert "var(--cv-ramp-high) 100%" in svg
    assert (svg.count("<circle"), svg.count("<polygon")) == (1, 1)
    assert to_svg(go.Figure(), "Nothing").count("<circle") == 0
