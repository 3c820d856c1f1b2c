"""Events of the page and endpoints of its API: every error reaches the visitor as a message, nothing typed is lost."""

from __future__ import annotations

import functools
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from inspect import isgeneratorfunction
from typing import Any, get_type_hints

import gradio as gr
from gradio.events import Dependency
from pydantic import ConfigDict, TypeAdapter, ValidationError

from condviz.errors import CondvizError, DataError
from condviz.ui.markup import notice
from condviz.ui.pool import Stopped

logger = logging.getLogger(__name__)
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
HEAVY: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "model"}
"""Options of events that run a model: as many at once as the machine has cores to use."""


_KINDS = {
    "string": "text", "list": "a list", "int": "a whole number", "float": "a number", "finite": "a finite number",
    "bool": "true or false",
}  # fmt: skip
"""Begin of what pydantic calls an error -> what was wanted."""


def connect(
    triggers: Any,  # noqa: ANN401 - one event listener, or a list
    handler: Callable[..., Any],
    inputs: Any = None,  # noqa: ANN401 - as gradio
    outputs: Sequence[Any] = (),
    *,
    notice: gr.HTML,
    stop: gr.Button | None = None,
    heavy: bool = False,
    **options: Any,  # noqa: ANN401 - as gradio
) -> Dependency:
    """Connect events to a handler; an error it raises becomes a message in `notice`.

    Args:
        triggers: For instance `button.click`, or a list of such.
        handler: Returns, or yields, {component: update}. May take `event: gr.EventData` or `request: gr.Request` first.
        inputs: Components whose values the handler takes.
        outputs: Components that it may update; `notice` and `stop` need not be listed.
        notice: Where errors are shown. Emptied when the handler starts to answer.
        stop: Button that cancels the run; hidden again after an error.
        heavy: The handler runs a model.
        options: Further options of the event.
    """
    outputs = list(dict.fromkeys([*outputs, notice, *([stop] if stop else [])]))
    after = {stop: gr.update(visible=False)} if stop else {}

    def failed(error: Exception) -> dict:
        return {notice: explain(error), **after}

    guarded = _guard(handler, failed, notice)
    # A handler called compare would else take the name from the endpoint /compare, which became /compare_2.
    guarded.__name__ = f"on_{guarded.__name__}"
    chosen = {**PRIVATE, **(HEAVY if heavy else {}), **options}
    if isinstance(triggers, list | tuple):
        run = gr.on(list(triggers), guarded, inputs, outputs, **chosen)
    else:
        run = triggers(guarded, inputs, outputs, **chosen)
    if stop is not None:
        _stop(stop, run, notice)
    return run


def _guard(handler: Callable[..., Any], failed: Callable[[Exception], dict], notice: gr.HTML) -> Callable:
    def clear(step: dict) -> dict:
        # An empty step only lets the run be cancelled.
        return step if not step or notice in step else {notice: "", **step}

    @functools.wraps(handler)
    def steps(*args: Any, **kwargs: Any) -> Iterator[dict]:  # noqa: ANN401
        try:
            if isgeneratorfunction(handler):
                for step in handler(*args, **kwargs):
                    yield clear(step) or {notice: gr.skip()}
            else:
                yield clear(handler(*args, **kwargs) or {})
        except Stopped:
            return
        except Exception as error:
            yield failed(error)

    return steps


def _stop(button: gr.Button, run: Dependency, notice: gr.HTML) -> None:
    """Let a button cancel a run.

    The page counts a cancelled run as failed, which tells it from the others. A handler of the button itself would come
    too early: what the run still sends until it has ended would overwrite what the button shows.
    """
    button.click(None, cancels=[run], **PRIVATE)
    run.failure(
        lambda: {notice: stopped_notice(), button: gr.update(visible=False)},
        None,
        [notice, button],
        queue=False,
        **PRIVATE,
    )


def stopped_notice() -> str:
    """Render the message after Stop."""
    return notice("Stopped", "Nothing was changed.", tone="info")


def explain(error: Exception) -> str:
    """Render the message for an error: that of a CondvizError, else a general one with an id found in the log."""
    if isinstance(error, CondvizError):
        return notice("", str(error))
    number = _log(error)
    message = f"Something went wrong in the program, not in your input. The server’s log has it under {number}."
    return notice("Unexpected error", message, hint="Your text is still in the form. Try again, or reload the page.")


def publish(function: Callable[..., Any], name: str, *, heavy: bool = True) -> None:
    """Publish a function as an endpoint of the HTTP API; call inside gr.Blocks.

    Args:
        function: Typed; returns plain JSON. A CondvizError becomes the message of the answer.
        name: Of the endpoint, without the slash.
        heavy: It runs a model.
    """
    types = {
        parameter: TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
        for parameter, hint in get_type_hints(function).items()
        if parameter != "return"
    }

    @functools.wraps(function)
    def endpoint(*args: Any) -> Any:  # noqa: ANN401
        try:
            given = zip(types.items(), args, strict=False)
            return function(*(_typed(parameter, kind, value) for (parameter, kind), value in given))
        except CondvizError as error:
            raise gr.Error(str(error), print_exception=False) from error
        except Exception as error:
            message = f"Internal error {_log(error)}; see the server’s log."
            raise gr.Error(message, print_exception=False) from error

    gr.api(endpoint, api_name=name, **(HEAVY if heavy else {}))


def _typed(parameter: str, kind: TypeAdapter, value: Any) -> Any:  # noqa: ANN401
    """Return the value of a parameter as its type; raises DataError if it is none."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" for part in first["loc"] if isinstance(part, int))
        wanted = next((name for kind, name in _KINDS.items() if first["type"].startswith(kind)), first["msg"])
        raise DataError(f"{parameter}{place} must be {wanted}, got {first['input']!r:.60}.") from None


def _log(error: Exception) -> str:
    number = secrets.token_hex(4)
    logger.error("Unexpected error %s", number, exc_info=error)
    return number
