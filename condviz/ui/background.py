"""Work in threads: with progress and a stop for handlers that yield; once, ahead of the first visitor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Result = TypeVar("Result")
TICK_SECONDS = 0.25
"""How long a handler waits in one go. A handler can be cancelled only where it yields, and the page takes no further
press of the same button before that, so it yields after each wait, news or not."""


class Stopped(Exception):
    """Raised inside the work when nobody waits for it any more."""


class Background(Generic[Result]):
    """One piece of work.

        work = Background(lambda progress: encode(texts, progress=progress))
        for done, total in work.steps():
            yield ...
        vectors = work.result()

    A handler that is cancelled leaves `steps`, and the work ends at its next call of `progress`.
    """

    def __init__(self, function: Callable[[Callable[[int, int], None]], Result]) -> None:
        """Start the work.

        Args:
            function: Takes a callback (done, total).
        """
        self._function = function
        self._now = (0, 0)
        self._stop = threading.Event()
        self._outcome: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="condviz-work", daemon=True)
        self._thread.start()

    def steps(self) -> Iterator[tuple[int, int]]:
        """Yield (done, total) again and again until the work has ended; (0, 0) while nothing is known."""
        try:
            while self._thread.is_alive():
                self._thread.join(TICK_SECONDS)
                if self._thread.is_alive():
                    yield self._now
        finally:
            self._stop.set()

    def result(self) -> Result:
        """Give what the work returned, or raise what it raised; waits for the end."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def _run(self) -> None:
        try:
            self._outcome.append(self._function(self._progress))
        except BaseException as error:  # whatever it is belongs to the handler
            self._error = error

    def _progress(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Stopped
        self._now = (done, total)


class Once:
    """Work that is done in a thread, at most once, whoever asks for it first."""

    def __init__(self, work: Callable[[], None]) -> None:
        """Keep the work.

        Args:
            work: Does not raise: nobody would hear of it.
        """
        self._work = work
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, after: threading.Thread | None = None) -> threading.Thread:
        """Start the work; gives its thread.

        Args:
            after: Wait for this one first: both at once would make a visitor wait longer for each.
        """
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, args=(after,), name="condviz-once", daemon=True)
                self._thread.start()
            return self._thread

    def _run(self, after: threading.Thread | None) -> None:
        if after is not None:
            after.join()
        self._work()


def percent(done: int, total: int) -> str:
    """Write a progress, "" while nothing is known."""
    return f"{100 * done / total:.0f} %" if total else ""
