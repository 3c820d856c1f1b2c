"""Rows of every kind of file and of what Python holds, as the texts that they were, one at a time."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import IO, Any, cast

from condviz.data.tables.encodings import WINDOWS, find_encoding, read_lines
from condviz.data.tables.report import MAX_CELL_CHARACTERS, Place, Report, is_missing
from condviz.errors import DataError, first_line, require

Record = dict[str, str]
"""Column -> cell."""
Rows = Iterator[tuple[Place, Record]]

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "an upright bar"}
MAX_COLUMNS = 1_000
KNOWN_NAMES = frozenset(["sentence1", "sentence2", "condition", "label", "text", "sentence", "rating", "gold", "id"])
"""Names that only a header has."""
_SAMPLED = 50
_BATCH = 4096
_INVISIBLE = " \t\r\n\ufeff\u200b\u200c\u200d\u2060\xa0"
_LONG_NAME = 64
_VALUE = re.compile(r"[+-]?[\d.,:/ -]*\d[\d.,:/ %-]*")
_SEP = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """What the person who gives a table says about it; blank and None are found out.

    Attributes:
        header: Whether the first row names the columns.
        separator: One character.
        encoding: As Python names it.
        names: Names of the columns of a file without a header, as far as they go.
    """

    header: bool | None = None
    separator: str = ""
    encoding: str = ""
    names: tuple[str, ...] = ()


def fold_name(name: str) -> str:
    """Return the name of a column for comparisons: case, blanks around it and what cannot be seen do not count."""
    plain = unicodedata.normalize("NFKC", name).strip(_INVISIBLE).casefold()
    return plain.translate(dict.fromkeys(map(ord, _INVISIBLE[4:])))


# ---- text files ------------------------------------------------------------------------------------------------------
def read_text(name: str, file: IO[bytes] | IO[str], report: Report, form: Form, ending: str) -> Rows:
    """Yield (line or None, record) of a text file by the ending of its name; without one, by how it begins."""
    encoding = "" if isinstance(file, io.TextIOBase) else find_encoding(name, cast("IO[bytes]", file), form.encoding)
    report.encoding = encoding
    if encoding == WINDOWS and not form.encoding:
        report.remarks.append(
            f"{name} is not UTF-8; it was read as Windows-1252 (Latin-1). Check the accents; if they are wrong, name "
            "its encoding: --encoding (encoding=)."
        )
    lines = read_lines(name, file, encoding)
    if ending not in _BY_ENDING:
        start = list(islice(lines, 1))
        lines = chain(start, lines)
        ending = ".json" if re.match(r'\s*(\{\s*"|\[\s*[\[{])', "".join(start)[:200]) else ".csv"
    report.format = ending[1:]
    yield from _BY_ENDING[ending](name, lines, report, form)


def read_cells(
    lines: Iterator[str],
    separator: str,
    reject: Callable[[int, str, str], None],
    *,
    first: int = 1,
    quoted: bool = True,
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of CSV; a line that breaks its rules is rejected, and reading goes on with the next one."""
    source, line = _Lines(lines), first
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(source, delimiter=separator, strict=True, quoting=quoting)
    while True:
        try:
            yield line, next(reader)
            line += len(source.taken)
            source.taken.clear()
        except StopIteration:
            return
        except csv.Error as error:
            fault = f"cannot be read ({error}). Look for a double quote that is not closed, or not doubled inside a "
            fault += f"quoted text, and for a cell of more than {MAX_CELL_CHARACTERS:,} characters."
            reject(line, fault, source.taken[0].rstrip("\r\n"))
            source.give_back()
            line += 1


def _parse(sample: Sequence[str], separator: str) -> list[list[str]]:
    return [cells for _, cells in read_cells(iter(sample), separator, lambda *_: None) if cells]


