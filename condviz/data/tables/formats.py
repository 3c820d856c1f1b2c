"""Rows of every kind of file as the texts that they were, one at a time."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, cast

from condviz.data.tables.encodings import WINDOWS, find_encoding, read_lines
from condviz.data.tables.memory import INVISIBLE, Rows, check_names, read_arrow, read_memory, to_record
from condviz.data.tables.report import MAX_CELL_CHARACTERS, Place, Report
from condviz.errors import ConfigError, DataError

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "an upright bar"}
MAX_COLUMNS = 1_000
KNOWN_NAMES = frozenset(["sentence1", "sentence2", "condition", "label", "text", "sentence", "rating", "gold", "id"])
"""Names that only a header has."""
_SAMPLED = 50
_LONG_NAME = 64
_VALUE = re.compile(r"[+-]?[\d.,:/ -]*\d[\d.,:/ %-]*")
_SEP = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """What the person who gives a table says about it, as `read_table` takes it; blank and None are found out."""

    header: bool | None = None
    separator: str = ""
    encoding: str = ""
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        separator = {"\\t": "\t", "tab": "\t"}.get(self.separator, self.separator)
        if len(separator) > 1:
            raise ConfigError(f"A separator is one character, or tab, got {separator!r}. Or let it be detected.")
        object.__setattr__(self, "separator", separator)


def read_file(name: str, file: IO[bytes] | IO[str], report: Report, form: Form) -> Rows:
    """Yield the rows of an open file: columns by how it begins, text by the ending of its name or how it begins."""
    start = file.read(6)
    file.seek(0)
    if isinstance(start, bytes):
        file = cast("IO[bytes]", file)
        if start.startswith((b"PAR1", b"ARROW1")):
            yield from read_arrow(name, file, "Parquet" if start.startswith(b"PAR1") else "Arrow")
            return
        encoding = find_encoding(name, file, form.encoding)
    else:
        encoding = ""
    report.encoding = encoding
    if encoding == WINDOWS and not form.encoding:
        report.remarks.append(
            f"{name} is not UTF-8; it was read as Windows-1252 (Latin-1). Check the accents; if they are wrong, set "
            "its encoding."
        )
    lines = read_lines(name, file, encoding)
    ending = Path(name).suffix.lower()
    if ending not in _BY_ENDING:
        first = next(lines, "")
        lines = chain([first] if first else [], lines)
        ending = ".json" if re.match(r'\s*(\{\s*"|\[\s*[\[{])', first[:200]) else ".csv"
    yield from _BY_ENDING[ending](name, lines, report, form)


# ---- CSV -------------------------------------------------------------------------------------------------------------
def read_cells(
    lines: Iterator[str], separator: str, *, first: int = 1, quoted: bool = True
) -> Iterator[tuple[int, Sequence[str], str]]:
    """Yield (line, cells, "") of CSV; (line, text, fault) of a line that breaks its rules, and go on with the next."""
    waiting, taken, line = deque[str](), list[str](), first

    def take() -> Iterator[str]:
        for text in iter(lambda: waiting.popleft() if waiting else next(lines, None), None):
            taken.append(text)
            yield text

    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    start = partial(csv.reader, delimiter=separator, strict=True, quoting=quoting)
    reader = start(take())
    while True:
        try:
            yield line, next(reader), ""
            line += len(taken)
        except StopIteration:
            return
        except csv.Error as error:
            fault = f"cannot be read ({error}). Look for a double quote that is not closed, or not doubled inside a "
            fault += f"quoted text, and for a cell of more than {MAX_CELL_CHARACTERS:,} characters."
            yield line, taken[0].rstrip("\r\n"), fault
            line += 1
            waiting.extendleft(reversed(taken[1:]))
            reader = start(take())
        taken.clear()


def _read_csv(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    sample, first = list(islice(lines, _SAMPLED)), 1
    separator = form.separator
    while sample and ((told := _SEP.fullmatch(sample[0])) or not sample[0].strip(" \t\r\n,;|")):
        separator = separator or (told[1] if told else "")
        sample.pop(0)
        first += 1
    report.separator = separator = separator or find_separator(sample)
    columns = _find_columns(name, _parse(sample, separator), report, form)
    rows = read_cells(chain(sample, lines), separator, first=first)
    for number, (line, cells, fault) in enumerate(rows, start=0 if report.header else 1):
        place = Place(number, line, name)
        if not number:
            if fault:  # which row names the columns then would be a guess
                raise DataError(f"{name}: line {line:,} {fault}")
            continue
        if not fault and cells and (len(cells) < len(columns) or any(cells[len(columns) :])):
            advice = f"Put texts that contain {SEPARATORS.get(separator, repr(separator))} in double quotes."
            advice = "It may be cut off." if len(cells) < len(columns) else advice
            row = "header" if report.header else "first row"
            count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            fault = f"has {count}, but the {row} has {len(columns)}. {advice}"
        if fault:
            report.reject(place, f"{place} {fault}", cells)
        else:
            yield place, dict(zip(columns, cells, strict=False))


def _parse(sample: Sequence[str], separator: str) -> list[Sequence[str]]:
    return [cells for _, cells, fault in read_cells(iter(sample), separator) if cells and not fault]


def _find_columns(name: str, rows: Sequence[Sequence[str]], report: Report, form: Form) -> list[str]:
    """Return the names of the columns, and note whether the first of these rows has them."""
    first = [cell.strip(INVISIBLE) for cell in rows[0]] if rows else []
    report.header = form.header
    if form.header is None:
        report.header, report.doubt = _is_header(first, rows[1:11])
    if not report.header:
        first = [*form.names[: len(first)], *[""] * (len(first) - len(form.names))]
    while report.header and len(first) > 1 and not first[-1]:  # what a spreadsheet adds; its cells must be blank
        first.pop()
    if len(first) > MAX_COLUMNS:
        raise DataError(f"{name} has {len(first):,} columns, and at most {MAX_COLUMNS:,} are read. Leave some out.")
    columns = check_names(name, [cell or f"column_{number}" for number, cell in enumerate(first, start=1)])
    report.columns |= dict.fromkeys(columns)
    return columns


def fold_name(name: str) -> str:
    """Return the name of a column for comparisons: case, blanks around it and what cannot be seen do not count."""
    plain = unicodedata.normalize("NFKC", name).strip(INVISIBLE).casefold()
    return plain.translate(dict.fromkeys(map(ord, INVISIBLE[4:])))


def _count_known(cells: Sequence[str]) -> int:
    return len(KNOWN_NAMES & {*map(fold_name, cells)})


def _is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first row names the columns, and what to tell where that is in doubt."""
    shown = ", ".join(" ".join(cell.split())[:30] or "(blank)" for cell in first[:5])
    known = _count_known(first)
    odd = any(len(cell) > _LONG_NAME or _VALUE.fullmatch(cell) or cell.endswith((".", "!")) for cell in first)
    if (odd and known < 2) or not any(first) or (len(first) == 1 and " " in first[0]):
        return False, f"The first row ({shown}) was taken as a row. If it names the columns, set header."
    numbers = any(all(map(_VALUE.fullmatch, column)) for column in zip(*others, strict=False))
    if (known or numbers) and not odd:
        return True, ""
    return True, f"The first row ({shown}) was taken as names of columns. If it is a row, set no header."


