"""What a checkpoint says of itself (condviz.json) and the header of its weights, read without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from math import prod
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from condviz import __version__
from condviz.data.files import write_text
from condviz.errors import CheckpointError, explain
from condviz.methods.catalog import CATALOG
from condviz.paths import MODEL_FOLDERS
from condviz.types import Calibration

FORMAT = 1
"""Version of the folder layout; raised when older code could not read it."""
MANIFEST, WEIGHTS, CARD = "condviz.json", "model.safetensors", "README.md"
FILES = (MANIFEST, WEIGHTS, CARD)
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
CALIBRATION = "calibration"
"""Key among the metrics, where versions that know nothing of it read over it."""
SHA256 = "weights_sha256"
"""Key with the hash of the weight file; checkpoints of earlier versions have none."""
ENCODER = ("backbone.", "adapter.")
"""Beginnings of the names of tensors that change the encoder: they replace one of its own, or are added to it."""
_CLOSED = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Encoder(BaseModel):
    """Where the pretrained encoder of a checkpoint comes from."""

    model_config = _CLOSED
    name: str
    revision: str
    digest: str


class Start(BaseModel):
    """The checkpoint beside it whose changes of the encoder a checkpoint begins with, and does not repeat."""

    model_config = _CLOSED
    model: str = Field(pattern=r"^[\w-]+$")
    """Its name; never a path."""
    weights_sha256: str


class Manifest(BaseModel):
    """The keys of condviz.json, and what each holds."""

    model_config = _CLOSED
    format: int
    condviz: str
    method: str
    config: dict[str, Any]
    backbone: Encoder
    adapter_scale: float | None
    training: dict[str, Any]
    metrics: dict[str, Any]
    weights_sha256: str = ""
    identity: Literal["weights", "file"] = "weights"
    """What tells its weights from others: they themselves, or the file, since the product of large adapters differs in
    the last bit from machine to machine."""
    start: Start | None = None


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check condviz.json, without touching the weights.

    Raises:
        CheckpointError: If the file is missing, damaged or of another version, a key is missing, unknown or of the
            wrong type, or the folder holds a pickle.
    """
    path = folder / MANIFEST
    try:
        _refuse_pickles(folder)
        if not path.is_file():
            raise CheckpointError(f"{folder} has no {MANIFEST}: it is not a checkpoint of this program.")
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({str(error)[:200]}). Copy it again.") from error
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    if isinstance(manifest, dict) and manifest.get("format", FORMAT) != FORMAT:
        raise CheckpointError(
            f"{path}: format is {manifest['format']!r}, made by version {manifest.get('condviz', 'unknown')}; version "
            f"{__version__} reads format {FORMAT}. Install the version that made it, or train the model again."
        )
    try:
        Manifest.model_validate(manifest)
    except ValidationError as error:
        raise CheckpointError(f"{path}: {explain(error)}") from error
    _check_method(path, manifest)
    return manifest


def rewrite_manifest(folder: Path, **changes: object) -> None:
    """Change keys of condviz.json; nothing else changes.

    Raises:
        CheckpointError: If the folder is not a checkpoint.
        DataError: If the file cannot be written.
    """
    write_text(folder / MANIFEST, json.dumps(read_manifest(folder) | changes, indent=2) + "\n")


def check_replaceable(folder: Path) -> None:
    """Raise CheckpointError if a folder that a checkpoint is to be written to holds something else."""
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not is_empty and not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder} exists and is not a checkpoint: nothing was written. Choose another folder.")


def graph_of(manifest: Mapping[str, Any]) -> str:
    """Return the name of the knowledge graph that a model was trained on, or "" for a model of sentences."""
    recipe, data = manifest["training"].get("recipe"), manifest["training"].get("data")
    if not isinstance(recipe, dict) or "graph" not in recipe:
        return ""
    first = data[0] if isinstance(data, list) and data else None
    return str(first["graph"]) if isinstance(first, dict) and "graph" in first else Path(str(recipe["graph"])).name


