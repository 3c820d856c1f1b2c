"""A memory for embeddings, shared by every model whose encoder is the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from sys import getsizeof
from threading import Lock

from cachetools import LRUCache
from torch import Tensor

ENTRY_OVERHEAD_BYTES = 700
"""Memory that an entry takes beside its numbers and texts: objects of Python and torch, measured."""

DEFAULT_MAX_BYTES = 128 * 2**20


@dataclass(frozen=True)
class CacheStats:
    """What the cache has done so far."""

    hits: int
    misses: int
    """Look-ups answered from memory and not."""
    entries: int
    """Tensors held."""
    bytes: int
    max_bytes: int
    """Size now, keys included, and limit."""

    @property
    def hit_rate(self) -> float:
        """Share of look-ups answered from memory, in [0, 1]; 0 before the first look-up."""
        return self.hits / max(1, self.hits + self.misses)


class EmbeddingCache:
    """Least-recently-used store of tensors with a limit in bytes; safe to use from several threads.

    Keys are (fingerprint of the weights, role, text or texts): without the role, mean and first-token vectors of a text
    would answer for each other, without the fingerprint those of two models would.

    Args:
        max_bytes: Limit; 0 stores nothing.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._entries: LRUCache[Hashable, tuple[Tensor, int]] = LRUCache(max_bytes, getsizeof=lambda entry: entry[1])
        self._lock = Lock()
        self._hits = self._misses = 0

    def __reduce__(self) -> tuple[type[EmbeddingCache], tuple[int]]:
        """Copy and pickle it as an empty one: what it holds can be computed again."""
        return EmbeddingCache, (self.max_bytes,)

    @property
    def max_bytes(self) -> int:
        """The limit."""
        return int(self._entries.maxsize)

    def get_many(self, keys: Sequence[Hashable], *, count: bool = True) -> list[Tensor | None]:
        """Return the stored tensor of each key, or None; `count` is False for a second look at the same keys."""
        with self._lock:
            found = [self._entries.get(key, (None, 0))[0] for key in keys]
            hits = sum(value is not None for value in found)
            self._hits += hits * count
            self._misses += (len(found) - hits) * count
            return found

    def put_many(self, items: Iterable[tuple[Hashable, Tensor]]) -> None:
        """Store tensors; the entries used longest ago leave when the limit is passed."""
        with self._lock:
            for key, value in items:
                size = size_of(key, value)
                if size <= self.max_bytes:
                    self._entries[key] = value, size

    def clear(self) -> None:
        """Forget every entry and set the counts to zero."""
        with self._lock:
            self._entries.clear()
            self._hits = self._misses = 0

    def stats(self) -> CacheStats:
        """Read hits, misses, entries and bytes."""
        with self._lock:
            used = int(self._entries.currsize)
            return CacheStats(self._hits, self._misses, len(self._entries), used, self.max_bytes)


def size_of(key: Hashable, value: Tensor) -> int:
    """Count the bytes of an entry: the tensor, and the texts of its key, which may be larger."""
    texts = key if isinstance(key, tuple) else (key,)
    letters = sum(getsizeof(text) for text in texts if isinstance(text, str))
    return value.numel() * value.element_size() + letters + ENTRY_OVERHEAD_BYTES
