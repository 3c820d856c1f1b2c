"""The figure component on the side of Python: its frame is constant, its updates carry what was asked for."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go

from condviz.ui.plotly_panel import PlotlyPanel, panel_update, plotly_panel, plotly_source


def test_the_frame_holds_nothing_that_a_template_would_read() -> None:
    panel = plotly_panel(elem_id="cv-x", label="${1+1} {{7*7}} `<b>`", tool="lasso")
    for opener in ("${", "{{", "`", "<b>"):
        assert opener not in panel.html_template
    assert panel.html_template.count('aria-pressed="true"') == 1
    assert set(panel.props) == {"figure", "fallback", "message", "selection", "marked"}


def test_data_travel_as_typed_arrays() -> None:
    figure = go.Figure(go.Scattergl(x=np.arange(3, dtype=np.float32), y=np.zeros(3, dtype=np.float32)))
    packed = json.loads(panel_update(figure=figure)["figure"])
    assert packed["data"][0]["x"]["dtype"] == "f4"


def test_an_update_says_only_what_changes() -> None:
    assert set(panel_update(message="busy")) - {"__type__"} == {"message"}
    assert panel_update(selection=[3, "4"])["selection"]["ids"] == ["3", "4"]
    assert panel_update(selection=[])["selection"]["ids"] == []
    assert panel_update(marked=None)["marked"]["id"] is None


def test_the_same_selection_twice_is_a_change() -> None:
    assert panel_update(selection=["1"]) != panel_update(selection=["1"])


def test_gradio_can_build_the_component_again() -> None:
    panel = plotly_panel(elem_id="cv-x", label="x", link="g")
    again = PlotlyPanel(**PlotlyPanel.recover_kwargs(panel.get_config()))
    assert again.get_block_name() == "html"


def test_the_library_is_the_one_of_the_plotly_package() -> None:
    assert plotly_source().read_text(encoding="utf-8")[:200].lstrip("/* \n").startswith("plotly.js v")
