"""What the README shows first comes out as it says, and the examples of the API run."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

import condviz
from condviz.cli import main as cli
from condviz.evaluation.scoreboard import fast_encoder
from condviz.types import Comparison

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LEFT_OUT = ("condviz.train(", "gradio_client", *(() if find_spec("lance") else ("build_store",)))
"""What takes hours, needs a running page, or an extra that is not installed."""
CLOSE = 0.02
"""bfloat16 differs from float32 by less."""


def stated_scores() -> dict[str, float]:
    """Return condition -> score, as the table under the example says."""
    rows = re.findall(r"^\| ([\w ]+) \| (-?\d\.\d\d) \|$", README, re.MULTILINE)
    return {condition: float(score) for condition, score in rows}


@pytest.fixture(scope="module")
def result() -> Comparison:
    names: dict[str, object] = {}
    exec(re.search(r"```python\n(.*?)```", README, re.DOTALL)[1], names)
    return names["result"]


def test_the_example_uses_the_default_model(result: Comparison) -> None:
    infos = [condviz.describe(name) for name in condviz.list_models()]
    assert [model.name for model in result.models] == [fast_encoder(infos)]


def test_the_example_comes_out_as_stated(result: Comparison) -> None:
    frame = result.to_frame()
    found = dict(zip(frame["condition"].fillna("none"), frame["score"], strict=True))
    stated = stated_scores()
    assert set(stated) == set(found)
    for condition, score in stated.items():
        assert found[condition] == pytest.approx(score, abs=CLOSE)
    assert found["the number of people"] > found["none"] > max(found["the sport"], found["the time of day"])


def test_the_first_command_gives_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    command = re.search(r"python -m condviz (score .*?[^\\])\n", README, re.DOTALL)[1].replace("\\\n", " ")
    assert cli.main([*shlex.split(command), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    for condition, score in zip(printed["conditions"], printed["scores"][0], strict=True):
        assert score == pytest.approx(stated_scores()[condition], abs=CLOSE)


def test_the_examples_of_the_api_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand, over fewer rows."""
    monkeypatch.chdir(tmp_path)
    shown = Path("assets/reference_pairs.csv")
    shown.parent.mkdir()
    shown.write_text("\n".join((ROOT / shown).read_text(encoding="utf-8").splitlines()[:60]), encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        if not any(left_out in block for left_out in LEFT_OUT):
            exec(block, names)
    assert names["vectors"].shape == (2, names["model"].backbone.hidden_size)


def run_command(line: str) -> int:
    """Run a command of this package as a shell does, with files for its input and output, in this process."""
    words = shlex.split(line.removeprefix("python -m condviz "))
    with ExitStack() as files, pytest.MonkeyPatch.context() as patch:
        for sign, stream, mode in (("<", "stdin", "r"), (">", "stdout", "w")):
            if sign in words:
                place = words.index(sign)
                _, name = words[place : place + 2]
                del words[place : place + 2]
                patch.setattr(sys, stream, files.enter_context(open(name, mode, encoding="utf-8")))
        return cli.main(words)


@pytest.mark.slow
def test_ones_own_table_in_five_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "own-table.md").read_text(encoding="utf-8")
    first, *blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    subprocess.run(["bash", "-euo", "pipefail", "-c", first], check=True)
    for line in "".join(blocks).splitlines():
        assert run_command(line) == 0, line
    rows = list(csv.DictReader((tmp_path / "scored.csv").open(encoding="utf-8")))
    assert len(rows) == 4
    assert "<!doctype html>" in (tmp_path / "report.html").read_text(encoding="utf-8").lower()
    names: dict[str, object] = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    assert [round(score, 4) for score in names["table"]["score"]] == [
        round(float(row["score_bi-encoder-csts"]), 4) for row in rows[2:]
    ]


def test_the_documents_list_every_endpoint_with_its_parameters() -> None:
    from condviz.ui.app import Settings, build_app

    found = build_app(Settings(preload=False)).get_api_info()["named_endpoints"]
    served = {
        name[1:]: [parameter["parameter_name"] for parameter in about["parameters"]] for name, about in found.items()
    }
    http = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split("## HTTP\n")[1].split("\n## ")[0]
    told = {name: re.findall(r"\w+|\.{3}", inside) for name, inside in re.findall(r"`/(\w+)\(([^)]*)\)`", http)}
    assert set(told) == set(served)
    for name, parameters in told.items():
        more = parameters[-1:] == ["..."]
        written = parameters[:-1] if more else parameters
        assert served[name][: len(written) if more else None] == written, name
