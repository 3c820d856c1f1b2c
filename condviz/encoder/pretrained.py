"""Check and load the weights of a backbone, and choose what computes it: device, precision, library."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, get_args
from weakref import WeakValueDictionary

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn import functional

from condviz.encoder import DEFAULT_BACKBONE, Pooling
from condviz.encoder.backbone import Backbone, Backend
from condviz.encoder.download import PINNED, find, only_pickles, pinned_revision
from condviz.encoder.layers import DECODERS, LIKE_BERT, is_like_bert
from condviz.errors import CheckpointError, ConfigError, first_line

if TYPE_CHECKING:  # importing them takes seconds
    from transformers import PreTrainedConfig

MAX_HASHED_BYTES = 2 * 2**30
"""Larger weights are identified by their revision: hashing them would take longer than loading."""

E5_INSTRUCTION = "Instruct: {instruction}\nQuery: {text}"
"""Template of E5-instruct, E5-Mistral, SFR-Embedding, GTE-Qwen2 and NV-Embed, the encoders of CASE."""


@dataclass(frozen=True)
class Family:
    """How a family of encoders was trained to be asked; each field counts only where it is set."""

    pooling: Pooling | None = None
    prefix: str = ""
    instruction: str | None = None
    bidirectional: bool = False


FAMILIES = {
    r"(e5-mistral|sfr-embedding)": Family("last", instruction=E5_INSTRUCTION),
    r"nv-embed": Family("latent", instruction=E5_INSTRUCTION, bidirectional=True),
    r"gte-qwen2": Family("last", instruction=E5_INSTRUCTION, bidirectional=True),
    r"qwen3-embedding": Family("last", instruction="Instruct: {instruction}\nQuery:{text}"),
    r"(multilingual-)?e5-.*instruct": Family("mean", instruction=E5_INSTRUCTION),
    r"(multilingual-)?e5-(small|base|large)": Family("mean", prefix="query: "),  # for symmetric tasks, too
    r"gte-(small|base|large)$": Family("mean"),
    r"gte-(modernbert|multilingual)|bge-": Family("cls"),  # the instruction of bge is for retrieval only
    r"(sup|unsup)-simcse|diffcse": Family("cls"),
}
"""By the beginning of the last part of a name, in lower case; the first that fits. Source: the model cards."""
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.int8}
ONEDNN_WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
"""Values of ONEDNN_MAX_CPU_ISA that leave out the bfloat16 instructions (oneDNN's CPU dispatcher control)."""

_loaded: WeakValueDictionary[tuple[str, ...], Backbone] = WeakValueDictionary()
_lock = Lock()


def load_backbone(
    name: str = DEFAULT_BACKBONE,
    *,
    revision: str = "",
    device: str = "auto",
    precision: str = "auto",
    backend: str = "auto",
    shared: bool = True,
) -> Backbone:
    """Load a pretrained encoder; each is loaded once per process and shared.

    Args:
        name: Hub id, or folder with config.json, tokenizer.json and *.safetensors.
        revision: Commit on the hub; empty takes the pinned one where there is one, and else the newest.
        device: "auto" takes CUDA, else MPS, else the CPU.
        precision: "float32", "bfloat16", "float16", "int8", or "auto" for what the device computes fastest, but never
            int8 (see `choose_precision`). Weights are read in float32 and converted; in int8 what is multiplied is
            rounded, by ONNX Runtime on the CPU.
        backend: "torch", "onnx", or "auto"; see `choose_backend`.
        shared: False loads one that nobody else uses, for instance to train it; always in torch.

    Raises:
        CheckpointError: If the weights cannot be found, are not safetensors, or are not the pinned ones.
        ConfigError: If device, precision or backend is unknown or not available.
    """
    engine, device, dtype = choose_backend(backend, device, precision)
    revision = revision or pinned_revision(name)
    if not shared:
        return _load(name, revision).to(device=device, dtype=torch.float32 if dtype == torch.int8 else dtype)
    key = (name, revision, device, str(dtype), engine)
    with _lock:
        backbone = _loaded.get(key)
        # Without a digest it was trained; on another device, a model that shares it was moved there.
        if backbone is None or not backbone.digest or backbone.device.type != torch.device(device).type:
            backbone = _load(name, revision)
            backbone.backend, backbone.int8 = engine, dtype == torch.int8
            if backbone.int8 and not is_like_bert(backbone.model):
                raise ConfigError(
                    f"int8 is for encoders of the types {', '.join(LIKE_BERT)}; {name} is a "
                    f"{backbone.model.config.model_type!r}. Choose another precision."
                )
            _loaded[key] = backbone.to(device=device, dtype=torch.float32 if backbone.int8 else dtype)
    return backbone


def choose_backend(
    backend: str = "auto", device: str = "auto", precision: str = "auto"
) -> tuple[Backend, str, torch.dtype]:
    """Return what computes, where, and in which numbers.

    "auto" is what CONDVIZ_BACKEND and CONDVIZ_PRECISION name, where the others given allow it; else "torch", but
    `faster_in_float32` on a CPU that is not `fast_in_bfloat16`. "onnx" computes on the CPU in float32 alone; what it
    cannot compute (gradients, other types of encoders than BERT, RoBERTa and MPNet) is computed by torch.

    Raises:
        ConfigError: If one of the three is unknown or not available, or they do not go together.
    """
    told, known = from_environment(), ("auto", *get_args(Backend))
    wanted = told.get("backend", "auto")
    precision = told.get("precision", "auto") if precision == "auto" else precision
    for place, value in (("backend", backend), ("CONDVIZ_BACKEND", wanted)):
        if value not in known:
            raise ConfigError(f"{place} must be one of {', '.join(known)}, got {value!r}.")
    if precision == "int8":
        if backend == "torch" or device not in ("auto", "cpu") or not has_onnx():
            raise ConfigError(
                f"int8 is computed by ONNX Runtime on the CPU, got device {device!r} and backend {backend!r}. Leave "
                "them out, choose another precision, or, where it is missing, install condviz[onnx]."
            )
        return "onnx", "cpu", torch.int8
    fits = device in ("auto", "cpu") and precision in ("auto", "float32")
    backend = wanted if backend == "auto" and fits else backend
    if backend == "onnx" and not fits:
        raise ConfigError(
            f"The backend onnx computes in float32 on the CPU, got device {device!r} and precision {precision!r}. "
            "Leave them out, or choose the backend torch."
        )
    if backend == "onnx":
        return "onnx", "cpu", torch.float32
    device = choose_device(device)
    dtype = choose_precision(precision, device)
    old = device == "cpu" and dtype == torch.float32 and not fast_in_bfloat16()
    return faster_in_float32() if old and backend == "auto" else "torch", device, dtype


def from_environment() -> dict[str, str]:
    """Return what CONDVIZ_BACKEND and CONDVIZ_PRECISION name, as options of `load_backbone`."""
    names = ("backend", "precision")
    return {name: value for name in names if (value := os.environ.get(f"CONDVIZ_{name.upper()}"))}


def choose_device(device: str = "auto") -> str:
    """Return "cuda", "mps" or "cpu"; a number of a GPU, as in "cuda:1", is kept.

    Raises:
        ConfigError: If the device is unknown or not there.
    """
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next(name for name in ("cuda", "mps", "cpu") if available[name])
    kind, _, number = str(device).partition(":")
    numbers = range(torch.cuda.device_count() if kind == "cuda" else 1)
    if not available.get(kind, False) or (number and number not in map(str, numbers)):
        usable = ", ".join(name for name, there in available.items() if there)
        known = ", ".join(("auto", *available))
        raise ConfigError(f"device must be one of {known}, got {device!r}; this machine has: {usable}.")
    return device


def choose_precision(precision: str, device: str) -> torch.dtype:
    """Return the number type for inference.

    "auto" takes bfloat16 on CUDA devices and CPUs that are faster with it (`fast_in_bfloat16`), float16 on older CUDA
    devices, else float32: a CPU without those instructions is about three times slower in bfloat16.

    Raises:
        ConfigError: If the precision is unknown.
    """
    if precision in PRECISIONS:
        return PRECISIONS[precision]
    if precision != "auto":
        raise ConfigError(f"precision must be one of auto, {', '.join(PRECISIONS)}, got {precision!r}.")
    if device == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    if device == "cpu" and fast_in_bfloat16():
        return torch.bfloat16
    return torch.float32


def fast_in_bfloat16() -> bool:
    """Return whether this CPU multiplies matrices faster in bfloat16 than in float32, and torch may use what it has.

    By AMX, or by AVX512-BF16 on others than Intel's: those have one unit for it and two for float32, which is 1.6 times
    as fast there (products of 800 states, torch 2.13). ONEDNN_MAX_CPU_ISA, which torch obeys, can forbid both.
    """
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in ONEDNN_WITHOUT_BFLOAT16:
        return False
    capabilities = _capabilities()
    return bool(capabilities.get("amx_bf16") or (capabilities.get("avx512_bf16") and not _is_intel()))


def has_onnx() -> bool:
    """Return whether ONNX Runtime, and what its graphs are made with, is installed."""
    return bool(find_spec("onnx") and find_spec("onnxruntime"))


def faster_in_float32() -> Backend:
    """Return what multiplies float32 faster on this CPU: torch by MKL on Intel's, ONNX Runtime on others."""
    return "onnx" if not (torch.backends.mkl.is_available() and _is_intel()) and has_onnx() else "torch"


def _is_intel() -> bool:
    return "intel" in str(_capabilities().get("cpu_name", "")).lower()


def _capabilities() -> Mapping[str, Any]:
    """Return what torch knows about this CPU; older versions of torch cannot tell."""
    return torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}