def find_separator(sample: Sequence[str]) -> str:
    """Choose what gives most known names, then equal rows, then most columns; in quotes, a separator does not count."""

    def fit(separator: str) -> tuple[int, bool, float, int]:
        rows = _parse(sample, separator)[:20] or [[]]
        width, equal = len(rows[0]), sum(len(cells) == len(rows[0]) for cells in rows) / len(rows)
        return _count_known(rows[0]), width > 1, equal, width

    best = max(SEPARATORS, key=fit)
    return best if fit(best)[1] else "\t"


# ---- other texts -----------------------------------------------------------------------------------------------------
def _read_txt(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    for number, line in enumerate(lines, start=1):
        yield Place(number, number, name), {"text": line.rstrip("\r\n")}


def _read_jsonl(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    filled = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    for row, (number, line) in enumerate(filled, start=1):
        place = Place(row, number, name)
        try:
            record = to_record(_loads(line.strip()))
        except (ValueError, RecursionError) as error:
            what = f"{str(error)[:80]}. Each line has to be one object in JSON, or a text."
            report.reject(place, f"{place}: {what}", line.rstrip("\r\n"))
        else:
            yield place, record


def _read_json(name: str, lines: Iterator[str], report: Report, form: Form) -> Rows:
    text = "".join(lines)
    try:
        value = _loads(text)
    except (ValueError, RecursionError) as error:
        if not text.lstrip().startswith("{") or len(text.strip().splitlines()) < 2:
            raise DataError(f"{name} is not JSON: {str(error)[:80]}. Give a list of objects.") from error
        yield from _read_jsonl(name, io.StringIO(text, newline=""), report, form)
    else:
        yield from read_memory(value, name)


_loads = partial(json.loads, parse_int=str, parse_float=str, parse_constant=str)
"""Numbers stay as they are written."""
_BY_ENDING = {".csv": _read_csv, ".tsv": _read_csv, ".tab": _read_csv, ".json": _read_json,
              ".jsonl": _read_jsonl, ".ndjson": _read_jsonl, ".txt": _read_txt}  # fmt: skip
