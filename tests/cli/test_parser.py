"""What all commands have in common: --json, files and standard output, suggestions, examples, --quiet, completion."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pytest
from annotated_doc import Doc
from annotated_types import Interval

from condviz.cli import options
from condviz.cli.main import EXAMPLES, _parsers, build_parser
from condviz.errors import ConfigError
from tests.commands import Command

TABLE = """sentence1,sentence2,condition,label
A man surfs.,A woman skis.,the sport,1
A man surfs.,A woman surfs.,the sport,5
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "pairs.csv"
    path.write_text(TABLE)
    return str(path)


def test_every_command_has_examples_that_parse() -> None:
    names = {parser.prog.removeprefix("condviz").strip() for parser in _parsers(build_parser())}
    assert names == EXAMPLES.keys()
    for line in (line for lines in EXAMPLES.values() for line in lines):
        words = shlex.split(line)
        end = next((place for place, word in enumerate(words) if word in ("|", "<", ">")), len(words))
        assert callable(build_parser().parse_args(words[:end]).command), line


def test_the_help_of_a_command_ends_with_its_examples(cli: Command) -> None:
    assert cli("store", "twins", "--help").out.endswith(f"examples:\n  condviz {EXAMPLES['store twins'][0]}\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [("scor x", "score"), ("score a b --modle csr", "--model"), ("store gruops", "groups"), ("evalute", "evaluate")],
)
def test_what_may_have_been_meant_is_said(words: str, meant: str, cli: Command) -> None:
    assert f"Did you mean {meant}" in cli.refuse(*words.split())


@pytest.mark.parametrize("form", [["--json"], ["--json", "-"], ["--json=-"]])
@pytest.mark.parametrize("command", ["models", "evaluate"])
def test_json_goes_to_standard_output_alone(command: str, form: list[str], table: str, cli: Command) -> None:
    words = {"models": [], "evaluate": ["--data", table, "--model", "minilm", "--resamples", "0"]}[command]
    assert json.loads(cli(command, *form, *words).out if command == "models" else cli(command, *words, *form).out)


@pytest.mark.parametrize("form", ["--json={}", "--json {}"])
def test_json_goes_into_a_file(form: str, table: str, tmp_path: Path, cli: Command) -> None:
    path = tmp_path / "made.json"
    printed = cli("evaluate", "--data", table, "--model", "minilm", *form.format(path).split()).out
    assert json.loads(path.read_text())
    assert "Spearman" in printed
    cli("models", f"--json={path}")
    assert json.loads(path.read_text())[0]["name"] == "minilm"


def test_sentences_behind_json_stay_sentences(cli: Command) -> None:
    words = ["A man surfs.", "A woman skis.", "--condition", "the sport", "--model", "minilm"]
    assert json.loads(cli("score", "--json", *words).out)["sentence1"] == "A man surfs."


def test_a_table_goes_to_standard_output(table: str, cli: Command) -> None:
    words = ["evaluate", "--data", table, "--model", "minilm", "--out", "-"]
    lines = cli(*words).out.splitlines()
    assert lines[0].endswith("score_minilm")
    assert len(lines) == 3
    assert "--json and --out are both -" in cli.refuse(*words, "--json", "-")


def test_quiet_leaves_out_notes(table: str, cli: Command) -> None:
    words = ["errors", table, "--model", "minilm", "--resamples", "0"]
    assert "note:" in cli(*words).err
    assert cli(*words, "--quiet").err == ""


def test_an_option_of_a_function_is_one_of_its_command() -> None:
    def toy(
        *,
        points: Annotated[int, Interval(ge=2, le=9), Doc("How many")] = 5,
        name: Annotated[str | None, Doc("Whose")] = None,
        sorted: Annotated[bool | None, Doc("In order (default: found out)")] = None,
        ends: Annotated[tuple[float, float] | None, Doc("From where to where")] = None,
        weights: Annotated[Mapping[str, float] | None, Doc("Of each")] = None,
    ) -> None:
        """Do nothing."""

    parser = argparse.ArgumentParser(parents=[options.of_function(toy, points="count")])
    assert "How many: a whole number from 2 to 9 (default: 5)" in " ".join(parser.format_help().split())
    blank = {"points": 5, "name": None, "sorted": None, "ends": None, "weights": None}
    assert options.given(parser.parse_args([]), toy) == blank
    words = ["--no-sorted", "--ends", "0", "2.5", "--weights", "a=1", "b=0.5"]
    said = {"sorted": False, "ends": (0.0, 2.5), "weights": {"a": 1.0, "b": 0.5}}
    assert options.given(parser.parse_args(words), toy) == blank | said
    with pytest.raises(SystemExit):
        parser.parse_args(["--weights", "a=much"])
    for word in ("--points", "--count"):
        assert options.given(parser.parse_args([word, "7"]), toy)["points"] == 7
    with pytest.raises(ConfigError, match="points must be a whole number from 2 to 9"):
        options.given(parser.parse_args(["--points", "1"]), toy)


def test_words_has_its_former_name() -> None:
    for name in ("words", "router"):
        assert build_parser().parse_args([name, "A man surfs.", "--condition", "the sport"]).sentences


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_can_complete_commands(shell: str, cli: Command) -> None:
    shown = cli("completion", shell).out
    assert "evaluate" in shown
    assert "--resamples" in shown