def _load(name: str, revision: str) -> Backbone:
    from transformers import AutoModel, AutoTokenizer  # takes seconds to import
    from transformers.utils import logging as notes

    folder = find(name, revision)
    digest = _check_weights(folder, name, revision)
    notes.disable_progress_bar()  # loading takes a fraction of a second
    verbosity = notes.get_verbosity()
    notes.set_verbosity_error()  # the report on tensors is read below
    config, heads = _read_config(folder)
    inside = {"config": config, "key_mapping": {f"^{ENCODER}": ""}} if config else {}
    try:
        # Tokenizers and weights come from files already on disk: no network, no code from the hub, no pickles.
        tokenizer = AutoTokenizer.from_pretrained(folder, config=config, trust_remote_code=False, local_files_only=True)
        model, report = AutoModel.from_pretrained(
            folder,
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, with a clear message
            **inside,
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise CheckpointError(f"{name} could not be loaded as an encoder: {first_line(error)}") from error
    finally:
        notes.set_verbosity(verbosity)
    absent = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])}
    if wrong := sorted(key for key in absent if not key.startswith("pooler.")):
        raise CheckpointError(
            f"{name}: {wrong[0]} is missing in the weights or has another shape ({len(wrong)} such tensors). The files "
            "are incomplete, or config.json belongs to another model: load it again from its source."
        )
    if model.config.is_encoder_decoder or not isinstance(getattr(model.config, "hidden_size", None), int):
        raise CheckpointError(
            f"{name} is a {model.config.model_type!r} model. Choose a text encoder, for instance {DEFAULT_BACKBONE}."
        )
    if _reads_one_way(model.config.model_type):
        raise CheckpointError(
            f"{name} is a {model.config.model_type!r} model, whose tokens see only those in front of them: its "
            f"first token and the mean mean little. Choose an encoder, or a decoder of the types {', '.join(DECODERS)}."
        )
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # the tanh layer behind the first token: no method uses it
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id >= model.config.vocab_size:
        tokenizer.pad_token = tokenizer.eos_token  # padding is masked, but its id has to be in the embedding table
    model.config.pad_token_id = tokenizer.pad_token_id
    family = find_family(name, model.config.model_type, folder)
    latent = _read_latents(folder, heads) if config else None
    return Backbone(model, tokenizer, name=name, revision=revision, digest=digest, latent=latent, **asdict(family))


