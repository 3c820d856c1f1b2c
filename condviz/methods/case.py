"""CASE: encode condition and sentence together, subtract the condition alone, and project what is left.

Paper: Zhang et al. 2025, "CASE: Condition-Aware Sentence Embeddings for Conditional Semantic Textual Similarity
Measurement", arXiv:2503.17279v2; `alone = "empty"` is what version 4 subtracts, f(c; I(empty)).
Where the paper does not say, our choice: raw vectors are subtracted; the linear projection has dropout on its input and
no bias, the non-linear one ReLU, dropout behind the hidden layer, and biases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.tokens import Encoded, Tokens
from condviz.errors import ConfigError, DataError, require
from condviz.methods.base import Options, Passes, Texts, ToArray, list_rows
from condviz.methods.catalog import CATALOG, CASEConfig, ProjectionName
from condviz.methods.encoders import ConditionalEncoder

INSTRUCTIONS = {
    "cond": "Retrieve semantically similar texts to the Condition, given the Sentence: {other}",
    "sent": "Retrieve semantically similar texts to the Sentence, given the Condition: {other}",
}
Role = Literal["joint", "condition", "alone"]
"""What is encoded: both texts, the condition that is subtracted, or one text by itself."""
UNCONDITIONAL = "Retrieve semantically similar texts to a given Sentence"
"""Prompts of the paper for instruction-tuned encoders; "sent" is the mirror image of the printed one."""


class CASE(ConditionalEncoder):
    """Takes from the joint encoding of sentence and condition what the condition alone says."""

    about = CATALOG["case"]

    def __init__(self, backbone: Backbone, method_config: CASEConfig) -> None:
        super().__init__(backbone, method_config)
        self.projection = make_projection(method_config, backbone.hidden_size)

    def embed(self, *inputs: Tokens) -> Tensor:
        """Encode joint sequences, minus the conditions, projected: (b, d), or (b, projection_dim)."""
        joint, condition = inputs
        pooling = self.method_config.pooling
        offset = self.backbone(joint, pooling)
        if self.method_config.subtract:
            offset = offset - self.backbone(condition, pooling)
        return self.projection(offset)

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Tokenize the joint sequence and the condition alone."""
        conditions = self._tokenize("condition", [(condition,) for _, condition in items])
        return list(zip(self._tokenize("joint", items), conditions, strict=True))

    def tokenize_sentences(self, sentences: Sequence[str]) -> list[Encoded]:
        """Turn sentences without a condition into token ids, unpadded."""
        return self._tokenize("alone", [(sentence,) for sentence in sentences])

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Encode (sentence, condition) tuples: (n, d). See `ConditionalScorer.embed_items`."""
        if not passes.frozen:
            return super().embed_items(items, passes)
        return self.projection(self._offsets(items).to(self.backbone.device))

    def encode_frozen(self, sentences: Sequence[str], conditions: Sequence[str]) -> None:
        """Encode the offsets. See `ConditionalScorer.encode_frozen`."""
        self._offsets(list(zip(sentences, conditions, strict=True)))

    def encode_offsets(self, sentences: Iterable[str], conditions: Texts, **options: Unpack[ToArray]) -> np.ndarray:
        """Encode x before the projection, what projections are trained on: (n, d) float32.

        Options as in `ConditionalScorer.score`.
        """
        texts = list_rows(conditions, sentences=sentences)
        return np.asarray(self._run(partial(self._offsets, list(zip(*texts, strict=True))), options))

    def fit_projection(self, sentences: Iterable[str], conditions: Texts, *, seed: int = 0) -> None:
        """Fit "pca" or "ica" to the offsets of training texts, of which there are at least as many as dimensions."""
        if not isinstance(self.projection, FittedProjection):
            raise ConfigError(f"projection {self.method_config.projection!r} is not fitted; pca and ica are.")
        self.projection.fit(self.encode_offsets(sentences, conditions), self.method_config.projection, seed)
        self._head_hash = None

    def get_sentence_embedding_dimension(self) -> int:
        """Return how many numbers a vector of `encode` has under a condition."""
        plain = self.method_config.projection is None
        return self.backbone.hidden_size if plain else self.method_config.projection_dim

    @torch.no_grad()
    def _encode(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        return self.projection(self._offsets(items, **options).to(self.backbone.device)).float().cpu()

    def _encode_plain(self, sentences: list[str], **options: Unpack[Options]) -> Tensor:
        return self._pooled([(sentence,) for sentence in sentences], "alone", **options)

    @torch.no_grad()
    def _offsets(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        offsets = self._pooled(items, "joint", **options)
        if self.method_config.subtract:
            offsets = offsets - self._pooled([(condition,) for _, condition in items], "condition", **options)
        return offsets

    def _pooled(self, items: list[Item], role: Role, **options: Unpack[Options]) -> Tensor:
        config = self.method_config
        if self.backbone.instruction is None and role != "joint":
            return self.backbone.encode(items, pooling=config.pooling, **options)
        if role == "condition" and config.alone == "plain":
            role = "alone"  # the same text under the same instruction
        vectors = self.backbone.map_texts(
            items,
            role=f"case {config.prompt} {role} {config.pooling} {config.pool_over} {config.order}",
            tokenize=partial(self._tokenize, role),
            embed=lambda rows: self.backbone(self.backbone.collate(rows), config.pooling),
            **options,
        )
        return self._stack(vectors)

    def _tokenize(self, role: Role, items: Sequence[Item]) -> list[Encoded]:
        """Tokenize (sentence, condition) tuples, or single texts in the other roles."""
        config = self.method_config
        if self.backbone.instruction is None:
            if role != "joint":
                return self.backbone.tokenize(items)
            ordered = items if config.order == "sentence-first" else [item[::-1] for item in items]
            # The encoded text is pooled over, or both.
            place = int((config.prompt == "cond") == (config.order == "sentence-first"))
            return self.backbone.tokenize(ordered, pool_text=place if config.pool_over == "text" else None)
        plain = role == "alone" or (role == "condition" and config.alone == "plain")
        instruction = UNCONDITIONAL if plain else INSTRUCTIONS[config.prompt]
        # The other text comes first in the prompt; where there is none, nothing stands in its place.
        pairs = [(("", *item) if len(item) == 1 else item[:: 1 if config.prompt == "cond" else -1]) for item in items]
        prompts = [(instruction, other, text) for other, text in pairs]
        return [
            self._shortened(*prompt) if row.truncated else row
            for prompt, row in zip(prompts, self._instructed(prompts), strict=True)
        ]

    def _shortened(self, instruction: str, other: str, text: str) -> Encoded:
        """Cut the text inside the instruction, so that the encoded text behind it is not lost."""
        row = None
        while row is None or (other and row.truncated):
            other = other[: len(other) * 3 // 4]
            (row,) = self._instructed([(instruction, other, text)])
        return replace(row, truncated=True)

    def _instructed(self, prompts: Sequence[tuple[str, str, str]]) -> list[Encoded]:
        """Fill (instruction, other text, text) into the encoder's template, and pool from where the text begins."""
        before = (self.backbone.instruction or "").partition("{text}")[0]
        heads = [before.replace("{instruction}", instruction.format(other=other)) for instruction, other, _ in prompts]
        texts = [(head + text,) for head, (*_, text) in zip(heads, prompts, strict=True)]
        starts = [len(head) for head in heads] if self.method_config.pool_over == "text" else None
        return self.backbone.tokenize(texts, pool_from=starts)


