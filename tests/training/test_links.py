"""Training on a knowledge graph: texts without the answer, vectors of a batch, a few steps of every recipe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import condviz
from condviz.errors import ConfigError, DataError, TrainingStopped
from condviz.evaluation.kgc import query_vectors
from condviz.methods import METHODS
from condviz.models.manifest import WEIGHTS, read_manifest
from condviz.paths import ASSETS
from condviz.training.links import LinkTask, TripleEncoder, TripleHead
from condviz.training.recipes import LinkRecipe, from_dict, load_recipe
from condviz.training.trainer import carry_out
from tests.kg_toy import toy_graph, write_graph
from tests.tiny import tiny_backbone, tiny_folder

RECIPES = sorted(path for path in (ASSETS / "recipes").glob("*.toml") if isinstance(load_recipe(path), LinkRecipe))
SMALL = {"hyper-cl": {"rank": 4, "pooling": "mean"}}


@pytest.fixture(autouse=True)
def _vectors_are_kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDVIZ_CACHE", str(tmp_path / "cache"))


def test_there_are_recipes() -> None:
    assert all(load_recipe(path).name == path.stem for path in RECIPES)
    assert {"wn18rr-hyper-cl", "wn18rr-csr", "wn18rr-simkgc"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_takes_a_few_steps(path: Path, tmp_path: Path) -> None:
    content = load_recipe(path).to_dict()
    if isinstance(content.get("config", {}).get("rank"), int):
        content["config"] = content["config"] | {"rank": 4}
    small = {
        "graph": str(write_graph(tmp_path / "graph")),
        "backbone": str(tiny_folder(tmp_path / "encoder")),
        "epochs": 1, "batch_size": 8, "precision": "float32", "disk": "float32",
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
    recipe = LinkRecipe(
        name="toy",
        method="tri-encoder",
        graph=str(write_graph(tmp_path / "graph")),
        config={"composition": "concat", "pooling": "mean"},
        backbone=str(tiny_folder(tmp_path / "encoder")),
        neighbours=False,
        tuning="frozen",
        epochs=30,
        batch_size=22,
        lr=2e-2,
        precision="float32",
    )
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
    method = METHODS["hyper-cl"](tiny_backbone(), METHODS["hyper-cl"].config_cls(**SMALL["hyper-cl"]))
    encoder = TripleEncoder(method, graph, LinkRecipe(name="toy", method="hyper-cl"))
    assert encoder.text(0, 6) == guarded
    assert encoder.text(6, 0) == graph.text(6, without=0)


@pytest.mark.parametrize("name", ["hyper-cl", "tri-encoder"])
def test_head_in_training_gives_the_vectors_of_evaluation(name: str, tmp_path: Path) -> None:
    graph, method = toy_graph(tmp_path / "graph"), METHODS[name](
        tiny_backbone(), METHODS[name].config_cls(**SMALL.get(name, {"pooling": "mean"}))
    )  # fmt: skip
    method.eval()
    texts = graph.texts(neighbours=False)
    entities = torch.from_numpy(method.encode_sentences(texts))
    names = [graph.relation_text(relation) for relation in range(2 * graph.num_relations)]
    pooled = method.backbone.encode([(text,) for text in names], pooling="mean")
    triples = torch.from_numpy(graph.directed("train"))
    queries, tails, heads = TripleHead(method, entities, pooled, normalize=True).eval()(triples)
    options = {"entities": entities, "texts": texts, "heads": triples[:, 0], "relations": triples[:, 1]}
    torch.testing.assert_close(queries, query_vectors(method, graph, **options), rtol=1e-4, atol=1e-5)
    unit = torch.nn.functional.normalize(entities, dim=1)
    torch.testing.assert_close(tails, unit[triples[:, 2]])
    torch.testing.assert_close(heads, unit[triples[:, 0]])


@pytest.mark.parametrize("name", ["bi-encoder", "csr", "hyper-cl"])
def test_trained_encoder_gives_the_vectors_of_evaluation(name: str, tmp_path: Path) -> None:
    graph, method = toy_graph(tmp_path / "graph"), METHODS[name](
        tiny_backbone(), METHODS[name].config_cls(**SMALL.get(name, {"pooling": "mean"}))
    )  # fmt: skip
    recipe = LinkRecipe(name="toy", method=name, neighbours=False)
    triples = torch.from_numpy(graph.directed("train"))[:9]
    queries, tails, _ = TripleEncoder(method, graph, recipe).eval()(triples)
    texts = graph.texts(neighbours=False)
    entities = torch.from_numpy(method.encode_sentences(texts))
    options = {"entities": entities, "texts": texts, "heads": triples[:, 0], "relations": triples[:, 1]}
    torch.testing.assert_close(queries, query_vectors(method, graph, **options), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        tails, torch.nn.functional.normalize(entities, dim=1)[triples[:, 2]], atol=1e-5, rtol=1e-4
    )
    assert queries.requires_grad


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "cross-encoder"}, "encoders that can predict links"),
        ({"tuning": "frozen"}, "neighbours = false"),
        ({"tuning": "frozen", "neighbours": False, "method": "csr"}, "no head over the vectors"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"bacth_size": 8}, "Did you mean batch_size"),
        ({"name": "a/b"}, "names a folder"),
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
    recipe = from_dict({
        "name": "toy",
        "method": "tri-encoder",
        "graph": str(write_graph(tmp_path / "graph")),
        "config": {"pooling": "mean"},
        "backbone": str(tiny_folder(tmp_path / "encoder")),
        "neighbours": False,
        "tuning": tuning,
        "pre_batch": 2,
        "epochs": 4,
        "batch_size": 8,
        "lr": 1e-2,
        "precision": "float32",
        "disk": "float32",
    })  # fmt: skip
    straight = carry_out(recipe, tmp_path / "straight", device="cpu")
    steps = read_manifest(straight)["training"]["steps"]
    with pytest.raises(TrainingStopped):
        carry_out(recipe, tmp_path / "broken", device="cpu", steer=lambda step, _: "stop" if step > 2 else "go")
    resumed = carry_out(recipe, tmp_path / "broken", device="cpu", resume=True)
    assert steps > 4
    one, other = (load_file(folder / WEIGHTS) for folder in (straight, resumed))
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=0, atol=0, msg=name)


def test_the_epoch_that_ranks_best_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([0.0, 0.5, 0.9, 0.1, 0.9])
    monkeypatch.setattr(LinkTask, "validate", lambda self: {"MRR": next(values)})
    recipe = LinkRecipe(
        name="toy",
        method="bi-encoder",
        graph=str(write_graph(tmp_path / "graph")),
        backbone=str(tiny_folder(tmp_path / "encoder")),
        epochs=3,
        batch_size=8,
        precision="float32",
    )
    monkeypatch.setattr(LinkTask, "card", lambda *_: "card")
    training = read_manifest(carry_out(recipe, tmp_path / "model", device="cpu"))["training"]
    assert training["best_step"] * 3 == training["steps"] * 2
