"""Read tables of sentence pairs that people bring, and write them back with scores."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from condviz.data.files import read_upload
from condviz.data.texts import check_condition, check_sentence, plain_cell
from condviz.errors import DataError
from condviz.types import Pair

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

TEXT_COLUMNS = ("sentence1", "sentence2", "condition")
LABEL_COLUMN = "label"
LABEL_RANGE = (1.0, 5.0)
HIDDEN_LABEL = -1.0
"""C-STS: the label of test rows whose rating is kept secret."""
MAX_TABLE_BYTES = 50 * 1024 * 1024
"""The largest C-STS split has about 3 MB."""
MAX_ROWS, MAX_COLUMNS, MAX_CELLS = 500_000, 1_000, 5_000_000
"""A file within the limit of bytes can still hold millions of empty cells, which take far more memory than the file."""

_DELIMITERS = ",;\t|"
_MISSING = {"", "nan", "NaN", "<NA>"}


@dataclass(frozen=True)
class TextTable:
    """A table of any columns.

    Attributes:
        columns: Their names, as in the file.
        rows: All cells as text.
        notes: What the reader should know, for instance about the character encoding.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the cells as texts."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns), dtype=object)


@dataclass(frozen=True)
class PairTable(TextTable):
    """A table of sentence pairs.

    Attributes:
        pairs: One per row, in the order of the file; the label is None where it is blank or hidden.
    """

    pairs: tuple[Pair, ...] = ()


def read_pairs(
    source: str | Path | IO[bytes] | IO[str] | pd.DataFrame, *, max_bytes: int = MAX_TABLE_BYTES
) -> PairTable:
    """Read a CSV or TSV file, or a data frame, with the columns sentence1, sentence2, condition and, optionally, label.

    Commas, semicolons, tabs and upright bars separate; UTF-8, UTF-16, UTF-32 and, with a note, Windows-1252 (Latin-1)
    are understood. Other columns are kept. Rows are counted from 1, without the header.

    Args:
        source: A path, "-" for standard input, an open file, or a data frame.
        max_bytes: Larger files are refused before they are parsed.

    Raises:
        DataError: If the file cannot be read, is no such table, or a cell is not usable: blank text, control
            characters, a label that is no number from 1 to 5 (-1 stands for a hidden label). Names row and column.
    """
    if hasattr(source, "itertuples"):
        texts = source.astype(object).where(source.notna(), "").map(str)
        records = ((None, list(row)) for row in texts.itertuples(index=False, name=None))
        # In one cell, "3,5" can be nothing but a number with a decimal comma, as in files that semicolons separate.
        opened = _Opened("The table", tuple(str(name).strip() for name in source.columns), records, ";", [])
    else:
        opened = _open(source, max_bytes, f"It needs the columns {_wanted()}.")
    positions = _find_columns(opened.name, opened.columns)
    checks = {"sentence1": check_sentence, "sentence2": check_sentence, "condition": check_condition}
    pairs, rows = [], []
    for place, cells in opened.rows():
        found = {column: cells[position] for column, position in positions.items()}
        label = found.pop(LABEL_COLUMN, "")
        try:
            for column, check in checks.items():
                text = "" if found[column].strip() in _MISSING else found[column]
                found[column] = check(text, f"{place}, column {column}")
            pairs.append(Pair(**found, label=_label(place, label, opened.delimiter != ",")))
        except DataError as error:
            raise DataError(f"{opened.name}: {error}") from error
        rows.append(tuple(cells))
    return PairTable(opened.columns, tuple(rows), tuple(opened.notes), tuple(pairs))


def read_table(source: str | Path | IO[bytes] | IO[str], *, max_bytes: int = MAX_TABLE_BYTES) -> TextTable:
    """Read a CSV or TSV file with any columns; its form as in `read_pairs`.

    Args:
        source: A path, "-" for standard input, or an open file.
        max_bytes: Larger files are refused before they are parsed.

    Raises:
        DataError: If the file cannot be read, is no table, has no rows, or two columns have one name.
    """
    opened = _open(source, max_bytes, "Its first line must name the columns.")
    repeated = [column for index, column in enumerate(opened.columns) if column in opened.columns[:index]]
    if repeated:
        raise DataError(f"{opened.name} has two columns called {repeated[0]!r}. Rename or remove one.")
    rows = tuple(tuple(cells) for _, cells in opened.rows())
    return TextTable(opened.columns, rows, tuple(opened.notes))


