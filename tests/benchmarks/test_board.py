"""Stored scores as Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.board import (
    END,
    PRINTED,
    README,
    RESULTS,
    START,
    fill_document,
    format_board,
    format_groups,
    format_methods,
    format_summary,
)
from benchmarks.papers.tables import find_tables
from condviz.errors import ConfigError
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import PARTS, Board, read_board
from condviz.models.registry import list_models
from tests.evaluation.boards import SAMPLES, TEST, make_board, model_scores

ALL = list(PARTS)


def cells(markdown: str, model: str) -> list[list[str]]:
    rows = [line for line in markdown.splitlines() if line.startswith(f"| `{model}`")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def test_tables_of_accuracy_correlation_and_plain_similarity() -> None:
    markdown = format_board(make_board(), ["csr"], ALL)
    accuracy, spearman = cells(markdown, "csr")
    assert accuracy == ["`csr`", "73.0 [65.0, 81.0]"]
    assert spearman == ["`csr`", "33.1 [20.0, 44.3]", "84.0 [83.0, 85.0]"]
    assert "- scenes: scenes; only the sentences are new (20 of 300 pairs, seed 0)" in markdown
    assert "(20 pairs, seed 0)" in markdown
    assert "not trained" not in markdown


def test_parts_that_nobody_was_measured_on_have_no_column() -> None:
    head = format_board(make_board(), ["csr"], ALL).splitlines()[2]
    assert head == "| model | scenes |"
    assert cells(format_board(make_board(), ["csr"], ["test"]), "csr")[-1] == ["`csr`", "33.1 [20.0, 44.3]"]


def test_models_that_do_not_read_the_condition_are_not_given_an_accuracy_of_zero() -> None:
    blind = replace(TEST, equal_scores=TEST.pairs, pair_accuracy=Metric(0.0, 0.0, 0.0))
    board = make_board(minilm=model_scores(trained=False, parts={"test": blind}))
    markdown = format_board(board, ["minilm"], ALL)
    assert "| `minilm` \\* | all equal |" in markdown
    assert "\\* not trained." in markdown


def test_figures_on_other_rows_leave_a_dash_and_a_note() -> None:
    board = make_board(csr=model_scores(), case=model_scores())
    board = Board(
        {**SAMPLES, "test": replace(SAMPLES["test"], digest="new")},
        {**board.models, "case": model_scores(parts={"test": replace(TEST, digest="new")})},
    )
    markdown = format_board(board, ["csr", "case"], ALL)
    assert cells(markdown, "csr")[0] == ["`csr`", "–"]
    assert "csr was measured on other rows of scenes: measure it again." in markdown


def test_groups_are_listed_weakest_first() -> None:
    lines = format_groups(make_board(), "csr", ALL, "aspect").splitlines()
    assert lines[0] == "csr, scenes, by aspect:"
    assert lines[4:] == ["| sport | 12 | 12 | 41.7 | – |", "| mood | 20 | 15 | 80.0 | 40.0 |"]
    assert (
        format_groups(make_board(), "csr", ALL, "domain") == "csr: no part that was measured has more than one domain."
    )


def test_only_what_stands_between_the_marks_changes(tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    document.write_text(f"before\n{START}\nold \\1\n{END}\nafter\n")
    fill_document("new \\1 table", document)
    assert document.read_text() == f"before\n{START}\nnew \\1 table\n{END}\nafter\n"


def test_a_document_without_marks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("text")
    with pytest.raises(ConfigError, match="has no lines"):
        fill_document("x", tmp_path / "README.md")
    with pytest.raises(ConfigError, match="cannot be read"):
        fill_document("x", tmp_path / "NONE.md")


def test_the_short_table_leads_with_people_and_the_published_figure() -> None:
    parts = {"csts": replace(TEST, digest="p"), "tables": TEST}
    board = make_board(minilm=model_scores(trained=False), csr=model_scores(parts=parts), unknown=model_scores())
    board = Board(
        {**board.samples, "csts": replace(SAMPLES["test"], digest="p"), "tables": SAMPLES["test"]}, board.models
    )
    head, _, first, second = format_summary(board, ["minilm", "csr", "unknown"]).splitlines()
    assert head.startswith(
        "| model | C-STS: Spearman × 100 | published, SimCSE-large | C-STS: pair accuracy, % | free "
    )
    assert first == "| `csr` | 33.1 [20.0, 44.3] | 42.0±0.8 | 73.0 [65.0, 81.0] | 73.0 [65.0, 81.0] |"
    assert second == "| `unknown` | – | – | – | – |"


def test_the_published_figures_stand_in_the_tables_of_the_papers() -> None:
    for place in PRINTED.values():
        table, _, row = place.partition("/")
        ((_, found),) = find_tables(table)
        assert row in {one.name for one in found.rows}


@pytest.mark.parametrize("document", [README, RESULTS])
def test_the_documents_have_the_marks(document: Path) -> None:
    content = document.read_text(encoding="utf-8")
    assert content.count(START) == content.count(END) == 1
    assert content.index(START) < content.index(END)


def test_the_documents_show_what_is_stored() -> None:
    board = read_board()
    models = [name for name in list_models() if name in board.models]
    assert format_board(board, models, ALL) in RESULTS.read_text(encoding="utf-8")
    assert format_summary(board, models) in README.read_text(encoding="utf-8")
    assert format_methods() in README.read_text(encoding="utf-8")
