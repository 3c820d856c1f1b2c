"""What a training has written becomes tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import ship_models
from benchmarks.parts import Chosen, choose


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
