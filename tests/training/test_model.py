"""Scores and losses of a batch: each text once gives what one by one gives, for every method and way of tuning."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import normalize

from condviz.encoder.cache import EmbeddingCache
from condviz.errors import ConfigError
from condviz.training.data import Batch, collate, load_source, make_units
from condviz.training.losses import info_nce, mean_squared_error, quadruplet
from condviz.training.model import SentenceTask, TrainingModel, build_model, load_pretrained
from condviz.training.recipes import Loss, SentenceRecipe
from condviz.training.trainer import carry_out
from tests.tiny import encoded_rows
from tests.training.toy import toy_recipe

SETTINGS: list[tuple[str, dict]] = [
    ("bi-encoder", {}),
    ("bi-encoder", {"transform": True}),
    ("cross-encoder", {}),
    ("tri-encoder", {}),
    ("tri-encoder", {"composition": "concat"}),
    ("hyper-cl", {"rank": 4}),
    ("hyper-cl", {"rank": "none"}),
    ("csr", {"num_routed_layers": 2}),
    ("csr", {"num_routed_layers": 0}),
    ("csr", {"router": "multihead"}),
    ("csr-bi", {"num_routed_layers": 2}),
    ("csr-prefix", {}),
    ("case", {"projection": "mlp", "projection_dim": 8, "hidden_dim": 8}),
]
HEADS = [setting for setting in SETTINGS if setting[0] in ("tri-encoder", "hyper-cl", "case", "cross-encoder")]
HEADS.append(("bi-encoder", {"transform": True}))


def make(folder: Path, method: str, config: dict, **changes: Any) -> tuple[TrainingModel, SentenceRecipe]:
    recipe = toy_recipe(folder, method, config=config, **changes)
    return TrainingModel(build_model(recipe), recipe.loss, frozen=recipe.tuning == "frozen"), recipe


def batch(recipe: SentenceRecipe, size: int = 4) -> dict:
    return collate(make_units(load_source(recipe.train[0]), recipe.batching)[:size])


@pytest.mark.parametrize(("method", "config"), SETTINGS, ids=str)
def test_a_batch_scores_as_its_rows_do(tmp_path: Path, method: str, config: dict) -> None:
    model, recipe = make(tmp_path, method, config)
    model.eval()
    inputs = batch(recipe)
    texts: Batch = inputs["batch"]
    with torch.no_grad():
        together = model(**inputs)
        parts = zip(texts.sentences1, texts.sentences2, texts.conditions, strict=True)
        alone = torch.cat([model.scores(Batch(*((text,) for text in row))) for row in parts])
    torch.testing.assert_close(together["scores"], alone, rtol=1e-4, atol=1e-5)
    scored = model.method.score(texts.sentences1, texts.sentences2, texts.conditions)
    torch.testing.assert_close(together["scores"], torch.from_numpy(scored), rtol=1e-4, atol=1e-5)
    loss = mean_squared_error(alone, inputs["labels"]) + info_nce(alone, temperature=1.5)
    torch.testing.assert_close(together["loss"], loss, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("method", "config"), [row for row in SETTINGS if row[0] != "cross-encoder"], ids=str)
def test_similarity_without_a_condition_is_kept(tmp_path: Path, method: str, config: dict) -> None:
    recipe = toy_recipe(tmp_path, method, config=config, loss={"mse": 1.0, "infonce": 1.0, "plain": 3.0})
    model = TrainingModel(build_model(recipe), recipe.loss, frozen=False, pretrained=load_pretrained(recipe)).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for value in model.method.backbone.parameters():
            value.add_(0.05 * torch.randn_like(value))
    model.train().eval()  # forgets the identity of the weights
    inputs = batch(recipe)
    sentences = list(dict.fromkeys([*inputs["batch"].sentences1, *inputs["batch"].sentences2]))
    left, right = ([row[side] for row in itertools.product(sentences, repeat=2)] for side in (0, 1))
    with torch.no_grad():
        kept = model(**inputs)["loss"]
        model.loss = replace(recipe.loss, plain=0.0)
        rest = model(**inputs)["loss"]
    texts = [(sentence,) for sentence in sentences]
    vectors = load_pretrained(recipe).encode(texts, pooling=recipe.method_config().pooling)
    before = (normalize(vectors) @ normalize(vectors).T).flatten()
    distance = (torch.from_numpy(model.method.score_unconditional(left, right)) - before).square().mean()
    assert distance > 1e-4
    torch.testing.assert_close(kept - rest, 3 * distance, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("method", "config"), HEADS, ids=str)
def test_a_frozen_encoder_gives_the_same_scores_and_gradients(tmp_path: Path, method: str, config: dict) -> None:
    (free, recipe), (frozen, _) = (make(tmp_path, method, config, tuning=tuning) for tuning in ("full", "frozen"))
    assert all("backbone." not in name for name, value in frozen.named_parameters() if value.requires_grad)
    inputs = batch(recipe)
    for model in (free, frozen):
        model.eval()
        model(**inputs)["loss"].backward()
    for name, value in frozen.named_parameters():
        if value.requires_grad:
            torch.testing.assert_close(value.grad, free.get_parameter(name).grad, rtol=1e-3, atol=1e-5)
    frozen.train()
    assert not frozen.method.backbone.training
    with encoded_rows(frozen.method.backbone) as rows:
        frozen(**inputs)
    assert rows == []  # all from the cache


@pytest.mark.parametrize(("method", "config"), SETTINGS, ids=str)
def test_no_text_of_a_batch_is_encoded_twice(tmp_path: Path, method: str, config: dict) -> None:
    model, recipe = make(tmp_path, method, config)
    inputs = batch(recipe)
    texts: Batch = inputs["batch"]
    sentences = {*texts.sentences1, *texts.sentences2}
    items = {
        *zip(texts.sentences1, texts.conditions, strict=True),
        *zip(texts.sentences2, texts.conditions, strict=True),
    }
    with encoded_rows(model.method.backbone) as rows:
        model(**inputs)
    separate, joint = len(sentences) + len(set(texts.conditions)), len(items)
    expected = {"cross-encoder": len(texts), "bi-encoder": joint, "csr-bi": joint}.get(method, separate)
    if method in ("case", "csr-prefix"):
        expected = 2 * joint  # the joint sequences, and their conditions
    if method == "csr" and not config.get("num_routed_layers", 1):
        expected = joint
    assert sum(rows) == expected


def test_every_term_of_the_loss_counts() -> None:
    model = TrainingModel(
        torch.nn.Identity(), Loss(mse=0.5, infonce=2, quadruplet=3, teacher=4, margin=0.2), frozen=True
    )
    scores, labels = torch.tensor([0.9, 0.1, 0.3, 0.2]), torch.tensor([1.0, 0.5, 0.25, 0.0])
    teacher = torch.tensor([0.5, torch.nan, torch.nan, 0.0])
    model.scores = lambda batch: scores
    model.method.backbone = torch.nn.Identity()
    model.method.backbone.device = torch.device("cpu")
    loss = model(Batch((), (), ()), labels, teacher)["loss"]
    expected = 0.5 * mean_squared_error(scores, labels) + 2 * info_nce(scores, temperature=1.5)
    expected += 3 * quadruplet(scores, margin=0.2) + 4 * mean_squared_error(scores[[0, 3]], teacher[[0, 3]])
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize(
    ("tuning", "trained"),
    [
        ("full", {"embeddings", "encoder", "head"}),
        ("layers", {"encoder", "embeddings", "head"}),
        ("lora", {"lora", "head"}),
        ("frozen", {"head"}),
    ],
)
def test_tuning_says_what_is_trained_at_which_rate(tmp_path: Path, tuning: str, trained: set[str]) -> None:
    model, recipe = make(tmp_path, "tri-encoder", {}, tuning=tuning, lr=1e-4, head_lr=1e-3)
    names = {name for name, value in model.named_parameters() if value.requires_grad}

    def kind(name: str) -> str:
        return "head" if "backbone." not in name else "lora" if "lora_" in name else name.split(".")[3]

    assert {kind(name) for name in names} == trained
    assert any("word_embeddings" in name for name in names) == (tuning == "full")
    task = SentenceTask(recipe, "cpu")
    model = task.module
    groups = task.parameter_groups([name for name in names if "bias" not in name])
    assert sum(len(group["params"]) for group in groups) == len(names)
    rates = {id(value): group["lr"] for group in groups for value in group["params"]}
    decays = {id(value): group["weight_decay"] for group in groups for value in group["params"]}
    for name, value in model.named_parameters():
        if value.requires_grad:
            assert rates[id(value)] == (1e-4 if "backbone." in name else 1e-3)
            assert decays[id(value)] == (0.0 if "bias" in name else 0.1)


def test_encoders_in_training_are_private(tmp_path: Path) -> None:
    one, other = (make(tmp_path, "bi-encoder", {})[0] for _ in range(2))
    assert one.method.backbone is not other.method.backbone


def test_dropout_of_the_encoder_can_be_set(tmp_path: Path) -> None:
    model, recipe = make(tmp_path, "bi-encoder", {}, dropout=0.0)
    inputs = batch(recipe)
    model.train()
    torch.testing.assert_close(model(**inputs)["loss"], model(**inputs)["loss"], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("method", "config"), [("hyper-cl", {"rank": 32}), ("hyper-cl", {"rank": "none"}), ("tri-encoder", {})], ids=str
)
def test_heads_can_start_near_the_identity(tmp_path: Path, method: str, config: dict) -> None:
    model, _ = make(tmp_path, method, config, start="identity")
    model.eval()
    texts = ["a man rides a bike"], ["a cat"]
    with_condition = model.method.score(*texts, ["the sport"])
    assert with_condition == pytest.approx(model.method.score_unconditional(*texts), abs=0.1)
    assert with_condition != model.method.score(*texts, ["the mood"])


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("bi-encoder", {"tuning": "frozen"}, "would train nothing"),
        ("csr", {"start": "identity"}, 'start = "identity" is for hyper-cl'),
        (
            "bi-encoder",
            {"tuning": "lora", "lora": {"targets": ["nothing"]}},
            "match no linear layer. Ends of names: dense",
        ),
    ],
)
def test_recipes_that_cannot_be_carried_out(tmp_path: Path, method: str, changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(tmp_path, method, {}, **changes)


def test_trainings_with_a_frozen_encoder_can_share_its_vectors(tmp_path: Path) -> None:
    recipe, vectors = toy_recipe(tmp_path, "hyper-cl", tuning="frozen", config={"rank": 4}, epochs=1), EmbeddingCache()
    carry_out(recipe, tmp_path / "first", device="cpu", vectors=vectors)
    hits, misses = vectors.hits, vectors.misses
    carry_out(replace(recipe, config={"rank": 8}), tmp_path / "second", device="cpu", vectors=vectors)
    assert vectors.misses == misses
    assert vectors.hits > hits
