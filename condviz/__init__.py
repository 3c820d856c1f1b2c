"""Conditional sentence similarity: how alike two sentences are with respect to a condition.

Example:
    >>> import condviz
    >>> model = condviz.load("bi-encoder")
    >>> model.score(["A man surfs."], ["A woman skis."], ["the sport"])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from condviz.version import __version__

if TYPE_CHECKING:
    from condviz.analysis.compare import compare
    from condviz.analysis.errors.findings import find_errors
    from condviz.analysis.groups import cross_table, group_by
    from condviz.analysis.links import predict_links
    from condviz.analysis.maps import build_map
    from condviz.analysis.search import search
    from condviz.analysis.sorting import find_twins, rank_sorting_conditions
    from condviz.analysis.words import read_words
    from condviz.data.tables import read_pairs, read_table
    from condviz.evaluation.csts import evaluate
    from condviz.methods import METHODS
    from condviz.models.registry import describe, list_models, load
    from condviz.store.build import append_store, build_store
    from condviz.store.disk import open_store
    from condviz.training.trainer import train

__all__ = [
    "METHODS",
    "__version__",
    "append_store",
    "build_map",
    "build_store",
    "compare",
    "cross_table",
    "describe",
    "evaluate",
    "find_errors",
    "find_twins",
    "group_by",
    "list_models",
    "load",
    "open_store",
    "predict_links",
    "rank_sorting_conditions",
    "read_pairs",
    "read_table",
    "read_words",
    "search",
    "train",
]
_PLACES = {
    "METHODS": "condviz.methods",
    "append_store": "condviz.store.build",
    "build_map": "condviz.analysis.maps",
    "build_store": "condviz.store.build",
    "compare": "condviz.analysis.compare",
    "cross_table": "condviz.analysis.groups",
    "describe": "condviz.models.registry",
    "evaluate": "condviz.evaluation.csts",
    "find_errors": "condviz.analysis.errors.findings",
    "find_twins": "condviz.analysis.sorting",
    "group_by": "condviz.analysis.groups",
    "list_models": "condviz.models.registry",
    "load": "condviz.models.registry",
    "open_store": "condviz.store.disk",
    "predict_links": "condviz.analysis.links",
    "rank_sorting_conditions": "condviz.analysis.sorting",
    "read_pairs": "condviz.data.tables",
    "read_table": "condviz.data.tables",
    "read_words": "condviz.analysis.words",
    "search": "condviz.analysis.search",
    "train": "condviz.training.trainer",
}
"""Where each public name lives. Torch takes seconds and 200 MB to import: it is loaded with what needs it."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 (as PEP 562 has it)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
