"""Tables, notes and bars of the commands."""

from __future__ import annotations

import pytest

from condviz.cli.options import format_table, progress_bar, tell


def test_a_table_is_aligned() -> None:
    rows = [("a", "1", "x"), ("longer", "12", "")]
    lines = ["name     n  what", "------  --  ----", "a        1  x", "longer  12"]
    assert format_table(("name", "n", "what"), rows, right={1}).splitlines() == lines
    assert format_table(("name", "n"), [("a", "10")]).splitlines() == ["name   n", "----  --", "a     10"]


def test_without_rows_the_head_stays() -> None:
    assert format_table(("name", "n"), []).splitlines() == ["name  n", "----  -"]


def test_notes_and_bars_leave_the_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    tell("one", "two")
    with progress_bar("model", "row") as update:
        update(1, 2)
        update(2, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "note: one\nnote: two\n"
