"""Build a store in slices, so that it goes on where it was stopped or killed; add to it; on one machine, or by Ray."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval
from filelock import FileLock, Timeout

from condviz.data.files import open_path, write_text
from condviz.data.tables import Encoding, Header, Separator, SkipBad
from condviz.errors import CondvizError, ConfigError, DataError, first_line, require
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


# ---- on more than one machine, by Ray Data: models in actors, slices of texts in, vectors or scores out, in order ----
#
# A worker that dies is started again and repeats its slice. What has arrived is kept by the process that asked, in the
# same steps as without a cluster: a store is the same row for row, and a build that is killed goes on where it was.

LOCAL = "local"
WINDOW = 4_096
"""Slices that the cluster holds at once, some eight million texts: a gigabyte, which Ray moves to disk if it has to."""
TABLE_ROWS = 256
"""Rows of a table that are sent at once: few enough for every worker to have some of a small one."""
Ability = Literal["score", "encode", "encode_sentences"]
Columns = Sequence[Sequence[str]]
"""What an ability takes: lists of texts, of equal length."""


class OnRay:
    """A model whose scores and vectors are computed on a cluster, each different row once; else the model itself.

    Args:
        model: Any that every machine can load by its name or folder.
        address, workers: As in `map_slices`.
    """

    def __init__(self, model: ConditionalScorer, address: str, workers: int = 0) -> None:
        self._model, self._cluster = model, {"address": address, "workers": workers}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        known = name in get_args(Ability)
        return partial(self._gather, cast("Ability", name)) if known else getattr(self._model, name)

    def _gather(self, ability: Ability, *columns: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Do what the method of the model does; `progress` is told (rows done, different rows)."""
        from condviz.methods.encoders import number  # imports torch

        (rows, index), found = number(zip(*columns, strict=True)), []
        slices = (tuple(zip(*rows[i : i + TABLE_ROWS], strict=True)) for i in range(0, len(rows), TABLE_ROWS))
        for values in map_slices(slices, Identity.of(self._model), ability, **self._cluster):
            found.append(values)
            if progress:
                progress(min(len(found) * TABLE_ROWS, len(rows)), len(rows))
        return np.concatenate(found)[index.numpy()]


class Worker:
    """A model in an actor."""

    def __init__(self, identity: Identity, ability: Ability) -> None:
        """Load the model, which every machine has to have by its name or folder."""
        self.run = getattr(identity.load(), ability)

    def __call__(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute one slice, as a process on its own does."""
        return {"values": self.run(*(texts.tolist() for texts in columns.values()))}


def map_slices(
    slices: Iterable[Columns], identity: Identity, ability: Ability, *, address: str = LOCAL, workers: int = 0
) -> Iterator[np.ndarray]:
    """Compute slices of texts on a cluster.

    Args:
        slices: What `ability` takes; some perhaps without rows.
        identity: The model, by a name or folder that every machine has.
        ability: Method of the model.
        address: Of the cluster; "auto" for the one that this machine belongs to, "local" to start one here.
        workers: Number of models; 0 for one on each GPU, or one on two cores.

    Yields:
        For each slice its values, (b,) or (b, d) float32.

    Raises:
        ConfigError: If there is no cluster, or a number of workers that it cannot hold.
        CondvizError: If a worker cannot load the model, or the cluster gives up.
        MissingExtraError: If Ray is not installed.
    """
    data = require("ray.data", "scale")
    asked, counted = tee(slices)
    rest = np.zeros((0,) if ability == "score" else (0, identity.dimension), np.float32)
    with _cluster(address) as resources:
        filled = (columns for columns in asked if len(columns[0]))
        found = _blocks(data, filled, (identity, ability), _actors(resources, workers))
        with closing(found):  # before the cluster goes
            for columns in counted:
                while len(rest) < len(columns[0]):
                    rest = np.concatenate([rest, next(found)])
                yield rest[: len(columns[0])]
                rest = rest[len(columns[0]) :]


def _blocks(data: Any, slices: Iterator[Columns], arguments: tuple, options: dict[str, Any]) -> Generator[np.ndarray]:  # noqa: ANN401
    """Yield values in order, in blocks of any size."""
    import pyarrow as pa

    context = data.DataContext.get_current()
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    while window := [pa.table({str(n): texts for n, texts in enumerate(part)}) for part in islice(slices, WINDOW)]:
        values = data.from_arrow(window).map_batches(Worker, fn_constructor_args=arguments, batch_size=None, **options)
        yield from (block["values"] for block in values.iter_batches(batch_size=None))


def _actors(resources: dict[str, float], workers: int) -> dict[str, Any]:
    """Return how many models there are to be, and what each needs of the cluster."""
    from ray.data import ActorPoolStrategy  # pyright: ignore[reportMissingImports] (an extra)

    gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    most = gpus or cores
    if not 0 <= workers <= most:
        raise ConfigError(f"workers must be from 1 to {most}, the {'GPUs' if gpus else 'cores'} of the cluster, or 0.")
    number = workers or gpus or max(1, cores // 2)
    needs = {"num_gpus": 1} if gpus else {"num_cpus": max(1, cores // number)}
    return {"compute": ActorPoolStrategy(size=number), **needs}


@contextmanager
def _cluster(address: str) -> Iterator[dict[str, float]]:
    """Connect to a cluster, or start one; leave it as it was."""
    import ray  # pyright: ignore[reportMissingImports] (an extra)

    connected = ray.is_initialized()
    if not connected:
        try:
            ray.init(
                address, log_to_driver=False, logging_level="ERROR",
                include_dashboard=False if address == LOCAL else None,
            )  # fmt: skip
        except (ConnectionError, ValueError) as error:
            raise ConfigError(
                f"There is no Ray cluster at {address!r} ({first_line(error)}). Start one with "
                f"ray start --head, or use {LOCAL!r} for this machine."
            ) from error
    try:
        yield ray.cluster_resources()
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1][:300]
        raise CondvizError(f"The Ray cluster could not do it: {reason}") from error
    finally:
        if not connected:
            ray.shutdown()
