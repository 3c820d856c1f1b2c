"""Routers of CSR: how a condition weighs the tokens of a sentence. Shared by csr, csr-bi and csr-prefix.

Paper: Lin et al. 2024, "Varying Sentence Representations via Condition-Specified Routers", EMNLP 2024.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from condviz.data.texts import add_up_words, split_words
from condviz.encoder.backbone import Backbone
from condviz.encoder.layers import LayerAccess, Reweigh, attention_probabilities, exact
from condviz.encoder.tokens import Encoded, Tokens
from condviz.errors import ConfigError, DataError
from condviz.methods.base import list_texts
from condviz.methods.catalog import RoutedConfig, Weighting
from condviz.methods.encoders import ConditionalEncoder
from condviz.types import TokenWeights, Word

HEAVY_HEADS = 16
"""Heads of the Heavy router (official code, routing.py)."""


class Router(nn.Module, ABC):
    """Weighs sentence tokens by what it has read from the condition.

    Args:
        backbone: The encoder.
        routed_layers: Indices of the R routed layers, from 0, lowest first.
    """

    def __init__(self, backbone: Backbone, routed_layers: Sequence[int]) -> None:
        super().__init__()
        self.routed_layers = tuple(routed_layers)

    @abstractmethod
    def read(self, layers: LayerAccess, states: Sequence[Tensor], tokens: Tokens) -> Tensor:
        """Read m conditions: (m, R, e), e numbers for each routed layer, all that `weigh` needs of them.

        `states` are those that enter each routed layer, R tensors (m, L, d).
        """

    @abstractmethod
    def weigh(self, layers: LayerAccess, layer: int, sentence: SentenceState, condition: Tensor) -> Tensor:
        """Weigh the tokens of sentences in one routed layer.

        Args:
            layers: The encoder.
            layer: Its index from 0.
            sentence: What enters the layer.
            condition: (b, e), what `read` returned for this layer, row by row.

        Returns:
            (b, L) in float32 or better: >= 0, 0 at padding, each row sums to 1.
        """


class SentenceState:
    """Sentences on their way through the layers: ids, mask (b, L), hidden states and keys (b, L, d) of one layer."""

    def __init__(self, ids: Tensor, mask: Tensor, hidden: Tensor, keys: Tensor) -> None:
        self.ids, self.mask, self.hidden, self.keys = ids, mask, hidden, keys


class QueryKeyRouter(Router):
    """w = softmax(q_c K_s^T / sqrt(d)): one query over all heads, against the keys of the sentence (paper, Eq. 1).

    The `query_layer` "last" takes q_c = W_q h_c,CLS of the last layer everywhere (paper), "same" of the routed one.
    """

    def __init__(self, backbone: Backbone, routed_layers: Sequence[int], query_layer: str = "last") -> None:
        super().__init__(backbone, routed_layers)
        self.query_layer = query_layer

    def read(self, layers: LayerAccess, states: Sequence[Tensor], tokens: Tokens) -> Tensor:
        """Return the queries (m, R, d). See `Router.read`."""
        marks = [layers.mark(state, tokens.mask) for state in states]
        queries = [layers.query(layer, mark) for layer, mark in zip(self.routed_layers, marks, strict=True)]
        if self.query_layer == "last":
            queries = [queries[-1]] * len(queries)
        return torch.stack(queries, dim=1)

    def weigh(self, layers: LayerAccess, layer: int, sentence: SentenceState, condition: Tensor) -> Tensor:
        """Compare queries with keys. See `Router.weigh`."""
        return attention_probabilities(condition[:, None], sentence.keys, sentence.mask[:, None])[:, 0]


class HiddenRouter(Router):
    """w = softmax(h_c,CLS h_s^T / sqrt(d)) with the states that enter the layer (variant Hidden, paper Table 1)."""

    def read(self, layers: LayerAccess, states: Sequence[Tensor], tokens: Tokens) -> Tensor:
        """Return the first token's states (m, R, d). See `Router.read`."""
        return torch.stack([layers.mark(state, tokens.mask) for state in states], dim=1)

    def weigh(self, layers: LayerAccess, layer: int, sentence: SentenceState, condition: Tensor) -> Tensor:
        """Compare states with states. See `Router.weigh`."""
        return attention_probabilities(condition[:, None], sentence.hidden, sentence.mask[:, None])[:, 0]


