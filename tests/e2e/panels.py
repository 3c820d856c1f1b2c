"""A page with linked figures and nothing else."""

from __future__ import annotations

import json

import gradio as gr
import numpy as np
import plotly.graph_objects as go

from condviz.ui.markup import html
from condviz.ui.plotly_panel import panel_update, plotly_panel

MANY = 6_000
"""More than are drawn without WebGL."""


def figure(number: int, *, seed: int = 0, kind: type = go.Scattergl, title: str = "kept") -> go.Figure:
    """Draw random points in two traces; the second moves from elsewhere."""
    generator = np.random.default_rng(seed)
    points = generator.uniform(-1, 1, (number, 2)).astype(np.float32)
    half = number // 2
    traces = [
        kind(
            x=points[part, 0],
            y=points[part, 1],
            ids=[str(i) for i in range(number)[part]],
            text=[f"<b>point</b> {i} & more" for i in range(number)[part]],
            customdata=[0] * len(range(number)[part]),
            hoverinfo="none",
            mode="markers",
            name=name,
            marker={"color": colour, "size": 8},
            meta={"from": {"x": -points[part, 0], "y": points[part, 1]}} if name == "b" else None,
        )
        for part, name, colour in ((slice(0, half), "a", "var(--cv-pos)"), (slice(half, None), "b", "var(--cv-neg)"))
    ]
    layout = {"xaxis": {"range": [-1.1, 1.1]}, "yaxis": {"range": [-1.1, 1.1]}, "uirevision": title}
    return go.Figure(traces, {**layout, "template": "none", "showlegend": False, "meta": {"texts": ["badge"]}})


def build() -> gr.Blocks:
    """Lay out the page."""
    with gr.Blocks() as demo:
        with gr.Row():
            left = plotly_panel(figure(200), elem_id="left", label="Left ${1+1} {{2}}", link="pair", link_zoom=True)
            right = plotly_panel(
                figure(200, seed=1), elem_id="right", label="Right", link="pair", link_zoom=True, tool="lasso"
            )
        alone = plotly_panel(elem_id="alone", label="Alone", message="Nothing yet. Press Load.")
        told = html("", elem_id="told")
        buttons = {name: gr.Button(name, elem_id=name) for name in ("load", "update", "choose", "mark", "fail", "late")}
        private = {"api_visibility": "private", "show_progress": "hidden", "queue": False}

        def tell(event: gr.EventData) -> str:
            return f"<code>{json.dumps(event._data)}</code>"

        for panel in (left, right):
            panel.select(tell, None, told, **private)
            panel.click(tell, None, told, **private)
            panel.relayout(tell, None, told, **private)
        buttons["load"].click(lambda: panel_update(figure=figure(MANY), message=""), None, alone, **private)
        buttons["update"].click(lambda: panel_update(figure=figure(150, seed=2)), None, left, **private)
        buttons["choose"].click(lambda: panel_update(selection=["1", "2", "150", "gone"]), None, left, **private)
        buttons["mark"].click(lambda: panel_update(marked="7"), None, left, **private)
        buttons["fail"].click(lambda: panel_update(message="It <b>failed</b>.", tone="error"), None, left, **private)
        late = [left, alone]
        buttons["late"].click(lambda: [panel_update(fallback=figure(9, seed=3))] * 2, None, late, **private)
    return demo
