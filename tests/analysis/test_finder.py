"""Ranking conditions by what they do to a pair."""

from __future__ import annotations

import pytest

from condviz.analysis.compare import FITTING, library, rank_conditions
from condviz.methods import ConditionalScorer
from tests.tiny import CONDITIONS, SENTENCES

ONE, TWO = SENTENCES[:2]
THREE = CONDITIONS[:3]


def test_conditions_are_ranked_by_their_scores(models: list[ConditionalScorer]) -> None:
    for model in models:
        ranked = rank_conditions(model, ONE, TWO, THREE)
        scores = [row.score for row in ranked]
        assert scores == sorted(scores, reverse=True)
        assert {row.condition for row in ranked} == set(THREE)
        plain = float(model.score_unconditional([ONE], [TWO])[0])
        assert [row.change for row in ranked] == pytest.approx([score - plain for score in scores], abs=1e-6)


def test_the_library_is_usable(models: list[ConditionalScorer]) -> None:
    assert len(library()) >= 100
    ranked = rank_conditions(models[0], ONE, TWO)
    assert {row.condition for row in ranked} <= set(library())
    assert len(ranked) == FITTING
