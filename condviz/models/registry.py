"""Names of models: which exist, what they are, and how to load them. Only `load` imports torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar, Unpack, cast, overload

from annotated_doc import Doc

from condviz.encoder import DEFAULT_BACKBONE
from condviz.encoder.download import explain_absent
from condviz.errors import CheckpointError, ConfigError, UnknownModelError, suggest
from condviz.methods.catalog import CATALOG, Method, describe_variant, split_variant
from condviz.models import hub, manifest
from condviz.paths import MODEL_FOLDERS, is_folder
from condviz.types import ModelInfo

if TYPE_CHECKING:
    from condviz.encoder.backbone import Backbone
    from condviz.methods.base import ConditionalScorer
    from condviz.methods.baselines import BiEncoder, CrossEncoder, TriEncoder, Unconditional
    from condviz.methods.case import CASE
    from condviz.methods.csr import CSR, CSRBi, CSRPrefix
    from condviz.methods.hyper_cl import HyperCL

    Model = TypeVar("Model", bound=ConditionalScorer)


class Where(TypedDict, total=False):
    """Options of `load` for a model that ships."""

    device: str
    precision: str
    backend: str


ZERO_SHOT_SUFFIX = "-zero-shot"
ON = " on "
"""Between a method and the encoder that it was put on, in the name of such a model: "csr on intfloat/e5-base-v2"."""
HEAD_SEED = 0
"""Seed of the weights that a method adds where nobody has trained them."""

TITLES = {"tri-hadamard": "Tri-encoder, Hadamard", "tri-concat": "Tri-encoder, concatenation", "minilm": "MiniLM"}
"""Names for people where the title of the method would not tell two models apart."""
ENDINGS = {"csts": "after C-STS", "mpnet": "on MPNet"}
"""What follows the method in the name of a shipped model: its last training, or its encoder."""


@dataclass(frozen=True)
class Preset:
    """A method and its settings on an encoder that nobody has trained for it."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


UNTRAINED = {
    "minilm": Preset("unconditional", {"pooling": "mean"}),
    "bi-encoder": Preset("bi-encoder", {"pooling": "mean"}),
    "tri-hadamard": Preset("tri-encoder", {"composition": "hadamard", "pooling": "mean"}),
    "tri-concat": Preset("tri-encoder", {"composition": "concat"}),
    "csr": Preset("csr", {"num_routed_layers": 1}),
    "csr-bi": Preset("csr-bi", {"pooling": "mean"}),
    "csr-prefix": Preset("csr-prefix", {"pooling": "mean"}),
    "case": Preset("case", {"prompt": "cond", "subtract": True}),
}
"""What `load(name, backbone=...)` builds under these names; every other method under its own, with a random head."""
ZERO_SHOT = {"minilm": UNTRAINED["minilm"]} | {
    f"{name}{ZERO_SHOT_SUFFIX}": UNTRAINED[name]
    for name in ("bi-encoder", "tri-hadamard", "csr", "csr-bi", "csr-prefix", "case")
}
"""Models that need no training. The suffix tells them from the trained ones; minilm is the default encoder as it is."""


def list_models() -> list[str]:
    """Return the names of all models of sentences: checkpoints, and what works without training.

    Untrained ones have the suffix -zero-shot. A damaged checkpoint is listed as well: `describe` says what is wrong
    with it. `link_models` lists the models of knowledge graphs.
    """
    trained = [name for name, folder in _checkpoints().items() if not _graph_of(folder)]
    untrained = [name for name in ZERO_SHOT if name not in trained]
    return [*untrained[:1], *trained, *untrained[1:]]


def link_models(graph: str = "") -> list[str]:
    """Return the names of the models that were trained to predict the links of a knowledge graph."""
    found = {name: _graph_of(folder) for name, folder in _checkpoints().items()}
    return [name for name, known in found.items() if known and graph in ("", known)]


