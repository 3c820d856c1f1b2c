"""Tables that people bring: one reader for every kind of them, and one report of what it decided."""
# ruff: noqa: F401

from condviz.data.tables.report import Kind, Report, kind_of, to_number
from condviz.data.tables.table import MAX_TABLE_BYTES, Table, read_table, to_csv
