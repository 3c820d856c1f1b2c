"""Bi-encoder: a sentence and the condition in one sequence; cosine of two such vectors.

Paper: Deshpande et al. 2023, "C-STS: Conditional Semantic Textual Similarity", arXiv:2305.15093.
Code followed: princeton-nlp/c-sts, BiEncoderForClassification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.tokens import Encoded, Tokens
from condviz.methods.base import ConditionalEncoder, Options, Passes
from condviz.methods.catalog import CATALOG
from condviz.methods.configs import BiEncoderConfig
from condviz.methods.heads import SentenceTransform


class BiEncoder(ConditionalEncoder):
    """Encodes each sentence together with the condition, so that every token can look at it."""

    about = CATALOG["bi-encoder"]

    def __init__(self, backbone: Backbone, method_config: BiEncoderConfig) -> None:
        super().__init__(backbone, method_config)
        self.transform = SentenceTransform(backbone) if method_config.transform else nn.Identity()

    def embed(self, pair: Tokens) -> Tensor:
        """Encode joint sequences: (b, d)."""
        return self.transform(self.backbone(pair, self.method_config.pooling))

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Encode joint sequences. See `ConditionalScorer.embed_items`."""
        return self.transform(self._pooled_in(items, passes))

    def project_sentences(self, pooled: Tensor) -> Tensor:
        """Apply the optional transform: (b, d) -> (b, d)."""
        return self.transform(pooled)

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Turn sentence and condition into one sequence, in that order."""
        return [(row,) for row in self.backbone.tokenize(items)]

    @torch.no_grad()
    def _encode(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        pooled = self.backbone.encode(items, pooling=self.method_config.pooling, **options)
        return self.transform(pooled.to(self.backbone.device)).float().cpu()
