"""What of a model is trained, at which rate, and from where it starts."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from condviz.encoder.backbone import Backbone
from condviz.encoder.cache import EmbeddingCache
from condviz.encoder.pretrained import load_backbone
from condviz.errors import ConfigError, require
from condviz.methods import METHODS, ConditionalScorer
from condviz.models.registry import load
from condviz.training.recipes import Lora, Recipe, SentenceRecipe

FROZEN_CACHE_BYTES = 4 * 2**30
"""Memory for the vectors of a frozen encoder, which every epoch asks for again."""
FITTED = ("pca", "ica")
"""Projections of CASE that are fitted, not trained."""


def build_model(recipe: SentenceRecipe, vectors: EmbeddingCache | None = None) -> ConditionalScorer:
    """Build the model that a recipe trains, on an encoder of its own, in float32 on the CPU.

    Args:
        recipe: The recipe.
        vectors: Store for the vectors of a frozen encoder; None makes one.

    Raises:
        ConfigError: If nothing would be trained, or the method cannot do what the recipe asks.
        CheckpointError: If the encoder, or the model that it is taken from, cannot be found.
        MissingExtraError: If adapters are asked for and peft is not installed.
    """
    backbone = load_pretrained(recipe)
    torch.manual_seed(recipe.seed)
    model = METHODS[recipe.method](backbone, recipe.method_config())
    if recipe.start == "identity":
        model.start_identity()
    if recipe.init:
        _take_over(model, recipe.init)
    _prepare(backbone, recipe, vectors)
    if not model.needs_fitting and not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(
            f'{model.title} with these settings has no weights of its own, so tuning = "frozen" would train nothing. '
            'Use tuning = "lora" or "full".'
        )
    return model


def load_pretrained(recipe: Recipe, device: str = "cpu") -> Backbone:
    """Load the encoder of a recipe anew, shared with nobody, in float32.

    Raises:
        CheckpointError: If it cannot be found.
    """
    return load_backbone(recipe.backbone, revision=recipe.revision, device=device, precision="float32", shared=False)


def _take_over(model: ConditionalScorer, name: str) -> None:
    """Copy the encoder that another model has trained, and its head, if it fits.

    Raises:
        ConfigError: If that model has another encoder.
    """
    trained, backbone = load(name, device="cpu", precision="float32"), model.backbone
    if (trained.backbone.name, trained.backbone.revision) != (backbone.name, backbone.revision):
        raise ConfigError(
            f"init is {name!r}, a trained {trained.backbone.name} ({trained.backbone.revision}), and the recipe's "
            f"backbone is {backbone.name} ({backbone.revision}). They have to be the same."
        )
    backbone.model.load_state_dict(trained.backbone.model.state_dict())
    if (trained.name, trained.method_config) == (model.name, model.method_config):
        model.load_state_dict(trained.head_state(), strict=False)


def _prepare(backbone: Backbone, recipe: SentenceRecipe, vectors: EmbeddingCache | None) -> None:
    """Choose which weights of the encoder are trained, and how."""
    if recipe.dropout is not None:
        for module in backbone.modules():
            if isinstance(module, nn.Dropout):
                module.p = recipe.dropout
    if recipe.tuning in ("lora", "frozen"):
        backbone.requires_grad_(False)
    if recipe.tuning == "layers":
        _freeze_lowest(backbone, recipe.frozen_layers)
    if recipe.tuning == "frozen":
        backbone.cache = EmbeddingCache(FROZEN_CACHE_BYTES) if vectors is None else vectors
    if recipe.tuning == "lora":
        add_adapters(backbone.model, recipe.lora)


def _freeze_lowest(backbone: Backbone, layers: int) -> None:
    """Leave the embeddings and the lowest layers as they are."""
    for module in backbone.model.modules():
        if isinstance(module, nn.Embedding):
            module.requires_grad_(False)
    if not layers:
        return
    blocks = backbone.layers.blocks
    if layers > len(blocks):
        raise ConfigError(f"frozen_layers is {layers}, but {backbone.name} has {len(blocks)} layers.")
    for block in blocks[:layers]:
        block.requires_grad_(False)


def add_adapters(encoder: nn.Module, lora: Lora) -> None:
    """Add low-rank adapters to an encoder, in place; only they require a gradient.

    Raises:
        ConfigError: If no linear layer has one of the names.
        MissingExtraError: If peft is not installed.
    """
    peft = require("peft", "train")
    linear = [name for name, module in encoder.named_modules() if isinstance(module, nn.Linear)]
    chosen = [name for name in linear if not lora.targets or name.endswith(lora.targets)]
    if not chosen:
        ends = sorted({name.rpartition(".")[2] for name in linear})
        raise ConfigError(f"lora.targets {list(lora.targets)} match no linear layer. Ends of names: {', '.join(ends)}.")
    config = peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=chosen, bias="none"
    )
    peft.inject_adapter_in_model(config, encoder)


def parameter_groups(model: nn.Module, recipe: SentenceRecipe, decayed: Iterable[str]) -> list[dict]:
    """Sort the trained parameters by rate and weight decay for the optimizer.

    Args:
        model: The model; names of encoder weights contain "backbone.".
        recipe: Rates and decay.
        decayed: Names that weight decay applies to.
    """
    decayed = set(decayed)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            rate = recipe.lr if "backbone." in name or recipe.head_lr is None else recipe.head_lr
            decay = recipe.weight_decay if name in decayed else 0.0
            groups.setdefault((rate, decay), []).append(parameter)
    return [{"params": group, "lr": rate, "weight_decay": decay} for (rate, decay), group in groups.items()]
