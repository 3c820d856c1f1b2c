"""The byte-limited store: what it keeps, what it forgets, what it counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from hypothesis import given
from hypothesis import strategies as st

from condviz.encoder.cache import EmbeddingCache, size_of

VALUE = torch.zeros(10)
ENTRY = size_of("a", VALUE)


def test_counts_hits_misses_and_bytes() -> None:
    cache = EmbeddingCache()
    assert cache.get_many(["a", "b"]) == [None, None]
    cache.put_many([("a", VALUE), ("b", VALUE.half())])
    assert cache.get_many(["a", "c"])[0] is VALUE
    assert (cache.hits, cache.misses, cache.entries, cache.bytes) == (1, 3, 2, 2 * ENTRY - 20)
    cache.clear()
    assert (cache.bytes, cache.entries, cache.hits) == (0, 0, 0)


def test_the_entry_used_longest_ago_leaves_first() -> None:
    cache = EmbeddingCache(max_bytes=2 * ENTRY)
    cache.put_many([("a", VALUE), ("b", VALUE)])
    cache.get_many(["a"])
    cache.put_many([("c", VALUE)])
    assert [value is None for value in cache.get_many(["a", "b", "c"])] == [False, True, False]


def test_writing_again_replaces_and_counts_once() -> None:
    cache = EmbeddingCache()
    cache.put_many([("a", VALUE), ("a", torch.ones(5))])
    assert cache.bytes == ENTRY - 20
    assert cache.get_many(["a"])[0].sum() == 5


def test_long_texts_count_as_much_as_they_take() -> None:
    cache = EmbeddingCache(max_bytes=100_000)
    cache.put_many((("weights", "mean", f"{i}" + "long " * 1000), VALUE) for i in range(100))
    assert cache.entries < 20
    assert cache.bytes <= 100_000


def test_too_large_entries_and_a_limit_of_zero_store_nothing() -> None:
    cache = EmbeddingCache(max_bytes=ENTRY)
    cache.put_many([("a", VALUE), ("large", torch.zeros(1000))])
    assert cache.entries == 1
    none = EmbeddingCache(max_bytes=0)
    none.put_many([("a", VALUE)])
    assert none.entries == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60), st.integers(0, 600))
def test_bytes_are_those_of_the_entries_and_within_the_limit(items: list[tuple[int, int]], limit: int) -> None:
    cache = EmbeddingCache(max_bytes=limit)
    for key, size in items:
        cache.put_many([(key, torch.zeros(size))])
    held = [(key, value) for key, value in enumerate(cache.get_many(list(range(10)))) if value is not None]
    assert cache.bytes == sum(size_of(key, value) for key, value in held) <= limit
    assert cache.entries == len(held)


def test_threads_do_not_lose_count() -> None:
    cache = EmbeddingCache(max_bytes=20 * ENTRY)

    def work(number: int) -> None:
        for step in range(200):
            key = (number * step) % 50
            if cache.get_many([key])[0] is None:
                cache.put_many([(key, VALUE)])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert cache.hits + cache.misses == 1600
    assert cache.bytes == cache.entries * size_of(0, VALUE) <= 20 * ENTRY
