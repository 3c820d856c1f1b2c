"""Hyper-CL: identities of the hypernetwork, parameter counts of the papers, and the fast paths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel

from condviz.encoder.backbone import Backbone
from condviz.errors import ConfigError
from condviz.methods import encoders
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig, project_rows
from tests.stand_ins import interrupt
from tests.tiny import CONDITIONS, SENTENCES, encoded_rows, tiny_model

SIZE = 32


@torch.no_grad()
def test_zero_weights_and_the_identity_as_bias_give_the_sentence_back() -> None:
    method = tiny_model("hyper-cl", rank=None)
    torch.nn.init.zeros_(method.hyper.weight)
    method.hyper.bias.copy_(torch.eye(SIZE).flatten())
    np.testing.assert_allclose(method.encode(SENTENCES, CONDITIONS), method.encode_sentences(SENTENCES), atol=1e-6)
    np.testing.assert_allclose(method.condition_matrix("the sport"), np.eye(SIZE), atol=1e-6)


@torch.no_grad()
def test_low_rank_with_as_many_dimensions_equals_the_full_matrix() -> None:
    full, low = tiny_model("hyper-cl", rank=None), tiny_model("hyper-cl", rank=SIZE)
    low.condition.load_state_dict(full.condition.state_dict())
    torch.nn.init.zeros_(low.hyper_right.weight)
    low.hyper_right.bias.copy_(torch.eye(SIZE).flatten())
    low.hyper_left.load_state_dict(full.hyper.state_dict())
    np.testing.assert_allclose(low.encode(SENTENCES, CONDITIONS), full.encode(SENTENCES, CONDITIONS), atol=1e-4)
    np.testing.assert_allclose(
        low.score(SENTENCES, SENTENCES[::-1], CONDITIONS), full.score(SENTENCES, SENTENCES[::-1], CONDITIONS), atol=1e-5
    )


@pytest.mark.parametrize(
    ("size", "rank", "expected"),
    [
        (384, None, 56_770_560),
        (384, 96, 28_385_280),
        (384, 48, 14_192_640),
        (384, 32, 9_461_760),
        (384, 24, 7_096_320),
        (384, 16, 4_730_880),
        (768, None, 453_574_656),
        (768, 192, 226_787_328),
        (768, 96, 113_393_664),
        (768, 64, 75_595_776),
        (768, 48, 56_696_832),
        (768, 32, 37_797_888),
        (1024, None, 1_074_790_400),
        (1024, 256, 537_395_200),
        (1024, 128, 268_697_600),
        (1024, 85, 178_432_000),
        (1024, 64, 134_348_800),
        (1024, 42, 88_166_400),
    ],
)
def test_parameters_are_those_of_the_papers(size: int, rank: int | None, expected: int) -> None:
    config = AutoConfig.for_model(
        "bert", vocab_size=10, hidden_size=size, num_hidden_layers=1, num_attention_heads=4, intermediate_size=8
    )
    with torch.device("meta"):
        method = HyperCL(Backbone(AutoModel.from_config(config)), HyperCLConfig(rank=rank))
    assert method.added_parameters == expected + size * size + size  # and the linear layer of the condition


@pytest.mark.parametrize("rank", [None, 4])
def test_matrix_times_vector_is_the_embedding(rank: int | None) -> None:
    method = tiny_model("hyper-cl", rank=rank)
    matrix = method.condition_matrix("the mood")
    assert (matrix.shape, matrix.dtype) == ((SIZE, SIZE), np.float32)
    assert np.linalg.matrix_rank(matrix) == (rank or SIZE)
    expected = method.encode(SENTENCES, ["the mood"] * 4)
    np.testing.assert_allclose(method.encode_sentences(SENTENCES) @ matrix.T, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [None, 1, 4, SIZE])
def test_one_condition_at_a_time_gives_what_a_matrix_for_each_row_gives(rank: int | None) -> None:
    method, index = tiny_model("hyper-cl", rank=rank), torch.tensor([1, 0, 1, 2])
    sentences = method.encode_sentences(SENTENCES, convert_to_tensor=True)
    conditions = method.encode_conditions(CONDITIONS, convert_to_tensor=True)
    one, other = method.embed_by_condition(sentences, conditions, index), method.compose(sentences, conditions, index)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    grid = method.embed_grid(sentences, conditions)
    np.testing.assert_allclose(grid[index, range(4)], other.detach(), rtol=1e-4, atol=1e-4)


def test_a_grid_costs_one_pass_per_text() -> None:
    method = tiny_model("hyper-cl", rank=4)
    with encoded_rows(method.backbone) as rows:
        method.encode(SENTENCES, CONDITIONS)
        method.encode_grid(SENTENCES, CONDITIONS[:3])
    assert sum(rows) == len(SENTENCES) + 3


def test_low_rank_never_makes_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    method, shapes = tiny_model("hyper-cl", rank=2), []
    matmul = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: shapes.append((r := matmul(a, b)).shape) or r)
    method.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    method.encode_grid(SENTENCES, CONDITIONS[:3])
    assert shapes
    assert not any(shape[-2:] == (SIZE, SIZE) for shape in shapes)


@pytest.mark.parametrize("rank", [0, -1, 1.5, "8"])
def test_ranks_that_cannot_be(rank: object) -> None:
    with pytest.raises(ConfigError, match="rank is "):
        HyperCLConfig(rank=rank)
    with pytest.raises(ConfigError, match="rank must be at most the encoder's size, 32, got 33"):
        tiny_model("hyper-cl", rank=33)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_tall_matrix_is_projected_as_by_an_ordinary_product(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rows, weight = torch.randn(37, 24).to(dtype), torch.randn(5, 24).to(dtype)
    torch.testing.assert_close(project_rows(rows, weight), rows @ weight.T)
    assert project_rows(rows[:0], weight).shape == (0, 5)


def test_in_float32_it_is_projected_by_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, operator = [], torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda *args: asked.append(1) or operator(*args))
    project_rows(torch.randn(3, 24), torch.randn(5, 24))
    assert asked == [1]


def test_rows_composed_from_known_vectors_tell_their_progress_and_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method, told = tiny_model("hyper-cl", rank=None), []
    whole = method.score(SENTENCES, SENTENCES[::-1], CONDITIONS)  # every vector is in the cache now
    monkeypatch.setattr(encoders, "COMPOSE_BYTES", 1)
    options = {"progress": lambda *now: told.append(now)}
    np.testing.assert_allclose(method.score(SENTENCES, SENTENCES[::-1], CONDITIONS, **options), whole, atol=1e-6)
    assert told == [(done, 8) for done in range(1, 9)]

    with pytest.raises(KeyboardInterrupt):
        method.score(SENTENCES, SENTENCES[::-1], CONDITIONS, progress=interrupt)