class FittedProjection(nn.Module):
    """An affine map found without labels, by PCA or FastICA: z = (x - mean) W^T."""

    mean: Tensor
    weight: Tensor

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("weight", torch.full((dim, size), float("nan")))

    def forward(self, offsets: Tensor) -> Tensor:
        """Project offsets: (b, d) -> (b, dim)."""
        if bool(self.weight.isnan().any()):
            raise ConfigError("This projection is not fitted yet. Call fit_projection(sentences, conditions) first.")
        return (offsets - self.mean) @ self.weight.T

    def fit(self, offsets: np.ndarray, name: ProjectionName, seed: int) -> None:
        """Fit to (n, d) offsets."""
        decomposition = require("sklearn.decomposition", "viz")
        dim = self.weight.shape[0]
        if len(offsets) < dim:
            raise DataError(f"{len(offsets)} texts are too few to fit {dim} dimensions. Pass at least {dim}.")
        make = {"pca": decomposition.PCA, "ica": decomposition.FastICA}[name]
        fitted = make(n_components=dim, random_state=seed).fit(offsets)
        self.mean.copy_(torch.from_numpy(fitted.mean_))
        self.weight.copy_(torch.from_numpy(fitted.components_))


def make_projection(config: CASEConfig, size: int) -> nn.Module:
    """Build g of z = g(x) for vectors of length d = `size`."""
    if config.projection is None:
        return nn.Identity()
    if config.projection == "linear":
        return nn.Sequential(nn.Dropout(config.dropout), nn.Linear(size, config.projection_dim, bias=False))
    if config.projection == "mlp":
        return nn.Sequential(
            nn.Linear(size, config.hidden_dim),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.hidden_dim, config.projection_dim),
        )
    if config.projection_dim > size:
        raise ConfigError(f"{config.projection} gives at most {size} dimensions here, got {config.projection_dim}.")
    return FittedProjection(size, config.projection_dim)
