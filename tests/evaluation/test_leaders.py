"""Leaders: only models that are measured on all parts count."""

from __future__ import annotations

import numpy as np
import pytest

from condviz.evaluation import leaders
from condviz.evaluation.metrics import Metric, wilson
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


def test_the_best_is_alone_only_where_no_other_may_be_as_good() -> None:
    def near(value: float, reach: float = 2.0) -> Metric:
        return Metric(value, value - reach, value + reach)

    assert leaders.leading({"a": near(70), "b": near(80), "c": near(90)}) == ["c"]
    assert leaders.leading({"a": near(70), "b": near(89), "c": near(90)}) == ["c", "b"]
    assert leaders.leading({"a": Metric(70.0), "b": Metric(None), "c": near(90)}) == ["c", "a"]
    assert leaders.leading({}) == []
    mean = leaders.mean_of([near(70), near(80)])
    assert (mean.value, mean.low) == (75, pytest.approx(75 - 2 / 2**0.5))
    assert leaders.mean_of([near(70), Metric(80.0)]).low is None


def test_of_equal_models_one_in_twenty_boards_names_a_best() -> None:
    rng, alone = np.random.default_rng(0), 0
    for _ in range(1_000):
        shares = (rng.random((9, 400)) < 0.7).mean(axis=1)
        figures = {str(i): Metric(100 * one, *(100 * end for end in wilson(one, 400))) for i, one in enumerate(shares)}
        alone += len(leaders.leading(figures)) == 1
    assert alone <= 50
