"""What every corpus has in common: what it is, where its files are, and the rated rows built from it."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from condviz.data.files import read_utf8
from condviz.data.tables import list_names, read_table
from condviz.data.tables.report import SKIP
from condviz.data.tables.report import format_rows as format_cells
from condviz.errors import DataError, explain

COLUMNS = ("sentence1", "sentence2", "condition", "label", "aspect", "pair", "family1", "family2")
VARIABLE = "CONDVIZ_DATA"
T = TypeVar("T")
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
_RESTORE = "Restore this folder, or set CONDVIZ_ASSETS."
RELEASE = ("train", "dev", "test")
"""Parts of most corpora."""
Password = Callable[[], str]
"""Asked for a password only if a file needs one."""


@dataclass(frozen=True)
class RatedPair:
    """One row: the columns of C-STS, and where it comes from."""

    pair: int
    """Number of the contrast; its two rows share it."""
    sentence1: str
    sentence2: str
    condition: str
    """A wording of the aspect."""
    label: int
    """1 (different) to 5 (same)."""
    aspect: str
    """Name of a shared aspect, or of a local one behind the id of its family: "sport-001:x_handedness"."""
    family1: str
    family2: str
    """Ids of the families; equal for a pair from one family."""


def keep_pairs(rows: Sequence[RatedPair], count: int, *, seed: int = 0) -> list[RatedPair]:
    """Keep at most `count` sentence pairs: those with the smallest hashes, in their order, whatever else is there.

    The two rows of a pair stand side by side; another seed keeps others.
    """

    def rank(pair: list[RatedPair]) -> str:
        texts = "\n".join(sorted((pair[0].sentence1, pair[0].sentence2)))
        return hashlib.sha256(f"{seed}\n{texts}".encode()).hexdigest()

    groups = [list(group) for _, group in groupby(rows, key=lambda row: row.pair)]
    return [row for pair in sorted(groups, key=rank)[:count] for row in pair]


def count_contrasts(rows: Sequence[RatedPair]) -> int:
    """Count the sentence pairs with two rated conditions."""
    return sum(size == 2 for size in Counter(row.pair for row in rows).values())


def cells_of(rows: Sequence[RatedPair]) -> tuple[tuple[str, ...], ...]:
    """Return rows as the cells of `COLUMNS`: what `evaluate` and `train` read, and where each row comes from."""
    values = (tuple(getattr(row, name) for name in COLUMNS) for row in rows)
    return tuple(tuple(f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in row) for row in values)


def format_rows(rows: Sequence[RatedPair]) -> str:
    """Format rows as CSV, see `cells_of`."""
    return format_cells([COLUMNS, *cells_of(rows)])


@dataclass(frozen=True)
class Material:
    """One part of a corpus, read and checked, from which rows are built."""

    rows: Callable[..., list[RatedPair]]
    """Builds the rated rows, the two rows of a contrast side by side; `seed` decides pairs and wordings."""
    blocks: Callable[..., list[list[RatedPair]]] | None = None
    """Builds rows in blocks of at least so many `sentences` that share wordings; None if there are only pairs."""
    texts: int | None = None
    """Number of texts; None to count those that occur in the rows."""
    conditions: frozenset[str] | None = None
    """All wordings that may be asked; None to collect those that occur in the rows."""


@dataclass(frozen=True)
class Corpus:
    """A corpus: what is known before it is read, and how to read it."""

    name: str
    title: str
    licence: str
    source: str
    attribution: str
    """What has to be said where anything made from it is passed on."""
    files: tuple[str, ...]
    load: Callable[[Path, str, Password], Material]
    """Takes the folder of the corpus, the part and a password; raises DataError if files are missing or damaged."""
    folder: str = ""
    """Below the folder of the data; "" for what is part of this project."""
    parts: tuple[str, ...] = RELEASE
    home: Path | None = None
    """Folder of what is part of this project; None for others."""
    locate: Callable[[Path, str], Path | None] | None = None
    """Finds a file; None for the folder alone. Whoever has it downloads what it does not find."""
    ratings: str = "ratings derived from the labels of the corpus"

    @property
    def ours(self) -> bool:
        """Whether it is part of this project."""
        return self.home is not None

    @property
    def place(self) -> Path:
        """The folder of its files."""
        return self.home or data_folder() / self.folder

    def found(self) -> dict[str, bool]:
        """Return expected file -> whether it is there."""
        if self.locate is not None:
            return {file: self.locate(self.place, file) is not None for file in self.files}
        return {file: any(self.place.glob(file)) for file in self.files}

    @property
    def downloads(self) -> bool:
        """Whether reading it downloads files that are not here."""
        return self.locate is not None and not all(self.found().values())

    def read(self, part: str, password: Password) -> Material:
        """Read one part; raises DataError if there is none, or its files are missing or damaged."""
        if part not in self.parts:
            raise DataError(f"There is no part {part!r} of {self.name}. There are: {', '.join(self.parts)}.")
        return self.load(self.place, part, password)


def data_folder() -> Path:
    """Return the folder of the corpora that are not part of this project; it may not exist."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else _BESIDE


def fraction(name: str) -> float:
    """Map a name to [0, 1) by its hash, the same on every machine: splits must not move when texts are added."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64


def read_release(path: Path, needed: Iterable[str], *, advice: str) -> list[tuple[str, dict[str, str]]]:
    """Read a CSV or TSV file that the owners of a corpus published: for each row its place and its cells.

    Raises DataError if the file is missing, with this advice, is damaged or cut off, or lacks a `needed` column.
    """
    if not path.is_file():
        raise DataError(f"{path} cannot be read: No such file or directory. {advice}")
    try:
        table = read_table(path, header=True)
    except DataError as error:
        raise DataError(
            f"{path} is damaged: {str(error).removesuffix(SKIP)} Restore the file of the release."
        ) from error
    if missing := sorted(set(needed) - set(table.columns)):
        names = list_names(table.columns)
        raise DataError(f"{path} has no column {', '.join(missing)}, only: {names}. Restore the file.")
    rows = [dict(zip(table.columns, cells, strict=True)) for cells in table.rows]
    return [(f"{path}, row {number}", row) for number, row in enumerate(rows, start=1)]


def read_entries(folder: str | Path, form: TypeAdapter[T]) -> tuple[T, ...]:
    """Read the lines of the .jsonl files of a folder, in alphabetical order, as entries; a DataError names the line."""
    paths = sorted(Path(folder).glob("*.jsonl"))
    if not paths:
        raise DataError(f"There is no .jsonl file in {folder}. {_RESTORE}")
    lines = (
        (f"{path}, line {number}", line)
        for path in paths
        for number, line in enumerate(read_utf8(path, _RESTORE).split("\n"), start=1)
        if line.strip()
    )
    return tuple(check_form(form.validate_json, line, place) for place, line in lines)


def check_form(read: Callable[[Any], T], content: object, place: str) -> T:
    """Return content as what a pydantic reader makes of it; raises DataError if it is of another form."""
    try:
        return read(content)
    except ValueError as error:
        raise DataError(
            f"{place} is not of the form of the corpus: {explain(error)} See README.md in its folder."
        ) from error
