"""Tri-encoder: sentences and condition encoded apart, then combined by a product or a small network.

Paper: Deshpande et al. 2023, "C-STS: Conditional Semantic Textual Similarity", arXiv:2305.15093.
Code followed: princeton-nlp/c-sts, TriEncoderForClassification. Differs: an unknown composition is an error; there it
silently leaves the condition out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone
from condviz.encoder.pooling import Pooling, check_pooling
from condviz.errors import ConfigError
from condviz.methods.base import SeparableEncoder
from condviz.methods.heads import ConditionLayer, SentenceTransform, activation, dropout_rate

Composition = Literal["hadamard", "concat"]


@dataclass(frozen=True)
class TriEncoderConfig:
    """Settings of the tri-encoder.

    Attributes:
        composition: "hadamard" multiplies the two vectors, "concat" puts both through a linear layer and activation.
        pooling: How token states become one vector.
        transform: Put Dropout, Linear(d, d) and the activation behind the pooling of sentences.
    """

    composition: Composition = "hadamard"
    pooling: Pooling = "cls"
    transform: bool = False

    def __post_init__(self) -> None:
        check_pooling(self.pooling)
        if self.composition not in get_args(Composition):
            allowed = ", ".join(get_args(Composition))
            raise ConfigError(f"composition must be one of {allowed}, got {self.composition!r}.")


class TriEncoder(SeparableEncoder):
    """Encodes sentence and condition apart and combines the vectors with a fixed rule."""

    name = "tri-encoder"
    title = "Tri-encoder"
    kind = "tri"
    summary = "Encodes sentences and conditions apart and multiplies (or concatenates and mixes) the two vectors."
    reference = "Deshpande et al. 2023, C-STS, arXiv:2305.15093"
    config_cls = TriEncoderConfig

    def __init__(self, backbone: Backbone, method_config: TriEncoderConfig) -> None:
        super().__init__(backbone, method_config)
        size = backbone.hidden_size
        self.transform = SentenceTransform(backbone) if method_config.transform else nn.Identity()
        self.condition = ConditionLayer(backbone)
        self.concat = None
        if method_config.composition == "concat":
            self.concat = nn.Sequential(
                nn.Dropout(dropout_rate(backbone)), nn.Linear(2 * size, size), activation(backbone)
            )

    def project_sentences(self, pooled: Tensor) -> Tensor:
        """Apply the optional transform: (b, d) -> (b, d)."""
        return self.transform(pooled)

    def project_conditions(self, pooled: Tensor) -> Tensor:
        """Give h_c': (m, d) -> (m, d)."""
        return self.condition(pooled)

    def compose(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Give h_s * h_c', or the network on [h_s; h_c']. See `SeparableEncoder.compose`."""
        rows = conditions if index is None else conditions[index]
        return sentences * rows if self.concat is None else self.concat(torch.cat([sentences, rows], dim=-1))
