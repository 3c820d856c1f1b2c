"""Read the texts of a corpus from CSV, TSV, JSONL, TXT and Parquet files, one row at a time.

A source is read twice: `read_source` checks every row before hours of encoding begin, and `Source.rows` yields them.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from condviz.data.files import open_path
from condviz.data.tables import find_delimiter
from condviz.data.texts import check_sentence
from condviz.errors import DataError, first_line, require

Cell = str | float | None
Kind = Literal["number", "text"]
Record = tuple[str, dict[str, Any]]
"""Place for messages, and column -> value as the file has it."""

TEXT_NAMES = ("text", "sentence", "sentence1")
"""Columns that are taken for the text where none is named."""
MAX_CELL_CHARACTERS = 131_072
"""The limit of Python's CSV reader, applied to every format: a larger cell is a file in the wrong place."""
HUB = "hf://datasets/"
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
RESERVED = ("row", "text")
"""Names that filters know beside the columns of the file."""


@dataclass(frozen=True)
class Row:
    """One text of a corpus.

    Attributes:
        number: Row of the source, from 1, rows without text included.
        text: As it is encoded.
        cells: The other columns.
    """

    number: int
    text: str
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Source:
    """Files whose rows have all been checked.

    Attributes:
        name: File or folder, for messages.
        files: In the order in which they are read.
        column: Column of the texts, as the files name it.
        columns: The other columns, by the names that filters use -> what they hold.
        total: Rows with a usable text.
        left_out: Rows without.
        digest: SHA-256 of the files and the column.
        names: Column of the files -> name that filters use.
    """

    name: str
    files: tuple[Path, ...]
    column: str
    columns: Mapping[str, Kind]
    total: int
    left_out: int
    digest: str
    names: Mapping[str, str]

    def rows(self, start: int = 0) -> Iterator[Row]:
        """Yield the usable rows from number `start`, counted from 0, on."""
        usable = 0
        for number, (place, record) in enumerate(_records(self.files), start=1):
            text = _usable_text(place, record.get(self.column), self.column, strict=False)
            if text is None:
                continue
            if usable >= start:
                yield Row(number, text, self._cells(record))
            usable += 1

    def _cells(self, record: Mapping[str, Any]) -> dict[str, Cell]:
        return {
            name: _to_cell(record.get(found), self.columns[name])
            for found, name in self.names.items()
            if found != self.column
        }


def read_source(path: str | Path, column: str = "", *, skip_bad: bool = False) -> Source:
    """Check every row of a file, or of all files of a folder.

    Args:
        path: A .csv, .tsv, .jsonl, .txt or .parquet file, or a folder of those; also as a URL that fsspec knows, such
            as s3://bucket/texts.parquet. As a text also a dataset of the Hugging Face hub: "OWNER/NAME" or
            "hf://datasets/OWNER/NAME", and behind it, for some files of it, their folder or a pattern such as
            "/data/train*".
        column: Column of the texts; "" where there is only one column, or one is called text or sentence.
        skip_bad: Leave out rows whose text cannot be used, as it leaves out those without any text.

    Raises:
        DataError: If a file cannot be read, a column is missing, a text cannot be used, or there is none.
    """
    files = _find_files(path)
    chosen, kinds, total, number = "", {}, 0, 0
    for file in files:
        for in_file, (place, record) in enumerate(_records([file])):
            number += 1
            chosen = chosen or _choose_column(column, record, place)
            if in_file == 0 and chosen not in record:
                raise DataError(f"{file.name} has no column {chosen!r}. Columns: {', '.join(record) or 'none'}.")
            total += _usable_text(place, record.get(chosen), chosen, strict=not skip_bad) is not None
            for name, value in record.items():
                if name != chosen:
                    kinds[name] = _kind(value, kinds.get(name), f"{place}, column {name}")
    if not total:
        what = f"its column {chosen} holds no text" if number else "it has no rows"
        name = str(path).rstrip("/").rpartition("/")[2]
        raise DataError(f"{name} cannot become a corpus: {what}. Choose a file with one text in each row.")
    names = _filter_names([chosen, *kinds])
    columns = {names[name]: kind or "text" for name, kind in kinds.items()}
    digest = _digest(files, chosen, skip_bad)
    return Source(str(path), tuple(files), chosen, columns, total, number - total, digest, names)


