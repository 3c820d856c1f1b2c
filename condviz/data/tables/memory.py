"""Rows of what Python holds and of Arrow's columns, as the texts that they were, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from condviz.data.tables.report import Place
from condviz.errors import DataError, first_line, require

Record = dict[str, str]
"""Column -> cell."""
Rows = Iterator[tuple[Place, Record]]

INVISIBLE = " \t\r\n\ufeff\u200b\u200c\u200d\u2060\xa0"
"""What may stand around the name of a column."""
_BATCH = 4096
_EXPECTED = "Pass a table as a path, an open file, records, columns or a data frame"


def check_names(name: str, columns: Sequence[str]) -> list[str]:
    """Return the names of columns; raises DataError where two are the same."""
    if repeated := [column for index, column in enumerate(columns) if column in columns[:index]]:
        raise DataError(f"{name} has two columns called {repeated[0]!r}. Rename or remove one.")
    return list(columns)


def read_arrow(name: str, file: IO[bytes], kind: str) -> Rows:
    """Yield the rows of a file of the kind "Parquet" or "Arrow", also called Feather."""
    arrow, parquet = require("pyarrow", "search"), require("pyarrow.parquet", "search")
    try:
        if kind == "Parquet":
            batches = parquet.ParquetFile(file).iter_batches(batch_size=_BATCH)
        else:
            reader = arrow.ipc.open_file(file)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        yield from read_memory(_arrow_records(name, batches), name)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{name} is no {kind} file, or is damaged: {first_line(error)[:100]}") from error


def read_memory(source: Any, name: str) -> Rows:  # noqa: ANN401
    """Yield the rows of data frames, datasets, Arrow's tables, columns by name, or any iterable of records or texts."""
    for row, record in enumerate(_in_memory(source, name), start=1):
        try:
            yield Place(row, None, name), to_record(record)
        except ValueError:
            raise DataError(f"{_EXPECTED}, got {type(source).__name__}.") from None


def _in_memory(source: Any, name: str) -> Iterable[Any]:  # noqa: ANN401
    """Return the records of what Python holds."""
    if hasattr(source, "itertuples"):  # pandas
        columns = check_names(name, [str(column).strip(INVISIBLE) for column in source.columns])
        # As numpy's own numbers, single floats keep the few digits that say which they are.
        cells = (one.to_numpy() if one.dtype == "float32" else one for _, one in source.items())
        return (dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True))
    if isinstance(source, Mapping):
        return _by_column(name, source)
    if hasattr(source, "with_format"):  # a datasets.Dataset, also one of a stream
        return _arrow_records(name, source.with_format("arrow").iter(_BATCH))
    if hasattr(source, "collect_schema"):  # polars, also lazy
        source = source.lazy().collect()
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "name"):  # a column alone is a list of texts
        return _arrow_records(name, require("pyarrow", "search").RecordBatchReader.from_stream(source))
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise DataError(f"{_EXPECTED}, got {type(source).__name__}.")
    return source


def _arrow_records(name: str, batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of Arrow's tables or batches; single floats as the few digits that say which they are."""
    for batch in batches:
        batch.validate(full=True)  # a damaged file could make Arrow read outside of its memory
        columns = check_names(name, batch.schema.names)
        short = [str(column.type) in ("float", "halffloat") for column in batch.columns]
        cells = [(c.cast("string") if few else c).to_pylist() for c, few in zip(batch.columns, short, strict=True)]
        for column, names in _class_names(batch.schema).items():
            number = columns.index(column)
            cells[number] = [names.get(cell, cell) if isinstance(cell, int) else cell for cell in cells[number]]
        for row in zip(*cells, strict=True):
            yield dict(zip(columns, row, strict=True))


def _class_names(schema: Any) -> dict[str, dict[int, str | None]]:  # noqa: ANN401
    """Return column -> number -> name of the classes that `datasets` stores as numbers; -1 is no class."""
    try:
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        labels = {name: features[name] for name in schema.names if features[name]["_type"] == "ClassLabel"}
        return {column: {-1: None, **dict(enumerate(label["names"]))} for column, label in labels.items()}
    except (KeyError, TypeError, ValueError, RecursionError):  # written by another program
        return {}


def _by_column(name: str, source: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if any(hasattr(values, "column_names") for values in source.values()):
        raise DataError(f"{name} has the parts {', '.join(map(str, source))}. Pass one of them.")
    if not all(isinstance(v, Iterable) and not isinstance(v, str | bytes | Mapping) for v in source.values()):
        raise DataError(f"{name} is one record. Put records into a list, or give a list of cells for each column.")
    columns = {str(column): list(values) for column, values in source.items()}
    if len({len(values) for values in columns.values()}) > 1:
        told = ", ".join(f"{column}: {len(values):,}" for column, values in columns.items())
        raise DataError(f"{name} has columns of different lengths ({told}). Give columns of equal length.")
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def to_record(value: Any) -> Record:  # noqa: ANN401
    """Return a record as texts; a text alone is one, raises ValueError for what is none."""
    if isinstance(value, str):
        return {"text": value}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if not isinstance(value, Mapping):
        raise ValueError(f"This is a {type(value).__name__}")
    return {str(column): to_text(cell) for column, cell in value.items()}


class Nested(str):
    """A list or a record as JSON: kept, but no text to be read by a model."""


def to_text(value: Any) -> str:  # noqa: ANN401
    """Return a cell as text: nothing for None and NaN, JSON for lists and records, else what Python writes."""
    if isinstance(value, str):
        return value if isinstance(value, Nested) else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # numpy, whose floats may have fewer digits than Python's
        is_float = not value.ndim and str(value.dtype).startswith("float")
        value = str(value) if is_float else value.tolist()
        return to_text("" if value == "nan" else value)
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        value = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return Nested(json.dumps(value, ensure_ascii=False, default=to_text))
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    text = "" if value is None else str(value)
    return "" if text in ("nan", "NaN", "NaT", "<NA>") else text
