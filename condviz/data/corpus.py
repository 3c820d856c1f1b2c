"""What every corpus has in common: what it is, where its files are, and how its rows are built."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from condviz.data.rows import RatedPair, Shortcuts, measure_shortcuts
from condviz.errors import DataError

VARIABLE = "CONDVIZ_DATA"
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
RELEASE = ("train", "dev", "test")
"""Parts of most corpora."""
Password = Callable[[], str]
"""Asked for a password only if a file needs one."""


class Material(ABC):
    """One part of a corpus, read and checked, from which rows are built."""

    @property
    @abstractmethod
    def texts(self) -> int | None:
        """Number of texts; None to count those that occur in the rows."""

    @abstractmethod
    def rows(self, seed: int) -> list[RatedPair]:
        """Build the rated rows, the two rows of a contrast side by side; the seed decides pairs and wordings."""

    def blocks(self, seed: int, sentences: int) -> list[list[RatedPair]] | None:
        """Build rows in blocks of at least so many sentences that share wordings; None if there are only pairs."""
        return None


@dataclass(frozen=True)
class Corpus:
    """A corpus: what is known before it is read, and how to read it.

    Attributes:
        name: Name that `corpora.build`, recipes and the command line take.
        title: One line.
        licence: Short name.
        source: Where the files come from.
        attribution: What has to be said where anything made from it is passed on.
        files: Expected files.
        load: Takes the folder of the corpus, the part and a password; raises DataError if files are missing or damaged.
        folder: Below the folder of the data; "" for what is part of this project.
        parts: Allowed parts.
        home: Folder of what is part of this project; None for others.
        shortcuts: Measures what its rows give away without being understood.
    """

    name: str
    title: str
    licence: str
    source: str
    attribution: str
    files: tuple[str, ...]
    load: Callable[[Path, str, Password], Material]
    folder: str = ""
    parts: tuple[str, ...] = RELEASE
    home: Path | None = None
    shortcuts: Callable[[Sequence[RatedPair]], Shortcuts] = measure_shortcuts

    @property
    def ours(self) -> bool:
        """Whether it is part of this project."""
        return self.home is not None

    def place(self, folder: Path | None = None) -> Path:
        """Return the folder of its files; `folder` replaces the one of all third-party corpora."""
        return self.home or (folder or data_folder()) / self.folder

    def found(self, folder: Path | None = None) -> dict[str, bool]:
        """Return expected file -> whether it is there."""
        return {file: any(self.place(folder).glob(file)) for file in self.files}

    def read(self, part: str, password: Password, folder: Path | None = None) -> Material:
        """Read one part.

        Raises:
            DataError: If there is no such part, or its files are missing or damaged.
        """
        if part not in self.parts:
            raise DataError(f"There is no part {part!r} of {self.name}. There are: {', '.join(self.parts)}.")
        return self.load(self.place(folder), part, password)


def data_folder() -> Path:
    """Return the folder of the corpora that are not part of this project; it may not exist."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else _BESIDE


def fraction(name: str) -> float:
    """Map a name to [0, 1) by its hash, the same on every machine: splits must not move when texts are added."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64


def read_jsonl(folder: str | Path) -> Iterator[tuple[str, Any]]:
    """Read all .jsonl files of a folder in alphabetical order; yields (place for messages, value) for each line.

    Raises:
        DataError: If there is no such file, or a line is not JSON; names the line.
    """
    paths = sorted(Path(folder).glob("*.jsonl"))
    if not paths:
        raise DataError(f"There is no .jsonl file in {folder}. Restore this folder, or set CONDVIZ_ASSETS.")
    for path in paths:
        for number, line in enumerate(read_text(path).split("\n"), start=1):
            if line.strip():
                place = f"{path}, line {number}"
                yield place, parse_json(line, place)


def read_text(path: Path) -> str:
    """Read a UTF-8 file.

    Raises:
        DataError: If it is missing or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Restore its folder.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start:,}). Restore the file.") from error


def parse_json(text: str, place: str) -> Any:  # noqa: ANN401 (any JSON)
    """Parse JSON.

    Raises:
        DataError: If it is not JSON.
    """
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{place} is not JSON: {str(error)[:80]}. Restore the file.") from error
