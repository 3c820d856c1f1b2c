"""CSR-prefix: what the released tri-encoder of CSR computes, which is not the formula of its paper.

Code followed: bigai-nlco/CSR, tri_encoder.py and modeling_router.py. The condition's final states enter every layer of
the sentence as further keys and values, and the router is the sentence's own first row of attention. Differs: positions
start behind the real length of the condition; the code takes its padded length, so that scores change with the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from condviz.encoder.backbone import Item
from condviz.encoder.pooling import pool
from condviz.encoder.tokens import Encoded, Tokens
from condviz.methods.catalog import CATALOG
from condviz.methods.routing import RoutedEncoder, factor


class CSRPrefix(RoutedEncoder):
    """Lets the sentence attend to the condition's final states in every layer."""

    about = CATALOG["csr-prefix"]

    def embed_and_weigh(self, sentence: Tokens, condition: Tokens) -> tuple[Tensor, list[Tensor]]:
        """Encode sentences under conditions, row by row.

        Args:
            sentence: Tokens with one more separator in front, as `tokenize` returns them.
            condition: (b, L) tokens.

        Returns:
            Embeddings (b, d), and the weights (b, L) of each routed layer. They do not sum to 1: the rest lies on the
            condition.
        """
        layers, width = self.backbone.layers, condition.ids.shape[1]
        prefix = self.backbone.states(condition, all_layers=False)[-1]
        positions = sentence.counted_positions() + condition.mask.sum(dim=1, keepdim=True)
        placed = replace(sentence, positions=positions.clamp_max(self.backbone.max_length - 1))
        visible = torch.cat([condition.mask, sentence.mask], dim=1)
        weights: list[Tensor] = []

        def reweigh(layer: int, hidden: Tensor, keys: Tensor) -> Tensor | None:
            if layer not in self.routed_layers:
                return None
            weight = layers.attention(layer, hidden, visible, rows=slice(0, 1), prefix=prefix)
            weight = weight.mean(dim=1)[:, 0, width:]
            weights.append(weight)
            return factor(weight, self.method_config.weighting)

        states = layers.run(layers.embed(placed), visible, prefix=prefix, reweigh=reweigh)
        return pool(states, sentence, self.method_config.pooling), weights

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Tokenize the sentence with one more separator in front, and the condition."""
        return [(self.behind_separator(sentence), condition) for sentence, condition in super().tokenize(items)]
