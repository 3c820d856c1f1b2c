"""The texts of a corpus, one row at a time, from any table that `condviz.data.tables` reads.

A source is read twice: `read_source` checks every row before hours of encoding begin, and `Source.rows` yields them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from condviz.data.files import ENDINGS, HUB, find_files
from condviz.data.pairs import TEXT_NAMES, check_texts
from condviz.data.tables import Kind, Report, kind_of, to_number
from condviz.data.tables.formats import Form
from condviz.data.tables.memory import Record, to_text
from condviz.data.tables.report import is_missing
from condviz.data.tables.table import list_names, read_records
from condviz.errors import DataError

Cell = int | float | str | None
"""A cell as filters and results have it: a number only where it is written back as the text that it was."""

_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
RESERVED = ("row", "text")
"""Names that filters know beside the columns of the file."""


@dataclass(frozen=True)
class Row:
    """One text of a corpus.

    Attributes:
        number: Row of the source, from 1, rows without text included.
        text: As it is encoded.
        cells: The other columns, as the texts that they were; None for blank ones.
    """

    number: int
    text: str
    cells: dict[str, str | None]


@dataclass(frozen=True)
class Source:
    """Files whose rows have all been checked.

    Attributes:
        column: Of the texts, as the files name it.
        columns: The other columns, by the names that filters use -> what they hold.
        total: Rows with a usable text; those without are left out.
        digest: SHA-256 of the files, the column and what was said about them.
        names: Other column, as the files name it -> name that filters use.
    """

    name: str
    files: tuple[Path, ...]
    column: str
    columns: Mapping[str, Kind]
    total: int
    left_out: int
    digest: str
    names: Mapping[str, str]
    form: Form = field(default_factory=Form)
    report: Report = field(default_factory=Report)

    def rows(self, start: int = 0) -> Iterator[Row]:
        """Yield the usable rows from number `start`, counted from 0, on."""
        usable = filter(itemgetter(-1), _read(self.files, Report(skip_bad=True), self.form, self.column))
        for number, _, record, text in islice(usable, start, None):
            yield Row(number, text, {name: record.get(found) or None for found, name in self.names.items()})


def read_source(
    path: str | Path,
    column: str = "",
    *,
    skip_bad: bool = False,
    header: bool | None = None,
    separator: str = "",
    encoding: str = "",
) -> Source:
    """Check every row of a file, or of all files of a folder.

    Args:
        path: A file or a folder, as `read_table` takes them. As a text also a URL that fsspec knows, such as
            s3://bucket/texts.parquet, or a dataset of the Hugging Face hub: "OWNER/NAME" or "hf://datasets/OWNER/NAME",
            and behind it, for some files of it, their folder or a pattern such as "/data/train*".
        column: Column of the texts; "" where there is only one column, or one is called text or sentence.
        skip_bad: Leave out rows that cannot be used, as it leaves out those without any text.
        header, separator, encoding: As `read_table` takes them.

    Raises:
        DataError: If a file cannot be read, a column is missing, a row cannot be used, or there is none.
    """
    files, form = _find_files(path), Form(header, separator, encoding, ("text",))
    name = str(path).rstrip("/").rpartition("/")[2]
    report = Report(name, skip_bad=skip_bad)
    chosen, kinds, total, blank = "", {}, 0, 0
    for _, chosen, record, text in _read(files, report, form, column):
        total += bool(text)
        blank += text == ""
        for other, cell in record.items():
            if other != chosen:
                kinds[other] = kind_of(cell, kinds.get(other))
    left_out = report.blank + blank + len(report.left_out)
    if not total:
        what = f"its column {chosen} holds no text" if chosen else "it has no rows"
        reason = f" {report.left_out[0].reason}" if report.left_out else ""
        raise DataError(f"{name} cannot become a corpus: {what}. Choose a file with one text in each row.{reason}")
    if blank:
        report.remarks.append(f"{blank:,} {'row has' if blank == 1 else 'rows have'} no text and were left out.")
    names = _filter_names([chosen, *kinds])
    del names[chosen]
    columns: dict[str, Kind] = {names[other]: kind or "text" for other, kind in kinds.items()}
    digest = _digest(files, chosen, skip_bad, form)
    return Source(str(path), tuple(files), chosen, columns, total, left_out, digest, names, form, report)


def check_columns(columns: Mapping[str, Iterable[Any]]) -> dict[str, tuple[Kind, list[str | None]]]:
    """Return columns given in memory by the names that filters use, with their kind and cells."""
    names, found = _filter_names(["text", *columns]), {}
    for name, values in columns.items():
        cells, kind = [to_text(value) for value in values], None
        for cell in cells:
            kind = kind_of(cell, kind)
        found[names[name]] = (kind or "text", [cell or None for cell in cells])
    return found


def to_cell(cell: str | float | None, kind: Kind) -> Cell:
    """Return a cell as results show it: a number in a column of numbers, and None for a blank one."""
    return to_number(cell) if kind == "number" and isinstance(cell, str) else cell


def _find_files(source: str | Path) -> list[Path]:
    bare = isinstance(source, str) and _HUB_NAME.fullmatch(source) and Path(source).suffix not in ENDINGS
    return find_files(f"{HUB}{source}" if bare and not os.path.exists(source) else source)


def _read(
    files: Iterable[Path], report: Report, form: Form, column: str
) -> Iterator[tuple[int, str, Record, str | None]]:
    """Yield (number, column of the texts, cells, text) of the rows of files; the number counts on from file to file.

    The text is "" where it is missing, and None, and rejected, where it cannot be used.
    """
    before = 0
    for path in files:
        report.seen = 0
        for index, (place, record) in enumerate(read_records(path, report, form)):
            column = column or _choose_column(record, place.file)
            if not index and column not in record:
                raise DataError(f"{place.file} has no column {column!r}. Columns: {list_names([*record])}.")
            missing = is_missing(record.get(column, ""))
            texts = ("",) if missing else check_texts(report, place, record, {"text": column})
            yield before + place.row, column, record, texts[0] if texts else None
        before += report.seen


def _digest(files: Iterable[Path], column: str, skip_bad: bool, form: Form) -> str:
    given = [value for value in (form.header, form.separator, form.encoding) if value not in (None, "")]
    found = hashlib.sha256(json.dumps([column, skip_bad, *given]).encode())
    for path in files:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _choose_column(record: Record, file: str) -> str:
    for name in record if len(record) == 1 else TEXT_NAMES:
        if name in record:
            return name
    raise DataError(f"{file}: which column holds the texts? Name one of these: {list_names([*record])}.")


def _filter_names(columns: Iterable[str]) -> dict[str, str]:
    """Map the columns of a file, that of the texts first, to names that filters can use."""
    names: dict[str, str] = {}
    for number, column in enumerate(columns):
        name = re.sub(r"\W", "_", str(column)).strip("_") or "column"
        name = f"_{name}" if name[0].isdigit() else name
        taken = {*RESERVED, *names.values()} if number else set()
        while name in taken:
            name += "_"
        names[column] = name
    return names
