"""The package as people install it: a wheel, in an environment of its own, away from the clone."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.commands import Ended
from tests.ports import free_ports
from tests.test_notebooks import NOTEBOOKS

ROOT = Path(__file__).parents[1]
PAIR = ("Two men surf at dawn.", "A woman skis at dawn.")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment in which the wheel is installed, and nothing else of this project.

    What the wheel needs is read from the environment of the tests, which has the very versions: a new download of
    torch would take gigabytes. That its metadata names all of it is tested beside this.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "--offline", "--python", sys.executable, folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([uv, "pip", "install", "-q", "--offline", "--no-deps", "--python", python, wheel], check=True)
    packages = next((folder / "env" / "lib").glob("python*/site-packages"))
    # Python reads no .pth file in a folder that is named in one: that of the clone does not count.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


RUN = """import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from condviz.cli.main import main
ended = []
for words in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            code = main(words)
        except SystemExit as exit:
            code = exit.code
    ended.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""


def run(home: Path, *commands: list[str], **variables: str) -> list[Ended]:
    """Run commands of the installed package in an empty folder and one process, as somebody with nothing but the wheel.

    That the program `condviz` calls the same function shows where it serves the page.
    """
    work = home / "work"
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [home / "env" / "bin" / "python", "-P", "-c", RUN, json.dumps(commands)], cwd=work,
        env=surroundings(home) | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [Ended(*ended) for ended in json.loads(done.stdout)]


def surroundings(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONDVIZ_", "PYTHON", "XDG_"))}
    return kept | {"HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def test_the_wheel_has_the_code_and_the_assets(wheel: Path) -> None:
    inside = set(ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "condviz", "assets", "checkpoints/bi-encoder-csts"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if tracked.returncode:
        pytest.skip("not a clone")
    wanted = {re.sub("^(assets|checkpoints)/", r"condviz/\1/", name) for name in tracked.stdout.split()}
    there = {name for name in wanted if (ROOT / re.sub("^condviz/(assets|checkpoints)", r"\1", name)).is_file()}
    assert not there - inside
    assert wheel.stat().st_size < 12e6


def test_commands_work_or_say_what_to_do(home: Path) -> None:
    asked = ["score", *PAIR, "--condition", "the time of day", "--condition", "the sport", "--json", "--model"]
    missing, listed, scored, *others, deployed = run(
        home, [*asked, "bi-encoder"], ["models"], [*asked, "bi-encoder-csts"], ["papers", "list"], ["data", "list"],
        ["train", "--help"], ["deploy", "someone/space", "--dry-run"],
    )  # fmt: skip
    for refused in (missing, deployed):
        assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "condviz/condviz-bi-encoder" in missing.err
    assert str(home / ".local" / "share" / "condviz" / "checkpoints" / "bi-encoder") in missing.err
    assert listed.code == 0
    assert {"minilm", "bi-encoder-zero-shot"} <= {line.split()[0] for line in listed.out.splitlines()}
    assert "condviz/condviz-" in listed.err  # where the trained ones are
    assert (scored.code, scored.err) == (0, "")
    ((time, sport),) = json.loads(scored.out)["scores"]
    assert time > 0.8 > 0.5 > sport, "the model of the wheel is the trained one"
    assert not any("Traceback" in done.err for done in others)
    assert "clone" in deployed.err


def test_weights_are_found_in_the_folder_of_the_user_and_where_the_variable_says(home: Path) -> None:
    shipped = ROOT / "checkpoints"
    own = home / "other" / ".local" / "share" / "condviz" / "checkpoints"
    shutil.copytree(shipped / "tri-hadamard", own / "tri-hadamard")
    for where in ({"CONDVIZ_CHECKPOINTS": str(shipped)}, {"HOME": str(home / "other")}):
        (listed,) = run(home, ["models", "--json"], **where)
        found = {model["name"]: model for model in json.loads(listed.out)}["tri-hadamard"]
        assert (found["trained"], found["missing"]) == (True, "")


def test_notebooks_run_with_the_model_of_the_wheel_and_their_pictures_stand_alone(home: Path) -> None:
    command = [home / "env" / "bin" / "python", "-P", ROOT / "tests" / "notebook.py", *NOTEBOOKS]
    done = subprocess.run(command, cwd=home, env=surroundings(home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_page_is_served_with_its_styles(home: Path) -> None:
    (port,) = free_ports()
    server = subprocess.Popen(
        [home / "env" / "bin" / "condviz", "serve", "--port", str(port)], cwd=home, env=surroundings(home),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert any(f":{port}" in line for line in lines(server)), "the server ended without an address"
        for address in ("", "cv-static/css/tokens.css"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{address}") as answer:
                assert answer.status == 200
    finally:
        server.terminate()
        server.wait()


def lines(server: subprocess.Popen[str]) -> Iterator[str]:
    assert server.stdout is not None
    return iter(server.stdout.readline, "")


# ---- what it needs ---------------------------------------------------------------------------------------------------


@cache
def imported() -> dict[str, set[str]]:
    """Return the modules of others that the package imports, each with the files that do."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "condviz").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for name in names:
                found.setdefault(name.partition(".")[0], set()).add(path.relative_to(ROOT).as_posix())
    return {name: files for name, files in found.items() if name not in {*sys.stdlib_module_names, "condviz"}}


def test_the_metadata_names_everything_that_is_imported(wheel: Path) -> None:
    with ZipFile(wheel) as opened:
        name = next(name for name in opened.namelist() if name.endswith("METADATA"))
        metadata = opened.read(name).decode()
    named = {
        re.split(r"[^\w.-]", line)[0].lower().replace("_", "-")
        for line in re.findall("^Requires-Dist: (.*)$", metadata, re.M)
    }
    brought = {
        "gradio": {"PIL", "fastapi", "starlette", "uvicorn", "gradio_client", "httpx"},
        "transformers": {"tokenizers"},
        "pydantic": {"pydantic_core", "typing_extensions"},
        "jinja2": {"markupsafe"},
        "mteb": {"datasets"},
    }
    of = packages_distributions()
    unnamed = {}
    for module, files in imported().items():
        packages = {package.lower().replace("_", "-") for package in of.get(module, [module])}
        if not packages & named and not any(module in brought.get(name, ()) for name in named):
            unnamed[module] = sorted(files)
    assert set(unnamed) <= {"spaces"}, unnamed  # a Space brings that one: see benchmarks/deploy.py
