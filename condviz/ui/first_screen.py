"""Results as JSON and back, by the types of their fields; and those that pages show before any model has loaded."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Return what `benchmarks.first_screen` stored for a page; None where it is damaged, or of another model."""
    content = read_asset(f"{page}_screen.json")
    try:
        return unpack(kind, content["result"]) if content["model"] == model else None
    except (CondvizError, AttributeError, KeyError, TypeError, ValueError):
        return None


def pack(value: Any) -> Any:  # noqa: ANN401 - a field of a result
    """Return a result as JSON, field by field: numbers with six digits, a model by its name and revision."""
    if isinstance(value, ModelInfo):
        return {"name": value.name, "revision": value.revision}
    if is_dataclass(value):
        return {one.name: pack(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: pack(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | float):
        array = np.asarray(value)
        return (np.float64(array).round(6) if array.dtype.kind == "f" else array).tolist()
    return [pack(item) for item in value] if isinstance(value, tuple | list) else value


def unpack(kind: Any, content: Any) -> Any:  # noqa: ANN401 - the type of a field, its JSON, its value
    """Return what `pack` made, by its type; raises CondvizError if its model is not here."""
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
    if get_origin(kind) is Mapping:
        return {key: unpack(get_args(kind)[1], item) for key, item in content.items()}
    if kind is not np.ndarray:
        return content
    array = np.array(content)
    return array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
