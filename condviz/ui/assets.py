"""Files that the page ships with: styles, scripts, fonts, the library of conditions, the first screens."""

from __future__ import annotations

import json
from typing import Any

from condviz.paths import ASSETS

GRADES = {"simple": "Simplest", "realistic": "Realistic", "data": "From data"}


def _read(name: str) -> Any:  # noqa: ANN401 - any JSON
    path = ASSETS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def load_conditions() -> list[tuple[str, str]]:
    """Read the library of the condition finder as (condition, group)."""
    return [(row["condition"], row["group"]) for row in _read("conditions.json") or []]


def load_first_screen() -> dict[str, Any] | None:
    """Read the result that is shown before any model has loaded, as `condviz.ui.first_screen` wrote it."""
    return _read("first_screen.json")


def static_url(path: str) -> str:
    """Give the address of an asset relative to the page, so that it holds behind any proxy prefix."""
    file = ASSETS / path
    return f"gradio_api/file={file.as_posix()}?v={int(file.stat().st_mtime)}"


SCRIPTS = ("page", "compare", "condviz", "words", "errors", "figure", "plotly_panel", "map", "train", "links")
"""In the order in which they run: the first one makes the object that the others add to."""


def page_scripts() -> str:
    """Give the script tags for the `head` of a component whose own script needs them.

    gradio waits for the head of a component before it runs its script; it does not wait for the head of the page.
    """
    return "".join(f'<script src="{static_url(f"js/{name}.js")}"></script>' for name in SCRIPTS)
