"""Tables that people bring: one reader for every kind of them, a report of what it decided; and how one is written."""

from __future__ import annotations

import io
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_doc import Doc

from condviz.data.files import find_files
from condviz.data.tables.formats import Form, read_file
from condviz.data.tables.memory import Rows, read_memory
from condviz.data.tables.report import Kind as Kind
from condviz.data.tables.report import Place, Report, find_fault, format_rows
from condviz.data.tables.report import kind_of as kind_of
from condviz.data.tables.report import to_number as to_number
from condviz.data.texts import plain_cell
from condviz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MAX_TABLE_BYTES = 50 * 1024 * 1024
"""The largest C-STS split has about 3 MB."""
MAX_ROWS, MAX_CELLS = 500_000, 5_000_000
"""A file within the limit of bytes can still hold millions of empty cells, which take far more memory than the file."""

# What can be said about any table, by whatever function reads it.
Header = Annotated[bool | None, Doc("Whether the first row of a CSV file names the columns (default: detected)")]
Separator = Annotated[str, Doc("Of the columns of a CSV file: a character, or tab (default: detected)")]
Encoding = Annotated[str, Doc("Of a text file, as gbk (default: detected)")]
SkipBad = Annotated[bool, Doc("Leave out rows that cannot be used, and say which, instead of stopping at the first")]


