"""Words under conditions: values of every kind of model, ranks, and what is handed out."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import condviz
from condviz.analysis.words import MAX_CONDITIONS, read_words, to_csv, to_record
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.methods.csr import CSR
from condviz.types import TokenWeights, Word
from tests.tiny import SENTENCES, tiny_model

PAIR = SENTENCES[:2]
CONDITIONS = ["the sport", "the mood"]


@pytest.fixture(scope="module")
def csr() -> CSR:
    return tiny_model("csr", num_routed_layers=2)


def test_every_model_reads_a_pair_and_a_single_sentence(models: list[ConditionalScorer]) -> None:
    for model in models:
        reading = read_words(model, PAIR, CONDITIONS)
        assert reading.source == ("router" if model.info.name.startswith("csr") else "leave-one-out")
        assert [word.text for word in reading.texts[1].words] == PAIR[1].split()
        np.testing.assert_allclose(reading.scores, model.score([PAIR[0]] * 2, [PAIR[1]] * 2, CONDITIONS), atol=1e-6)
        for text in reading.texts:
            assert text.weights.shape[1:] == (2, len(text.words))
        single = read_words(model, PAIR[:1], CONDITIONS)
        assert (single.scores, single.unconditional, len(single.texts)) == (None, None, 1)


def test_router_values_are_those_of_the_model(csr: CSR) -> None:
    reading = read_words(csr, PAIR, CONDITIONS)
    expected = csr.token_weights(PAIR[1], CONDITIONS)
    np.testing.assert_array_equal(reading.texts[1].weights, expected.weights)
    assert reading.texts[1].layers == (1, 2)


def test_without_a_router_a_value_is_what_leaving_out_the_word_does(models: list[ConditionalScorer]) -> None:
    model = next(model for model in models if model.info.name == "bi-encoder")
    reading = read_words(model, PAIR, CONDITIONS)
    shorter = model.score(["a rides a bike"], [PAIR[1]], ["the mood"])[0]
    assert reading.texts[0].weights[0, 1, 1] == pytest.approx(reading.scores[1] - shorter, abs=1e-5)
    alone = read_words(model, PAIR[:1], CONDITIONS).texts[0].weights
    # A sentence without one of its words is still most like itself when nothing is missing.
    assert (alone > -1e-6).all()
    assert alone.max() > 0


def test_a_model_without_routed_layers_has_no_router() -> None:
    model = tiny_model("csr", num_routed_layers=0)
    assert not model.has_router
    assert read_words(model, PAIR, CONDITIONS).source == "leave-one-out"


def test_ranks_count_from_the_largest_and_ties_share() -> None:
    def text(values: np.ndarray) -> TokenWeights:
        words = tuple(Word("a", 0, 1) for _ in range(values.shape[-1]))
        return TokenWeights("a", ("the mood",), words, values[None], (), np.zeros((1, 1)), (), np.zeros((1, 1, 0)))

    np.testing.assert_array_equal(text(np.array([[0.1, -0.5, 0.1, 0]])).ranks, [[[2, 1, 2, 4]]])
    assert text(np.zeros((1, 0))).ranks.shape == (1, 1, 0)
    np.testing.assert_allclose(text(np.array([[1.0, -3], [0, 0]])).shares, [[[0.25, 0.75], [0, 0]]])


def test_csv_has_a_row_for_each_word_condition_and_layer(csr: CSR) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv([read_words(csr, PAIR, ["=the sport", "the mood"])]))))
    assert len(rows) == 2 * 2 * sum(len(text.split()) for text in PAIR)
    assert {row["condition"] for row in rows} == {"'=the sport", "the mood"}
    assert {row["layer"] for row in rows} == {"2", "3"}
    top = [row for row in rows if row["rank"] == "1"]
    assert all(float(row["value"]) > 0 for row in top)


def test_the_record_is_plain_json(models: list[ConditionalScorer]) -> None:
    readings = [read_words(model, PAIR, CONDITIONS) for model in models[:6]]
    record = json.loads(json.dumps(to_record(readings), allow_nan=False))
    assert record["conditions"] == CONDITIONS
    for model, reading in zip(record["models"], readings, strict=True):
        weights = np.array(model["sentences"][0]["weights"], dtype=np.float32)
        np.testing.assert_array_equal(weights, reading.texts[0].weights)


@pytest.mark.parametrize(
    ("sentences", "conditions", "message"),
    [
        ([], CONDITIONS, "One or two sentences can be read, got 0"),
        (["a"] * 3, CONDITIONS, "got 3"),
        ([" "], CONDITIONS, "Sentence 1 is empty"),
        (["a cat"], [], "There is no condition"),
        (["a cat"], [f"the mood {i}" for i in range(13)], f"at most {MAX_CONDITIONS} are allowed"),
    ],
)
def test_bad_input_gets_a_message(csr: CSR, sentences: list, conditions: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_words(csr, sentences, conditions)


def test_a_single_text_is_a_single_sentence(csr: CSR) -> None:
    assert condviz.read_words(csr, PAIR[0], CONDITIONS).to_dict() == read_words(csr, PAIR[:1], CONDITIONS).to_dict()


def test_a_frame_without_a_router_has_no_layer(models: list[ConditionalScorer]) -> None:
    model = next(model for model in models if model.info.name == "bi-encoder")
    frame = read_words(model, PAIR, CONDITIONS).to_frame()
    assert frame["layer"].isna().all()
    assert len(frame) == 2 * sum(len(text.split()) for text in PAIR)


def test_progress_can_stop_the_reading(models: list[ConditionalScorer]) -> None:
    class Stopped(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Stopped

    model = next(model for model in models if model.info.name == "bi-encoder")
    model.backbone.cache.clear()
    with pytest.raises(Stopped):
        read_words(model, PAIR, CONDITIONS, progress=stop)
