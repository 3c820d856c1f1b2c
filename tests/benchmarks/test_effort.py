"""What is stored of the work of models stays where others are measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import effort
from condviz.evaluation.scoreboard import efforts


def test_models_that_are_not_named_keep_what_they_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "ASSETS", tmp_path)
    found = {"minilm": {"pair": 9.0, "many": 9.0}, "csr": {"pair": 8.0, "many": 8.0}}
    monkeypatch.setattr(effort, "run", lambda names: found if names == ["csr"] else {})
    monkeypatch.setattr(sys, "argv", ["effort", "--model", "csr", "--store"])
    effort.main()
    assert json.loads((tmp_path / "effort.json").read_text()) == efforts() | {"csr": found["csr"]}