class HeavyRouter(HiddenRouter):
    """Own query and key layers on the states that enter the layer (variant Heavy, Table 1): 2 (d^2 + d) per layer.

    Differs from an earlier release, which started them from the layer's own projections: here at random (paper).
    """

    def __init__(self, backbone: Backbone, routed_layers: Sequence[int]) -> None:
        super().__init__(backbone, routed_layers)
        size = backbone.hidden_size
        if size % HEAVY_HEADS:
            raise ConfigError(
                f"The heavy router has {HEAVY_HEADS} heads, which do not divide the encoder's size {size}."
            )
        self.query = nn.ModuleDict({str(layer): nn.Linear(size, size) for layer in routed_layers})
        self.key = nn.ModuleDict({str(layer): nn.Linear(size, size) for layer in routed_layers})

    def weigh(self, layers: LayerAccess, layer: int, sentence: SentenceState, condition: Tensor) -> Tensor:
        """Average the heads' scores, then softmax. See `Router.weigh`."""
        dtype = next(self.query.parameters()).dtype
        query = self.query[str(layer)](condition.to(dtype))
        keys = self.key[str(layer)](sentence.hidden.to(dtype))
        # The mean over heads of per-head products is the product over all heads, divided by their number.
        scores = (keys @ query[..., None])[..., 0] / (query.shape[-1] * HEAVY_HEADS) ** 0.5
        return exact(scores).masked_fill(~sentence.mask, float("-inf")).softmax(dim=-1)


class MultiHeadRouter(Router):
    """Per-head attention of the condition's first token over sentence and condition, averaged, cut to the sentence.

    Source: bigai-nlco/CSR, my_encoderv2.py router type 3, with both streams encoded apart.
    """

    def read(self, layers: LayerAccess, states: Sequence[Tensor], tokens: Tokens) -> Tensor:
        """Return the queries and, per head, the log-sum-exp of the condition's own scores: (m, R, d + heads)."""
        parts = []
        for layer, state in zip(self.routed_layers, states, strict=True):
            query, keys = layers.query(layer, layers.mark(state, tokens.mask)), layers.key(layer, state)
            scores = _head_scores(query, keys, layers.num_heads).masked_fill(~tokens.mask[:, None], float("-inf"))
            parts.append(torch.cat([query.to(scores.dtype), scores.logsumexp(dim=-1)], dim=-1))
        return torch.stack(parts, dim=1)

    def weigh(self, layers: LayerAccess, layer: int, sentence: SentenceState, condition: Tensor) -> Tensor:
        """Share one softmax with the condition's own tokens. See `Router.weigh`."""
        query, own = condition.tensor_split([-layers.num_heads], dim=-1)
        scores = _head_scores(query, sentence.keys, layers.num_heads)
        scores = scores.masked_fill(~sentence.mask[:, None], float("-inf"))
        total = torch.logaddexp(scores.logsumexp(dim=-1), own.to(scores.dtype))
        weight = (scores - total[..., None]).exp().mean(dim=1)
        return weight / weight.sum(dim=-1, keepdim=True)


class RandomRouter(Router):
    """Random weights: softmax of standard normal numbers (variant Random Weight, paper Table 3).

    The paper does not say how they are drawn. Here: drawn again at each training step; otherwise fixed by sentence,
    condition and layer.
    """

    def read(self, layers: LayerAccess, states: Sequence[Tensor], tokens: Tokens) -> Tensor:
        """Return a number that stands for the condition: (m, R, 1)."""
        marks = torch.tensor([[_mark(row)] for row in _real_ids(tokens.ids, tokens.mask)], device=tokens.ids.device)
        return marks[:, None].float().expand(-1, len(self.routed_layers), -1)

    def weigh(self, layers: LayerAccess, layer: int, sentence: SentenceState, condition: Tensor) -> Tensor:
        """Draw the weights. See `Router.weigh`."""
        scores = torch.randn(sentence.mask.shape, device=sentence.mask.device)
        if not self.training:
            for row, (ids, mark) in enumerate(zip(_real_ids(sentence.ids, sentence.mask), condition, strict=True)):
                generator = torch.Generator().manual_seed(_mark([*ids, int(mark), layer]))
                scores[row, : len(ids)] = torch.randn(len(ids), generator=generator)
        return scores.masked_fill(~sentence.mask, float("-inf")).softmax(dim=-1)


ROUTERS: dict[str, type[Router]] = {
    "query_key": QueryKeyRouter,
    "multihead": MultiHeadRouter,
    "hidden": HiddenRouter,
    "heavy": HeavyRouter,
    "random": RandomRouter,
}


