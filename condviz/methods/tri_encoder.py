"""Tri-encoder: sentences and condition encoded apart, then combined by a product or a small network.

Paper: Deshpande et al. 2023, "C-STS: Conditional Semantic Textual Similarity", arXiv:2305.15093.
Code followed: princeton-nlp/c-sts, TriEncoderForClassification. Differs: an unknown composition is an error; there it
silently leaves the condition out.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone
from condviz.methods.catalog import CATALOG
from condviz.methods.configs import TriEncoderConfig
from condviz.methods.heads import ConditionLayer, SentenceTransform, activation, dropout_rate, shrink
from condviz.methods.separable import SeparableEncoder

WIDTH_DIVISOR = 12
"""The wide head has K d numbers in the middle, with the K = d / 12 of Hyper-CL's papers: 64 for 768."""


class TriEncoder(SeparableEncoder):
    """Encodes sentence and condition apart and combines the vectors with a fixed rule."""

    about = CATALOG["tri-encoder"]

    def __init__(self, backbone: Backbone, method_config: TriEncoderConfig) -> None:
        super().__init__(backbone, method_config)
        size = backbone.hidden_size
        self.transform = SentenceTransform(backbone) if method_config.transform else nn.Identity()
        self.condition: nn.Sequential = ConditionLayer(backbone)
        if method_config.composition == "hadamard-wide":
            wide, rate = size * max(1, size // WIDTH_DIVISOR), dropout_rate(backbone)
            self.condition.extend([nn.Dropout(rate), nn.Linear(size, wide), nn.Dropout(rate), nn.Linear(wide, size)])
        self.concat = None
        if method_config.composition == "concat":
            self.concat = nn.Sequential(
                nn.Dropout(dropout_rate(backbone)), nn.Linear(2 * size, size), activation(backbone)
            )

    def project_sentences(self, pooled: Tensor) -> Tensor:
        """Apply the optional transform: (b, d) -> (b, d)."""
        return self.transform(pooled)

    def project_conditions(self, pooled: Tensor) -> Tensor:
        """Compute h_c': (m, d) -> (m, d)."""
        return self.condition(pooled)

    def embed_composed(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Compute h_s * h_c', or the network on [h_s; h_c']. See `SeparableEncoder.compose`."""
        rows = conditions if index is None else conditions[index]
        return sentences * rows if self.concat is None else self.concat(torch.cat([sentences, rows], dim=-1))

    @torch.no_grad()
    def start_identity(self) -> None:
        """Start with h_c' near 1: the product keeps the sentence. See `ConditionalScorer.start_identity`."""
        if self.concat is not None:
            super().start_identity()
        shrink(self.condition[-1])
        nn.init.ones_(self.condition[-1].bias)

    def start_untrained(self) -> None:
        """Let the condition's linear layer be the identity: h_c' = h_c."""
        nn.init.eye_(self.condition[-1].weight)
        nn.init.zeros_(self.condition[-1].bias)
