"""The tables of scenes: every line has the promised form, ids and wordings are unique."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

TABLES = Path(__file__).parents[1] / "assets" / "tables"
FILES = sorted(TABLES.glob("*.jsonl"))
LATER = [path for path in FILES if not path.stem.startswith("hard")]


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def repeated(texts: list[str]) -> list[str]:
    return [text for text, count in Counter(text.casefold() for text in texts).items() if count > 1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_form_of_every_table(path: Path) -> None:
    for table in read(path):
        assert set(table) == {"id", "kind", "domain", "sentences", "aspects"}, table["id"]
        assert table["kind"] == path.stem.split("-")[0]
        assert len(table["sentences"]) == 6
        assert len(table["aspects"]) == 5
        for aspect in table["aspects"]:
            assert set(aspect) == {"wordings", "values"}
            assert len(aspect["wordings"]) == 3
            told = [value for value in aspect["values"] if value is not None]
            assert len(aspect["values"]) == 6
            assert len(told) >= 5, (table["id"], aspect["wordings"][0])
            assert len(set(told)) in (2, 3), (table["id"], aspect["wordings"][0])


@pytest.mark.parametrize("path", LATER, ids=lambda path: path.stem)
def test_sentences_are_whole(path: Path) -> None:
    sentences = [sentence for table in read(path) for sentence in table["sentences"]]
    assert all(8 <= len(sentence.split()) <= 30 for sentence in sentences)
    assert all(sentence == " ".join(sentence.split()) for sentence in sentences)


@pytest.mark.parametrize("path", LATER, ids=lambda path: path.stem)
def test_no_two_aspects_divide_the_sentences_alike(path: Path) -> None:
    for table in read(path):
        splits = [tuple(aspect["values"].index(value) for value in aspect["values"]) for aspect in table["aspects"]]
        assert len(set(splits)) == 5, table["id"]


def test_nothing_occurs_twice() -> None:
    tables = [table for path in FILES for table in read(path)]
    assert not repeated([table["id"] for table in tables])
    assert not repeated([sentence for table in tables for sentence in table["sentences"]])
    later = [table for table in tables if table["kind"] != "hard"]
    wordings = [wording for table in later for aspect in table["aspects"] for wording in aspect["wordings"]]
    assert not repeated(wordings)


def test_readme_counts_the_tables() -> None:
    text = (TABLES / "README.md").read_text(encoding="utf-8")
    for path in FILES:
        assert f"| `{path.name}` | {len(read(path))} |" in text
