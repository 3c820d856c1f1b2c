"""Bi-encoder: a sentence and the condition in one sequence; cosine of two such vectors.

Paper: Deshpande et al. 2023, "C-STS: Conditional Semantic Textual Similarity", arXiv:2305.15093.
Code followed: princeton-nlp/c-sts, BiEncoderForClassification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone, Item, Progress
from condviz.encoder.pooling import Pooling, check_pooling
from condviz.encoder.tokens import Encoded, Tokens
from condviz.methods.base import ConditionalEncoder
from condviz.methods.heads import SentenceTransform


@dataclass(frozen=True)
class BiEncoderConfig:
    """Settings of the bi-encoder.

    Attributes:
        pooling: How token states become one vector.
        transform: Put Dropout, Linear(d, d) and the activation behind the pooling.
    """

    pooling: Pooling = "cls"
    transform: bool = False

    def __post_init__(self) -> None:
        check_pooling(self.pooling)


class BiEncoder(ConditionalEncoder):
    """Encodes each sentence together with the condition, so that every token can look at it."""

    name = "bi-encoder"
    title = "Bi-encoder"
    kind = "bi"
    summary = "Encodes each sentence in one sequence with the condition; every pair of the two costs a pass."
    reference = "Deshpande et al. 2023, C-STS, arXiv:2305.15093"
    config_cls = BiEncoderConfig

    def __init__(self, backbone: Backbone, method_config: BiEncoderConfig) -> None:
        super().__init__(backbone, method_config)
        self.transform = SentenceTransform(backbone) if method_config.transform else nn.Identity()

    def embed(self, pair: Tokens) -> Tensor:
        """Encode joint sequences: (b, d)."""
        return self.transform(self.backbone(pair, self.method_config.pooling))

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Give sentence and condition as one sequence, in that order."""
        return [(row,) for row in self.backbone.tokenize(items)]

    @torch.no_grad()
    def _encode(self, items: list[Item], progress: Progress | None) -> Tensor:
        pooled = self.backbone.encode(items, pooling=self.method_config.pooling, progress=progress)
        return self.transform(pooled.to(self.backbone.device)).float().cpu()

    @torch.no_grad()
    def _encode_plain(self, sentences: list[str], progress: Progress | None) -> Tensor:
        return self._encode([(sentence,) for sentence in sentences], progress)
