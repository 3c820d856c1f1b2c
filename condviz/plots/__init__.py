"""Finished results as pictures: plotly figures and HTML, the same on the page, in reports and in notebooks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from condviz.types import Result

_KINDS = {
    "errors": "ErrorStudy Evaluation",
    "links": "LinkAnswers LinkProfile",
    "maps": "EmbeddingMap",
    "search": "CrossTable Groups Hits Searches SortingConditions Twins",
    "similarity": "Attribution Comparison",
    "svg": "Trained",
    "words": "WordReading",
}
PICTURES = {kind: f"condviz.plots.{module}" for module, kinds in _KINDS.items() for kind in kinds.split()}
"""Module with `to_html(result) -> str`, and perhaps STYLES, stylesheets of its own, for each kind of result."""


def to_html(result: Result) -> str:
    """Render the result of a public function as HTML that stands alone: markup, and the styles that it needs."""
    from condviz.plots.html import with_styles

    names = (kind.__name__ for kind in type(result).__mro__)
    module = import_module(next(PICTURES[name] for name in names if name in PICTURES))
    return with_styles(module.to_html(result), *getattr(module, "STYLES", ()))
