"""A corpus: the rows of a table with texts, from a source that is read twice, and their vectors by one model.

`read_source` checks every row before hours of encoding begin, and `Source.rows` yields them. Vectors are in memory
here, on disk in `condviz.store.disk`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.data.files import ENDINGS, HUB, find_files
from condviz.data.pairs import TEXT_NAMES, check_texts
from condviz.data.tables import Kind, Report, kind_of, list_names, read_records, to_number
from condviz.data.tables.formats import Form
from condviz.data.tables.memory import Record, to_text
from condviz.data.tables.report import is_missing
from condviz.data.texts import check_sentence
from condviz.errors import DataError
from condviz.models.registry import load
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

Cell = int | float | str | None
"""A cell as filters and results have it: a number only where it is written back as the text that it was."""

_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
RESERVED = ("row", "text")
"""Names that filters know beside the columns of the file."""


@dataclass(frozen=True)
class Row:
    """One text of a corpus."""

    number: int
    """Row of the source, from 1, rows without text included."""
    text: str
    cells: dict[str, str | None]
    """The other columns, as the texts that they were; None for blank ones."""


@dataclass(frozen=True)
class Source:
    """Files whose rows have all been checked."""

    name: str
    files: tuple[Path, ...]
    column: str
    """Of the texts, as the files name it."""
    columns: Mapping[str, Kind]
    """The other columns, by the names that filters use."""
    total: int
    """Rows with a usable text."""
    left_out: int
    digest: str
    """SHA-256 of the files, the column and what was said about them."""
    names: Mapping[str, str]
    """Other column, as the files name it -> name that filters use."""
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
        told = "row has no text and was" if blank == 1 else "rows have no text and were"
        report.remarks.append(f"{blank:,} {told} left out.")
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


# ---- texts, their columns and the vectors of one model ---------------------------------------------------------------

DEFAULT_MODEL = "hyper-cl"
"""What encodes a corpus where no other model is asked for."""
BLOCK_ROWS = 2_048
"""Rows of one product: in float32 they take 3 MB at 384 dimensions, and stay in the cache of a processor."""
Block = tuple[int, np.ndarray, np.ndarray]
"""First row, vectors of length one (b, d) float16, their lengths before (b,) float32."""


@dataclass(frozen=True)
class Identity:
    """A model, and what its vectors depend on."""

    model: str
    """Name or folder that `condviz.load` takes."""
    weights: str
    """Its `weights_hash`."""
    precision: str
    """Either "float32", "bfloat16", "float16" or "int8"."""
    dimension: int

    @classmethod
    def of(cls, model: ConditionalScorer) -> Identity:
        """Read the identity of a loaded model."""
        name = model.info.path if model.info.source == "folder" else model.info.name
        return cls(name, model.weights_hash, model.backbone.precision, model.backbone.hidden_size)

    def load(self) -> ConditionalScorer:
        """Load the model in the precision of the vectors; DataError if that name has other weights by now."""
        model = load(self.model, precision=self.precision)
        self.check(model)
        return model

    def check(self, model: ConditionalScorer, *, exactly: bool = False) -> None:
        """Raise DataError for a model with other weights or, where vectors are added (`exactly`), another precision."""
        new = Identity.of(model)
        if new.weights != self.weights or (exactly and new.precision != self.precision):
            raise DataError(
                f"The vectors of this corpus are those of {self.model} ({self.weights[:12]}, {self.precision}); "
                f"{new.model} ({new.weights[:12]}, {new.precision}) makes others. Take {self.model}, or build a store "
                "with the other model in another folder."
            )


class Corpus:
    """Texts, columns and vectors in memory.

    Args:
        texts: n texts.
        vectors: (n, d) float16 of length one.
        norms: (n,) float32, the lengths that the vectors had.
        identity: The model.
        columns: Name -> kind and n cells.
        numbers: Row of each text in its source, from 1; None counts them.
        name: For messages and pictures.
    """

    _model: ConditionalScorer | None = None

    def __init__(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        norms: np.ndarray,
        identity: Identity,
        columns: Mapping[str, tuple[Kind, Sequence[Cell]]] | None = None,
        numbers: Sequence[int] | None = None,
        name: str = "in memory",
    ) -> None:
        self.name, self.identity = name, identity
        self._texts, self._vectors, self._norms = list(texts), vectors, norms
        self._columns = dict(columns or {})
        self._numbers = np.arange(1, len(texts) + 1) if numbers is None else np.array(numbers)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def model(self) -> ConditionalScorer:
        """The model whose vectors these are, loaded when it is first asked for; errors as in `Identity.load`."""
        if self._model is None:
            self._model = self.identity.load()
        return self._model

    @property
    def columns(self) -> dict[str, Kind]:
        """Name -> what it holds, without the texts."""
        return {name: kind for name, (kind, _) in self._columns.items()}

    def blocks(self) -> Iterator[Block]:
        """Yield all vectors in order, `BLOCK_ROWS` at a time."""
        for start in range(0, len(self), BLOCK_ROWS):
            stop = start + BLOCK_ROWS
            yield start, self._vectors[start:stop], self._norms[start:stop]

    def vectors(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors of some rows, (b, d) float16, and their lengths, (b,)."""
        return self._vectors[places], self._norms[places]

    def rows(self, places: Iterable[int]) -> list[dict[str, Any]]:
        """Return rows as "row" (its number in the source), "text" and the columns; `places` count from 0."""
        return [
            {"row": int(self._numbers[place]), "text": self._texts[place]}
            | {name: to_cell(cells[place], kind) for name, (kind, cells) in self._columns.items()}
            for place in places
        ]

    def column(self, name: str) -> np.ndarray:
        """Return one column for filters, (n,): numbers as float64 with NaN for blanks, texts as objects."""
        if name == "row":
            return self._numbers.astype(np.float64)
        kind, cells = ("text", self._texts) if name == "text" else self._columns[name]
        return as_column(cells, kind)


