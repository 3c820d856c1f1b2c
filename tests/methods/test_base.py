"""What all methods inherit: threads, kinds of input, cancelling, grids of nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

from condviz.errors import DataError
from condviz.methods import METHODS, ConditionalEncoder, ConditionalScorer
from condviz.methods.base import cosine_tables
from tests.tiny import CONDITIONS, SENTENCES, encoded_rows, tiny_backbone

PAIRS = (SENTENCES, SENTENCES[::-1], CONDITIONS)


def make(name: str) -> ConditionalScorer:
    torch.manual_seed(1)
    settings = {"rank": 4} if name == "hyper-cl" else {}
    return METHODS[name](tiny_backbone(), METHODS[name].config_cls(**settings)).eval()


@pytest.mark.parametrize("name", METHODS)
def test_threads_get_the_same_and_encode_each_text_once(name: str) -> None:
    alone, shared = make(name), make(name)
    with encoded_rows(alone.backbone) as rows_alone:
        expected = alone.score(*PAIRS)
    with encoded_rows(shared.backbone) as rows, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: shared.score(*PAIRS), range(8)))
    assert sum(rows) == sum(rows_alone)
    for result in results:
        np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", [tuple, np.array, lambda texts: np.array(texts, dtype=object), pd.Series])
def test_any_sequence_of_texts_will_do(name: str, kind: type) -> None:
    method = make(name)
    expected = method.score(*PAIRS)
    np.testing.assert_array_equal(method.score(*(kind(column) for column in PAIRS)), expected)
    if isinstance(method, ConditionalEncoder):
        vectors = method.encode(kind(SENTENCES), kind(CONDITIONS))
        np.testing.assert_array_equal(vectors, method.encode(SENTENCES, CONDITIONS))
        method.encode_sentences(kind(SENTENCES))
        assert method.similarity_grid(kind(SENTENCES), kind(CONDITIONS[:3])).shape == (3, 4, 4)


@pytest.mark.parametrize("name", METHODS)
def test_what_is_not_text_is_a_clear_error(name: str) -> None:
    method = make(name)
    for wrong in (None, float("nan"), 3, b"a cat"):
        with pytest.raises(DataError, match="cannot be encoded"):
            method.score(["a cat"], [wrong], ["the mood"])
    with pytest.raises(DataError, match="lists of texts"):
        method.score_unconditional("a cat", "a man")


@pytest.mark.parametrize("name", METHODS)
def test_nothing_in_gives_nothing_out(name: str) -> None:
    method = make(name)
    assert method.score_unconditional([], []).shape == (0,)
    if isinstance(method, ConditionalEncoder):
        assert method.encode([], []).shape == (0, 32)
        assert method.encode_sentences([]).shape == (0, 32)
        assert method.similarity_grid(SENTENCES, []).shape[0] == 0
        assert method.similarity_grid([], CONDITIONS[:2]).shape == (2, 0, 0)


def test_cosine_tables_are_symmetric_and_bounded() -> None:
    torch.manual_seed(0)
    grid = torch.randn(3, 5, 7)
    table = cosine_tables(grid)
    torch.testing.assert_close(table, table.transpose(1, 2))
    torch.testing.assert_close(table.diagonal(dim1=1, dim2=2), torch.ones(3, 5))
    assert cosine_tables(torch.zeros(1, 2, 3)).isfinite().all()
