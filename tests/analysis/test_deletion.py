"""Deleting the top words against random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condviz.analysis.words import (
    DRAWS,
    HELD_OUT,
    DeletionTest,
    delete_words,
    held_out_sentences,
    read_words,
    without_words,
)
from condviz.data.texts import split_words
from condviz.errors import ConfigError, DataError
from condviz.methods import ConditionalScorer
from condviz.methods.csr import CSR
from tests.tiny import SENTENCES, tiny_model

PAIR = [SENTENCES[3], SENTENCES[1]]
CONDITIONS = ["the sport", "the mood"]


@pytest.fixture(scope="module")
def csr() -> CSR:
    return tiny_model("csr")


def test_the_top_words_are_deleted_under_their_condition(csr: CSR) -> None:
    reading = read_words(csr, PAIR, CONDITIONS)
    test = delete_words(csr, reading, 2)
    assert test.top.shape == (2, 2)
    assert test.random.shape == (DRAWS, 2, 2)
    weights = reading.texts[1].weights[-1, 1]
    top = [reading.texts[1].words[place] for place in np.argsort(-weights)[:2]]
    shorter = without_words(PAIR[1], top)
    assert len(shorter.split()) == len(PAIR[1].split()) - 2
    change = csr.score([PAIR[0]], [shorter], ["the mood"])[0] - reading.scores[1]
    assert test.top[1, 1] == pytest.approx(change, abs=1e-5)


def test_the_draws_are_fixed_by_the_seed(csr: CSR) -> None:
    reading = read_words(csr, PAIR, CONDITIONS)
    first, again, other = (delete_words(csr, reading, 1, seed=seed).random for seed in (0, 0, 1))
    np.testing.assert_allclose(first, again, atol=1e-6)
    assert not np.allclose(first, other)


def test_marks_are_never_deleted(csr: CSR) -> None:
    # "the man is happy !": whatever the draw, the mark stays, and so does one word.
    reading = read_words(csr, PAIR[:1], CONDITIONS[:1])
    marked = replace(reading.texts[0], weights=np.array([[[0, 0, 0, 0, 1.0]]], dtype=np.float32))
    test = delete_words(csr, replace(reading, texts=(marked,)), 10, draws=3)
    kept = without_words(PAIR[0], list(marked.words[:3]))
    assert kept == "happy !"
    change = csr.score([PAIR[0]], [kept], CONDITIONS[:1])[0] - 1
    assert test.top[0, 0] == pytest.approx(change, abs=1e-5)


def test_every_model_can_be_tested(models: list[ConditionalScorer]) -> None:
    for model in models:
        for sentences in (PAIR, PAIR[:1]):
            test = delete_words(model, read_words(model, sentences, CONDITIONS), 1, draws=4)
            pairs = len(sentences) * (1 if model.has_router else HELD_OUT)
            assert test.random.shape == (4, 2, pairs)
            assert np.isfinite(test.random).all()
    assert json_is_plain(test)


def test_words_chosen_by_leaving_out_are_tested_against_other_sentences(models: list[ConditionalScorer]) -> None:
    model = next(model for model in models if model.info.name == "bi-encoder")
    reading = read_words(model, PAIR, CONDITIONS)
    test = delete_words(model, reading, 1, draws=2)
    assert len(test.held_out) == HELD_OUT
    assert not {*test.held_out} & {*PAIR}
    effects = np.abs(reading.texts[1].weights[-1, 1])
    shorter = without_words(PAIR[1], [reading.texts[1].words[int(np.argmax(effects))]])
    # The second sentence stays on its side; its pairs come behind those of the first.
    for place, other in enumerate(test.held_out):
        base, found = model.score([other] * 2, [PAIR[1], shorter], ["the mood"] * 2)
        assert test.top[1, HELD_OUT + place] == pytest.approx(found - base, abs=1e-5)


def test_held_out_sentences_leave_out_those_in_question() -> None:
    first = held_out_sentences([])
    assert not {first[0]} & {*held_out_sentences([first[0]])}


def json_is_plain(test: DeletionTest) -> bool:
    record = test.to_dict()
    return set(record) == {"words", "top", "random", "interval", "draws", "as_far", "held_out"} and record["draws"] == 4


def test_figures_of_a_test() -> None:
    random = np.array([0.1, -0.2, 0.3, 0.4], dtype=np.float32)[:, None, None]
    test = DeletionTest("csr", 1, np.array([[-0.3]], dtype=np.float32), random)
    assert test.top_move == pytest.approx(0.3)
    assert test.as_far == 2
    low, high = test.interval
    assert 0.1 < low < high < 0.4


def test_words_are_cut_out_of_the_right_places() -> None:
    words = split_words("don't touch the well-known cat, please")
    assert without_words("don't touch the well-known cat, please", [words[0], words[3], words[6]]) == "touch the cat,"


@pytest.mark.parametrize("count", [0, 11, 1.5])
def test_the_number_of_words_is_checked(csr: CSR, count: int) -> None:
    with pytest.raises(ConfigError, match="a whole number from 1 to 10"):
        delete_words(csr, read_words(csr, PAIR, CONDITIONS), count)


def test_a_sentence_of_one_word_cannot_lose_it(csr: CSR) -> None:
    with pytest.raises(DataError, match="No sentence has two words"):
        delete_words(csr, read_words(csr, ["cat !"], CONDITIONS))
    mixed = delete_words(csr, read_words(csr, ["cat !", PAIR[1]], CONDITIONS))
    assert mixed.top.shape == (2, 1)
