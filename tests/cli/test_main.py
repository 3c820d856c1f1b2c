"""The command line: what goes to which stream, exit codes, files; over models that need no weights."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import condviz
import condviz.cli.main
import condviz.cli.score
import condviz.cli.store  # before there are stand-ins for what they import
from condviz.analysis import links, sorting  # noqa: F401 (before the registry is replaced: they take its `load`)
from condviz.data import corpora
from condviz.errors import CheckpointError, TruncationWarning, UnknownModelError
from condviz.types import Comparison
from tests.commands import Command
from tests.stand_ins import LengthModel

ROOT = Path(__file__).parent.parent.parent
PAIR = ("A man surfs.", "A woman skis.")
TABLE = "id,sentence1,sentence2,condition,label\n1,a b,a c,x,1\n2,a b,a c,xyz,5\n3,d,e,xy,3\n4,d,e,x,\n"


class Model(LengthModel):
    """Also warns and stops on certain conditions."""

    def applies(self, sentences: Sequence[str], condition: str) -> np.ndarray:
        return np.array([[len(text) * len(condition) / 10] for text in sentences])

    def score(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str], **options: Any
    ) -> Any:
        if "interrupt" in conditions:
            raise KeyboardInterrupt
        if "cut" in conditions:
            warnings.warn("sentence 1 was cut\nafter 512 tokens", TruncationWarning, stacklevel=2)
        return super().score(sentences1, sentences2, conditions, **options)


def compare(models: Sequence[Model], sentence1: str, sentence2: str, conditions: Sequence[str]) -> Comparison:
    shape = (len(models), len(conditions))
    scores = np.array(
        [model.score([sentence1] * len(conditions), [sentence2] * len(conditions), conditions) for model in models],
        np.float32,
    )
    infos = tuple(model.info for model in models)
    return Comparison(
        sentence1=sentence1,
        sentence2=sentence2,
        conditions=tuple(conditions),
        models=infos,
        scores=scores,
        unconditional=np.full(len(models), 0.5, np.float32),
        percentiles=np.full(shape, 71.0, np.float32),
        unconditional_percentiles=np.full(len(models), 50.0, np.float32),
        applies=np.full((2, len(conditions)), 0.25, np.float32),
        notes=("a note",),
    )


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["words", "trained", "broken"]

    def load(name: str | Model, *, device: str = "auto", precision: str = "auto") -> Model:
        if isinstance(name, Model):
            return name
        if registry.ON in name:
            raise UnknownModelError(f"cannot build {name}")
        if name == "broken":
            raise CheckpointError("checkpoints/broken/model.safetensors is cut off. Copy it again.")
        if name not in names:
            raise UnknownModelError(f"There is no model {name!r}. There are: {', '.join(names)}.")
        return Model(name, trained=name == "trained")

    registry, comparing = ModuleType("condviz.models.registry"), ModuleType("condviz.analysis.compare")
    registry.list_models = lambda: names
    registry.link_models, registry.ON = list, " on "
    registry.describe = lambda name: Model(name).info
    registry.load = load
    comparing.compare = compare
    monkeypatch.setitem(sys.modules, "condviz.models.registry", registry)
    monkeypatch.setitem(sys.modules, "condviz.analysis.compare", comparing)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "pairs.csv"
    path.write_text(TABLE)
    return str(path)


def test_score_prints_a_matrix(cli: Command) -> None:
    words = ["score", *PAIR, "--condition", "the sport", "--condition", "the mood", "--model", "words"]
    captured = cli(*words)
    assert "[1] the sport\n[2] the mood\n" in captured.out
    assert "words *         0.500  0.900 +0.400  71%  0.800 +0.300  71%\n" in captured.out
    assert "* not trained" in captured.out
    assert captured.err == "note: a note\n"


def test_score_says_whether_the_sentences_tell_the_condition(cli: Command) -> None:
    words = ["score", "--applies", "--model", "words"]
    assert re.search(r"sentence 2 tells it +0.25", cli(*words, *PAIR, "--condition", "the sport").out)
    rows = list(csv.DictReader(io.StringIO(cli(*words, "-", stdin=TABLE).out)))
    assert [float(row["applies"]) for row in rows] == pytest.approx([0.3, 0.9, 0.2, 0.1])


def test_score_takes_all_models_that_work(cli: Command) -> None:
    captured = cli("score", *PAIR, "--condition", "the sport", "--json")
    assert json.loads(captured.out)["models"] == ["words", "trained"]
    assert "broken is left out: checkpoints/broken/model.safetensors is cut off." in captured.err


def test_score_reads_a_table_from_standard_input(cli: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("score", "-", "--model", "words", stdin=TABLE).out)))
    assert [row["score_words"] for row in rows] == ["0.100000001", "0.300000012", "0.200000003", "0.100000001"]
    assert rows[3]["label"] == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["score", "one", "--condition", "x"], "Two sentences are needed, got 1"),
        (["score", *PAIR], "There is no condition"),
        (["score", " ", "b", "--condition", "x"], "Sentence 1 is empty"),
        (["score", "a", "b\x00", "--condition", "x"], "Sentence 2 has a control character"),
        (["score", "a", "\udcff", "--condition", "x"], "half of a character (U+DCFF)"),
        (["score", *PAIR, "--condition", "x", "--condition", "X"], "Conditions 1 and 2 are the same"),
        (["score", *PAIR, *["--condition", "x"] * 500], "There are 500 conditions"),
        (["score", *PAIR, "--condition", "x", "--model", "nope"], "There is no model 'nope'. There are: words"),
        (["score", *PAIR, "--condition", "x", "--model", "broken"], "is cut off"),
        (["score", "-", "--condition", "x", "--condition", "y"], "one can be given for all"),
        (["score", *PAIR, "--condition", "x", "--backbone", "a/b"], "--backbone needs the method"),
        (["score", *PAIR, "--condition", "x", "--model", "words", "--backbone", "a/b"], "cannot build words on a/b"),
        (["router", "a b", "--condition", "x", "--model", "words", "--backbone", "a/b"], "cannot build words on a/b"),
        (["map", "scenes", "--model", "words", "--backbone", "a/b"], "cannot build words on a/b"),
        (["errors", "scenes:unseen_domains", "--model", "words", "--backbone", "a/b"], "cannot build words on a/b"),
        (["router", "a b", "--condition", "x", "--backbone", "a/b"], "cannot build csr on a/b"),
        (["links", "bee", "produces", "--model", "words", "--backbone", "a/b"], "cannot build words on a/b"),
        (
            ["benchmark", "models"],
            "`benchmark` is in a clone of the project now: python -m benchmarks models, gallery or",
        ),
        (["evaluate", "--model", "words", "--data", "no.csv"], "no.csv does not exist"),
        (["evaluate", "--model", "words", "--data", "-", "--out", "no/out.csv"], "The folder of no/out.csv does not"),
        (
            ["evaluate", "--model", "minilm", "--data", "x.csv", "--out", "-", "--json", "-"],
            "Name a file for the other",
        ),
        (
            ["evaluate", "--model", "words", "--data", "tables:test", "--submission", "x.json"],
            "submission has the 4,732",
        ),
        (["evaluate", "--model", "words", "--data", "tables:no"], "There is no part 'no' of tables"),
        (["data", "build", "sick", "--split", "dev", "--out", "-"], "There is no corpus 'sick'. There are: scenes, "),
        (["data", "build", "tables", "--split", "test", "--out", "no/out.csv"], "The folder of no/out.csv does not"),
        (["errors", "tables:test", "--model", "nope", "--train-data", "no.csv"], "no.csv does not exist"),
        (
            ["papers", "show", "hyper-cl:table-5"],
            "`papers` is in a clone of the project now: python -m benchmarks papers",
        ),
        (["data", "check-tables"], "`data check-tables` is in a clone of the project now: python -m benchmarks tables"),
    ],
)
def test_user_errors_are_one_line_and_exit_code_2(words: list[str], message: str, cli: Command) -> None:
    assert message in cli.refuse(*words)


@pytest.mark.parametrize("words", [[], ["fly"], ["evaluate"], ["score", *PAIR, "--colour"]])
def test_wrong_options_are_one_line_and_exit_code_2(words: list[str], cli: Command) -> None:
    assert cli.refuse(*words).endswith("--help")


@pytest.mark.parametrize("command", ["serve", "lessons"])
def test_without_an_extra_its_name_is_told(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "gradio", None)
    error = cli.refuse(command)
    assert "gradio is not installed. Install it from a clone with: pip install -e '.[app]'" in error


def test_two_models_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    monkeypatch.setattr(sys.modules["condviz.models.registry"], "load", lambda name, **_: Model("csr", trained=True))
    words = ["score", "-", "--model", "csr", "--model", "elsewhere/csr"]
    assert "'csr': elsewhere/csr is the second" in cli.refuse(*words, stdin=TABLE)


def test_train_data_can_be_part_of_a_corpus(cli: Command) -> None:
    words = ["evaluate", "--model", "words", "--data", "tables-weak:test", "--resamples", "0"]
    assert re.search(r"^  unseen +0 ", cli(*words, "--train-data", "tables-weak:test").out, re.MULTILINE)


def test_evaluate_prints_and_writes(table: str, tmp_path: Path, cli: Command) -> None:
    out, report = tmp_path / "out.csv", tmp_path / "report.json"
    words = ["evaluate", "--model", "words", "--model", "trained", "--data", table, "--train-data", table]
    printed = cli(*words, "--out", str(out), "--json", str(report), "--resamples", "20").out
    assert printed.splitlines()[0].split()[:4] == ["model", "rows", "n", "Spearman"]
    assert printed.splitlines()[2].split()[:5] == ["words", "*", "4", "3", "100.00"]
    assert "unseen" in printed
    assert "unseen: no correlation, because at least 2 rated rows are needed, got 0." in printed
    rows = list(csv.DictReader(out.open()))
    assert list(rows[0]) == ["id", "sentence1", "sentence2", "condition", "label", "score_words", "score_trained"]
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    written = json.loads(report.read_text())
    assert [model["model"] for model in written["models"]] == ["words", "trained"]
    assert written["models"][0]["overall"]["pair_accuracy"]["correct"] == 1


def test_a_table_with_faults_and_another_scale_is_evaluated_and_joins_back(tmp_path: Path, cli: Command) -> None:
    path, out, left = tmp_path / "t.csv", tmp_path / "out.csv", tmp_path / "left.csv"
    rows = "02134;a b;a c;x;0\n1E5;a b;a c;xyz;1\n1.10;d;e;;0,5\n9;d;e;x;0,5\n"
    path.write_text(f"zip;premise;sentence2;condition;score\n{rows}")
    words = ["--model", "words", "--columns", "sentence1=premise", "--out", str(out), "--resamples", "0"]
    assert "go from 0 to 1" in cli.refuse("evaluate", "--data", str(path), *words)
    words += ["--scale", "0", "1"]
    assert "t.csv: Row 3 (line 4), column condition is empty" in cli.refuse("evaluate", "--data", str(path), *words)
    words += ["--skip-bad", "--left-out", str(left)]
    for command in (["evaluate", "--data", str(path)], ["errors", str(path)]):
        told = cli(*command, *words).err
        assert "mapped to 1 (different) to 5 (same): 0 to 1, 1 to 5" in told
        assert "1 row that cannot be used was left out: Row 3" in told
        written = list(csv.DictReader(out.open()))
        assert [row["zip"] for row in written] == ["02134", "1E5", "9"]
        assert [row["score"] for row in written] == ["0", "1", "0,5"]
        assert [row["content"] for row in csv.DictReader(left.open())] == ['1.10,d,e,,"0,5"\n']
    assert [row["label"] for row in written] == ["1", "5", "3"]


def test_a_table_without_conditions_is_scored_under_one(cli: Command) -> None:
    scored = cli("score", "-", "--model", "words", "--condition", "xyz", stdin="sentence1,sentence2\na,b\n")
    assert scored.out == "sentence1,sentence2,score_words\na,b,0.300000012\n"


def test_evaluate_without_labels_only_scores(tmp_path: Path, cli: Command) -> None:
    out, content = tmp_path / "out.csv", "sentence1;sentence2;condition\na;b;c\n"
    done = cli("evaluate", "--model", "words", "--data", "-", "--out", out, stdin=content)
    assert "Rows scored: 1. None has a label" in done.out
    assert out.read_text() == "sentence1,sentence2,condition,score_words\na,b,c,0.100000001\n"


def test_a_failed_run_leaves_the_old_files(table: str, tmp_path: Path, cli: Command) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")
    cli.refuse("evaluate", "--model", "words", "--model", "nope", "--data", table, "--out", str(out))
    assert out.read_text() == "old"


def test_warnings_are_one_line_without_our_code(cli: Command) -> None:
    scored = cli("score", *PAIR, "--condition", "cut", "--model", "words")
    assert "note: sentence 1 was cut after 512 tokens\n" in scored.err


def test_interrupt_is_quiet(cli: Command) -> None:
    ended = cli.run("score", *PAIR, "--condition", "interrupt", "--model", "words")
    assert ended == (130, "", "condviz: stopped.\n")


def test_models_lists_what_can_be_loaded(cli: Command) -> None:
    lines = cli("models").out.splitlines()
    assert lines[0].split()[:2] == ["name", "method"]
    assert lines[2].split()[0] == "words"
    assert "1,234" in lines[2]
    listed = json.loads(cli("models", "--json").out, parse_constant=pytest.fail)
    assert [info["name"] for info in listed] == ["words", "trained", "broken"]
    assert listed[0]["score_range"] == [None, None]


def test_version_is_that_of_the_package(cli: Command) -> None:
    assert cli("--version").out == f"condviz {condviz.__version__}\n"


def test_serve_hands_address_and_port_to_the_page(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    launched: list[dict] = []
    page = ModuleType("condviz.ui.app")
    page.launch_options = lambda host, port: {
        "server_name": host or "127.0.0.1",
        "server_port": port or 7860,
        "share": False,
    }
    blocked: list[bool] = []

    def launch(*, prevent_thread_lock: bool, **options: object) -> None:
        assert prevent_thread_lock
        launched.append(options)

    served = {"server_name": "127.0.0.1", "server_port": 8000, "mcp_error": None}
    served |= {"launch": launch, "block_thread": lambda: blocked.append(gc.isenabled())}
    page.build_app = lambda: SimpleNamespace(**served)
    monkeypatch.setitem(sys.modules, "condviz.ui.app", page)
    monkeypatch.setattr("condviz.cli.main.require", lambda *_: None)  # importing gradio takes seconds
    assert cli("serve", "--port", "8000").out == "Running on http://127.0.0.1:8000\n"
    assert launched == [{"server_name": "127.0.0.1", "server_port": 8000, "share": False, "quiet": True}]
    assert blocked == [True], "it serves, and looks for garbage"


def test_serve_on_a_taken_port_is_one_line(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    def launch(**_: object) -> None:
        raise OSError("Cannot find empty port")

    page = ModuleType("condviz.ui.app")
    page.launch_options = lambda host, port: {"server_name": host or "127.0.0.1", "server_port": port or 7860}
    page.build_app = lambda: SimpleNamespace(launch=launch)
    monkeypatch.setitem(sys.modules, "condviz.ui.app", page)
    assert "condviz: The page cannot be served at 127.0.0.1:7860: the port is taken" in cli.refuse("serve")


@pytest.mark.parametrize(
    ("wrong", "arguments"),
    [
        ({"GRADIO_SERVER_PORT": "abc"}, ()),
        ({"GRADIO_TEMP_DIR": "/proc/nowhere"}, ()),
        ({"GRADIO_TEMP_DIR": "/proc"}, ()),
        ({}, ("--port", "99999")),
    ],
)
def test_a_wrong_setting_of_the_server_is_one_line(wrong: dict[str, str], arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "app.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert all(part in done.stderr for part in (*wrong, *arguments))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of the corpora, with a C-STS validation file in it."""
    monkeypatch.setenv("CONDVIZ_DATA", str(tmp_path))
    monkeypatch.delenv("CONDVIZ_CSTS_PASSWORD", raising=False)
    (tmp_path / "csts").mkdir()
    (tmp_path / "csts" / "csts_validation.csv").write_text(
        "sentence1,sentence2,condition,label\na b,a c,x,1\na b,a c,y,5\nd,e,y,2\nd,e,x,4\n"
    )
    return tmp_path


