"""Hyper-CL: a hypernetwork turns the condition into a matrix W_c that projects the sentence vector.

Paper: Yoo et al. 2024, "Hyper-CL: Conditioning Sentence Representations with Hypernetworks", arXiv:2403.09490.
Code followed: HYU-NLP/Hyper-CL, c-sts/utils/sts/modeling_encoders.py:82-156. Differs: W_c is made once for both
sentences of a pair (the code makes it twice, under two dropout masks); layers that the code builds and never uses are
left out; initial weights are PyTorch's (transformers 5 would redraw them).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone
from condviz.encoder.pooling import Pooling, check_pooling
from condviz.errors import ConfigError
from condviz.methods.base import SeparableEncoder
from condviz.methods.heads import ConditionLayer, SentenceTransform

HYPER_DROPOUT = 0.1
"""Dropout in front of the hypernetwork (official code)."""


@dataclass(frozen=True)
class HyperCLConfig:
    """Settings of Hyper-CL.

    Attributes:
        rank: K of the low-rank form, where two hypernetworks make d x K and K x d; None makes the whole d x d matrix.
        pooling: How token states become one vector.
        transform: Put Dropout, Linear(d, d) and the activation behind the pooling of sentences.
        condition_transform: Put Linear(d, d) in front of the hypernetwork, as the code does and the paper does not say.
    """

    rank: int | None = 64
    pooling: Pooling = "cls"
    transform: bool = False
    condition_transform: bool = True

    def __post_init__(self) -> None:
        check_pooling(self.pooling)
        if self.rank is not None and (not isinstance(self.rank, int) or self.rank < 1):
            raise ConfigError(f"rank must be a positive integer, or None for the full matrix, got {self.rank!r}.")


class HyperCL(SeparableEncoder):
    """Projects the sentence with a matrix that is made from the condition."""

    name = "hyper-cl"
    title = "Hyper-CL"
    kind = "tri"
    summary = "A hypernetwork makes a projection W_c from the condition; the embedding is W_c times the sentence."
    reference = "Yoo et al. 2024, Hyper-CL, ACL 2024, arXiv:2403.09490"
    config_cls = HyperCLConfig

    def __init__(self, backbone: Backbone, method_config: HyperCLConfig) -> None:
        super().__init__(backbone, method_config)
        size, rank = backbone.hidden_size, method_config.rank
        if rank is not None and rank > size:
            raise ConfigError(
                f"rank must be at most the size of the encoder, {size}, got {rank}; None is the full matrix."
            )
        self.transform = SentenceTransform(backbone) if method_config.transform else nn.Identity()
        self.condition = ConditionLayer(backbone) if method_config.condition_transform else nn.Identity()
        self.dropout = nn.Dropout(HYPER_DROPOUT)
        if rank is None:
            self.hyper = nn.Linear(size, size * size)
        else:
            self.hyper_left = nn.Linear(size, size * rank)
            self.hyper_right = nn.Linear(size, rank * size)

    def project_sentences(self, pooled: Tensor) -> Tensor:
        """Apply the optional transform: (b, d) -> (b, d)."""
        return self.transform(pooled)

    def project_conditions(self, pooled: Tensor) -> Tensor:
        """Give h_c': (m, d) -> (m, d)."""
        return self.condition(pooled)

    def factors(self, conditions: Tensor) -> tuple[Tensor, ...]:
        """Make the matrices whose product, from the right, projects a row vector.

        Args:
            conditions: h_c', (m, d).

        Returns:
            (W_c^T,) of shape (m, d, d), or for rank K the two factors (m, d, K) and (m, K, d): W_c2 and W_c1^T in the
            paper's words.
        """
        size, rank, inputs = self.backbone.hidden_size, self.method_config.rank, self.dropout(conditions)
        shapes = [(size, size)] if rank is None else [(size, rank), (rank, size)]
        return tuple(
            layer(inputs.to(layer.weight.dtype)).view(-1, *shape).to(conditions.dtype)
            for layer, shape in zip(self.hypernetworks(), shapes, strict=True)
        )

    def hypernetworks(self) -> list[nn.Linear]:
        """Give the layer that makes W_c, or the two that make its factors."""
        return [self.hyper] if self.method_config.rank is None else [self.hyper_left, self.hyper_right]

    def match_precision(self) -> HyperCL:
        """Keep the hypernetworks in the precision of the encoder: reading them is what making W_c costs."""
        super().match_precision()
        for layer in self.hypernetworks():
            layer.to(self.backbone.dtype)
        return self

    def compose(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Give W_c h_s; with rank K by way of K numbers, without forming W_c. See `SeparableEncoder.compose`."""
        rows = sentences[:, None]
        for factor in self.factors(conditions):
            rows = rows @ (factor if index is None else factor[index])
        return rows[:, 0]

    @torch.no_grad()
    def compose_grid(self, sentences: Tensor, conditions: Tensor, *, scores_only: bool = False) -> Tensor:
        """Project n sentences by m matrices, in the precision of the encoder. See `SeparableEncoder.compose_grid`.

        With rank K and `scores_only` the result has K numbers per vector: for W = W_c1^T and W W^T = L L^T, inner
        products of s W_c2 L equal those of s W_c2 W, at K/d of the cost.
        """
        device, dtype = self.backbone.device, self.backbone.dtype
        first, *rest = self.factors(conditions.to(device))
        columns = first.to(dtype).permute(1, 0, 2).reshape(first.shape[1], -1)  # one large product is faster than m
        grid = (sentences.to(device, dtype) @ columns).view(len(sentences), len(conditions), first.shape[-1])
        grid = grid.transpose(0, 1)
        for factor in rest:
            grid = grid @ (gram_root(factor) if scores_only else factor).to(dtype)
        return grid.float().cpu()

    @torch.no_grad()
    def condition_matrix(self, condition: str) -> np.ndarray:
        """Give W_c, (d, d) float32: the embedding is W_c times the sentence vector as a column."""
        encoded = self._encode_conditions([condition], None).to(self.backbone.device)
        matrix, *rest = self.factors(encoded)
        for factor in rest:
            matrix = matrix @ factor
        return matrix[0].T.float().cpu().numpy()

    def _bytes_per_row(self) -> int:
        size = self.backbone.hidden_size
        return 8 * size * (size if self.method_config.rank is None else 2 * self.method_config.rank)


def gram_root(matrices: Tensor) -> Tensor:
    """Give L with L L^T = W W^T for each W: (m, k, d) -> (m, k, k)."""
    wide = matrices.double()
    gram = wide @ wide.transpose(1, 2)
    # Keeps matrices without full rank decomposable; below the precision of the result.
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += 1e-12 * diagonal.mean(dim=1, keepdim=True) + 1e-30
    return torch.linalg.cholesky(gram).to(matrices.dtype)
