"""From token states to one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from condviz.errors import ConfigError

if TYPE_CHECKING:  # the names of the poolings are needed where torch is not
    from torch import Tensor

    from condviz.encoder.tokens import Tokens

Pooling = Literal["cls", "mean", "first-last", "top-2", "last", "latent"]
"""How token states become one vector: first token; mean of the last layer; mean of the embedding layer and the last
layer; mean of the last two layers; last token; mean of what `condviz.encoder.latent` makes of the last layer. Means
leave out padding (C-STS official code, modeling_encoders.py)."""


def pool(states: Sequence[Tensor], tokens: Tokens, pooling: Pooling) -> Tensor:
    """Turn token states into one vector per row.

    Args:
        states: Hidden states (b, L, d); for "first-last" and "top-2" those of all layers, else the last is enough; for
            "latent" what the latent attention made of it.
        tokens: The batch, for its masks.
        pooling: See `Pooling`.

    Returns:
        (b, d), float32 or better.
    """
    import torch

    if pooling not in get_args(Pooling):
        raise ConfigError(f"pooling must be one of {', '.join(get_args(Pooling))}, got {pooling!r}.")
    last = states[-1].to(torch.promote_types(states[-1].dtype, torch.float32))
    if pooling == "cls":
        return last[:, 0]
    if pooling == "last":
        return last[torch.arange(len(tokens), device=last.device), tokens.mask.sum(dim=1) - 1]
    if pooling == "first-last":
        last = (states[0].to(last.dtype) + last) / 2
    elif pooling == "top-2":
        last = (states[-2].to(last.dtype) + last) / 2
    keep = tokens.mask if tokens.pooled is None else tokens.pooled & tokens.mask
    weight = keep.to(last.dtype)
    return (last * weight[..., None]).sum(dim=1) / weight.sum(dim=1, keepdim=True).clamp_min(1)
