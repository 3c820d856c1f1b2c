"""Workers that encode for all visitors of a server: their texts share batches, and nobody waits for a large job.

Texts that wait for the same encoder go through it together, sorted by length; equal ones once. On CPUs each batch has a
core of its own: on several, every operation on a small batch waits for the slowest of them. Small requests have one
worker for each core; large ones have another, a batch at a time, in threads that step back wherever small ones want the
processor. Among equals, who was served longest ago is next. Without a visitor (notebook, command line, training) texts
are encoded at once in the caller's own thread.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cachetools import LRUCache

from condviz.errors import DataError

LARGE = 4
"""A request of more than so many full batches is large; a turn for small ones takes at most so many for each core."""
FREE_TOKENS, TOKEN_STEP = 256, 64
"""A batch of more tokens than the first has a multiple of the second where its texts are padded to one length: oneDNN
keeps 2 MB of kernels for each number of tokens that it has seen."""
NICENESS = 5
"""Added to that of threads which step back: where others want the same core, they get a quarter of its time. With 10 it
is a tenth: beside other busy programs, a map would hardly get on."""
LOOK_SECONDS = 0.2
"""How often someone who waits is asked whether the answer is still wanted."""
VISITORS_KNOWN = 1000

Value = Any
"""A tensor; this file does not read it."""


@dataclass
class Visitor:
    """Who asks for encodings.

    Attributes:
        name: Visitors of one name share their turns.
        check: Raises once the answer is no longer wanted; called by the thread that waits for it.
        max_tokens: Tokens that may be encoded for one piece of work; what the cache knows is free.
        patient: All its requests count as large: those of others come first.
        tokens: Those encoded so far.
    """

    name: str
    check: Callable[[], None] = lambda: None
    max_tokens: int = 2**62
    patient: bool = False
    tokens: int = 0

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


@dataclass(eq=False)
class Request:
    """Texts to be encoded in the same way.

    Attributes:
        key: Decides the result, with the text; requests of one key share batches.
        rows: Text -> its token ids, only asked for their length here.
        embed: Turns a batch of rows into one value each.
        recall: Returns the values that some texts have by now, None for others.
        keep: Told the values of a batch.
        lock: Held while a batch is encoded in the caller's own thread.
        max_tokens: Of one batch, with padding.
        batch_size: Texts of one batch, whatever their length; None goes by tokens.
        multiple: Only texts whose lengths, rounded up to a multiple of this, are equal share a batch, so that nobody is
            padded further than alone; 0 for all that are of similar length.
        visitor: Who asks.
        cores: So many batches are computed at once, each on one core; 1 for one after the other, each on all cores.
        values: What is done.
        arrived: Number of the turn at which it came.
        error: Why it failed.
    """

    key: Hashable
    rows: dict[Hashable, Sized]
    embed: Callable[[list], Sequence[Value]]
    recall: Callable[[list], Sequence[Value | None]]
    keep: Callable[[list, Sequence[Value]], None]
    lock: AbstractContextManager
    max_tokens: int
    batch_size: int | None = None
    multiple: int = 0
    visitor: Visitor | None = None
    cores: int = 1
    values: dict[Hashable, Value] = field(default_factory=dict)
    arrived: int = 0
    error: Exception | None = None

    def __post_init__(self) -> None:
        self._news = threading.Event()
        self.batches = self.batches_of(self.rows)
        self.tokens = sum(map(len, self.rows.values()))
        self.large = self.tokens > LARGE * self.max_tokens
        if self.visitor is not None:
            self.visitor.charge(self.tokens)
            self.large |= self.visitor.patient

    def batches_of(self, rows: Mapping[Hashable, Sized], *, spread: bool = True) -> Iterator[dict[Hashable, Sized]]:
        """Yield batches of texts of its key by `batches_by_length`; with `spread`, at least one a core."""
        share = -(-sum(map(len, rows.values())) // self.cores) if spread and self.cores > 1 else self.max_tokens
        return _batches(rows, min(self.max_tokens, share), self.batch_size, self.multiple)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.error is not None or len(self.values) == len(self.rows)

    def deliver(self, found: dict[Hashable, Value]) -> None:
        """Take over the values of its texts."""
        self.values.update((item, value) for item, value in found.items() if item in self.rows)
        self._news.set()

    def fail(self, error: Exception) -> None:
        """Give up."""
        self.error = error
        self._news.set()

    def wait(self) -> None:
        """Wait for news, or a short while."""
        self._news.wait(LOOK_SECONDS)
        self._news.clear()


def _batches(
    rows: Mapping[Hashable, Sized], max_tokens: int, batch_size: int | None, multiple: int
) -> Iterator[dict[Hashable, Sized]]:
    # No method: a request and its batches would keep each other, and all vectors, until Python looks for such pairs.
    from condviz.encoder.tokens import batches_by_length, shape_of  # imports torch

    groups: dict[tuple[int, ...], list[Hashable]] = {}
    for item, row in rows.items():
        groups.setdefault(shape_of(row, multiple) if multiple else (), []).append(item)
    for shape, items in sorted(groups.items(), reverse=True):
        lengths = [len(rows[item]) for item in items]
        for batch in batches_by_length(lengths, max_tokens, batch_size):
            cut = len(batch) if batch_size else _even(len(batch), shape)
            for part in filter(None, (batch[:cut], batch[cut:])):
                yield {items[i]: rows[items[i]] for i in part}


def _even(count: int, shape: tuple[int, ...]) -> int:
    """Return how many of so many texts of one shape come first, so that batches have few different numbers of tokens.

    All of them where there are few tokens, and where the texts are padded to no common shape.
    """
    if not shape or count * max(shape) <= FREE_TOKENS:
        return count
    return count - count % (TOKEN_STEP // math.gcd(TOKEN_STEP, *shape))


def encode_here(request: Request) -> Iterator[int]:
    """Encode in this thread; yield how many texts are done after each batch."""
    while not request.done:
        with request.lock:
            encode([request], limit=1)
        yield len(request.values)


def encode(requests: Sequence[Request], *, limit: int | None = None, spread: bool = True) -> None:
    """Encode what requests of one key still lack, each different text once.

    Args:
        requests: At least one.
        limit: Batches of the first request, those of its longest texts; None for all batches of all requests.
        spread: All cores share the work, however little it is; else batches are as large as may be, and take less time
            in sum.
    """
    first = requests[0]
    if limit is None:
        rows = {item: row for request in requests for item, row in request.rows.items()}
        batches = first.batches_of(rows, spread=spread)
    else:
        batches = itertools.islice(first.batches, limit)

    def run(batch: dict[Hashable, Sized]) -> None:
        # While they waited, others may have had the same texts encoded.
        found = dict(zip(batch, first.recall(list(batch)), strict=True))
        missing = [item for item, value in found.items() if value is None]
        if missing:
            values = first.embed([batch[item] for item in missing])
            first.keep(missing, values)
            found |= zip(missing, values, strict=True)
        for request in requests:
            request.deliver(found)

    if first.cores == 1:
        for batch in batches:
            run(batch)
    else:
        started = [crew(first.cores, back=first.large).submit(run, batch) for batch in batches]
        wait(started)
        for batch in started:
            batch.result()


def step_back() -> None:
    """Have the calling thread, and those that it starts, compute where others leave the processor free.

    Only Linux sets the niceness of a thread; elsewhere the processor is shared evenly.
    """
    if sys.platform == "linux":
        os.nice(NICENESS)


@cache
def crew(cores: int, *, back: bool) -> ThreadPoolExecutor:
    """Return so many threads that compute on one core each; with `back` they step back, see `step_back`."""
    import torch

    def start() -> None:
        torch.set_num_threads(1)
        if back:
            step_back()

    before, together = torch.get_num_threads(), threading.Barrier(cores)
    pool = ThreadPoolExecutor(cores, "condviz-core", start)
    wait([pool.submit(together.wait) for _ in range(cores)])  # until all have started
    torch.set_num_threads(before)  # for threads to come, which would else take over what was set last
    return pool


class Lane:
    """Workers, and those who wait for them. Their threads start with the first request, one for each of its cores.

    Requests of one key are encoded by one worker at a time: those that come meanwhile share the next turn.

    Args:
        large: Its requests are large: one worker encodes a batch on each core at a time, and steps back.
    """

    def __init__(self, *, large: bool = False) -> None:
        self.large = large
        self._changed = threading.Condition()
        self._waiting: list[Request] = []
        self._served: LRUCache[str, int] = LRUCache(VISITORS_KNOWN)
        self._turn = 0
        self._threads: list[threading.Thread] = []
        self._busy: set[Hashable] = set()

    def encode(self, request: Request) -> Iterator[int]:
        """Have a request encoded; yield now and then how many of its texts are done.

        Raises:
            Exception: What the encoder raised, or `visitor.check`; the rest of the request is then dropped.
        """
        with self._changed:
            request.arrived = self._turn
            self._waiting.append(request)
            for _ in range(len(self._threads), 1 if self.large else request.cores):
                self._threads.append(threading.Thread(target=self._work, name="condviz-encoder", daemon=True))
                self._threads[-1].start()
            self._changed.notify()
        try:
            while not request.done:
                request.wait()
                request.visitor.check()
                yield len(request.values)
        finally:
            with self._changed:
                if request in self._waiting:
                    self._waiting.remove(request)
        if request.error is not None:
            raise request.error

    def choose(self) -> list[Request]:
        """Return the requests of the next turn, all of one key that nobody is at; they stay in the queue."""
        self._turn += 1
        lead, *mates = sorted(self._free(), key=self._rank)
        chosen, room = [lead], LARGE * lead.max_tokens * lead.cores - lead.tokens
        for mate in mates:
            if mate.key == lead.key and mate.batch_size == lead.batch_size and mate.tokens <= room and not self.large:
                chosen.append(mate)
                room -= mate.tokens
        for request in chosen:
            self._served[request.visitor.name] = self._turn
        return chosen

    def _free(self) -> list[Request]:
        return [request for request in self._waiting if request.key not in self._busy]

    def _rank(self, request: Request) -> int:
        return max(request.arrived, self._served.get(request.visitor.name, 0))

    def _work(self) -> None:
        if self.large:
            step_back()
        while True:
            with self._changed:
                self._changed.wait_for(self._free)
                chosen = self.choose()
                alone = not self._busy and len(chosen) == len(self._waiting)
                self._busy.add(chosen[0].key)
            self._run(chosen, spread=self.large or alone)
            with self._changed:
                self._busy.remove(chosen[0].key)
                self._waiting = [request for request in self._waiting if not request.done]
                self._changed.notify_all()

    def _run(self, requests: Sequence[Request], *, spread: bool = True) -> None:
        try:
            encode(requests, limit=requests[0].cores if self.large else None, spread=spread)
        except Exception as error:
            if len(requests) == 1:
                requests[0].fail(error)
            else:  # whoever it is, the others get their answer
                for request in requests:
                    self._run([request], spread=spread)


class Gathering:
    """Both lanes."""

    def __init__(self) -> None:
        self.small, self.large = Lane(), Lane(large=True)

    def encode(self, request: Request) -> Iterator[int]:
        """Have a request encoded; see `Lane.encode`."""
        return (self.large if request.large else self.small).encode(request)


GATHERING = Gathering()


def _after_fork() -> None:
    global GATHERING
    GATHERING = Gathering()
    crew.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
