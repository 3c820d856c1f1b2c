"""The state of the Errors tab, and its form as a query string: what a link restores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from condviz.analysis.errors.columns import TARGETS
from condviz.ui.link import read_link, write_link

TAB = "errors"
MAX_FILTER = 2000
_KEYS = {"data": "ed", "first": "ea", "second": "eb", "filter": "ef", "sort": "es", "unit": "eu", "target": "et"}
UNITS = ("rows", "items")
SORTS = {
    "error": "largest error",
    "over": "most too similar",
    "under": "most too different",
    "apart": "models furthest apart",
    "row": "order of the file",
}
VIEWS = {"residuals": "Error by score", "against": "One model against the other", "calibration": "Calibration"}
PAGE = 25


@dataclass(frozen=True)
class ErrorsState:
    """What is chosen in the tab.

    Attributes:
        data: Key of the dataset.
        first, second: Names of the models; the second may be "".
        filter: The slice.
        sort: Key of `SORTS`.
        unit: "rows" or "items".
        target: What the slice finder looks for.
        page: Page of the table, from 0.
        row: Position of the opened row, or None.
        brush: Positions selected in the figure; () for none.
        view: Which figure is shown: key of `VIEWS`.
        column: Whose values the leaderboard lists; "" for the best one there is.
    """

    data: str = ""
    first: str = ""
    second: str = ""
    filter: str = ""
    sort: str = "error"
    unit: str = "rows"
    target: str = "over"
    page: int = 0
    row: int | None = None
    brush: tuple[int, ...] = ()
    view: str = "residuals"
    column: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON, for gr.State."""
        return {**asdict(self), "brush": list(self.brush)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> ErrorsState:
        """Read what `to_dict` wrote."""
        names = {field.name for field in fields(cls)}
        known = {key: value for key, value in (data or {}).items() if key in names}
        return cls(**{**known, "brush": tuple(known.get("brush", ()))})

    def change(self, **changes: Any) -> ErrorsState:  # noqa: ANN401 - any field
        """Give a copy with some fields changed."""
        return replace(self, **changes)

    def to_query(self) -> str:
        """Give the state as a query string without "?"; `from_query` reads it back."""
        default = ErrorsState()
        pairs = [
            (key, str(value)) for name, key in _KEYS.items() if (value := getattr(self, name)) != getattr(default, name)
        ]
        return write_link(TAB, pairs)


def from_query(query: str) -> ErrorsState | None:
    """Read a state from the query string of the page, however damaged; None if it is not a link to this tab."""
    found = read_link(TAB, query)
    if found is None:
        return None
    allowed = {"sort": SORTS, "unit": UNITS, "target": TARGETS}
    values = {name: found[key][:MAX_FILTER] for name, key in _KEYS.items() if key in found}
    return ErrorsState(**{name: value for name, value in values.items() if value in allowed.get(name, (value,))})
