"""Results that pages show before any model has loaded: stored by `benchmarks.first_screen`, sent with the page."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from condviz.errors import CondvizError
from condviz.models import registry
from condviz.types import ModelInfo, Result
from condviz.ui.markup import read_asset

Stored = TypeVar("Stored", bound=Result)


def read_first(kind: type[Stored], page: str, model: str) -> Stored | None:
    """Return the stored result of a page; None where it is damaged, or belongs to another model than `model`."""
    content = read_asset(f"{page}_screen.json")
    try:
        return unpack(kind, content["result"]) if content["model"] == model else None
    except (CondvizError, AttributeError, KeyError, TypeError, ValueError):
        return None


def unpack(kind: Any, content: Any) -> Any:  # noqa: ANN401 - the type of a field, its JSON, its value
    """Return what `benchmarks.first_screen` packed, by its type; raises CondvizError if its model is not here."""
    if kind is ModelInfo:
        return replace(registry.describe(content["name"]), revision=content["revision"])
    if get_origin(kind) in (Union, UnionType):
        return None if content is None else unpack(next(x for x in get_args(kind) if x is not NoneType), content)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{one.name: unpack(hints[one.name], content[one.name]) for one in fields(kind)})
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        return tuple(unpack(parts[0 if parts[-1] is ... else place], one) for place, one in enumerate(content))
    return np.array(content, dtype=np.float32) if kind is np.ndarray else content
