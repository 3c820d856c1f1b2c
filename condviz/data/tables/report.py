"""What a reader decided about a table and what it left out; and the rules for one cell."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from types import SimpleNamespace
from typing import Any, Literal, cast

from condviz.data.texts import SURROGATE
from condviz.errors import DataError

Kind = Literal["number", "text"]
MISSING = frozenset({"", "nan", "NaN", "<NA>"})
"""Cells that say that there is nothing, blanks around them left out: what pandas and CSV files write."""
MAX_CELL_CHARACTERS = 131_072
"""The limit of Python's CSV reader, applied to every format: a larger cell is a file in the wrong place."""
MAX_LEFT_OUT = 10_000
"""More bad rows than that are no table with mistakes, but another kind of file."""
SHOWN = 3
SKIP = " To leave out such rows, set skip_bad."
_INTEGER = re.compile(r"-?\d{1,16}")
_EXACT = 2**53


@dataclass(frozen=True)
class Place:
    """Where a row is: its number in the file, from 1, without the header; its line, where there are lines."""

    row: int
    line: int | None = None
    file: str = ""

    def __str__(self) -> str:
        return f"Row {self.row:,}" if self.line is None else f"Row {self.row:,} (line {self.line:,})"


@dataclass(frozen=True)
class LeftOut:
    """A row that could not be used: where, why, and what it holds, as CSV."""

    place: Place
    reason: str
    content: str


@dataclass
class Report:
    """What was decided while a table was read.

    Attributes:
        skip_bad: Whether rows that cannot be used are left out; else the first of them is an error.
        header: Whether the first row names the columns; None where the format needs no such row.
        doubt: Where that is not sure, what was taken and how to change it.
        columns: All columns, in order, as keys.
        roles: What a column is used for -> its name and why it was taken.
        seen: Rows of the file read last, blank ones included.
        remarks: What else a reader should know, a sentence each.
    """

    name: str = "The table"
    skip_bad: bool = False
    encoding: str = ""
    separator: str = ""
    header: bool | None = None
    doubt: str = ""
    columns: dict[str, None] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    seen: int = 0
    blank: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def reject(self, place: Place, reason: str, content: str | Sequence[str]) -> None:
        """Note a row that cannot be used; raises DataError where that is not allowed, or there are too many."""
        self.seen = max(self.seen, place.row)
        reason = reason.replace("\n", " ")
        if not self.skip_bad:
            raise self.error(f"{place.file or self.name}: {reason}{SKIP}")
        if len(self.left_out) == MAX_LEFT_OUT:
            raise self.error(f"{self.name}: more than {MAX_LEFT_OUT:,} rows cannot be used.")
        self.left_out.append(LeftOut(place, reason, content if isinstance(content, str) else format_rows([content])))

    def error(self, message: str) -> DataError:
        """Return an error about the table, with what may be the reason: the first bad row, a header that is none."""
        reason = self.left_out[0].reason if self.left_out else ""
        return DataError(" ".join(f"{message} {reason[:1].upper()}{reason[1:]} {self.doubt}".split()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know, a sentence each."""
        notes = [self.doubt, *self.remarks] if self.doubt else [*self.remarks]
        if self.blank:
            notes.append(f"{self.blank:,} blank {'row was' if self.blank == 1 else 'rows were'} left out.")
        if count := len(self.left_out):
            first = self.left_out[:SHOWN]
            files = ("" if one.place.file in ("", self.name) else f"{one.place.file}: " for one in first)
            reasons = [file + one.reason for file, one in zip(files, first, strict=True)]
            verb = "row that cannot be used was" if count == 1 else "rows that cannot be used were"
            notes.append(f"{count:,} {verb} left out: {_list(reasons, count - len(first))}")
        return tuple(dict.fromkeys(notes))

    def left_out_csv(self) -> str:
        """Format the rows that were left out: file, row, line, reason, and what the row holds."""
        rows = (
            (one.place.file or self.name, str(one.place.row), str(one.place.line or ""), one.reason, one.content)
            for one in self.left_out
        )
        return format_rows([("file", "row", "line", "reason", "content"), *rows]).encode("utf-8", "replace").decode()


def _list(reasons: Sequence[str], more: int) -> str:
    """Join sentences about rows and how many `more` there are; the advice that all of them end with is given once."""
    advices = [reason[found.start() :] for reason in reasons for found in re.finditer(r"(?<=\.) ", reason)]
    advice = next((one for one in advices if len(reasons) > 1 and all(map(str.endswith, reasons, repeat(one)))), "")
    facts = [reason.removesuffix(advice).removesuffix(".") for reason in reasons]
    return "; ".join([*facts, *([f"and {more:,} more"] if more else [])]) + "." + advice


def is_missing(cell: str) -> bool:
    """Whether a cell holds nothing."""
    return cell.strip() in MISSING


def find_fault(cell: str) -> str:
    """Return what keeps any cell from being kept, as a column that nothing reads; "" where nothing does."""
    if len(cell) > MAX_CELL_CHARACTERS:
        return f"has {len(cell):,} characters, and at most {MAX_CELL_CHARACTERS:,} are allowed. Shorten it."
    if cell.isascii() or not (half := SURROGATE.search(cell)):
        return ""
    code = ord(half[0])
    what = (
        f"a broken byte ({code - 0xDC00:#04X})" if 0xDC80 <= code <= 0xDCFF else f"half of a character (U+{code:04X})"
    )
    return f"has {what} at position {half.start() + 1}. Fix the cell, or copy it again."


def to_number(cell: str) -> int | float | None:
    """Return the number that a cell stands for if it can be written back as the same text; else None.

    So 4, 4.0 and 0.25 are numbers; 007, 1.10, 1E5, 12345678901234567890, "Infinity" and dates are texts.
    """
    try:
        value = int(cell) if _INTEGER.fullmatch(cell) else float(cell)
    except ValueError:
        return None
    return value if str(value) == cell and math.isfinite(value) and abs(value) <= _EXACT else None


def kind_of(cell: str, before: Kind | None) -> Kind | None:
    """Return what a column holds, given one more cell; None while all have been blank."""
    if before == "text" or not cell:
        return before
    return "text" if to_number(cell) is None else "number"


def format_rows(rows: Iterable[Sequence[str]]) -> str:
    """Format rows of cells as CSV, each with a line feed at its end."""
    lines: list[str] = []
    # Python's own end of line, which is cut off again, so that cells with either half of it are quoted.
    csv.writer(cast("Any", SimpleNamespace(write=lines.append))).writerows(rows)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)