def calibration_of(manifest: Mapping[str, Any]) -> Calibration | None:
    """Return what turns the scores of a model into ratings, or None where nobody has fitted it.

    Raises:
        CheckpointError: If it is damaged.
    """
    content = manifest["metrics"].get(CALIBRATION)
    if content is None:
        return None
    try:
        scores, ratings = (tuple(map(float, content[name])) for name in ("scores", "ratings"))
        return Calibration(scores, ratings, content["error"], content["rows"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{MANIFEST}: metrics: calibration: {error}. Fit it again: python -m condviz calibrate --model FOLDER"
        ) from error


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read names and shapes of the tensors of a weight file from its header.

    Raises:
        CheckpointError: If the file is missing or its header damaged.
    """
    from safetensors import safe_open

    if not path.is_file():
        raise CheckpointError(f"{path} is missing.")
    try:
        with safe_open(path, framework="np") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except Exception as error:  # whatever the reader makes of damaged bytes
        raise CheckpointError(f"{path} is damaged or incomplete ({error}). Copy it again.") from error


def weight_files(folder: Path, manifest: Mapping[str, Any]) -> list[Path]:
    """Return the weight file of the checkpoint that this one begins with, if any, and its own.

    Of the first only what it changes in the encoder counts, where the second says nothing else.

    Raises:
        CheckpointError: If the first is missing.
    """
    if (start := manifest.get("start")) is None:
        return [folder / WEIGHTS]
    before = [place / start["model"] for place in (folder.parent, *MODEL_FOLDERS)]
    if (found := next((one for one in before if (one / WEIGHTS).is_file()), None)) is None:
        raise CheckpointError(
            f"{folder} begins with the weights of {start['model']}, which are not on this machine. Copy "
            f"checkpoints/{start['model']} of a clone of CondViz to {before[0]}."
        )
    return [found / WEIGHTS, folder / WEIGHTS]


def parameter_count(folder: Path, manifest: Mapping[str, Any]) -> int:
    """Count the numbers by which a checkpoint changes its encoder and adds to it, from the headers of the files."""
    *before, own = map(read_shapes, weight_files(folder, manifest))
    shapes = {name: shape for one in before for name, shape in one.items() if name.startswith(ENCODER)} | own
    return sum(map(prod, shapes.values()))


def check_weights(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Read the headers of the weight files, and compare the files with the hashes in condviz.json, where there are any.

    Raises:
        CheckpointError: If one is missing, damaged or another one, or is empty where no hash vouches for that.
    """
    start = manifest.get("start")
    hashes = [*([start[SHA256]] if start else []), manifest.get(SHA256)]
    for path, expected in zip(weight_files(folder, manifest), hashes, strict=True):
        if not read_shapes(path) and expected is None:
            raise CheckpointError(f"{path} holds no tensor: it is damaged. Copy it again, or train the model again.")
        if expected is not None and (found := hash_file(path)) != expected:
            raise CheckpointError(
                f"{path} is damaged: its SHA-256 is {found[:12]}, {folder / MANIFEST} expects {expected[:12]}. Copy "
                "both again."
            )


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_pickles(folder: Path) -> None:
    pickles = [file.name for file in folder.iterdir() if file.suffix.lower() in PICKLES] if folder.is_dir() else []
    if pickles:
        raise CheckpointError(
            f"{folder} holds {pickles[0]}, a pickle, which can run code when it is opened. Remove it: only "
            f"{', '.join(FILES)} belong in a checkpoint."
        )


def _check_method(path: Path, manifest: Mapping[str, Any]) -> None:
    method = manifest["method"]
    if method not in CATALOG:
        raise CheckpointError(f"{path}: method is {method!r}; known are {', '.join(CATALOG)}.")
    allowed = {field.name for field in fields(CATALOG[method].config_cls)}
    if unknown := set(manifest["config"]) - allowed:
        raise CheckpointError(f"{path}: config has the unknown keys {sorted(unknown)}; known are {sorted(allowed)}.")
