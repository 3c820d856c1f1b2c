"""The command `benchmark models`: streams, files, what is left out; over tiny models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import board
from benchmarks.board import outdated, write_board
from condviz.errors import CheckpointError, UnknownModelError
from condviz.evaluation.scoreboard import read_board
from condviz.methods import METHODS
from tests.commands import Command
from tests.evaluation.boards import make_board
from tests.tiny import tiny_backbone

FEW = ["--pairs", "10", "--resamples", "20"]


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Put two tiny models and a broken one into the registry, and no corpora; gives what is loaded."""
    encoder = tiny_backbone()
    methods = {"minilm": "unconditional", "bi-encoder": "bi-encoder"}
    loaded: list[str] = []

    def describe(name: str) -> None:
        if name not in {*methods, "broken"}:
            raise UnknownModelError(f"There is no model {name!r}. Models: {', '.join(methods)}.")

    def load(name: str, *, device: str, precision: str) -> object:
        loaded.append(f"{name} {precision}")
        if name == "broken":
            raise CheckpointError("checkpoints/broken/model.safetensors is damaged. Copy it again.")
        known = name.rpartition("/")[2]
        cls = METHODS[methods[known]]
        model = cls(encoder, cls.config_cls()).eval()
        model.info = replace(model.info, name=known)
        return model

    monkeypatch.setattr("condviz.models.registry.describe", describe)
    monkeypatch.setattr("condviz.models.registry.load", load)
    monkeypatch.setattr("condviz.models.registry.list_models", lambda: ["minilm", "broken", "bi-encoder"])
    monkeypatch.setenv("CONDVIZ_DATA", str(tmp_path / "none"))
    return loaded


def test_all_models_and_parts_that_there_are(models: list[str], tmp_path: Path, bench: Command) -> None:
    out = tmp_path / "scores.json"
    captured = bench("models", *FEW, "--out", out)
    assert "note: C-STS is left out:" in captured.err
    assert "note: reviews (CEBaB) is left out:" in captured.err
    assert "note: reviews (MAMS) is left out:" in captured.err
    assert "note: broken is left out: checkpoints/broken" in captured.err
    assert "E2E" not in captured.err
    assert "bi-encoder, new aspects: pair accuracy " in captured.err
    assert "| model | scenes | unseen wordings | new aspects | own aspects | unseen domains |" in captured.out
    assert "| `minilm` \\* | all equal |" in captured.out
    assert models == ["minilm float32", "broken float32", "bi-encoder float32"]
    stored = read_board(out)
    assert list(stored.models) == ["minilm", "bi-encoder"]
    assert stored.find("minilm", "plain").spearman.value
    assert str(tmp_path) not in out.read_text()


def test_a_run_repeats_and_leaves_the_rest_as_it_is(tmp_path: Path, bench: Command) -> None:
    out = tmp_path / "scores.json"
    write_board(make_board(), out)
    words = ["models", "--model", "bi-encoder", "--part", "test", *FEW, "--out", out]
    bench(*words)
    first = out.read_bytes()
    bench(*words)
    assert out.read_bytes() == first
    stored = read_board(out)
    assert set(stored.models) == {"csr", "bi-encoder"}
    assert stored.models["csr"] == make_board().models["csr"]
    assert outdated(stored, "csr") == ["test"]


def test_stored_scores_are_printed_without_a_model(models: list[str], tmp_path: Path, bench: Command) -> None:
    out = tmp_path / "scores.json"
    write_board(make_board(), out)
    printed = bench("models", "--stored", "--by", "aspect", "--part", "test", "--out", out).out
    assert "| `csr` | 73.0 [65.0, 81.0] |" in printed
    assert "csr, scenes, by aspect:" in printed
    assert models == []


def test_the_tables_of_all_models_go_into_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Command
) -> None:
    results, readme = tmp_path / "results.md", tmp_path / "README.md"
    for name, document in (("RESULTS", results), ("README", readme)):
        document.write_text("\n".join([*board.MARKS, *board.METHOD_MARKS, ""]))
        monkeypatch.setattr(board, name, document)
    out = tmp_path / "scores.json"
    write_board(make_board(), out)
    words = ["--model", "bi-encoder", "--part", "own_aspects", *FEW, "--out", out, "--docs"]
    assert "`csr`" not in bench("models", *words).out
    assert "| `csr` | 73.0 [65.0, 81.0] | – |" in results.read_text()
    assert "| `csr` |" in readme.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "nobody"], "There is no model 'nobody'"),
        (["--model", "broken", "--part", "test", *FEW], "is damaged"),
        (["--part", "dev"], "There is no part 'dev' of the benchmark. There are: csts, "),
        (["--part", "mams"], "cannot be read"),
        (["--part", "test", "--pairs", "3"], "at least 10 sentence pairs, got 3"),
        (["--part", "test", *FEW[:2], "--resamples", "-1"], "resamples must be a whole number from 0"),
        (["--stored"], "holds no scores yet. Run: python -m benchmarks models"),
        (["--model", "bi-encoder", "--model", "copy/bi-encoder", "--part", "test", *FEW], "are called 'bi-encoder'"),
    ],
)
def test_user_errors_are_one_line(words: list[str], message: str, tmp_path: Path, bench: Command) -> None:
    assert message in bench.refuse("models", *words, "--out", tmp_path / "scores.json")


def test_stored_scores_of_a_model_that_has_none_are_refused(tmp_path: Path, bench: Command) -> None:
    out = tmp_path / "scores.json"
    write_board(make_board(), out)
    assert "There are no scores of 'case'" in bench.refuse("models", "--stored", "--model", "case", "--out", out)


def test_a_damaged_file_is_not_written_over(tmp_path: Path, bench: Command) -> None:
    out = tmp_path / "scores.json"
    out.write_text(json.dumps({"format": 7}))
    assert "has format 7" in bench.refuse("models", "--part", "test", *FEW, "--out", out)
    assert json.loads(out.read_text()) == {"format": 7}


def test_a_wrong_name_is_told_before_the_models_before_it_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Command
) -> None:
    monkeypatch.setattr("benchmarks.ranks.evaluate_links", lambda *_, **__: pytest.fail("it was measured"))
    words = ["links", "--graph", "everyday", "--model", "minilm", "--model", "nobody"]
    assert "There is no model 'nobody'" in bench.refuse(*words, "--out", tmp_path / "kgc.json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["papers", "show", "hyper-cl:table-5", "--html", "no/x.html"], "The folder of no/x.html does not exist"),
        (["papers", "show", "hyper-cl:table-99"], "There is no table 'hyper-cl:table-99'"),
    ],
)
def test_errors_of_other_commands_are_one_line(words: list[str], message: str, bench: Command) -> None:
    assert message in bench.refuse(*words)
