"""How much a visitor may ask for, how many may wait, and what is kept: less on a Space, where strangers share it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import gradio as gr
from cachetools import LRUCache, TTLCache
from gradio.blocks import BlocksConfig
from gradio.queueing import Queue

_SHARED = bool(os.environ.get("SPACE_ID"))
MAP_POINTS = 2_000 if _SHARED else 5_000
TABLE_ROWS = 2_000 if _SHARED else 5_000
"""Rows of a table whose pairs are scored."""
ERROR_ROWS = 5_000 if _SHARED else 20_000
TOKENS = 1_000_000 if _SHARED else 10_000_000
"""Tokens that one request may have encoded."""
MAX_BODY_BYTES = 8_000_000
"""Of a request. An upload of 5 MB with its frame fits; nothing else that the page sends comes near."""

AT_ONCE = 64
"""Events that run a model at the same time; their texts share batches, so that many cost little more than one."""
QUEUE = 200
"""Events that wait to start."""
PER_VISITOR, PER_ADDRESS = 16, 100
"""Events of one page or client, and of one address (a class may have one in common), that wait or run."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Newest(LRUCache[Key, Value]):
    """The values that were used last; any thread may read and write, which breaks a plain LRUCache."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._lock = threading.RLock()

    def __getitem__(self, key: Key) -> Value:
        with self._lock:
            return super().__getitem__(key)

    def __setitem__(self, key: Key, value: Value) -> None:
        with self._lock:
            super().__setitem__(key, value)

    def get(self, key: Key, default: Any = None) -> Any:  # noqa: ANN401 - a value, or the default
        with self._lock:
            return super().get(key, default)


class Counts:
    """What was counted of each key in this window of so many seconds; for one thread at a time."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._counts: TTLCache[tuple[str, int], int] = TTLCache(10_000, seconds, clock)

    def __getitem__(self, key: str) -> int:
        return self._counts.get((key, self._window()), 0)

    def __setitem__(self, key: str, count: int) -> None:
        self._counts[key, self._window()] = count

    def _window(self) -> int:
        # Windows follow each other: a count that lasted from its last change would never end where much happens.
        return int(self._clock() // self._seconds)


class _Config(BlocksConfig):
    """The components of a page, of which a session gets its own without another description of each."""

    def __copy__(self) -> BlocksConfig:
        session = super().__copy__()
        setattr(session, "config_for_block", lambda *_: {})  # noqa: B010 - of this one alone
        return session


def keep_sessions_small(page: gr.Blocks) -> None:
    """Spare each session what gradio keeps for its deep links, which this page does not have.

    It describes every component anew: 55 ms during which nobody is answered, and 0.85 MB for each of the last thousand
    sessions.
    """
    page.default_config.__class__ = _Config


def tune_queue(queue: Queue) -> None:
    """Run several events of a kind at once, without Gradio's idle polling.

    It looks for work a thousand times a second, and counts all past events. `Blocks.queue` would make the server anew,
    a fifth of a second of the start, to set the first number.
    """
    queue.default_concurrency_limit = 8
    queue.sleep_when_free = queue.progress_update_sleep_when_free = 0.01
    queue.ANAYLTICS_CACHE_FREQUENCY = 10**9


def crowded(queue: Queue, session: str | None, address: str | None) -> str:
    """Return why an event of a session and address has to come again later, "" where it may join the queue.

    Asked before gradio is: its page shows words of its own for what its queue refuses.
    """
    events = list(queue.event_ids_to_events.values())
    mine = sum(event.session_hash == session for event in events)
    near = sum((event.request.client and event.request.client.host) == address for event in events)
    counts = (
        ("You have", mine, PER_VISITOR, "waiting or running"),
        ("Your address has", near, PER_ADDRESS, "waiting or running"),
        ("All visitors together have", len(queue), QUEUE, "waiting"),
    )
    for whose, found, allowed, state in counts:
        if found >= allowed:
            times, now = queue.process_time_per_fn, time.monotonic()
            usual = [times[event.fn].avg_time for event in events if event.fn in times]
            # Of what has never ended here, only how long it has been going on is known.
            seconds = max(1, round(max([*usual, *(now - event.enqueue_time for event in events)], default=1)))
            return (
                f"{whose} {found} requests here {state}; at most {allowed} are allowed. Wait for an answer, about "
                f"{seconds} s, and ask again."
            )
    return ""
