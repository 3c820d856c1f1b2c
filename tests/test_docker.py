"""The Dockerfile without an engine: its steps run in an empty folder and environment, as the user that it names.

The environment sees the packages that are installed here and cannot change them, so that nothing is fetched: the lines
that install are run, and find everything there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.ports import free_ports

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
HOME, USER, PORT = "/home/condviz", 1000, "7860"
PYTHON = f"python3.{sys.version_info.minor}"


def steps() -> list[tuple[str, str]]:
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined if line)]


def values(rest: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in rest.split())


class Container:
    """A folder that stands for the image."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder, self.work, self.user = folder, folder, 0
        bin_folder = folder / "venv" / "bin"
        subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        packages = next((folder / "venv" / "lib").glob("python3*")) / "site-packages"
        shutil.rmtree(packages)
        packages.symlink_to(sysconfig.get_path("purelib"))
        (bin_folder / "uv").symlink_to(shutil.which("uv") or Path(sys.executable).with_name("uv"))
        for name, content in {"pip": 'exec python -m pip "$@"', "useradd": 'mkdir "$HOME"'}.items():
            (bin_folder / name).write_text(f"#!/bin/sh\n{content}\n")
            (bin_folder / name).chmod(0o755)
        self.port = str(free_ports()[0])
        self.env = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": self.here(HOME), "HF_HUB_OFFLINE": "1"}
        self.env |= {"OMP_NUM_THREADS": "1", "UV_OFFLINE": "1", "PIP_NO_INDEX": "1"}

    def here(self, text: str) -> str:
        return text.replace(HOME, f"{self.folder}{HOME}").replace(PORT, self.port)

    def command(self, line: str) -> dict:
        return {"args": ["sh", "-ec", line], "cwd": self.work, "env": self.env, "user": USER, "group": USER}

    def run(self, line: str) -> None:
        done = subprocess.run(**self.command(line), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"

    def copy(self, names: list[str]) -> None:
        for name in names:
            target = self.work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        for path in (self.work, *self.work.rglob("*")):
            os.chown(path, USER, USER)


def sent() -> list[str]:
    """List what `COPY . .` takes: tracked files that .dockerignore does not leave out."""
    left_out = (ROOT / ".dockerignore").read_text().split()
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in tracked if name.split("/")[0] not in left_out]


def reachable(path: Path) -> bool:
    found = subprocess.run(["test", "-r", path], user=USER, group=USER, cwd="/", check=False)
    return found.returncode == 0


@pytest.fixture
def container() -> Iterator[Container]:
    if os.name != "posix" or os.geteuid():
        pytest.skip("only root can become another user")
    found = shutil.which(PYTHON, path="/usr/bin")
    pythons = [Path(sys.executable).resolve(), *([Path(found)] if found else [])]
    usable = [python for python in pythons if reachable(python)]
    if not usable or not reachable(Path(sysconfig.get_path("purelib"))):
        pytest.skip("another user cannot read the Python or the packages of this environment")
    with tempfile.TemporaryDirectory(prefix="condviz-image-") as name:
        folder = Path(name)
        (folder / HOME[1:]).parent.mkdir()
        for path in (folder, folder / "home"):
            os.chown(path, USER, USER)
        yield Container(folder, usable[0])


def test_the_image_is_small_by_default_and_its_user_is_not_root() -> None:
    found = steps()
    assert ("ARG", "TORCH=cpu") in found
    assert [rest for name, rest in found if name == "USER"] == [str(USER)]
    names = [name for name, _ in found]
    assert names.index("USER") < names.index("CMD")
    assert {"tests", "benchmarks", "runs", ".git"} <= set((ROOT / ".dockerignore").read_text().split())
    assert "HEALTHCHECK" in names


def test_the_compose_file_of_the_documents_fits_the_image() -> None:
    text = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    service = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])["services"]["condviz"]
    found = steps()
    assert set(service["build"]["args"]) <= {rest.split("=")[0] for name, rest in found if name == "ARG"}
    assert service["ports"][0].endswith(f":{PORT}")
    work = next(rest for name, rest in found if name == "WORKDIR")
    places = [volume.split(":")[1] for volume in service["volumes"]]
    assert not any(place.startswith(work) for place in places), "it would hide the models of a newer image"
    environment = values(next(rest for name, rest in found if name == "ENV"))
    for name in ("CONDVIZ_CHECKPOINTS", "CONDVIZ_JOBS"):
        assert any(environment[name].startswith(place) for place in places), "what is made here stays"


@pytest.mark.slow
def test_the_steps_build_an_image_that_serves_the_page(container: Container) -> None:
    health, command = "", []
    for name, rest in ((name, container.here(rest)) for name, rest in steps()):
        if name in ("ARG", "ENV"):
            container.env |= values(rest)
        elif name == "WORKDIR":
            container.work = Path(rest)
            container.work.mkdir(parents=True)
            os.chown(container.work, USER, USER)
        elif name == "COPY":
            container.copy(sent() if rest.endswith(". .") else rest.split()[:-1])
        elif name == "RUN":
            container.run(rest)
        elif name == "HEALTHCHECK":
            health = rest.partition("CMD ")[2]
        elif name == "CMD":
            command = json.loads(rest)
        else:
            assert name in ("FROM", "USER", "EXPOSE"), name
    started = container.command("") | {"args": command}
    with subprocess.Popen(**started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            said = next(line for line in server.stdout if re.search(r"http://", line))
            assert container.port in said
            container.run(health)
        finally:
            server.terminate()
