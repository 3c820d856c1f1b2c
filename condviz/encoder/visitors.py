"""Those for whom a server encodes: who asks, how much they may, and how the processor is shared among them.

Each request is encoded in the thread that asks, batch by batch. Who is alone has all cores; as soon as several compute,
each has a share of them: on several cores every operation on a small batch waits for the slowest. The system does the
rest, and large work steps back. Without a visitor (notebook, command line, training) one thread encodes at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock

from condviz.errors import DataError


@dataclass
class Visitor:
    """Who asks for encodings."""

    name: str
    """Who it is, for the queue of large work."""
    check: Callable[[], None] = lambda: None
    """Raises once the answer is no longer wanted; called before each batch."""
    max_tokens: int = 2**62
    """Tokens that may be encoded for one piece of work; what the cache knows is free."""
    tokens: int = 0
    """Those encoded so far."""

    def charge(self, tokens: int) -> None:
        """Count tokens; raises DataError if there are too many."""
        self.tokens += tokens
        if self.tokens > self.max_tokens:
            raise DataError(
                f"This asks for at least {self.tokens:,} tokens to be encoded, and at most {self.max_tokens:,} are "
                "allowed in one request here. Ask for less at once, or run CondViz on your own machine."
            )


VISITOR: ContextVar[Visitor | None] = ContextVar("visitor", default=None)
"""For whom this thread works; None outside of a server."""
_computing = 0
_lock = Lock()


@contextmanager
def share_cores(cores: int) -> Iterator[None]:
    """Compute on an equal share of the cores; torch and ONNX Runtime keep to the number of its thread."""
    import torch

    global _computing
    with _lock:
        _computing += 1
        torch.set_num_threads(max(1, cores // _computing))
    try:
        yield
    finally:
        with _lock:
            _computing -= 1
            torch.set_num_threads(cores)  # threads to come take over what was set last


def _after_fork() -> None:
    global _computing, _lock
    _computing, _lock = 0, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
