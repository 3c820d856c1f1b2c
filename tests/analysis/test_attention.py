"""The pictures of the CSR paper: rows that the models compute with, read without touching them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condviz.analysis.attention import read_heads, read_pictures
from condviz.encoder.backbone import Backbone
from condviz.errors import ConfigError
from condviz.methods import CSRBi, CSRPrefix
from condviz.methods.catalog import CSRBiConfig, CSRPrefixConfig
from condviz.methods.csr import CSR, CSRConfig
from condviz.methods.routing import RoutedEncoder
from tests.tiny import SENTENCES, tiny_backbone, tiny_model

SENTENCE = SENTENCES[1]
CONDITIONS = ["the sport", "the number of animals"]
MAKERS = {
    "csr": lambda backbone: CSR(backbone, CSRConfig()),
    "csr-3": lambda backbone: CSR(backbone, CSRConfig(num_routed_layers=3)),
    "csr-bi": lambda backbone: CSRBi(backbone, CSRBiConfig()),
    "csr-prefix": lambda backbone: CSRPrefix(backbone, CSRPrefixConfig()),
}


@pytest.fixture(params=["bert", "roberta"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return tiny_backbone(request.param)


@pytest.fixture(params=MAKERS)
def model(request: pytest.FixtureRequest, backbone: Backbone) -> RoutedEncoder:
    return MAKERS[request.param](backbone).eval()


@torch.no_grad()
def plain_row(backbone: Backbone, layer: int, sentence: str) -> torch.Tensor:
    """Attention of the first token by the encoder alone: (heads, tokens)."""
    tokens = backbone.collate(backbone.tokenize([(sentence,)]))
    states = backbone.layers.run(backbone.layers.embed(tokens), tokens.mask)
    return backbone.layers.attention_row(layer, states[layer], tokens.mask, torch.tensor([0]))[0]


def test_every_row_sums_to_one(model: RoutedEncoder) -> None:
    pictures = read_pictures(model, SENTENCE, CONDITIONS)
    for rows in (pictures.without_router, pictures.router, pictures.with_router):
        assert [row.condition for row in rows] in ([], CONDITIONS)
        for row in rows:
            assert row.weights.sum() + row.condition_weights.sum() + row.hidden_mass == pytest.approx(1, abs=1e-5)
            assert len(row.weights) == len(row.words) == len(SENTENCE.split())


@pytest.mark.parametrize("routed", [1, 3])
def test_figure_5_of_csr_is_the_plain_encoder_and_blind_to_the_condition(backbone: Backbone, routed: int) -> None:
    model = CSR(backbone, CSRConfig(num_routed_layers=routed)).eval()
    expected = plain_row(backbone, 2, SENTENCE).mean(0)[1:-1].numpy()
    for row in read_pictures(model, SENTENCE, CONDITIONS).without_router:
        np.testing.assert_allclose(row.weights, expected, atol=1e-6)
        assert not row.condition_weights.any()


def test_figure_6_is_the_router(model: RoutedEncoder) -> None:
    rows = read_pictures(model, SENTENCE, CONDITIONS).router
    if isinstance(model, CSRPrefix):
        assert rows == ()
        return
    expected = model.token_weights(SENTENCE, CONDITIONS).weights[-1]
    np.testing.assert_array_equal(np.stack([row.weights for row in rows]), expected)


def test_figure_7_of_csr_prefix_is_its_router(backbone: Backbone) -> None:
    model = CSRPrefix(backbone, CSRPrefixConfig()).eval()
    found = model.token_weights(SENTENCE, CONDITIONS)
    rows = read_pictures(model, SENTENCE, CONDITIONS).with_router
    np.testing.assert_allclose(np.stack([row.weights for row in rows]), found.weights[-1], atol=1e-6)
    assert all(row.condition_weights.all() for row in rows)


def test_figure_7_varies_only_where_an_earlier_layer_is_routed(model: RoutedEncoder) -> None:
    pictures = read_pictures(model, SENTENCE, CONDITIONS)
    first, second = (row.weights for row in pictures.with_router)
    assert pictures.varies == (not np.allclose(first, second, atol=1e-7))
    assert pictures.varies == (not np.allclose(pictures.without_router[0].weights, first, atol=1e-7)) or isinstance(
        model, CSRPrefix
    )


def test_heads_average_to_the_pictures(model: RoutedEncoder) -> None:
    heads = read_heads(model, SENTENCE, CONDITIONS[0])
    assert heads.sentence.shape == (3, 4, len(SENTENCE.split()))
    row = read_pictures(model, SENTENCE, CONDITIONS[:1]).without_router[0]
    np.testing.assert_allclose(heads.sentence[-1].mean(axis=0), row.weights, atol=1e-6)
    assert (heads.from_condition is None) == isinstance(model, CSRPrefix)


@torch.no_grad()
def test_the_condition_meets_the_sentence_in_every_layer_and_head(backbone: Backbone) -> None:
    model = CSR(backbone, CSRConfig()).eval()
    found = read_heads(model, SENTENCE, CONDITIONS[0]).from_condition
    layers = backbone.layers
    sentence, condition = (backbone.collate(backbone.tokenize([(text,)])) for text in (SENTENCE, CONDITIONS[0]))
    for layer in range(3):
        state = layers.run(layers.embed(sentence), sentence.mask)[layer]
        other = layers.run(layers.embed(condition), condition.mask)[layer]
        query = layers.query(layer, other[:, 0]).view(4, 8)
        keys = layers.key(layer, state)[0].view(-1, 4, 8)
        expected = torch.einsum("he,lhe->hl", query, keys).div(8**0.5).softmax(-1)[:, 1:-1]
        np.testing.assert_allclose(found[layer], expected.numpy(), atol=1e-5)


def test_looking_inside_leaves_the_model_as_it_was(model: RoutedEncoder) -> None:
    layers, settings = model.backbone.layers, model.method_config
    before = model.encode([SENTENCE], CONDITIONS[:1])
    read_pictures(model, SENTENCE, CONDITIONS)
    read_heads(model, SENTENCE, CONDITIONS[0])
    assert model.backbone.layers is layers
    assert model.method_config is settings
    model.backbone.cache.clear()
    np.testing.assert_array_equal(model.encode([SENTENCE], CONDITIONS[:1]), before)


def test_without_a_router_there_is_no_picture(backbone: Backbone) -> None:
    plain = CSR(backbone, CSRConfig(num_routed_layers=0)).eval()
    with pytest.raises(ConfigError, match="has no router"):
        read_pictures(plain, SENTENCE, CONDITIONS)
    with pytest.raises(ConfigError, match="has no router"):
        read_heads(plain, SENTENCE, CONDITIONS[0])


@pytest.mark.parametrize("kind", ["mistral", "mpnet"])
def test_of_other_types_of_encoder_only_the_router_s_weights_are_shown(kind: str) -> None:
    model = tiny_model("csr", kind)
    assert model.token_weights(SENTENCE, CONDITIONS).weights.sum() > 0
    with pytest.raises(ConfigError, match=f"inside a '{kind}' model cannot be read, only the router"):
        read_pictures(model, SENTENCE, CONDITIONS)
