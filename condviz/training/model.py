"""Training on rated sentence pairs: what of a model is trained, and the scores of a batch with their gradient."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from condviz.encoder.backbone import Backbone
from condviz.encoder.cache import EmbeddingCache
from condviz.encoder.pretrained import load_backbone
from condviz.encoder.tokens import Encoded, Joined, batches_by_length
from condviz.errors import ConfigError, DataError, require
from condviz.evaluation.cards import format_card
from condviz.evaluation.dataset import ROW_KEYS, row_keys
from condviz.evaluation.metrics import condition_pairs, pair_accuracy, pearson, spearman
from condviz.evaluation.scoreboard import Board
from condviz.methods import METHODS, ConditionalScorer
from condviz.methods.encoders import number
from condviz.models.registry import load
from condviz.training.data import (
    TABLE,
    Batch,
    Example,
    MixedOrder,
    collate,
    digest,
    load_rows,
    load_source,
    make_units,
    units_per_batch,
)
from condviz.training.loop import Task
from condviz.training.losses import info_nce, mean_squared_error, quadruplet
from condviz.training.recipes import LinkRecipe, Lora, Loss, Recipe, SentenceRecipe
from condviz.training.trainer import shareable_path
from condviz.types import columns

BATCH_TOKENS = {"cpu": 8192, "mps": 16384, "cuda": 65536}
"""Tokens per forward pass, with padding. A batch is cut into such parts by length, which saves padding; each part
costs a gradient of the size of the weights, so that smaller parts were slower."""


def quick_attention(backbone: Backbone) -> AbstractContextManager:
    """Choose the attention that is quicker in training."""
    # On CPUs the fused one is slow backwards: 0.74 s against 0.23 s per batch of MiniLM in bfloat16.
    return sdpa_kernel(SDPBackend.MATH) if backbone.device.type == "cpu" else nullcontext()


class TrainingModel(nn.Module):
    """Computes the loss of a batch.

    Args:
        method, loss: What is trained, by which loss.
        frozen: The encoder is not trained: it runs without dropout, and its vectors come from the cache.
        pretrained: The encoder as it was, for `Loss.plain`.
    """

    def __init__(
        self, method: ConditionalScorer, loss: Loss, *, frozen: bool, pretrained: Backbone | None = None
    ) -> None:
        super().__init__()
        self._pretrained = (pretrained,)  # in a tuple: its weights are not those of this module
        self.method: Any = method  # what the loss asks for, a method of this class has
        self.loss, self.frozen = loss, frozen
        self.tokens = 0  # encoded so far, without padding

    def train(self, mode: bool = True) -> TrainingModel:
        """Switch between training and inference; a frozen encoder stays as it is."""
        super().train(mode)
        if self.frozen:
            self.method.backbone.eval()
        return self

    def forward(self, batch: Batch, labels: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        """Compute the loss.

        Args:
            batch: b rows; where the loss compares pairs, b / 2 highs and then their lows.
            labels: (b,) in [0, 1].
            teacher: (b,), NaN where a row has no teacher.

        Returns:
            "loss" of shape () and "scores" (b,).
        """
        with quick_attention(self.method.backbone):
            scores = self.scores(batch).float()
        terms = []
        if self.loss.mse:
            terms.append(self.loss.mse * mean_squared_error(scores, labels))
        if self.loss.infonce:
            terms.append(self.loss.infonce * info_nce(scores, temperature=self.loss.temperature))
        if self.loss.quadruplet:
            terms.append(self.loss.quadruplet * quadruplet(scores, margin=self.loss.margin))
        if self.loss.teacher:
            known = ~teacher.isnan()
            distance = mean_squared_error(scores[known], teacher[known]) if bool(known.any()) else 0 * scores.sum()
            terms.append(self.loss.teacher * distance)
        if self.loss.plain:
            terms.append(self.loss.plain * self._plain_distance([*batch.sentences1, *batch.sentences2]))
        return {"loss": torch.stack(terms).sum(), "scores": scores}

    def scores(self, batch: Batch) -> Tensor:
        """Score b rows, (b,), with gradient where it is switched on."""
        if not self.method.encodes:
            conditions = [condition or None for condition in batch.conditions]
            rows, index = number(zip(batch.sentences1, batch.sentences2, conditions, strict=True))
            return self.method.embed_items(rows, self)[self._move(index)]
        items, index = number(zip(batch.sentences1 + batch.sentences2, batch.conditions * 2, strict=True))
        first, second = self.method.embed_items(items, self)[self._move(index)].chunk(2)
        return self.method.similarity_pairwise(first, second)

    def parts(self, rows: Sequence[Encoded | Joined]) -> Iterator[list[int]]:
        """Group rows of similar length for the passes through the encoder, and count their tokens."""
        self.tokens += sum(map(len, rows))
        limit = BATCH_TOKENS.get(self.method.backbone.device.type, BATCH_TOKENS["cpu"])
        return batches_by_length([len(row) for row in rows], limit)

    def _plain_distance(self, sentences: list[str]) -> Tensor:
        """Compute the mean squared distance of cosines without a condition to the pretrained ones: ()."""
        method, (pretrained,) = self.method, self._pretrained
        assert pretrained is not None  # the loss has a term `plain`
        texts = list(dict.fromkeys(sentences))
        known = self._move(pretrained.encode([(text,) for text in texts], pooling=method.method_config.pooling))
        now, before = (functional.normalize(v.float()) for v in (method.embed_sentences(texts, self), known))
        return functional.mse_loss(now @ now.T, before @ before.T)

    def fill_cache(self, sentences: list[str], conditions: list[str]) -> None:
        """Encode texts, row by row, in one go sorted by length, where the encoder stays as it is."""
        if self.frozen:
            self.method.encode_frozen(sentences, conditions)

    def _move(self, values: Tensor) -> Tensor:
        return values.to(self.method.backbone.device)


class SentenceTask(Task):
    """Learns from rated sentence pairs; judged by Spearman on the validation rows.

    `vectors` stores those of a frozen encoder, which trainings in one precision may share. Errors as in
    `condviz.train`.
    """

    best, part = "spearman", "validation"
    collate = staticmethod(collate)

    def __init__(self, recipe: SentenceRecipe, device: str, *, vectors: EmbeddingCache | None = None) -> None:
        self.recipe, self.device = recipe, device
        self.parts = [load_rows(source, recipe) for source in recipe.train]
        self.held = [load_source(source) for source in recipe.validation]
        self.validation = [row for part in self.held for row in part]
        teachers = [load(name, device=device) for name in recipe.teacher]
        units = [make_units(_with_teacher(part, teachers), recipe.batching) for part in self.parts]
        self.units = [unit for part in units for unit in part]
        untold = not any(row.teacher is not None for unit in self.units for row in unit)
        if untold and not any((recipe.loss.mse, recipe.loss.contrasts, recipe.loss.plain)):
            raise DataError(
                "No row has a teacher's score, and teacher is the only term of the loss. Name models as teacher, add a "
                "column teacher to the table, or give mse a weight."
            )
        self.order = MixedOrder(list(map(len, units)), [source.weight for source in recipe.train], seed=recipe.seed)
        self.batch_units, self.evaluated = units_per_batch(recipe), bool(self.validation)
        self.module = build_module(recipe, device, vectors)
        self.method = self.module.method
        self.fitted = self.method.method_config.fitted
        self.start = [weight.detach().clone() for weight in self._blended()] if recipe.blend < 1 else []

    def prepare(self) -> None:
        """Fit a projection, or encode all texts at once where the encoder is frozen."""
        sentences1, sentences2, conditions = columns([row for part in self.parts for row in part])
        texts = sentences1 + sentences2, conditions * 2
        if self.fitted:
            self.method.fit_projection(*texts, seed=self.recipe.seed)
        else:
            self.module.fill_cache(*texts)

    def finish(self) -> None:
        """Blend the trained weights with those of the start."""
        with torch.no_grad():
            for weight, start in zip(self._blended(), self.start, strict=False):  # no start, nothing to blend
                weight.lerp_(start.to(weight.device), 1 - self.recipe.blend)

    def validate(self) -> dict[str, float]:
        """Compute Spearman, Pearson and pair accuracy, times 100, and count the rows."""
        scores = self.method.score(*columns(self.validation))
        if not np.isfinite(scores).all():
            raise ArithmeticError("a score on the validation rows is not a number")
        ratings = np.array([row.label for row in self.validation])
        first, second = condition_pairs(self.validation).T
        ordered = pair_accuracy(ratings[first], ratings[second], scores[first], scores[second])
        found = {"spearman": spearman(ratings, scores), "pearson": pearson(ratings, scores)}
        found["pair_accuracy"] = ordered.ties_excluded
        metrics = {name: math.nan if value is None else round(100 * value, 3) for name, value in found.items()}
        return metrics | {"rows": len(scores), "pairs": ordered.pairs - ordered.equal_ratings}

    def rank(self, found: Mapping[str, float], step: int) -> float:
        """Rank by Spearman; of few rows many steps have the same: then by Pearson in whole points, then by the step."""
        return found[self.best] + 1e-6 * round(float(np.nan_to_num(found["pearson"]))) + 1e-12 * step

    def sample(self, method: ConditionalScorer) -> np.ndarray:
        """Score 8 rows."""
        return method.score(*columns((self.validation or self.parts[0])[:8]))

    def describe_data(self) -> list[dict[str, Any]]:
        """Return name, number and SHA-256 of the rows of each source; of tables that it trains on also their keys."""
        sources = zip((*self.recipe.train, *self.recipe.validation), (*self.parts, *self.held), strict=True)
        return [
            {
                "source": source.name,
                "split": "" if source.name == TABLE else source.split,
                "path": shareable_path(source.path),
                "rows": len(rows),
                "sha256": digest(rows),
                **({ROW_KEYS: row_keys(rows)} if source.name == TABLE and number < len(self.parts) else {}),
            }
            for number, (source, rows) in enumerate(sources)
        ]

    def card(self, name: str, training: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
        """Format the model card, without scores on test parts, which nobody has measured yet."""
        told = {"method": self.method.name, "backbone": {"name": self.method.backbone.name}}
        return format_card(name, {**told, "training": training, "metrics": metrics}, Board())

    def _blended(self) -> list[nn.Parameter]:
        """Return what is trained; of adapters one factor alone, which scales what they add."""
        return [
            weight
            for name, weight in self.method.named_parameters()
            if weight.requires_grad and not name.endswith("lora_A.default.weight")
        ]


def _with_teacher(rows: list[Example], teachers: Sequence[ConditionalScorer]) -> list[Example]:
    """Score rows that have no teacher's score yet by the mean of the teachers."""
    if not teachers:
        return rows
    scores = [teacher.score(*columns(rows)) for teacher in teachers]
    return [
        row if row.teacher is not None else replace(row, teacher=float(mean))
        for row, mean in zip(rows, np.mean(scores, axis=0), strict=True)
    ]


