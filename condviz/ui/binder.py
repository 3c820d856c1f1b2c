"""Handlers of a tab as event functions: names become components, errors become notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import gradio as gr
from gradio.events import Dependency

from condviz.ui.guard import TITLE, guarded

PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
SCORING: dict[str, Any] = {**PRIVATE, "concurrency_limit": 2, "concurrency_id": "model"}


def stops(button: gr.Button, runs: Sequence[Dependency], handler: Callable, inputs: Any, outputs: Any) -> None:  # noqa: ANN401
    """Let a button cancel runs, and call a handler when one has ended so.

    The page counts a cancelled run as failed, and so can tell it from the others. A handler of the button itself would
    come too early: what the run still sends until it has ended would overwrite what it shows.
    """
    button.click(None, cancels=runs, **PRIVATE)
    for run in runs:
        run.failure(handler, inputs, outputs, queue=False, **PRIVATE)


class View(Protocol):
    """The components of a tab, by the name that its handlers use; most also have the button `cancel`."""

    notice: gr.HTML


class Binder:
    """Make event functions of handler methods: component names become components, errors become notices."""

    def __init__(self, view: View, title: str = TITLE) -> None:
        """Keep the components.

        Args:
            view: What the handlers' names stand for.
            title: Of the notice that an error becomes.
        """
        self.view = view
        cancel = getattr(view, "cancel", None)
        updates = {cancel: gr.update(visible=False)} if cancel is not None else {}
        self.guard = guarded(view.notice, updates=updates, title=title)

    def _named(self, steps: Iterator[dict[str, Any]]) -> Iterator[dict]:
        for step in steps:
            yield {getattr(self.view, name): update for name, update in step.items()}

    def plain(self, method: Callable[..., Iterator[dict]], **fixed: Any) -> Callable:  # noqa: ANN401
        """Bind a handler that takes the values of its inputs."""

        def call(*values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from self._named(method(*values, **fixed))

        return self.guard(call)

    def with_data(self, method: Callable[..., Iterator[dict]]) -> Callable:
        """Bind a handler that takes what the browser sent with the event, then the values of its inputs."""

        def call(event: gr.EventData, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from self._named(method(event._data, *values))

        return self.guard(call)

    def with_query(self, method: Callable[..., Iterator[dict]]) -> Callable:
        """Bind a handler that takes the query string of the page, then the values of its inputs."""

        def call(request: gr.Request, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from self._named(method(str(request.query_params), *values))

        return self.guard(call)
