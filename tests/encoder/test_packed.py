"""Packed linear layers give what ordinary ones give."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from condviz.encoder.packed import PackedLinear, can_pack, pack_linear_layers, packed, project_rows, rows_stand_alone
from condviz.encoder.pretrained import load_backbone
from tests.tiny import SENTENCES, tiny_backbone, tiny_folder

needs_support = pytest.mark.skipif(not can_pack(), reason="this CPU does not multiply bfloat16 matrices")


@pytest.fixture
def pair() -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    plain = nn.Linear(32, 48).to(torch.bfloat16)
    layer = copy.deepcopy(plain)
    pack_linear_layers(layer)
    return plain, layer


@needs_support
@pytest.mark.parametrize("shape", [(32,), (1, 32), (7, 32), (3, 5, 32), (0, 32)])
@torch.no_grad()
def test_values_are_those_of_a_plain_layer(pair: tuple[nn.Linear, nn.Linear], shape: tuple[int, ...]) -> None:
    plain, layer = pair
    assert isinstance(layer, PackedLinear)
    inputs = torch.randn(shape).to(torch.bfloat16)
    torch.testing.assert_close(layer(inputs), plain(inputs), rtol=1e-2, atol=1e-2)
    assert layer(inputs).shape == (*shape[:-1], 48)
    torch.testing.assert_close(layer.with_gelu(inputs), nn.functional.gelu(plain(inputs)), rtol=2e-2, atol=2e-2)


def test_gradients_flow_as_before(pair: tuple[nn.Linear, nn.Linear]) -> None:
    layer = pair[1]
    layer(torch.randn(4, 32).to(torch.bfloat16)).sum().backward()
    assert layer.weight.grad is not None


@needs_support
@torch.no_grad()
def test_a_changed_weight_is_packed_again(pair: tuple[nn.Linear, nn.Linear]) -> None:
    layer, inputs = pair[1], torch.ones(2, 32, dtype=torch.bfloat16)
    before = layer(inputs)
    layer.weight.mul_(2)
    layer.bias.mul_(2)
    torch.testing.assert_close(layer(inputs), 2 * before, rtol=2e-2, atol=2e-2)
    layer.weight = nn.Parameter(torch.zeros_like(layer.weight))
    torch.testing.assert_close(layer(inputs), layer.bias.expand(2, -1))


@needs_support
@torch.no_grad()
def test_copies_share_the_packed_weight_of_a_shared_parameter(pair: tuple[nn.Linear, nn.Linear]) -> None:
    layer = pair[1]
    twin = copy.deepcopy(layer, {id(value): value for value in layer.parameters()})
    assert twin.weight is layer.weight
    assert packed(twin.weight) is packed(layer.weight)


@torch.no_grad()
def test_other_precisions_are_left_alone(pair: tuple[nn.Linear, nn.Linear]) -> None:
    layer, inputs = pair[1].float(), torch.randn(3, 32)
    torch.testing.assert_close(layer(inputs), nn.functional.linear(inputs, layer.weight, layer.bias))


def test_loaded_encoders_use_them_in_bfloat16_only(tmp_path: object) -> None:
    folder = str(tiny_folder(tmp_path / "encoder"))
    kinds = {}
    for precision in ("float32", "bfloat16"):
        backbone = load_backbone(folder, device="cpu", precision=precision)
        kinds[precision] = any(isinstance(module, PackedLinear) for module in backbone.modules())
        assert backbone.encode([(text,) for text in SENTENCES], pooling="mean").shape == (len(SENTENCES), 32)
    assert kinds == {"float32": False, "bfloat16": can_pack()}


def test_a_cpu_without_the_instructions_keeps_plain_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condviz.encoder.packed.can_pack", lambda: False)
    layer = nn.Linear(4, 4)
    pack_linear_layers(layer)
    assert type(layer) is nn.Linear


def test_where_rows_stand_alone_a_text_has_the_same_bits_in_every_batch() -> None:
    if not rows_stand_alone(torch.bfloat16):
        pytest.skip("this CPU sums up in another order for another number of rows")
    backbone, items = tiny_backbone().to(torch.bfloat16), [(text,) for text in SENTENCES]
    together = backbone.encode(items, pooling="mean")
    for item, vector in zip(items, together, strict=True):
        backbone.cache.clear()
        assert torch.equal(backbone.encode([item], pooling="mean")[0], vector)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_tall_matrix_is_projected_as_by_an_ordinary_product(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rows, weight = torch.randn(37, 24).to(dtype), torch.randn(5, 24).to(dtype)
    torch.testing.assert_close(project_rows(rows, weight), rows @ weight.T)
    assert project_rows(rows[:0], weight).shape == (0, 5)


@needs_support
def test_in_float32_it_is_projected_by_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, operator = [], torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda *args: asked.append(1) or operator(*args))
    project_rows(torch.randn(3, 24), torch.randn(5, 24))
    assert asked == [1]
