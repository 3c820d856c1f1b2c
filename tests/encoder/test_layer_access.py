"""Running an encoder layer by layer, against the library's own forward."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from condviz.encoder.backbone import Backbone
from condviz.encoder.layers import LayerAccess
from condviz.encoder.pretrained import load_backbone
from condviz.encoder.tokens import Tokens
from condviz.errors import ConfigError
from tests.tiny import SENTENCES, tiny_backbone, tiny_nv_embed

LIKE_BERT = ["bert", "roberta", "xlm-roberta"]
OTHERS = ["mpnet", "deberta-v2", "modernbert", "llama", "qwen2", "qwen3", "mistral"]


@pytest.fixture(params=LIKE_BERT)
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return tiny_backbone(request.param)


@pytest.fixture(params=[*LIKE_BERT, *OTHERS])
def any_backbone(request: pytest.FixtureRequest) -> Backbone:
    return tiny_backbone(request.param)


def batch(backbone: Backbone) -> Tokens:
    return backbone.collate(backbone.tokenize([(text,) for text in SENTENCES]))


def library(backbone: Backbone, tokens: Tokens, **options: bool) -> object:
    return backbone.model(input_ids=tokens.ids, attention_mask=tokens.mask.long(), output_hidden_states=True, **options)


def every_row(layers: LayerAccess, layer: int, hidden: Tensor, mask: Tensor) -> Tensor:
    """Attention probabilities of all tokens, (b, heads, L, L)."""
    places = [torch.full((len(hidden),), place) for place in range(hidden.shape[1])]
    return torch.stack([layers.attention_row(layer, hidden, mask, place) for place in places], dim=2)


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_states_of_every_layer_are_the_library_s(any_backbone: Backbone) -> None:
    tokens, layers = batch(any_backbone), any_backbone.layers
    states = layers.run(layers.embed(tokens), tokens.mask)
    expected = library(any_backbone, tokens).hidden_states
    assert len(states) == len(expected) == layers.num_layers + 1
    for found, other in zip(states, expected, strict=True):
        close(found[tokens.mask], other[tokens.mask])


@torch.no_grad()
@pytest.mark.parametrize("stop", range(4))
def test_stopping_and_going_on_is_one_run(any_backbone: Backbone, stop: int) -> None:
    tokens, layers = batch(any_backbone), any_backbone.layers
    whole = layers.run(layers.embed(tokens), tokens.mask)
    below = layers.run(layers.embed(tokens), tokens.mask, stop=stop)
    above = layers.run(below[-1], tokens.mask, start=stop)
    assert (len(below), len(above)) == (stop + 1, 4 - stop)
    for found, other in zip([*below, *above[1:]], whole, strict=True):
        torch.testing.assert_close(found, other, rtol=0, atol=0)


@torch.no_grad()
def test_attention_is_the_library_s_and_sums_to_one(any_backbone: Backbone) -> None:
    backbone, tokens, layers = any_backbone, batch(any_backbone), any_backbone.layers
    backbone.model.set_attn_implementation("eager")
    expected = library(backbone, tokens, output_attentions=True).attentions
    states = layers.run(layers.embed(tokens), tokens.mask)
    for layer, other in enumerate(expected):
        found = every_row(layers, layer, states[layer], tokens.mask)
        close(found.sum(dim=-1), torch.ones(found.shape[:-1]))
        close(found.transpose(1, 2)[tokens.mask], other.transpose(1, 2)[tokens.mask])
        unseen = ~tokens.mask[tokens.mask.nonzero()[:, 0]]
        assert (found.transpose(1, 2)[tokens.mask].mean(dim=1)[unseen] == 0).all()
        places = torch.arange(len(tokens)) % 3
        one_each = layers.attention_row(layer, states[layer], tokens.mask, places)
        close(one_each, found[torch.arange(len(tokens)), :, places])


@torch.no_grad()
def test_attention_output_is_the_probabilities_times_values(backbone: Backbone) -> None:
    tokens, layers = batch(backbone), backbone.layers
    hidden = layers.embed(tokens)
    values = backbone.model.encoder.layer[0].attention.self.value(hidden).unflatten(-1, (4, 8)).transpose(1, 2)
    expected = (every_row(layers, 0, hidden, tokens.mask) @ values).transpose(1, 2).flatten(2)
    close(layers.attend(0, hidden, tokens.mask), expected)


@torch.no_grad()
def test_a_factor_of_one_changes_nothing_and_a_prefix_of_none_neither(backbone: Backbone) -> None:
    tokens, layers = batch(backbone), backbone.layers
    plain = layers.run(layers.embed(tokens), tokens.mask)[-1]
    ones = layers.run(layers.embed(tokens), tokens.mask, reweigh=lambda layer, hidden: torch.ones(hidden.shape[:2]))
    close(ones[-1], plain)
    empty = torch.zeros(len(tokens), 0, plain.shape[-1])
    close(layers.run(layers.embed(tokens), tokens.mask, prefix=empty)[-1], plain)
    zero = layers.run(layers.embed(tokens), tokens.mask, reweigh=lambda layer, hidden: torch.zeros(hidden.shape[:2]))
    assert not torch.allclose(zero[-1], plain)


W_O = {"mpnet": "attention.attn.o", "deberta-v2": "attention.output.dense", "modernbert": "attn.Wo"}


@torch.no_grad()
@pytest.mark.parametrize("kind", OTHERS)
def test_a_factor_multiplies_what_enters_the_output_projection(kind: str) -> None:
    backbone = tiny_backbone(kind)
    tokens, layers = batch(backbone), backbone.layers
    factors = 1 + torch.rand(tokens.ids.shape, generator=torch.Generator().manual_seed(0))
    found = layers.run(layers.embed(tokens), tokens.mask, reweigh=lambda *_: factors)
    hooks = [
        block.get_submodule(W_O.get(kind, "self_attn.o_proj")).register_forward_pre_hook(
            lambda _, inputs: (inputs[0] * factors[..., None],)
        )
        for block in layers.blocks
    ]
    expected = library(backbone, tokens).last_hidden_state
    for hook in hooks:
        hook.remove()
    close(found[-1][tokens.mask], expected[tokens.mask])
    assert not torch.allclose(expected[tokens.mask], library(backbone, tokens).last_hidden_state[tokens.mask])


@torch.no_grad()
@pytest.mark.parametrize("kind", OTHERS)
def test_there_is_a_key_for_each_head_of_the_query(kind: str) -> None:
    backbone = tiny_backbone(kind)
    tokens, layers = batch(backbone), backbone.layers
    hidden = layers.embed(tokens)
    assert layers.attend(1, hidden, tokens.mask).shape == hidden.shape
    assert layers.key(1, hidden).shape == layers.query(1, hidden).shape == (*tokens.ids.shape, layers.num_heads * 8)


@torch.no_grad()
def test_a_text_is_read_where_all_of_it_is_seen() -> None:
    for kind in ("bert", "modernbert", "mistral"):
        backbone = tiny_backbone(kind)
        tokens = batch(backbone)
        state = backbone.states(tokens)[-1]
        place = tokens.mask.sum(dim=1) - 1 if kind == "mistral" else torch.zeros(len(tokens), dtype=torch.long)
        close(backbone.layers.mark(state, tokens.mask), state[torch.arange(len(tokens)), place])


@torch.no_grad()
def test_a_decoder_that_sees_both_ways_does_so_layer_by_layer(tmp_path: Path) -> None:
    backbone = load_backbone(str(tiny_nv_embed(tmp_path / "NV-Embed-v2")), device="cpu", precision="float32")
    tokens, layers = batch(backbone), backbone.layers
    found = layers.run(layers.embed(tokens), tokens.mask)[-1]
    close(found[tokens.mask], backbone.states(tokens, all_layers=False)[-1][tokens.mask])
    close(layers.mark(found, tokens.mask), found[:, 0])


@torch.no_grad()
def test_padding_between_two_texts_is_no_distance(any_backbone: Backbone) -> None:
    layers, first, second = any_backbone.layers, batch(any_backbone), batch(any_backbone)
    second = replace(second, ids=second.ids.flip(0), mask=second.mask.flip(0))
    lengths = first.mask.sum(dim=1, keepdim=True)
    positions = torch.cat([first.counted_positions(), lengths + second.counted_positions()], dim=1)
    mask = torch.cat([first.mask, second.mask], dim=1)
    joint = Tokens(torch.cat([first.ids, second.ids], dim=1), mask, positions=positions)
    layout = layers.lay_out(mask, positions)
    found = layers.run(layers.embed(joint), layout)[-1]
    for row, seen in enumerate(mask):
        alone = Tokens(joint.ids[row : row + 1, seen], seen[seen][None])
        close(found[row, seen], library(any_backbone, alone).last_hidden_state[0])


@torch.no_grad()
def test_a_prefix_stands_in_front(any_backbone: Backbone) -> None:
    tokens, layers = batch(any_backbone), any_backbone.layers
    hidden = layers.run(layers.embed(tokens), tokens.mask, stop=1)[-1]
    layout = layers.lay_out(tokens.mask, tokens.counted_positions())
    attended = layers.attend(1, hidden[:, 2:], layout, prefix=hidden[:, :2])
    real = tokens.mask[:, 2:]
    close(attended[real], layers.attend(1, hidden, tokens.mask)[:, 2:][real])
    first = torch.zeros(len(tokens), dtype=torch.long)
    row = layers.attention_row(1, hidden[:, 2:], layout, first, prefix=hidden[:, :2])
    close(row, layers.attention_row(1, hidden, tokens.mask, first + 2))


@torch.no_grad()
@pytest.mark.parametrize("kind", ["modernbert", "mistral"])
def test_a_window_reaches_as_far_as_the_library_s(kind: str) -> None:
    backbone = tiny_backbone(kind)
    tokens = batch(backbone)
    wide = backbone.states(tokens)[-1]
    backbone.model.config.sliding_window = 3
    layers = backbone.layers
    found = layers.run(layers.embed(tokens), tokens.mask)[-1]
    close(found[tokens.mask], library(backbone, tokens).last_hidden_state[tokens.mask])
    assert not torch.allclose(found[tokens.mask], wide[tokens.mask])


def test_unknown_types_and_convolutions_are_refused_with_the_way_out() -> None:
    backbone = tiny_backbone("bert")
    backbone.model.config.model_type = "magic"
    with pytest.raises(ConfigError, match=r"a 'magic' model cannot be run one by one.*bert, .*without a router"):
        _ = backbone.layers
    backbone = tiny_backbone("deberta-v2")
    backbone.model.encoder.conv = torch.nn.Identity()
    with pytest.raises(ConfigError, match="beside a convolution"):
        _ = backbone.layers
