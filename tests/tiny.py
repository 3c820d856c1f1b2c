"""Tiny random encoders with real tokenizers, built in memory or in a folder: no download."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from condviz.encoder.backbone import DECODERS, Backbone
from condviz.encoder.visitors import VISITOR, Visitor
from condviz.methods import METHODS, ConditionalScorer

T = TypeVar("T")

SENTENCES = ["a man rides a bike", "two dogs run over the wet grass in the park", "a cat", "the man is happy !"]
CONDITIONS = ["the sport", "the number of animals", "the mood", "the sport"]
WORDS = sorted({word for text in SENTENCES + CONDITIONS for word in text.split()})
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 66,
    "initializer_range": 0.3,
}
SPECIAL = {
    "bert": {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"},
    "roberta": {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"},
}
SPECIAL["mpnet"] = SPECIAL["xlm-roberta"] = SPECIAL["roberta"]
SPECIAL["deberta-v2"] = SPECIAL["modernbert"] = SPECIAL["bert"]
SPECIAL["llama"] = SPECIAL["qwen2"] = SPECIAL["qwen3"] = SPECIAL["mistral"] = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "eos_token": "<end>",
}


@cache
def _tiny_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    special = SPECIAL[kind]
    vocabulary = {token: i for i, token in enumerate([*special.values(), *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if "cls_token" in special:
        cls, sep = special["cls_token"], special["sep_token"]
        # RoBERTa puts two separators between the texts of a pair, BERT one and a second segment.
        pair = f"{cls} $A {sep} $B:1 {sep}:1" if special is SPECIAL["bert"] else f"{cls} $A {sep} {sep} $B {sep}"
        ids = [(token, vocabulary[token]) for token in (cls, sep)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}", pair=pair, special_tokens=ids
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **special)


def tiny_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """Return a word-level tokenizer with the special tokens of a type of model."""
    return copy.deepcopy(_tiny_tokenizer(kind))


def tiny_backbone(kind: str = "bert", *, seed: int = 0) -> Backbone:
    """Build a random encoder in float32: 3 layers, 32 numbers, real tokenizer."""
    return Backbone(_tiny_model(kind, seed), tiny_tokenizer(kind), name=f"tiny {kind}")


def tiny_model(
    method: str, kind: str = "bert", *, seed: int = 0, backbone: Backbone | None = None, **settings: object
) -> ConditionalScorer:
    """Build a method with random weights, on a random encoder by default; the matrices of Hyper-CL have rank 4."""
    cls = METHODS[method]
    settings = ({"rank": 4} if method == "hyper-cl" else {}) | settings
    return cls(backbone or tiny_backbone(kind, seed=seed), cls.config_cls(**settings)).eval()


def for_visitors(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run each job for a visitor of its own, all of them computing their first batch at once."""
    together = threading.Barrier(len(jobs))

    def run(number: int, job: Callable[[], T]) -> T:
        first = iter([together.wait])
        VISITOR.set(Visitor(f"visitor {number}", check=lambda: next(first, lambda timeout: None)(30)))
        return job()

    with ThreadPoolExecutor(len(jobs)) as threads:
        return list(threads.map(run, range(len(jobs)), jobs))


@contextmanager
def encoded_rows(backbone: Backbone) -> Iterator[list[int]]:
    """Collect how many rows each forward pass of the encoder has."""
    rows: list[int] = []

    def note(module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        rows.append(len(kwargs["input_ids"]))

    hook = backbone.model.embeddings.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield rows
    finally:
        hook.remove()


def tiny_folder(folder: Path, kind: str = "bert", *, seed: int = 0) -> Path:
    """Write a random encoder as a model folder that `load_backbone` takes."""
    model = _tiny_model(kind, seed)
    folder.mkdir(parents=True)
    tiny_tokenizer(kind).save_pretrained(folder)
    model.config.save_pretrained(folder)
    save_file(dict(model.state_dict()), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def tiny_nv_embed(folder: Path) -> Path:
    """Write a random encoder laid out as NV-Embed-v2: a decoder, latent attention of 2 heads, 5 latents, no code."""
    tiny_folder(folder, "mistral")
    decoder, weights = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    shapes = {
        "latents": (5, 32), "cross_attend_blocks.0.norm.weight": (32,), "cross_attend_blocks.0.norm.bias": (32,),
        "cross_attend_blocks.0.norm_context.weight": (32,), "cross_attend_blocks.0.norm_context.bias": (32,),
        "cross_attend_blocks.0.fn.to_q.weight": (32, 32), "cross_attend_blocks.0.fn.to_kv.weight": (64, 32),
        "cross_attend_blocks.0.fn.to_out.weight": (32, 32), "cross_attend_blocks.1.norm.weight": (32,),
        "cross_attend_blocks.1.norm.bias": (32,), "cross_attend_blocks.1.fn.net.0.weight": (256, 32),
        "cross_attend_blocks.1.fn.net.0.bias": (256,), "cross_attend_blocks.1.fn.net.2.weight": (32, 128),
        "cross_attend_blocks.1.fn.net.2.bias": (32,),
    }  # fmt: skip
    torch.manual_seed(7)
    state = {f"embedding_model.{key}": value for key, value in weights.items()}
    state |= {f"latent_attention_model.{key}": 0.3 * torch.randn(shape) for key, shape in shapes.items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "model_type": "nvembed",
        "architectures": ["NVEmbedModel"],
        "auto_map": {"AutoConfig": "configuration_nvembed.NVEmbedConfig", "AutoModel": "modeling_nvembed.NVEmbedModel"},
        "text_config": decoder | {"model_type": "bidir_mistral"},
        "latent_attention_config": {"model_type": "latent_attention", "num_cross_heads": 2},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def edit_json(path: Path, **changes: object) -> None:
    """Change keys of a JSON file; None removes a key."""
    content = json.loads(path.read_text()) | changes
    gone = {key for key, value in changes.items() if value is None}
    path.write_text(json.dumps({key: value for key, value in content.items() if key not in gone}))


def _tiny_model(kind: str, seed: int) -> torch.nn.Module:
    """Copy what is built once: a new one takes ten times as long, and leaves the same state of chance."""
    model, chance = _built_model(kind, seed)
    torch.set_rng_state(chance)
    return copy.deepcopy(model)


@cache
def _built_model(kind: str, seed: int) -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(seed)
    tokenizer = _tiny_tokenizer(kind)
    extra = {"num_key_value_heads": 2, "head_dim": 8} if kind in DECODERS else {}
    if kind == "modernbert":
        extra = {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
    if kind == "deberta-v2":  # as in DeBERTa-v3
        extra = {"relative_attention": True, "position_biased_input": False, "position_buckets": 8}
        extra |= {"pos_att_type": ["p2c", "c2p"], "share_att_key": True, "norm_rel_ebd": "layer_norm"}
    if kind in ("roberta", "xlm-roberta"):
        extra = {"type_vocab_size": 1}
    config = AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **SIZES, **extra
    )
    model = AutoModel.from_config(config)
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    # Nothing is 0 or 1 by default, so that a forgotten bias or scale shows.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape))
    return model.eval(), torch.get_rng_state()
