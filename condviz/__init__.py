"""Conditional sentence similarity: how alike two sentences are with respect to a condition.

Example:
    >>> import condviz
    >>> model = condviz.load("bi-encoder")
    >>> model.score(["A man surfs."], ["A woman skis."], ["the sport"])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from condviz.analysis.compare import compare as compare
    from condviz.analysis.errors.findings import find_errors as find_errors
    from condviz.analysis.groups import cross_table as cross_table
    from condviz.analysis.groups import group_by as group_by
    from condviz.analysis.links import predict_links as predict_links
    from condviz.analysis.maps import build_map as build_map
    from condviz.analysis.search import search as search
    from condviz.analysis.sorting import find_twins as find_twins
    from condviz.analysis.sorting import rank_sorting_conditions as rank_sorting_conditions
    from condviz.analysis.words import read_words as read_words
    from condviz.data.kg_formats import load_graph as load_graph
    from condviz.data.pairs import read_pairs as read_pairs
    from condviz.data.tables import read_table as read_table
    from condviz.evaluation.csts import evaluate as evaluate
    from condviz.methods import METHODS as METHODS
    from condviz.models.registry import describe as describe
    from condviz.models.registry import list_models as list_models
    from condviz.models.registry import load as load
    from condviz.store.build import append_store as append_store
    from condviz.store.build import build_store as build_store
    from condviz.store.disk import open_store as open_store
    from condviz.training.trainer import train as train

_NAMES = {
    "analysis.compare": "compare",
    "analysis.errors.findings": "find_errors",
    "analysis.groups": "cross_table group_by",
    "analysis.links": "predict_links",
    "analysis.maps": "build_map",
    "analysis.search": "search",
    "analysis.sorting": "find_twins rank_sorting_conditions",
    "analysis.words": "read_words",
    "data.kg_formats": "load_graph",
    "data.pairs": "read_pairs",
    "data.tables": "read_table",
    "evaluation.csts": "evaluate",
    "methods": "METHODS",
    "models.registry": "describe list_models load",
    "store.build": "append_store build_store",
    "store.disk": "open_store",
    "training.trainer": "train",
}
_PLACES = {name: f"condviz.{place}" for place, names in _NAMES.items() for name in names.split()}
"""Where each public name lives. Torch takes seconds and 200 MB to import: it is loaded with what needs it."""
__all__ = ["__version__", *_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (as PEP 562 has it)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
