"""Events of the page and endpoints of its API: every error reaches the visitor as a message, nothing typed is lost."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import logging
import re
import secrets
import textwrap
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from inspect import isgeneratorfunction
from typing import Any, ClassVar, cast, get_type_hints
from weakref import WeakKeyDictionary

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.blocks import BlocksConfig
from gradio.context import LocalContext, get_blocks_context
from gradio.events import Dependency, api
from gradio.state_holder import SessionState
from pydantic import ConfigDict, TypeAdapter, ValidationError

from condviz.errors import CondvizError, DataError
from condviz.spec import options_of
from condviz.ui import limits
from condviz.ui.markup import busy
from condviz.ui.markup import notice as _notice
from condviz.ui.pool import TICK_SECONDS, ModelPool, Outcome, Stopped, Work, visitor_name, visitors_before

logger = logging.getLogger(__name__)
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
LISTEN_SECONDS = 60.0
"""Work of a client that does not read what it is sent ends after so long: it may be gone, or never have listened."""
HEAVY: dict[str, Any] = {"concurrency_limit": limits.AT_ONCE, "concurrency_id": "model"}
"""Options of events that run a model."""


_KINDS = {
    "string": "text", "list": "a list", "int": "a whole number", "float": "a number", "finite": "a finite number",
    "bool": "true or false",
}  # fmt: skip
"""Begin of what pydantic calls an error -> what was wanted."""


class Pages(gr.Blocks):
    """Pages to which every step of an answer is sent whole, and once, and whose menus ask once; read in gradio 6.31.

    gradio sends how a step differs from the one before, and its client edits that one in place, drawn or not: of two
    steps that came together, the change of a component in the first was lost. And it sends the last step twice: the
    second time undid what the visitor had done since, a section that had been opened was closed again.

    A menu of gradio fires when it loses the focus, too: every choice was answered twice, and a menu that was only
    looked at once. Such an event is answered with nothing where the handler knows what the menu holds.
    """

    condviz_pool: ModelPool
    _menus: ClassVar[WeakKeyDictionary[SessionState, dict[int, dict[int | None, Any]]]] = WeakKeyDictionary()
    """Session -> menu -> handler -> what the menu held when it was last called; under None what it was last set to."""

    async def call_function(self, block_fn: BlockFunction, *given: Any, **options: Any) -> Any:  # noqa: ANN401
        """Call a handler, unless a menu asks that holds what it held."""
        call = inspect.signature(super().call_function).bind(block_fn, *given, **options).arguments
        state, event = call.get("state"), call.get("event_data")
        if (
            state is not None
            and call.get("iterator") is None
            and self._is_known(block_fn, call["processed_input"], state, event.target if event else None)
        ):
            nothing = {block_fn.outputs[0]: gr.skip()}
            return {"prediction": nothing, "duration": 0.0, "is_generating": False, "iterator": None}
        return await super().call_function(block_fn, *given, **options)

    def _is_known(self, block_fn: BlockFunction, values: list[Any], state: SessionState, asking: Any) -> bool:  # noqa: ANN401
        """Return whether the component that asks is a menu that holds what it held; note what all menus hold."""
        menus, known = self._menus.setdefault(state, {}), False
        for part, value in zip(block_fn.inputs, values, strict=True):
            if isinstance(part, gr.Dropdown):
                held = menus.setdefault(part._id, {None: part.value})
                # It may have been changed again since it asked, and so be another component by now.
                asks = asking is not None and getattr(asking, "condviz_id", asking._id) == part._id
                known |= asks and held.get(block_fn._id, held[None]) == value
                held[block_fn._id] = value
        return known

    async def postprocess_data(self, block_fn: BlockFunction, predictions: Any, state: SessionState | None) -> list:  # noqa: ANN401
        """Return what is sent for the outputs, and note what menus are set to."""
        sent = await super().postprocess_data(block_fn, predictions, state)
        for part, update in zip(block_fn.outputs, sent, strict=True):
            changes = update if isinstance(update, dict) else {} if update is None else {"value": update}
            if state and isinstance(part, gr.Dropdown):
                # What has been changed is another component for this visitor, with an id of its own.
                setattr(state.blocks_config.blocks[part._id], "condviz_id", part._id)  # noqa: B010 - not declared
                if "value" in changes:
                    self._menus.setdefault(state, {})[part._id] = {None: changes["value"]}
        return sent

    def handle_streaming_diffs(
        self, block_fn: BlockFunction, data: list[Any], session_hash: str | None, run: str | None, final: bool,
        simple_format: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Return what is sent for the outputs: values for the first step, then edits that replace what has changed."""
        if session_hash is None or run is None:
            return data
        steps = self.pending_diff_streams[session_hash]
        before, steps[run] = steps.get(run), data
        if final:
            self._pop_run_diffs(session_hash, run)
            return before if simple_format and before else [gr.skip() for _ in data]
        if before is None or simple_format:
            return data
        return [[] if new == old else [["replace", [], new]] for new, old in zip(data, before, strict=True)]