def describe(name: str | os.PathLike[str]) -> ModelInfo:
    """Describe a model without loading weights.

    Raises:
        UnknownModelError: If there is no such model on this machine.
        CheckpointError: If its folder cannot be read.
    """
    name = _text(name)
    base, variant = split_variant(name)
    if variant and not is_folder(name):
        return describe_variant(describe(base), variant)
    folder, preset = _resolve(name)
    if preset is not None:
        return _describe(name, preset)
    if folder is None:
        raise _unknown(name)
    content, downloaded = manifest.read_manifest(folder), name in hub.REVISIONS and folder.name != name
    return _describe(
        name if downloaded else folder.name,
        Preset(content["method"], content["config"]),
        trained=True,
        source="hub" if downloaded else "checkpoint" if folder.parent in MODEL_FOLDERS else "folder",
        added_parameters=manifest.parameter_count(folder, content),
        path=str(folder),
        graph=manifest.graph_of(content),
        calibration=manifest.calibration_of(content),
        encoder=content["backbone"]["name"],
        missing=explain_absent(content["backbone"]["name"]),
    )


@overload
def load(name: Literal["minilm"], **options: Unpack[Where]) -> Unconditional: ...
@overload
def load(name: Literal["cross-encoder", "cross-encoder-csts"], **options: Unpack[Where]) -> CrossEncoder: ...
@overload
def load(
    name: Literal["bi-encoder", "bi-encoder-csts", "bi-encoder-mpnet", "bi-encoder-zero-shot"], **options: Unpack[Where]
) -> BiEncoder: ...
@overload
def load(
    name: Literal["tri-hadamard", "tri-concat", "tri-hadamard-zero-shot", "everyday-concat", "wn18rr-concat"],
    **options: Unpack[Where],
) -> TriEncoder: ...
@overload
def load(name: Literal["hyper-cl", "hyper-cl-csts", "wn18rr-hyper-cl"], **options: Unpack[Where]) -> HyperCL: ...
@overload
def load(name: Literal["csr", "csr-csts", "csr-zero-shot"], **options: Unpack[Where]) -> CSR: ...
@overload
def load(name: Literal["csr-bi", "csr-bi-mpnet", "csr-bi-zero-shot"], **options: Unpack[Where]) -> CSRBi: ...
@overload
def load(name: Literal["csr-prefix", "csr-prefix-zero-shot"], **options: Unpack[Where]) -> CSRPrefix: ...
@overload
def load(name: Literal["case", "case-csts", "case-mpnet", "case-zero-shot"], **options: Unpack[Where]) -> CASE: ...
@overload
def load(name: Model, **options: Any) -> Model: ...  # noqa: ANN401
@overload
def load(name: str | os.PathLike[str], **options: Any) -> ConditionalScorer: ...  # noqa: ANN401
def load(
    name: str | os.PathLike[str] | ConditionalScorer,
    *,
    backbone: Annotated[
        str | os.PathLike[str], Doc("Put the method that is named, untrained, on this encoder (hub id or folder)")
    ] = "",
    revision: str = "",
    device: Annotated[str, Doc("auto, cpu, cuda or mps")] = "auto",
    precision: Annotated[str, Doc("auto, float32, bfloat16, float16 or int8")] = "auto",
    backend: Annotated[str, Doc("auto, torch, or onnx for ONNX Runtime")] = "auto",
    **settings: Any,
) -> ConditionalScorer:
    """Load a model, or build a method on any encoder.

    Args:
        name: One of `list_models()`, a model that ships (its weights are downloaded where they are not on this
            machine), a checkpoint folder, or a hub id "owner/name" of a repository with a checkpoint; of a CSR model
            also a variant such as "csr@hidden", see `condviz.methods.catalog`. With `backbone`: a method, or a key of
            `UNTRAINED`; "csr on intfloat/e5-base-v2" says both in one. A loaded model is returned as it is.
        backbone: Hub id or folder of an encoder: the method is built on it, untrained. Pooling, prefix and instruction
            are those of the encoder's family; weights that the method adds are random, with a fixed seed.
        revision: Commit, branch or tag of a hub id; "" takes the newest.
        device, precision: As the signature says.
        backend: As the signature says; see `condviz.encoder.pretrained.choose_backend`.
        **settings: Of the method, for instance pooling="cls"; only with `backbone`.

    Raises:
        UnknownModelError: If there is no such model, or a model that ships is neither here nor on the hub: a name
            without -zero-shot or an encoder never stands for untrained weights.
        CheckpointError: If it, or the encoder, cannot be read.
        ConfigError: If device, precision or backend is not available, or a setting is unknown or not allowed.

    Example:
        >>> model = load("bi-encoder")
        >>> model.score(["A man surfs."], ["A woman skis."], ["the sport"]).shape
        (1,)
    """
    if hasattr(name, "score"):
        return cast("ConditionalScorer", name)
    name, backbone = _text(name), os.fspath(backbone)
    if not backbone and (built := _split_built(name)) is not None:
        name, backbone = built
    if revision and (backbone or not hub.is_hub_id(name)):
        raise ConfigError(f'revision="{revision}" goes with a hub id "owner/name" alone, got {name!r}.')
    options: dict[str, Any] = {"device": device, "precision": precision, "backend": backend}
    if backbone:
        return _build_on(backbone, name, settings, options)
    if settings:
        raise ConfigError(
            f"{', '.join(settings)}: the settings of {name} are stored with it. Name an encoder to build another, for "
            'instance backbone="intfloat/e5-base-v2".'
        )
    base, variant = split_variant(name)
    if variant and not is_folder(name):
        return load(base, **options).make_variant(variant)
    preset = _resolve(name)[1]
    if preset is not None:
        from condviz.encoder.pretrained import load_backbone

        return _build(preset, describe(name), load_backbone(**options))
    return _load_trained(name, revision, **options)


