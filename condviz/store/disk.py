"""Corpora on disk, in the Lance format: built in slices, so that a build goes on where it was stopped or killed.

A store is a folder with `store.json`, written first, and `rows.lance`, to which each slice is added in one atomic step:
whatever happens, it holds whole slices. A finished store also has `vectors.npy`, the vectors once more without anything
between them: searches map it into memory. Lance (the package pylance) rather than LanceDB, which is built on it: the
store needs its tables and versions, not the server, the embedding registry and the query language on top.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from condviz.data.files import write_text
from condviz.errors import DataError, require
from condviz.models.registry import load
from condviz.store.corpus import BLOCK_ROWS, Block, Corpus, Identity, Progress, as_column, to_stored
from condviz.store.sources import Kind, Row, Source, read_source

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

DEFAULT_MODEL = "hyper-cl"
VERSION = 2
SLICE_ROWS = 2_048
"""Rows that a kill can cost; a commit takes some 30 ms, encoding a slice seconds."""
IO_BYTES = 64 * 2**20
"""Read ahead of a scan; the 2 GB that Lance takes by default would be more than the vectors."""
_META, _ROWS, _FLAT, _LOCK = "store.json", "rows.lance", "vectors.npy", ".building"
_ROW, _TEXT, _VECTOR, _NORM = "_row", "_text", "_vector", "_norm"
Vectors = tuple[np.ndarray, np.ndarray]
"""Vectors of length one (b, d) float16, and their lengths before (b,) float32."""
Encoder = Callable[[Iterable[list[str]]], Iterator[Vectors]]


@dataclass(frozen=True)
class Slice:
    """Rows that are stored in one step.

    Attributes:
        rows: The rows.
        start: Place of the first of them in the store.
        places: Where the vector of each is: its own place, or that of an equal text before it.
    """

    rows: list[Row]
    start: int
    places: list[int]

    @property
    def fresh(self) -> list[str]:
        """Texts that have to be encoded."""
        return [row.text for number, row in enumerate(self.rows) if self.places[number] == self.start + number]


@dataclass(frozen=True)
class Part:
    """One source of a store: what it was built from, or what was added.

    Attributes:
        source: Its name.
        digest: Its SHA-256.
        total: Rows when all are encoded.
        left_out: Rows of the source that have no usable text.
    """

    source: str
    digest: str
    total: int
    left_out: int


@dataclass(frozen=True)
class Meta:
    """What store.json says.

    Attributes:
        version: Of this form.
        identity: The model.
        column: Column of the texts in the first source.
        columns: The other columns -> what they hold.
        parts: The sources, in the order of their rows.
    """

    version: int
    identity: Identity
    column: str
    columns: dict[str, Kind]
    parts: tuple[Part, ...]

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
            DataError: If the folder is no store, the file is damaged, or a newer version wrote it.
        """
        path = folder / _META
        if not path.is_file():
            raise DataError(
                f"{folder} is no store: it has no {_META}. Build one: python -m condviz store build FILE --out {folder}"
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
            self._data = _open_rows(folder)
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
        for start in range(0, len(self), BLOCK_ROWS):
            yield start, vectors[start : start + BLOCK_ROWS], norms[start : start + BLOCK_ROWS]
            if start // BLOCK_ROWS % 8 == 7 and hasattr(mmap, "MADV_DONTNEED"):
                vectors.base.madvise(mmap.MADV_DONTNEED)  # what was read stays in the cache of the system, not in ours

    def write_flat(self) -> None:
        """Write the flat copy of the vectors: scanning it takes a tenth of the time of decoding the rows."""
        written = self.folder / f".{_FLAT}.part"
        shape = len(self), self.identity.dimension
        flat = np.lib.format.open_memmap(written, mode="w+", dtype=np.float16, shape=shape)
        for start, rows, _ in self._read_blocks():
            flat[start : start + len(rows)] = rows
        flat.flush()
        written.replace(self.folder / _FLAT)

    def _open_flat(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the flat vectors and their lengths; None where there are none, or of an earlier state."""
        try:
            vectors = np.load(self.folder / _FLAT, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError):
            return None
        if vectors.shape != (len(self), self.identity.dimension) or vectors.dtype != np.float16:
            return None
        with _reading(self.folder):
            norms = self._data.to_table(columns=[_NORM]).column(0).to_numpy()
        return vectors, norms

    def vectors(self, places: np.ndarray) -> Vectors:
        """Return the vectors of some rows, (b, d) float16, and their lengths, (b,)."""
        with _reading(self.folder):
            return _take(self._data, places, self.identity.dimension)

    def rows(self, places: Iterable[int]) -> list[dict[str, Any]]:
        """Return rows as "row", "text" and the columns."""
        with _reading(self.folder):
            found = self._data.take(list(places), columns=[_ROW, _TEXT, *self.columns]).to_pylist()
        return [{"row": row.pop(_ROW), "text": row.pop(_TEXT), **row} for row in found]

    def column(self, name: str) -> np.ndarray:
        """Return one column for filters, (n,)."""
        stored = {"row": _ROW, "text": _TEXT}.get(name, name)
        kind: Kind = {"row": "number", "text": "text"}.get(name) or self.columns[name]
        with _reading(self.folder):
            return as_column(self._data.to_table(columns=[stored]).column(0).to_pylist(), kind)

    def _read_blocks(self) -> Iterator[Block]:
        start = 0
        with _reading(self.folder):
            for batch in self._data.to_batches(
                columns=[_VECTOR, _NORM],
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
    """Open a store; loads no vectors and no model.

    Raises:
        DataError: If the folder is no store, is damaged, or holds no row yet.
        MissingExtraError: If pylance is not installed.
    """
    return Store(Path(path), Meta.read(Path(path)))


def build_store(
    source: str | Path,
    out: str | Path,
    *,
    column: str = "",
    model: str | ConditionalScorer = DEFAULT_MODEL,
    skip_bad: bool = False,
    ray: str | None = None,
    workers: int = 0,
    progress: Progress | None = None,
) -> Store:
    """Encode the texts of a file into a store; goes on where an earlier build was stopped or killed.

    Args:
        source: A CSV, TSV, JSONL, TXT or Parquet file, a folder of those, or "hf://datasets/OWNER/NAME".
        out: Folder of the store.
        column: Column of the texts; "" where there is only one, or one is called text or sentence.
        model: A name or a loaded model with vectors.
        skip_bad: Leave out rows whose text cannot be used; those without any text are always left out.
        ray: Encode on a Ray cluster: its address, "auto", or "local" for one on this machine.
        workers: Models on the cluster; 0 for as many as fit.
        progress: Told (rows stored, rows in all) after each slice; may raise to stop. What is stored stays.

    Raises:
        DataError: If the source cannot be used, the folder holds something else, or the disk is full.
        ConfigError: If the model has no vectors.
    """
    folder = Path(out)
    require("lance", "search")
    read = read_source(source, column, skip_bad=skip_bad)  # every row is checked before anything is encoded
    with _writing(folder):
        begun = Meta.read(folder) if (folder / _META).is_file() else None
        if begun is None and any(item.name != _LOCK for item in folder.iterdir()):
            raise DataError(f"{folder} exists and is no store. Choose another folder with --out.")
        if isinstance(model, str):
            model = load(model, precision=begun.identity.precision if begun else "auto")
        meta = begun or Meta(VERSION, Identity.of(model), read.column, dict(read.columns), (_part(read),))
        _check_model(folder, meta.identity, Identity.of(model))
        if meta.parts[0].digest != read.digest:
            raise DataError(
                f"{folder} was built from {meta.parts[0].source} as it was then; {read.name} has other rows. Choose "
                "another folder with --out, delete this one, or add the rows to it: condviz store append."
            )
        if begun is None:
            write_text(folder / _META, meta.to_json())
        _add_rows(folder, meta, 0, read, _encoder(model, ray, workers), progress)
        return _finish(folder)


def append_store(
    source: str | Path,
    store: str | Path,
    *,
    column: str = "",
    model: str | ConditionalScorer | None = None,
    skip_bad: bool = False,
    ray: str | None = None,
    workers: int = 0,
    progress: Progress | None = None,
) -> Store:
    """Add the texts of another file to a store; goes on where it was stopped or killed.

    A text that the store holds already takes its vector from there, for which the texts of the store are read into
    memory. A file that has been added adds nothing the second time. The number of a row counts on from file to file.

    Args:
        source, skip_bad, ray, workers, progress: As in `build_store`.
        store: Folder of a store.
        column: Column of the texts; "" for that of the store.
        model: None for the one whose vectors are stored; any other is refused.

    Raises:
        DataError: If the source cannot be used or has other columns, the model is another one, an earlier file has not
            been added to its end, or the disk is full.
    """
    folder = Path(store)
    column = column or Meta.read(folder).column
    read = read_source(source, column, skip_bad=skip_bad)
    with _writing(folder):
        meta = Meta.read(folder)
        if not isinstance(model, str):
            model = model or meta.identity.load()
        else:
            model = load(model, precision=meta.identity.precision)
        _check_model(folder, meta.identity, Identity.of(model))
        read = _fit_columns(folder, meta, read)
        digests = [part.digest for part in meta.parts]
        if read.digest not in digests:
            data = _open_rows(folder)
            if data is None or data.count_rows() < meta.total:
                raise DataError(
                    f"{folder} does not hold all rows of {meta.parts[-1].source} yet. Run the command for that file "
                    "again first: it goes on where it stopped."
                )
            meta, digests = replace(meta, parts=(*meta.parts, _part(read))), [*digests, read.digest]
            write_text(folder / _META, meta.to_json())
        _add_rows(folder, meta, digests.index(read.digest), read, _encoder(model, ray, workers), progress)
        return _finish(folder)


def _part(source: Source) -> Part:
    return Part(source.name, source.digest, source.total, source.left_out)


def _check_model(folder: Path, old: Identity, new: Identity) -> None:
    """Refuse to mix vectors."""
    if (old.weights, old.precision) != (new.weights, new.precision):
        raise DataError(
            f"{folder} holds vectors of {old.model} ({old.weights[:12]}, {old.precision}); {new.model} "
            f"({new.weights[:12]}, {new.precision}) makes others. Choose another folder, or the same model."
        )


def _fit_columns(folder: Path, meta: Meta, source: Source) -> Source:
    """Return a source whose cells are those of the store; refuse what the store could not hold."""
    for name, kind in source.columns.items():
        if name not in meta.columns:
            raise DataError(
                f"{source.name} has a column {name}, which {folder} has not. It has: "
                f"{', '.join(meta.columns) or 'none'}. Leave the column out of the file, or rename it."
            )
        if (meta.columns[name], kind) == ("number", "text"):
            raise DataError(f"Column {name} of {source.name} holds text; in {folder} it holds numbers. Mend the file.")
    return replace(source, columns=meta.columns)


def _encoder(model: ConditionalScorer, ray: str | None, workers: int) -> Encoder:
    """Return what encodes lists of texts, one after the other: here, or on a cluster."""
    if ray is None:
        return lambda slices: (to_stored(model.encode_sentences(texts)) for texts in slices)
    from condviz.store.scale import encode_on_ray

    return lambda slices: encode_on_ray(slices, Identity.of(model), address=ray, workers=workers)


def _add_rows(folder: Path, meta: Meta, place: int, source: Source, encode: Encoder, progress: Progress | None) -> None:
    """Encode what is missing of one source."""
    import lance

    data = _open_rows(folder)
    stored = 0 if data is None else data.count_rows()
    before, part = meta.parts[:place], meta.parts[place]
    first = sum(one.total for one in before)
    counted = sum(one.total + one.left_out for one in before)
    if stored >= first + part.total:
        return
    rows = (replace(row, number=row.number + counted) for row in source.rows(stored - first))
    known = _places(data) if before else None
    kept, asked = tee(_slices(rows, stored, known))
    done = stored - first
    for found, encoded in zip(kept, encode(one.fresh for one in asked), strict=True):
        batch = to_table(found.rows, meta, *_gather(found, encoded, data, meta.identity.dimension))
        # Half a first slice, left by a kill, is no table yet and is written over.
        data = lance.write_dataset(batch, str(folder / _ROWS), mode="append" if found.start else "overwrite")
        done += len(found.rows)
        if progress:
            progress(done, part.total)
    if done != part.total:
        raise DataError(f"{source.name} has changed while it was read: {done:,} rows, not {part.total:,}. Build again.")


def _slices(rows: Iterator[Row], start: int, known: dict[str, int] | None) -> Iterator[Slice]:
    """Cut rows into slices; `known`, if given, holds the place of every text before them, and is filled."""
    while found := list(islice(rows, SLICE_ROWS)):
        own = range(start, start + len(found))
        places = [known.setdefault(row.text, at) for row, at in zip(found, own, strict=True)] if known else list(own)
        yield Slice(found, start, places)
        start += len(found)


def _places(data: Any) -> dict[str, int]:  # noqa: ANN401 (a LanceDataset)
    """Return where each text of a store is first."""
    known: dict[str, int] = {}
    for place, text in enumerate(data.to_table(columns=[_TEXT]).column(0).to_pylist()):
        known.setdefault(text, place)
    return known


def _gather(found: Slice, encoded: Vectors, data: Any, size: int) -> Vectors:  # noqa: ANN401 (a LanceDataset)
    """Return the vectors of all rows of a slice, given those of its fresh texts."""
    places, index = np.unique(found.places, return_inverse=True)
    vectors, norms = encoded
    if (places < found.start).any():
        stored = _take(data, places[places < found.start], size)
        vectors, norms = (np.concatenate(pair) for pair in zip(stored, encoded, strict=True))
    return vectors[index], norms[index]


def _finish(folder: Path) -> Store:
    """Merge the slices, and write the flat copy of the vectors where it is missing or of an earlier state."""
    data = _open_rows(folder)
    if data is not None and len(data.get_fragments()) > 1:
        data.optimize.compact_files()
        data.cleanup_old_versions(older_than=timedelta(0))
    store = open_store(folder)
    if store.complete and store._open_flat() is None:
        store.write_flat()
    return store


def to_table(rows: list[Row], meta: Meta, vectors: np.ndarray, norms: np.ndarray) -> Any:  # noqa: ANN401 (pyarrow)
    """Return a slice as it is stored, a pyarrow table."""
    import pyarrow as pa

    types = {"number": pa.float64(), "text": pa.string()}
    size = meta.identity.dimension
    columns = {
        _ROW: pa.array([row.number for row in rows], pa.int64()),
        _TEXT: pa.array([row.text for row in rows], pa.string()),
        _VECTOR: pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), size),
        _NORM: pa.array(norms),
    }
    for name, kind in meta.columns.items():
        columns[name] = pa.array([row.cells.get(name) for row in rows], types[kind])
    return pa.table(columns)


def _take(data: Any, places: np.ndarray, size: int) -> Vectors:  # noqa: ANN401 (a LanceDataset)
    table = data.take(places.tolist(), columns=[_VECTOR, _NORM]).combine_chunks()
    return _to_arrays(table.to_batches()[0], size)


def _to_arrays(batch: Any, size: int) -> Vectors:  # noqa: ANN401 (pyarrow)
    vectors = batch.column(0).flatten().to_numpy(zero_copy_only=True).reshape(-1, size)
    return vectors, batch.column(1).to_numpy(zero_copy_only=True)


def _open_rows(folder: Path) -> Any | None:  # noqa: ANN401 (a LanceDataset)
    """Open the rows; None where no slice has been written to its end."""
    lance = require("lance", "search")
    versions = folder / _ROWS / "_versions"
    if not versions.is_dir() or not any(versions.glob("*.manifest")):
        return None
    return lance.dataset(str(folder / _ROWS))


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turn the errors of a damaged store into one that says what to do."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:160]
        raise DataError(
            f"{folder} is damaged or incomplete ({reason}). Copy it again, or delete it and build it again."
        ) from error


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Make the folder, keep other processes out, and turn the errors of a full disk into one that says what to do."""
    if folder.is_file():
        raise DataError(f"{folder} is a file. Choose a folder with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / _LOCK, timeout=0):  # a killed process leaves nothing locked
            yield
    except Timeout as error:
        raise DataError(f"Another process is building {folder}. Wait for it, or stop it.") from error
    except OSError as error:
        reason = (error.strerror or str(error)).splitlines()[0][:160]
        raise DataError(
            f"{folder} could not be written ({reason}). What was stored is kept: free some space, and run the same "
            "command again."
        ) from error
