"""A comparison in words and bars: what is not told, and ratings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condviz.plots import similarity
from condviz.types import Attribution, Calibration, Comparison, Word
from tests.stand_ins import LengthModel

CONDITIONS = ("the sport", "the <b>price</b>", "the mood")
KNOTS = Calibration((0.0, 0.5, 1.0), (1.5, 3.0, 4.6), 0.1, {"a": 1})


@pytest.fixture
def comparison() -> Comparison:
    places = np.array([[90.0, 50.0, 10.0]], np.float32)
    applies = np.array([[0.9, 0.2, 0.9], [0.9, 0.9, 0.7]], np.float32)
    alone = np.array([0.5], np.float32)
    return Comparison(
        "A man surfs.", "A woman skis.", CONDITIONS, (LengthModel().info,), places / 100, alone, places, 100 * alone,
        applies,
    )  # fmt: skip


def test_what_a_sentence_may_not_say_is_marked_and_left_out_of_the_headline(comparison: Comparison) -> None:
    head = similarity.headline(comparison)
    told, caution = head.split("</p>", 1)
    assert "price" not in told
    assert "the &lt;b&gt;price&lt;/b&gt;</em>: sentence 1 may not say" in caution
    assert similarity.bars(comparison).count("may not say") == 1


def test_equal_conditions_are_named_each(comparison: Comparison) -> None:
    places = np.full_like(comparison.percentiles, 50)
    head = similarity.headline(replace(comparison, percentiles=places))
    assert all(f"<em>{text}</em>" in head for text in (comparison.conditions[0], comparison.conditions[-1]))


def test_where_nothing_is_told_the_headline_says_so(comparison: Comparison) -> None:
    head = similarity.headline(replace(comparison, applies=np.zeros((2, 3), np.float32)))
    assert "may say nothing" in head
    assert "of pairs" not in head


def test_calibrated_models_show_ratings_and_others_scores(comparison: Comparison) -> None:
    info = replace(comparison.models[0], calibration=KNOTS)
    rated = replace(comparison, models=(info,))
    np.testing.assert_allclose(rated.ratings, [[4.28, 3.0, 1.8]])
    assert "<strong>4.3 of 5</strong>" in similarity.bars(rated)
    assert "of 5" not in similarity.bars(comparison)
    assert comparison.to_dict()["ratings"] == [[None] * 3]
    assert Comparison.from_dict(rated.to_dict(), [info]).to_dict() == rated.to_dict()


def test_marks_and_function_words_carry_no_bar(comparison: Comparison) -> None:
    words = (Word("surfs", 6, 11), Word("the", 0, 3), Word(".", 11, 12))
    effects = np.array([0.4, 0.5, 0.6], np.float32)
    read = Attribution("length", CONDITIONS[0], 0.9, words, (), effects, np.zeros(0, np.float32))
    drawn = similarity.bars(replace(comparison, words=(read, read, read)))
    assert drawn.count('<b dir="auto">surfs</b>') == 3
    assert '<b dir="auto">.</b>' not in drawn
    assert '<b dir="auto">the</b>' not in drawn


def test_a_bar_names_what_sets_the_pair_apart_where_that_counts_more(comparison: Comparison) -> None:
    words = (Word("three", 0, 5), Word("suitcases", 6, 15), Word("woman", 16, 21), Word("the", 22, 25))
    effects = np.array([-0.3, -0.1, 0.02, 0.5], np.float32)
    low = Attribution("length", CONDITIONS[0], 0.1, words, (), effects, np.zeros(0, np.float32))
    high = replace(low, effects1=-effects)
    none = replace(low, effects1=np.array([np.nan, 0.001, 0, 0], np.float32))
    drawn = similarity.bars(replace(comparison, words=(low, high, none)))
    said = '%s <b dir="auto">three</b>, <b dir="auto">suitcases</b><'
    assert said % "set apart by" in drawn
    assert said % "carried by" in drawn
    assert drawn.count("no single word decides it") == 1


def test_a_notebook_shows_the_effects_of_words() -> None:
    words, effects = (Word("surfs", 6, 11), Word("<b>", 12, 15)), np.array([0.4, -0.1], np.float32)
    read = Attribution("length", CONDITIONS[1], 0.9, words, words[:1], effects, effects[:1])
    shown = read._repr_html_()
    assert shown.count(">surfs</span>") == 2
    assert "<b>" not in shown
