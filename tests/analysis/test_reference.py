"""The yardstick behind percentiles."""

from __future__ import annotations

import json

import numpy as np
import pytest

from condviz.analysis import reference as module
from condviz.analysis.reference import compute_scores, pairs_digest, percentile, reference_pairs, reference_scores
from condviz.evaluation.scoreboard import read_board
from condviz.methods import ConditionalScorer
from condviz.models import registry
from condviz.types import Pair
from tests.tiny import SENTENCES

BOARD = read_board().models
STORED = json.loads(module.SCORES.read_text(encoding="utf-8"))


def test_percentiles_count_equal_scores_half() -> None:
    reference = np.array([0.1, 0.2, 0.2, 0.9], dtype=np.float32)
    scores = np.array([0.0, 0.1, 0.2, 0.5, 0.9, 1.0], dtype=np.float32)
    np.testing.assert_allclose(percentile(scores, reference), [0, 12.5, 50, 75, 87.5, 100])


def test_scores_of_other_models_are_computed_once_and_sorted(
    models: list[ConditionalScorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = tuple(Pair(one, two, "the mood", 3.0) for one in SENTENCES for two in SENTENCES)
    monkeypatch.setattr(module, "reference_pairs", lambda: pairs)
    first = reference_scores(models[0])
    assert reference_scores(models[0]) is first
    assert (np.diff(first) >= 0).all()


def test_stored_reference_pairs_cover_the_labels() -> None:
    pairs = reference_pairs()
    assert len(pairs) >= 50
    assert {pair.label for pair in pairs} == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert all(pair.sentence1 and pair.sentence2 and pair.condition for pair in pairs)


def test_stored_scores_belong_to_the_stored_pairs() -> None:
    assert STORED["pairs"] == pairs_digest(), "Run: python -m benchmarks.stored reference"
    assert all(len(model["scores"]) == len(reference_pairs()) for model in STORED["models"].values())


@pytest.mark.parametrize("name", registry.list_models())
def test_stored_scores_are_what_the_model_gives_and_the_board_is_no_older(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := registry.describe(name).missing:
        pytest.skip(missing)
    model, some = registry.load(name, device="cpu", precision="float32"), reference_pairs()[::48]
    assert STORED["models"][name]["weights"] == model.weights_hash, "Run: python -m benchmarks.stored reference"
    if name in BOARD and registry.describe(name).source == "checkpoint":
        assert BOARD[name].weights == model.weights_hash, f"Run: python -m benchmarks models --model {name} --docs"
    stored = reference_scores(model)
    monkeypatch.setattr(module, "reference_pairs", lambda: some)
    nearest = np.abs(compute_scores(model)[:, None] - stored).min(axis=1)
    np.testing.assert_allclose(nearest, 0, atol=1e-3)