@dataclass(frozen=True)
class Table:
    """A table of any columns.

    Attributes:
        rows: All cells as the texts that they were; "" where a format says that there is nothing.
        places: Where each row was; empty where it was made by hand.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    report: Report = field(default_factory=Report, compare=False)
    places: tuple[Place, ...] = field(default=(), compare=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, for instance about the character encoding; a sentence each."""
        return self.report.notes

    def place(self, index: int) -> Place:
        """Return where the row at this position was."""
        return self.places[index] if self.places else Place(index + 1)

    def record(self, index: int) -> dict[str, str]:
        """Return the row at this position by column."""
        return dict(zip(self.columns, self.rows[index], strict=True))

    def column(self, name: str) -> list[str]:
        """Return the cells of a column."""
        position = self.columns.index(name)
        return [row[position] for row in self.rows]

    def to_frame(self) -> pd.DataFrame:
        """Return the cells as texts."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns), dtype=object)


def read_table(
    source: Any,  # noqa: ANN401
    *,
    header: Header = None,
    separator: Separator = "",
    encoding: Encoding = "",
    skip_bad: SkipBad = False,
    names: tuple[str, ...] = (),
    max_bytes: int | None = MAX_TABLE_BYTES,
) -> Table:
    """Read a table with any columns; every cell stays the text that it was.

    Commas, semicolons, tabs and upright bars separate; UTF-8, UTF-16, UTF-32 and, with a note, Windows-1252 (Latin-1)
    are understood. What was found out is in `Table.report`.

    Args:
        source: A path or folder of CSV, TSV, TXT, JSON, JSONL, Parquet or Arrow files, "-" for standard input, an open
            file; as a text also a URL that fsspec knows and "hf://datasets/OWNER/NAME". From Python a data frame, a
            datasets.Dataset, an Arrow table, records (a list or a generator), or columns by name.
        header, separator, encoding, skip_bad: As the signature says; `Table.report` says what was detected.
        names: Of the columns where there is no header, as far as they go.
        max_bytes: Larger files are refused before they are parsed; None takes any.

    Raises:
        DataError: If the table cannot be read, has no rows, two columns have one name, or a row cannot be used: another
            number of cells than the header, a quote that is not closed, half a character.
        ConfigError: If the separator is more than one character.
    """
    if isinstance(source, Table):
        return source
    report = Report(skip_bad=skip_bad)
    found, places, cells = [], [], 0
    for place, record in read_records(source, report, Form(header, separator, encoding, names), max_bytes):
        cells += len(record)
        if len(found) >= MAX_ROWS or cells > MAX_CELLS:
            raise DataError(
                f"{report.name} has more than {len(found):,} rows of {len(record):,} columns. Allowed are {MAX_ROWS:,} "
                f"rows and {MAX_CELLS:,} cells. Split it, or leave columns out."
            )
        found.append(record)
        places.append(place)
    columns = tuple(report.columns)
    if not found:
        told = f"has a header but no rows. Add at least one row below {', '.join(columns)}."
        told = told if report.header and columns else "is empty. Give a table with names of columns and a row."
        raise report.error(f"{report.name} {'has no row that can be used.' if report.left_out else told}")
    rows = tuple(tuple(record.get(column, "") for column in columns) for record in found)
    return Table(columns, rows, report, tuple(places))


def read_records(source: Any, report: Report, form: Form, max_bytes: int | None = None) -> Rows:  # noqa: ANN401
    """Yield the rows that can be kept, one at a time; blank ones are counted, others rejected. Errors: `read_table`."""
    for place, record in _read_all(source, report, form, max_bytes):
        report.seen = place.row
        if record.keys() != report.columns.keys():
            report.columns |= dict.fromkeys(record)
        faults = ((column, find_fault(cell)) for column, cell in record.items())
        if not any(map(str.strip, record.values())):
            report.blank += 1
        elif bad := next((f", column {column} {fault}" for column, fault in faults if fault), ""):
            report.reject(place, f"{place}{bad}", list(record.values()))
        else:
            yield place, record


def _read_all(source: Any, report: Report, form: Form, max_bytes: int | None) -> Rows:  # noqa: ANN401
    if source == "-" if isinstance(source, str) else hasattr(source, "read"):
        file: Any = sys.stdin.buffer if source == "-" else source
        report.name = "Standard input" if source == "-" else Path(str(getattr(source, "name", report.name))).name
        content = file.read(-1 if max_bytes is None else max_bytes + 1)
        _check_size(report.name, len(content), max_bytes)
        opened = io.StringIO(content, newline="") if isinstance(content, str) else io.BytesIO(content)
        yield from read_file(report.name, opened, report, form)
    elif isinstance(source, str | Path) or hasattr(source, "open"):
        files = find_files(source)
        report.name = files[0].name if len(files) == 1 else str(source).rstrip("/").rpartition("/")[2]
        for path in files:
            try:
                with path.open("rb") as file:
                    _check_size(path.name, file.seek(0, io.SEEK_END), max_bytes)
                    file.seek(0)
                    yield from read_file(path.name, file, report, form)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise DataError(f"{str(path)!r} cannot be read: {reason}. Check the file.") from error
    else:
        yield from read_memory(source, report.name)


def _check_size(name: str, size: int, max_bytes: int | None) -> None:
    if max_bytes is not None and size > max_bytes:
        raise DataError(f"{name} is larger than {max_bytes / 2**20:.3g} MB, which is the limit here. Split it.")


def list_names(columns: Sequence[str]) -> str:
    """Return the first ten names of columns for a message."""
    shown = ", ".join(" ".join(column.split())[:40] for column in columns[:10])
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")


def to_csv(frame: pd.DataFrame, *, as_given: Collection[str] = (), float_format: str = "") -> str:
    """Format a table as CSV that no spreadsheet runs as formulas: names of columns and cells of text are guarded.

    Cells of the columns `as_given` are those of the input, and leave as they came; `float_format` is one as "%.9g".
    """

    def cell(value: Any) -> str:  # noqa: ANN401
        if isinstance(value, str):
            return plain_cell(value)
        if value is None or value != value:
            return ""
        return float_format % value if float_format and isinstance(value, float) else str(value)

    columns = [list(frame[name]) if name in as_given else list(map(cell, frame[name])) for name in frame.columns]
    return format_rows([[plain_cell(str(name)) for name in frame.columns], *zip(*columns, strict=True)])