# ---- what is trained, at which rate, and from where it starts --------------------------------------------------------

FROZEN_CACHE_BYTES = 4 * 2**30
"""Memory for the vectors of a frozen encoder, which every epoch asks for again."""


def build_module(recipe: SentenceRecipe, device: str, vectors: EmbeddingCache | None = None) -> TrainingModel:
    """Build the model that a recipe trains, with its loss; see `build_model`."""
    pretrained = load_pretrained(recipe, device) if recipe.loss.plain else None
    model = build_model(recipe, vectors)
    return TrainingModel(model, recipe.loss, frozen=recipe.tuning == "frozen", pretrained=pretrained)


def build_model(recipe: SentenceRecipe, vectors: EmbeddingCache | None = None) -> ConditionalScorer:
    """Build the model that a recipe trains, on an encoder of its own, in float32 on the CPU.

    `vectors` stores those of a frozen encoder; None makes a store.

    Raises:
        ConfigError: If nothing would be trained, or the method cannot do what the recipe asks.
        CheckpointError: If the encoder, or the model that it is taken from, cannot be found.
        MissingExtraError: If adapters are asked for and peft is not installed.
    """
    model = load_start(recipe)
    backbone = model.backbone
    if recipe.tuning in ("lora", "frozen"):
        backbone.requires_grad_(False)
    if recipe.tuning == "layers":
        freeze_lowest(backbone, recipe.frozen_layers)
    if recipe.tuning == "frozen":
        backbone.cache = EmbeddingCache(FROZEN_CACHE_BYTES) if vectors is None else vectors
    if recipe.tuning == "lora":
        add_adapters(backbone, recipe.lora, frozen_layers=recipe.frozen_layers)
    if not model.method_config.fitted and not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(
            f'{model.title} with these settings has no weights of its own, so tuning = "frozen" would train nothing. '
            'Use tuning = "lora" or "full".'
        )
    return model