def connect(
    triggers: Any,  # noqa: ANN401 - one event listener, or a list
    handler: Callable[..., Any],
    inputs: Any = None,  # noqa: ANN401 - as gradio
    outputs: Sequence[Any] = (),
    *,
    notice: gr.HTML,
    stop: gr.Button | None = None,
    heavy: bool = False,
    by_itself: bool = False,
    **options: Any,  # noqa: ANN401 - as gradio
) -> Dependency:
    """Connect events, one as `button.click` or a list of such, to a handler.

    It returns, or yields, {component: update} for outputs, and may take `event: gr.EventData` or `request: gr.Request`
    first. An error it raises becomes a message in `notice`, which is emptied when it starts to answer. The button
    `stop` cancels the run, and is hidden again when it ends. A `heavy` handler runs a model. What the page asks
    `by_itself`, as at each tick of a timer, keeps no answer to a visitor back. Further options are those of gradio;
    `trigger_mode="once"` where a double click must not act twice.
    """
    outputs = list(dict.fromkeys([*outputs, notice, *([stop] if stop else [])]))
    after = {stop: gr.update(visible=False)} if stop else {}
    by_itself = by_itself or getattr(triggers, "event_name", "") == "tick"
    guarded = _guard(handler, notice, after, ordered=not by_itself)
    # A handler called compare would else take the name from the endpoint /compare, which became /compare_2.
    guarded.__name__ = f"on_{guarded.__name__}"
    # What is pressed or chosen while the answer before is on its way must not be lost.
    chosen = {**PRIVATE, "trigger_mode": "always_last", **(HEAVY if heavy else {}), **options}
    if isinstance(triggers, list | tuple):
        run = gr.on(list(triggers), guarded, inputs, outputs, **chosen)
    else:
        run = triggers(guarded, inputs, outputs, **chosen)
    if stop is not None:
        # The page counts a cancelled run as failed, which tells it from the others. A handler of the button itself
        # would come too early: what the run still sends until it has ended would overwrite what the button shows.
        stop.click(None, cancels=[run], **PRIVATE)
        stopped = _notice("Stopped", "The dimmed result is from the previous run.", tone="info")
        run.failure(lambda: {notice: stopped, **after}, None, [notice, stop], queue=False, **PRIVATE)
    return run


def steps_of(answer: Any) -> Iterator[dict]:  # noqa: ANN401 - what a handler returns
    """Yield the steps of a handler, or its only one; an empty one where it has none: gradio would empty all outputs."""
    steps = answer if isinstance(answer, Iterator) else iter([answer])
    yield next(steps, {})
    yield from steps


