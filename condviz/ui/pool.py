"""Models of the running page, and work with them: loaded once, run in a thread, with progress and a stop.

A handler starts work and yields while it goes on; whoever leaves the page or presses Stop leaves the loop, and the work
ends at its next report of progress:

    work = page.pool.run(compare, names, sentence1, sentence2, conditions)
    comparison = yield from follow(work, "Scoring.", notice)
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from time import monotonic
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from condviz.encoder.visitors import VISITOR, Visitor
from condviz.errors import CheckpointError, CondvizError, DataError, UnknownModelError
from condviz.evaluation.scoreboard import best_encoder, efforts, fast_encoder, strengths
from condviz.models import registry
from condviz.paths import MODEL_FOLDERS
from condviz.training.jobs import Jobs
from condviz.types import ModelInfo, columns
from condviz.ui import limits
from condviz.ui.speed import Budget, measure, preference

LARGE_ROWS = 1_000
EAGER_SECONDS = 0.0005
"""How long a thread keeps the interpreter while large work is done, a tenth of what Python gives it: each operation of
an encoder has to get it back, and a comparison beside a loop in Python took several times as long as alone. Without
large work this only costs: thirty visitors of nine models waited 1.4 times as long."""
logger = logging.getLogger(__name__)
NICENESS = 5
"""Of large work: where others want the same core, it gets a quarter of its time. With 10 it is a tenth: beside other
busy programs, a map would hardly get on."""
Outcome = TypeVar("Outcome")
Phase = Literal["waiting", "loading", "ready", "failed", "absent"]
TICK_SECONDS = 0.4
"""How long a handler waits in one go. A handler can be cancelled only where it yields, so it yields after each wait."""


class Stopped(Exception):
    """Raised inside work that nobody waits for any more."""


@dataclass(frozen=True)
class LoadState:
    """How far one model has been loaded, and why that failed; "absent" where its encoder is not on this machine."""

    phase: Phase = "waiting"
    reason: str = ""


class Work(Generic[Outcome]):
    """One piece of work in a thread of its own, for one visitor; what it starts ends with it.

    The function takes a callback (done, total), to be called now and then. Large work waits until the large work before
    it has ended. It, and patient work, leave the processor to others.
    """

    def __init__(
        self, function: Callable[[Callable[[int, int], None]], Outcome], *, large: bool = False, patient: bool = False
    ) -> None:
        outer, self._stop = VISITOR.get(), threading.Event()
        self.check = _checker(self._stop, outer)
        self.visitor = Visitor(outer.name if outer else visitor_name(), self.check, limits.TOKENS)
        self.large, self._back = large, large or patient
        self.future: Future[Outcome] = Future()
        self._function, self._now = function, (0, 0)
        if large or outer is None:
            with _changed:
                _running.append(self)
                _share_interpreter()
        threading.Thread(target=self._run, name="condviz-work", daemon=True).start()

    def steps(self) -> Iterator[tuple[int, int]]:
        """Yield (done, total) until the work has ended; (0, 0) while nothing is known."""
        try:
            while wait([self.future], TICK_SECONDS).not_done:
                yield self._now
        finally:
            self.stop()

    def stop(self) -> None:
        """Say that nobody waits any more: the work ends at its next report of progress, or batch of texts."""
        self._stop.set()

    def result(self) -> Outcome:
        """Wait for the end and return what the work returned, or raise what it raised."""
        return self.future.result()

    def _run(self) -> None:
        VISITOR.set(self.visitor)
        if self._back and sys.platform == "linux":  # elsewhere a thread has no niceness of its own
            os.nice(NICENESS)
        try:
            while self.large and places_before(self):
                with _changed:
                    _changed.wait(TICK_SECONDS)
                self.check()
            self.future.set_result(self._function(self._progress))
        except BaseException as error:  # whatever it is belongs to the handler
            self.future.set_exception(error)
        finally:
            with _changed:
                if self in _running:
                    _running.remove(self)
                    _share_interpreter()
                _changed.notify_all()

    def _progress(self, done: int, total: int) -> None:
        self.check()
        self._now = (done, total)


def _checker(stop: threading.Event, outer: Visitor | None) -> Callable[[], None]:
    """Return what raises Stopped once nobody waits for some work, or for the work that started it."""

    # It does not refer to the work: the two would keep each other, and all texts and vectors, until Python looks for
    # such pairs, which among a million objects is seldom.
    def check() -> None:
        if stop.is_set():
            raise Stopped
        if outer is not None:
            outer.check()

    return check


_running: list[Work] = []
"""Work of visitors in the order of its start, and large work."""
_changed = threading.Condition()
_usual_seconds = sys.getswitchinterval()


def _share_interpreter() -> None:
    sys.setswitchinterval(EAGER_SECONDS if any(work.large for work in _running) else _usual_seconds)


def places_before(work: Work) -> int:
    """Return how many pieces of its kind, large or small, were started earlier and have not ended."""
    return sum(other.large == work.large for other in _running[: _running.index(work)])


def visitors_before() -> int:
    """Return how many pieces of work have to end before the oldest of the visitor whom this thread serves."""
    name = visitor_name()
    with _changed:
        mine = next((work for work in _running if work.visitor.name == name), None)
        return 0 if mine is None else places_before(mine)


def visitor_name() -> str:
    """Return the session of the page or client that is being answered, "" outside of a request."""
    from gradio.context import LocalContext

    request = LocalContext.request.get(None)
    return str(request.session_hash or request.client.host) if request else ""


def served_options() -> dict[str, str]:
    """Return how a page computes, as options of `load`: on a CPU in float32, unless the environment tells; else {}.

    On an Intel processor with bfloat16, eight visitors at once got 1.5 times as many answers as from torch in bfloat16,
    and 1.2 times as many as from ONNX Runtime (`benchmarks.load --clients 8 --models bi-encoder`).
    """
    from condviz.encoder.pretrained import choose_device, faster_in_float32, from_environment

    if from_environment() or choose_device() != "cpu":
        return {}
    return {"backend": faster_in_float32(), "precision": "float32"}


OWNER: ContextVar[str] = ContextVar("OWNER", default="")
"""The secret, kept by the browser, of the visitor who opens a page: their own models are in its menus."""


def load_served(name: str) -> Any:  # noqa: ANN401 - a ConditionalScorer; its module imports torch
    """Load a model for many visitors."""
    return registry.load(name, **served_options())


class ModelPool:
    """Load models by name, at most once each; a model that fails leaves the others alive.

    The names are in the order of the page, by default all models of sentences; `load` returns a model for a name.
    """

    def __init__(self, names: Sequence[str] | None = None, load: Callable[[str], Any] | None = None) -> None:
        self._load = load or load_served
        self.names = tuple(registry.list_models() if names is None else names)
        self._infos: dict[str, ModelInfo] = {}
        self._models: dict[str, Any] = {}
        self._states = {name: LoadState() for name in self.names}
        self._removed: Counter[str] = Counter()
        self._asked: dict[str, float] = {}
        # Loading one model at a time keeps the memory peak low, and the second finds the shared encoder.
        self._loading = threading.Lock()
        # Held for moments: which models there are, and what is known of them.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._took: dict[str, float] = {}
        self.when_measured: Callable[[], object] = lambda: None
        # Work runs in forked processes, as on ZeroGPU: what is loaded before the page opens is there in all.
        self.forks = bool(os.environ.get("SPACE_ID") and find_spec("spaces"))
        self._call = self._call_here
        if self.forks:
            import spaces  # pyright: ignore[reportMissingImports] - there on ZeroGPU alone

            self._call = spaces.GPU(self._call_here)

    # ---- what there is -----------------------------------------------------------------------------------------------
    def info(self, name: str) -> ModelInfo:
        """Describe a model, with the revision of its weights once it is loaded; raises if it is unknown or damaged."""
        with self._lock:
            self._check(name)
            if name in self._models:
                return self._models[name].info
            info = self._infos.get(name) or registry.describe(name)
            if info.missing:
                self._states[name] = LoadState("absent", info.missing)
            else:
                self._infos[name] = info
            return info

    def infos(self) -> list[ModelInfo]:
        """Describe every model that `OWNER` may see and can be described; a damaged one is failed in `states`."""
        found = []
        for name in self._seen():
            try:
                found.append(self.info(name))
            except CondvizError as error:
                self._note(name, LoadState("failed", _without_folder(error)))
        return found

    def _seen(self) -> list[str]:
        hidden = Jobs().models_of_others(OWNER.get())
        return [name for name in self.names if name not in hidden]

    @cached_property
    def default(self) -> str:
        """Name of the fast model, with which two cores answer in time: what is not left to `choose` begins with it."""
        infos = self.infos()
        usable = [info.name for info in infos if info.trained] or [info.name for info in infos]
        return fast_encoder(infos) or best_encoder(infos) or next(iter(usable), "")

    def choose(self, budget: Budget, suits: Callable[[ModelInfo], bool] = lambda info: True) -> str:
        """Return the model that a view starts with: of those that suit it the best, if it answers in time here.

        Else, and until this machine was measured, the best on the small encoder.
        """
        infos, work, told = [info for info in self.infos() if suits(info)], efforts(), preference()
        best, fast = best_encoder(infos), fast_encoder(infos) or self.default
        if told == "auto" and best in work and self._took and self.default in work:
            times = work[best][budget.task] / work[self.default][budget.task]
            told = "best" if self._took[budget.task] * times * budget.share <= budget.seconds else "fast"
        return best if best and told == "best" else fast

    def choices(
        self, suits: Callable[[ModelInfo], bool] = lambda info: True, budget: Budget | None = None
    ) -> list[tuple[str, str]]:
        """Return (title with what the model is good for, name) of the models that suit a view, for a menu.

        The one that a view with this budget starts with comes first, then the default, called fast where another is
        better, then that one; untrained ones come last. What else is known of these two stands in Models: a menu is
        narrow.
        """
        infos = [info for info in self.infos() if not info.missing]
        good, best, work = strengths(infos), best_encoder(infos), efforts()
        if best not in ("", self.default):
            slow = {best, self.default} <= set(work) and work[best]["pair"] > 1.5 * work[self.default]["pair"]
            title = "best" if good.get(best, "").startswith("best") else "strong"
            good |= {self.default: "fast", best: f"{title}, slow" if slow else title}
        lead = self.choose(budget, suits) if budget else self.default
        infos.sort(key=lambda one: (not one.trained, one.name != lead, one.name != self.default, one.name != best))
        notes = {info.name: good.get(info.name) if info.trained else "not trained" for info in infos}
        titled = ((info, f" ({notes[info.name]})" if notes[info.name] else "") for info in infos if suits(info))
        return [(f"{info.title}{note}", info.name) for info, note in titled]

    # ---- loading -----------------------------------------------------------------------------------------------------
    def states(self) -> dict[str, LoadState]:
        return dict(self._states)

    @property
    def settled(self) -> bool:
        return not any(state.phase in ("waiting", "loading") for state in self.states().values())

    def loaded(self, name: str) -> Any | None:  # noqa: ANN401 - a ConditionalScorer; its module imports torch
        """Return the model if it is ready, else None; never loads."""
        return self._models.get(name)

    def get(self, name: str) -> Any:  # noqa: ANN401
        """Return a model, loading it if needed, once more where that failed before; its state has the reason, too.

        An encoder that is not on this machine is not downloaded for a visitor.
        """
        self._check(name)
        if (model := self._models.get(name)) is not None:
            return model
        with self._loading:
            self._check(name)
            return self._models[name] if name in self._models else self._load_one(name)

    def add(self, name: str) -> None:
        """Add a model that was trained since the start; it is the last in the order of the page."""
        with self._lock:
            if name not in self._states:
                self._states[name] = LoadState()
                self.names = (*self.names, name)

    def remove(self, name: str) -> None:
        """Forget a model whose checkpoint has been deleted; unknown names are ignored."""
        with self._lock:
            self.names = tuple(known for known in self.names if known != name)
            self._removed[name] += 1
            for table in (self._states, self._models, self._infos):
                table.pop(name, None)

    def version(self, name: str) -> int:
        """Return how many models of this name have been removed: what is kept about one is not about the next."""
        return self._removed[name]

    def idle_longest(self, names: Iterable[str]) -> list[str]:
        """Return names of models, the one that was asked for longest ago first."""
        return sorted(names, key=lambda name: self._asked.get(name, 0.0))

    def preload(self) -> threading.Thread:
        """Load all models in one background thread: the default, by which this machine is measured, then the best."""

        def load() -> None:
            best = best_encoder(self.infos())
            for name in sorted(self.names, key=lambda name: (name != self.default, name != best)):
                try:
                    model = self.get(name)
                    if name == self.default != best and not self.forks and preference() == "auto":
                        self._measure(model)
                except CondvizError as error:
                    logger.warning("Model %s is not available: %s", name, error)

        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=load, name="condviz-preload", daemon=True)
                self._thread.start()
            return self._thread

    def _measure(self, model: Any) -> None:  # noqa: ANN401
        try:
            self._took = measure(model)
            self.when_measured()
        except Exception:
            logger.exception("This machine could not be measured: pages start with the fast model")

    def _missing(self, name: str) -> str:
        try:
            return self.info(name).missing
        except CondvizError:  # loading it says what is wrong
            return ""

    def _load_one(self, name: str) -> Any:  # noqa: ANN401
        if missing := self._missing(name):
            raise CheckpointError(missing)
        self._note(name, LoadState("loading"))
        try:
            model = self._load(name)
        except CondvizError as error:
            reason = _without_folder(error)
            self._note(name, LoadState("failed", reason))
            raise type(error)(reason) from error
        except Exception as error:
            logger.exception("Loading %s failed", name)
            self._note(name, LoadState("failed", f"{type(error).__name__}, see the log of the server"))
            raise CondvizError(f"The model {name!r} could not be loaded ({type(error).__name__}).") from error
        with self._lock:
            self._check(name)
            self._models[name], self._states[name] = model, LoadState("ready")
        return model

    def _note(self, name: str, state: LoadState) -> None:
        """Note how far a model has been loaded, unless it was removed meanwhile."""
        with self._lock:
            if name in self._states:
                self._states[name] = state

    def _check(self, name: object) -> None:
        if not isinstance(name, str) or name not in self._states:
            raise UnknownModelError(f"No model is called {str(name)[:80]!r}. Available: {', '.join(self._seen())}.")

    # ---- running -----------------------------------------------------------------------------------------------------
    def run(
        self, function: Callable[..., Outcome], models: str | Sequence[str], *args: Any,  # noqa: ANN401
        rows: int = 0, patient: bool = False, **kwargs: Any,  # noqa: ANN401
    ) -> Work:  # fmt: skip
        """Start a public function on a model of the pool, or a list of models, then `args` and `kwargs`.

        Its parameter `progress` gets the callback of the work. Work on more than `LARGE_ROWS` rows is done one after
        the other; `patient` work, which nobody has asked for yet, after what others wait for. Only names of the pool
        are ever loaded, no path and no hub id: others raise UnknownModelError.
        """
        names = [models] if isinstance(models, str) else list(dict.fromkeys(models))
        self._asked.update(dict.fromkeys(names, monotonic()))
        if not names:
            raise DataError(f"No model is chosen. Choose at least one of: {', '.join(self._seen())}.")
        for name in names:
            self._check(name)
        wants = "progress" in inspect.signature(function).parameters and not self.forks
        chosen = models if isinstance(models, str) else names

        def work(progress: Callable[[int, int], None]) -> Outcome:
            told = {"progress": progress} if wants else {}
            outcome = self._call(function, chosen, args, kwargs | told)
            if isinstance(outcome, CondvizError):
                raise outcome
            return outcome

        return Work(work, large=rows > LARGE_ROWS, patient=patient)

    def _call_here(self, function: Callable, models: str | list[str], args: tuple, kwargs: dict) -> Any:  # noqa: ANN401
        # Names come in, not models: a ZeroGPU worker is forked and must not get the models through a pipe. Of an error
        # it passes on only the name, unless it is returned.
        try:
            found = self.get(models) if isinstance(models, str) else [self.get(name) for name in models]
            return function(found, *args, **kwargs)
        except CondvizError as error:
            return error


def score_rows(model: Any, pairs: Any, *, progress: Any = None) -> np.ndarray:  # noqa: ANN401 - a loaded model
    """Score pairs with a model; for `ModelPool.run`."""
    return np.asarray(model.score(*columns(pairs), progress=progress))


def _without_folder(error: CondvizError) -> str:
    """Return the message of an error; visitors need not know where on the server the models lie."""
    message = str(error)
    for folder in MODEL_FOLDERS:
        message = message.replace(f"{folder}{os.sep}", "")
    return message
