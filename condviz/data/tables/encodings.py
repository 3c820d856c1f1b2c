"""What the bytes of somebody's file mean as text."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from condviz.errors import DataError

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
_ADVICE = "Save it as CSV (UTF-8) and upload or pass that file."
_MARK = "\ufeff"
_SAMPLE = 65_536
WINDOWS = "cp1252"


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
