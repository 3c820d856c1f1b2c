"""CSR bi-encoder: sentence and condition in one sequence, the condition's first token weighs the sentence's tokens.

Paper: Lin et al. 2024, "Varying Sentence Representations via Condition-Specified Routers", EMNLP 2024, Table 1 (bi).
Code followed: bigai-nlco/CSR, my_encoder.py with router type 3 and mask type 0, with its token layout and positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from condviz.encoder.backbone import Item
from condviz.encoder.pooling import pool
from condviz.encoder.tokens import Encoded, Tokens
from condviz.methods.catalog import CATALOG
from condviz.methods.routing import RoutedEncoder, factor


class CSRBi(RoutedEncoder):
    """Reads sentence and condition together and routes the last layers by the condition's attention."""

    about = CATALOG["csr-bi"]

    def embed_and_weigh(self, sentence: Tokens, condition: Tokens) -> tuple[Tensor, list[Tensor]]:
        """Encode sentences under conditions, row by row.

        Args:
            sentence: (b, L) tokens.
            condition: Tokens with one more separator in front, as `tokenize` returns them.

        Returns:
            Embeddings (b, d), and the weights (b, L) of each routed layer.
        """
        layers, joint, visible = self.backbone.layers, self.join(sentence, condition), None
        length = sentence.ids.shape[1]
        mark = length + 1  # the condition's classification token, behind its separator
        visible = joint.mask[:, None, :].repeat(1, joint.ids.shape[1], 1)
        visible[:, :, mark] = False
        visible[:, mark, mark] = True  # nobody else sees it
        weights: list[Tensor] = []

        def reweigh(layer: int, hidden: Tensor, keys: Tensor) -> Tensor | None:
            if layer not in self.routed_layers:
                return None
            row = layers.attention(layer, hidden, visible, rows=slice(mark, mark + 1)).mean(dim=1)[:, 0]
            weight = row * (torch.arange(row.shape[1], device=row.device) < length)
            weight = weight / weight.sum(dim=1, keepdim=True)
            weights.append(weight[:, :length])
            return factor(weight, self.method_config.weighting)

        states = layers.run(layers.embed(joint), visible, reweigh=reweigh)
        return pool([state[:, :length] for state in states], sentence, self.method_config.pooling), weights

    def join(self, sentence: Tokens, condition: Tokens) -> Tokens:
        """Concatenate both: padded sentence, then padded condition.

        Positions count the real tokens of both. As in the official code, the condition's first token repeats the
        position of the separator in front of it.
        """
        lengths = sentence.mask.sum(dim=1, keepdim=True)
        behind = (torch.arange(condition.ids.shape[1], device=lengths.device) - 1).clamp_min(0)
        positions = torch.cat([sentence.counted_positions(), lengths + behind], dim=1)
        types = None
        if self.backbone.model.config.type_vocab_size > 1:
            types = torch.cat([torch.zeros_like(sentence.ids), torch.ones_like(condition.ids)], dim=1)
        return Tokens(
            ids=torch.cat([sentence.ids, condition.ids], dim=1),
            mask=torch.cat([sentence.mask, condition.mask], dim=1),
            types=types,
            positions=positions.clamp_max(self.backbone.max_length - 1),
        )

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Tokenize the sentence, and the condition with one more separator in front."""
        return [(sentence, self.behind_separator(condition)) for sentence, condition in super().tokenize(items)]