class _Run:
    """One run of a handler. What a run that began later has changed already, it leaves as it is.

    Two handlers of a page can run at once: the words behind a result came after Back had shown another one, and the end
    of one run emptied the notice with the error of the next. One handler can, too: gradio's menus fire twice.
    """

    _numbers = itertools.count()
    _changed: limits.Newest[str, dict[object, int]] = limits.Newest(1_000)
    """Session -> id of a component, or a handler -> number of the run that changed or called it last."""
    _lock = threading.Lock()

    def __init__(self, notice: gr.HTML, handler: Callable, *, ordered: bool) -> None:
        self._number, self._notice, self._handler = next(self._numbers), notice, handler
        self._session = visitor_name() if ordered else ""
        if self._session:
            with self._lock:
                self._of_session()[handler] = self._number

    def _of_session(self) -> dict[object, int]:
        if (changed := self._changed.get(self._session)) is None:
            changed = self._changed[self._session] = {}
        return changed

    @property
    def superseded(self) -> bool:
        """Whether the handler has been called again meanwhile: only the last answer is wanted."""
        with self._lock:
            return bool(self._session) and self._of_session().get(self._handler, -1) > self._number

    def step(self, updates: dict, *, last_word: bool = False) -> dict:
        """Return what is left of the updates of a step; those of the `last_word` are told in any case."""
        if not self._session:
            return updates
        with self._lock:
            changed = self._of_session()
            kept = {
                part: update
                for part, update in updates.items()
                if changed.get(part._id, -1) <= self._number or (last_word and part is self._notice)
            }
            for part, update in kept.items():
                told = part is not self._notice or update != ""  # an empty notice waits for nobody
                if told and not (isinstance(update, dict) and update == gr.skip()):
                    changed[part._id] = self._number
        # An empty answer would be an error to gradio: the run counted as failed, and the page said "Stopped".
        return kept or {self._notice: gr.skip()}


def _guard(handler: Callable[..., Any], notice: gr.HTML, after: dict, *, ordered: bool = True) -> Callable:
    def told(step: dict) -> dict:
        before = visitors_before() if isgeneratorfunction(handler) and (not step or notice in step) else 0
        if before:
            return step | {notice: busy(f"{before} {'requests are' if before > 1 else 'request is'} ahead of yours.")}
        return {notice: "" if step else gr.skip(), **step}  # an empty step only lets the run be cancelled

    @functools.wraps(handler)
    def steps(*args: Any, **kwargs: Any) -> Iterator[dict]:  # noqa: ANN401
        run = _Run(notice, handler, ordered=ordered)
        try:
            for step in steps_of(handler(*args, **kwargs)):
                if run.superseded:
                    yield {notice: gr.skip()}  # as in `steps_of`
                    return
                # In a step of its own: once the result has come, the page opens the sections that a link names.
                if folds := {part: update for part, update in (step or {}).items() if isinstance(part, gr.Accordion)}:
                    yield run.step(folds)
                yield run.step(told({part: update for part, update in (step or {}).items() if part not in folds}))
            if after:
                yield run.step({notice: gr.skip(), **after})
        except Stopped:
            return
        except Exception as error:
            yield run.step({notice: explain(error), **after}, last_word=True)

    return steps


def follow(
    work: Work[Outcome], message: str, notice: gr.HTML, stop: gr.Button | None = None
) -> Generator[dict, None, Outcome]:
    """Show what work does, and `stop`, until it has ended; the value of the generator is its result."""
    shown = {stop: gr.update(visible=True)} if stop else {}
    for done, total in work.steps():
        yield {notice: busy(message, done, total), **shown}
    return work.result()


def _log(error: Exception) -> str:
    """Log an error and return the number under which it stands there."""
    number = secrets.token_hex(4)
    logger.error("Unexpected error %s", number, exc_info=error)
    return number


def explain(error: Exception) -> str:
    """Render the message for an error: that of a CondvizError, else a general one with an id found in the log."""
    if isinstance(error, CondvizError):
        return _notice("", str(error))
    message = f"Something went wrong in the program, not in your input. The server’s log has it under {_log(error)}."
    return _notice("Unexpected error", message, hint="Your text is still in the form. Try again, or reload the page.")