def read_release(path: Path, needed: Iterable[str], *, advice: str) -> list[tuple[str, dict[str, str]]]:
    """Read a file that the owners of a corpus published.

    Args:
        path: CSV or TSV file.
        needed: Columns that must be there.
        advice: What to do if the file is missing, for the message.

    Returns:
        For each row its place, for messages, and column -> cell.

    Raises:
        DataError: If the file is missing, damaged or cut off, or has other columns.
    """
    if not path.is_file():
        raise DataError(f"{path} cannot be read: No such file or directory. {advice}")
    try:
        table = read_table(path)
    except DataError as error:
        raise DataError(f"{path} is damaged: {error} Restore the file of the release.") from error
    if missing := sorted(set(needed) - set(table.columns)):
        raise DataError(f"{path} has no column {', '.join(missing)}, only: {_list(table.columns)}. Restore the file.")
    return [
        (f"{path}, row {number}", dict(zip(table.columns, cells, strict=True)))
        for number, cells in enumerate(table.rows, start=1)
    ]


def to_csv(frame: pd.DataFrame, *, float_format: str | None = None) -> str:
    """Format a table as CSV that no spreadsheet runs as formulas: names of columns and cells of text are guarded."""
    guarded = frame.map(lambda cell: plain_cell(cell) if isinstance(cell, str) else cell)
    return guarded.set_axis([plain_cell(str(name)) for name in frame.columns], axis=1).to_csv(
        index=False, float_format=float_format, lineterminator="\n"
    )


def format_predictions(
    table: PairTable, scores: Mapping[str, np.ndarray], others: Mapping[str, Sequence[float]] = MappingProxyType({})
) -> str:
    """Format the table as CSV with one more column `score_<model>` per model.

    Columns of that name that the table already has, from an earlier run, are replaced. Cells stay as they came, so that
    the file can be scored again; names of columns are guarded against formulas.

    Args:
        table: What was scored.
        scores: Per model, (p,) scores in the order of the rows; not finite ones become blank cells.
        others: Further columns by their names.

    Raises:
        ValueError: If a model has another number of scores than the table has rows.
    """
    # Nine digits restore every float32 exactly.
    added = {f"score_{name}": values for name, values in scores.items()} | dict(others)
    frame = table.to_frame().iloc[:, [index for index, name in enumerate(table.columns) if name not in added]]
    for name, values in added.items():
        frame[name] = [f"{float(value):.9g}" if math.isfinite(value) else "" for value in values]
    frame.columns = [plain_cell(name) for name in frame.columns]
    return frame.to_csv(index=False, lineterminator="\n")


