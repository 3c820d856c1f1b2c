"""`python -m benchmarks tables`: every rule of the tables of scenes is checked, and what they count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.corpora import measure_order
from condviz.data import scene_tables
from tests.commands import Command
from tests.data.test_scene_tables import broken, make_entry, write


def test_rows_are_all_told_pairs_under_all_conditions(tmp_path: Path) -> None:
    first = scene_tables.load_tables(write(tmp_path, [make_entry(0)]))
    rows = tables.rated_rows(first)
    assert len(rows) == 4 * 15 + 10
    assert Counter(row.label for row in rows)[5] == 6 + 4 + 3 + 6 + 6
    assert rows == tables.rated_rows(first)
    assert [row.condition for row in rows] != [row.condition for row in tables.rated_rows(first, seed=1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("kind", "the kind is 'soft'"),
        ("short", "3 words, allowed are 8 to 30"),
        ("one value", "has 1 values"),
        ("nulls", "has 2 nulls"),
        ("twice", "occurs twice"),
        ("no contrast", "only 0 pairs agree"),
    ],
)
def test_each_broken_rule_is_named(change: str, message: str, tmp_path: Path) -> None:
    (problem, *_) = tables.find_problems(scene_tables.load_tables(write(tmp_path, [broken(change)])))
    assert problem.startswith("nat-0001: ")
    assert message in problem


def test_what_two_tables_share_is_named(tmp_path: Path) -> None:
    problems = tables.find_problems(scene_tables.load_tables(write(tmp_path, [make_entry(1), make_entry(1)])))
    assert problems[0] == "nat-0001: the id is used twice"
    assert sum(problem.startswith("this sentence occurs twice") for problem in problems) == 6
    assert "5 aspects have wordings of other tables" in problems[-1]


def test_the_command_counts_and_fails_on_problems(tmp_path: Path, bench: Command) -> None:
    write(tmp_path, [make_entry(number) for number in range(3)])
    assert "by length" in bench("tables", "--folder", tmp_path).out.splitlines()[0]
    (tmp_path / "second").mkdir()
    code, out, err = bench.run("tables", "--folder", write(tmp_path / "second", [broken("short")]))
    assert code == 2
    assert "nat-0001: 3 words" in out
    assert "Broken rules: 1 in 1 tables" in err


@pytest.mark.skipif(not scene_tables.TABLES.is_dir(), reason="no tables yet")
def test_the_shipped_tables_keep_the_rules_and_have_no_shortcut() -> None:
    shipped = scene_tables.load_tables()
    assert tables.find_problems(shipped) == []
    found = measure_order(tables.rated_rows(shipped))
    assert found == pytest.approx({"wording": 0.5, "overlap": 0.5, "length": 0.5}, abs=0.08)
