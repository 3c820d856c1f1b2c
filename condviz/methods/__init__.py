"""Every method, by name. A class is imported, and torch with it, only when it is asked for.

To add a method: a file in this folder, and an entry in catalog.py; or a file anywhere that calls `register`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from condviz.methods.catalog import CATALOG, Method

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer
    from condviz.methods.encoders import ConditionalEncoder, SeparableEncoder
    from condviz.methods.routing import RoutedEncoder

__all__ = [
    "CATALOG",
    "METHODS",
    "ConditionalEncoder",
    "ConditionalScorer",
    "Method",
    "RoutedEncoder",
    "SeparableEncoder",
    "register",
]


class Methods(Mapping[str, "type[ConditionalScorer]"]):
    """The classes of the methods in `CATALOG`, by name."""

    def __init__(self) -> None:
        self._classes: dict[str, type[ConditionalScorer]] = {}

    def __getitem__(self, name: str) -> type[ConditionalScorer]:
        if name not in self._classes:
            module, _, attribute = CATALOG[name].module.partition(":")
            self._classes[name] = getattr(import_module(module), attribute)
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in CATALOG

    def __iter__(self) -> Iterator[str]:
        return iter(CATALOG)

    def __len__(self) -> int:
        return len(CATALOG)


METHODS = Methods()


def register(method: type[ConditionalScorer]) -> type[ConditionalScorer]:
    """Add a method from outside of this package; usable as a decorator of its class.

    Raises:
        ValueError: If another class has the name already.
    """
    known = METHODS._classes.get(method.name)
    if known is not method and method.name in CATALOG:
        raise ValueError(f"There is a method {method.name!r} already. Choose another name.")
    CATALOG[method.name], METHODS._classes[method.name] = method.about, method
    return method


def __getattr__(name: str) -> Any:  # noqa: ANN401 (as PEP 562 has it)
    places = {entry.module.partition(":")[2]: entry.module.partition(":")[0] for entry in CATALOG.values()}
    places |= dict.fromkeys(("ConditionalEncoder", "SeparableEncoder"), f"{__name__}.encoders")
    places |= {"ConditionalScorer": f"{__name__}.base", "RoutedEncoder": f"{__name__}.routing"}
    if name not in places:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(places[name]), name)