class _Lines:
    """Lines of which all but the first that were taken can be given back."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._waiting, self.taken = lines, deque[str](), list[str]()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self.taken.append(self._waiting.popleft() if self._waiting else next(self._lines))
        return self.taken[-1]

    def give_back(self) -> None:
        self._waiting.extendleft(reversed(self.taken[1:]))
        self.taken.clear()


def _read_csv(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    sample, first = list(islice(lines, _SAMPLED)), 1
    separator = form.separator
    while sample and ((told := _SEP.fullmatch(sample[0])) or not sample[0].strip(" \t\r\n,;|")):
        separator = separator or (told[1] if told else "")
        sample.pop(0)
        first += 1
    report.separator = separator = separator or find_separator(sample)
    columns = _find_columns(name, _parse(sample, separator), report, form)
    number = -1 if report.header else 0

    def refuse(line: int, fault: str, content: str | Sequence[str], *, new: bool = True) -> None:
        nonlocal number
        number += new
        if report.header and not number:  # which row names the columns then would be a guess
            raise DataError(f"{name}: line {line:,} {fault}")
        report.reject(Place(number, line, name), f"Row {number:,} (line {line:,}) {fault}", content)

    for line, cells in read_cells(chain(sample, lines), separator, refuse, first=first):
        number += 1
        if not number:
            continue
        if not cells:
            yield Place(number, line, name), {}
        elif len(columns) <= len(cells) and not any(cells[len(columns) :]):
            yield Place(number, line, name), dict(zip(columns, cells, strict=False))
        else:
            advice = f"Put texts that contain {SEPARATORS.get(separator, repr(separator))} in double quotes."
            advice = "It may be cut off." if len(cells) < len(columns) else advice
            row = "header" if report.header else "first row"
            count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            refuse(line, f"has {count}, but the {row} has {len(columns)}. {advice}", cells, new=False)


def _find_columns(name: str, rows: Sequence[Sequence[str]], report: Report, form: Form) -> list[str]:
    """Return the names of the columns, and note whether the first of these rows has them."""
    first = [cell.strip(_INVISIBLE) for cell in rows[0]] if rows else []
    report.header = form.header
    if form.header is None:
        report.header, report.doubt = _is_header(first, rows[1:11])
    if not report.header:
        names = form.names[: len(first)]
        first = [*names, *(f"column_{number}" for number in range(len(names) + 1, len(first) + 1))]
    while len(first) > 1 and not first[-1]:  # what a spreadsheet adds; its cells must be blank
        first.pop()
    if len(first) > MAX_COLUMNS:
        raise DataError(f"{name} has {len(first):,} columns, and at most {MAX_COLUMNS:,} are read. Leave some out.")
    columns = check_names(name, [cell or f"column_{number}" for number, cell in enumerate(first, start=1)])
    report.columns |= dict.fromkeys(columns)
    return columns


def check_names(name: str, columns: Sequence[str]) -> list[str]:
    """Return the names of columns; raises DataError where two are the same."""
    if repeated := [column for index, column in enumerate(columns) if column in columns[:index]]:
        raise DataError(f"{name} has two columns called {repeated[0]!r}. Rename or remove one.")
    return list(columns)


def _is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first row names the columns, and what to tell where that is in doubt."""
    shown, known = (
        ", ".join(" ".join(cell.split())[:30] or "(blank)" for cell in first[:5]),
        len(KNOWN_NAMES & {*map(fold_name, first)}),
    )
    odd = [cell for cell in first if len(cell) > _LONG_NAME or _VALUE.fullmatch(cell) or cell.endswith((".", "!"))]
    if (odd and known < 2) or not any(first) or (len(first) == 1 and " " in first[0]):
        return False, f"The first row ({shown}) was taken as a row, not as names. Otherwise: --header (header=True)."
    numbers = any(all(map(_VALUE.fullmatch, column)) for column in zip(*others, strict=False))
    if (known or numbers) and not odd:
        return True, ""
    return True, f"The first row ({shown}) was taken as names of columns. If it is a row: --no-header (header=False)."


def find_separator(sample: Sequence[str]) -> str:
    """Choose what gives most known names, then equal rows, then most columns; in quotes, a separator does not count."""

    def fit(separator: str) -> tuple[int, bool, float, int]:
        rows = _parse(sample, separator)[:20] or [[]]
        width, equal = len(rows[0]), sum(len(cells) == len(rows[0]) for cells in rows) / len(rows)
        return len(KNOWN_NAMES & {*map(fold_name, rows[0])}), width > 1, equal, width

    best = max(SEPARATORS, key=fit)
    return best if fit(best)[1] else "\t"


