"""Turn errors of a handler into a notice on the page; nothing that was typed is lost."""

from __future__ import annotations

import functools
import logging
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from condviz.errors import CondvizError
from condviz.ui.html import notice

logger = logging.getLogger(__name__)
TITLE = "This cannot be done yet"


def explain(error: Exception, title: str = TITLE) -> str:
    """Give the notice for an error: the message of a CondvizError, else a generic text with an id found in the log."""
    if isinstance(error, CondvizError):
        return notice(title, str(error))
    number = secrets.token_hex(4)
    logger.error("Unexpected error %s", number, exc_info=error)
    message = f"Something went wrong in the program, not in your input. The log of the server names it {number}."
    return notice("Unexpected error", message, hint="Your text is still in the form. Try again, or reload the page.")


def guarded(target: gr.HTML, **after: Any) -> Callable:  # noqa: ANN401 - updates by the name given to `outputs`
    """Decorate a generator handler that yields {component: update}: an error becomes a notice in `target`.

    Args:
        target: The component that shows the notice.
        after: Key "updates": further {component: update} sent with the notice, to put buttons back; key "title": of the
            notice.
    """

    def decorate(function: Callable[..., Iterator[dict]]) -> Callable[..., Iterator[dict]]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Iterator[dict]:  # noqa: ANN401
            try:
                yield from function(*args, **kwargs)
            except Exception as error:
                yield {target: explain(error, after.get("title", TITLE)), **after.get("updates", {})}

        return wrapper

    return decorate


def api_error(function: Callable) -> Callable:
    """Decorate an API endpoint: a CondvizError becomes a gr.Error with its message, anything else one with an id."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return function(*args, **kwargs)
        except CondvizError as error:
            raise gr.Error(str(error), print_exception=False) from error
        except Exception as error:
            number = secrets.token_hex(4)
            logger.error("Unexpected error %s", number, exc_info=error)
            raise gr.Error(f"Internal error {number}; see the log of the server.", print_exception=False) from error

    return wrapper
