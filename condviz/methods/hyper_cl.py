"""Hyper-CL: a hypernetwork turns the condition into a matrix W_c that projects the sentence vector.

Paper: Yoo et al. 2024, "Hyper-CL: Conditioning Sentence Representations with Hypernetworks", arXiv:2403.09490.
Code followed: HYU-NLP/Hyper-CL, c-sts/utils/sts/modeling_encoders.py:82-156. Differs: W_c is made once for both
sentences of a pair (the code makes it twice, under two dropout masks); layers that the code builds and never uses are
left out; initial weights are PyTorch's (transformers 5 would redraw them).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone
from condviz.errors import ConfigError
from condviz.methods.catalog import CATALOG, HyperCLConfig
from condviz.methods.encoders import SeparableEncoder, condition_layer, last_linear, shrink

HYPER_DROPOUT = 0.1
"""Dropout in front of the hypernetwork (official code)."""


def hypernetwork(size: int, outputs: int, between: int | None) -> nn.Module:
    """Build what makes a factor of W_c from h_c': one layer, or two with `between` numbers in the middle."""
    if between is None:
        return nn.Linear(size, outputs)
    return nn.Sequential(nn.Linear(size, between, bias=False), nn.Linear(between, outputs))


class HyperCL(SeparableEncoder):
    """Projects the sentence with a matrix that is made from the condition."""

    about = CATALOG["hyper-cl"]

    def __init__(self, backbone: Backbone, method_config: HyperCLConfig) -> None:
        super().__init__(backbone, method_config)
        size, rank = backbone.hidden_size, method_config.rank
        if rank is not None and rank > size:
            raise ConfigError(f"rank must be at most the encoder's size, {size}, got {rank}; None is the full matrix.")
        if method_config.condition_transform:
            self.condition = condition_layer(backbone)
        self.dropout = nn.Dropout(HYPER_DROPOUT)
        between = method_config.generator_rank
        if rank is None:
            self.hyper = hypernetwork(size, size * size, between)
        else:
            self.hyper_left = hypernetwork(size, size * rank, between)
            self.hyper_right = hypernetwork(size, rank * size, between)

    def factors(self, conditions: Tensor) -> tuple[Tensor, ...]:
        """Compute the matrices whose product, from the right, projects a row vector.

        Args:
            conditions: h_c', (m, d).

        Returns:
            (W_c^T,) of shape (m, d, d), or for rank K the two factors (m, d, K) and (m, K, d): W_c2 and W_c1^T in the
            paper's notation.
        """
        size, rank, inputs = self.backbone.hidden_size, self.method_config.rank, self.dropout(conditions)
        shapes = [(size, size)] if rank is None else [(size, rank), (rank, size)]
        return tuple(
            layer(inputs.to(next(layer.parameters()).dtype)).view(-1, *shape).to(conditions.dtype)
            for layer, shape in zip(self.hypernetworks(), shapes, strict=True)
        )

    def hypernetworks(self) -> list[nn.Module]:
        """Return the layer that makes W_c, or the two that make its factors."""
        return [self.hyper] if self.method_config.rank is None else [self.hyper_left, self.hyper_right]

    def match_precision(self) -> HyperCL:
        """Keep the hypernetworks in the precision of the encoder: reading them is what making W_c costs."""
        super().match_precision()
        for layer in self.hypernetworks():
            layer.to(self.backbone.dtype)
        return self

    def embed_composed(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Compute W_c h_s; with rank K by way of K numbers, without forming W_c. See `SeparableEncoder.compose`."""
        factors = (factor if index is None else factor[index] for factor in self.factors(conditions))
        return reduce(torch.matmul, factors, sentences[:, None])[:, 0]

    def embed_by_condition(self, sentences: Tensor, conditions: Tensor, index: Tensor) -> Tensor:
        """Project one condition at a time: a copy of W_c for each row takes ten times as long."""
        factors, order = self.factors(conditions), index.argsort(stable=True)
        parts = sentences[order].split(index.bincount(minlength=len(conditions)).tolist())
        made = [reduce(torch.matmul, own, rows) for rows, *own in zip(parts, *factors, strict=True)]
        return torch.cat(made)[order.argsort()]

    @torch.no_grad()
    def projection(self, condition: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Return one product, with K columns instead of d where W_c has rank K. See `SeparableEncoder.projection`."""
        matrix, *rest = (factor[0] for factor in self.factors(condition))
        if rest:
            # The second factor keeps the length of a row vector x up to R^T = Q S: |x R| = |x S^T|.
            matrix = matrix @ torch.linalg.qr(rest[0].T).R.T
        weight = matrix.T.contiguous()
        return lambda units, _: project_rows(units, weight)

    @torch.no_grad()
    def embed_grid(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Project n sentences by m matrices, in the precision of the encoder. See `SeparableEncoder.embed_grid`."""
        device, dtype = self.backbone.device, self.backbone.dtype
        first, *rest = self.factors(conditions.to(device))
        columns = first.to(dtype).permute(1, 0, 2).reshape(first.shape[1], -1)  # one large product is faster than m
        grid = (sentences.to(device, dtype) @ columns).view(len(sentences), len(conditions), first.shape[-1])
        return reduce(torch.matmul, (factor.to(dtype) for factor in rest), grid.transpose(0, 1)).float().cpu()

    @torch.no_grad()
    def start_identity(self) -> None:
        """Start with W_c near the identity. See `ConditionalScorer.start_identity`.

        With rank K it is near a projection on K random directions, which roughly keeps cosines.
        """
        size, rank = self.backbone.hidden_size, self.method_config.rank
        last = [last_linear(layer) for layer in self.hypernetworks()]
        shrink(*last)
        if rank is None:
            last[0].bias.copy_(torch.eye(size).flatten())
            return
        basis = torch.linalg.qr(torch.randn(size, rank)).Q
        last[0].bias.copy_(basis.flatten())
        last[1].bias.copy_(basis.T.flatten())

    @torch.no_grad()
    def condition_matrix(self, condition: str) -> np.ndarray:
        """Compute W_c, (d, d) float32: the embedding is W_c times the sentence vector as a column."""
        encoded = self._encode_conditions([condition]).to(self.backbone.device)
        return reduce(torch.matmul, self.factors(encoded))[0].T.float().cpu().numpy()

    def _bytes_per_condition(self) -> int:
        size = self.backbone.hidden_size
        return 8 * size * (size if self.method_config.rank is None else 2 * self.method_config.rank)


def project_rows(rows: Tensor, weight: Tensor) -> Tensor:
    """Compute rows times W^T, (b, in) and (out, in) -> (b, out), without gradient.

    Torch gives float32 to MKL, which on AMD's processors leaves half of the vector unit idle; oneDNN does not. The
    operator is private to torch; where a version lacks it, this is an ordinary product.
    """
    usable = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if usable and rows.device.type == "cpu" and rows.dtype == weight.dtype == torch.float32 and len(rows):
        return torch.ops.mkldnn._linear_pointwise(rows, weight, None, "none", [], "")
    return rows @ weight.T
