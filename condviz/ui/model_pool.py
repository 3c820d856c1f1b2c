"""Models of the running app: loaded on first use or ahead of time in a thread, each once, each with a visible state."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from condviz.errors import CondvizError, UnknownModelError

logger = logging.getLogger(__name__)

Phase = Literal["waiting", "loading", "ready", "failed"]


@dataclass(frozen=True)
class LoadState:
    """Where one model stands.

    Attributes:
        phase: "waiting", "loading", "ready" or "failed".
        reason: Why it failed, for people; empty otherwise.
        seconds: Time that loading took; 0 before.
        megabytes: Growth of the resident memory of the process while it loaded, in 10^6 bytes; models that share the
            encoder with an earlier one show only what they add. Other threads may blur it.
    """

    phase: Phase = "waiting"
    reason: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


def resident_bytes() -> int:
    """Give the resident memory of this process in bytes, 0 where the system does not tell (no /proc)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class ModelPool:
    """Load models by name, at most once each; a model that fails leaves the others alive."""

    def __init__(self, names: Sequence[str], load: Callable[[str], Any]) -> None:
        """Prepare the pool; nothing is loaded yet.

        Args:
            names: Models that may be asked for, in the order of the page.
            load: Gives a model for a name; called once per name, again only after a failure.
        """
        self.names = tuple(names)
        self._load = load
        self._models: dict[str, Any] = {}
        self._states = {name: LoadState() for name in self.names}
        self._locks = {name: threading.Lock() for name in self.names}
        # Loading one model at a time keeps the memory peak low, and the second finds the shared encoder.
        self._loading = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def state(self, name: str) -> LoadState:
        """Give the state of one model.

        Raises:
            UnknownModelError: If the pool does not have the name.
        """
        self._check(name)
        return self._states[name]

    def states(self) -> dict[str, LoadState]:
        """Give the state of every model, in the order of the page."""
        return dict(self._states)

    @property
    def settled(self) -> bool:
        """True once no model is waiting or loading."""
        return all(state.phase in ("ready", "failed") for state in self.states().values())

    def loaded(self, name: str) -> Any | None:  # noqa: ANN401 - a ConditionalScorer; its module imports torch
        """Give the model if it is ready, else None; never loads."""
        return self._models.get(name)

    def get(self, name: str) -> Any:  # noqa: ANN401
        """Give a model, loading it if needed. A model that failed before is tried again.

        Raises:
            UnknownModelError: If the pool does not have the name.
            CondvizError: If the model cannot be loaded; the reason also stands in its state.
        """
        self._check(name)
        with self._locks[name]:
            if name not in self._models:
                with self._loading:
                    self._models[name] = self._load_one(name)
            return self._models[name]

    def add(self, name: str) -> None:
        """Take in a model that has come since the start; it is the last in the order of the page."""
        with self._starting:
            if name not in self._states:
                self._locks[name] = threading.Lock()
                self._states[name] = LoadState()
                self.names = (*self.names, name)

    def preload(self, names: Sequence[str] | None = None) -> threading.Thread:
        """Load models in a background thread, in the given order; starts at most one thread.

        Args:
            names: Order of loading; the rest of the pool follows. Unknown names are skipped.
        """
        with self._starting:
            if self._thread is not None:
                return self._thread
            first = [name for name in names or () if name in self._states]
            order = [*first, *(name for name in self.names if name not in first)]
            self._thread = threading.Thread(target=self._preload, args=(order,), name="condviz-preload", daemon=True)
            self._thread.start()
            return self._thread

    def _preload(self, order: Sequence[str]) -> None:
        for name in order:
            try:
                self.get(name)
            except CondvizError as error:
                logger.warning("Model %s is not available: %s", name, error)

    def _load_one(self, name: str) -> Any:  # noqa: ANN401
        self._states[name] = LoadState("loading")
        before, start = resident_bytes(), time.perf_counter()
        try:
            model = self._load(name)
        except CondvizError as error:
            self._states[name] = LoadState("failed", reason=str(error), seconds=time.perf_counter() - start)
            raise
        except Exception as error:
            logger.exception("Loading %s failed", name)
            self._states[name] = LoadState("failed", reason=f"{type(error).__name__}, see the log of the server")
            raise CondvizError(f"The model {name!r} could not be loaded ({type(error).__name__}).") from error
        seconds, growth = time.perf_counter() - start, max(0, resident_bytes() - before)
        self._states[name] = replace(LoadState("ready"), seconds=seconds, megabytes=growth / 1e6)
        return model

    def _check(self, name: str) -> None:
        if name not in self._states:
            raise UnknownModelError(f"No model is called {name!r}. There are: {', '.join(self.names)}.")
