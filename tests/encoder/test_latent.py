"""NV-Embed's latent attention against torch's own multi-head attention, and its layout on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

import condviz
from condviz.encoder.pretrained import LATENT, load_backbone
from condviz.errors import CheckpointError, ConfigError
from tests.tiny import CONDITIONS, SENTENCES, edit_json, tiny_backbone, tiny_nv_embed

OPTIONS = {"device": "cpu", "precision": "float32"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_nv_embed(tmp_path / "NV-Embed-v2")


def reference(weights: dict[str, Tensor], states: Tensor) -> Tensor:
    """Compute the published block with `nn.MultiheadAttention`, for states (b, L, d) without padding: (b, d)."""
    of = {key.removeprefix(LATENT): value for key, value in weights.items() if key.startswith(LATENT)}
    first, second = "cross_attend_blocks.0.", "cross_attend_blocks.1."

    def norm(name: str, rows: Tensor) -> Tensor:
        return functional.layer_norm(rows, (rows.shape[-1],), of[f"{name}.weight"], of[f"{name}.bias"])

    attention = nn.MultiheadAttention(states.shape[-1], 2, bias=False, batch_first=True)
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.cat([of[f"{first}fn.to_q.weight"], of[f"{first}fn.to_kv.weight"]]))
        attention.out_proj.weight.copy_(of[f"{first}fn.to_out.weight"])
        latents = norm(f"{first}norm_context", of["latents"]).expand(len(states), -1, -1)
        states = states + attention(norm(f"{first}norm", states), latents, latents)[0]
        wide = norm(f"{second}norm", states) @ of[f"{second}fn.net.0.weight"].T + of[f"{second}fn.net.0.bias"]
        content, gate = wide.chunk(2, dim=-1)
        inner = content * functional.gelu(gate)
        states = states + inner @ of[f"{second}fn.net.2.weight"].T + of[f"{second}fn.net.2.bias"]
    return states.mean(dim=1)


def test_it_is_the_published_block_over_a_decoder_that_sees_both_ways(folder: Path) -> None:
    backbone, weights = load_backbone(str(folder), **OPTIONS), load_file(folder / "model.safetensors")
    assert (backbone.pooling, backbone.bidirectional, backbone.instruction is not None) == ("latent", True, True)
    vectors = backbone.encode([(text,) for text in SENTENCES], pooling="latent")
    for text, vector in zip(SENTENCES, vectors, strict=True):
        with torch.no_grad():
            states = backbone.states(backbone.collate(backbone.tokenize([(text,)])))[-1]
        torch.testing.assert_close(vector, reference(weights, states)[0], rtol=0, atol=1e-5)
    assert not torch.allclose(vectors, backbone.encode([(text,) for text in SENTENCES], pooling="mean"), atol=0.1)


def test_case_reads_with_it(folder: Path) -> None:
    model = condviz.load("case", backbone=str(folder), **OPTIONS)
    assert model.method_config.pooling == "latent"
    scores = model.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    alone = model.score(SENTENCES[:1], SENTENCES[-1:], CONDITIONS[:1])
    np.testing.assert_allclose(scores[:1], alone, atol=1e-5)  # padding changes nothing


def test_its_weights_are_part_of_the_identity(folder: Path) -> None:
    backbone = load_backbone(str(folder), **OPTIONS, shared=False)
    backbone.digest = ""
    before = backbone.weights_hash
    with torch.no_grad():
        backbone.latent.latents += 1
    backbone._hash = None
    assert backbone.weights_hash != before


def test_what_is_damaged_or_has_none_is_said(folder: Path) -> None:
    with pytest.raises(ConfigError, match="tiny bert has no latent attention"):
        tiny_backbone().encode([("a cat",)], pooling="latent")
    weights = load_file(folder / "model.safetensors")
    del weights[f"{LATENT}latents"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lacks part of the latent attention.*latents"):
        load_backbone(str(folder), **OPTIONS)
    edit_json(folder / "config.json", latent_attention_config=None)
    with pytest.raises(CheckpointError, match=r"NV-Embed without 'latent_attention_config'"):
        load_backbone(str(folder), **OPTIONS)
