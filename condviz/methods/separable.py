"""Methods that encode sentences and conditions apart and compose the two vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from condviz.encoder.backbone import Item
from condviz.encoder.tokens import Tokens
from condviz.methods.base import Array, ConditionalEncoder, EncodeOptions, Options, Passes, check_lengths, number

COMPOSE_BYTES = 64 * 2**20
"""Memory for the matrices W_c or gathered rows of one step of `compose`."""


class SeparableEncoder(ConditionalEncoder):
    """Encodes sentences and conditions apart, |S| + |C| passes instead of |S| x |C|, and composes the two vectors."""

    def project_conditions(self, pooled: Tensor) -> Tensor:
        """Turn pooled condition vectors into what `compose` takes: (m, d) -> (m, d)."""
        return pooled

    @abstractmethod
    def embed_composed(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Compose sentence vectors with conditions, with gradient where it is switched on. See `compose`."""

    def embed_by_condition(self, sentences: Tensor, conditions: Tensor, index: Tensor) -> Tensor:
        """Compute `embed_composed` in the way that is fastest for many rows under few conditions."""
        return self.embed_composed(sentences, conditions, index)

    def compose(self, sentences: Array, conditions: Array, index: Array | None = None) -> Array:
        """Compose sentence vectors with conditions; arrays give an array, tensors a tensor with its gradient.

        Args:
            sentences: (b, d), as `encode_sentences` returns them.
            conditions: (m, d), as `encode_conditions` returns them.
            index: (b,) which condition each sentence goes with; None where m = b, row by row.

        Returns:
            (b, d), as `encode` returns them.
        """
        if isinstance(sentences, Tensor):
            return self.embed_composed(sentences, conditions, index)
        rows = None if index is None else torch.tensor(np.array(index), device=self.backbone.device).long()
        with torch.no_grad():
            composed = self.embed_composed(self._to_tensor(sentences), self._to_tensor(conditions), rows)
        return composed.float().cpu().numpy()

    def compose_grid(self, sentences: Array, conditions: Array) -> Array:
        """Compose each of n sentence vectors with each of m conditions: (m, n, d). As `compose`."""
        if isinstance(sentences, Tensor):
            return self.embed_grid(sentences, conditions)
        return self.embed_grid(self._to_tensor(sentences), self._to_tensor(conditions)).numpy()

    def projection(self, condition: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Return what turns many sentence vectors into vectors whose cosines are those under one condition.

        Args:
            condition: (1, d), as `encode_conditions` returns it.

        Returns:
            A function of sentence vectors of length one (b, d) and the lengths that they had (b,); its result has as
            few dimensions as the method allows.
        """

        def compose(units: Tensor, lengths: Tensor) -> Tensor:
            index = torch.zeros(len(units), dtype=torch.long, device=units.device)
            return self.embed_composed(units * lengths[:, None], condition, index)

        return compose

    def embed(self, sentence: Tokens, condition: Tokens) -> Tensor:
        """Encode sentences under conditions, row by row: (b, d)."""
        pooling = self.method_config.pooling
        sentences = self.project_sentences(self.backbone(sentence, pooling))
        return self.embed_composed(sentences, self.project_conditions(self.backbone(condition, pooling)))

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Encode each sentence and each condition once, and compose them. See `ConditionalScorer.embed_items`."""
        (sentences, rows), (conditions, columns) = (number(texts) for texts in zip(*items, strict=True))
        pooled, device = self._pooled_in([(text,) for text in (*sentences, *conditions)], passes), self.backbone.device
        encoded = self.project_sentences(pooled[: len(sentences)])
        conditioning = self.project_conditions(pooled[len(sentences) :])
        return self.embed_composed(encoded[rows.to(device)], conditioning, columns.to(device))

    def encode_frozen(self, sentences: Sequence[str], conditions: Sequence[str]) -> None:
        """Encode each text alone. See `ConditionalScorer.encode_frozen`."""
        texts = dict.fromkeys([*sentences, *conditions])
        self.backbone.encode([(text,) for text in texts], pooling=self.method_config.pooling)

    def encode_conditions(self, conditions: Sequence[str], **options: Unpack[EncodeOptions]) -> np.ndarray | Tensor:
        """Encode conditions, as `compose` takes them: (m, d) float32. Options as in `ConditionalScorer.score`."""
        check_lengths(conditions=conditions)
        return self._run(partial(self._encode_conditions, list(conditions)), options)

    @torch.no_grad()
    def embed_grid(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Compose each of n sentence vectors with each of m conditions: (m, n, d) float32 on the CPU."""
        sentences, conditions = sentences.to(self.backbone.device), conditions.to(self.backbone.device)
        if not len(conditions):
            return torch.zeros(0, *sentences.shape)
        index = torch.zeros(len(sentences), dtype=torch.long, device=sentences.device)
        return torch.stack([self.embed_composed(sentences, condition[None], index).cpu() for condition in conditions])

    @torch.no_grad()
    def _encode(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        if not items:
            return self._stack([])
        (sentences, rows), (conditions, columns) = (number(texts) for texts in zip(*items, strict=True))
        device = self.backbone.device
        rows, columns = rows.to(device), columns.to(device)
        encoded = self._encode_plain(sentences, **options).to(device)
        conditioning = self._encode_conditions(conditions, **options).to(device)
        order = columns.argsort(stable=True)  # neighbours share their condition, whose W_c is then made once
        parts = []
        for chunk in order.split(max(1, COMPOSE_BYTES // self._bytes_per_row())):
            used, index = columns[chunk].unique(return_inverse=True)
            parts.append(self.embed_composed(encoded[rows[chunk]], conditioning[used], index).float())
        composed = torch.cat(parts)
        return torch.empty_like(composed).index_copy_(0, order, composed).cpu()

    def _encode_grid(self, sentences: list[str], conditions: list[str], **options: Unpack[Options]) -> Tensor:
        """Encode with n + m passes instead of n x m."""
        encoded, conditioning = self._encode_plain(sentences, **options), self._encode_conditions(conditions, **options)
        return self.embed_grid(encoded, conditioning)

    def _to_tensor(self, values: np.ndarray) -> Tensor:
        dtype = torch.promote_types(self.backbone.dtype, torch.float32)
        return torch.tensor(np.array(values), dtype=dtype, device=self.backbone.device)

    def _bytes_per_row(self) -> int:
        """Memory that `compose` takes for one sentence; more where it makes matrices."""
        return 16 * self.backbone.hidden_size

    @torch.no_grad()
    def _encode_conditions(self, conditions: list[str], **options: Unpack[Options]) -> Tensor:
        items = [(condition,) for condition in conditions]
        pooled = self.backbone.encode(items, pooling=self.method_config.pooling, **options)
        return self.project_conditions(pooled.to(self.backbone.device)).cpu()