class RoutedEncoder(ConditionalEncoder):
    """An encoder that weighs the words of a sentence by the condition, and can show the weights."""

    def __init__(self, backbone: Backbone, method_config: RoutedConfig) -> None:
        super().__init__(backbone, method_config)
        if method_config.num_routed_layers > backbone.num_layers:
            raise ConfigError(
                f"num_routed_layers must be at most {backbone.num_layers}, the layers of {backbone.name}, "
                f"got {method_config.num_routed_layers}."
            )
        _ = backbone.layers  # fails now, with a clear message, for encoders that cannot be run layer by layer

    @property
    def has_router(self) -> bool:
        """Whether any layer is routed."""
        return self.method_config.num_routed_layers > 0

    @property
    def routed_layers(self) -> range:
        """Indices of the last R layers, from 0."""
        return range(self.backbone.num_layers - self.method_config.num_routed_layers, self.backbone.num_layers)

    @abstractmethod
    def embed_and_weigh(self, sentence: Tokens, condition: Tokens) -> tuple[Tensor, list[Tensor]]:
        """Encode sentences under conditions, row by row.

        Returns:
            Embeddings (b, d), with gradient where it is switched on, and the weights (b, L) of each routed layer.
        """

    def embed(self, *inputs: Tokens) -> Tensor:
        """Encode sentences under conditions, row by row: (b, d)."""
        sentence, condition = inputs
        return self.embed_and_weigh(sentence, condition)[0]

    def keep_weights(self, weigh: Callable[[int, Tensor], Tensor]) -> tuple[Reweigh, list[Tensor]]:
        """Return what re-weighs the routed layers by what `weigh` returns for them, and a list that this fills."""
        weights: list[Tensor] = []

        def reweigh(layer: int, hidden: Tensor) -> Tensor | None:
            if layer not in self.routed_layers:
                return None
            weights.append(weigh(layer, hidden))
            return factor(weights[-1], self.method_config.weighting)

        return reweigh, weights

    def behind_separator(self, row: Encoded) -> Encoded:
        """Prepend one more separator to a sequence, as the released code does."""
        separator = cast("Any", self.backbone.tokenizer).convert_tokens_to_ids(self.backbone.separator)
        return replace(row, ids=(separator, *row.ids), types=(0, *row.types))

    @torch.no_grad()
    def token_weights(self, sentence: str, conditions: Iterable[str]) -> TokenWeights:
        """Return how much weight each word of a sentence gets under each of m conditions.

        Raises:
            ConfigError: If the model has no routed layer.
            DataError: If `conditions` is a single text, or holds none.
        """
        if not self.has_router:
            raise ConfigError("num_routed_layers is 0: this model has no router and therefore no weights to show.")
        (conditions,) = list_texts(conditions=conditions)
        if not conditions:
            raise DataError("There are 0 conditions, and weights are those under a condition. Give one or more.")
        rows = self.tokenize([(sentence, condition) for condition in conditions])
        _, routed = self.embed_and_weigh(*(self.backbone.collate(parts) for parts in zip(*rows, strict=True)))
        row, spans = rows[0][0], self.backbone.spans(sentence)
        values = torch.stack(routed)[..., : len(row)].float().cpu().numpy()  # (R, m, L)
        # A method may put further special tokens in front of those of the tokenizer; they have an empty span as well.
        spans = [(0, 0)] * (len(row) - len(spans)) + spans
        words = split_words(sentence)
        weights = add_up_words(words, spans, values)
        return TokenWeights(
            sentence=sentence,
            conditions=tuple(conditions),
            words=words,
            weights=weights,
            layers=tuple(self.routed_layers),
            hidden_mass=np.clip(1 - weights.sum(axis=-1), 0, 1),
            tokens=tuple(Word(sentence[start:end], start, end) for start, end in spans),
            token_weights=values,
            truncated=row.truncated,
        )


def factor(weights: Tensor, weighting: Weighting) -> Tensor:
    """Turn weights into the factor of the attention output: 1 + w, or w."""
    return 1 + weights if weighting == "one-plus" else weights


def _head_scores(query: Tensor, keys: Tensor, heads: int) -> Tensor:
    """Scaled per-head products: (b, d), (b, L, d) -> (b, heads, L), float32 or better."""
    query, keys = (exact(part).unflatten(-1, (heads, -1)) for part in (query, keys))
    return torch.einsum("bhe,blhe->bhl", query, keys) / query.shape[-1] ** 0.5


def _real_ids(ids: Tensor, mask: Tensor) -> list[list[int]]:
    return [row[keep].tolist() for row, keep in zip(ids.cpu(), mask.cpu(), strict=True)]


def _mark(ids: Sequence[int]) -> int:
    """A 24-bit number for a sequence of ids: float32 holds it exactly."""
    return zlib.crc32(np.asarray(ids, dtype=np.int64).tobytes()) >> 8
