"""A small board of scores, for tests of what is made from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import Board, BoardSample, GroupScores, ModelScores, PartScores

SAMPLES = {
    "test": BoardSample("aaaa", rows=40, pairs=20, available=300, seed=0),
    "plain": BoardSample("bbbb", rows=40, pairs=20, available=20, seed=0),
}
TEST = PartScores(
    digest="aaaa",
    rows=40,
    pairs=20,
    resamples=100,
    spearman=Metric(33.14, 20.0, 44.26),
    pearson=Metric(31.0, 18.0, 40.0),
    pair_accuracy=Metric(73.0, 65.0, 81.0),
    equal_scores=1,
    groups={"aspect": {"mood": GroupScores(20, 15, 40.0, 80.0), "sport": GroupScores(12, 12, None, 41.67)}},
)
PLAIN_SCORES = replace(TEST, digest="bbbb", spearman=Metric(84.0, 83.0, 85.0), groups={})


def model_scores(weights: str = "w", **changes: Any) -> ModelScores:
    """Give the scores of a trained model on `test` and `plain`."""
    parts = {"test": TEST, "plain": PLAIN_SCORES}
    facts = {"precision": "float32", "trained": True, "versions": {"condviz": "0.1.0", "torch": "2.13.0"}}
    return ModelScores(**{"weights": weights, **facts, "parts": parts, **changes})


def make_board(**models: ModelScores) -> Board:
    """Give a board; without models it holds "csr"."""
    return Board(dict(SAMPLES), models or {"csr": model_scores()})
