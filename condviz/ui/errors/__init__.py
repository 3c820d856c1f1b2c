"""The Errors tab."""

from condviz.ui.errors.tab import TAB

__all__ = ["TAB"]
