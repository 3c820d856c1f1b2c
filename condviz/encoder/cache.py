"""A memory for embeddings, shared by every model whose encoder is the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

from torch import Tensor

ENTRY_OVERHEAD_BYTES = 48
"""Bytes of bookkeeping counted per tensor, as in the cache tables of Hyper-CL (Tables 3 and 4)."""

DEFAULT_MAX_BYTES = 128 * 2**20


@dataclass(frozen=True)
class CacheStats:
    """What the cache has done so far.

    Attributes:
        hits, misses: Look-ups answered from memory and not.
        entries: Tensors held.
        bytes, max_bytes: Size now and limit.
    """

    hits: int
    misses: int
    entries: int
    bytes: int
    max_bytes: int

    @property
    def hit_rate(self) -> float:
        """Share of look-ups answered from memory, in [0, 1]; 0 before the first look-up."""
        return self.hits / max(1, self.hits + self.misses)


class EmbeddingCache:
    """Least-recently-used store of tensors with a limit in bytes; safe to use from several threads.

    Keys are (fingerprint of the weights, role, text or texts): without the role, mean and
    first-token vectors of a text would answer for each other, without the fingerprint those of two models would.

    Args:
        max_bytes: Limit; 0 stores nothing.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, Tensor] = OrderedDict()
        self._lock = Lock()
        self._bytes = self._hits = self._misses = 0

    def get_many(self, keys: Sequence[Hashable]) -> list[Tensor | None]:
        """Give the stored tensor of each key, or None where there is none."""
        with self._lock:
            found = [self._entries.get(key) for key in keys]
            for key, value in zip(keys, found, strict=True):
                if value is not None:
                    self._entries.move_to_end(key)
            hits = sum(value is not None for value in found)
            self._hits += hits
            self._misses += len(found) - hits
            return found

    def put_many(self, items: Iterable[tuple[Hashable, Tensor]]) -> None:
        """Store tensors; the entries used longest ago leave when the limit is passed."""
        with self._lock:
            for key, value in items:
                size = _size(value)
                if size > self.max_bytes:
                    continue
                old = self._entries.pop(key, None)
                self._bytes += size - (_size(old) if old is not None else 0)
                self._entries[key] = value
            while self._bytes > self.max_bytes:
                self._bytes -= _size(self._entries.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget every entry and set the counts to zero."""
        with self._lock:
            self._entries.clear()
            self._bytes = self._hits = self._misses = 0

    def stats(self) -> CacheStats:
        """Read hits, misses, entries and bytes."""
        with self._lock:
            return CacheStats(self._hits, self._misses, len(self._entries), self._bytes, self.max_bytes)


def _size(value: Tensor) -> int:
    return value.numel() * value.element_size() + ENTRY_OVERHEAD_BYTES
