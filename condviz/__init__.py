"""Conditional sentence similarity: how alike two sentences are with respect to a condition.

Example:
    >>> import condviz
    >>> model = condviz.load("bi-encoder")
    >>> model.score(["A man surfs."], ["A woman skis."], ["the sport"])
"""

from condviz.methods import METHODS
from condviz.registry import list_models, load
from condviz.version import __version__

__all__ = ["METHODS", "__version__", "list_models", "load"]
