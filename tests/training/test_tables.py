"""Tables that people bring: columns are found, what is left out is named, and no sentence pair is in both parts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from condviz.data.pairs import PAIR_COLUMNS as COLUMNS
from condviz.data.pairs import read_pairs
from condviz.errors import ConfigError, DataError
from condviz.training.data import RatedTable, divide, read_rated
from condviz.training.data import store_parts as store

SAME = dict(zip(COLUMNS, COLUMNS, strict=True))


def write(path: Path, rows: list[tuple[object, ...]], columns: tuple[str, ...] = COLUMNS) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def pairs(count: int) -> list[tuple[object, ...]]:
    return [(f"a {i}", f"b {i}", c, label) for i in range(count) for c, label in (("the x", 1), ("the y", 4))]


def read(folder: Path, rows: list[tuple[object, ...]], columns: Any = SAME) -> RatedTable:
    return read_rated(read_pairs(write(folder / "t.csv", rows), columns=columns, skip_bad=True), "t.csv")


def test_a_good_table_is_counted(tmp_path: Path) -> None:
    rows = [*pairs(30), ("a 0", "b 0", "the x", 1), ("a 1", "b 1", "the x", 3), ("a 2", "b 2", "the z", "")]
    table = read(tmp_path, rows)
    assert (len(table.rows), table.paired, table.several, table.batching) == (60, 30, 30, "pairs")
    third = [*rows, ("a 3", "b 3", "the z", 2)]
    assert (read(tmp_path, third).paired, read(tmp_path, third).several) == (29, 30)
    assert next(row.label for row in table.rows if (row.sentence1, row.condition) == ("a 1", "the x")) == 2
    assert len(table.notes) == 2
    single = [(f"a {i}", f"b {i}", "the x", 1 + i % 5) for i in range(40)]
    assert read(tmp_path, single).batching == "rows"


def test_decimal_commas_are_read(tmp_path: Path) -> None:
    rows = [(f"a {i}", f"b {i}", "the x", f"{1 + i % 4},5") for i in range(40)]
    table = read(tmp_path, rows)
    assert {row.label for row in table.rows} == {1.5, 2.5, 3.5, 4.5}


def test_both_parts_share_no_sentence_pair_and_come_back(tmp_path: Path) -> None:
    rows = [*pairs(50), ("=1+1", '-b, "quoted"', "the x", 2), ("=1+1", '-b, "quoted"', "the y", 3)]
    table = read(tmp_path, rows)
    train, held = divide(table, 0.2)
    texts = [{(row.sentence1, row.sentence2) for row in part} for part in (train, held)]
    assert not texts[0] & texts[1]
    assert (len(train) + len(held), len(held)) == (102, 20)
    paths = store(table, 0.2, tmp_path / "kept")
    assert paths == store(table, 0.2, tmp_path / "kept")
    assert [list(read_pairs(path).pairs) for path in paths] == [train, held]
    assert paths[0].parent.parent == tmp_path / "kept"


def test_a_pair_in_either_order_is_on_one_side(tmp_path: Path) -> None:
    rows = [row for i in range(30) for row in ((f"a {i}", f"b {i}", "the x", 1), (f"b {i}", f"a {i}", "the y", 5))]
    sides = [{frozenset((row.sentence1, row.sentence2)) for row in part} for part in divide(read(tmp_path, rows), 0.2)]
    assert not sides[0] & sides[1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pairs(2), "At least 20"),
        ([(f"a {i}", "b", "c", 3) for i in range(40)], r"Every rating of t\.csv is 3"),
        ([(f"a {i}", "b", "c", "") for i in range(40)], "has a rating"),
        ([(f"a {i}", "b", "c", 9) for i in range(40)], "from 9 to 9"),
    ],
)
def test_tables_that_teach_nothing(tmp_path: Path, rows: list[tuple[object, ...]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, rows)


def test_what_else_is_refused(tmp_path: Path) -> None:
    table = read(tmp_path, pairs(20))
    for share in (0, 0.6, "much"):
        with pytest.raises(ConfigError, match="validation share"):
            divide(table, share)
