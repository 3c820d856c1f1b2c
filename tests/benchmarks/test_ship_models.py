"""What a training has written becomes tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import ship_models
from benchmarks.parts import Chosen, choose
from benchmarks.train_models import PLANS, Plan
from condviz.encoder.pretrained import load_backbone
from condviz.methods import METHODS
from condviz.models import checkpoints
from condviz.models.manifest import WEIGHTS, read_manifest
from tests.tiny import tiny_folder


def test_stored_scores_are_measured_like_those_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = choose("test", pairs=20)
    asked: list[str] = []

    def chosen(name: str) -> Chosen:
        asked.append(name)
        return part

    monkeypatch.setattr(ship_models, "choose", chosen)
    plan = {"encoder": "sentence-transformers/all-mpnet-base-v2"}
    told = {"plan": plan, "steps": 3, "seconds": 60, "device": "a GPU"}
    perfect = {"test": [row.label for row in part.rows]}
    (tmp_path / "out-good.json").write_text(json.dumps(told | {"scores": perfect}))
    (tmp_path / "out-good@first.json").write_text(json.dumps(told))  # a stage, which was not scored
    monkeypatch.setattr(ship_models, "SUMMARY", (("test", "pair_accuracy"),))
    short, figures = ship_models.table(tmp_path)
    assert asked == ["test"]
    assert "| `good` | all-mpnet-base-v2 | a GPU | 3 | 60 | 100.0 " in short
    assert "\n| `good` | 100.0 " in figures
    assert "first" not in short + figures


def test_a_method_begins_with_the_encoder_of_another_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    encoder = str(tiny_folder(tmp_path / "encoder"))
    bare = load_backbone(encoder, device="cpu", precision="float32", shared=False)
    with torch.no_grad():
        bare.model.encoder.layer[0].output.dense.weight += 0.1
    cls = METHODS["bi-encoder"]
    told = {"recipe": {"lr": 1.0}, "steps": 3, "seconds": 60, "device": "a GPU", "curve": [], "seed": 42}
    start = checkpoints.save(cls(bare, cls.config_cls()), Path("checkpoints") / "mine", training=told)
    monkeypatch.setitem(PLANS, "routed", Plan("csr-bi", encoder, {"num_routed_layers": 1}))
    ship_models.begin("routed", start)
    routed, mine = (checkpoints.load(Path("checkpoints") / name, device="cpu") for name in ("routed", "mine"))
    assert routed.name == "csr-bi"
    assert (tmp_path / "checkpoints" / "routed" / WEIGHTS).stat().st_size < 100
    for name, value in mine.backbone.model.state_dict().items():
        torch.testing.assert_close(routed.backbone.model.state_dict()[name], value)
    assert read_manifest(tmp_path / "checkpoints" / "routed")["training"]["before"]["steps"] == 3
    monkeypatch.setitem(PLANS, "subtracted", Plan("case", encoder, {"projection": "linear", "projection_dim": 8}))
    ship_models.begin("subtracted", start)  # a projection would be random
    assert read_manifest(tmp_path / "checkpoints" / "subtracted")["config"]["projection"] is None
