"""A Space of this checkout on the Hugging Face hub: python -m benchmarks deploy OWNER/NAME."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from condviz import paths
from condviz.cli.options import add_command, format_table
from condviz.errors import ConfigError
from condviz.models.hub import refusals

if TYPE_CHECKING:
    from huggingface_hub import HfApi

HARDWARE = ("cpu-basic", "zero-a10g", "t4-small")
ZERO = "zero-a10g"
ZERO_TORCH = ("2.8.0", "2.11.0", "2.12.1", "2.13.0")
"""Versions of torch that ZeroGPU takes. Source: docs/hub/spaces-zerogpu.md of huggingface/hub-docs, September 2026."""
PYTHON, ZERO_PYTHON = "3.11", "3.12"
"""ZeroGPU has 3.10 and 3.12; this package needs 3.11 or later."""
FILES = ("app.py", "README.md", "CONTRIBUTING.md", "LICENSE", "requirements.txt")
LOCK = "requirements.lock"
"""Every package with its version, sent in place of requirements.txt: a Space that is built again stays as it was."""
LEFT_OUT = (".*", "__pycache__", "*.pyi", "*.ipynb")
CARD = """---
title: CondViz
emoji: 🔭
colorFrom: blue
colorTo: yellow
sdk: gradio
sdk_version: {gradio}
python_version: "{python}"
app_file: app.py
license: apache-2.0
short_description: See how sentence similarity changes with a condition
suggested_hardware: {hardware}
models:
  - sentence-transformers/all-MiniLM-L6-v2
tags:
  - sentence-similarity
  - conditional-similarity
  - explainability
  - visualization
---

"""
"""What Spaces read at the top of README.md."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = add_command(commands, "deploy", run)
    parser.add_argument("repository", metavar="OWNER/NAME", help="of the Space")
    parser.add_argument("--hardware", choices=HARDWARE, default=HARDWARE[0], help="default: %(default)s")
    parser.add_argument("--out", metavar="FOLDER", help="write the Space into this folder, new or empty; send nothing")
    parser.add_argument("--dry-run", action="store_true", help="as --out, into a temporary folder")


def run(options: argparse.Namespace) -> None:
    """Make or update a Space on the Hugging Face hub.

    It gets code, models of checkpoints/, texts and documents, for the hardware; no corpora, tests or history. Log in
    first: hf auth login, or HF_TOKEN.
    """
    kept = options.out is not None or options.dry_run
    folder = Path(options.out) if options.out else Path(tempfile.mkdtemp(prefix="condviz-space-"))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty. Name a new folder for the Space.")
    try:
        files = write_space(folder, options.hardware)
        if kept:
            sizes = [(name, f"{(folder / name).stat().st_size:,}") for name in files]
            print(format_table(("file", "bytes"), sizes))
            print(f"\n{len(files)} files in {folder}")
            return
        from huggingface_hub import HfApi

        print(send(HfApi(library_name="condviz"), folder, options.repository, options.hardware))
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def write_space(folder: Path, hardware: str) -> list[str]:
    """Write what a Space needs, and nothing else."""
    root = Path(__file__).resolve().parents[1]
    if missing := [name for name in (*FILES, LOCK) if not (root / name).is_file()]:
        raise ConfigError(f"{root} has no {missing[0]}: `deploy` sends a checkout. Run it in a clone of CondViz.")
    trees = [("condviz", root / "condviz"), ("docs", root / "docs"), ("assets", paths.ASSETS)]
    trees += [("checkpoints", place) for place in reversed(paths.MODEL_FOLDERS) if place.is_dir()]  # own ones last
    for name, source in trees:
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    for name in FILES:
        shutil.copy2(root / name, folder / name)
    readme, requirements = folder / "README.md", folder / "requirements.txt"
    gradio = _pinned("gradio", requirements.read_text(encoding="utf-8"))
    card = CARD.format(gradio=gradio, python=ZERO_PYTHON if hardware == ZERO else PYTHON, hardware=hardware)
    readme.write_text(card + readme.read_text(encoding="utf-8"), encoding="utf-8")
    if hardware == ZERO:  # has a list of torch versions of its own, which the lock would contradict
        _edit_requirements(requirements)
    else:
        shutil.copy2(root / LOCK, requirements)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def send(hub: HfApi, folder: Path, repository: str, hardware: str) -> str:
    """Make a Space, or update the one of that name, and return its address.

    Files of an earlier version that are gone are deleted there. Large and binary files go the way the hub asks for.
    """
    space: dict[str, Any] = {"repo_id": repository, "repo_type": "space"}
    with refusals(repository):
        address = hub.create_repo(**space, space_sdk="gradio", space_hardware=cast("Any", hardware), exist_ok=True)
        hub.add_space_variable(repository, "CONDVIZ_TRAINING", "0")
        hub.upload_folder(**space, folder_path=folder, delete_patterns="*", commit_message="Deploy CondViz")
        if hub.get_space_runtime(repository).requested_hardware != hardware:  # it was there, on another one
            hub.request_space_hardware(repository, cast("Any", hardware))
    return str(address)


def _pinned(package: str, requirements: str) -> str:
    return requirements.partition(f"{package}==")[2].partition("\n")[0]


def _edit_requirements(path: Path) -> None:
    """Take the newest torch of ZeroGPU's list that is not above the pinned one, and add its package."""
    text = path.read_text(encoding="utf-8")
    pinned = _pinned("torch", text)
    order = {version: tuple(map(int, version.split("."))) for version in (*ZERO_TORCH, pinned)}
    newest = max((version for version in ZERO_TORCH if order[version] <= order[pinned]), key=order.__getitem__)
    path.write_text(text.replace(f"torch=={pinned}\n", f"torch=={newest}\n") + "spaces\n", encoding="utf-8")
