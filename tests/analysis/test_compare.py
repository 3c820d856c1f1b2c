"""Comparing a pair under conditions, leaving out words, and finding conditions: shapes, meaning, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from condviz.analysis import reference as module
from condviz.analysis.compare import ANY_TEXT, compare, distinct, fitting, library_conditions, rank_conditions
from condviz.analysis.words import leave_one_word_out, tell_pair, tell_rows
from condviz.errors import DataError, TruncationWarning
from condviz.methods import METHODS, ConditionalScorer
from condviz.models.registry import load
from condviz.types import TOLD, Pair
from tests.tiny import CONDITIONS, SENTENCES, WORDS

ONE, TWO = SENTENCES[0], SENTENCES[1]
THREE = CONDITIONS[:3]


class StopWorkError(Exception):
    """Raised by a progress callback."""


def stop(done: int, total: int) -> None:
    raise StopWorkError(f"{done} of {total}")


@pytest.fixture(autouse=True)
def _few_reference_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = tuple(Pair(one, two, "the mood", 3.0) for one in SENTENCES for two in SENTENCES)
    monkeypatch.setattr(module, "reference_pairs", lambda: pairs)


def test_a_comparison_holds_what_single_calls_give(models: list[ConditionalScorer]) -> None:
    told = []
    result = compare(models, f"  {ONE}\n", TWO, THREE, progress=lambda done, total: told.append((done, total)))
    assert (result.sentence1, result.conditions) == (ONE, tuple(THREE))
    assert told == [(i, len(models)) for i in range(1, len(models) + 1)]
    assert result.scores.shape == result.percentiles.shape == (len(models), 3)
    assert result.scores.dtype == result.percentiles.dtype == result.unconditional.dtype == np.float32
    for i, model in enumerate(models):
        np.testing.assert_allclose(result.scores[i], model.score([ONE] * 3, [TWO] * 3, THREE), atol=1e-6)
        np.testing.assert_allclose(result.unconditional[i], model.score_unconditional([ONE], [TWO])[0], atol=1e-6)
    assert ((result.percentiles >= 0) & (result.percentiles <= 100)).all()
    assert result.notes == ()


@pytest.mark.slow
def test_a_sentence_is_silent_about_what_the_other_tells_by_the_same_word_only_in_a_clear_case() -> None:
    pair = ["The battery of this phone dies by noon.", "This phone lasts two full days on one charge."]
    found = tell_pair(load("minilm"), pair, ["the product", "the price", "kfjgha wqzxvb"]) >= TOLD
    assert found.tolist() == [[True, False, False], [True, False, False]]
    rows = [pair[0]] * 2, [pair[1], "It lasts two full days."]
    assert (tell_rows(load("minilm"), *rows, ["the product"] * 2) >= TOLD).tolist() == [True, False]


def test_the_answer_is_plain_json(models: list[ConditionalScorer]) -> None:
    answer = compare(models, ONE, TWO, THREE).to_dict()
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert answer["models"] == list(METHODS)
    assert len(compare(models, ONE, TWO, THREE).to_frame()) == len(models) * (1 + len(THREE))


def test_cut_texts_are_noted(models: list[ConditionalScorer]) -> None:
    long = " ".join(WORDS * 5)
    with pytest.warns(TruncationWarning):
        notes = compare(models, long, TWO, THREE).notes
    assert any(note.startswith("Sentence 1 with its condition is longer than the 64 tokens") for note in notes)
    assert not any(note.startswith("Sentence 2") for note in notes)
    half = " ".join((WORDS * 3)[:35])
    cross = [model for model in models if model.kind == "cross"]
    with pytest.warns(TruncationWarning):
        (note,) = compare(cross, half, half, THREE).notes
    assert "the condition, was not read" in note


def test_too_many_words_are_told_before_anything_is_scored() -> None:
    with pytest.raises(DataError, match="402 words, and at most 400"):
        compare("a model that does not exist", "word " * 401, "word", THREE, words=True)


BAD: list[tuple[tuple, str]] = [
    (("", TWO, THREE), "Sentence 1 is empty"),
    ((ONE, "  \n", THREE), "Sentence 2 is empty"),
    ((ONE, "\u200b", THREE), "Sentence 2 is empty"),
    ((None, TWO, THREE), "Sentence 1 must be text"),
    ((ONE, "x" * 100_000, THREE), "Sentence 2 has 100,000 characters"),
    ((ONE, "a\0b", THREE), r"Sentence 2 has a control character \(U\+0000\)"),
    ((ONE, "a\x1b[31m", THREE), r"Sentence 2 has a control character \(U\+001B\)"),
    ((ONE, "\ud83d", THREE), "Sentence 2 has half of a character"),
    ((ONE, TWO, []), "no condition"),
    ((ONE, TWO, ["the mood", " "]), "Condition 2 is empty"),
    ((ONE, TWO, ["the mood", "the sport", "The  Mood"]), "Conditions 1 and 3 are the same"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_message_with_the_field(
    models: list[ConditionalScorer], arguments: tuple, message: str
) -> None:
    for call in (lambda: compare(models[:1], *arguments), lambda: rank_conditions(models[0], *arguments)):
        with pytest.raises(DataError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300


def test_too_many_conditions_and_no_model(models: list[ConditionalScorer]) -> None:
    many = [f"condition number {i}" for i in range(500)]
    with pytest.raises(DataError, match="There are 500 conditions, and at most 20"):
        compare(models, ONE, TWO, many)
    with pytest.raises(DataError, match="No model is chosen"):
        compare([], ONE, TWO, THREE)


@pytest.mark.parametrize(
    "text", ["<img onerror=alert(1)>", "${1+1}", "{{7*7}}", "مرحبا بالعالم", "🏄🏽‍♀️", "[SEP] [CLS]", "=1+1", "'; DROP"]
)
def test_odd_texts_are_scored_as_they_are(models: list[ConditionalScorer], text: str) -> None:
    result = compare(models, text, TWO, [text, "the mood"])
    assert (result.sentence1, result.conditions[0]) == (text, text)
    assert np.isfinite(result.scores).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda model: compare([model], "a cat", "a man", ["the mood"], progress=stop),
        lambda model: rank_conditions(model, "a cat", "a man", ["the park"], progress=stop),
        lambda model: leave_one_word_out(model, "a cat", "a man", "the grass", progress=stop),
    ],
)
def test_progress_that_raises_stops_the_work(models: list[ConditionalScorer], call: Callable) -> None:
    for model in models:
        model.backbone.cache.clear()
        with pytest.raises(StopWorkError):
            call(model)


@pytest.mark.slow
def test_conditions_are_offered_that_both_sentences_tell_each_meaning_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = fitting("Two men play football in the rain.", "Three women play football in the sun.")
    assert {"the game that is played", "the weather"} <= set(found) <= {*library_conditions()}
    assert not {"the political issue", "the percentage that is mentioned", "the price", "the temperature"} & set(found)
    laboratory = fitting(
        "Incubate the samples at 37 degrees for two hours.", "Centrifuge them at 4 degrees for an hour."
    )
    assert set(laboratory) <= {"the temperature", "the duration", *ANY_TEXT}
    assert not {"the political issue", "the employer"} & set(fitting("A red bicycle.", "A green bicycle."))
    assert fitting("I hate mondays.", "Stars are burning balls of gas.") == ANY_TEXT
    places = [library_conditions().index(text) for text in ("the sport", "the weather")]
    assert distinct([places[0], *places]) == places
