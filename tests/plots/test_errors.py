"""Evaluations and error studies as HTML: whole, escaped, and the same in a notebook."""

from __future__ import annotations

import numpy as np

from condviz.analysis.errors.findings import analyse
from condviz.analysis.errors.study import judge, make_study
from condviz.evaluation.csts import evaluate
from condviz.evaluation.dataset import make_dataset
from condviz.plots.errors import headline
from condviz.types import Pair
from tests.analysis.errors.toy import toy_dataset, toy_study
from tests.stand_ins import LengthModel


def test_a_notebook_shows_an_evaluation_with_intervals() -> None:
    shown = evaluate([LengthModel(), LengthModel("<b>")], toy_dataset(), resamples=50)._repr_html_()
    assert "<b>" not in shown
    assert shown.count("cv-interval") > 8
    assert "not trained" in shown


def test_a_notebook_shows_a_study_of_two_models() -> None:
    shown = analyse(toy_study(), filter='"umbrella" in shared', resamples=50)._repr_html_()
    assert "difference" in shown
    assert "follows the condition" in shown


def test_the_headline_says_only_what_the_figures_support() -> None:
    assert "Of 100 sentence pairs" in headline(analyse(toy_study(second=False), resamples=0))
    bare = make_dataset("t", [Pair(f"a{i}", "b", "x") for i in range(3)])
    said = headline(analyse(make_study(bare, judge(bare, "m", np.arange(3.0))), resamples=0))
    assert "Nothing can be said" in said