def _load_trained(name: str, revision: str, **options: Any) -> ConditionalScorer:  # noqa: ANN401 - of `load`
    from condviz.models import checkpoints

    folder, from_hub = _resolve(name)[0], False
    if folder is None and name in hub.REVISIONS:
        folder = hub.fetch_shipped(name)
    elif folder is None:
        if not hub.is_hub_id(name):
            raise _unknown(name)
        here = f"It is not a model or folder here, either. Models here: {', '.join([*list_models(), *link_models()])}."
        folder, from_hub = hub.download(name, revision, advice=here), True
    model = checkpoints.load(folder, **options)
    info = replace(describe(folder), name=name, source="hub") if from_hub else describe(name)
    model.info = replace(info, revision=model.fingerprint[:12])
    return model


def _build_on(backbone: str, name: str, settings: Mapping[str, Any], options: Mapping[str, Any]) -> ConditionalScorer:
    """Build a method on an encoder, with the pooling that the encoder was trained with."""
    from condviz.encoder.pretrained import load_backbone

    if name not in UNTRAINED and name not in CATALOG:
        raise _no_method(name)
    preset = _preset(name)
    method, encoder = CATALOG[preset.method], load_backbone(backbone, **options)
    known = [item.name for item in fields(method.config_cls)]
    if wrong := [key for key in settings if key not in known]:
        raise ConfigError(f"{name} has no setting {wrong[0]!r}. Settings: {', '.join(known)}.")
    # A router decides by itself over which tokens it pools.
    own = {"pooling": encoder.pooling} if encoder.pooling and method.meets is None else {}
    preset = replace(preset, settings={**preset.settings, **own, **settings})
    model = _build(preset, _describe(f"{name}{ON}{backbone}", preset), encoder)
    model.info = replace(model.info, added_parameters=model.added_parameters)
    return model


def _preset(name: str) -> Preset:
    return UNTRAINED.get(name) or Preset(name)


def _build(preset: Preset, info: ModelInfo, backbone: Backbone) -> ConditionalScorer:
    import torch

    from condviz.methods import METHODS

    method = METHODS[preset.method]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(HEAD_SEED)
        model = method(backbone, method.config_cls(**preset.settings))
        model.start_untrained()
    model = model.to(backbone.device).match_precision().eval()
    model.info = replace(info, revision=model.fingerprint[:12])
    return model


