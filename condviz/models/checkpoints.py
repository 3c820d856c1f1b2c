"""Save and load trained models: what they are (condviz.json), what was trained (model.safetensors), and a model card.

A checkpoint holds the weights that training changed or added, not the encoder. The encoder comes from its own source,
is checked by its hash, and is shared in memory by all models that leave it as it is.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone, hash_tensors
from condviz.encoder.pretrained import load_backbone
from condviz.errors import CheckpointError, ConfigError
from condviz.methods import METHODS, ConditionalScorer
from condviz.version import __version__

FORMAT = 1
"""Version of the folder layout; raised when older code could not read it."""
MANIFEST, WEIGHTS, CARD = "condviz.json", "model.safetensors", "README.md"
FILES = (MANIFEST, WEIGHTS, CARD)
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
KEYS = {"format", "condviz", "method", "config", "backbone", "adapter_scale", "training", "metrics"}
ADAPTER_PARTS = ("lora_A", "lora_B")
_ADAPTER = re.compile(r"\.(lora_[AB])\.\w+\.weight$")
"""End of the names that peft gives to the parts of an adapter."""


def save(
    model: ConditionalScorer,
    folder: str | Path,
    *,
    training: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    card: str | None = None,
    dtype: torch.dtype = torch.float32,
) -> Path:
    """Write a checkpoint; the folder appears, or is replaced, only when it is complete.

    Args:
        model: A model whose encoder can be loaded again by its name. Low-rank adapters of peft in the encoder are
            stored as such.
        folder: Where to; the last part is the name of the model.
        training: How it was made: data, recipe, seed, date; kept as it is.
        metrics: Scores; kept as they are.
        card: Text of the model card; a short one is written if it is None.
        dtype: Number type on disk; float16 halves the file.

    Raises:
        CheckpointError: If the encoder has no name to load it by, a weight is not a finite number, or the folder
            exists and holds something else.
    """
    folder = Path(folder).absolute()
    if folder.exists() and not (folder / MANIFEST).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise CheckpointError(f"{folder} exists and is not a checkpoint: nothing was written. Choose another folder.")
    tensors = {f"head.{name}": value for name, value in model.head_state().items()}
    base = _load_base(model.backbone)
    adapters, adapter_scale = _adapters(model.backbone)
    tensors |= adapters
    tensors |= {f"backbone.{name}": value for name, value in _changes(model.backbone, base).items()}
    manifest = {
        "format": FORMAT,
        "condviz": __version__,
        "method": model.name,
        "config": asdict(model.method_config),
        "backbone": {"name": base.name, "revision": base.revision, "digest": base.digest},
        "adapter_scale": adapter_scale,
        "training": dict(training or {}),
        "metrics": dict(metrics or {}),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        stored = {name: value.detach().cpu().to(dtype).contiguous() for name, value in tensors.items()}
        _check_finite(stored, "This model cannot be saved", "The training diverged, or a projection is not fitted yet.")
        save_file(stored, partial / WEIGHTS, metadata={"format": "pt"})
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        (partial / CARD).write_text(card or _card(folder.name, model, manifest), encoding="utf-8")
        partial.chmod(0o755)
        (partial / WEIGHTS).chmod(0o644)  # both were made private to the user
        _swap(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def load(folder: str | Path, *, device: str = "auto", precision: str = "auto") -> ConditionalScorer:
    """Load a checkpoint.

    Args:
        folder: The folder.
        device, precision: As in `condviz.encoder.pretrained.load_backbone`.

    Raises:
        CheckpointError: If a file is missing, damaged or unsafe, a key is unknown, a tensor is missing, left over or of
            the wrong shape, or the encoder is not the one that the model was trained on.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    shapes = _read_shapes(folder / WEIGHTS)
    method = METHODS[manifest["method"]]
    try:
        config = method.config_cls(**manifest["config"])
    except (ConfigError, TypeError) as error:
        raise CheckpointError(f"{folder / MANIFEST}: config: {error}") from error
    base = manifest["backbone"]
    backbone = load_backbone(base["name"], revision=base["revision"], device=device, precision=precision)
    if backbone.digest != base["digest"]:
        raise CheckpointError(
            f"{folder / MANIFEST}: the model was trained on {base['name']} with hash {base['digest'][:12]}; the one on "
            f"this machine has {backbone.digest[:12]}. Load that revision, or train the model again."
        )
    _check_shapes(folder / WEIGHTS, shapes, backbone)
    tensors = _read_tensors(folder / WEIGHTS)
    _check_finite(tensors, f"{folder / WEIGHTS} is damaged", "Copy it again, or train the model again.")
    changed = _changed_weights(tensors, backbone, manifest["adapter_scale"])
    if changed:
        backbone = with_weights(backbone, changed)
    try:
        model = method(backbone, config)
    except ConfigError as error:
        raise CheckpointError(f"{folder / MANIFEST}: config: {error}") from error
    _load_head(model, {name[5:]: value for name, value in tensors.items() if name.startswith("head.")}, folder)
    return model.to(backbone.device).match_precision().eval()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check condviz.json, without touching the weights.

    Raises:
        CheckpointError: As in `load`.
    """
    path = folder / MANIFEST
    _refuse_pickles(folder)
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {MANIFEST}: it is not a checkpoint of this program.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise CheckpointError(f"{path}: key 'format' is missing.")
    if manifest["format"] != FORMAT:
        raise CheckpointError(
            f"{path}: format is {manifest['format']!r}, made by version {manifest.get('condviz', 'unknown')}; version "
            f"{__version__} reads format {FORMAT}. Install the version that made it, or train the model again."
        )
    if wrong := KEYS.symmetric_difference(manifest):
        known = [f"unknown key {key!r}" if key in manifest else f"key {key!r} is missing" for key in sorted(wrong)]
        raise CheckpointError(f"{path}: {'; '.join(known)}.")
    if not isinstance(manifest["method"], str) or manifest["method"] not in METHODS:
        raise CheckpointError(f"{path}: method is {manifest['method']!r}; known are {', '.join(METHODS)}.")
    _check_types(path, manifest)
    return manifest


def graph_of(manifest: Mapping[str, Any]) -> str:
    """Give the name of the knowledge graph that a model was trained on, or "" for a model of sentences."""
    recipe, data = manifest["training"].get("recipe"), manifest["training"].get("data")
    if not isinstance(recipe, dict) or "graph" not in recipe:
        return ""
    return str(data[0]["graph"]) if data else Path(recipe["graph"]).name


def with_weights(backbone: Backbone, changes: Mapping[str, Tensor]) -> Backbone:
    """Give a backbone with some other weights that shares all the rest, and the cache, with the given one."""
    shared = {id(value): value for value in chain(backbone.model.parameters(), backbone.model.buffers())}
    model = copy.deepcopy(backbone.model, shared)
    for name, value in changes.items():
        module, _, leaf = name.rpartition(".")
        parameter = nn.Parameter(value.to(backbone.device, backbone.dtype), requires_grad=False)
        setattr(model.get_submodule(module), leaf, parameter)
    digest = hash_tensors([("base", torch.tensor(list(backbone.weights_hash.encode()))), *changes.items()])
    return Backbone(
        model,
        backbone.tokenizer,
        name=backbone.name,
        revision=backbone.revision,
        digest=digest,
        instruction=backbone.instruction,
        cache=backbone.cache,
        lock=backbone.lock,
    )


def parameter_count(folder: Path) -> int:
    """Count the numbers that a checkpoint stores, from the header of its weight file."""
    return sum(_numel(shape) for shape in _read_shapes(folder / WEIGHTS).values())


def _refuse_pickles(folder: Path) -> None:
    pickles = [file.name for file in folder.iterdir() if file.suffix.lower() in PICKLES] if folder.is_dir() else []
    if pickles:
        raise CheckpointError(
            f"{folder} holds {pickles[0]}, a pickle, which can run code when it is opened. Remove it: only "
            f"{', '.join(FILES)} belong into a checkpoint."
        )


def _check_types(path: Path, manifest: Mapping[str, Any]) -> None:
    for key in ("config", "training", "metrics"):
        if not isinstance(manifest[key], dict):
            raise CheckpointError(f"{path}: {key} is {manifest[key]!r}, expected an object with keys.")
    if not isinstance(manifest["adapter_scale"], int | float | None):
        raise CheckpointError(f"{path}: adapter_scale is {manifest['adapter_scale']!r}, expected a number or null.")
    base, allowed = manifest["backbone"], {field.name for field in fields(METHODS[manifest["method"]].config_cls)}
    if not isinstance(base, dict) or set(base) != {"name", "revision", "digest"} or not _all_text(base.values()):
        raise CheckpointError(f"{path}: backbone must have exactly the texts name, revision and digest.")
    if unknown := set(manifest["config"]) - allowed:
        raise CheckpointError(f"{path}: config has the unknown keys {sorted(unknown)}; known are {sorted(allowed)}.")


def _read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    if not path.is_file():
        raise CheckpointError(f"{path} is missing.")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged or incomplete ({error}). Copy it again.") from error


def _read_tensors(path: Path) -> dict[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)


def _check_shapes(path: Path, shapes: Mapping[str, tuple[int, ...]], backbone: Backbone) -> None:
    """Check names and shapes of what belongs to the encoder; the head is checked by its own strict loading."""
    known = {name: tuple(value.shape) for name, value in backbone.model.state_dict().items()}
    for name, shape in shapes.items():
        part, _, rest = name.partition(".")
        if part == "head":
            continue
        if part == "adapter":
            module, _, leaf = rest.rpartition(".")
            weight = known.get(f"{module}.weight")
            axis = {"lora_A": 1, "lora_B": 0}.get(leaf)
            if axis is None or weight is None or len(weight) != 2 or len(shape) != 2 or shape[axis] != weight[axis]:
                raise CheckpointError(f"{path}: {name} of shape {shape} does not fit the encoder {backbone.name}.")
        elif part != "backbone" or rest not in known:
            raise CheckpointError(f"{path}: unknown tensor {name}.")
        elif shape != known[rest]:
            raise CheckpointError(f"{path}: {name} has shape {shape}, expected {known[rest]}.")


def _changed_weights(tensors: Mapping[str, Tensor], backbone: Backbone, scale: float | None) -> dict[str, Tensor]:
    """Give the encoder weights that differ: stored whole, or as low-rank adapters that are added on."""
    changed = {name[9:]: value for name, value in tensors.items() if name.startswith("backbone.")}
    weights = backbone.model.state_dict()
    modules = {name.removeprefix("adapter.").rpartition(".")[0] for name in tensors if name.startswith("adapter.")}
    for module in sorted(modules):
        right, left = (tensors.get(f"adapter.{module}.{part}") for part in ADAPTER_PARTS)
        if right is None or left is None or scale is None:
            raise CheckpointError(f"adapter.{module}: lora_A, lora_B, or adapter_scale in {MANIFEST} is missing.")
        if left.shape[1] != right.shape[0]:
            raise CheckpointError(f"adapter.{module}: lora_A has rank {right.shape[0]} and lora_B {left.shape[1]}.")
        update = scale * left.float() @ right.float()
        changed[f"{module}.weight"] = weights[f"{module}.weight"].cpu().float() + update
    return changed


def _load_head(model: ConditionalScorer, stored: Mapping[str, Tensor], folder: Path) -> None:
    expected = model.head_state()
    path = folder / WEIGHTS
    if missing := sorted(set(expected) - set(stored)):
        raise CheckpointError(f"{path}: tensor head.{missing[0]} is missing ({len(missing)} in all).")
    if unknown := sorted(set(stored) - set(expected)):
        raise CheckpointError(f"{path}: unknown tensor head.{unknown[0]} ({len(unknown)} in all).")
    for name, value in stored.items():
        if value.shape != expected[name].shape:
            wanted, found = tuple(expected[name].shape), tuple(value.shape)
            raise CheckpointError(f"{path}: head.{name} has shape {found}, expected {wanted}.")
    model.load_state_dict({name: value.to(expected[name].dtype) for name, value in stored.items()}, strict=False)


def _load_base(backbone: Backbone) -> Backbone:
    try:
        return load_backbone(backbone.name, revision=backbone.revision, device="cpu", precision="float32")
    except CheckpointError as error:
        raise CheckpointError(
            f"A model can only be saved if its encoder can be loaded again, and {backbone.name!r} cannot: {error}"
        ) from error


def _changes(backbone: Backbone, base: Backbone) -> dict[str, Tensor]:
    """Give the encoder weights that differ from the pretrained ones, compared in the precision in use."""
    old = base.model.state_dict()
    # peft moves the weights that it adapts one level down.
    new = {name.replace(".base_layer.", "."): value for name, value in backbone.model.state_dict().items()}
    return {
        name: value
        for name, value in new.items()
        if _ADAPTER.search(name) is None and not torch.equal(value.cpu(), old[name].to(value.dtype))
    }


def _adapters(backbone: Backbone) -> tuple[dict[str, Tensor], float | None]:
    """Give the low-rank adapters that peft has put into an encoder, and the factor of their products."""
    # Attention modules have a number under the same name.
    found = (getattr(module, "scaling", None) for module in backbone.model.modules())
    scales = {factor for scaling in found if isinstance(scaling, dict) for factor in scaling.values()}
    if not scales:
        return {}, None
    if len(scales) > 1:
        raise CheckpointError(f"The adapters have several scales, {sorted(scales)}; a checkpoint holds one.")
    tensors = {
        "adapter." + _ADAPTER.sub(r".\1", name): value
        for name, value in backbone.model.state_dict().items()
        if _ADAPTER.search(name)
    }
    return tensors, scales.pop()


def _swap(new: Path, target: Path) -> None:
    """Put a complete folder in the place of another; the other one comes back if that fails."""
    old = None
    if target.exists():
        old = target.with_name(f".{target.name}-old")
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old is not None:
            old.rename(target)
        raise
    if old is not None:
        shutil.rmtree(old)


def _check_finite(tensors: Mapping[str, Tensor], subject: str, advice: str) -> None:
    for name, value in tensors.items():
        if not bool(value.isfinite().all()):
            raise CheckpointError(f"{subject}: {name} has values that are infinite or not a number. {advice}")


def _all_text(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _card(name: str, model: ConditionalScorer, manifest: Mapping[str, Any]) -> str:
    lines = [f"# {name}", "", f"{model.title}: {model.summary}", "", f"Paper: {model.reference}.", ""]
    lines += [f"Encoder: {manifest['backbone']['name']} ({manifest['backbone']['revision'] or 'local'}).", ""]
    for title in ("config", "training", "metrics"):
        rows = [f"- {key}: {value}" for key, value in manifest[title].items()] or ["- not stated"]
        lines += [f"## {title.capitalize()}", "", *rows, ""]
    return "\n".join(lines)


def _numel(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())
