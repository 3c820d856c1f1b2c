"""Products by oneDNN where torch would go another way: linear layers in bfloat16, tall matrices in float32.

`nn.Linear` passes plain weights, which oneDNN reorders in every call: much of the time where there are few tokens. The
operators are private to torch; its own compiler puts them in the place of linear layers. Where a version lacks them,
`can_pack` returns False and the layers stay as they are, and `project_rows` is an ordinary product.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

_packed: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""Weight -> (its version, the weight in the other layout); an entry goes with its weight."""


class PackedLinear(nn.Linear):
    """A linear layer with the same parameters that is faster without gradients; with them, an ordinary one."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute inputs times W^T plus the bias: (..., in) -> (..., out)."""
        if not self._fits(inputs):
            return super().forward(inputs)
        return torch.ops.mkldnn._linear_pointwise(inputs, packed(self.weight), self.bias, "none", [], "")

    def with_gelu(self, inputs: Tensor) -> Tensor:
        """Compute the exact GELU of `forward`, in one pass over memory: (..., in) -> (..., out)."""
        if not self._fits(inputs):
            return nn.functional.gelu(super().forward(inputs))
        return torch.ops.mkldnn._linear_pointwise(inputs, packed(self.weight), self.bias, "gelu", [], "none")

    def _fits(self, inputs: Tensor) -> bool:
        weight = self.weight
        usable = weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and not torch.is_grad_enabled()
        return usable and inputs.dtype == weight.dtype and inputs.numel() > 0


def pack_linear_layers(model: nn.Module) -> None:
    """Turn the linear layers of a model into packed ones; parameters and their names stay as they are."""
    if can_pack():
        for module in model.modules():
            if type(module) is nn.Linear:
                module.__class__ = PackedLinear


def can_pack() -> bool:
    """Return whether oneDNN lays out bfloat16 weights on this CPU; it refuses where it cannot multiply them."""
    return _has_operator() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def project_rows(rows: Tensor, weight: Tensor) -> Tensor:
    """Compute rows times W^T, (b, in) and (out, in) -> (b, out), without gradient.

    Torch gives float32 to MKL, which on AMD's processors leaves half of the vector unit idle; oneDNN does not.
    """
    if rows.device.type == "cpu" and rows.dtype == weight.dtype == torch.float32 and len(rows) and _has_operator():
        return torch.ops.mkldnn._linear_pointwise(rows, weight, None, "none", [], "")
    return rows @ weight.T


@cache
@torch.no_grad()
def rows_stand_alone(dtype: torch.dtype) -> bool:
    """Return whether this CPU multiplies a row of a matrix to the same bits, on one core or all, whatever is beside it.

    Libraries are free to sum up in another order for another number of rows; oneDNN does not where it was tried.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer, inputs = nn.Linear(384, 1536).to(dtype), torch.randn(1024, 384).to(dtype)
    if can_pack() and dtype == torch.bfloat16:
        layer.__class__ = PackedLinear
    whole, cores = layer(inputs), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return all(torch.equal(layer(inputs[:rows]), whole[:rows]) for rows in (8, 24, 40, 136, 520))
    finally:
        torch.set_num_threads(cores)


def _has_operator() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def packed(weight: Tensor) -> Tensor:
    """Return a weight in the layout of oneDNN, computed once for each state of the weight."""
    known = _packed.get(weight)
    if known is None or known[0] != weight._version:
        known = _packed[weight] = weight._version, torch.ops.mkldnn._reorder_linear_weight(weight.detach())
    return known[1]