def _describe(name: str, preset: Preset, **known: Any) -> ModelInfo:  # noqa: ANN401 (fields of `ModelInfo`)
    method = CATALOG[preset.method]
    routed = preset.settings.get("num_routed_layers", getattr(method.config_cls, "num_routed_layers", 0))
    plain = {"title": _title(name, method), "trained": False, "source": "zero-shot", "revision": ""}
    plain |= {"added_parameters": 0, "has_router": method.meets is not None and bool(routed)}
    plain["encoder"] = (_split_built(name) or ("", DEFAULT_BACKBONE))[1]
    return method.describe(name, **plain | known)


def _title(name: str, method: Method) -> str:
    if (built := _split_built(name)) is not None:
        return f"{TITLES.get(built[0], method.title)} on {Path(built[1]).name}"
    plain = name.removesuffix(ZERO_SHOT_SUFFIX)
    if plain in TITLES or plain == method.name:
        return TITLES.get(plain, method.title)
    rest = name.removeprefix(f"{method.name}-")  # several models of one method have to be told apart
    if rest in ENDINGS:
        return f"{method.title} {ENDINGS[rest]}"
    return f"{method.title}: {name}" if rest == name else f"{method.title}, {rest}"


def _split_built(name: str) -> tuple[str, str] | None:
    """Divide the name of a method on an encoder into the two; None where it is no such name."""
    method, on, encoder = str(name).partition(ON)
    return (method, encoder) if on and encoder and (method in UNTRAINED or method in CATALOG) else None


def _checkpoints() -> dict[str, Path]:
    """Return the folders of trained models by name: those of `MODEL_FOLDERS`, and what was downloaded before."""
    found = {name: folder for name in hub.REVISIONS if (folder := hub.find_downloaded(name))}
    for place in reversed(MODEL_FOLDERS):
        with suppress(OSError):
            found |= {folder.name: folder for folder in place.iterdir() if (folder / manifest.MANIFEST).is_file()}
    return {name: found[name] for name in sorted(found) if not name.startswith(".")}  # those: half written


def _graph_of(folder: Path) -> str:
    """Return the graph of a checkpoint; "" for one of sentences, and for a damaged one, reported when it is used."""
    try:
        return manifest.graph_of(manifest.read_manifest(folder))
    except CheckpointError:
        return ""


def find_folder(name: str) -> Path:
    """Return the folder of a trained model by its name or path; raises UnknownModelError where there is none."""
    folder, preset = _resolve(name)
    if preset is not None:
        trained = ", ".join(_checkpoints())
        raise UnknownModelError(f"{name[:80]} has no folder: nobody has trained it. Trained models: {trained}.")
    if folder is None:
        raise _unknown(name)
    return folder


def _text(name: object) -> str:
    """Return a name, or a path as a text; other things are unknown."""
    if not isinstance(name, str | os.PathLike):
        raise _unknown(name)
    return os.fspath(name)


def _resolve(name: str) -> tuple[Path | None, Preset | None]:
    """Return the folder of a trained model, or the preset of an untrained one, or neither."""
    if (built := _split_built(name)) is not None:
        return None, _preset(built[0])
    if not name.strip() or "\0" in name:
        raise _unknown(name)
    if (folder := _checkpoints().get(name)) is not None:
        return folder, None
    if name in ZERO_SHOT:
        return None, ZERO_SHOT[name]
    if is_folder(name) and name not in hub.REVISIONS:
        return Path(name).resolve(), None
    return None, None


def _no_method(name: str) -> UnknownModelError:
    names = list(dict.fromkeys([*UNTRAINED, *CATALOG]))
    return UnknownModelError(f"No method {name[:80]!r} to build.{suggest(name, names)} Methods: {', '.join(names)}.")


def _unknown(name: object) -> UnknownModelError:
    if ON in str(name):
        return _no_method(str(name).partition(ON)[0])
    if name in hub.REVISIONS:
        return UnknownModelError(hub.explain_missing(str(name)))
    names = [*list_models(), *link_models()]
    hint = suggest(str(name), [*names, *hub.REVISIONS])
    return UnknownModelError(f"There is no model {str(name)[:80]!r}.{hint} Models: {', '.join(names)}.")
