"""Curves of trainings."""

from __future__ import annotations

from pathlib import Path

from condviz.plots.svg import Curve, draw_curves, to_html
from condviz.types import Trained


def dots(markup: str) -> int:
    return str(markup).count('class="cv-curves-dot')


def test_a_ring_marks_the_step_that_is_kept_and_missing_values_are_left_out() -> None:
    drawn = draw_curves([Curve([1, 2, 3], [0.5, None, 0.4], kept=3)], "Spearman")
    assert (dots(drawn), drawn.count("cv-curves-kept"), drawn.count(", kept")) == (2, 1, 1)
    assert "step 3: 0.4" in drawn
    assert draw_curves([Curve([1], [0.5], kept=9)]).count("cv-curves-kept") == 0
    assert draw_curves([Curve()]) == ""


def test_long_curves_have_no_dots() -> None:
    assert dots(draw_curves([Curve(list(range(100)), [0.0] * 100)], "loss")) == 0


def test_other_trainings_have_a_legend_and_levels_their_names() -> None:
    evil = "<img src=x>"
    drawn = draw_curves([Curve([0, 1], [1.0, 2.0], name="mine"), Curve([0], [1.5], name=evil)], levels={"chance": 50.0})
    assert drawn.count("<path") == 2
    assert "chance" in drawn
    assert drawn.index("mine</span>") < drawn.index("&lt;img src=x&gt;</span>")
    assert evil not in drawn


def test_a_finished_training_shows_what_chose_its_weights() -> None:
    records = (
        {"event": "start", "step": 0, "spearman": 1.0},
        {"event": "step", "step": 1, "loss": 0.5},
        {"event": "evaluation", "step": 1, "spearman": 9.0},
        {"event": "evaluation", "step": 2, "spearman": None},
        {"event": "end", "step": 2, "spearman": 9.0},
    )
    shown = to_html(Trained(Path("toy"), "toy", {"spearman": 9.0}, records))
    assert "step 1: 9.0, kept" in shown
    assert "<script" not in shown
    assert "step 1: 0.5000" in to_html(Trained(Path("toy"), "toy", {}, records[1:2]))
