"""What all methods inherit: threads, kinds of input, cancelling, grids of nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

from condviz.errors import ConfigError, DataError
from condviz.methods import METHODS, ConditionalEncoder
from tests.tiny import CONDITIONS, SENTENCES, encoded_rows, tiny_model

PAIRS = (SENTENCES, SENTENCES[::-1], CONDITIONS)


@pytest.mark.parametrize("name", METHODS)
def test_threads_get_the_same_and_encode_each_text_once(name: str) -> None:
    alone, shared = tiny_model(name), tiny_model(name)
    with encoded_rows(alone.backbone) as rows_alone:
        expected = alone.score(*PAIRS)
    with encoded_rows(shared.backbone) as rows, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: shared.score(*PAIRS), range(8)))
    assert sum(rows) == sum(rows_alone)
    for result in results:
        np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", [tuple, np.array, lambda texts: np.array(texts, dtype=object), pd.Series, iter])
def test_any_sequence_of_texts_will_do(name: str, kind: type) -> None:
    method = tiny_model(name)
    expected = method.score(*PAIRS)
    np.testing.assert_array_equal(method.score(*(kind(column) for column in PAIRS)), expected)
    if isinstance(method, ConditionalEncoder):
        vectors = method.encode(kind(SENTENCES), kind(CONDITIONS))
        np.testing.assert_array_equal(vectors, method.encode(SENTENCES, CONDITIONS))
        method.encode_sentences(kind(SENTENCES))
        assert method.encode_grid(kind(SENTENCES), kind(CONDITIONS[:3])).shape[:2] == (3, 4)


@pytest.mark.parametrize("name", METHODS)
def test_what_is_not_text_is_a_clear_error(name: str) -> None:
    method = tiny_model(name)
    for wrong in (None, float("nan"), 3, b"a cat"):
        with pytest.raises(DataError, match="cannot be encoded"):
            method.score(["a cat"], [wrong], ["the mood"])
    with pytest.raises(DataError, match="lists of texts"):
        method.score_unconditional("a cat", "a man")


@pytest.mark.parametrize("name", METHODS)
def test_nothing_in_gives_nothing_out(name: str) -> None:
    method = tiny_model(name)
    assert method.score_unconditional([], []).shape == (0,)
    if isinstance(method, ConditionalEncoder):
        assert method.encode([], []).shape == (0, 32)
        assert method.encode_sentences([]).shape == (0, 32)
        assert method.encode_grid(SENTENCES, []).shape[0] == 0
        assert method.encode_grid([], CONDITIONS[:2]).shape[:2] == (2, 0)


@pytest.mark.parametrize("name", METHODS)
def test_options_mean_what_they_mean_in_sentence_transformers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    method = tiny_model(name)
    expected = method.score(*PAIRS)
    with encoded_rows(method.backbone) as rows:
        method.backbone.cache.clear()
        tensor = method.score(*PAIRS, batch_size=1, convert_to_tensor=True, show_progress_bar=True, device="cpu")
    assert set(rows) == {1}
    assert isinstance(tensor, torch.Tensor)
    assert not tensor.requires_grad
    np.testing.assert_allclose(tensor, expected, atol=1e-5)
    assert "Encoding" in capsys.readouterr().err
    calls = [lambda **options: method.score(*PAIRS, **options)]
    if method.encodes:
        calls += [lambda **options: method.encode(SENTENCES, CONDITIONS, **options)]
        calls += [lambda **options: method.encode_sentences(SENTENCES, **options)]
    if method.separable:
        calls += [lambda **options: method.encode_conditions(CONDITIONS, **options)]
    for call in calls:
        assert isinstance(call(), np.ndarray)
        np.testing.assert_array_equal(call(convert_to_tensor=True), call())
        with pytest.raises(ConfigError, match="batch_size must be a positive integer, or None"):
            call(batch_size=0)
        with pytest.raises(ConfigError, match=r"Unknown option bar\. Options: batch_size"):
            call(bar=True)
        with pytest.raises(ConfigError, match="device must be one of"):
            call(device="tpu")


@pytest.mark.parametrize("name", METHODS)
def test_one_condition_goes_with_every_row(name: str) -> None:
    method = tiny_model(name)
    every = ["the mood"] * len(SENTENCES)
    np.testing.assert_array_equal(method.score(*PAIRS[:2], "the mood"), method.score(*PAIRS[:2], every))
    if not method.encodes:
        return
    vectors = method.encode(SENTENCES, every)
    np.testing.assert_array_equal(method.encode(SENTENCES, "the mood"), vectors)
    np.testing.assert_array_equal(method.encode(SENTENCES), method.encode_sentences(SENTENCES))
    np.testing.assert_allclose(method.encode(SENTENCES[0], "the mood"), vectors[0], atol=1e-6)
    assert vectors.shape == (4, method.get_sentence_embedding_dimension())
    units = method.encode(SENTENCES, "the mood", normalize_embeddings=True)
    np.testing.assert_allclose(units, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-6)
    assert (method.max_seq_length, method.device) == (64, torch.device("cpu"))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_gives_the_same_and_shares_nothing(name: str, copied: Callable) -> None:
    method = tiny_model(name)
    expected = method.score(*PAIRS)
    other = copied(method)
    assert other.fingerprint == method.fingerprint
    assert other.backbone.cache is not method.backbone.cache
    assert other.backbone.cache.entries == 0
    np.testing.assert_allclose(other.score(*PAIRS), expected, atol=1e-6)
    with torch.no_grad():
        next(other.backbone.model.parameters()).add_(1)
    method.backbone.cache.clear()
    np.testing.assert_allclose(method.score(*PAIRS), expected, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_similarity_takes_what_encode_returns(name: str) -> None:
    method = tiny_model(name)
    if not method.encodes:
        pytest.skip("has no embeddings")
    one, other = method.encode(SENTENCES, CONDITIONS), method.encode(SENTENCES[::-1], CONDITIONS)
    np.testing.assert_allclose(method.similarity_pairwise(one, other), method.score(*PAIRS), atol=1e-6)
    assert isinstance(method.similarity(torch.from_numpy(one), torch.from_numpy(other)), torch.Tensor)
    matrix = method.similarity(one, other[:3])  # of every row with every row, as in sentence-transformers
    assert matrix.shape == (4, 3)
    np.testing.assert_allclose(matrix.diagonal(), method.score(*PAIRS)[:3], atol=1e-6)
    assert method.similarity(one[0], other).shape == (1, 4)
    for call in (method.similarity, method.similarity_pairwise):
        with pytest.raises(DataError, match=r"shapes \(4, 32\) and \(4, 31\)"):
            call(one, other[:, :31])
        np.testing.assert_allclose(call(one.astype(np.float64), other), call(one, other), atol=1e-6)
        with pytest.raises(DataError, match="vectors of numbers"):
            call("a cat", "a man")
    with pytest.raises(DataError, match="sentences must be lists of texts"):
        method.encode_sentences("a cat")
