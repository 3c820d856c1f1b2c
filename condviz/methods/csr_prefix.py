"""CSR-prefix: what the released tri-encoder of CSR computes, which is not the formula of its paper.

Code followed: bigai-nlco/CSR, tri_encoder.py and modeling_router.py. The condition's final states enter every layer of
the sentence as further keys and values, and the router is the sentence's own first row of attention. Differs: positions
start behind the real length of the condition; the code takes its padded length, so that scores change with the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.pooling import Pooling, check_pooling, pool
from condviz.encoder.tokens import Encoded, Tokens
from condviz.methods.routing import RoutedEncoder, Weighting, check_depth, check_routing, factor


@dataclass(frozen=True)
class CSRPrefixConfig:
    """Settings of CSR-prefix.

    Attributes:
        num_routed_layers: R, how many of the last layers are routed; the condition enters every layer.
        weighting: "one-plus" for (1 + w), "only" for w.
        pooling: Over the tokens of the sentence; released settings: "cls", that is the separator in front.
    """

    num_routed_layers: int = 1
    weighting: Weighting = "one-plus"
    pooling: Pooling = "cls"

    def __post_init__(self) -> None:
        check_routing(self.num_routed_layers, self.weighting)
        check_pooling(self.pooling)


class CSRPrefix(RoutedEncoder):
    """Lets the sentence attend to the condition's final states in every layer."""

    name = "csr-prefix"
    title = "CSR-prefix"
    kind = "bi"
    summary = "The sentence attends to the condition's final states in every layer: what CSR's released code computes."
    reference = "Lin et al. 2024, CSR, EMNLP 2024 (released code)"
    meets = "prefix"
    config_cls = CSRPrefixConfig

    def __init__(self, backbone: Backbone, method_config: CSRPrefixConfig) -> None:
        super().__init__(backbone, method_config)
        check_depth(method_config.num_routed_layers, backbone)
        _ = backbone.layers

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
        """Give the sentence with one more separator in front, and the condition."""
        return [(self.behind_separator(sentence), condition) for sentence, condition in super().tokenize(items)]
