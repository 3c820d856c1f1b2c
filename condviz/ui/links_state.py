"""The state of the Links tab, and its form as a query string: what a link restores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from condviz.ui.link import read_link, write_link

TAB = "links"
COUNTS = (10, 25, 50, 100)
"""How many answers can be shown."""
MAX_VALUE = 300
"""Characters of a value that a link carries; ids of entities are far shorter."""
_TEXTS = {"graph": "lg", "model": "lm", "entity": "le", "relation": "lr"}


@dataclass(frozen=True)
class LinksState:
    """What is asked.

    Attributes:
        graph: Key of a graph, for instance "everyday".
        model: Name of a model.
        entity: Id of the entity that is asked about.
        relation: Id of the relation.
        inverse: Ask for heads: which entities have this relation to the entity.
        count: How many answers are shown; one of `COUNTS`.
    """

    graph: str = ""
    model: str = ""
    entity: str = ""
    relation: str = ""
    inverse: bool = False
    count: int = COUNTS[0]

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON, for gr.State."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> LinksState:
        """Read what `to_dict` wrote."""
        names = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in (data or {}).items() if key in names})

    def change(self, **changes: Any) -> LinksState:  # noqa: ANN401 - any field
        """Give a copy with some fields changed."""
        return replace(self, **changes)

    def to_query(self) -> str:
        """Give the state as a query string without "?"; `from_query` reads it back."""
        pairs = [(key, getattr(self, name)) for name, key in _TEXTS.items()]
        pairs += [("li", "1")] if self.inverse else []
        pairs += [("lk", str(self.count))] if self.count != COUNTS[0] else []
        return write_link(TAB, [(key, value) for key, value in pairs if value])


def from_query(query: str) -> LinksState | None:
    """Read a state from the query string of the page, however damaged; None if it is not a link to this tab."""
    found = read_link(TAB, query)
    if found is None:
        return None
    texts = {name: found.get(key, "")[:MAX_VALUE] for name, key in _TEXTS.items()}
    counts = {str(count): count for count in COUNTS}
    return LinksState(**texts, inverse=found.get("li") == "1", count=counts.get(found.get("lk", ""), COUNTS[0]))
