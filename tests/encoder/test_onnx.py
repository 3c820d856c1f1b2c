"""ONNX Runtime computes what torch does, and torch takes over where it cannot."""

from __future__ import annotations

import logging
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from condviz.encoder import layers, onnx
from condviz.encoder.backbone import Backbone
from condviz.encoder.layers import additive
from condviz.encoder.pretrained import choose_backend, fast_in_bfloat16, load_backbone
from condviz.encoder.tokens import Tokens
from condviz.errors import ConfigError
from tests.tiny import SENTENCES, tiny_backbone, tiny_folder

ITEMS = [(text,) for text in SENTENCES]
needs_library = pytest.mark.skipif(
    not (find_spec("onnx") and find_spec("onnxruntime")), reason="ONNX Runtime is not installed"
)
KINDS = ["bert", "roberta", "xlm-roberta", "mpnet"]


def both(kind: str = "bert") -> tuple[Backbone, Backbone]:
    """The same encoder by torch, and by ONNX Runtime."""
    plain, other = tiny_backbone(kind), tiny_backbone(kind)
    other.backend = "onnx"
    return plain, other


def in_int8(kind: str = "bert") -> Backbone:
    backbone = tiny_backbone(kind)
    backbone.backend, backbone.int8 = "onnx", True
    return backbone


def batch(backbone: Backbone) -> Tokens:
    return backbone.collate(backbone.tokenize(ITEMS))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-5)


@needs_library
@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_states_of_every_layer_are_those_of_torch(kind: str) -> None:
    plain, other = both(kind)
    tokens = batch(plain)
    assert other.layers.engine is not None
    for found, expected in zip(other.states(tokens), plain.states(tokens), strict=True):
        close(found[tokens.mask], expected[tokens.mask])


@needs_library
@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_so_is_a_layout_with_a_prefix_and_factors(kind: str) -> None:
    plain, other = both(kind)
    tokens, prefix = batch(plain), torch.randn(len(SENTENCES), 2, 32, generator=torch.Generator().manual_seed(0))
    mask = torch.cat([torch.ones(len(SENTENCES), 2, dtype=torch.bool), tokens.mask], dim=1)
    positions = torch.arange(mask.shape[1])[None]
    found = []
    for one in (plain.layers, other.layers):
        visible = one.lay_out(mask, positions)
        states = one.run(one.embed(tokens), visible, prefix=prefix, reweigh=lambda layer, hidden: hidden[..., 0])
        found.append((states[-1][tokens.mask], one.attend(1, states[1], visible, prefix=prefix)))
    for first, second in zip(*found, strict=True):
        close(first, second)


@needs_library
@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_in_int8_states_are_close_and_no_text_decides_for_another(kind: str) -> None:
    plain, rounded = tiny_backbone(kind), in_int8(kind)
    found, expected = (one.encode(ITEMS, pooling="mean") for one in (rounded, plain))
    assert rounded.layers.engine is not None
    assert not torch.equal(found, expected)
    assert float(functional.cosine_similarity(found, expected).min()) > 0.99
    rounded.cache.clear()
    alone = torch.cat([rounded.encode([item], pooling="mean") for item in ITEMS])
    close(alone, found)
    assert (rounded.precision, plain.precision) == ("int8", "float32")
    assert rounded.fingerprint != plain.fingerprint


@needs_library
@torch.no_grad()
def test_in_int8_a_router_may_set_attention_to_0_and_changed_weights_are_rounded_anew() -> None:
    rounded = in_int8()
    tokens = batch(rounded)

    def run() -> torch.Tensor:
        hidden = rounded.layers.embed(tokens)
        none = lambda layer, state: torch.zeros(state.shape[:2])  # noqa: E731
        return rounded.layers.run(hidden, tokens.mask, reweigh=none)[-1]

    before = run()
    assert bool(before[tokens.mask].isfinite().all())
    rounded.model.encoder.layer[1].output.dense.weight.mul_(-1)
    assert not torch.allclose(run()[tokens.mask], before[tokens.mask], atol=0.1)


@needs_library
def test_int8_is_a_precision_that_other_types_of_encoders_refuse(tmp_path: Path) -> None:
    tiny_folder(tmp_path / "bert"), tiny_folder(tmp_path / "qwen", "qwen3")
    assert load_backbone(str(tmp_path / "bert"), precision="int8").precision == "int8"
    with pytest.raises(ConfigError, match=r"int8 is for encoders of the types bert.*is a 'qwen3'"):
        load_backbone(str(tmp_path / "qwen"), precision="int8")


