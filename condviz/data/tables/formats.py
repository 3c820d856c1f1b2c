"""Rows of every kind of file as the texts that they were, one at a time."""

from __future__ import annotations

import codecs
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
from typing import IO, Any, cast

from condviz.data.tables.memory import INVISIBLE, Rows, check_names, read_arrow, read_memory, to_record
from condviz.data.tables.report import MAX_CELL_CHARACTERS, Place, Report
from condviz.errors import ConfigError, DataError

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "an upright bar"}
MAX_COLUMNS = 1_000
KNOWN_NAMES = frozenset(["sentence1", "sentence2", "condition", "label", "text", "sentence", "rating", "gold", "id"])
"""Names that only a header has."""
_SAMPLED = 50
_LONG_NAME = 64
ID = re.compile(r"\S*\d\S*")
"""What numbers or marks a row: one word with a digit."""
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
        encoding = tell_encoding(name, file, form.encoding, report)
    else:
        encoding = ""
    report.encoding = encoding
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
        # An id in front of the texts is none of them.
        marks = [cells[0].strip(INVISIBLE) for cells in rows if cells]
        ids = len(first) > 1 and len({*marks}) == len(marks) and all(map(ID.fullmatch, marks))
        names = ["", *form.names] if ids else form.names
        first = [*names[: len(first)], *[""] * (len(first) - len(names))]
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
    if not any(first):
        return False, ""
    if (odd and known < 2) or (len(first) == 1 and " " in first[0]):
        return False, f"The first row ({shown}) was taken as a row. If it names the columns, say so (header)."
    numbers = any(all(map(_VALUE.fullmatch, column)) for column in zip(*others, strict=False))
    if (known or numbers) and not odd:
        return True, ""
    return True, f"The first row ({shown}) was taken as names of columns. If it is a row, say so (header)."


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


# ---- what the bytes of a file mean as text ---------------------------------------------------------------------------
# Longest first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BINARY = {
    b"PK\x03\x04": "an Excel or zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x1f\x8b": "a gzip file",
    b"%PDF": "a PDF file",
    b"\x89PNG": "a PNG image",
}
_ADVICE = "Save it as CSV (UTF-8), and give that file."
_MARK = "\ufeff"
_SAMPLE = 65_536
WINDOWS = "cp1252"


def tell_encoding(name: str, file: IO[bytes], asked: str, report: Report) -> str:
    """Return the encoding of a file as `find_encoding`, and remark where it is a guess."""
    encoding = find_encoding(name, file, asked)
    if encoding == WINDOWS and not asked:
        report.remarks.append(
            f"{name} is not UTF-8; it was read as Windows-1252 (Latin-1). Check the accents; if they are wrong, set "
            "its encoding."
        )
    return encoding


def find_encoding(name: str, file: IO[bytes], asked: str = "") -> str:
    """Return the encoding of a seekable file: as asked, as its mark says, UTF-8, UTF-16, else Windows-1252.

    A few broken bytes do not make a file anything else than UTF-8 where other accents are right. Raises DataError for
    what is no text, and names what it is instead, if known.
    """
    file.seek(0)
    start = file.read(_SAMPLE)
    file.seek(0)
    if kind := next((kind for mark, kind in _BINARY.items() if start.startswith(mark)), ""):
        raise DataError(f"{name} is {kind}, not a table of text. {_ADVICE}")
    marked = next((encoding for mark, encoding in _MARKS.items() if start.startswith(mark)), "")
    try:
        encoding = codecs.lookup(asked).name if asked else marked or _utf16(start) or "utf-8"
    except LookupError:
        raise DataError(f"There is no encoding {asked[:40]!r}. Known are utf-8, utf-16, cp1252, gbk ...") from None
    strange = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in start)
    if encoding == "utf-8" and strange > max(2, len(start) // 200):
        raise DataError(f"{name} has binary content, not text. {_ADVICE}")
    if not (asked or marked) and encoding == "utf-8" and not _is_utf8(file):
        encoding = _western(name, file)
    file.seek(0)
    return encoding


def read_lines(name: str, file: Any, encoding: str = "") -> Iterator[str]:  # noqa: ANN401 - of bytes or text
    """Yield the lines of a file with their ends, without byte order marks; broken bytes become half characters."""
    wrapped = None
    if encoding:
        # UTF-16 has half characters of its own; a broken byte of UTF-8 becomes one, which marks the cell.
        errors = "surrogateescape" if encoding == "utf-8" else "surrogatepass" if "utf" in encoding else "strict"
        file = wrapped = io.TextIOWrapper(file, encoding, errors, newline="")
    try:
        for first in file:
            yield from chain([first.lstrip(_MARK)], file)
    except UnicodeDecodeError as error:
        raise DataError(f"{name} looks like {encoding} but breaks off at byte {error.start:,}. {_ADVICE}") from error
    finally:
        if wrapped is not None and not wrapped.closed:
            wrapped.detach()  # whoever opened the file closes it


def _is_utf8(file: IO[bytes]) -> bool:
    """Whether the accents of a file are UTF-8: all of them, or more than there are broken bytes."""
    decoder, broken, right = codecs.getincrementaldecoder("utf-8")("surrogateescape"), 0, 0
    for part in chain(iter(lambda: file.read(1 << 20), b""), [b""]):
        text = decoder.decode(part, final=not part)
        if not text.isascii():
            broken += (bad := len(re.findall("[\udc80-\udcff]", text)))
            right += len(re.findall(r"[^\x00-\x7f]", text)) - bad
    return not broken or right > broken


def _western(name: str, file: IO[bytes]) -> str:
    """Return Windows-1252 unless the bytes speak against it: some it does not have, or accents in long rows."""
    file.seek(0)
    content = file.read(1 << 24)
    accents = re.findall(rb"[\x80-\xff]+", content)
    in_rows = sum(len(row) for row in accents if len(row) > 1)
    if re.search(rb"[\x81\x8d\x8f\x90\x9d]", content) or in_rows > max(8, sum(map(len, accents)) / 2):
        raise DataError(
            f"{name} is neither UTF-8 nor Windows-1252. Save it as UTF-8, or set its encoding, for instance gbk."
        )
    return WINDOWS


def _utf16(start: bytes) -> str:
    """Recognise UTF-16 without a mark by its pattern: in Western text every second byte is zero."""
    even, odd = start[0:2000:2], start[1:2000:2]
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if len(zeros) > 10 and zeros.count(0) > 0.7 * len(zeros) and not others.count(0):
            return encoding
    return ""
