"""Tables that people bring: one reader for every kind of them, and one report of what it decided."""
# ruff: noqa: F401

from condviz.data.tables.pairs import (
    LABEL_COLUMN,
    LABEL_RANGE,
    PAIR_COLUMNS,
    POINT_ROLES,
    TEXT_COLUMNS,
    PairTable,
    check_texts,
    guess_columns,
    read_pairs,
)
from condviz.data.tables.report import Kind, Report, kind_of, to_number
from condviz.data.tables.table import MAX_TABLE_BYTES, Table, read_table
from condviz.data.tables.write import format_predictions, to_csv
