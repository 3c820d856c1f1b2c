"""Corpora on disk, in the Lance format: built in slices, so that a build goes on where it was stopped or killed.

A store is a folder with `store.json`, written first, and `rows.lance`, to which each slice is added in one atomic step:
whatever happens, it holds whole slices. A finished store also has `vectors.npy`, the vectors once more without anything
between them: searches map it into memory. Lance (the package pylance) rather than LanceDB, which is built on it: the
store needs its tables and versions, not the server, the embedding registry and the query language on top.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from condviz.data.files import open_path
from condviz.data.scenes import group_of, load_families
from condviz.data.tables import Kind
from condviz.errors import DataError, first_line, require
from condviz.models.registry import load
from condviz.store.corpus import (
    BLOCK_ROWS,
    DEFAULT_MODEL,
    Block,
    Corpus,
    Identity,
    Row,
    as_column,
    encode_corpus,
    to_cell,
)
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

VERSION = 2
IO_BYTES = 64 * 2**20
"""Read ahead of a scan; the 2 GB that Lance takes by default would be more than the vectors."""
MAPPED_BLOCKS = 64
"""Blocks of the flat copy that stay mapped: 100 MB at 384 dimensions."""
META, ROWS, _FLAT = "store.json", "rows.lance", "vectors.npy"
ROW, TEXT, VECTOR, NORM = "_row", "_text", "_vector", "_norm"
Vectors = tuple[np.ndarray, np.ndarray]
"""Vectors of length one (b, d) float16, and their lengths before (b,) float32."""


@dataclass(frozen=True)
class Part:
    """One source of a store: what it was built from, or what was added."""

    source: str
    digest: str
    """SHA-256, see `condviz.store.corpus.Source`."""
    total: int
    """Rows when all are encoded."""
    left_out: int
    """Rows of the source that have no usable text."""


@dataclass(frozen=True)
class Meta:
    """What store.json says."""

    version: int
    identity: Identity
    column: str
    """Column of the texts in the first source."""
    columns: dict[str, Kind]
    """The other columns -> what they hold."""
    parts: tuple[Part, ...]
    """The sources, in the order of their rows."""

    @property
    def total(self) -> int:
        """Rows when all are encoded."""
        return sum(part.total for part in self.parts)

    @property
    def left_out(self) -> int:
        """Rows of the sources that have no usable text."""
        return sum(part.left_out for part in self.parts)

    def to_json(self) -> str:
        """Return the content of store.json."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Meta:
        """Read store.json.

        Raises:
            DataError: If the folder is not a store, the file is damaged, or a newer version wrote it.
        """
        path = folder / META
        if not path.is_file():
            raise DataError(
                f"{folder} is not a store: no {META} in it. Build it: python -m condviz store build FILE --out {folder}"
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["version"] == 1:  # of one source, whose fields stood beside the others
                names = [field.name for field in fields(Part)]
                content |= {"version": VERSION, "parts": [{name: content.pop(name) for name in names}]}
            if content["version"] != VERSION:
                raise DataError(
                    f"{folder} is a store of version {content['version']}, this program reads version {VERSION}. Build "
                    "it again, or use the program that built it."
                )
            parts = tuple(Part(**part) for part in content["parts"])
            return cls(**content | {"identity": Identity(**content["identity"]), "parts": parts})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is damaged ({error}). Copy the store again, or build it again.") from error


class Store(Corpus):
    """A corpus on disk, opened with `open_store`."""

    def __init__(self, folder: Path, meta: Meta) -> None:
        """Open the rows; reads none of them.

        Raises:
            DataError: If there are no rows yet, or files are missing or damaged.
        """
        self.folder, self.meta = folder, meta
        self.name, self.identity = folder.name, meta.identity
        with _reading(folder):
            self._data: Any = open_rows(folder)  # of lance, which is loaded when it is needed
            self._size = 0 if self._data is None else self._data.count_rows()
        if not self._size:
            raise DataError(f"{folder} has no rows yet. Run the build again: it goes on where it stopped.")
        self._flat: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def columns(self) -> dict[str, Kind]:
        """Name -> what it holds, without the texts."""
        return dict(self.meta.columns)

    @property
    def complete(self) -> bool:
        """Whether every row of the source has been encoded."""
        return len(self) == self.meta.total

    def blocks(self) -> Iterator[Block]:
        """Yield all vectors in order: from the flat copy of a finished store, mapped into memory, else the rows."""
        if self._flat is None:
            self._flat = self._open_flat()
        if self._flat is None:
            yield from self._read_blocks()
            return
        vectors, norms = self._flat
        for number, start in enumerate(range(0, len(self), BLOCK_ROWS), start=1):
            yield start, vectors[start : start + BLOCK_ROWS], norms[start : start + BLOCK_ROWS]
            if number % MAPPED_BLOCKS == 0 and hasattr(mmap, "MADV_DONTNEED"):
                # What was read stays in the cache of the system, not in ours.
                cast("mmap.mmap", vectors.base).madvise(mmap.MADV_DONTNEED)

    def write_flat(self) -> None:
        """Write the flat copy of the vectors: scanning it takes a tenth of the time of decoding the rows.

        Only on this machine: nothing else can be mapped into memory.
        """
        if not isinstance(self.folder, Path):
            return
        written = self.folder / f".{_FLAT}.part"
        shape = len(self), self.identity.dimension
        flat = np.lib.format.open_memmap(written, mode="w+", dtype=np.float16, shape=shape)
        for start, rows, _ in self._read_blocks():
            flat[start : start + len(rows)] = rows
        flat.flush()
        written.replace(self.folder / _FLAT)

    def _open_flat(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the flat vectors and their lengths; None where there are none, or of an earlier state."""
        if not isinstance(self.folder, Path):
            return None
        try:
            # To torch these look as if they could be written, so that it takes them as they are; nothing writes.
            vectors = np.load(self.folder / _FLAT, mmap_mode="c", allow_pickle=False)
        except (OSError, ValueError, EOFError):  # none, cut off, empty
            return None
        if vectors.shape != (len(self), self.identity.dimension) or vectors.dtype != np.float16:
            return None
        with _reading(self.folder):
            norms = self._data.to_table(columns=[NORM]).column(0).to_numpy()
        return vectors, norms

    def vectors(self, places: np.ndarray) -> Vectors:
        """Return the vectors of some rows, (b, d) float16, and their lengths, (b,)."""
        with _reading(self.folder):
            return take(self._data, places, self.identity.dimension)

    def rows(self, places: Iterable[int]) -> list[dict[str, Any]]:
        """Return rows as "row", "text" and the columns."""
        with _reading(self.folder):
            found = self._data.take(list(places), columns=[ROW, TEXT, *self.columns]).to_pylist()
        cells = [{name: to_cell(row[name], kind) for name, kind in self.columns.items()} for row in found]
        return [{"row": row[ROW], "text": row[TEXT], **one} for row, one in zip(found, cells, strict=True)]

    def column(self, name: str) -> np.ndarray:
        """Return one column for filters, (n,)."""
        stored = {"row": ROW, "text": TEXT}.get(name, name)
        own: dict[str, Kind] = {"row": "number", "text": "text"}
        kind = own.get(name) or self.columns[name]
        with _reading(self.folder):
            return as_column(self._data.to_table(columns=[stored]).column(0).to_pylist(), kind)

    def _read_blocks(self) -> Iterator[Block]:
        start = 0
        with _reading(self.folder):
            for batch in self._data.to_batches(
                columns=[VECTOR, NORM],
                batch_size=BLOCK_ROWS,
                scan_in_order=True,
                io_buffer_size=IO_BYTES,
                batch_readahead=2,
                fragment_readahead=1,
            ):
                vectors, norms = _to_arrays(batch, self.identity.dimension)
                yield start, vectors, norms
                start += len(norms)


def open_store(path: str | Path) -> Store:
    """Open a store, in a folder or at a URL that Lance and fsspec know; loads no vectors and no model.

    Raises:
        DataError: If the folder is not a store, is damaged, or holds no row yet.
        MissingExtraError: If pylance is not installed.
    """
    folder = open_path(path)
    return Store(folder, Meta.read(folder))


def to_table(rows: list[Row], meta: Meta, vectors: np.ndarray, norms: np.ndarray, data: Any = None) -> Any:  # noqa: ANN401
    """Return a slice as it is stored, a pyarrow table: cells as texts, unless the rows there hold numbers.

    Until version 0.3, columns of numbers were stored as numbers.
    """
    import pyarrow as pa

    types = {} if data is None else {one.name: one.type for one in data.schema}
    size = meta.identity.dimension
    columns = {
        ROW: pa.array([row.number for row in rows], pa.int64()),
        TEXT: pa.array([row.text for row in rows], pa.string()),
        VECTOR: pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), size),
        NORM: pa.array(norms),
    }
    for name, kind in meta.columns.items():
        kept = types.get(name, pa.string())
        cells = [row.cells.get(name) for row in rows]
        columns[name] = (
            pa.array(as_column(cells, kind), kept, from_pandas=True) if kept != pa.string() else pa.array(cells, kept)
        )
    return pa.table(columns)


def take(data: Any, places: np.ndarray, size: int) -> Vectors:  # noqa: ANN401 (a LanceDataset)
    """Return the vectors of some rows and their lengths."""
    table = data.take(places.tolist(), columns=[VECTOR, NORM]).combine_chunks()
    return _to_arrays(table.to_batches()[0], size)


def _to_arrays(batch: Any, size: int) -> Vectors:  # noqa: ANN401 (pyarrow)
    vectors = batch.column(0).flatten().to_numpy(zero_copy_only=True).reshape(-1, size)
    return vectors, batch.column(1).to_numpy(zero_copy_only=True)


def open_rows(folder: Path) -> Any | None:  # noqa: ANN401 (a LanceDataset)
    """Open the rows; None where no slice has been written to its end."""
    lance = require("lance", "search")
    versions = folder / ROWS / "_versions"
    if not versions.is_dir() or not any(versions.glob("*.manifest")):
        return None
    return lance.dataset(str(folder / ROWS))


def reason_of(error: Exception) -> str:
    """Return what an error of the system or of Lance says, without the line of Lance's own source where it arose."""
    return (getattr(error, "strerror", None) or first_line(error)).split(", /")[0]


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turn the errors of a damaged store into one that says what to do."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"{folder} is damaged or incomplete ({reason_of(error)}). Copy it again, or delete it and build it again."
        ) from error


# ---- the corpus that ships, encoded when it is first asked for -------------------------------------------------------

SHIPPED = "scenes"
ASPECTS = ("number_of_people", "gender", "age_group", "time_of_day", "weather", "animal", "object_colour")
"""What its sentences tell: a search under a condition that a text does not tell puts that text anywhere."""
_corpora: WeakKeyDictionary[ConditionalScorer, Corpus] = WeakKeyDictionary()
_lock = Lock()


def open_corpus(
    store: str | Path | Corpus, model: ConditionalScorer | None = None, *, progress: Progress | None = None
) -> Corpus:
    """Open a store, or the corpus that ships.

    Args:
        store: Folder of a store, an open corpus, or `SHIPPED`, unless a store has that name.
        model: Encodes the corpus that ships, if it encodes sentences apart; else `DEFAULT_MODEL` does.
        progress: Told (texts encoded, texts); may raise to stop.
    """
    if isinstance(store, Corpus):
        return store
    if str(store) != SHIPPED or Path(store).is_dir():
        return open_store(store)
    if model is None or not model.separable:
        model = load(DEFAULT_MODEL)
    with _lock:  # a second visitor waits for the first one's vectors
        if model not in _corpora:
            texts, columns = _sentences()
            _corpora[model] = encode_corpus(model, texts, columns, name=SHIPPED, progress=progress)
        return _corpora[model]


@cache
def _sentences() -> tuple[list[str], dict[str, list[str]]]:
    """Return sentences of families outside of training, each telling two of `ASPECTS` or more, and these as columns."""
    families = [family for family in load_families() if group_of(family) in ("test", "unseen_domains")]
    found = {
        scene.text: {"domain": family.domain, **{name: scene.aspects.get(name, "") for name in ASPECTS}}
        for family in families
        for scene in family.scenes[:3]
        if sum(name in scene.aspects for name in ASPECTS) >= 2
    }
    return list(found), {name: [row[name] for row in found.values()] for name in ("domain", *ASPECTS)}
