"""A memory for embeddings, shared by every model whose encoder is the same, and what identifies weights in its keys."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from sys import getsizeof
from threading import Lock

import torch
from cachetools import LRUCache
from torch import Tensor

ENTRY_OVERHEAD_BYTES = 700
"""Memory that an entry takes beside its numbers and texts: objects of Python and torch, measured."""


class EmbeddingCache:
    """Least-recently-used store of tensors with a limit in bytes; safe to use from several threads.

    Keys are (fingerprint of the weights, role, text or texts): without the role, mean and first-token vectors of a text
    would answer for each other, without the fingerprint those of two models would.

    `hits` and `misses` count look-ups that were answered from memory and not. A limit of 0 stores nothing.
    """

    def __init__(self, max_bytes: int = 128 * 2**20) -> None:
        self.max_bytes = max_bytes
        self._entries: LRUCache[Hashable, tuple[Tensor, int]] = LRUCache(max_bytes, getsizeof=lambda entry: entry[1])
        self._lock = Lock()
        self.hits = self.misses = 0

    def __reduce__(self) -> tuple[type[EmbeddingCache], tuple[int]]:
        """Copy and pickle it as an empty one: what it holds can be computed again."""
        return EmbeddingCache, (self.max_bytes,)

    def get_many(self, keys: Sequence[Hashable], *, count: bool = True) -> list[Tensor | None]:
        """Return the stored tensor of each key, or None; `count` is False for a second look at the same keys."""
        with self._lock:
            found = [self._entries.get(key, (None, 0))[0] for key in keys]
            hits = sum(value is not None for value in found)
            self.hits += hits * count
            self.misses += (len(found) - hits) * count
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
            self.hits = self.misses = 0

    @property
    def entries(self) -> int:
        """Tensors held."""
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """Size now, keys included."""
        return int(self._entries.currsize)


def size_of(key: Hashable, value: Tensor) -> int:
    """Count the bytes of an entry: the tensor, and the texts of its key, which may be larger."""
    texts = key if isinstance(key, tuple) else (key,)
    letters = sum(getsizeof(text) for text in texts if isinstance(text, str))
    return value.numel() * value.element_size() + letters + ENTRY_OVERHEAD_BYTES


def hash_tensors(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """Return the SHA-256 of names, shapes and values."""
    digest = hashlib.sha256()
    for name, value in sorted(tensors, key=lambda item: item[0]):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
