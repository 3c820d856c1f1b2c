"""Running an encoder layer by layer, against the library's own forward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from condviz.encoder.backbone import Backbone
from condviz.encoder.tokens import Tokens
from condviz.errors import ConfigError
from condviz.methods import METHODS
from tests.tiny import SENTENCES, tiny_backbone

SERVED = ["bert", "roberta", "xlm-roberta"]


@pytest.fixture(params=SERVED)
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return tiny_backbone(request.param)


def batch(backbone: Backbone) -> Tokens:
    return backbone.collate(backbone.tokenize([(text,) for text in SENTENCES]))


def library(backbone: Backbone, tokens: Tokens) -> object:
    backbone.model.set_attn_implementation("eager")
    return backbone.model(
        input_ids=tokens.ids, attention_mask=tokens.mask.long(), output_hidden_states=True, output_attentions=True
    )


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_states_of_every_layer_are_the_library_s(backbone: Backbone) -> None:
    tokens, layers = batch(backbone), backbone.layers
    states = layers.run(layers.embed(tokens), tokens.mask)
    expected = library(backbone, tokens).hidden_states
    assert len(states) == len(expected) == layers.num_layers + 1
    for found, other in zip(states, expected, strict=True):
        close(found[tokens.mask], other[tokens.mask])


@torch.no_grad()
@pytest.mark.parametrize("stop", range(4))
def test_stopping_and_going_on_is_one_run(backbone: Backbone, stop: int) -> None:
    tokens, layers = batch(backbone), backbone.layers
    whole = layers.run(layers.embed(tokens), tokens.mask)
    below = layers.run(layers.embed(tokens), tokens.mask, stop=stop)
    above = layers.run(below[-1], tokens.mask, start=stop)
    assert (len(below), len(above)) == (stop + 1, 4 - stop)
    for found, other in zip([*below, *above[1:]], whole, strict=True):
        torch.testing.assert_close(found, other, rtol=0, atol=0)


@torch.no_grad()
def test_attention_is_the_library_s_and_sums_to_one(backbone: Backbone) -> None:
    tokens, layers = batch(backbone), backbone.layers
    states, expected = layers.run(layers.embed(tokens), tokens.mask), library(backbone, tokens).attentions
    for layer, other in enumerate(expected):
        found = layers.attention(layer, states[layer], tokens.mask)
        close(found.sum(dim=-1), torch.ones(found.shape[:-1]))
        close(found.transpose(1, 2)[tokens.mask], other.transpose(1, 2)[tokens.mask])
        assert (found.masked_select(~tokens.mask[:, None, None]) == 0).all()
        close(layers.attention(layer, states[layer], tokens.mask, rows=slice(1, 2)), found[:, :, 1:2])


@torch.no_grad()
def test_attention_output_is_the_probabilities_times_values(backbone: Backbone) -> None:
    tokens, layers = batch(backbone), backbone.layers
    hidden = layers.embed(tokens)
    values = backbone.model.encoder.layer[0].attention.self.value(hidden).unflatten(-1, (4, 8)).transpose(1, 2)
    expected = (layers.attention(0, hidden, tokens.mask) @ values).transpose(1, 2).flatten(2)
    attended, keys = layers.attend(0, hidden, tokens.mask)
    close(attended, expected)
    close(keys, layers.key(0, hidden))


@torch.no_grad()
def test_a_factor_of_one_changes_nothing_and_a_prefix_of_none_neither(backbone: Backbone) -> None:
    tokens, layers = batch(backbone), backbone.layers
    plain = layers.run(layers.embed(tokens), tokens.mask)[-1]
    ones = layers.run(layers.embed(tokens), tokens.mask, reweigh=lambda layer, hidden, keys: torch.ones(keys.shape[:2]))
    close(ones[-1], plain)
    empty = torch.zeros(len(tokens), 0, layers.hidden_size)
    close(layers.run(layers.embed(tokens), tokens.mask, prefix=empty)[-1], plain)
    zero = layers.run(
        layers.embed(tokens), tokens.mask, reweigh=lambda layer, hidden, keys: torch.zeros(keys.shape[:2])
    )
    assert not torch.allclose(zero[-1], plain)


@pytest.mark.parametrize("kind", ["mpnet", "deberta-v2", "modernbert", "qwen2", "qwen3", "mistral"])
def test_other_types_are_refused_with_the_way_out(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"a '{kind}' model cannot be run one by one.*bert, .*roberta"):
        _ = tiny_backbone(kind).layers
    for name in ("csr", "csr-bi", "csr-prefix"):
        with pytest.raises(ConfigError, match="method without a router"):
            METHODS[name](tiny_backbone(kind), METHODS[name].config_cls())
