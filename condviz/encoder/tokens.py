"""Token ids of texts, unpadded records and padded batches of them, and how the states of tokens become one vector."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import get_args

import torch
from torch import Tensor

from condviz.encoder import Pooling
from condviz.errors import ConfigError, TruncationWarning

Item = tuple[str, ...]
"""One text, or two texts that share a sequence."""


@dataclass(frozen=True)
class Encoded:
    """The token ids of one text, or of two texts in one sequence, without padding."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    """Segment of each token: 0 for the first text, 1 for the second."""
    pooled: tuple[bool, ...] | None = None
    """Positions that the pooler may use, or None for all of them."""
    truncated: bool = False
    """True if the text was longer than the encoder can read and lost its end."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Tokens:
    """A right-padded batch."""

    ids: Tensor
    """(b, L) int64."""
    mask: Tensor
    """(b, L) bool, True for real tokens."""
    types: Tensor | None = None
    """(b, L) int64 segments, or None for all 0."""
    positions: Tensor | None = None
    """(b, L) int64 counted from 0, or None for 0, 1, 2, ..."""
    pooled: Tensor | None = None
    """(b, L) bool: tokens that the pooler may use, or None for all real tokens."""

    def __len__(self) -> int:
        return self.ids.shape[0]

    def to(self, device: torch.device | str) -> Tokens:
        """Move every array to a device."""
        fields = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **fields)

    def counted_positions(self) -> Tensor:
        """Return the positions, counted from 0 over the real tokens of each row: (b, L) int64."""
        if self.positions is not None:
            return self.positions
        return (self.mask.long().cumsum(dim=1) - 1).clamp_min(0)


def collate(rows: Sequence[Encoded], pad_id: int, *, multiple: int = 1) -> Tokens:
    """Pad records to one length.

    Args:
        rows: b records.
        pad_id: Id written after the end of the shorter rows.
        multiple: The common length is rounded up to a multiple of this.
    """
    length = -(-max(map(len, rows)) // multiple) * multiple

    def pad(values: Sequence[Sequence[int]], fill: int) -> Tensor:
        return torch.tensor([(*row, *([fill] * (length - len(row)))) for row in values])

    types = pooled = None
    if any(any(row.types) for row in rows):
        types = pad([row.types for row in rows], 0)
    if any(row.pooled is not None for row in rows):
        pooled = pad([row.pooled or [True] * len(row) for row in rows], False)
    return Tokens(pad([row.ids for row in rows], pad_id), mask_rows(rows, length), types=types, pooled=pooled)


def mask_rows(rows: Sequence[Sized], length: int) -> Tensor:
    """Mark what is no padding in b rows of any lengths: (b, length) bool."""
    return torch.arange(length) < torch.tensor([len(row) for row in rows])[:, None]


def batches_by_length(lengths: Sequence[int], max_tokens: int, batch_size: int | None = None) -> Iterator[list[int]]:
    """Group positions so that each batch holds texts of similar length and at most `max_tokens` tokens with padding.

    Args:
        lengths: Tokens of each text.
        max_tokens: Limit of a batch; a single longer text is a batch of its own.
        batch_size: Texts of each batch, whatever their length; None goes by `max_tokens`.

    Yields:
        Positions in `lengths`, longest texts first, each exactly once.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = batch_size or max(1, max_tokens // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


class Joined(tuple[Encoded, ...]):
    """The sequences of one item that a method encodes together, for instance a sentence and its condition."""

    __slots__ = ()

    def __len__(self) -> int:
        """Return the tokens of all sequences: what batches are sorted by."""
        return sum(map(len, self))

    @property
    def truncated(self) -> bool:
        """True if any of the sequences lost its end."""
        return any(part.truncated for part in self)


def warn_truncated(items: Sequence[Item], rows: Sequence[object], max_length: int) -> None:
    """Warn of texts whose record says that they lost their end."""
    cut = [item for item, row in zip(items, rows, strict=True) if getattr(row, "truncated", False)]
    if cut:
        first = " | ".join(cut[0])
        message = (
            f"{len(cut)} of {len(items)} texts are longer than {max_length} tokens and lose their end; "
            f"the first is {first[:40]!r}..."
        )
        warnings.warn(TruncationWarning(message), stacklevel=4)


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
