"""Curves of trainings as figures."""

from __future__ import annotations

from pathlib import Path

from condviz.plots.training import Curve, plot_curve, plot_training, to_html
from condviz.types import Trained


def test_a_ring_marks_the_step_that_is_kept() -> None:
    figure = plot_curve(Curve([1, 2, 3], [0.5, None, 0.4], kept=3), "Spearman")
    assert list(figure.data[0].y) == [0.5, None, 0.4]
    assert (list(figure.data[1].x), list(figure.data[1].y)) == ([3], [0.4])
    assert len(plot_curve(Curve([1], [0.5], kept=9)).data) == 1
    assert plot_curve(Curve()).data[0].y == ()


def test_long_curves_have_no_markers() -> None:
    assert plot_curve(Curve(list(range(100)), [0.0] * 100), "loss").data[0].mode == "lines"


def test_a_finished_training_shows_what_chose_its_weights() -> None:
    records = (
        {"event": "start", "step": 0, "spearman": 1.0},
        {"event": "step", "step": 1, "loss": 0.5},
        {"event": "evaluation", "step": 1, "spearman": 9.0},
        {"event": "evaluation", "step": 2, "spearman": None},
        {"event": "end", "step": 2, "spearman": 9.0},
    )
    trained = Trained(Path("toy"), "toy", {"spearman": 9.0}, records)
    line, kept = plot_training(trained).data
    assert (list(line.x), list(kept.x)) == ([0, 1, 2], [1])
    shown = to_html(trained)
    assert "<svg" in shown
    assert "<script" not in shown
    assert list(plot_training(Trained(Path("toy"), "toy", {}, records[1:2])).data[0].y) == [0.5]
