"""Tables that Python holds: what polars, datasets, pandas and Arrow have comes in cell by cell."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from pyarrow import parquet

from condviz.data.pairs import read_pairs
from condviz.data.tables import read_table

COLUMNS = {
    "sentence1": ["A man surfs.", "A man surfs."],
    "sentence2": ["A girl skis.", "A girl skis."],
    "condition": ["the sport", "the mood"],
    "label": [2, 4],
    "id": [1234567890123456789, 1234567890123456788],
    "zip": ["02134", "00501"],
}
ROWS = [dict(zip(COLUMNS, cells, strict=True)) for cells in zip(*COLUMNS.values(), strict=True)]
CELLS = [tuple(map(str, row.values())) for row in ROWS]


def generate() -> Iterator[dict[str, Any]]:
    yield from ROWS


def check(source: object) -> None:
    table = read_table(source)
    assert (table.columns, list(table.rows)) == (tuple(COLUMNS), CELLS)
    assert {type(cell) for row in table.rows for cell in row} == {str}


@pytest.mark.parametrize(
    "make",
    [
        lambda: COLUMNS,
        lambda: ROWS,
        generate,
        lambda: map(dict, ROWS),
        lambda: {name: np.array(cells) for name, cells in COLUMNS.items()},
        lambda: pd.DataFrame(COLUMNS),
        lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
        lambda: pa.table(COLUMNS),
        lambda: pa.RecordBatch.from_pydict(COLUMNS),
        lambda: pa.table(COLUMNS).to_reader(),
    ],
)
def test_what_python_holds(make: Callable[[], Any]) -> None:
    check(make())
    assert [pair.label for pair in read_pairs(make()).pairs] == [2, 4]


@pytest.mark.parametrize("lazy", [False, True])
def test_polars(lazy: bool) -> None:
    frame = polars.DataFrame(COLUMNS)
    check(frame.lazy() if lazy else frame)
    odd = {
        "text": ["a", "b"],
        "day": [datetime.date(2020, 1, 2), None],
        "list": [[1, 2], [3]],
        "price": [decimal.Decimal("1.10"), None],
        "single": polars.Series([0.1, None], dtype=polars.Float32),
        "yes": [True, None],
        "kind": polars.Series(["x", "y"], dtype=polars.Categorical),
    }
    table = read_table(polars.DataFrame(odd))
    assert table.rows == (("a", "2020-01-02", "[1, 2]", "1.10", "0.1", "true", "x"), ("b", "", "[3]", "", "", "", "y"))


@pytest.mark.parametrize("form", [None, "numpy", "torch", "pandas", "arrow"])
def test_datasets(form: str | None) -> None:
    data = datasets.Dataset.from_dict(COLUMNS)
    check(data.with_format(form))
    check(data.to_iterable_dataset())
    classes = data.cast_column("label", datasets.ClassLabel(names=["a", "b", "low", "c", "high"]))
    for source in (classes.with_format(form), classes.to_iterable_dataset()):
        assert read_table(source).column("label") == ["low", "high"]
    assert len(read_table(data.select([1])).rows) == 1


def test_numbers_of_classes_are_read_as_their_names(tmp_path: Path) -> None:
    features = {"text": {"_type": "Value"}, "label": {"names": ["low", "high"], "_type": "ClassLabel"}}
    table = pa.table({"text": ["a", "b", "c"], "label": [1, 0, -1]})
    written = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(written, tmp_path / "a.parquet")
    for source in (written, tmp_path / "a.parquet"):
        assert read_table(source).column("label") == ["high", "low", ""]
    for strange in ("{", "[]", '{"info": {"features": {"label": 3}}}', '{"info": null}'):
        assert read_table(table.replace_schema_metadata({"huggingface": strange})).column("label") == ["1", "0", "-1"]


def test_single_floats_keep_the_digits_that_say_which_they_are() -> None:
    single = np.array([0.1, 2.5], dtype=np.float32)
    for source in (pd.DataFrame({"text": ["a", "b"], "x": single}), pa.table({"text": ["a", "b"], "x": single})):
        assert read_table(source).column("x") == ["0.1", "2.5"]
