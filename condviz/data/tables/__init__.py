"""Tables that people bring: one reader for every kind of them, and one report of what it decided."""

from condviz.data.tables.pairs import (
    LABEL_COLUMN,
    LABEL_RANGE,
    PAIR_COLUMNS,
    TEXT_COLUMNS,
    PairTable,
    guess_pair_columns,
    guess_text_column,
    is_named,
    read_pairs,
    read_release,
)
from condviz.data.tables.report import Kind, LeftOut, Place, Report, kind_of, to_number
from condviz.data.tables.table import HUB, MAX_TABLE_BYTES, Table, read_table
from condviz.data.tables.write import format_predictions, to_csv

__all__ = [
    "HUB",
    "LABEL_COLUMN",
    "LABEL_RANGE",
    "MAX_TABLE_BYTES",
    "PAIR_COLUMNS",
    "TEXT_COLUMNS",
    "Kind",
    "LeftOut",
    "PairTable",
    "Place",
    "Report",
    "Table",
    "format_predictions",
    "guess_pair_columns",
    "guess_text_column",
    "is_named",
    "kind_of",
    "read_pairs",
    "read_release",
    "read_table",
    "to_csv",
    "to_number",
]
