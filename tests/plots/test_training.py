"""Curves of trainings as figures."""

from __future__ import annotations

from condviz.plots.training import Curve, plot_curves


def test_each_run_is_a_line_and_each_baseline_a_labelled_rule() -> None:
    curves = [Curve("a", [1, 2], [0.5, None]), Curve("b", [1, 2, 3], [0.1, 0.2, 0.3])]
    figure = plot_curves(curves, "Spearman", baselines={"minilm": 3.0, "hyper-cl": 60.0})
    assert [trace.name for trace in figure.data] == ["a", "b"]
    assert list(figure.data[0].y) == [0.5, None]
    assert [shape.y0 for shape in figure.layout.shapes] == [3.0, 60.0]
    assert [note.text for note in figure.layout.annotations] == ["minilm", "hyper-cl"]
    assert figure.layout.showlegend


def test_a_single_run_needs_no_legend_and_none_at_all_no_line() -> None:
    assert not plot_curves([Curve("a", [1], [0.5])], "loss").layout.showlegend
    assert len(plot_curves([], "loss").data) == 0


def test_long_curves_have_no_markers() -> None:
    long = Curve("a", list(range(100)), [0.0] * 100)
    assert plot_curves([long], "loss").data[0].mode == "lines"