def publish(function: Callable[..., Any], name: str, *, heavy: bool = True) -> None:
    """Publish a typed function that returns plain JSON as an endpoint; a CondvizError becomes the answer's message."""
    options = options_of(function)
    types = {
        parameter: TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
        for parameter, hint in get_type_hints(function).items()
        if parameter != "return"
    }

    @functools.wraps(function)
    async def endpoint(*args: Any) -> Any:  # noqa: ANN401
        def call(_: Callable[[int, int], None]) -> Any:  # noqa: ANN401
            checks = ((name, options.get(name), kind) for name, kind in types.items())
            return function(*(
                option.check(value) if option else _typed(name, kind, value)
                for (name, option, kind), value in zip(checks, args, strict=False)
            ))  # fmt: skip

        # In a thread, so that a hundred may wait, and can be stopped when their client has gone.
        work, wanted = Work(call), _wanted()
        ended = asyncio.wrap_future(work.future)
        ended.add_done_callback(lambda done: done.cancelled() or done.exception())  # else asyncio complains of Stopped
        try:
            while wanted() and not ended.done():
                await asyncio.wait([ended], timeout=TICK_SECONDS)
            if not ended.done():
                unread = f"Nobody read the answer for {LISTEN_SECONDS:g} s"
                raise DataError(f"{unread}, so the work was stopped. Ask again and keep reading.")
            return ended.result()
        except CondvizError as error:
            raise gr.Error(str(error), print_exception=False) from error
        except Exception as error:
            message = f"Internal error {_log(error)}; see the server’s log."
            raise gr.Error(message, print_exception=False) from error
        finally:
            work.stop()

    # gradio reads the type of the answer there
    setattr(endpoint, "__signature__", inspect.signature(function, eval_str=True))  # noqa: B010 - not declared
    api(endpoint, api_name=name, **(HEAVY if heavy else {}))
    _describe(endpoint)


def _describe(endpoint: Callable[..., Any]) -> None:
    """Put what the docstring says of parameters and answer into the schema of the endpoint that was published last."""
    published: Any = list(cast(BlocksConfig, get_blocks_context()).fns.values())[-1]
    args, returns = (_part(inspect.getdoc(endpoint) or "", name) for name in ("Args", "Returns"))
    entries = (entry.partition(":") for entry in re.split(r"\n(?=\S)", args))
    texts = {name.strip(): " ".join(text.split()) for names, _, text in entries for name in names.split(",")}
    for component, name in zip(published.inputs, inspect.signature(endpoint).parameters, strict=True):
        component.label = name
        component._api_info = {**component._api_info, "additional_description": texts.get(name, "")}
    for component in published.outputs:
        component._api_info = {**component._api_info, "description": " ".join(returns.split())}


def _part(docstring: str, name: str) -> str:
    found = re.search(rf"^{name}:\n((?:    .*\n?|\n)*)", docstring, re.MULTILINE)
    return textwrap.dedent(found[1]) if found else ""


def _typed(parameter: str, kind: TypeAdapter, value: Any) -> Any:  # noqa: ANN401
    """Return the value of a parameter as its type; raises DataError if it is none."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" for part in first["loc"] if isinstance(part, int))
        wanted = next((name for kind, name in _KINDS.items() if first["type"].startswith(kind)), first["msg"])
        raise DataError(f"{parameter}{place} must be {wanted}, got {first['input']!r:.60}.") from None


def _wanted() -> Callable[[], bool]:
    """Return what tells whether the client of this event is still there, and takes what it is sent."""
    blocks, event_id = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(event_id) if blocks and event_id else None
    if blocks is None or event is None:
        return lambda: True
    # The first message is that the event has started: where it lies unread, nobody listens.
    messages, heard = blocks._queue.pending_messages_per_session.get(event.session_hash), time.monotonic()

    def wanted() -> bool:
        nonlocal heard
        now = time.monotonic()
        if messages is None or messages.empty():
            heard = now
        return event.alive and now - heard <= LISTEN_SECONDS

    return wanted
