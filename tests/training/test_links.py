"""Training on a knowledge graph: texts without the answer, vectors of a batch, a few steps of every recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import condviz
from condviz.data.kg import Graph
from condviz.errors import ConfigError, DataError, TrainingStopped
from condviz.evaluation.kgc import query_vectors
from condviz.methods import METHODS, ConditionalEncoder
from condviz.models.manifest import WEIGHTS, read_manifest
from condviz.paths import ASSETS
from condviz.training.links import LinkTask, TripleEncoder, TripleHead
from condviz.training.preflight import check
from condviz.training.recipes import LinkRecipe, from_dict, load_recipe
from condviz.training.trainer import carry_out
from tests.kg_toy import toy_graph, write_graph
from tests.tiny import tiny_backbone, tiny_folder

RECIPES = sorted(path for path in (ASSETS / "recipes").glob("*.toml") if isinstance(load_recipe(path), LinkRecipe))
SMALL = {"hyper-cl": {"rank": 4, "pooling": "mean"}}


def build(name: str) -> ConditionalEncoder:
    return METHODS[name](tiny_backbone(), METHODS[name].config_cls(**SMALL.get(name, {"pooling": "mean"})))


def toy_links(folder: Path, method: str = "hyper-cl", **changes: Any) -> LinkRecipe:
    """Give a recipe for one epoch on the small graph."""
    content = {
        "name": "toy",
        "method": method,
        "graph": str(write_graph(folder / "graph")),
        "config": SMALL.get(method, {"pooling": "mean"}),
        "backbone": str(tiny_folder(folder / "encoder")),
        "neighbours": False,
        "epochs": 1,
        "batch_size": 8,
        "precision": "float32",
        "disk": "float32",
    }
    return from_dict(content | changes)


@pytest.fixture(autouse=True)
def _vectors_are_kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDVIZ_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_takes_a_few_steps(path: Path, tmp_path: Path) -> None:
    content = load_recipe(path).to_dict()
    if isinstance(content.get("config", {}).get("rank"), int):
        content["config"] = content["config"] | {"rank": 4}
    small = {
        "graph": str(write_graph(tmp_path / "graph")),
        "backbone": str(tiny_folder(tmp_path / "encoder")),
        "epochs": 1, "batch_size": 8, "precision": "float32", "disk": "float32",
        "init": "",
    }  # fmt: skip
    records: list[Mapping[str, Any]] = []
    folder = carry_out(from_dict(content | small), tmp_path / "model", device="cpu", report=records.append)
    metrics = next(record for record in records if record["event"] == "evaluation")
    assert 0 < metrics["MRR"] <= 1
    assert metrics["queries"] == 2
    assert read_manifest(folder)["metrics"]["valid"]["MRR"] == metrics["MRR"]
    model = condviz.load(str(folder))
    assert model.encode(["dogs"], ["inverse the park"]).shape == (1, 32)
    assert "python -m condviz links" in (folder / "README.md").read_text(encoding="utf-8")


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    config = {"composition": "concat", "pooling": "mean"}
    recipe = toy_links(tmp_path, "tri-encoder", config=config, tuning="frozen", epochs=30, batch_size=22, lr=2e-2)
    records: list[Mapping[str, Any]] = []
    carry_out(recipe, tmp_path / "model", device="cpu", report=records.append)
    losses = [record["loss"] for record in records if record["event"] == "step"]
    assert losses[-1] < losses[0]
    told = read_manifest(tmp_path / "model")["training"]["recipe"]["graph"]
    assert told == "graph", "a checkpoint may be published, folders of this machine may not"


def test_the_answer_does_not_stand_in_the_text(tmp_path: Path) -> None:
    graph = toy_graph(tmp_path / "graph")
    answer = graph.entities[6].name
    assert answer in graph.text(0).split()[2:]
    guarded = graph.text(0, without=6)
    assert guarded.count(answer) == graph.text(0, neighbours=False).count(answer)
    method = build("hyper-cl")
    encoder = TripleEncoder(method, graph, LinkRecipe(name="toy", method="hyper-cl"))
    assert encoder.text(0, 6) == guarded
    assert encoder.text(6, 0) == graph.text(6, without=0)


def assert_as_in_evaluation(
    found: tuple[Tensor, Tensor, Tensor], method: ConditionalEncoder, graph: Graph, triples: Tensor, **tolerance: float
) -> None:
    """Compare the vectors of (head, relation), tails and heads of a batch with those by which links are ranked."""
    texts = graph.texts(neighbours=False)
    entities = torch.from_numpy(method.encode_sentences(texts))
    unit = torch.nn.functional.normalize(entities, dim=1)
    expected = (
        query_vectors(method, graph, triples, entities=entities, texts=texts),
        unit[triples[:, 2]],
        unit[triples[:, 0]],
    )
    found = tuple(torch.nn.functional.normalize(vectors, dim=1) for vectors in found)
    torch.testing.assert_close(found, expected, **{"rtol": 1e-4, "atol": 1e-5} | tolerance)


@pytest.mark.parametrize("name", ["hyper-cl", "tri-encoder"])
def test_head_in_training_gives_the_vectors_of_evaluation(name: str, tmp_path: Path) -> None:
    graph, method = toy_graph(tmp_path / "graph"), build(name).eval()
    entities = torch.from_numpy(method.encode_sentences(graph.texts(neighbours=False)))
    names = [graph.relation_text(relation) for relation in range(2 * graph.num_relations)]
    pooled = method.backbone.encode([(text,) for text in names], pooling="mean")
    triples = torch.from_numpy(graph.directed("train"))
    found = TripleHead(method, entities, pooled).eval()(triples)
    assert_as_in_evaluation(found, method, graph, triples)


@pytest.mark.parametrize("name", ["bi-encoder", "csr", "hyper-cl"])
def test_trained_encoder_gives_the_vectors_of_evaluation(name: str, tmp_path: Path) -> None:
    graph, method = toy_graph(tmp_path / "graph"), build(name)
    triples = torch.from_numpy(graph.directed("train"))[:9]
    found = TripleEncoder(method, graph, LinkRecipe(name="toy", method=name, neighbours=False)).eval()(triples)
    assert_as_in_evaluation(found, method, graph, triples)
    assert found[0].requires_grad


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "cross-encoder"}, "encoders that can predict links"),
        ({"tuning": "frozen"}, "neighbours = false"),
        ({"tuning": "frozen", "neighbours": False, "method": "csr"}, "no head over the vectors"),
        ({"tuning": "layers"}, "one of full or frozen"),
        ({"frozen_layers": 2}, "Unknown key frozen_layers"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"bacth_size": 8}, "Did you mean batch_size"),
        ({"name": "a/b"}, "Use letters a to z, digits and hyphens"),
        ({"precision": "int4"}, "precision is 'int4'"),
    ],
)
def test_wrong_recipes_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict({"name": "toy", "method": "hyper-cl", "graph": "wn18rr"} | changes)


def test_a_graph_without_validation_is_refused(tmp_path: Path) -> None:
    folder = write_graph(tmp_path / "graph")
    triples = (folder / "triples.tsv").read_text(encoding="utf-8").replace("valid", "train")
    (folder / "triples.tsv").write_text(triples, encoding="utf-8")
    with pytest.raises(DataError, match="valid part of graph has no triples"):
        carry_out(LinkRecipe(name="toy", method="csr", graph=str(folder)), tmp_path / "model")


@pytest.mark.parametrize("tuning", ["full", "frozen"])
def test_an_interrupted_training_ends_as_an_uninterrupted_one(tuning: str, tmp_path: Path) -> None:
    recipe = toy_links(tmp_path, "tri-encoder", tuning=tuning, pre_batch=2, epochs=4, lr=1e-2)
    straight = carry_out(recipe, tmp_path / "straight", device="cpu")
    steps = read_manifest(straight)["training"]["steps"]
    with pytest.raises(TrainingStopped):
        carry_out(recipe, tmp_path / "broken", device="cpu", steer=lambda step, _: step > 2)
    slow = {"event": "step", "step": 2, "steps": steps, "loss": 1.0, "seconds": 1000.0}
    with (tmp_path / ".broken.run" / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(slow) + "\n")
    resumed = carry_out(recipe, tmp_path / "broken", device="cpu", resume=True)
    assert steps > 4
    assert read_manifest(resumed)["training"]["seconds"] > 1000, "what was done before the stop counts"
    torch.testing.assert_close(load_file(resumed / WEIGHTS), load_file(straight / WEIGHTS), rtol=0, atol=0)


def test_a_training_starts_where_another_ended(tmp_path: Path) -> None:
    recipe = toy_links(tmp_path, batch_size=22)
    folder = carry_out(recipe, tmp_path / "first", device="cpu")
    task = LinkTask(replace(recipe, name="second", init=str(folder)), "cpu")
    trained = condviz.load(str(folder), precision="float32")
    assert task.method.eval().backbone.weights_hash == trained.backbone.weights_hash
    torch.testing.assert_close(task.sample(task.method), task.sample(trained))


def test_the_head_has_a_rate_of_its_own(tmp_path: Path) -> None:
    task = LinkTask(toy_links(tmp_path, lr=1e-4, head_lr=1e-3), "cpu")
    rates = {id(weight): group["lr"] for group in task.parameter_groups(()) for weight in group["params"]}
    for name, weight in task.module.named_parameters():
        expected = None if not weight.requires_grad else 1e-4 if "backbone." in name else 1e-3
        assert rates.get(id(weight)) == expected, name


def test_the_epoch_that_ranks_best_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([0.0, 0.5, 0.9, 0.1, 0.9])
    monkeypatch.setattr(LinkTask, "validate", lambda self: {"MRR": next(values)})
    recipe = toy_links(tmp_path, "bi-encoder", epochs=3)
    monkeypatch.setattr(LinkTask, "card", lambda *_: "card")
    training = read_manifest(carry_out(recipe, tmp_path / "model", device="cpu"))["training"]
    assert training["best_step"] * 3 == training["steps"] * 2


@pytest.mark.parametrize("batch_size", [6, 7])
def test_the_steps_are_told_before(batch_size: int, tmp_path: Path) -> None:
    recipe = toy_links(tmp_path, batch_size=batch_size)
    task = LinkTask(recipe, "cpu")
    assert check(recipe, roots=[tmp_path], device="cpu").steps == len(task.order) // task.batch_units
