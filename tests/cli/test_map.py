"""The command map with a tiny model: what it prints and writes, and errors before any model is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from condviz.analysis import compare  # noqa: F401 (before there is a stand-in for the `load` that these take)
from condviz.cli import score, store  # noqa: F401
from condviz.models import registry
from tests.commands import Command
from tests.tiny import CONDITIONS, SENTENCES, tiny_model


@pytest.fixture(autouse=True)
def _a_tiny_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model("hyper-cl")
    monkeypatch.setattr(registry, "load", lambda name, device: model)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"{text} {end},{condition},{'xy'[i % 2]}" for end, condition in zip("abc", CONDITIONS, strict=False)
            for i, text in enumerate(SENTENCES)]  # fmt: skip
    path = tmp_path / "sentences.csv"
    path.write_text("\n".join(["text,condition,value", *rows]) + "\n")
    return path


def test_measures_are_printed_and_files_written(table: Path, tmp_path: Path, cli: Command) -> None:
    page, record = tmp_path / "map.html", tmp_path / "map.json"
    words = ["map", table, "--method", "pca", "--html", page, "--json", record, "--colour", "value"]
    printed = cli(*words).out
    assert "12 points, 3 conditions" in printed
    for start in ("before", "after", "random matrices", "the sport"):
        assert start in printed
    made = json.loads(record.read_text())
    assert len(made["texts"]) == 12
    assert made["projection"]["method"] == "pca"
    assert page.read_text().lower().startswith("<!doctype html>")


def test_conditions_can_be_given(table: Path, cli: Command) -> None:
    captured = cli("map", table, "--method", "pca", "--condition", "the mood", "--sample", "5")
    assert "5 points, 1 condition\n" in captured.out
    assert "there is only one" in captured.out
    assert "random sample of 5 of 12" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--neighbors", "1"], "n_neighbors must be"),
        (["--text-column", "sentence"], "no column 'sentence'"),
        (["--html", "/no/such/folder/map.html"], "does not exist"),
        (["--condition", " "], "Condition 1 is empty"),
        (["--sample", "0"], "sample must be a whole number of at least 1"),
    ],
)
def test_errors_are_one_line(words: list[str], message: str, table: Path, cli: Command) -> None:
    assert message in cli.refuse("map", table, *words)


def test_options_of_tables_are_refused_for_the_example(cli: Command) -> None:
    assert "leave out --condition" in cli.refuse("map", "scenes", "--condition", "the sport")
