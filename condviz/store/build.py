"""Build a store in slices, so that it goes on where it was stopped or killed; add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval
from filelock import FileLock, Timeout

from condviz.data.files import open_path, write_text
from condviz.data.tables import Encoding, Header, Separator, SkipBad
from condviz.errors import DataError, require
from condviz.models.registry import load
from condviz.store import disk
from condviz.store.corpus import DEFAULT_MODEL, Identity, Row, Source, read_source, to_stored
from condviz.store.disk import META, Meta, Part, Store, Vectors, open_rows
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

SLICE_ROWS = 2_048
"""Rows that a kill can cost; a commit takes some 30 ms, encoding a slice seconds."""
_LOCK = ".building"
LEFT_OUT = "left_out.csv"
"""Rows of the source read last that could not be used, with the reasons."""
Encoder = Callable[[Iterable[list[str]]], Iterator[Vectors]]


@dataclass(frozen=True)
class Slice:
    """Rows that are stored in one step."""

    rows: list[Row]
    start: int
    """Place of the first of them in the store."""
    places: list[int]
    """Where the vector of each is: its own place, or that of an equal text before it."""

    @property
    def fresh(self) -> list[str]:
        """Texts that have to be encoded."""
        return [row.text for number, row in enumerate(self.rows) if self.places[number] == self.start + number]


def build_store(
    source: str | Path,
    out: str | Path,
    *,
    column: Annotated[str, Doc("Column of the texts (default: the only one, text or sentence)")] = "",
    model: str | ConditionalScorer = DEFAULT_MODEL,
    skip_bad: SkipBad = False,
    header: Header = None,
    separator: Separator = "",
    encoding: Encoding = "",
    ray: Annotated[
        str | None, Doc('Encode on a Ray cluster: its address, "auto", or "local" for one on this machine')
    ] = None,
    workers: Annotated[int, Interval(ge=0), Doc("Models on the cluster; 0 for as many as fit")] = 0,
    progress: Progress | None = None,
) -> Store:
    """Encode the texts of a file into a store; goes on where an earlier build was stopped or killed.

    Args:
        source: A CSV, TSV, JSON, JSONL, TXT, Parquet or Arrow file, a folder of those, or "hf://datasets/OWNER/NAME".
        out: Folder of the store, or a URL that Lance and fsspec know, such as s3://bucket/my.store.
        column: As the signature says.
        model: A name or a loaded model with vectors.
        skip_bad: Leave out rows that cannot be used; those without any text are always left out. Which rows and why is
            in the file left_out.csv of the store.
        header, separator, encoding: As `condviz.read_table` takes them.
        ray, workers: As the signature says.
        progress: Told (rows stored, rows in all) after each slice; may raise to stop. What is stored stays.

    Raises:
        DataError: If the source cannot be used, the folder holds something else, or the disk is full.
        ConfigError: If the model has no vectors.
    """
    folder = open_path(out)
    require("lance", "search")
    form = {"skip_bad": skip_bad, "header": header, "separator": separator, "encoding": encoding}
    read = read_source(source, column, **form)  # every row is checked before anything is encoded
    with _writing(folder):
        begun = Meta.read(folder) if (folder / META).is_file() else None
        there = folder.iterdir() if folder.is_dir() else ()  # a URL is no folder before something lies in it
        if begun is None and any(item.name != _LOCK for item in there):
            raise DataError(f"{folder} exists and is not a store. Choose another folder with --out.")
        model = load(model, precision=begun.identity.precision if begun else "auto")
        model.check_able("encodes")
        meta = begun or Meta(disk.VERSION, Identity.of(model), read.column, dict(read.columns), (_part(read),))
        meta.identity.check(model, exactly=True)
        if meta.parts[0].digest != read.digest:
            raise DataError(
                f"{folder} was built from {meta.parts[0].source} as it was then; {read.name} has other rows. Choose "
                "another folder with --out, delete this one, or add the rows to it: condviz store append."
            )
        if begun is None:
            write_text(folder / META, meta.to_json())
        else:
            read = replace(read, columns=meta.columns)
        _add_rows(folder, meta, 0, read, _encoder(model, ray, workers), progress)
        return _finish(folder)


def append_store(
    source: str | Path,
    store: str | Path,
    *,
    column: str = "",
    model: str | ConditionalScorer | None = None,
    skip_bad: bool = False,
    header: bool | None = None,
    separator: str = "",
    encoding: str = "",
    ray: str | None = None,
    workers: int = 0,
    progress: Progress | None = None,
) -> Store:
    """Add the texts of another file to a store; goes on where it was stopped or killed.

    A text that the store holds already takes its vector from there, for which the texts of the store are read into
    memory. A file that has been added adds nothing the second time. The number of a row counts on from file to file.

    Args:
        source, skip_bad, header, separator, encoding, ray, workers, progress: As in `build_store`.
        store: Folder of a store.
        column: Column of the texts; "" for that of the store.
        model: None for the one whose vectors are stored; any other is refused.

    Raises:
        DataError: If the source cannot be used or has other columns, the model is another one, an earlier file has not
            been added to its end, or the disk is full.
    """
    folder = open_path(store)
    column = column or Meta.read(folder).column
    form = {"skip_bad": skip_bad, "header": header, "separator": separator, "encoding": encoding}
    read = read_source(source, column, **form)
    with _writing(folder):
        meta = Meta.read(folder)
        model = load(model or meta.identity.model, precision=meta.identity.precision)
        meta.identity.check(model, exactly=True)
        read = _fit_columns(folder, meta, read)
        digests = [part.digest for part in meta.parts]
        if read.digest not in digests:
            data = open_rows(folder)
            if data is None or data.count_rows() < meta.total:
                raise DataError(
                    f"{folder} does not hold all rows of {meta.parts[-1].source} yet. Run the command for that file "
                    "again first: it goes on where it stopped."
                )
            meta, digests = replace(meta, parts=(*meta.parts, _part(read))), [*digests, read.digest]
            write_text(folder / META, meta.to_json())
        _add_rows(folder, meta, digests.index(read.digest), read, _encoder(model, ray, workers), progress)
        return _finish(folder)


def _part(source: Source) -> Part:
    return Part(source.name, source.digest, source.total, source.left_out)


def _fit_columns(folder: Path, meta: Meta, source: Source) -> Source:
    """Return a source whose cells are those of the store; refuse what the store could not hold."""
    for name, kind in source.columns.items():
        if name not in meta.columns:
            raise DataError(
                f"{source.name} has a column {name}, which {folder} has not. It has: "
                f"{', '.join(meta.columns) or 'none'}. Leave the column out of the file, or rename it."
            )
        if (meta.columns[name], kind) == ("number", "text"):
            raise DataError(f"Column {name} of {source.name} holds text; in {folder} it holds numbers. Fix the file.")
    return replace(source, columns=meta.columns)


def _encoder(model: ConditionalScorer, ray: str | None, workers: int) -> Encoder:
    """Return what encodes lists of texts, one after the other: here, or on a cluster."""
    if ray is None:
        return lambda slices: (to_stored(model.encode_sentences(texts)) for texts in slices)
    from condviz.store.scale import map_slices

    identity, cluster = Identity.of(model), {"address": ray, "workers": workers}
    return lambda slices: map(
        to_stored, map_slices(([texts] for texts in slices), identity, "encode_sentences", **cluster)
    )


def _add_rows(folder: Path, meta: Meta, place: int, source: Source, encode: Encoder, progress: Progress | None) -> None:
    """Encode what is missing of one source, and note what was left out of it."""
    import lance

    if source.report.left_out:
        write_text(folder / LEFT_OUT, source.report.left_out_csv())
    data = open_rows(folder)
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
        batch = disk.to_table(found.rows, meta, *_gather(found, encoded, data, meta.identity.dimension), data)
        # Half a first slice, left by a kill, is no table yet: files that no version names.
        data = lance.write_dataset(batch, str(folder / disk.ROWS), mode="append" if found.start else "create")
        done += len(found.rows)
        if progress:
            progress(done, part.total)
    if done != part.total:
        raise DataError(f"{source.name} has changed while it was read: {done:,} rows, not {part.total:,}. Build again.")


def _slices(rows: Iterator[Row], start: int, known: dict[str, int] | None) -> Iterator[Slice]:
    """Cut rows into slices; `known`, if given, holds the place of every text before them, and is filled."""
    while found := list(islice(rows, SLICE_ROWS)):
        own = range(start, start + len(found))
        if known is not None:
            own = [known.setdefault(row.text, at) for row, at in zip(found, own, strict=True)]
        yield Slice(found, start, list(own))
        start += len(found)


def _places(data: Any) -> dict[str, int]:  # noqa: ANN401 (a LanceDataset)
    """Return where each text of a store is first."""
    known: dict[str, int] = {}
    for place, text in enumerate(data.to_table(columns=[disk.TEXT]).column(0).to_pylist()):
        known.setdefault(text, place)
    return known


def _gather(found: Slice, encoded: Vectors, data: Any, size: int) -> Vectors:  # noqa: ANN401 (a LanceDataset)
    """Return the vectors of all rows of a slice, given those of its fresh texts."""
    places, index = np.unique(found.places, return_inverse=True)
    vectors, norms = encoded
    if (places < found.start).any():
        stored = disk.take(data, places[places < found.start], size)
        vectors, norms = (np.concatenate(pair) for pair in zip(stored, encoded, strict=True))
    return vectors[index], norms[index]


def _finish(folder: Path) -> Store:
    """Merge the slices, and write the flat copy of the vectors where it is missing or of an earlier state."""
    data = open_rows(folder)
    if data is not None and len(data.get_fragments()) > 1:
        data.optimize.compact_files()
        data.cleanup_old_versions(older_than=timedelta(0))
    store = disk.open_store(folder)
    if store.complete and store._open_flat() is None:
        store.write_flat()
    return store


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Make the folder, keep other processes out, and turn the errors of a full disk into one that says what to do."""
    if folder.is_file():
        raise DataError(f"{folder} is a file. Choose a folder with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A killed process leaves nothing locked. There are no locks elsewhere.
        with FileLock(folder / _LOCK, timeout=0) if isinstance(folder, Path) else nullcontext():
            yield
    except Timeout as error:
        raise DataError(f"Another process is building {folder}. Wait for it, or stop it.") from error
    except OSError as error:
        raise DataError(
            f"{folder} could not be written ({disk.reason_of(error)}). Free some space and run the same command again: "
            "what was stored is kept. Or choose another folder with --out."
        ) from error
