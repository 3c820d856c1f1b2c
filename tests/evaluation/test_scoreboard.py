"""Stored scores: what is written comes back, what was measured on other rows or weights does not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.board import add_scores, outdated, write_board
from condviz.errors import DataError
from condviz.evaluation import scoreboard
from condviz.evaluation.metrics import Metric, wilson
from condviz.evaluation.scoreboard import Board, read_board
from condviz.types import ModelInfo
from tests.evaluation.boards import SAMPLES, TEST, make_board, model_scores


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    board = make_board(csr=model_scores(), minilm=model_scores("v", trained=False))
    write_board(board, tmp_path / "scores.json")
    assert read_board(tmp_path / "scores.json") == board


def test_each_model_and_part_has_a_line_of_its_own(tmp_path: Path) -> None:
    write_board(make_board(), tmp_path / "scores.json")
    lines = (tmp_path / "scores.json").read_text().splitlines()
    assert sum(line.lstrip().startswith(('"test"', '"plain"')) for line in lines) == 2 + 2


def test_no_file_is_an_empty_board(tmp_path: Path) -> None:
    assert read_board(tmp_path / "none.json") == Board()
    write_board(Board(), tmp_path / "empty.json")
    assert read_board(tmp_path / "empty.json") == Board()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "has format None"),
        ('{"format": 9}', "format 9, this version reads 1"),
        ('{"format": 1, "samples": {}, "models": {"csr": {"weights": "w"}}}', "not the form"),
        ('{"format": 1, "samples": {"test": {"rows": 3}}, "models": {}}', "not the form"),
    ],
)
def test_a_damaged_file_is_said_to_be_and_what_to_do(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_board(path)
    assert "python -m benchmarks models" in str(caught.value)


def test_other_models_and_parts_stay_when_one_is_measured() -> None:
    board = make_board(csr=model_scores(), minilm=model_scores("v"))
    better = replace(TEST, equal_scores=0)
    board = add_scores(board, "csr", model_scores(parts={"test": better}), {})
    assert board.find("csr", "test") == better
    assert board.find("csr", "plain") == make_board().find("csr", "plain")
    assert board.find("minilm", "test") == TEST


@pytest.mark.parametrize("changes", [{"weights": "new"}, {"precision": "bfloat16"}, {"versions": {"torch": "3"}}])
def test_parts_of_other_weights_or_versions_do_not_stay(changes: dict) -> None:
    board = add_scores(make_board(), "csr", model_scores(**{"parts": {"test": TEST}, **changes}), {})
    assert board.find("csr", "test") == TEST
    assert board.find("csr", "plain") is None


def test_scores_on_other_rows_do_not_count() -> None:
    board = make_board(csr=model_scores(), minilm=model_scores("v"))
    samples = {"test": replace(SAMPLES["test"], digest="cccc")}
    board = add_scores(board, "csr", model_scores(parts={"test": replace(TEST, digest="cccc")}), samples)
    assert board.find("csr", "test") is not None
    assert board.find("minilm", "test") is None
    assert outdated(board, "minilm") == ["test"]
    assert outdated(board, "csr") == []


def test_what_was_never_measured_is_none() -> None:
    assert make_board().find("csr", "mams") is None
    assert make_board().find("nobody", "test") is None


def info(name: str) -> ModelInfo:
    return ModelInfo(name, "tri", "Tri", "tri", True, "checkpoint", "", (-1.0, 1.0), 0, "", "")


@pytest.mark.parametrize(("accuracy", "best"), [(60.0, "new"), (40.0, "old")])
def test_a_model_that_lacks_a_part_is_no_leader(monkeypatch: pytest.MonkeyPatch, accuracy: float, best: str) -> None:
    old, new = (dict.fromkeys(scoreboard.OVERALL, Metric(value)) for value in (50.0, accuracy))
    monkeypatch.setattr(scoreboard, "pair_accuracies", lambda: {"part": {"test": Metric(90.0)}, "old": old, "new": new})
    infos = [info(name) for name in ("part", "old", "new")]
    assert scoreboard.best_encoder(infos) == best
    assert "one pass for any number of conditions" in scoreboard.strengths(infos)[best]


def test_the_best_is_alone_only_where_no_other_may_be_as_good() -> None:
    def near(value: float, reach: float = 2.0) -> Metric:
        return Metric(value, value - reach, value + reach)

    assert scoreboard.leading({"a": near(70), "b": near(80), "c": near(90)}) == ["c"]
    assert scoreboard.leading({"a": near(70), "b": near(89), "c": near(90)}) == ["c", "b"]
    assert scoreboard.leading({"a": Metric(70.0), "b": Metric(None), "c": near(90)}) == ["c", "a"]
    assert scoreboard.leading({}) == []
    mean = scoreboard.mean_of([near(70), near(80)])
    assert (mean.value, mean.low) == (75, pytest.approx(75 - 2 / 2**0.5))
    assert scoreboard.mean_of([near(70), Metric(80.0)]).low is None


def test_of_equal_models_one_in_twenty_boards_names_a_best() -> None:
    rng, alone = np.random.default_rng(0), 0
    for _ in range(1_000):
        shares = (rng.random((9, 400)) < 0.7).mean(axis=1)
        figures = {str(i): Metric(100 * one, *(100 * end for end in wilson(one, 400))) for i, one in enumerate(shares)}
        alone += len(scoreboard.leading(figures)) == 1
    assert alone <= 50