def test_data_lists_what_is_there_and_what_is_missing(
    data: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    few = {name: corpora.CORPORA[name] for name in ("csts", "mams")}  # building the pairs of all takes long
    monkeypatch.setattr(corpora, "CORPORA", few)
    printed = cli("data").out
    assert f"looked in  {data / 'csts'}" in printed
    assert "csts.tar.enc (missing), csts_train.csv (missing), csts_validation.csv, " in printed
    assert re.search(r"^  dev +4 +2$", printed, flags=re.MULTILINE)
    assert f"{data / 'mams' / 'train.xml'} cannot be read" in printed
    assert printed.count("neither csts_train.csv nor csts.tar.enc") == 1
    listed = {corpus["name"]: corpus for corpus in json.loads(cli("data", "--json").out)}
    assert listed["mams"]["licence"] == corpora.CORPORA["mams"].licence
    pairs = {part["name"]: part["pairs"] for part in listed["csts"]["parts"]}
    assert {name for name, number in pairs.items() if number is not None} == {"dev"}
    assert pairs["dev"] == 2


def test_data_build_writes_a_table_that_evaluate_reads(data: Path, tmp_path: Path, cli: Command) -> None:
    out = tmp_path / "pairs.csv"
    captured = cli("data", "build", "csts", "--split", "dev", "--out", str(out))
    assert captured.out == ""
    assert "note: 4 rows; 2 sentence pairs under two conditions." in captured.err
    assert "must not be passed on decrypted" in captured.err
    cli("evaluate", "--model", "words", "--data", str(out), "--resamples", "0")
    assert cli("data", "build", "csts", "--split", "dev", "--out", "-").out == out.read_text()


def test_the_password_is_asked_for_in_a_terminal_only(
    data: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    (data / "csts" / "csts.tar.enc").write_bytes(b"no archive")
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "secret"

    monkeypatch.setattr("getpass.getpass", ask)
    words = ["data", "build", "csts", "--split", "train", "--out", "-"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    assert "set CONDVIZ_CSTS_PASSWORD" in cli.refuse(*words)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert "is not an OpenSSL-encrypted archive" in cli.refuse(*words)
    assert asked == ["Password of csts.tar.enc: "]
    monkeypatch.setenv("CONDVIZ_CSTS_PASSWORD", "secret")
    cli.refuse(*words)
    assert len(asked) == 1
    monkeypatch.delenv("CONDVIZ_CSTS_PASSWORD")
    monkeypatch.setattr("getpass.getpass", Mock(side_effect=EOFError))
    assert "No password was given" in cli.refuse(*words)


def test_a_reader_that_leaves_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "condviz", "models"]
    with open(write, "wb") as gone:
        done = subprocess.run(command, cwd=ROOT, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 141


def test_an_encoding_without_a_letter_is_one_line(monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    ended = cli.run("score", "A café.", "A bar.", "--condition", "é", "--model", "words")
    assert ended.err.splitlines()[-1].startswith("condviz: The output is ascii, which has no 'é'. Set")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "condviz", "models"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "condviz: No space left on device. Fix it and try again.\n"
    assert done.returncode == 2


def test_a_table_without_conditions_takes_one_for_all_rows(tmp_path: Path, cli: Command) -> None:
    table = tmp_path / "t.csv"
    table.write_text("sentence1,sentence2,label\nA man surfs.,A girl skis.,2\nA man surfs.,A man rows.,4\n")
    asked = ["evaluate", "--model", "words", "--data", str(table), "--resamples", "0"]
    assert "set condition" in cli.refuse(*asked)
    cli(*asked, "--condition", "the sport")
