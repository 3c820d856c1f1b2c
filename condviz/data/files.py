"""Files of visitors come in with any encoding or none; files of ours are written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from condviz.errors import DataError, require

# Longest first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_KNOWN_BINARY = {
    b"PK\x03\x04": "an Excel or zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "a gzip file",
    b"%PDF": "a PDF file",
    b"\x89PNG": "a PNG image",
}


def open_path(path: str | Path) -> Path:
    """Return a path; for a URL such as s3://bucket/texts.csv a universal_pathlib.UPath, which is used like one.

    Raises:
        DataError: If nothing that is installed knows this kind of URL.
        MissingExtraError: If it is a URL and universal_pathlib is not installed.
    """
    if "://" not in str(path):
        return Path(path)
    upath = require("upath", "scale")
    try:
        found = upath.UPath(path)
        _ = found.fs  # which is where a missing package shows
        return Path(found.path) if found.protocol in ("file", "local") else found
    except (ImportError, ValueError, OSError) as error:
        raise DataError(f"{path} cannot be opened ({error}). Install what fsspec needs for it.") from error


def check_target(path: str | Path) -> Path:
    """Check that a file can be written, before the long work that fills it.

    Raises:
        DataError: If its folder does not exist or cannot be written to, or the path is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{path} is a folder. Give the name of a file in it.")
    if target.exists() and not target.is_file():  # a pipe or a device; what /dev/stdout leads to has no place
        return target
    target = target.resolve()
    if not target.parent.is_dir():
        raise DataError(f"The folder of {path} does not exist. Create it first: mkdir -p '{Path(path).parent}'")
    if not os.access(target.parent, os.W_OK) and not os.access(target, os.W_OK):
        raise DataError(f"{path} cannot be written: no permission in {target.parent}. Choose another folder.")
    return target


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text; a reader sees the old file or the new one, never half of it.

    Raises:
        DataError: If the file cannot be written.
    """
    if not isinstance(path, str | Path):  # what `open_path` made of a URL
        path.write_text(text, encoding="utf-8")
        return
    target = check_target(path)
    # A pipe or a device must not be replaced by a file; nor can a file be, in a folder without permission.
    direct = target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK))
    written = target if direct else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        written.write_text(text, encoding="utf-8", newline="")
        if not direct:
            os.replace(written, target)
    except OSError as error:
        raise DataError(f"{path} could not be written: {error.strerror}. Free some space or choose another.") from error
    finally:
        if not direct:
            written.unlink(missing_ok=True)


def read_utf8(path: Path, advice: str) -> str:
    """Read a UTF-8 file, with or without a byte order mark; all line breaks become line feeds.

    Raises:
        DataError: If it cannot be read, with this advice, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {advice}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start:,}). Save it as UTF-8.") from error


def read_upload(source: str | Path | IO[bytes] | IO[str], max_bytes: int) -> tuple[str, str, list[str]]:
    """Read a text file of unknown origin: UTF-8, UTF-16 or UTF-32, else Windows-1252 with a note.

    Args:
        source: A path, "-" for standard input, or an open file.
        max_bytes: Larger files are refused.

    Returns:
        Name for messages, text, notes for the reader.

    Raises:
        DataError: If the file cannot be read, is too large, or is no text; names what it is instead, if known.
    """
    if source == "-":
        name, content = "Standard input", sys.stdin.buffer.read(max_bytes + 1)
    elif isinstance(source, str | Path):
        name = Path(source).name or str(source)
        try:
            with open(source, "rb") as file:
                content = file.read(max_bytes + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DataError(f"{str(source)!r} cannot be read: {reason}. Pass the path of a CSV file.") from error
    elif not hasattr(source, "read"):
        raise DataError(f"Pass a table as a path, an open file or a data frame, got {type(source).__name__}.")
    else:
        name = Path(str(getattr(source, "name", "The table"))).name
        read = source.read(max_bytes + 1)
        content = read.encode("utf-8", "surrogatepass") if isinstance(read, str) else read
    if len(content) > max_bytes:
        raise DataError(f"{name} is larger than {max_bytes / 2**20:.3g} MB, which is the limit here. Split it.")
    return name, *_decode(name, content)


def _decode(name: str, content: bytes) -> tuple[str, list[str]]:
    advice = "Save it as CSV (UTF-8) and upload or pass that file."
    for start, kind in _KNOWN_BINARY.items():
        if content.startswith(start):
            raise DataError(f"{name} is {kind}, not a table of text. {advice}")
    encoding = next((encoding for mark, encoding in _MARKS if content.startswith(mark)), None) or _without_mark(content)
    sample = content[:65_536]
    strange = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in sample)
    if encoding in ("utf-8", "utf-8-sig") and strange > max(2, len(sample) // 200):
        raise DataError(f"{name} has binary content, not text. {advice}")
    try:
        return content.decode(encoding), []
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise DataError(f"{name} looks like {encoding} but breaks off at byte {error.start:,}. {advice}") from error
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text, [f"{name} is not UTF-8; it was read as Windows-1252 (Latin-1). Check the accents."]


def _without_mark(content: bytes) -> str:
    """Recognise UTF-16 without a mark by its pattern: in Western text every second byte is zero."""
    even, odd = content[0:2000:2], content[1:2000:2]
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if len(zeros) > 10 and zeros.count(0) > 0.7 * len(zeros) and not others.count(0):
            return encoding
    return "utf-8"
