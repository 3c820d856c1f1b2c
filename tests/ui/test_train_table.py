"""Uploaded tables: what is left out is said, and no sentence pair stands on both sides."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from condviz.data.tables import read_pairs
from condviz.errors import ConfigError, DataError
from condviz.ui.train_table import divide, inspect, store

COLUMNS = ("sentence1", "sentence2", "condition", "label")


def write(path: Path, rows: list[tuple[object, ...]], columns: tuple[str, ...] = COLUMNS) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def pairs(count: int) -> list[tuple[object, ...]]:
    return [(f"a {i}", f"b {i}", c, label) for i in range(count) for c, label in (("the x", 1), ("the y", 4))]


def test_a_good_table_is_counted(tmp_path: Path) -> None:
    rows = [*pairs(30), ("a 0", "b 0", "the x", 1), ("a 1", "b 1", "the x", 3), ("a 2", "b 2", "the z", "")]
    report = inspect(write(tmp_path / "mine.csv", rows))
    assert (len(report.rows), report.total, report.paired, report.batching) == (60, 63, 30, "pairs")
    assert report.histogram() == [29, 1, 0, 30, 0]  # the mean of 1 and 3 is 2
    assert len(report.notes) == 3


def test_both_parts_share_no_sentence_pair_and_come_back(tmp_path: Path) -> None:
    report = inspect(write(tmp_path / "My Table (1).csv", pairs(50)))
    train, held = divide(report, 0.2)
    texts = [{(row.sentence1, row.sentence2) for row in part} for part in (train, held)]
    assert not texts[0] & texts[1]
    assert len(train) + len(held) == 100
    assert len(held) == 20
    paths = store(report, 0.2, tmp_path / "kept")
    assert paths == store(report, 0.2, tmp_path / "kept")
    assert [list(read_pairs(path).pairs) for path in paths] == [train, held]
    assert all(path.parent == tmp_path / "kept" and " " not in path.name for path in paths)


def test_single_conditions_are_batched_as_rows(tmp_path: Path) -> None:
    rows = [(f"a {i}", f"b {i}", "the x", 1 + i % 5) for i in range(40)]
    assert inspect(write(tmp_path / "t.csv", rows)).batching == "rows"


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (pairs(1)[:1] + pairs(2), COLUMNS, "at least 20|At least 20"),
        ([(f"a {i}", "b", "c", 3) for i in range(40)], COLUMNS, "Every label of t.csv is 3"),
        ([(f"a {i}", "b", "c", "") for i in range(40)], COLUMNS, "none has a label"),
        ([(f"a {i}", "b", "c", 9) for i in range(40)], COLUMNS, "Row 1"),
        ([(f"a {i}", "b", "c", 2) for i in range(40)], ("text1", "text2", "question", "score"), "has no column"),
        ([("same", "pair", f"c {i}", 1 + i % 5) for i in range(40)], COLUMNS, "too few different sentence pairs"),
    ],
)
def test_what_teaches_nothing_is_refused(tmp_path: Path, rows: list, columns: tuple, message: str) -> None:
    with pytest.raises(DataError, match=message):
        divide(inspect(write(tmp_path / "t.csv", rows, columns)), 0.2)


@pytest.mark.parametrize("share", [0, 0.6, -1, None, "half"])
def test_shares_have_bounds(tmp_path: Path, share: object) -> None:
    with pytest.raises(ConfigError, match="share"):
        divide(inspect(write(tmp_path / "t.csv", pairs(20))), share)