@dataclass
class _Opened:
    """A table whose header has been read."""

    name: str
    columns: tuple[str, ...]
    records: Iterator[tuple[int | None, list[str]]]
    delimiter: str
    notes: list[str]

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield (place for messages, cells); blank rows are left out, which the notes say in the end."""
        number = blank = 0
        for line, cells in self.records:
            if not any(cell.strip() for cell in cells):
                blank += 1
                continue
            number += 1
            if number > min(MAX_ROWS, MAX_CELLS // len(self.columns)):
                raise DataError(
                    f"{self.name} has more than {number - 1:,} rows of {len(self.columns):,} columns. Allowed are "
                    f"{MAX_ROWS:,} rows and {MAX_CELLS:,} cells. Split it, or leave columns out."
                )
            place = f"row {number}" if line is None else f"row {number} (line {line})"
            if len(cells) != len(self.columns):
                spelled = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "an upright bar"}[self.delimiter]
                raise DataError(
                    f"{self.name}: {place} has {len(cells)} cells, but the header has {len(self.columns)}. "
                    f"Put texts that contain {spelled} in double quotes."
                )
            yield place, cells
        if not number:
            columns = ", ".join(self.columns)
            raise DataError(f"{self.name} has a header but no rows. Add at least one row below {columns}.")
        if blank:
            self.notes.append(f"{blank} blank {'row was' if blank == 1 else 'rows were'} left out.")


def _open(source: str | Path | IO[bytes] | IO[str], max_bytes: int, wanted: str) -> _Opened:
    name, text, notes = read_upload(source, max_bytes)
    delimiter = find_delimiter(io.StringIO(text, newline=None))
    records = _records(name, text, delimiter)
    header = next(records, None)
    if header is None:
        raise DataError(f"{name} is empty. {wanted}")
    if len(header[1]) > MAX_COLUMNS:
        raise DataError(f"{name} has {len(header[1]):,} columns, and at most {MAX_COLUMNS:,} are read. Leave some out.")
    return _Opened(name, tuple(cell.strip() for cell in header[1]), records, delimiter, notes)


def find_delimiter(lines: Iterable[str]) -> str:
    """Choose what splits the header into most columns of pairs, then into most columns; a tab where nothing does."""
    first = next((line for line in lines if line.strip()), "")

    def fit(delimiter: str) -> tuple[int, int]:
        cells = {cell.strip(' \n"').casefold() for cell in first.split(delimiter)}
        return len(cells.intersection((*TEXT_COLUMNS, LABEL_COLUMN))), len(cells)

    best = max(_DELIMITERS, key=fit)
    return best if best in first else "\t"


def _records(name: str, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which the record starts, cells); skip empty lines before the header."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line, header_seen = 1, False
    try:
        for cells in reader:
            header_seen = header_seen or any(cell.strip() for cell in cells)
            if header_seen:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{name}: the row that starts on line {line} cannot be read ({error}). "
            "Look for a double quote that is not closed, or not doubled inside a quoted text, and for a cell of more "
            f"than {csv.field_size_limit():,} characters."
        ) from error


def _find_columns(name: str, columns: Sequence[str]) -> dict[str, int]:
    """Return the position of each wanted column; case does not matter."""
    folded = [column.casefold() for column in columns]
    positions: dict[str, int] = {}
    for wanted in (*TEXT_COLUMNS, LABEL_COLUMN):
        count = folded.count(wanted)
        if count > 1:
            raise DataError(f"{name} has {count} columns called {wanted}. Rename or remove all but one.")
        if count:
            positions[wanted] = folded.index(wanted)
    if missing := [wanted for wanted in TEXT_COLUMNS if wanted not in positions]:
        plain = {"".join(filter(str.isalnum, column.casefold())): column for column in columns}
        near = ((get_close_matches(wanted, plain, n=1, cutoff=0.75), wanted) for wanted in missing)
        hints = ", ".join(f"{plain[found[0]]} -> {wanted}" for found, wanted in near if found)
        hint = f"Did you mean {hints}? Rename it." if hints else "Rename the columns that hold them."
        what = f"{name} has no column {', '.join(missing)}"
        raise DataError(f"{what}. Found: {_list(columns)}; wanted: {_wanted()}. {hint}")
    return positions


def _label(place: str, cell: str, comma_decimals: bool) -> float | None:
    cell = cell.strip()
    if cell in _MISSING:
        return None
    try:
        value = float(cell.replace(",", ".") if comma_decimals else cell)
    except ValueError:
        value = math.nan
    if value == HIDDEN_LABEL:
        return None
    low, high = LABEL_RANGE
    if not low <= value <= high:
        raise DataError(
            f"{place.capitalize()}, column {LABEL_COLUMN} must be a number from {low:g} to {high:g}, got {cell[:40]!r}."
            f" Leave it blank, or write {HIDDEN_LABEL:g}, where no rating is known."
        )
    return value


def _list(columns: Sequence[str]) -> str:
    shown = ", ".join(column[:40] or "(no name)" for column in columns[:10])
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")


def _wanted() -> str:
    return f"{', '.join(TEXT_COLUMNS)} and, optionally, {LABEL_COLUMN}"