class FilterColumns(Mapping[str, np.ndarray]):
    """The columns of a corpus as a filter wants them: each is read when it is asked for."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def __getitem__(self, name: str) -> np.ndarray:
        return self._corpus.column(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("row", "text", *self._corpus.columns))

    def __len__(self) -> int:
        return 2 + len(self._corpus.columns)

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)


def as_column(cells: Iterable[Cell], kind: Kind) -> np.ndarray:
    """Return cells as a filter wants them, blanks as NaN or ""."""
    if kind == "number":
        return np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
    values = ["" if cell is None else cell for cell in cells]
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def encode_corpus(
    model: ConditionalScorer,
    texts: Sequence[str],
    columns: Mapping[str, Iterable[Any]] | None = None,
    *,
    name: str = "in memory",
    progress: Progress | None = None,
) -> Corpus:
    """Encode texts into a corpus in memory.

    Args:
        model: With vectors.
        texts: At least one.
        columns: Name -> one cell for each text.
        name: For messages and pictures.
        progress: Told (texts done, n); may raise to stop.

    Raises:
        ConfigError: If the model has no vectors.
        DataError: If a text cannot be used, or columns differ in length.
    """
    model.check_able("encodes")
    checked = [check_sentence(text, f"text {number}") for number, text in enumerate(texts, start=1)]
    if not checked:
        raise DataError("There is no text. Pass at least one.")
    found = check_columns(columns or {})
    for column, (_, cells) in found.items():
        if len(cells) != len(checked):
            raise DataError(
                f"There are {len(checked):,} texts and {len(cells):,} cells of {column}. Pass one for each."
            )
    vectors, norms = to_stored(model.encode_sentences(checked, progress=progress))
    corpus = Corpus(checked, vectors, norms, Identity.of(model), found, name=name)
    corpus._model = model
    return corpus


def to_stored(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split vectors into those of length one, float16, and their lengths, float32."""
    norms = np.linalg.norm(vectors, axis=1).astype(np.float32)
    return (vectors / np.maximum(norms, 1e-12)[:, None]).astype(np.float16), norms
