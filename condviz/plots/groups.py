"""What a condition does to a corpus, as lists and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from condviz.plots.html import render

if TYPE_CHECKING:
    from condviz.analysis.groups import Groups, SortingConditions, Twins

STYLES = ("search.css",)


def to_html(result: Groups | Twins | SortingConditions) -> Markup:
    """Render groups, pairs, or conditions; each kind has a template of its name."""
    return render(f"search/{type(result).__name__.lower()}.html", result=result)
