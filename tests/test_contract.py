"""What every method must keep. A method that is added to METHODS is tested here at once, in every listed setting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from condviz.encoder.backbone import Backbone
from condviz.encoder.cache import EmbeddingCache
from condviz.encoder.pretrained import load_backbone
from condviz.errors import DataError
from condviz.methods import METHODS, ConditionalEncoder, ConditionalScorer, RoutedEncoder, SeparableEncoder
from condviz.models import checkpoints
from tests.tiny import CONDITIONS, SENTENCES, for_visitors, tiny_backbone, tiny_folder

SETTINGS: dict[str, list[dict]] = {
    "unconditional": [{}],
    "cross-encoder": [{}, {"transform": True, "pooling": "mean"}],
    "bi-encoder": [{}, {"transform": True, "pooling": "top-2"}, {"pooling": "first-last"}],
    "tri-encoder": [{}, {"composition": "concat", "transform": True, "pooling": "mean"}],
    "hyper-cl": [
        {"rank": 4},
        {"rank": 4, "generator_rank": 3},
        {"rank": None, "transform": True, "pooling": "mean"},
        {"condition_transform": False},
    ],
    "csr": [
        {},
        {"num_routed_layers": 3, "query_layer": "same"},
        {"router": "multihead", "num_routed_layers": 2},
        {"router": "hidden", "num_routed_layers": 2, "pooling": "cls"},
        {"router": "random"},
        {"weighting": "only"},
    ],
    "csr-bi": [{"num_routed_layers": 2}, {"pooling": "mean"}],
    "csr-prefix": [{}, {"num_routed_layers": 2, "pooling": "mean"}],
    "case": [
        {},
        {"prompt": "sent", "order": "condition-first", "pooling": "cls"},
        {"subtract": False, "pool_over": "all"},
        {"alone": "empty"},
        {"projection": "linear", "projection_dim": 8},
        {"projection": "mlp", "projection_dim": 8, "hidden_dim": 8},
        {"projection": "pca", "projection_dim": 2},
        {"projection": "ica", "projection_dim": 2},
    ],
}
BLIND = {"unconditional"}
"""The control: the condition must change nothing."""
CASES = [(name, setting) for name in METHODS for setting in SETTINGS.get(name, [{}])]
ON = [(*case, "bert") for case in CASES]
OTHERS = [(name, SETTINGS.get(name, [{}])[0], kind) for name in METHODS for kind in ("roberta", "mpnet")]
on_every_type_of_encoder = pytest.mark.parametrize(
    "method", [*ON, *OTHERS], ids=lambda on: f"{on[0]} {on[1]} {on[2]}", indirect=True, scope="module"
)
"""Every setting on one type of encoder, every method on all: the others part texts and count places differently."""
PAIRS = (SENTENCES, SENTENCES[::-1], CONDITIONS)


def build(name: str, setting: dict, backbone: Backbone) -> ConditionalScorer:
    """Make a method with random head weights."""
    torch.manual_seed(1)
    cls = METHODS[name]
    if name == "hyper-cl" and "rank" not in setting:
        setting = {**setting, "rank": 4}
    method = cls(backbone, cls.config_cls(**setting)).eval()
    if setting.get("projection") in ("pca", "ica"):
        method.fit_projection(SENTENCES * 4, [condition for condition in CONDITIONS for _ in SENTENCES])
    return method


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]} {case[1]}")
def case(request: pytest.FixtureRequest) -> tuple[str, dict]:
    return request.param


@pytest.fixture(scope="module", params=ON, ids=lambda on: f"{on[0]} {on[1]} {on[2]}")
def method(request: pytest.FixtureRequest) -> ConditionalScorer:
    name, setting, kind = request.param
    return build(name, setting, tiny_backbone(kind))


def encoder(method: ConditionalScorer) -> ConditionalEncoder:
    if not isinstance(method, ConditionalEncoder):
        pytest.skip("has no embeddings")
    return method


def test_every_setting_belongs_to_a_method() -> None:
    assert set(SETTINGS) == set(METHODS)


@on_every_type_of_encoder
def test_scores_have_shape_type_and_range(method: ConditionalScorer) -> None:
    scores = method.score(*PAIRS)
    assert scores.shape == (len(SENTENCES),)
    assert scores.dtype == np.float32
    low, high = method.score_range
    assert ((scores >= low) & (scores <= high)).all()
    assert method.score_unconditional(*PAIRS[:2]).shape == (len(SENTENCES),)
    assert method.score([], [], []).shape == (0,)


def test_embeddings_have_shape_and_type(method: ConditionalScorer) -> None:
    vectors = encoder(method).encode(SENTENCES, CONDITIONS)
    assert vectors.dtype == np.float32
    assert vectors.shape[0] == len(SENTENCES)
    assert method.encode_sentences(SENTENCES).shape == (len(SENTENCES), method.backbone.hidden_size)
    assert np.isfinite(vectors).all()


@on_every_type_of_encoder
def test_neither_padding_nor_order_nor_neighbours_change_a_row(method: ConditionalScorer) -> None:
    scores, order = method.score(*PAIRS), [2, 0, 3, 1]
    method.backbone.cache.clear()
    shuffled = method.score(*([column[i] for i in order] for column in PAIRS))
    np.testing.assert_allclose(shuffled, scores[order], atol=1e-5)
    for i in (1, 3):  # with a long text and with short ones
        method.backbone.cache.clear()
        np.testing.assert_allclose(method.score(*([column[i]] for column in PAIRS))[0], scores[i], atol=1e-5)


def test_cache_changes_nothing(case: tuple[str, dict]) -> None:
    with_cache, without = (build(*case, tiny_backbone()) for _ in range(2))
    without.backbone.cache = EmbeddingCache(max_bytes=0)
    first, second, direct = with_cache.score(*PAIRS), with_cache.score(*PAIRS), without.score(*PAIRS)
    assert with_cache.backbone.cache.hits > 0
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, direct, atol=1e-5)


def test_onnx_runtime_gives_the_scores_of_torch(case: tuple[str, dict]) -> None:
    pytest.importorskip("onnxruntime")
    plain, other = (build(*case, tiny_backbone()) for _ in range(2))
    other.backbone.backend = "onnx"
    np.testing.assert_allclose(other.eval().score(*PAIRS), plain.score(*PAIRS), rtol=0, atol=1e-5)
    assert other.backbone.layers.engine is not None


def test_visitors_at_once_get_the_scores_of_a_single_request(case: tuple[str, dict]) -> None:
    together, alone = (build(*case, tiny_backbone()) for _ in range(2))
    rows = list(zip(*PAIRS, strict=True))
    together.backbone.cache.clear()  # of what a projection was fitted to
    found = for_visitors([lambda row=row: together.score(*([text] for text in row)) for row in rows])
    np.testing.assert_allclose(np.concatenate(found), alone.score(*PAIRS), rtol=0, atol=1e-6)


def test_condition_changes_the_scores(method: ConditionalScorer) -> None:
    one, other = (method.score(SENTENCES, SENTENCES[::-1], [text] * 4) for text in ("the sport", "the mood"))
    if method.name in BLIND:
        np.testing.assert_array_equal(one, other)
    else:
        assert np.abs(one - other).max() > 1e-5


def test_scores_are_symmetric(method: ConditionalScorer) -> None:
    if method.kind == "cross":
        pytest.skip("reads the sentences in their order")
    np.testing.assert_allclose(method.score(PAIRS[1], PAIRS[0], CONDITIONS), method.score(*PAIRS), atol=1e-5)


def test_a_sentence_is_like_itself(method: ConditionalScorer) -> None:
    encoder(method)
    np.testing.assert_allclose(method.score(SENTENCES, SENTENCES, CONDITIONS), 1, atol=1e-5)


def test_grid_holds_what_single_calls_give(method: ConditionalScorer) -> None:
    conditions = CONDITIONS[:3]
    grid = encoder(method).encode_grid(SENTENCES, conditions)
    assert grid.shape[:2] == (3, 4)
    for i, condition in enumerate(conditions):
        np.testing.assert_allclose(grid[i], method.encode(SENTENCES, [condition] * 4), atol=1e-4)


def test_separable_methods_compose_what_they_encode(method: ConditionalScorer) -> None:
    if not isinstance(method, SeparableEncoder):
        pytest.skip("encodes sentence and condition together")
    sentences, conditions = method.encode_sentences(SENTENCES), method.encode_conditions(CONDITIONS)
    encoded = method.encode(SENTENCES, CONDITIONS)
    np.testing.assert_allclose(method.compose(sentences, conditions), encoded, atol=1e-5)
    index = np.arange(len(SENTENCES))[::-1]
    np.testing.assert_allclose(method.compose(sentences, conditions[::-1], index), encoded, atol=1e-5)
    tensors = method.encode_sentences(SENTENCES, convert_to_tensor=True), torch.from_numpy(conditions)
    np.testing.assert_allclose(method.compose(*tensors).detach(), encoded, atol=1e-5)


@on_every_type_of_encoder
def test_tensor_path_gives_the_text_path(method: ConditionalScorer) -> None:
    items = list(zip(SENTENCES, CONDITIONS, strict=True))
    rows = encoder(method).tokenize(items)
    with torch.no_grad():
        vectors = method.embed(*(method.backbone.collate(parts) for parts in zip(*rows, strict=True)))
    # Vectors of Hyper-CL have elements of ten and more, where 1e-5 is the precision of a single number.
    np.testing.assert_allclose(vectors.numpy(), method.encode(SENTENCES, CONDITIONS), rtol=1e-5, atol=1e-5)


def test_gradient_reaches_every_parameter(case: tuple[str, dict]) -> None:
    method = build(*case, tiny_backbone())
    if isinstance(method, ConditionalEncoder):
        rows = method.tokenize(list(zip(SENTENCES, CONDITIONS, strict=True)))
        output = method.embed(*(method.backbone.collate(parts) for parts in zip(*rows, strict=True)))
    else:
        rows = method.tokenize(list(zip(*PAIRS, strict=True)))
        output = method.predict(*(method.backbone.collate(parts) for parts in zip(*rows, strict=True)))
    (output * torch.randn(output.shape)).sum().backward()
    unreached = {name for name, value in method.named_parameters() if value.grad is None or not value.grad.any()}
    # The segment embedding of sequences with one text only, and what the softmax of a key cannot depend on.
    allowed = {name for name in unreached if name.endswith(("key.bias", "token_type_embeddings.weight"))}
    if method.name == "case" and method.method_config.subtract:
        allowed |= {name for name in unreached if name.endswith("2.output.LayerNorm.bias")}  # cancels in e(c|s) - e(c)
    assert unreached == allowed


def test_nothing_keeps_a_gradient_in_text_calls(method: ConditionalScorer) -> None:
    method.score(*PAIRS)
    assert all(value.grad is None for value in method.parameters())


def test_saved_and_loaded_it_scores_the_same(case: tuple[str, dict], tmp_path: Path) -> None:
    backbone = load_backbone(str(tiny_folder(tmp_path / "encoder")), device="cpu", precision="float32")
    method = build(*case, backbone)
    checkpoints.save(method, tmp_path / "model", training={"seed": 1}, metrics={"spearman": 50.0})
    loaded = checkpoints.load(tmp_path / "model", device="cpu", precision="float32")
    assert loaded.backbone is backbone  # nothing was trained in it: one encoder in memory
    assert loaded.fingerprint == method.fingerprint
    np.testing.assert_array_equal(loaded.score(*PAIRS), method.score(*PAIRS))


def test_trained_encoder_is_saved_too(case: tuple[str, dict], tmp_path: Path) -> None:
    base = load_backbone(str(tiny_folder(tmp_path / "encoder")), device="cpu", precision="float32")
    weights = base.model.state_dict()
    changed = {name: value + 0.1 for name, value in weights.items() if "layer.2" in name}
    method = build(*case, checkpoints.with_weights(base, changed))
    checkpoints.save(method, tmp_path / "model")
    loaded = checkpoints.load(tmp_path / "model", device="cpu", precision="float32")
    assert loaded.backbone is not base
    assert loaded.backbone.model.embeddings.word_embeddings.weight is base.model.embeddings.word_embeddings.weight
    np.testing.assert_allclose(loaded.score(*PAIRS), method.score(*PAIRS), atol=1e-6)
    assert not np.allclose(loaded.score_unconditional(*PAIRS[:2]), build(*case, base).score_unconditional(*PAIRS[:2]))


@on_every_type_of_encoder
def test_router_weights_are_shares_of_one(method: ConditionalScorer) -> None:
    if not isinstance(method, RoutedEncoder):
        pytest.skip("has no router")
    result = method.token_weights(SENTENCES[1], CONDITIONS[:3])
    assert [word.text for word in result.words] == SENTENCES[1].split()
    assert result.weights.shape == (len(result.layers), 3, len(result.words))
    assert (result.weights >= 0).all()
    total = result.token_weights.sum(axis=-1)
    if method.name == "csr-prefix":  # the rest lies on the condition
        assert (total < 1).all()
    else:
        np.testing.assert_allclose(total, 1, atol=1e-5)
    np.testing.assert_allclose(result.weights.sum(axis=-1) + result.hidden_mass, 1, atol=1e-5)


def test_rows_that_do_not_match_are_refused(method: ConditionalScorer) -> None:
    with pytest.raises(DataError, match="4 sentences1, 4 sentences2, 3 conditions"):
        method.score(SENTENCES, SENTENCES, CONDITIONS[:3])
    with pytest.raises(DataError, match="lists of texts"):
        method.score("abcd", "abcd", "abcd")