def peek(path: str | Path, rows: int = 5) -> tuple[list[dict[str, Any]], str]:
    """Return the first rows of a file as it has them, and the column that most likely holds the texts.

    Args:
        path: As for `read_source`.
        rows: At most so many.

    Raises:
        DataError: If it cannot be read, or has no rows.
    """
    found = [record for _, record in islice(_records(_find_files(path)), rows)]
    if not found:
        raise DataError(f"{Path(path).name} has no rows. Choose a file with one text in each row.")
    named = [name for name in TEXT_NAMES if name in found[0]]
    return found, (named or [max(found[0], key=lambda name: sum(len(str(row.get(name, ""))) for row in found))])[0]


def check_columns(columns: Mapping[str, Iterable[Any]]) -> dict[str, tuple[Kind, list[Cell]]]:
    """Return columns given in memory by the names that filters use, with their kind and cells."""
    names, found = _filter_names(["text", *columns]), {}
    for name, values in columns.items():
        values = list(values)
        kind: Kind | None = None
        for number, value in enumerate(values, start=1):
            kind = _kind(value, kind, f"row {number}, column {name}")
        found[names[name]] = (kind or "text", [_to_cell(value, kind or "text") for value in values])
    return found


# ---- files -----------------------------------------------------------------------------------------------------------
def _find_files(source: str | Path) -> list[Path]:
    if isinstance(source, str) and source.startswith(HUB):
        return _fetch(source.removeprefix(HUB))
    path = open_path(source)
    if isinstance(source, str) and _HUB_NAME.fullmatch(source) and not path.exists() and path.suffix not in READERS:
        return _fetch(source)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in READERS)
        if not files:
            raise DataError(f"There is no file of texts in {path}. Kinds that are read: {', '.join(READERS)}.")
        return files
    if not path.is_file():
        raise DataError(f"{path} does not exist. Pass a file of texts, or a folder of such files.")
    if path.suffix.lower() not in READERS:
        raise DataError(f"{path.name} has the ending {path.suffix!r}; files that are read: {', '.join(READERS)}.")
    return [path]