def _read_txt(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    for number, line in enumerate(lines, start=1):
        yield Place(number, number, name), {"text": line.rstrip("\r\n")}


def _read_jsonl(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    filled = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    for row, (number, line) in enumerate(filled, start=1):
        place = Place(row, number, name)
        try:
            record = _to_record(_loads(line.strip()))
        except (ValueError, RecursionError) as error:
            what = f"{str(error)[:80]}. Each line has to be one object in JSON, or a text."
            report.reject(place, f"{str(place).capitalize()}: {what}", line.rstrip("\r\n"))
        else:
            yield place, record


def _read_json(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    text = "".join(lines)
    try:
        value = _loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{") and len(text.strip().splitlines()) > 1:
            yield from _read_jsonl(name, io.StringIO(text, newline=""), report, form)
            return
        raise DataError(f"{name} is not JSON: {str(error)[:80]}. Give a list of objects.") from error
    yield from read_memory(value, name, report)


_loads = partial(json.loads, parse_int=str, parse_float=str, parse_constant=str)
"""Numbers stay as they are written."""
_BY_ENDING = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".tab": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".txt": _read_txt,
}


# ---- columns of Arrow, and what Python holds -------------------------------------------------------------------------
def read_arrow(name: str, file: IO[bytes], report: Report) -> Rows:
    """Yield the rows of a Parquet, Arrow or Feather file, by how it begins."""
    arrow, parquet = require("pyarrow", "search"), require("pyarrow.parquet", "search")
    file.seek(0)
    report.format = "parquet" if file.read(4) == b"PAR1" else "arrow"
    file.seek(0)
    try:
        if report.format == "parquet":
            batches = parquet.ParquetFile(file).iter_batches(batch_size=_BATCH)
        else:
            reader = arrow.ipc.open_file(file)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        for row, record in enumerate(_arrow_records(name, batches), start=1):
            yield Place(row, None, name), record
    except (arrow.ArrowException, OSError) as error:
        kind = "Parquet" if report.format == "parquet" else "Arrow"
        raise DataError(f"{name} is no {kind} file, or is damaged: {first_line(error)[:100]}") from error


def _arrow_records(name: str, batches: Iterable[Any]) -> Iterator[Record]:
    """Yield the rows of Arrow's tables or batches; single floats as the few digits that say which they are."""
    for batch in batches:
        batch.validate(full=True)  # a damaged file could make Arrow read outside of its memory
        columns = check_names(name, batch.schema.names)
        short = [str(column.type) in ("float", "halffloat") for column in batch.columns]
        cells = (c.cast("string") if few else c for c, few in zip(batch.columns, short, strict=True))
        for row in zip(*(column.to_pylist() for column in cells), strict=True):
            yield {column: to_text(cell) for column, cell in zip(columns, row, strict=True)}


def _in_memory(source: Any, name: str) -> Iterable[Any] | None:  # noqa: ANN401
    """Return the records of data frames, datasets, Arrow's tables, columns by name, or any iterable; None of others."""
    if hasattr(source, "itertuples"):  # pandas
        columns = check_names(name, [str(column).strip(_INVISIBLE) for column in source.columns])
        # As numpy's own numbers, single floats keep the few digits that say which they are.
        cells = (one.to_numpy() if one.dtype == "float32" else one for _, one in source.items())
        return (dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True))
    if isinstance(source, Mapping):
        return _by_column(name, source)
    if hasattr(source, "with_format"):  # a datasets.Dataset, also one of a stream
        return _arrow_records(name, source.with_format("arrow").iter(_BATCH))
    if hasattr(source, "collect_schema"):  # polars, also lazy
        source = source.lazy().collect()
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "name"):  # a column alone is a list of texts
        return _arrow_records(name, require("pyarrow", "search").RecordBatchReader.from_stream(source))
    return source if isinstance(source, Iterable) and not isinstance(source, str | bytes) else None


def read_memory(source: Any, name: str, report: Report) -> Rows:  # noqa: ANN401
    """Yield the rows of what Python holds: see `_in_memory`."""
    report.format = report.format or "memory"
    found = _in_memory(source, name)
    if found is None:
        raise _no_table(source)
    for row, record in enumerate(found, start=1):
        try:
            yield Place(row, None, name), _to_record(record)
        except ValueError:
            raise _no_table(source) from None


def _by_column(name: str, source: Mapping[str, Any]) -> Iterator[Record]:
    if any(hasattr(values, "column_names") for values in source.values()):
        raise DataError(f"{name} has the parts {', '.join(map(str, source))}. Pass one of them.")
    if not all(isinstance(v, Iterable) and not isinstance(v, str | bytes | Mapping) for v in source.values()):
        raise DataError(f"{name} is one record. Put records into a list, or give a list of cells for each column.")
    columns = {str(column): list(values) for column, values in source.items()}
    if len({len(values) for values in columns.values()}) > 1:
        told = ", ".join(f"{column}: {len(values):,}" for column, values in columns.items())
        raise DataError(f"{name} has columns of different lengths ({told}). Give columns of equal length.")
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def _to_record(value: Any) -> Record:  # noqa: ANN401
    """Return a record as texts; a text alone is one, raises ValueError for what is none."""
    if isinstance(value, str):
        return {"text": value}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if not isinstance(value, Mapping):
        raise ValueError(f"This is a {type(value).__name__}")
    return {str(column): to_text(cell) for column, cell in value.items()}


def text_of(cell: str, field: str) -> str:
    """Return a cell that is read as text, "" where it is missing; raises DataError for a list or a record."""
    if isinstance(cell, Nested):
        raise DataError(f"{field[:1].upper()}{field[1:]} holds {cell[:40]!r}, a list or a record; a text is expected.")
    return "" if is_missing(cell) else cell


def _no_table(source: object) -> DataError:
    kind = type(source).__name__
    return DataError(f"Pass a table as a path, an open file, records, columns or a data frame, got {kind}.")


class Nested(str):
    """A list or a record as JSON: kept, but no text to be read by a model."""


def to_text(value: Any) -> str:  # noqa: ANN401
    """Return a cell as text: nothing for None and NaN, JSON for lists and records, else what Python writes."""
    if isinstance(value, str):
        return value if isinstance(value, Nested) else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # numpy, whose floats may have fewer digits than Python's
        is_float = not value.ndim and str(value.dtype).startswith("float")
        value = str(value) if is_float else value.tolist()
        return to_text("" if value == "nan" else value)
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        value = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return Nested(json.dumps(value, ensure_ascii=False, default=to_text))
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    text = "" if value is None else str(value)
    return "" if text in ("nan", "NaN", "NaT", "<NA>") else text