@needs_library
@torch.no_grad()
def test_no_weight_is_held_twice_and_changes_are_seen() -> None:
    plain, other = both()
    before = other.encode(ITEMS, pooling="mean")
    weights = {name: value.data_ptr() for name, value in other.layers._weights(0, other.layers.engine).items()}
    assert len(weights) == 16
    assert weights["wide_weight"] == other.model.encoder.layer[0].intermediate.dense.weight.data_ptr()
    for backbone in (plain, other):
        backbone.cache.clear()
        backbone.model.encoder.layer[0].attention.self.key.bias.add_(1)
        backbone.model.encoder.layer[2].output.dense.weight.mul_(2)
    close(other.encode(ITEMS, pooling="mean"), plain.encode(ITEMS, pooling="mean"))
    assert not torch.allclose(other.encode(ITEMS, pooling="mean"), before)


@needs_library
def test_gradients_training_and_half_precision_stay_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = tiny_backbone()
    backbone.backend = "onnx"
    tokens = batch(backbone)
    assert backbone.layers.engine is not None
    monkeypatch.setattr(onnx.Engine, "run", lambda *_: pytest.fail("ONNX Runtime was asked"))
    assert backbone(tokens, "mean").requires_grad
    with torch.no_grad():
        backbone.train()(tokens, "mean")
        backbone.eval().to(torch.bfloat16)
        backbone._layers = tiny_backbone().layers
        backbone(tokens, "mean")


@needs_library
@torch.no_grad()
def test_padding_is_not_seen_and_a_row_without_padding_needs_no_mask() -> None:
    other = both()[1]
    mask = torch.tensor([[True, True, False], [True, True, True]])
    hidden = torch.randn(2, 3, 32, generator=torch.Generator().manual_seed(0))
    changed = hidden.clone()
    changed[0, 2] = 100
    assert additive(mask[1:], torch.float32) is None
    close(*(other.layers.run(state, mask)[-1][mask] for state in (hidden, changed)))
    close(other.layers.run(hidden[1:], mask[1:])[-1], other.layers.run(hidden, mask)[-1][1:])


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "ONNX" in record.message]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(logging.getLogger("condviz"), "propagate", True)
    layers._tell_once.cache_clear()
    onnx._open.cache_clear()
    return caplog


@pytest.mark.parametrize("missing", ["onnxruntime", "onnx"])
def test_without_the_library_torch_takes_over_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, fresh: pytest.LogCaptureFixture, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)  # an import fails as if it were not installed
    (plain, other), again = both(), both()[1]
    for backbone in (other, again):
        assert torch.equal(backbone.encode(ITEMS, pooling="mean"), plain.encode(ITEMS, pooling="mean"))
    (line,) = told(fresh)
    assert "torch takes over" in line
    assert missing in line


@needs_library
def test_a_library_that_computes_something_else_is_not_used(
    monkeypatch: pytest.MonkeyPatch, fresh: pytest.LogCaptureFixture
) -> None:
    run = onnx.Engine.run
    monkeypatch.setattr(
        onnx.Engine, "run", lambda self, half, *given: run(self, half, *given) + 0.01 * (half == "finish")
    )
    plain, other = both()
    assert torch.equal(other.encode(ITEMS, pooling="mean"), plain.encode(ITEMS, pooling="mean"))
    assert "differs by 0.01" in told(fresh)[0]


@needs_library
def test_layers_of_another_kind_stay_in_torch(fresh: pytest.LogCaptureFixture) -> None:
    plain, other = both()
    for backbone in (plain, other):
        backbone.model.config.hidden_act = "relu"
        for block in backbone.model.encoder.layer:
            block.intermediate.intermediate_act_fn = nn.ReLU()
    assert torch.equal(other.encode(ITEMS, pooling="mean"), plain.encode(ITEMS, pooling="mean"))
    assert len(told(fresh)) == 1
    decoder = both("qwen3")[1]
    assert decoder.encode(ITEMS, pooling="mean").shape == (len(ITEMS), 32)


