"""Save and load trained models: what they are (condviz.json), what was trained (model.safetensors), and a model card.

A checkpoint holds the weights that training changed or added, not the encoder. The encoder comes from its own source,
is checked by its hash, and is shared in memory by all models that leave it as it is.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakValueDictionary

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from condviz import __version__
from condviz.encoder.backbone import Backbone, hash_tensors
from condviz.encoder.pretrained import load_backbone
from condviz.errors import CheckpointError, ConfigError
from condviz.methods import METHODS, ConditionalScorer
from condviz.models.manifest import (
    CARD,
    ENCODER,
    FILES,
    FORMAT,
    MANIFEST,
    SHA256,
    WEIGHTS,
    check_replaceable,
    check_weights,
    hash_file,
    read_manifest,
    weight_files,
)

_ADAPTER = re.compile(r"\.(lora_[AB])\.\w+\.weight$")
"""End of the names that peft gives to the parts of an adapter."""
_shared: WeakValueDictionary[tuple[int, str], Backbone] = WeakValueDictionary()
"""Trained encoders by the pretrained one, which they keep in memory, and the file that changes it."""


def save(
    model: ConditionalScorer,
    folder: str | Path,
    *,
    training: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    card: str | None = None,
    dtype: torch.dtype = torch.float32,
) -> Path:
    """Save a checkpoint; the folder appears, or is replaced, only when it is complete.

    Args:
        model: A model whose encoder can be loaded again by its name. Low-rank adapters of peft in the encoder are
            stored as such.
        folder: Its last part is the name of the model.
        training: How it was made: data, recipe, seed, date; stored as it is.
        metrics: Scores; stored as they are.
        card: Text of the model card; a short one is written if it is None.
        dtype: Number type on disk; float16 halves the file.

    Raises:
        CheckpointError: If the encoder has no name to load it by, a weight is not a finite number, or the folder
            exists and holds something else.
    """
    folder = Path(folder).absolute()
    check_replaceable(folder)
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
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True) as made:
        partial = Path(made)
        stored = {name: value.detach().cpu().to(dtype).contiguous() for name, value in tensors.items()}
        _check_finite(stored, "This model cannot be saved", "The training diverged, or a projection is not fitted yet.")
        save_file(stored, partial / WEIGHTS, metadata={"format": "pt"})
        manifest[SHA256] = hash_file(partial / WEIGHTS)
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        (partial / CARD).write_text(card or _card(folder.name, model, manifest), encoding="utf-8")
        partial.chmod(0o755)
        (partial / WEIGHTS).chmod(0o644)  # both were made private to the user
        _swap(partial, folder)
    return folder


def move(folder: Path, target: Path) -> Path:
    """Move a checkpoint, for instance one that was tried elsewhere; the target is replaced only by a whole one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent, ignore_cleanup_errors=True) as partial:
        _swap(Path(shutil.move(folder, partial)), target)  # copies between file systems
    return target


