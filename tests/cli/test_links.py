"""The command links, and how models of graphs are listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from condviz.encoder.pretrained import load_backbone
from condviz.models import checkpoints, registry
from tests.commands import Command
from tests.kg_toy import write_graph
from tests.tiny import tiny_folder, tiny_model


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph, and a folder of checkpoints with one model trained on it and one of sentences."""
    monkeypatch.setenv("CONDVIZ_CACHE", str(tmp_path / "cache"))
    backbone = load_backbone(str(tiny_folder(tmp_path / "encoder")), device="cpu", precision="float32")
    model = tiny_model("hyper-cl", backbone=backbone, pooling="mean")
    monkeypatch.setattr(registry, "MODEL_FOLDERS", (tmp_path / "checkpoints",))
    training = {"recipe": {"graph": "toy", "neighbours": False}, "data": [{"graph": "mine"}]}
    checkpoints.save(model, tmp_path / "checkpoints" / "mine-hyper-cl", training=training)
    checkpoints.save(model, tmp_path / "checkpoints" / "sentences")
    return str(write_graph(tmp_path / "mine"))


def test_models_of_graphs_are_listed_apart(graph: str) -> None:
    assert registry.link_models() == registry.link_models("mine") == ["mine-hyper-cl"]
    assert registry.link_models("wn18rr") == []
    assert "mine-hyper-cl" not in registry.list_models()
    assert "sentences" in registry.list_models()
    assert (registry.describe("mine-hyper-cl").graph, registry.describe("sentences").graph) == ("mine", "")


def test_a_graph_of_another_program_is_read_as_is_said(graph: str, tmp_path: Path, cli: Command) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes("Rome;capital of;Italy\nParis;capital of\nGenève;in;Suisse\n".encode("cp1252"))
    asked = ["links", "Rome", "capital of", "--graph", path, "--model", "sentences", "--encoding", "cp1252"]
    assert "line 2 has 2 columns, not 3 to 4" in cli.refuse(*asked)
    _, out, err = cli(*asked, "--skip-bad")
    assert "Italy" in out
    assert "1 row that cannot be used was left out" in err


def test_answers_as_text_and_json(graph: str, cli: Command) -> None:
    answered = cli("links", "e00", "the park", "inverse the mood", "--graph", graph, "-k", "3")
    first, second = answered.out.strip().split("\n\n")
    assert "train, filtered rank" in first
    assert len(second.splitlines()) >= 6
    (found,) = json.loads(cli("links", "e00", "the park", "--inverse", "--graph", graph, "--json").out)
    assert (found["relation"], found["direction"], len(found["answers"])) == ("_in", "head", 10)


def test_questions_that_fit_where_none_is_given(graph: str, cli: Command) -> None:
    assert len(cli("links", "e00", "--graph", graph, "-k", "1").out.strip().split("\n\n")) == 4
    assert cli("links", "a happy man", "--graph", graph, "-k", "1", "--model", "mine-hyper-cl").out


def test_the_graph_is_the_first_with_such_a_relation(cli: Command) -> None:
    assert "What does a bee produce?" in cli("links", "bee", "produces", "-k", "1", "--model", "minilm").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["  ", "the park"], "No entity is given"),
        (["e00", "beside"], "There is no relation 'beside'"),
        (["e00", "-k", "0"], "-k is 0"),
        (["e00", "--model", "nothing"], "There is no model 'nothing'"),
    ],
)
def test_wrong_questions(graph: str, cli: Command, arguments: list[str], message: str) -> None:
    assert message in cli.refuse("links", *arguments, "--graph", graph)
