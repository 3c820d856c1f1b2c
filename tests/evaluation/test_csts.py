"""The public function `evaluate`: every form of data, seen and unseen rows, undefined figures, one result."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from condviz.data.pairs import read_pairs
from condviz.errors import ConfigError, DataError
from condviz.evaluation.csts import evaluate
from condviz.evaluation.dataset import Dataset, make_dataset
from condviz.evaluation.metrics import spearman
from condviz.types import Pair
from tests.stand_ins import LengthModel


def rows(count: int, seed: int = 0) -> list[Pair]:
    """Give `count` sentence pairs under two conditions each, with ratings that follow the scores loosely."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        for length in rng.choice(np.arange(1, 10), size=2, replace=False):
            label = float(np.clip(round(length / 2 + rng.normal()), 1, 5))
            made.append(Pair(f"s{number}", f"t{number}", "x" * length, label))
    return made


def data(made: list[Pair]) -> Dataset:
    return make_dataset("t", made)


def test_report_holds_the_figures_of_all_seen_and_unseen_rows() -> None:
    made = [*rows(40), Pair("s", "t", "not rated")]
    report = evaluate(LengthModel(), data(made), training_conditions={"x", "xx ", "xxx"}, resamples=50).reports[0]
    assert (report.rows, report.rated, len(report.predictions)) == (81, 80, 81)
    assert report.seen.n + report.unseen.n == 80
    assert report.seen.n == sum(len(pair.condition) <= 3 for pair in made[:-1])
    labels = [pair.label for pair in made[:-1]]
    assert report.overall.spearman.value == pytest.approx(100 * spearman(labels, report.predictions[:-1]))
    for metric in (report.overall.spearman, report.overall.pearson, report.overall.ties_wrong):
        assert metric.low < metric.value < metric.high
    assert report.overall.pair_accuracy.pairs == 40
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["overall"]["n"] == 80


def test_intervals_repeat_with_the_seed_and_vanish_without_resamples() -> None:
    first, second = (evaluate(LengthModel(), data(rows(20)), resamples=20, seed=1).reports[0].overall for _ in range(2))
    assert first == second
    assert first != evaluate(LengthModel(), data(rows(20)), resamples=20, seed=2).reports[0].overall
    assert evaluate(LengthModel(), data(rows(20)), resamples=0).reports[0].overall.spearman.low is None


def test_a_handful_of_pairs_gets_no_interval() -> None:
    assert evaluate(LengthModel(), data(rows(9)), resamples=20).reports[0].overall.pearson.low is None
    assert evaluate(LengthModel(), data(rows(10)), resamples=20).reports[0].overall.pearson.low is not None


def test_a_constant_model_fails_visibly() -> None:
    made = [Pair("a", f"b{label}", "same", label) for label in (1.0, 3.0, 5.0)]
    overall = evaluate(LengthModel(), data(made), resamples=10).reports[0].overall
    assert overall.spearman.value is None
    assert overall.spearman.reason == "all scores are 0.4"
    assert overall.ties_wrong.reason == "no sentence pair is rated under two conditions"


def test_rows_without_ratings_are_scored_only() -> None:
    report = evaluate(LengthModel(), data([Pair("a", "b", "c")]), training_conditions=[]).reports[0]
    assert report.rated == 0
    assert report.predictions.tolist() == [np.float32(0.1)]
    assert report.seen.spearman.value is None


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        evaluate(LengthModel(), data([]))
    with pytest.raises(ConfigError, match="No model"):
        evaluate([], data(rows(2)))
    with pytest.raises(ConfigError, match="got -1"):
        evaluate(LengthModel(), data(rows(2)), resamples=-1)


def test_frames_tables_and_datasets_give_the_same_and_two_models_one_result() -> None:
    made = rows(20)
    lines = [
        "sentence1,sentence2,condition,label",
        *(f"{p.sentence1},{p.sentence2},{p.condition},{p.label}" for p in made),
    ]
    table = read_pairs(io.BytesIO("\n".join(lines).encode()))
    frame = __import__("pandas").DataFrame([vars(pair) for pair in made])
    found = [evaluate([LengthModel(), LengthModel("two")], one, resamples=20) for one in (table, frame, data(made))]
    first = found[0].to_frame()
    assert list(first["model"]) == ["length", "two"]
    for one in found[1:]:
        assert one.to_frame().equals(first)
    assert [report["model"] for report in found[0].to_dict()["models"]] == ["length", "two"]


def test_progress_counts_over_all_models() -> None:
    told: list[tuple[int, int]] = []
    evaluate([LengthModel(), LengthModel("b")], data(rows(3)), resamples=0, progress=lambda *done: told.append(done))
    assert told == [(6, 12), (12, 12)]