def load_start(recipe: SentenceRecipe | LinkRecipe) -> ConditionalScorer:
    """Build the model with which a training starts, on an encoder of its own, in float32 on the CPU."""
    backbone = load_pretrained(recipe)
    for module in backbone.modules():
        if isinstance(module, nn.Dropout) and recipe.dropout is not None:
            module.p = recipe.dropout
    torch.manual_seed(recipe.seed)
    model = METHODS[recipe.method](backbone, recipe.method_config())
    if recipe.start == "identity":
        model.start_identity()
    if recipe.init:
        take_over(model, recipe.init)
    return model


def load_pretrained(recipe: Recipe, device: str = "cpu") -> Backbone:
    """Load the encoder of a recipe anew, shared with nobody, in float32."""
    return load_backbone(recipe.backbone, revision=recipe.revision, device=device, precision="float32", shared=False)


def take_over(model: ConditionalScorer, name: str) -> None:
    """Copy the encoder that another model has trained, and its head, if it fits; ConfigError for another encoder."""
    trained, backbone = load(name, device="cpu", precision="float32"), model.backbone
    if (trained.backbone.name, trained.backbone.revision) != (backbone.name, backbone.revision):
        raise ConfigError(
            f"init is {name!r}, a trained {trained.backbone.name} ({trained.backbone.revision}), and the recipe's "
            f"backbone is {backbone.name} ({backbone.revision}). They have to be the same."
        )
    backbone.copy_weights(trained.backbone)
    if (trained.name, trained.method_config) == (model.name, model.method_config):
        model.load_state_dict(trained.head_state(), strict=False)


