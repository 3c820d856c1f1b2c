"""The baselines: the encoder as it is, and the cross-, bi- and tri-encoder of C-STS.

Paper: Deshpande et al. 2023, "C-STS: Conditional Semantic Textual Similarity", arXiv:2305.15093.
Code followed: princeton-nlp/c-sts, CrossEncoderForClassification, BiEncoderForClassification,
TriEncoderForClassification. Differs: an unknown composition of the tri-encoder is an error; there it silently leaves
the condition out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.tokens import Encoded, Tokens
from condviz.methods.base import ConditionalScorer, Options, Passes
from condviz.methods.catalog import CATALOG, CrossEncoderConfig, TriEncoderConfig
from condviz.methods.encoders import (
    ConditionalEncoder,
    SeparableEncoder,
    activation,
    condition_layer,
    dropout_rate,
    last_linear,
    sentence_transform,
    shrink,
)  # fmt: skip


class Unconditional(SeparableEncoder):
    """Plain sentence similarity, the same under every condition."""

    about = CATALOG["unconditional"]

    def embed_composed(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Return the sentence vectors as they are. See `SeparableEncoder.compose`."""
        return sentences


class CrossEncoder(ConditionalScorer):
    """Reads sentence 1, sentence 2 and the condition together and predicts the similarity directly."""

    about = CATALOG["cross-encoder"]

    def __init__(self, backbone: Backbone, method_config: CrossEncoderConfig) -> None:
        super().__init__(backbone, method_config)
        self.transform = sentence_transform(backbone, method_config)
        self.dropout = nn.Dropout(dropout_rate(backbone))
        self.classifier = nn.Linear(backbone.hidden_size, 1)

    def predict(self, tokens: Tokens) -> Tensor:
        """Score a batch of joint sequences: (b,), unbounded, with gradient where it is switched on."""
        return self.classify(self.backbone(tokens, self.method_config.pooling))

    def classify(self, pooled: Tensor) -> Tensor:
        """Turn pooled vectors into scores: (b, d) -> (b,)."""
        return self.classifier(self.dropout(self.transform(pooled))).squeeze(-1)

    def join(self, sentence1: str, sentence2: str, condition: str | None) -> str:
        """Join the texts into one string, with `Backbone.separator` and blanks between, as the official code does.

        The result is tokenized with `separators=True`; special tokens inside of the texts are broken up.
        """
        both = [self.backbone.without_special_tokens(text) for text in (sentence1, sentence2)]
        last = [] if condition is None else [self.backbone.without_special_tokens(condition)]
        parts = {"all": [*both, *last], "sentences": both, "condition": last}[self.method_config.inputs]
        return f" {self.backbone.separator} ".join(parts)

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Turn (sentence 1, sentence 2, condition) tuples into what `predict` takes, unpadded."""
        joined = [(self.join(*item),) for item in items]
        return [(row,) for row in self.backbone.tokenize(joined, separators=True)]

    def reads_all(self, sentence1: str, sentence2: str, condition: str) -> bool:
        """Return whether the joint sequence is read to its end."""
        ((row,),) = self.tokenize([(sentence1, sentence2, condition)])
        return not row.truncated

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Score (sentence 1, sentence 2, condition or None) tuples. See `ConditionalScorer.embed_items`."""
        return self.classify(self._pooled_in([(self.join(*item),) for item in items], passes, separators=True))

    @torch.no_grad()
    def _score(
        self, sentences1: list[str], sentences2: list[str], conditions: list[str] | None, **options: Unpack[Options]
    ) -> Tensor:
        rows = zip(sentences1, sentences2, conditions or [None] * len(sentences1), strict=True)
        pooled = self._pool_cached([(self.join(*row),) for row in rows], separators=True, **options)
        return self.classify(pooled).float().cpu()


class BiEncoder(ConditionalEncoder):
    """Encodes each sentence together with the condition, so that every token can look at it."""

    about = CATALOG["bi-encoder"]

    def embed(self, *inputs: Tokens) -> Tensor:
        """Encode joint sequences: (b, d)."""
        (pair,) = inputs
        return self.transform(self.backbone(pair, self.method_config.pooling))

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Encode joint sequences. See `ConditionalScorer.embed_items`."""
        return self.transform(self._pooled_in(items, passes))

    @property
    def is_plain_transformer(self) -> bool:
        """Whether sentence-transformers computes the same with its own two modules."""
        encoder, pooling = self.backbone, self.method_config.pooling
        return pooling in ("mean", "cls") and not (len(self.transform) or encoder.prefix or encoder.bidirectional)

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Turn sentence and condition into one sequence, in that order."""
        return [(row,) for row in self.backbone.tokenize(items)]

    @torch.no_grad()
    def _encode(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        return self.transform(self._pool_cached(items, **options)).float().cpu()


WIDTH_DIVISOR = 12
"""The wide head has K d numbers in the middle, with the K = d / 12 of Hyper-CL's papers: 64 for 768."""


class TriEncoder(SeparableEncoder):
    """Encodes sentence and condition apart and combines the vectors with a fixed rule."""

    about = CATALOG["tri-encoder"]

    def __init__(self, backbone: Backbone, method_config: TriEncoderConfig) -> None:
        super().__init__(backbone, method_config)
        size, self.condition = backbone.hidden_size, condition_layer(backbone)
        if method_config.composition == "hadamard-wide":
            wide, rate = size * max(1, size // WIDTH_DIVISOR), dropout_rate(backbone)
            self.condition.extend([nn.Dropout(rate), nn.Linear(size, wide), nn.Dropout(rate), nn.Linear(wide, size)])
        self.concat = None
        if method_config.composition == "concat":
            self.concat = nn.Sequential(
                nn.Dropout(dropout_rate(backbone)), nn.Linear(2 * size, size), activation(backbone)
            )

    def embed_composed(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Compute h_s * h_c', or the network on [h_s; h_c']. See `SeparableEncoder.compose`."""
        rows = conditions if index is None else conditions[index]
        return sentences * rows if self.concat is None else self.concat(torch.cat([sentences, rows], dim=-1))

    @torch.no_grad()
    def start_identity(self) -> None:
        """Start with h_c' near 1: the product keeps the sentence. See `ConditionalScorer.start_identity`."""
        if self.concat is not None:
            super().start_identity()
        shrink(last := last_linear(self.condition))
        nn.init.ones_(last.bias)

    def start_untrained(self) -> None:
        """Let the condition's linear layer be the identity: h_c' = h_c."""
        last = last_linear(self.condition)
        nn.init.eye_(last.weight)
        nn.init.zeros_(last.bias)
