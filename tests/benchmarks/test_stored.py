"""Scores that are stored come back exactly, for the rows that they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import stored as command
from condviz.analysis import reference
from condviz.analysis.errors import findings
from tests.analysis.errors.toy import toy_dataset
from tests.stand_ins import LengthModel


class Weighted(LengthModel):
    """A model whose scores are no round numbers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.weights_hash = f"weights of {name}"

    def score(self, *columns: list[str], **options: object) -> np.ndarray:
        return (super().score(*columns) / np.float32(3)).astype(np.float32)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def load_asked(options: object) -> Iterator[tuple[str, Weighted]]:
        return ((name, Weighted(name)) for name in options.model or ("a", "b"))

    monkeypatch.setattr(findings, "STORED_SCORES", tmp_path / "scores.json")
    monkeypatch.setattr(reference, "SCORES", tmp_path / "reference.json")
    monkeypatch.setattr(command, "corpus_dataset", lambda corpus, part: toy_dataset(12))
    monkeypatch.setattr(command, "load_asked", load_asked)
    return tmp_path / "scores.json"


def test_scores_come_back_exactly(file: Path) -> None:
    assert findings.read_stored(toy_dataset(12)) == {}
    command.main(["errors"])
    data = toy_dataset(12)
    found = findings.read_stored(data)
    assert list(found) == ["a", "b"]
    assert found["b"][0] == "weights of b"
    np.testing.assert_array_equal(found["a"][1], Weighted("a").score(*data.texts()))


def test_other_rows_get_no_scores(file: Path) -> None:
    command.main(["errors"])
    assert findings.read_stored(toy_dataset(13)) == {}


def test_one_model_can_be_added(file: Path) -> None:
    command.main(["errors"])
    command.main(["errors", "--model", "c"])
    assert list(findings.read_stored(toy_dataset(12))) == ["a", "b", "c"]
    assert len(json.loads(file.read_text())["models"]["c"]["scores"]) == 4 * 24 * 4 // 3


def test_the_yardstick_is_stored_in_the_form_that_the_page_reads(file: Path) -> None:
    command.main(["reference", "--model", "a"])
    content = json.loads(reference.SCORES.read_text())
    assert content["pairs"] == reference.pairs_digest()
    assert content["models"]["a"]["weights"] == "weights of a"
    assert len(content["models"]["a"]["scores"]) == len(reference.reference_pairs())
