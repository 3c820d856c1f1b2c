"""CASE: prompts, orders, which tokens are pooled, subtraction and projections."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA, FastICA

from condviz.encoder.pretrained import E5_INSTRUCTION, load_backbone
from condviz.errors import ConfigError, DataError
from condviz.methods.case import CASE, INSTRUCTIONS, UNCONDITIONAL, CASEConfig
from tests.tiny import CONDITIONS, SENTENCES, WORDS, encoded_rows, tiny_backbone, tiny_folder

SENTENCE, CONDITION = "a man rides a bike", "the mood"


def make(kind: str = "bert", **settings: object) -> CASE:
    torch.manual_seed(1)
    backbone = tiny_backbone(kind)
    if kind == "qwen2":
        backbone.tokenizer.model_max_length, backbone.instruction = 66, E5_INSTRUCTION
    return CASE(backbone, CASEConfig(**settings)).eval()


def words(method: CASE, text: str) -> list[int]:
    return method.backbone.tokenizer(text, add_special_tokens=False).input_ids


def pooled_ids(row: object) -> list[int]:
    return [i for i, used in zip(row.ids, row.pooled, strict=True) if used]


@pytest.mark.parametrize(
    ("prompt", "order"), [*itertools.product(["cond", "sent"], ["sentence-first", "condition-first"])]
)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_masked_models_pool_over_the_encoded_text_in_both_orders(kind: str, prompt: str, order: str) -> None:
    method = make(kind, prompt=prompt, order=order)
    ((joint, alone),) = method.tokenize([(SENTENCE, CONDITION)])
    first, second = (SENTENCE, CONDITION) if order == "sentence-first" else (CONDITION, SENTENCE)
    assert list(joint.ids) == method.backbone.tokenizer(first, second).input_ids
    assert pooled_ids(joint) == words(method, CONDITION if prompt == "cond" else SENTENCE)
    assert list(alone.ids) == method.backbone.tokenizer(CONDITION).input_ids
    everything = make(kind, prompt=prompt, order=order, pool_over="all").tokenize([(SENTENCE, CONDITION)])[0][0]
    assert everything.pooled is None


@pytest.mark.parametrize("kind", ["bert", "qwen2"])
def test_the_condition_alone_is_subtracted(kind: str) -> None:
    whole, rest = make(kind, subtract=False), make(kind)
    joint, offset = (method.encode([SENTENCE], [CONDITION]) for method in (whole, rest))
    np.testing.assert_allclose(joint - offset, rest.encode_sentences([CONDITION]), atol=1e-5)
    assert np.abs(joint - offset).max() > 0.01


@pytest.mark.parametrize(("prompt", "text", "other"), [("cond", CONDITION, SENTENCE), ("sent", SENTENCE, CONDITION)])
def test_instructions_are_written_as_in_the_paper(prompt: str, text: str, other: str) -> None:
    method = make("qwen2", prompt=prompt)
    ((joint, alone),) = method.tokenize([(SENTENCE, CONDITION)])
    written = f"Instruct: {INSTRUCTIONS[prompt].format(other=other)}\nQuery: {text}"
    end = method.backbone.tokenizer.eos_token_id
    assert list(joint.ids) == [*words(method, written), end]
    assert list(alone.ids) == [*words(method, f"Instruct: {UNCONDITIONAL}\nQuery: {CONDITION}"), end]
    assert pooled_ids(joint) == words(method, text)
    assert pooled_ids(alone) == words(method, CONDITION)
    assert make("qwen2", pool_over="all").tokenize([(SENTENCE, CONDITION)])[0][0].pooled is None


def test_braces_in_texts_are_not_fields() -> None:
    method = make("qwen2")
    for text in ("{other}", "{text}", "{instruction}", "{0}", "{{7*7}}", "${1+1}"):
        ((joint, _),) = method.tokenize([(text, text)])
        assert pooled_ids(joint) == words(method, text)


def test_a_long_sentence_does_not_push_the_condition_out() -> None:
    method, long = make("qwen2"), " ".join(WORDS * 10)
    ((joint, _),) = method.tokenize([(long, CONDITION)])
    assert joint.truncated
    assert len(joint) <= 66
    assert pooled_ids(joint) == words(method, CONDITION)
    ((joint, _),) = method.tokenize([(SENTENCE, long)])  # here the encoded text itself is too long
    assert joint.truncated
    assert any(joint.pooled)


def test_each_joint_text_and_each_condition_is_encoded_once() -> None:
    method = make()
    with encoded_rows(method.backbone) as rows:
        method.score(SENTENCES, SENTENCES[::-1], ["the mood"] * 4)
        method.score(SENTENCES, SENTENCES, ["the mood"] * 4)
    assert sum(rows) == len(SENTENCES) + 1


@pytest.mark.parametrize(("name", "cls"), [("pca", PCA), ("ica", FastICA)])
def test_fitted_projections_are_scikit_learn_s(name: str, cls: type) -> None:
    method = make(projection=name, projection_dim=3)
    texts, conditions = (list(column) for column in zip(*itertools.product(SENTENCES, CONDITIONS[:3]), strict=True))
    method.fit_projection(texts, conditions, seed=3)
    offsets = method.encode_offsets(texts, conditions)
    expected = cls(n_components=3, random_state=3).fit(offsets).transform(offsets)
    np.testing.assert_allclose(method.encode(texts, conditions), expected, rtol=1e-3, atol=1e-3)
    assert method.encode(texts, conditions).shape == (12, 3)
    assert method.added_parameters == 0


def test_fitting_changes_the_identity() -> None:
    method = make(projection="pca", projection_dim=2)
    before = method.fingerprint
    method.fit_projection(SENTENCES, CONDITIONS)
    assert method.fingerprint != before


def test_what_cannot_be_fitted_or_used_is_said() -> None:
    unfitted = make(projection="pca", projection_dim=3)
    with pytest.raises(ConfigError, match=r"not fitted yet. Call fit_projection"):
        unfitted.score(SENTENCES, SENTENCES, CONDITIONS)
    with pytest.raises(DataError, match="2 texts are too few to fit 3 dimensions"):
        unfitted.fit_projection(SENTENCES[:2], CONDITIONS[:2])
    with pytest.raises(ConfigError, match="'linear' is not fitted; pca and ica are"):
        make(projection="linear").fit_projection(SENTENCES, CONDITIONS)
    with pytest.raises(ConfigError, match="pca gives at most 32 dimensions here, got 512"):
        make(projection="pca")


@pytest.mark.parametrize(("name", "expected"), [("linear", 8 * 32), ("mlp", (32 + 1) * 16 + (16 + 1) * 8), (None, 0)])
def test_projections_have_the_stated_size(name: str | None, expected: int) -> None:
    method = make(projection=name, projection_dim=8, hidden_dim=16)
    assert method.added_parameters == expected
    assert method.encode([SENTENCE], [CONDITION]).shape == (1, 8 if name else 32)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prompt": "both"}, "prompt is 'both', allowed is one of cond or sent"),
        ({"order": "c-first"}, "order is 'c-first', allowed is one of"),
        ({"pool_over": "none"}, "pool_over is 'none', allowed is one of text or all"),
        ({"projection": "svd"}, "projection is 'svd', allowed is one of linear, mlp, pca or ica"),
        ({"projection_dim": 0}, "projection_dim is 0, allowed is 1 or more"),
        ({"dropout": 1.0}, "dropout is 1.0, allowed is below 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CASEConfig(**settings)


def test_an_encoder_with_instructions_reads_the_prompts_of_the_paper(tmp_path: Path) -> None:
    plain, instructed = (
        CASE(load_backbone(str(tiny_folder(tmp_path / name, "xlm-roberta")), device="cpu"), CASEConfig())
        for name in ("encoder", "multilingual-e5-large-instruct")
    )
    (row,), (asked,) = (method.tokenize([(SENTENCES[0], CONDITIONS[0])]) for method in (plain, instructed))
    assert len(asked[0]) > len(row[0])
    assert asked[0].pooled.count(True) == len(CONDITIONS[0].split())


def test_version_4_subtracts_the_condition_under_an_empty_text(tmp_path: Path) -> None:
    backbone = tiny_backbone("bert")
    backbone.tokenizer.model_max_length, backbone.instruction = 66, E5_INSTRUCTION
    plain, empty = (CASE(backbone, CASEConfig(pooling="mean", alone=way)).eval() for way in ("plain", "empty"))
    joint = CASE(backbone, CASEConfig(pooling="mean", subtract=False)).eval()
    (found,) = empty.encode(["a cat"], ["the sport"])
    (whole,) = joint.encode(["a cat"], ["the sport"])
    rows = backbone.tokenize([("Instruct: " + INSTRUCTIONS["cond"].format(other="") + "\nQuery: the sport",)])
    assert len(empty._tokenize("condition", [("the sport",)])[0].ids) == len(rows[0].ids)
    assert np.abs(found - plain.encode(["a cat"], ["the sport"])[0]).max() > 1e-4
    with torch.no_grad():
        (row,) = empty._tokenize("condition", [("the sport",)])
        alone = backbone(backbone.collate([row]), "mean")[0].numpy()
    np.testing.assert_allclose(found, whole - alone, atol=1e-5)


def test_a_setting_younger_than_the_checkpoints_is_no_other_model() -> None:
    """A new setting of Hyper-CL once made strangers of all stored scores of the shipped model."""
    assert "alone" not in CASEConfig().identity()
    assert CASEConfig(alone="empty").identity()["alone"] == "empty"
    assert set(CASEConfig().identity()) >= {"prompt", "subtract", "pooling"}