def _fetch(name: str) -> list[Path]:
    """Download the files of a dataset that can be read, all of one kind. No code of a dataset is run."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    owner, _, rest = name.partition("/")
    dataset, _, part = rest.partition("/")
    wanted = [part, f"{part.rstrip('/')}/*"] if part else [f"*{ending}" for ending in READERS]
    try:
        folder = Path(
            huggingface_hub.snapshot_download(f"{owner}/{dataset}", repo_type="dataset", allow_patterns=wanted)
        )
    except HFValidationError as error:
        raise DataError(f"{name[:80]} is no name of a dataset. Write {HUB}OWNER/NAME.") from error
    except (HfHubHTTPError, OSError) as error:
        raise DataError(
            f"{name[:80]} is no file here, and could not be fetched from the hub as a dataset ({first_line(error)}). "
            "Check the name and the network, or download its files and pass their folder."
        ) from error
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and any(fnmatch(file.relative_to(folder).as_posix(), pattern) for pattern in wanted)
    ]
    for ending in (".parquet", *READERS):  # many datasets hold the same rows in several kinds
        if chosen := [file for file in files if file.suffix.lower() == ending]:
            return chosen
    raise DataError(f"{HUB}{name} has no file of texts there. Kinds that are read: {', '.join(READERS)}.")


def _records(files: Iterable[Path]) -> Iterator[Record]:
    for file in files:
        try:
            yield from READERS[file.suffix.lower()](file)
        except UnicodeDecodeError as error:
            raise DataError(f"{file.name} is not UTF-8 (byte {error.start:,}). Save it as UTF-8.") from error
        except OSError as error:
            raise DataError(f"{file.name} cannot be read: {error.strerror or error}. Check the file.") from error


def _read_csv(file: Path) -> Iterator[Record]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        delimiter = find_delimiter(lines)
        lines.seek(0)
        reader = csv.reader(lines, delimiter=delimiter)
        try:
            head = [name.strip() for name in next((cells for cells in reader if any(map(str.strip, cells))), [])]
            if repeated := [name for number, name in enumerate(head) if name in head[:number]]:
                raise DataError(f"{file.name} has two columns named {repeated[0]!r}. Rename one of them.")
            for number, cells in enumerate(reader, start=1):
                if len(cells) > len(head):
                    raise DataError(
                        f"{file.name}, row {number} has {len(cells)} cells, but the header has {len(head)}. Put texts "
                        "that contain the separator in double quotes."
                    )
                if cells:
                    yield f"{file.name}, row {number}", dict(zip(head, cells, strict=False))
        except csv.Error as error:
            raise DataError(
                f"{file.name}, line {reader.line_num} is not a row of a table ({error}). A cell may have at most "
                f"{MAX_CELL_CHARACTERS:,} characters; is a quotation mark missing?"
            ) from error


def _read_jsonl(file: Path) -> Iterator[Record]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            place = f"{file.name}, line {number}"
            try:
                value = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise DataError(f"{place} is not JSON: {str(error)[:80]}. Each line holds one object.") from error
            if not isinstance(value, dict | str):
                raise DataError(f"{place} holds {type(value).__name__}; each line has to be an object or a text.")
            yield place, {"text": value} if isinstance(value, str) else value


def _read_txt(file: Path) -> Iterator[Record]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            yield f"{file.name}, line {number}", {"text": line.rstrip("\n")}


def _read_parquet(file: Path) -> Iterator[Record]:
    parquet, arrow = require("pyarrow.parquet", "search"), require("pyarrow", "search")
    number = 0
    try:
        with file.open("rb") as content, parquet.ParquetFile(content) as table:
            for batch in table.iter_batches(batch_size=4096):
                for record in batch.to_pylist():
                    number += 1
                    yield f"{file.name}, row {number}", record
    except arrow.ArrowInvalid as error:
        raise DataError(f"{file.name} is no Parquet file, or is damaged: {str(error)[:100]}") from error


READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".txt": _read_txt,
    ".parquet": _read_parquet,
}
"""Ending of a file -> what reads it."""


def _digest(files: Iterable[Path], column: str, skip_bad: bool) -> str:
    found = hashlib.sha256(json.dumps([column, skip_bad]).encode())
    for path in files:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


# ---- cells -----------------------------------------------------------------------------------------------------------
def _choose_column(asked: str, record: Mapping[str, Any], place: str) -> str:
    if asked:
        return asked
    if len(record) == 1:
        return next(iter(record))
    if found := [name for name in TEXT_NAMES if name in record]:
        return found[0]
    raise DataError(f"{place}: which column holds the texts? Name one of these: {', '.join(record) or 'none'}.")


def _is_blank(value: Any) -> bool:  # noqa: ANN401
    return value is None or (isinstance(value, str) and not value.strip())


def _usable_text(place: str, value: Any, column: str, *, strict: bool) -> str | None:  # noqa: ANN401
    """Return a text as it is encoded; None for a blank one.

    Args:
        place: Where it is.
        value: What the file has.
        column: Its column.
        strict: Raise where a text cannot be used, instead of returning None.
    """
    if _is_blank(value):
        return None
    try:
        return check_sentence(value, f"column {column} of {place}")
    except DataError as error:
        if not strict:
            return None
        raise DataError(f"{error} To leave out such rows, use --skip-bad (skip_bad=True).") from error


def _kind(value: Any, before: Kind | None, place: str) -> Kind | None:  # noqa: ANN401
    """Return what a column holds, given one more cell; None while all have been blank."""
    if isinstance(value, str) and len(value) > MAX_CELL_CHARACTERS:
        raise DataError(f"{place} has {len(value):,} characters; at most {MAX_CELL_CHARACTERS:,} are allowed.")
    if before == "text" or _is_blank(value):
        return before
    return "number" if _number(value) is not None else "text"


def _number(value: Any) -> float | None:  # noqa: ANN401
    if isinstance(value, str) and "_" in value:  # Python would read 2024_01 as 202401
        return None
    try:
        return float(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None


def _to_cell(value: Any, kind: Kind) -> Cell:  # noqa: ANN401
    if _is_blank(value):
        return None
    if kind == "number":
        number = _number(value)
        return number if number is not None and math.isfinite(number) else None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


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
