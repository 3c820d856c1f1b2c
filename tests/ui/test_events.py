"""Errors of handlers: each reaches the notice of its tab, and gradio takes what the handler answers."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gradio as gr
import pytest

from condviz.errors import DataError
from condviz.ui import events
from condviz.ui.app import TABS, Settings, build_app
from condviz.ui.pool import ModelPool


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Callable, list]]:
    """Return every handler of the page, made to fail: (name, event function, outputs)."""
    guard, found = events._guard, []

    def plant(handler: Callable, failed: Callable, notice: gr.HTML) -> Callable:
        @functools.wraps(handler)
        def fail(*args: Any, **kwargs: Any) -> Iterator[dict]:
            raise DataError(f"planted in {handler.__qualname__}")
            yield {}

        fail.planted = True
        return guard(fail, failed, notice)

    monkeypatch.setattr(events, "_guard", plant)
    page = build_app(Settings(preload=False))
    for function in page.fns.values():
        if hasattr(getattr(function.fn, "__wrapped__", None), "planted"):
            found.append((function.fn.__qualname__, function.fn, function.outputs))
    return found


def test_an_error_in_any_handler_reaches_its_notice(failing: list[tuple[str, Callable, list]]) -> None:
    assert len(failing) > 5 * len(TABS)
    for name, function, outputs in failing:
        steps = list(function())
        assert len(steps) == 1, name
        assert set(steps[0]) <= set(outputs), f"{name} answers to a component that is not among its outputs"
        assert any("planted in" in str(value) for value in steps[0].values()), name


def test_a_change_of_a_component_is_not_lost_to_the_step_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    closed, now = gr.Accordion(open=False), iter([0.0, 0.01, 0.02, 5.0])
    monkeypatch.setattr(events.time, "monotonic", lambda: next(now))
    steps = [{"section": closed, "text": "a"}, {"text": "b"}, {"section": "new"}, {"text": "c"}]
    assert list(events.repeat_changes(steps)) == [
        {"section": closed, "text": "a"}, {"section": closed, "text": "b"}, {"section": "new"}, {"text": "c"},
    ]  # fmt: skip


def test_unexpected_errors_are_logged_under_a_number(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        shown = events.explain(ZeroDivisionError("secret /home/path"))
    assert "secret" not in shown
    assert caplog.messages[0].split()[-1] in shown


def test_an_endpoint_answers_with_the_message_of_the_error() -> None:
    def endpoint(text: str) -> dict:
        raise DataError(f"{text} cannot be used. Choose another.")

    with gr.Blocks() as page:
        events.publish(endpoint, "endpoint")
    (function,) = page.fns.values()
    # In a thread of its own: in this one a browser test may have left a loop.
    with ThreadPoolExecutor(1) as own, pytest.raises(gr.Error, match="x cannot be used"):
        own.submit(asyncio.run, function.fn("x")).result()


def test_the_pool_of_the_page_is_that_of_its_settings() -> None:
    pool = ModelPool(("minilm",))
    assert build_app(Settings(pool=lambda: pool, tabs=TABS[:1], preload=False)).condviz_pool is pool
