"""One page without a server, for tests of its handlers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gradio as gr
import pytest

from condviz.errors import CondvizError, DataError
from condviz.ui.page import Page, Site, Tab, build_page
from condviz.ui.pool import ModelPool


def build_view(build: Callable[[Page], Any] | Tab, pool: ModelPool) -> Any:
    """Return what a view builds on a page of its own."""
    tab = build if isinstance(build, Tab) else Tab("view", "View", build)
    with gr.Blocks() as blocks:
        return build_page(Site(blocks, (tab,), pool), tab).built


def plant(handler: Callable) -> Callable[..., Iterator[dict]]:
    """Return a handler that fails, and says of which it took the place."""

    @functools.wraps(handler)
    def fail(*args: Any, **kwargs: Any) -> Iterator[dict]:
        raise DataError(f"planted in {handler.__qualname__}")
        yield {}

    fail.planted = True
    return fail


def run_alone(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns, run in a thread of its own: a browser leaves a loop in that of the tests."""
    with ThreadPoolExecutor(1) as own:
        return own.submit(asyncio.run, coroutine).result()


def last(steps: Iterable[dict]) -> dict:
    """Return what a run has left on the page: all of its updates, later ones over earlier ones."""
    return {part: update for step in steps for part, update in step.items()}


def last_before_error(steps: Iterable[dict]) -> dict:
    """Return what a run that fails, as it must, has left on the page."""
    shown: dict = {}
    with pytest.raises(CondvizError):
        shown.update(item for step in steps for item in step.items())
    return shown
