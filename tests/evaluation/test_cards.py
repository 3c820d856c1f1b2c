"""Model cards say what training and benchmark have stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from benchmarks.board import write_card
from condviz.evaluation.cards import format_card
from condviz.evaluation.scoreboard import Board
from condviz.models.manifest import FORMAT, MANIFEST
from tests.evaluation.boards import make_board

TRAINING = {
    "recipe": {
        "tuning": "layers",
        "frozen_layers": 2,
        "init": "first",
        "lr": 2e-4,
        "seed": 7,
        "train": [{"weight": 0.5}],
    },
    "data": [
        {"source": "cebab", "split": "train", "path": "", "rows": 1234},
        {"source": "scenes", "split": "dev", "path": "", "rows": 20},
    ],
    "seconds": 600,
    "steps": 1000,
    "best_step": 900,
    "device": "cpu",
}


def manifest(**changes: object) -> dict:
    backbone = {"name": "sentence-transformers/all-MiniLM-L6-v2", "revision": "r", "digest": "d"}
    metrics = {"validation": {"rows": 20, "spearman": 51.5, "pair_accuracy": 84.25}}
    return {"method": "csr", "backbone": backbone, "training": TRAINING, "metrics": metrics} | changes


def test_a_card_tells_data_start_commands_scores_and_licence() -> None:
    card = format_card("csr", manifest(), make_board())
    front = yaml.safe_load(card.split("---")[1])
    assert front["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert "the lowest 2 layers" in card
    assert "| CEBaB: restaurant reviews, labels of people only | train | 1,234 | 0.5 |" in card
    assert "| scenes of this project, with edits | dev | 20 | validation |" in card
    assert "train assets/recipes/first.toml\npython -m condviz train assets/recipes/csr.toml" in card
    assert "1,000 steps, rate 0.0002, seed 7, 10 minutes on a CPU; the weights of step 900" in card
    assert "Spearman × 100 51.5, pair accuracy 84.2 %" in card
    assert "| scenes | 40 | 73.0 [65.0, 81.0] |" in card
    assert "Learnt from:\n\n- CEBaB v1.1 by" in card


def test_a_card_does_not_claim_that_rows_chose_the_last_weights() -> None:
    assert "(20 rows, used to choose the weights)" in format_card("csr", manifest(), make_board())
    last = TRAINING | {"recipe": TRAINING["recipe"] | {"keep": "last"}}
    assert "(20 rows, the last weights were kept)" in format_card("csr", manifest(training=last), make_board())


def test_a_card_of_a_method_on_another_model_says_that_nothing_was_trained_for_it() -> None:
    card = format_card("csr", manifest(training=TRAINING | {"steps": 0}), make_board())
    assert "Nothing was trained for this method" in card
    assert "the encoder of `first`" in card
    assert "| train | 1,234 |" in card
    assert "0 steps" not in card


def test_a_card_gives_the_commands_of_the_whole_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condviz.evaluation.cards.ASSETS", tmp_path)
    folder = tmp_path / "recipes"
    folder.mkdir()
    for name, init in {"csr": "first", "first": "zero", "zero": "", "loop": "loop"}.items():
        (folder / f"{name}.toml").write_text(f'init = "{init}"')
    commands = [
        line.split("/")[-1] for line in format_card("csr", manifest(), Board()).splitlines() if "assets/re" in line
    ]
    assert commands == ["zero.toml", "first.toml", "csr.toml"]
    looping = {**TRAINING, "recipe": {**TRAINING["recipe"], "init": "loop"}}
    assert format_card("csr", manifest(training=looping), Board()).count("loop.toml") == 1


def test_a_card_without_scores_or_training_says_so() -> None:
    card = format_card("mine", manifest(training={}, metrics={}), Board())
    assert "## Training\n\nNot recorded." in card
    assert "Not measured on test parts yet" in card


def test_a_card_lies_in_its_checkpoint(tmp_path: Path) -> None:
    content = manifest(format=FORMAT, condviz="0.1.0", config={}, adapter_scale=None)
    (tmp_path / MANIFEST).write_text(json.dumps(content), encoding="utf-8")
    written = write_card(tmp_path, Board())
    assert written == tmp_path / "README.md"
    assert f"# {tmp_path.name}\n" in written.read_text(encoding="utf-8")
