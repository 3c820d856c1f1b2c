"""Bridges to other libraries: sentence-transformers and MTEB. A name imports its library when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from condviz.errors import require

if TYPE_CHECKING:
    from condviz.interop.modules import ConditionalModule, ConditionalSTSEvaluator, to_sentence_transformer
    from condviz.interop.tasks import ConditionalSTS

__all__ = ["ConditionalModule", "ConditionalSTS", "ConditionalSTSEvaluator", "to_sentence_transformer"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (as PEP 562 has it)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    needed, place = ("mteb", "tasks") if name == "ConditionalSTS" else ("sentence_transformers", "modules")
    require(needed, "interop")
    return getattr(import_module(f"{__name__}.{place}"), name)
