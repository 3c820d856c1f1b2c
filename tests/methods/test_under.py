"""A model with its condition fixed, where libraries of sentence embeddings expect a model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline

from condviz.errors import ConfigError, DataError
from condviz.methods import METHODS, ConditionalEncoder
from tests.tiny import SENTENCES, tiny_model

SPORT = "the sport"


@pytest.fixture
def model() -> ConditionalEncoder:
    return tiny_model("bi-encoder")


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].encodes])
def test_it_encodes_under_its_condition(name: str) -> None:
    model = tiny_model(name)
    np.testing.assert_array_equal(model.under(SPORT).encode(SENTENCES), model.encode(SENTENCES, SPORT))
    np.testing.assert_array_equal(model.under(None).encode(SENTENCES), model.encode_sentences(SENTENCES))


def test_names_and_meanings_are_those_of_sentence_transformers(model: ConditionalEncoder) -> None:
    sport = model.under(SPORT)
    vectors = sport.encode(SENTENCES, batch_size=2, show_progress_bar=False)
    assert sport.encode(SENTENCES[0]).shape == (32,)
    assert sport.similarity(vectors, vectors[:3]).shape == (4, 3)
    assert sport.similarity_pairwise(vectors, vectors).shape == (4,)
    assert (sport.get_sentence_embedding_dimension(), sport.max_seq_length) == (32, 64)
    tensor = sport.encode(iter(SENTENCES), convert_to_tensor=True, normalize_embeddings=True, device="cpu")
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(tensor.norm(dim=1), np.ones(4), atol=1e-6)
    np.testing.assert_array_equal(sport.encode(SENTENCES, convert_to_numpy=True, prompt=None), vectors)
    with pytest.raises(ConfigError, match="Unknown option prompt"):
        sport.encode(SENTENCES, prompt="query: ")


@pytest.mark.parametrize("wrong", [["the sport"], 3])
def test_a_condition_is_one_text(model: ConditionalEncoder, wrong: object) -> None:
    with pytest.raises(ConfigError, match="one text"):
        model.under(wrong)
    with pytest.raises(DataError):
        model.under(SPORT).encode([3])


def test_the_dimension_is_that_of_its_vectors() -> None:
    case = tiny_model("case", projection="linear", projection_dim=5)
    for condition in (SPORT, None):
        under = case.under(condition)
        assert under.encode(SENTENCES).shape == (4, under.get_sentence_embedding_dimension())


def test_it_is_pickled_and_cloned(model: ConditionalEncoder) -> None:
    sport = model.under(SPORT)
    expected = sport.encode(SENTENCES)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(sport)).encode(SENTENCES), expected, atol=1e-6)
    copied = clone(sport)
    assert copied is not sport
    assert (copied.model, copied.condition) == (model, SPORT)
    assert repr(copied) == "Conditioned(bi-encoder, 'the sport')"


def test_it_is_a_step_of_a_pipeline_whose_condition_is_searched(model: ConditionalEncoder) -> None:
    texts, labels = SENTENCES * 4, [0, 1, 1, 0] * 4
    pipe = make_pipeline(model.under(SPORT), LogisticRegression())
    assert pipe.fit(texts, labels).predict(texts).tolist() == labels
    found = GridSearchCV(pipe, {"conditioned__condition": [SPORT, "the mood"]}, cv=2).fit(texts, labels)
    assert found.best_params_["conditioned__condition"] in (SPORT, "the mood")
    near = make_pipeline(model.under(SPORT), NearestNeighbors(n_neighbors=1, metric="cosine")).fit(texts)
    assert near[-1].kneighbors(near[:-1].transform(SENTENCES[:1]))[1][0][0] % 4 == 0


def test_it_has_the_methods_of_langchain(model: ConditionalEncoder) -> None:
    sport = model.under(SPORT)
    assert np.allclose(sport.embed_documents(SENTENCES), sport.encode(SENTENCES))
    assert np.allclose(sport.embed_query(SENTENCES[0]), sport.encode(SENTENCES[0]), atol=1e-6)
