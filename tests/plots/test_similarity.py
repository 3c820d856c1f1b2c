"""A comparison in words and bars: what is not told, and ratings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condviz.data.examples import load_examples
from condviz.plots import similarity
from condviz.types import Attribution, Calibration, Comparison, Word
from tests.stand_ins import LengthModel

CONDITIONS = ("the sport", "the <b>price</b>", "the mood")
KNOTS = Calibration((0.0, 0.5, 1.0), (1.5, 3.0, 4.6), 0.1, {"a": 1})
TELLING = np.ones((2, 3), np.float32)
"""Both sentences tell every condition."""


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
    assert "are the same" not in head
    assert "Both sentences are the same." in similarity.headline(replace(comparison, sentence2=comparison.sentence1))


def test_words_that_carry_a_score_are_not_named_where_a_sentence_may_not_say(comparison: Comparison) -> None:
    words = ((Word("man", 2, 5),), (Word("woman", 2, 7),))
    read = Attribution("length", "the sport", 0.9, *words, np.array([0.5], np.float32), np.array([0.2], np.float32))
    drawn = similarity.bars(replace(comparison, words=(read,) * 3))
    rows = drawn.split("<li ")[1:]
    assert [("may not say" in row, "by <b" in row) for row in rows] == [(False, True), (True, False), (False, True)]


def test_what_the_sentences_clearly_say_leads_and_neither_is_called_silent_alone(comparison: Comparison) -> None:
    told, places = np.array([[0.9, 0.6, 0.9], [0.9, 0.6, 0.9]], np.float32), np.array([[40, 99, 80]], np.float32)
    shown = replace(comparison, applies=told, percentiles=places)
    assert f"Under <em>{CONDITIONS[2]}" in similarity.headline(shown), "of three, the second is said least clearly"
    low = similarity.headline(replace(shown, percentiles=np.array([[40, 20, 80]], np.float32)))
    assert "price" in low.partition("under")[2], "the lowest bar is named in any case"
    told[:, 2] = 0.6
    assert "price&lt;" in similarity.headline(shown).partition("very alike")[0], "one alone has nothing beside it"
    told[0, 0] = told[0, 1] = 0.2
    assert [similarity.silent(shown, column) for column in range(3)] == ["sentence 1", "the sentences", ""]


@pytest.mark.parametrize(
    ("sentence", "telling"), [("a", False), ("b.", False), ("It is.", False), ("No.", True), ("5", True)]
)
def test_too_little_text_is_said_and_no_verdict_given(comparison: Comparison, sentence: str, *, telling: bool) -> None:
    head = similarity.headline(replace(comparison, sentence1=sentence))
    assert ("too little" in head) != telling
    assert ("alike" in head) == telling


def test_conditions_that_hardly_differ_are_told_together(comparison: Comparison) -> None:
    told = replace(comparison, applies=TELLING)
    head = similarity.headline(replace(told, percentiles=np.array([[72.0, 69.0, 70.0]], np.float32)))
    assert (
        "Under all conditions the model finds these two <strong>alike</strong>: more alike than 69 to 72 % of pairs."
        in head
    )
    places = np.full_like(comparison.percentiles, 50)
    head = similarity.headline(replace(comparison, percentiles=places))
    assert "Under 2 of the 3 conditions the model finds these two" in head
    assert "more alike than 50 % of pairs" in head


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


def test_marks_and_function_words_carry_no_bar(comparison: Comparison) -> None:
    words = (Word("surfs", 6, 11), Word("the", 0, 3), Word(".", 11, 12))
    effects = np.array([0.4, 0.5, 0.6], np.float32)
    read = Attribution("length", CONDITIONS[0], 0.9, words, (), effects, np.zeros(0, np.float32))
    drawn = similarity.bars(replace(comparison, words=(read, read, read), applies=TELLING))
    assert drawn.count('<b dir="auto">surfs</b>') == 3
    assert '<b dir="auto">.</b>' not in drawn
    assert '<b dir="auto">the</b>' not in drawn


def test_words_are_said_to_do_what_they_do_to_the_score(comparison: Comparison) -> None:
    words = (Word("three", 0, 5), Word("suitcases", 6, 15), Word("woman", 16, 21), Word("the", 22, 25))
    effects = np.array([-0.3, -0.1, 0.02, 0.5], np.float32)
    lowers = Attribution("length", CONDITIONS[0], 0.1, words, (), effects, np.zeros(0, np.float32))
    raises = replace(lowers, effects1=-effects)
    none = replace(lowers, effects1=np.array([np.nan, 0.001, 0, 0], np.float32))
    said = '%s <b dir="auto">three</b>, <b dir="auto">suitcases</b><'
    drawn = similarity.bars(replace(comparison, words=(raises, none, lowers), applies=TELLING))
    assert said % "carried by" in drawn
    assert said % "set apart by" in drawn
    assert drawn.count("no single word decides it") == 1
    # A word that raises a low score does not carry it, nor does one that lowers a high score set the pair apart.
    drawn = similarity.bars(replace(comparison, words=(lowers, none, raises), applies=TELLING))
    assert said % "lowered most by" in drawn
    assert said % "raised most by" in drawn


def test_numbers_count_as_words_and_are_named_even_where_they_hardly_count() -> None:
    first, second = (Word("1,000", 0, 5), Word("euros", 6, 11)), (Word("9,000", 0, 5), Word("euros", 6, 11))
    read = Attribution("m", "the amount", 0.4, first, second, np.float32([-0.3, 0.2]), np.float32([-0.2, 0.2]))
    assert similarity.decisive(read, 20.0) == {
        "verb": "set apart by", "words": ["1,000", "9,000"], "against": ["euros"], "idle": [], "misread": [],
    }  # fmt: skip
    read = replace(read, effects1=np.float32([0.001, 0.2]), effects2=np.float32([-0.002, 0.2]))
    assert similarity.decisive(read, 80.0)["idle"] == ["1,000", "9,000"]
    both = Word("3", 12, 13)  # stands in both
    dated = replace(read, words1=(*first, both), effects1=np.float32([0, 0, 0.3]), words2=(*second, both),
                    effects2=np.float32([0, 0, 0.3]))  # fmt: skip
    assert (similarity.decisive(dated, 80.0)["words"], similarity.decisive(dated, 80.0)["idle"]) == (["3"], [])
    more = replace(read, effects2=np.float32([0.09, 0.2]))
    assert not similarity.decisive(more, 20.0)["idle"], "9,000 counts, if the other way"
    alike = replace(read, effects1=np.float32([0.3, 0.2]), effects2=np.float32([0.2, 0.1]))
    assert similarity.decisive(alike, 80.0)["misread"] == ["1,000", "9,000"]
    assert not similarity.decisive(alike, 20.0)["misread"], "they are not found alike"
    low = replace(read, effects1=np.float32([-0.3, 0.1]), effects2=np.float32([-0.2, 0.1]))
    told = similarity.decisive(low, 80.0)
    assert (told["verb"], told["words"], told["against"]) == ("carried by", ["euros"], ["1,000", "9,000"])
    assert not similarity.decisive(replace(read, condition="the buyer"), 80.0)["idle"], "nobody asks for a number"
    both = replace(read, effects1=np.float32([-0.3, -0.2]), effects2=np.float32([-0.2, 0.2]))
    assert similarity.decisive(both, 20.0)["words"] == ["1,000", "9,000"], "euros does nothing, on the whole"
    lowered = replace(both, effects2=np.float32([-0.2, -0.2]))
    assert similarity.decisive(lowered, 20.0)["words"] == ["1,000", "9,000"], "euros stands in both"
    alone = replace(read, words2=second[1:], effects2=np.float32([0.1]))
    assert not similarity.decisive(alone, 80.0)["idle"], "no number to compare it with"


def test_both_sentences_stand_under_the_bars_with_their_words_marked(comparison: Comparison) -> None:
    assert 'data-testid="attribution"' not in similarity.bars(comparison)
    read = Attribution("length", CONDITIONS[0], 0.9, (Word("surfs", 6, 11),), (), np.float32([0.4]), np.float32([]))
    words = tuple(replace(read, condition=text) for text in CONDITIONS)
    for first in (0, 1):  # the first that both sentences tell is in sight
        told = np.float32([[column >= first for column in range(3)]] * 2)
        drawn = similarity.bars(replace(comparison, words=words, applies=told))
        assert drawn.count('data-testid="attribution"') == 3
        assert [one.startswith(" hidden") for one in drawn.split('cv-bars-pair"')[1:]] == [n != first for n in range(3)]


def test_what_the_tokenizer_does_not_know_is_said_instead_of_a_score(comparison: Comparison) -> None:
    laughing = replace(comparison, sentence1="I love it 😂", sentence2="I love it 😭", unknown=(("😂",), ("😭",)))
    head, drawn = similarity.headline(laughing), similarity.bars(laughing)
    assert "cannot read" in head
    assert "😂" in head
    assert "alike" not in head
    assert drawn.count(">not read<") == 3
    assert "%</strong>" not in drawn
    told = similarity.headline(replace(laughing, sentence2="I hate it", unknown=(("😂",), ())))
    assert "cannot read" in told
    assert "very alike" in told
    alone = replace(comparison, sentence1="😂😂 !", sentence2="A woman skis.", unknown=(("😂😂",), ()))
    assert similarity.unread(alone) == "sentence 1 (“😂😂”)", "nothing is left of it, whatever the other one says"
    assert not similarity.unread(comparison)


def test_texts_that_differ_behind_the_cut_get_no_verdict(comparison: Comparison) -> None:
    cut = replace(comparison, notes=("Its end was not read.",))
    assert "alike" in similarity.headline(cut)
    same = replace(cut, unconditional=np.ones(1, np.float32))
    assert "cannot read the end" in similarity.headline(same)
    assert similarity.bars(same).count(">not read<") == 3


def test_the_headline_says_who_may_not_say_what_was_asked(comparison: Comparison) -> None:
    silent = replace(comparison, applies=np.array([[0.1] * 3, [0.9] * 3], np.float32))
    assert "Sentence 1 may say nothing about" in similarity.headline(silent)
    mixed = replace(comparison, applies=np.array([[0.1, 0.1, 0.9], [0.9, 0.1, 0.1]], np.float32))
    assert "One or both sentences may say nothing about" in similarity.headline(mixed)


def test_a_shipped_example_says_what_a_reader_finds_and_where_the_model_is_wrong(comparison: Comparison) -> None:
    example = next(one for one in load_examples() if one.id == "bicycle-red-green")  # low, high, high
    right = replace(
        comparison, sentence1=example.sentence1, sentence2=example.sentence2, conditions=example.conditions,
        percentiles=np.array([[10.0, 90.0, 50.0]], np.float32),
    )  # fmt: skip
    assert "it is wrong" not in similarity.headline(right)
    assert similarity.bars(right).count("a reader:") == similarity.matrix(right).count("a reader:") == 3
    wrong = replace(right, percentiles=np.array([[80.0, 90.0, 20.0]], np.float32))
    assert similarity.misordered(wrong) == ("the colour of the wall", "the colour of the bicycle")
    assert "it is wrong" in similarity.headline(wrong)
    assert "a reader" not in similarity.bars(comparison)


def test_a_notebook_shows_the_effects_of_words() -> None:
    words, effects = (Word("surfs", 6, 11), Word("<b>", 12, 15)), np.array([0.4, -0.1], np.float32)
    read = Attribution("length", CONDITIONS[1], 0.9, words, words[:1], effects, effects[:1])
    shown = read._repr_html_()
    assert shown.count(">surfs</span>") == 2
    assert "<b>" not in shown
