"""The command router: what it prints."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from condviz.analysis import words  # noqa: F401 (before `load` is replaced, which it takes by name)
from condviz.methods.csr import CSR
from condviz.models import registry
from tests.commands import Command
from tests.tiny import SENTENCES, tiny_model

ARGUMENTS = ["router", SENTENCES[0], SENTENCES[1], "--condition", "the sport", "--condition", "the mood"]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> CSR:
    found = tiny_model("csr")

    def load(name: str, **_: str) -> CSR:
        return found.make_variant(name.partition("@")[2]) if "@" in name else found

    monkeypatch.setattr(registry, "load", load)
    return found


def test_text_has_a_line_for_each_word_and_a_column_for_each_condition(model: CSR, cli: Command) -> None:
    out = cli(*ARGUMENTS, "--delete", "1").out
    weights = model.token_weights(SENTENCES[0], ["the sport", "the mood"]).weights[-1]
    line = next(line.split() for line in out.splitlines() if line.startswith("man "))
    assert line[1:] == [f"{value:.3f}" for value in weights[:, 1]]
    assert "[1] the sport" in out
    assert "without as many random word" in out


def test_json_is_the_answer_of_the_endpoint(model: CSR, cli: Command) -> None:
    record = json.loads(cli(*ARGUMENTS, "--json", "--delete", "2", "--model", "csr", "--model", "csr@hidden").out)
    assert [found["model"] for found in record["models"]] == ["csr", "csr@hidden"]
    assert record["models"][0]["deletion"]["words"] == 2
    weights = model.token_weights(SENTENCES[1], record["conditions"]).weights
    np.testing.assert_allclose(record["models"][0]["sentences"][1]["weights"], weights, atol=1e-6)


def test_csv_can_be_read_back(model: CSR, cli: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(cli(*ARGUMENTS, "--csv").out)))
    assert len(rows) == 2 * sum(len(sentence.split()) for sentence in SENTENCES[:2])


def test_figures_are_a_page_of_their_own(model: CSR, tmp_path: Path, cli: Command) -> None:
    out = tmp_path / "figures.html"
    cli(*ARGUMENTS[:2], "<b>bold</b>", *ARGUMENTS[3:], "--figures", str(out))
    page = out.read_text(encoding="utf-8")
    assert page.count("of the paper.</b>") == 3 * 2 * 2  # figures, sentences, conditions
    assert "<b>bold</b>" not in page
    cli.refuse(*ARGUMENTS, "--figures", str(tmp_path / "nowhere" / "figures.html"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["router", "a", "b", "c", "--condition", "d"], "One or two sentences"),
        (["router", "a cat"], "There is no condition"),
        ([*ARGUMENTS, "--model", "csr", "--delete", "99"], "number from 1 to 10"),
    ],
)
def test_bad_input_is_one_line(model: CSR, cli: Command, arguments: list[str], message: str) -> None:
    assert message in cli.refuse(*arguments)
