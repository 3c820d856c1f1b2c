"""What a checkpoint says of itself (condviz.json) and the header of its weights, read without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from math import prod
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from condviz.errors import CheckpointError, explain
from condviz.methods.catalog import CATALOG
from condviz.types import Calibration
from condviz.version import __version__

FORMAT = 1
"""Version of the folder layout; raised when older code could not read it."""
MANIFEST, WEIGHTS, CARD = "condviz.json", "model.safetensors", "README.md"
FILES = (MANIFEST, WEIGHTS, CARD)
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
CALIBRATION = "calibration"
"""Key among the metrics, where versions that know nothing of it read over it."""
SHA256 = "weights_sha256"
"""Key with the hash of the weight file; checkpoints of earlier versions have none."""
_CLOSED = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Encoder(BaseModel):
    """Where the pretrained encoder of a checkpoint comes from."""

    model_config = _CLOSED
    name: str
    revision: str
    digest: str


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


def parameter_count(folder: Path) -> int:
    """Count the numbers that a checkpoint stores, from the header of its weight file."""
    return sum(prod(shape) for shape in read_shapes(folder / WEIGHTS).values())


def check_weights(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Read the header of the weight file, and compare the file with the hash in condviz.json, where there is one.

    Raises:
        CheckpointError: If the file is missing, damaged or another one, or is empty where no hash vouches for that.
    """
    path = folder / WEIGHTS
    shapes, expected = read_shapes(path), manifest.get(SHA256)
    if expected is None and not shapes:
        raise CheckpointError(f"{path} holds no tensor: it is damaged. Copy it again, or train the model again.")
    if expected is not None and (found := hash_file(path)) != expected:
        raise CheckpointError(
            f"{path} is damaged: its SHA-256 is {found[:12]}, {MANIFEST} expects {expected[:12]}. Copy both again."
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