def load(folder: str | Path, **options: Any) -> ConditionalScorer:  # noqa: ANN401 - of `load`
    """Load a checkpoint; device, precision and backend as in `condviz.encoder.pretrained.load_backbone`.

    Raises:
        CheckpointError: If a file is missing, damaged or unsafe, a key is unknown, a tensor is missing, left over or of
            the wrong shape, or the encoder is not the one that the model was trained on.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    check_weights(folder, manifest)
    method = METHODS[manifest["method"]]
    try:
        config = method.config_cls(**manifest["config"])
    except (ConfigError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / MANIFEST}: config: {error}") from error
    base = manifest["backbone"]
    backbone = load_backbone(base["name"], revision=base["revision"], **options)
    if backbone.digest != base["digest"]:
        raise CheckpointError(
            f"{folder / MANIFEST}: the model was trained on {base['name']} with hash {base['digest'][:12]}; the one on "
            f"this machine has {backbone.digest[:12]}. Load that revision, or train the model again."
        )
    *before, tensors = map(load_file, weight_files(folder, manifest))
    _check_finite(tensors, f"{folder / WEIGHTS} is damaged", "Copy it again, or train the model again.")
    changes = any(name.startswith(ENCODER) for name in tensors)
    tensors |= {name: one[name] for one in before for name in one if name.startswith(ENCODER) and name not in tensors}
    stored = _split(folder / WEIGHTS, tensors)
    if changed := _changed_weights(folder / WEIGHTS, stored, backbone, manifest["adapter_scale"]):
        whole = (manifest if changes else manifest["start"])[SHA256] if manifest.get("identity") == "file" else ""
        key = id(backbone), whole
        backbone = _shared.get(key) or with_weights(backbone, changed, identity=whole)
        if whole:
            _shared[key] = backbone
    try:
        model = method(backbone, config)
    except (ConfigError, RuntimeError, MemoryError) as error:  # the latter from sizes that no machine can hold
        raise CheckpointError(f"{folder / MANIFEST}: config: {error}") from error
    _load_head(model, stored["head"], folder / WEIGHTS)
    return model.to(backbone.device).match_precision().eval()


def with_weights(backbone: Backbone, changes: Mapping[str, Tensor], *, identity: str = "") -> Backbone:
    """Return a backbone with some other weights that shares all the rest with the given one; see `with_model`.

    Its digest is that of the changes, or of what stands for them, `identity`.
    """
    shared = {id(value): value for value in chain(backbone.model.parameters(), backbone.model.buffers())}
    model = copy.deepcopy(backbone.model, shared)
    for name, value in changes.items():
        module, _, leaf = name.rpartition(".")
        parameter = nn.Parameter(value.to(backbone.device, backbone.dtype), requires_grad=False)
        setattr(model.get_submodule(module), leaf, parameter)
    base = ("base", torch.tensor(list(backbone.weights_hash.encode())))
    told = {"file": torch.tensor(list(identity.encode()))} if identity else changes
    return backbone.with_model(model, hash_tensors([base, *told.items()]))


def _split(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Divide tensors by the first part of their names: what is changed, added on, or of the method."""
    parts: dict[str, dict[str, Tensor]] = {"backbone": {}, "adapter": {}, "head": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition(".")
        if part not in parts:
            raise CheckpointError(f"{path}: unknown tensor {name}.")
        parts[part][rest] = value
    return parts


def _check_fit(path: Path, part: str, stored: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    for name, value in stored.items():
        if name not in expected:
            raise CheckpointError(f"{path}: unknown tensor {part}.{name}.")
        if value.shape != expected[name].shape:
            wanted, found = tuple(expected[name].shape), tuple(value.shape)
            raise CheckpointError(f"{path}: {part}.{name} has shape {found}, expected {wanted}.")


def _changed_weights(
    path: Path, stored: Mapping[str, Mapping[str, Tensor]], backbone: Backbone, scale: float | None
) -> dict[str, Tensor]:
    """Return the encoder weights that differ: stored whole, with the low-rank adapters that are added on."""
    weights, adapters = backbone.model.state_dict(), stored["adapter"]
    _check_fit(path, "backbone", stored["backbone"], weights)
    changed = dict(stored["backbone"])
    for module in sorted({name.rpartition(".")[0] for name in adapters}):
        right, left = adapters.get(f"{module}.lora_A"), adapters.get(f"{module}.lora_B")
        if right is None or left is None or scale is None:
            raise CheckpointError(
                f"{path}: adapter.{module}: lora_A, lora_B, or adapter_scale in {MANIFEST} is missing."
            )
        # A model that started from a trained one has both: the weights of its start, and what the adapters add.
        weight = changed.get(f"{module}.weight", weights.get(f"{module}.weight"))
        if weight is None or left.dim() != 2 or right.dim() != 2 or weight.shape != (len(left), right.shape[1]):
            raise CheckpointError(f"{path}: adapter.{module} does not fit the encoder {backbone.name}.")
        if left.shape[1] != len(right):
            raise CheckpointError(f"{path}: adapter.{module}: lora_A has rank {len(right)} and lora_B {left.shape[1]}.")
        changed[f"{module}.weight"] = weight.cpu().float() + scale * left.float() @ right.float()
    return changed


def _load_head(model: ConditionalScorer, stored: Mapping[str, Tensor], path: Path) -> None:
    expected = model.head_state()
    if missing := sorted(set(expected) - set(stored)):
        raise CheckpointError(f"{path}: tensor head.{missing[0]} is missing ({len(missing)} in all).")
    _check_fit(path, "head", stored, expected)
    model.load_state_dict({name: value.to(expected[name].dtype) for name, value in stored.items()}, strict=False)


def _load_base(backbone: Backbone) -> Backbone:
    try:
        return load_backbone(backbone.name, revision=backbone.revision, device="cpu", precision="float32")
    except CheckpointError as error:
        raise CheckpointError(
            f"A model can only be saved if its encoder can be loaded again, and {backbone.name!r} cannot: {error}"
        ) from error


def _changes(backbone: Backbone, base: Backbone) -> dict[str, Tensor]:
    """Return the encoder weights that differ from the pretrained ones, compared in the precision in use."""
    old = base.model.state_dict()
    # peft moves the weights that it adapts one level down.
    new = {name.replace(".base_layer.", "."): value for name, value in backbone.model.state_dict().items()}
    return {
        name: value
        for name, value in new.items()
        if _ADAPTER.search(name) is None and not torch.equal(value.cpu(), old[name].to(value.dtype))
    }


def plain_name(name: str) -> str:
    """Return the name of a part of an adapter as checkpoints have it: without peft's ending."""
    return _ADAPTER.sub(r".\1", name)


def _adapters(backbone: Backbone) -> tuple[dict[str, Tensor], float | None]:
    """Return the low-rank adapters that peft has put into an encoder, and the factor of their products."""
    # Attention modules have a number under the same name.
    found = (getattr(module, "scaling", None) for module in backbone.model.modules())
    scales = {factor for scaling in found if isinstance(scaling, dict) for factor in scaling.values()}
    if not scales:
        return {}, None
    if len(scales) > 1:
        raise CheckpointError(f"The adapters have several scales, {sorted(scales)}; a checkpoint holds one.")
    tensors = {
        f"adapter.{plain_name(name)}": value
        for name, value in backbone.model.state_dict().items()
        if _ADAPTER.search(name)
    }
    return tensors, scales.pop()


def _swap(new: Path, target: Path) -> None:
    """Replace a folder by a complete one; the old one comes back if that fails."""
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
        if not bool(value.float().isfinite().all()):
            raise CheckpointError(f"{subject}: {name} has infinite or NaN values. {advice}")


def _card(name: str, model: ConditionalScorer, manifest: Mapping[str, Any]) -> str:
    base = manifest["backbone"]
    lines = ["---", "library_name: condviz", "pipeline_tag: sentence-similarity", "language: en"]
    lines += [f"base_model: {base['name']}"] if base["revision"] else []
    lines += [f"tags: [condviz, {model.name}]", "---", "", f"# {name}", "", f"{model.title}: {model.summary}", ""]
    lines += [f"Paper: {model.reference}.", "", f"Encoder: {base['name']} ({base['revision'] or 'local'}).", ""]
    call = 'model.score(["A man surfs."], ["A woman skis."], ["the sport"])'
    lines += ["## Use", "", "```python", "import condviz", "", 'model = condviz.load("OWNER/NAME")', call, "```", ""]
    for title in ("config", "training", "metrics"):
        rows = [f"- {key}: {value}" for key, value in manifest[title].items()] or ["- not stated"]
        lines += [f"## {title.capitalize()}", "", *rows, ""]
    return "\n".join(lines)


# ---- folders that other programs read: ours, which sentence-transformers opens as it is ------------------------------

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
_OURS = "condviz.interop.ConditionalModule"
_THEIRS = "sentence_transformers.models"
_TRANSFORMER, _POOLING = "0_Transformer", "1_Pooling"
_HEADING = "\n## With sentence-transformers\n"
_USE = """
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("OWNER/NAME"{switch})
model.encode([["A man surfs.", "the sport"], ["A woman skis.", "the sport"]])  # pairs of sentence and condition
```
"""


def export(model: ConditionalScorer, folder: Path) -> None:
    """Write a model into a folder: a new one, an empty one, or that of an earlier checkpoint.

    The folder holds the checkpoint and the list of modules of sentence-transformers. A model that is one transformer
    with pooling is written out for it in full, and needs nothing of ours; for others the list names
    `condviz.interop.ConditionalModule`, which reads the checkpoint.

    Raises:
        CheckpointError: If the folder holds something else, or the model cannot be saved.
        ConfigError: If nobody has trained the model.
    """
    check_replaceable(folder)
    save_checkpoint(model, folder)
    if model.encodes:
        _add_modules(folder)
        # Else sentence-transformers would not import condviz; no code comes from the folder.
        switch = "" if model.is_plain_transformer else ", trust_remote_code=True"
        card = folder / CARD
        own = card.read_text(encoding="utf-8").partition(_HEADING)[0]  # that of a folder saved before has it already
        card.write_text(own + _HEADING + _USE.format(switch=switch), encoding="utf-8")


def save_checkpoint(model: ConditionalScorer, folder: Path) -> None:
    """Write the files of a checkpoint alone, whatever else the folder holds. See `export`."""
    info = model.info
    unchanged = info.source != "memory" and info.revision == model.fingerprint[:12]
    if unchanged and not info.trained:
        raise ConfigError(f"{info.name} is not trained: under a name of its own it would pass for a trained model.")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        made = Path(info.path) if unchanged and info.path else save(model, Path(place) / folder.name)
        for name in FILES:
            shutil.copy2(made / name, folder / name)


def _add_modules(folder: Path) -> None:
    """Write what sentence-transformers reads."""
    model = load(folder, device="cpu", precision="float32")  # with adapters added to the weights
    if model.is_plain_transformer:
        inside = folder / _TRANSFORMER
        model.backbone.model.save_pretrained(inside)
        if model.backbone.tokenizer is not None:
            model.backbone.tokenizer.save_pretrained(inside)
        if getattr(model.backbone.model.config, "type_vocab_size", 0) > 1:
            # Some tokenizers would not tell sentence and condition apart.
            settings = json.loads((inside / "tokenizer_config.json").read_text(encoding="utf-8"))
            names = ["input_ids", "token_type_ids", "attention_mask"]
            _write(inside / "tokenizer_config.json", settings | {"model_input_names": names})
        _write(inside / "sentence_bert_config.json", {"max_seq_length": model.max_seq_length, "do_lower_case": False})
        pooling = model.method_config.pooling
        modes = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
        chosen = {mode: name == pooling for name, mode in modes.items()}
        _write(folder / _POOLING / "config.json", {"word_embedding_dimension": model.backbone.hidden_size} | chosen)
        modules = [(_TRANSFORMER, f"{_THEIRS}.Transformer"), (_POOLING, f"{_THEIRS}.Pooling")]
    else:
        modules = [("", _OURS)]
    listed = [{"idx": n, "name": str(n), "path": path, "type": kind} for n, (path, kind) in enumerate(modules)]
    _write(folder / MODULES, listed)
    _write(folder / SETTINGS, {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"})


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
