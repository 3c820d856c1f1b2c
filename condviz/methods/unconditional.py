"""The encoder as it is: the condition is not read. The baseline beside every other method."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from condviz.encoder.pooling import Pooling, check_pooling
from condviz.methods.base import SeparableEncoder


@dataclass(frozen=True)
class UnconditionalConfig:
    """Settings of the baseline.

    Attributes:
        pooling: How token states become one vector.
    """

    pooling: Pooling = "mean"

    def __post_init__(self) -> None:
        check_pooling(self.pooling)


class Unconditional(SeparableEncoder):
    """Plain sentence similarity, the same under every condition."""

    name = "unconditional"
    title = "No condition"
    kind = "tri"
    summary = "Plain sentence similarity: the condition is ignored. What every other model has to differ from."
    reference = "Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084"
    config_cls = UnconditionalConfig

    def compose(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Give the sentence vectors back. See `SeparableEncoder.compose`."""
        return sentences
