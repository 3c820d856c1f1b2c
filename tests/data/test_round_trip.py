"""Any table of texts, written by any program, comes back cell by cell through every way in, and leaves as it came.

`--hypothesis-profile=thorough -o faulthandler_timeout=0` tries 2,000 tables in ten minutes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from condviz.analysis.errors.findings import format_csv
from condviz.analysis.errors.study import judge, make_study
from condviz.analysis.points import points_from_table
from condviz.data.pairs import PAIR_COLUMNS, format_predictions, read_pairs
from condviz.data.tables import read_table
from condviz.evaluation.dataset import open_data
from condviz.store.corpus import Corpus, check_columns, read_source, to_cell

Rows = list[tuple[str, ...]]
NASTY = ["", " ", "007", "1E5", "1.10", "4", "4.0", "-0", "1234567890123456789", "nan", "NaN", "None", "2024-01-02"]
NASTY += [
    "=1+1",
    "-5",
    '"',
    '"open',
    'say "x"',
    "a,b",
    "a;b",
    "a\tb",
    "a|b",
    "a\nb",
    "a\r\nb",
    "a\rb",
    "\ufeff",
    "\u2028",
]
LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="".join(map(chr, {*range(32)} - {9, 10, 13})))
CELLS = st.sampled_from(NASTY) | st.text(LETTERS, max_size=12)
FILLED = st.text("abcé \",;'\t", min_size=1, max_size=12).map(lambda text: f"x{text}.")
NAMES = st.lists(st.text("abcdefgh_", min_size=1, max_size=6).map("extra_{}".format), unique=True, max_size=3)
LABELS = st.sampled_from(["1", "2.0", "3.5", "5", "", "-1", " 4 "])


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[str, ...], Rows]:
    """Draw a table of pairs with further columns of any text."""
    extra = draw(NAMES)
    row = st.tuples(FILLED, FILLED, FILLED, LABELS, *[CELLS] * len(extra))
    texts = st.lists(row, min_size=3, max_size=6, unique_by=lambda cells: cells[0])
    return (*PAIR_COLUMNS, *extra), draw(texts)


def written_by_csv(columns: tuple[str, ...], rows: Rows, **form: object) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, **form).writerows([columns, *rows])
    return file.getvalue().encode()


def written_by_pandas(columns: tuple[str, ...], rows: Rows, **form: object) -> bytes:
    frame = pd.DataFrame(rows, columns=columns, dtype=object)
    return frame.to_csv(index=False, lineterminator="\r\n", **form).encode()


def written_by_excel(columns: tuple[str, ...], rows: Rows) -> bytes:
    wider = [(*row, "", "") for row in rows]
    return b"\xef\xbb\xbf" + b"sep=;\r\n" + written_by_csv((*columns, "", ""), wider, delimiter=";")


def written_as_unicode(columns: tuple[str, ...], rows: Rows) -> bytes:
    return written_by_csv(columns, rows, dialect="excel-tab").decode().encode("utf-16")


def written_as_json(columns: tuple[str, ...], rows: Rows, *, lines: bool) -> bytes:
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return ("".join(json.dumps(one) + "\n" for one in records) if lines else json.dumps(records, indent=1)).encode()


def written_by_arrow(columns: tuple[str, ...], rows: Rows, *, parquet: bool) -> bytes:
    table = pa.table([list(cells) for cells in zip(*rows, strict=True)], names=list(columns))
    sink = io.BytesIO()
    if parquet:
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
    return sink.getvalue()


def written_by_polars(columns: tuple[str, ...], rows: Rows, *, method: str, **form: object) -> bytes:
    sink = io.BytesIO()
    getattr(polars.DataFrame(rows, schema=columns, orient="row"), method)(sink, **form)
    return sink.getvalue()


WRITERS: dict[str, tuple[str, Callable[..., bytes]]] = {
    "csv": (".csv", written_by_csv),
    "semicolons": (".csv", partial(written_by_csv, delimiter=";")),
    "bars": (".txt.csv", partial(written_by_csv, delimiter="|", quoting=csv.QUOTE_ALL)),
    "unix": (".csv", partial(written_by_csv, dialect="unix")),
    "tabs": (".tsv", partial(written_by_csv, dialect="excel-tab")),
    "pandas": (".csv", written_by_pandas),
    "pandas tsv": (".tsv", partial(written_by_pandas, sep="\t", quoting=csv.QUOTE_NONNUMERIC)),
    "excel": (".csv", written_by_excel),
    "unicode text": (".txt.tsv", written_as_unicode),
    "jsonl": (".jsonl", partial(written_as_json, lines=True)),
    "json": (".json", partial(written_as_json, lines=False)),
    "polars": (".csv", partial(written_by_polars, method="write_csv")),
    "polars tsv": (".tsv", partial(written_by_polars, method="write_csv", separator="\t", include_bom=True)),
    "polars lines": (".ndjson", partial(written_by_polars, method="write_ndjson")),
    "polars parquet": (".parquet", partial(written_by_polars, method="write_parquet")),
    "polars arrow": (".arrow", partial(written_by_polars, method="write_ipc")),
    "parquet": (".parquet", partial(written_by_arrow, parquet=True)),
    "arrow": (".arrow", partial(written_by_arrow, parquet=False)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@given(table=tables(), writer=st.sampled_from(list(WRITERS)))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_cell_of_a_file_is_lost_or_changed(folder: Path, table: tuple, writer: str) -> None:
    columns, rows = table
    ending, write = WRITERS[writer]
    path = folder / f"table{ending}"
    path.write_bytes(write(columns, rows))
    read = read_table(path)
    assert (read.columns, read.rows) == (columns, tuple(rows))
    assert (read.report.blank, read.report.left_out) == (0, [])
    pairs = read_pairs(path)
    assert pairs.rows == tuple(rows)
    source = read_source(path, "sentence1")
    for row, cells in zip(source.rows(), rows, strict=True):
        found = [to_cell(cell, source.columns[name]) for name, cell in row.cells.items()]
        assert ["" if cell is None else str(cell) for cell in found] == list(cells[1:])


@given(table=tables())
def test_no_cell_of_a_table_in_memory_is_lost_or_changed(table: tuple) -> None:
    columns, rows = table
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    by_column = dict(zip(columns, zip(*rows, strict=True), strict=True))
    held = polars.DataFrame(rows, schema=columns, orient="row"), datasets.Dataset.from_list(records)
    for source in (pd.DataFrame(rows, columns=columns, dtype=object), records, iter(records), by_column, *held):
        assert read_table(source).rows == tuple(rows)
    extra = columns[4:]
    found = check_columns({name: by_column[name] for name in extra})
    corpus = Corpus([row[0] for row in rows], None, None, None, found)
    for stored, row in zip(corpus.rows(range(len(rows))), rows, strict=True):
        assert ["" if cell is None else str(cell) for cell in list(stored.values())[2:]] == list(row[4:])
    points = points_from_table(records, text_column="sentence1", condition_column="condition", value_column="")
    assert [tuple(points.columns[name][i] for name in extra) for i in range(len(rows))] == [row[4:] for row in rows]
    leaves_as_it_came(columns, rows, read_pairs(records))


def leaves_as_it_came(columns: tuple[str, ...], rows: Rows, pairs: object) -> None:
    scores = np.arange(len(rows), dtype=np.float32)
    again = read_table(io.BytesIO(format_predictions(pairs, {"m": scores}).encode()))
    assert (again.columns, [row[:-1] for row in again.rows]) == ((*columns, "score_m"), rows)
    data = open_data(pairs)
    written = format_csv(make_study(data, judge(data, "m", scores)), range(len(rows)))
    again = read_table(io.BytesIO(written.encode()))
    assert [tuple(again.column(name)[i] for name in columns) for i in range(len(rows))] == rows
