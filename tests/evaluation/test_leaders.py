"""Leaders: only models that are measured on all parts count."""

from __future__ import annotations

import pytest

from condviz.evaluation import leaders
from condviz.types import ModelInfo


def info(name: str) -> ModelInfo:
    return ModelInfo(name, "tri", "Tri", "tri", True, "checkpoint", "", (-1.0, 1.0), 0, "", "")


@pytest.mark.parametrize(("accuracy", "best"), [(60.0, "new"), (40.0, "old")])
def test_a_model_that_lacks_a_part_is_no_leader(monkeypatch: pytest.MonkeyPatch, accuracy: float, best: str) -> None:
    parts = dict.fromkeys(leaders.OVERALL, accuracy)
    found = {"part": {"test": 90.0}, "old": dict.fromkeys(leaders.OVERALL, 50.0), "new": parts}
    monkeypatch.setattr(leaders, "pair_accuracies", lambda: found)
    infos = [info(name) for name in ("part", "old", "new")]
    assert leaders.best_encoder(infos) == best
    assert "one pass for any number of conditions" in leaders.strengths(infos)[best]
