"""Names of models: which there are, what they are, and how to load them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

from condviz.encoder.pretrained import is_folder, load_backbone
from condviz.errors import CheckpointError, UnknownModelError
from condviz.methods import METHODS, ConditionalScorer
from condviz.methods.variants import describe_variant, split_variant
from condviz.models import checkpoints
from condviz.paths import CHECKPOINTS
from condviz.types import ModelInfo

ZERO_SHOT_SUFFIX = "-zero-shot"

TITLES = {"tri-hadamard": "Tri-encoder, Hadamard", "tri-concat": "Tri-encoder, concatenation", "minilm": "MiniLM"}
"""Names for people where the title of the method would not tell two models apart."""


@dataclass(frozen=True)
class ZeroShot:
    """A model that needs no training: a method and its settings on the pretrained encoder."""

    method: str
    config: Mapping[str, Any]
    identity: bool = False  # start the condition's linear layer as the identity instead of at random


ZERO_SHOT = {
    "minilm": ZeroShot("unconditional", {"pooling": "mean"}),
    "bi-encoder": ZeroShot("bi-encoder", {"pooling": "mean"}),
    "tri-hadamard": ZeroShot("tri-encoder", {"composition": "hadamard", "pooling": "mean"}, identity=True),
    "csr": ZeroShot("csr", {"num_routed_layers": 1}),
    "csr-bi": ZeroShot("csr-bi", {"pooling": "mean"}),
    "csr-prefix": ZeroShot("csr-prefix", {"pooling": "mean"}),
    "case": ZeroShot("case", {"prompt": "cond", "subtract": True}),
}


def list_models() -> list[str]:
    """Give the names of all models of sentences: checkpoints, and what works without training.

    Where a checkpoint has the name of an untrained model, that one is listed as NAME-zero-shot. Models of knowledge
    graphs can be loaded as well; `link_models` lists them.
    """
    trained = [name for name in _checkpoint_names() if not _graph_of(name)]
    untrained = [name + ZERO_SHOT_SUFFIX if name in trained else name for name in ZERO_SHOT]
    return [*untrained[:1], *trained, *untrained[1:]]


def link_models(graph: str = "") -> list[str]:
    """Give the names of the models that were trained to predict the links of a knowledge graph.

    Args:
        graph: Name of the graph; "" for any.
    """
    found = {name: _graph_of(name) for name in _checkpoint_names()}
    return [name for name, known in found.items() if known and graph in ("", known)]


def describe(name: str) -> ModelInfo:
    """Say what a model is without loading weights.

    Raises:
        UnknownModelError: If there is no such model on this machine.
        CheckpointError: If its folder cannot be read.
    """
    base, variant = split_variant(str(name))
    if variant and not is_folder(name):
        return describe_variant(describe(base), variant)
    folder, zero_shot = _resolve(name)
    if zero_shot is not None:
        method = METHODS[zero_shot.method]
        added, path, source, trained, graph = 0, "", "zero-shot", False, ""
    elif folder is not None:
        manifest = checkpoints.read_manifest(folder)
        method, graph = METHODS[manifest["method"]], checkpoints.graph_of(manifest)
        added, path, trained = checkpoints.parameter_count(folder), str(folder), True
        source = "checkpoint" if folder.parent == CHECKPOINTS else "folder"
    else:
        raise _unknown(name)
    return ModelInfo(
        name=folder.name if folder is not None else name,
        method=method.name,
        title=_title(folder.name if folder else name, method),
        kind=method.kind,
        trained=trained,
        source=source,
        revision="",
        score_range=method.score_range,
        added_parameters=added,
        reference=method.reference,
        summary=method.summary,
        path=path,
        graph=graph,
    )


def load(name: str, *, device: str = "auto", precision: str = "auto") -> ConditionalScorer:
    """Load a model.

    Args:
        name: One of `list_models()`, a checkpoint folder, or a hub id "owner/name" of a repository with a checkpoint;
            of a CSR model also a variant such as "csr@hidden", see `condviz.methods.variants`.
        device: "auto", "cpu", "cuda" or "mps".
        precision: "auto", "float32", "bfloat16" or "float16".

    Raises:
        UnknownModelError: If there is no such model.
        CheckpointError: If it cannot be read.
        ConfigError: If device or precision is not available.

    Example:
        >>> model = load("bi-encoder")
        >>> model.score(["A man surfs."], ["A woman skis."], ["the sport"]).shape
        (1,)
    """
    base, variant = split_variant(str(name))
    if variant and not is_folder(name):
        return load(base, device=device, precision=precision).make_variant(variant)
    folder, zero_shot = _resolve(name)
    if folder is None and zero_shot is None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
            raise _unknown(name)
        folder = _download(name)
    if zero_shot is None:
        model = checkpoints.load(folder, device=device, precision=precision)
        info = replace(describe(str(folder)), name=name if "/" in name and not is_folder(name) else folder.name)
        info = replace(info, source="hub" if "/" in info.name else info.source)
    else:
        model, info = _build(zero_shot, device, precision), describe(name)
    model.info = replace(info, revision=model.fingerprint[:12])
    return model


def _build(preset: ZeroShot, device: str, precision: str) -> ConditionalScorer:
    method = METHODS[preset.method]
    backbone = load_backbone(device=device, precision=precision)
    model = method(backbone, method.config_cls(**preset.config))
    if preset.identity:
        layer = model.condition[-1]
        torch.nn.init.eye_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    return model.to(backbone.device).match_precision().eval()


def _title(name: str, method: type[ConditionalScorer]) -> str:
    plain = name.removesuffix(ZERO_SHOT_SUFFIX)
    if plain in TITLES or plain == method.name:
        return TITLES.get(plain, method.title)
    return f"{method.title}: {name}"  # several models of one method have to be told apart


def _checkpoint_names() -> list[str]:
    if not CHECKPOINTS.is_dir():
        return []
    folders = (folder for folder in CHECKPOINTS.iterdir() if not folder.name.startswith("."))  # those are half written
    return sorted(folder.name for folder in folders if (folder / checkpoints.MANIFEST).is_file())


def _graph_of(name: str) -> str:
    """Give the graph of a checkpoint; "" for one of sentences, and for a damaged one, which is told when it loads."""
    try:
        return checkpoints.graph_of(checkpoints.read_manifest(CHECKPOINTS / name))
    except CheckpointError:
        return ""


def _resolve(name: str) -> tuple[Path | None, ZeroShot | None]:
    """Give the folder of a trained model, or the recipe of an untrained one, or neither."""
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise _unknown(name)
    if name in _checkpoint_names():
        return CHECKPOINTS / name, None
    preset = ZERO_SHOT.get(name.removesuffix(ZERO_SHOT_SUFFIX))
    if preset is not None:
        return None, preset
    if is_folder(name):
        return Path(name).resolve(), None
    return None, None


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(checkpoints.FILES)))
    except Exception as error:  # the hub client raises errors of several libraries
        reason = str(error).splitlines()[0][:200]
        raise CheckpointError(
            f"{name} is no model or folder on this machine, and could not be fetched from the hub "
            f"({error.__class__.__name__}: {reason}). Models here: {', '.join([*list_models(), *link_models()])}."
        ) from error


def _unknown(name: object) -> UnknownModelError:
    names = [*list_models(), *link_models()]
    near = get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UnknownModelError(f"There is no model {str(name)[:80]!r}.{hint} Models: {', '.join(names)}.")
