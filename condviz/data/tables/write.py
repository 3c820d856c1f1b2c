"""Write tables: cells of the input as they came, and what was computed beside them."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from condviz.data.texts import plain_cell

if TYPE_CHECKING:
    import pandas as pd


def format_rows(rows: Iterable[Sequence[str]]) -> str:
    """Format rows of cells as CSV, each with a line feed at its end."""
    lines: list[str] = []
    # Python's own end of line, which is cut off again, so that cells with either half of it are quoted.
    csv.writer(cast("Any", SimpleNamespace(write=lines.append))).writerows(rows)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def to_csv(frame: pd.DataFrame, *, as_given: Collection[str] = (), float_format: str = "") -> str:
    """Format a table as CSV that no spreadsheet runs as formulas: names of columns and cells of text are guarded.

    Args:
        frame: Any table.
        as_given: Columns whose cells are those of the input: they leave as they came.
        float_format: Such as "%.9g"; "" for all digits.
    """

    def cell(value: Any) -> str:  # noqa: ANN401
        if isinstance(value, str):
            return plain_cell(value)
        if value is None or value != value:
            return ""
        return float_format % value if float_format and isinstance(value, float) else str(value)

    columns = [list(frame[name]) if name in as_given else list(map(cell, frame[name])) for name in frame.columns]
    return format_rows([[plain_cell(str(name)) for name in frame.columns], *zip(*columns, strict=True)])
