"""Serve the page with every handler made to fail: python -m tests.e2e.serve_failing FOLDER PORT."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from condviz.errors import DataError
from condviz.ui import events
from tests.e2e.serve import main

if __name__ == "__main__":
    guard = events._guard

    def plant(handler: Callable, failed: Callable, notice: gr.HTML) -> Callable:
        @functools.wraps(handler)
        def fail(*args: Any, **kwargs: Any) -> Iterator[dict]:
            raise DataError(f"planted in {handler.__qualname__}")
            yield {}

        return guard(fail, failed, notice)

    events._guard = plant
    main()
