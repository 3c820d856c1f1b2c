"""The encoder as it is: the condition is not read. The baseline beside every other method."""

from __future__ import annotations

from torch import Tensor

from condviz.methods.catalog import CATALOG
from condviz.methods.separable import SeparableEncoder


class Unconditional(SeparableEncoder):
    """Plain sentence similarity, the same under every condition."""

    about = CATALOG["unconditional"]

    def embed_composed(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Return the sentence vectors as they are. See `SeparableEncoder.compose`."""
        return sentences