def test_auto_takes_what_is_fast_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONDVIZ_BACKEND", raising=False)
    monkeypatch.setattr("condviz.encoder.pretrained.fast_in_bfloat16", lambda: False)
    monkeypatch.setattr("condviz.encoder.pretrained._capabilities", lambda: {"cpu_name": "Intel Xeon"})
    if torch.backends.mkl.is_available():
        assert choose_backend("auto", "cpu") == ("torch", "cpu", torch.float32)
    monkeypatch.setattr("condviz.encoder.pretrained._capabilities", lambda: {"cpu_name": "AMD EPYC"})
    assert choose_backend("auto", "cpu") == ("onnx", "cpu", torch.float32)
    assert choose_backend("torch", "cpu") == ("torch", "cpu", torch.float32)
    assert choose_backend("auto", "cpu", "bfloat16") == ("torch", "cpu", torch.bfloat16)
    monkeypatch.setattr("condviz.encoder.pretrained.fast_in_bfloat16", lambda: True)
    assert choose_backend("auto", "cpu") == ("torch", "cpu", torch.bfloat16)
    assert choose_backend("auto", "cpu", "float32") == ("torch", "cpu", torch.float32)
    assert choose_backend("onnx") == ("onnx", "cpu", torch.float32)
    monkeypatch.setenv("CONDVIZ_BACKEND", "onnx")
    assert choose_backend() == ("onnx", "cpu", torch.float32)
    assert choose_backend("auto", "cpu", "bfloat16") == ("torch", "cpu", torch.bfloat16)
    assert choose_backend("torch", "cpu") == ("torch", "cpu", torch.bfloat16)


@pytest.mark.parametrize(
    ("isa", "expected"), [("AVX2", False), ("avx512_core_vnni", False), ("AVX512_CORE_BF16", True)]
)
def test_what_onednn_may_not_use_is_not_there(monkeypatch: pytest.MonkeyPatch, isa: str, expected: bool) -> None:
    monkeypatch.setattr("condviz.encoder.pretrained._capabilities", lambda: {"avx512_bf16": True})
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", isa)
    assert fast_in_bfloat16() is expected


@pytest.mark.parametrize(
    ("has", "expected"),
    [
        ({"avx512_bf16": True, "cpu_name": "Intel Xeon"}, False),
        ({"avx512_bf16": True, "amx_bf16": True, "cpu_name": "Intel Xeon"}, True),
        ({"avx512_bf16": True, "cpu_name": "AMD EPYC"}, True),
        ({"cpu_name": "AMD EPYC"}, False),
    ],
)
def test_bfloat16_is_taken_where_it_is_the_faster_one(
    monkeypatch: pytest.MonkeyPatch, has: dict, expected: bool
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr("condviz.encoder.pretrained._capabilities", lambda: has)
    assert fast_in_bfloat16() is expected


def test_a_precision_in_the_environment_is_what_auto_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONDVIZ_BACKEND", raising=False)
    monkeypatch.setenv("CONDVIZ_PRECISION", "float16")
    assert choose_backend("torch", "cpu") == ("torch", "cpu", torch.float16)
    assert choose_backend("torch", "cpu", "float32") == ("torch", "cpu", torch.float32)
    assert choose_backend("auto", "cpu")[2] == torch.float16
    monkeypatch.setenv("CONDVIZ_PRECISION", "double")
    with pytest.raises(ConfigError, match=r"precision must be one of auto, float32.*got 'double'"):
        choose_backend()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("tensorrt",), "backend must be one of auto, torch, onnx, got 'tensorrt'"),
        (("onnx", "cuda"), "in float32 on the CPU, got device 'cuda'"),
        (("onnx", "cpu", "bfloat16"), "precision 'bfloat16'"),
        (("torch", "cpu", "int8"), "int8 is computed by ONNX Runtime on the CPU, got device 'cpu' and backend 'torch'"),
        (("auto", "cuda", "int8"), "got device 'cuda'"),
    ],
)
def test_what_does_not_go_together_is_refused(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        choose_backend(*given)


def test_a_wrong_name_in_the_environment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDVIZ_BACKEND", "fast")
    with pytest.raises(ConfigError, match="CONDVIZ_BACKEND must be one of auto, torch, onnx, got 'fast'"):
        choose_backend()


@needs_library
def test_backends_do_not_share_an_encoder_but_its_identity(tmp_path: object) -> None:
    folder = str(tiny_folder(tmp_path / "encoder"))
    one, other = (load_backbone(folder, device="cpu", precision="float32", backend=name) for name in ("torch", "onnx"))
    assert one is not other
    assert one.fingerprint == other.fingerprint
    assert other.layers.engine is not None
    close(one.encode(ITEMS, pooling="mean"), other.encode(ITEMS, pooling="mean"))