def freeze_lowest(backbone: Backbone, layers: int) -> None:
    """Leave the embeddings and the lowest layers as they are; raises ConfigError if there are not so many layers."""
    for module in backbone.model.modules():
        if isinstance(module, nn.Embedding):
            module.requires_grad_(False)
    for block in _lowest(backbone, layers):
        block.requires_grad_(False)


def _lowest(backbone: Backbone, layers: int) -> Iterable[nn.Module]:
    if not layers:
        return ()
    blocks = backbone.layers.blocks
    if layers > len(blocks):
        raise ConfigError(f"frozen_layers is {layers}, but {backbone.name} has {len(blocks)} layers.")
    return blocks[:layers]


def add_adapters(backbone: Backbone, lora: Lora, *, frozen_layers: int = 0) -> None:
    """Add low-rank adapters to an encoder above its frozen layers, in place; only they require a gradient.

    Raises:
        ConfigError: If there are not so many layers, or no linear layer has one of the names.
        MissingExtraError: If peft is not installed.
    """
    peft = require("peft", "train")
    encoder = backbone.model
    frozen = {module for block in _lowest(backbone, frozen_layers) for module in block.modules()}
    linear = [name for name, part in encoder.named_modules() if isinstance(part, nn.Linear) and part not in frozen]
    chosen = [name for name in linear if not lora.targets or name.endswith(lora.targets)]
    if not chosen:
        ends = sorted({name.rpartition(".")[2] for name in linear})
        raise ConfigError(f"lora.targets {list(lora.targets)} match no linear layer. Ends of names: {', '.join(ends)}.")
    config = peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=chosen, bias="none"
    )
    peft.inject_adapter_in_model(config, encoder)