def _reads_one_way(model_type: str) -> bool:
    """Return whether a type only continues texts, and is none of the decoders that are pooled by their last token."""
    from transformers.models.auto import modeling_auto as auto

    continues = model_type in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return continues and model_type not in (*DECODERS, *auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES)


def find_family(name: str, model_type: str, folder: Path) -> Family:
    """Find out how an encoder was trained to be asked: by its name, its files, or the type of the model."""
    last = name.rstrip("/").rpartition("/")[2].lower()
    known = next((family for pattern, family in FAMILIES.items() if re.match(pattern, last)), Family())
    decoder = model_type in DECODERS
    return replace(
        known,
        pooling=known.pooling or _stored_pooling(folder) or ("last" if decoder else None),
        instruction=known.instruction or (E5_INSTRUCTION if decoder else None),
    )


def _stored_pooling(folder: Path) -> Pooling | None:
    """Read the pooling from the files of sentence-transformers; None where there are none."""
    try:
        content = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        modes: dict[Pooling, str] = {"cls": "cls_token", "mean": "mean_tokens", "last": "lasttoken"}
        return next((ours for ours, theirs in modes.items() if content.get(f"pooling_mode_{theirs}") is True), None)
    except (OSError, ValueError, AttributeError):
        return None


def _check_weights(folder: Path, name: str, revision: str) -> str:
    """Return an identity of the weight files, and refuse what is not safetensors or not the pinned file."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise only_pickles(name, str(folder))
    if sum(file.stat().st_size for file in files) > MAX_HASHED_BYTES:
        return hashlib.sha256(f"{name}@{revision}".encode()).hexdigest()
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    known = PINNED.get(name)
    if known and known.digest and revision == known.revision and digest.hexdigest() != known.digest:
        raise CheckpointError(
            f"{files[0]} has SHA-256 {digest.hexdigest()}, expected {known.digest}. The file is damaged or is "
            "another model: delete it and load again."
        )
    return digest.hexdigest()


# ---- NV-Embed: tokens attend to trained vectors before their states are averaged -------------------------------------

NV_EMBED = "nvembed"
ENCODER, LATENT = "embedding_model.", "latent_attention_model."
"""How the names of the two parts begin in the weights."""


class LatentAttention(nn.Module):
    """O = softmax(Q K^T) V over trained latents, then a gated MLP; each adds to what it reads.

    Its parts have the names of the published weights, its sizes those of NV-Embed-v2. Differs from its program: vectors
    keep their length, since CASE subtracts them as they are.

    Source:
        Lee et al. 2024, "NV-Embed: Improved Techniques for Training LLMs as Generalist Embedding Models",
        arXiv:2405.17428, section 3.1.
    """

    def __init__(self, size: int, latents: int, heads: int, head_size: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.latents = nn.Parameter(torch.randn(latents, size))
        wide = heads * head_size
        sizes = {"to_q": (size, wide), "to_kv": (size, 2 * wide), "to_out": (wide, size)}
        reading = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sizes.items()})
        net = nn.ModuleDict({"net": nn.ModuleDict({"0": nn.Linear(size, 2 * inner), "2": nn.Linear(inner, size)})})
        first = nn.ModuleDict({"norm": nn.LayerNorm(size), "norm_context": nn.LayerNorm(size), "fn": reading})
        self.cross_attend_blocks = nn.ModuleList([first, nn.ModuleDict({"norm": nn.LayerNorm(size), "fn": net})])

    def forward(self, states: Tensor) -> Tensor:
        """Let token states (b, L, d) attend to the latents: (b, L, d)."""
        blocks: Any = self.cross_attend_blocks  # torch types what they hold as Module
        first, second = blocks
        reading, net = first["fn"], second["fn"]["net"]
        keys, values = reading["to_kv"](first["norm_context"](self.latents)).chunk(2, dim=-1)
        query = self._split(reading["to_q"](first["norm"](states)))
        keys, values = (self._split(part).expand(len(states), -1, -1, -1) for part in (keys, values))
        attended = functional.scaled_dot_product_attention(query, keys, values)
        states = states + reading["to_out"](attended.transpose(-3, -2).flatten(-2))
        content, gate = net["0"](second["norm"](states)).chunk(2, dim=-1)
        return states + net["2"](content * functional.gelu(gate))

    def _split(self, rows: Tensor) -> Tensor:
        """Divide (..., n, h e) among the heads: (..., h, n, e)."""
        return rows.unflatten(-1, (self.heads, -1)).transpose(-3, -2)


def _read_config(folder: Path) -> tuple[PreTrainedConfig | None, int]:
    """Return the configuration of the decoder inside an NV-Embed and its heads of latent attention; else (None, 0)."""
    from transformers import AutoConfig

    try:
        content: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if content.get("model_type") != NV_EMBED:
            return None, 0
        own = ("model_type", "auto_map", "architectures", "_name_or_path")
        settings = {key: value for key, value in content["text_config"].items() if key not in own}
        return AutoConfig.for_model("mistral", **settings), int(content["latent_attention_config"]["num_cross_heads"])
    except (OSError, ValueError, AttributeError):
        return None, 0  # the library says what is wrong
    except KeyError as error:
        raise CheckpointError(f"{folder}/config.json is that of an NV-Embed without {error}. Load it again.") from error


def _read_latents(folder: Path, heads: int) -> LatentAttention:
    """Read the latent attention from the weights of an NV-Embed; raises CheckpointError where it is not whole."""
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as opened:
            for key in opened.keys():  # noqa: SIM118 (it is no dict)
                if key.startswith(LATENT):
                    tensors[key.removeprefix(LATENT)] = opened.get_tensor(key).float()
    try:
        number, size = tensors["latents"].shape
        inner = tensors["cross_attend_blocks.1.fn.net.2.weight"].shape[1]
        width = len(tensors["cross_attend_blocks.0.fn.to_q.weight"])
        made = LatentAttention(size, number, heads, width // heads, inner)
        made.load_state_dict(tensors)
    except (KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{folder} lacks part of the latent attention: {first_line(error)}") from error
    return made.requires_grad_(False).eval()
