"""Leaving out one word at a time."""

from __future__ import annotations

import numpy as np
import pytest

from condviz.analysis.words import MAX_WORDS, leave_one_word_out
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from tests.tiny import SENTENCES

ONE, TWO = SENTENCES[:2]


def test_effects_are_scores_lost_without_a_word(models: list[ConditionalScorer]) -> None:
    for model in models:
        result = leave_one_word_out(model, ONE, TWO, "the mood")
        assert [word.text for word in result.words1] == ONE.split()
        assert (len(result.effects1), len(result.effects2)) == (len(ONE.split()), len(TWO.split()))
        assert result.score == pytest.approx(float(model.score([ONE], [TWO], ["the mood"])[0]), abs=1e-6)
        without = model.score(["a rides a bike"], [TWO], ["the mood"])[0]
        assert result.effects1[1] == pytest.approx(result.score - without, abs=1e-5)
        plain = leave_one_word_out(model, ONE, TWO, None)
        assert plain.condition is None
        assert plain.score == pytest.approx(float(model.score_unconditional([ONE], [TWO])[0]), abs=1e-6)


def test_a_sentence_of_one_word_keeps_it(models: list[ConditionalScorer]) -> None:
    result = leave_one_word_out(models[0], "cat", "🏄🏽‍♀️", "the mood")
    np.testing.assert_array_equal(result.effects1, [0])
    np.testing.assert_array_equal(result.effects2, [0])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("", TWO, "the mood"), "Sentence 1 is empty"),
        ((ONE, TWO, ""), "Condition is empty"),
        (("a " * 300, "b " * 101, "the mood"), f"401 words, and at most {MAX_WORDS}"),
    ],
)
def test_attribution_checks_its_input(models: list[ConditionalScorer], texts: tuple, message: str) -> None:
    with pytest.raises(DataError, match=message):
        leave_one_word_out(models[0], *texts)
