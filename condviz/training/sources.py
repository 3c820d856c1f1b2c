"""Rows to train on, by the name of their source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from condviz.data import corpora
from condviz.data.tables import read_pairs
from condviz.errors import ConfigError, DataError
from condviz.training.recipes import Source
from condviz.types import Pair

TABLE = "csv"
"""Name of the source that reads any table with the columns of C-STS; the others are those of `condviz.data.corpora`."""


@dataclass(frozen=True)
class Example:
    """One row.

    Attributes:
        sentence1, sentence2, condition: Texts.
        label: Rating, 1 (different) to 5 (same).
        group: Rows with the same group are one sentence pair under different conditions; unique across sources.
        teacher: Score of a teacher, about 0 to 1; None where there is none.
        block: Rows of the same block go into one batch; "" where rows come singly.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    group: str
    teacher: float | None = None
    block: str = ""

    @property
    def target(self) -> float:
        """The rating as a number in [0, 1]: y = (label - 1) / 4."""
        return (self.label - 1) / 4


def load_source(source: Source) -> list[Example]:
    """Give the rows of a source, always the same in the same order.

    Raises:
        DataError: If there is no such source or split, its files are missing or cannot be used, or no row is left.
        MissingExtraError: If a package that reads the source is not installed.
    """
    if source.name == TABLE:
        rows = _read_table(source)
        if not rows:
            raise DataError(f"{source.path}: no row has a label, so there is nothing to learn from.")
        return rows
    place = f"{source.name} {source.split} {source.seed}"
    return [
        Example(row.sentence1, row.sentence2, row.condition, row.label, f"{place} {row.pair}")
        for row in corpora.build(source.name, source.split, seed=source.seed)
    ]


def load_blocks(source: Source, sentences: int) -> list[Example]:
    """Give the rows of a source in blocks of so many sentences, drawn `source.draws` times.

    Raises:
        ConfigError: If the source is a table, which has no tags to build blocks from.
        DataError: As `load_source`.
    """
    if source.name == TABLE:
        raise ConfigError(f'{source.path}: a table cannot be divided into blocks. Set batching = "pairs".')
    rows = []
    for seed in range(source.seed, source.seed + source.draws):
        blocks = corpora.build_blocks(source.name, source.split, sentences=sentences, seed=seed)
        for number, block in enumerate(blocks):
            place = f"{source.name} {source.split} {seed}"
            rows += [
                Example(
                    row.sentence1, row.sentence2, row.condition, row.label, f"{place} {row.pair}", None,
                    f"{place} block {number}",
                )
                for row in block
            ]  # fmt: skip
    return rows


def digest(rows: Sequence[Example]) -> str:
    """Give the SHA-256 of rows, in their order."""
    content = hashlib.sha256()
    for row in rows:
        content.update(json.dumps([row.sentence1, row.sentence2, row.condition, row.label, row.teacher]).encode())
    return content.hexdigest()


def _read_table(source: Source) -> list[Example]:
    """Read a table; a column "teacher" is taken over, rows without a label and repeated rows are left out."""
    path = find_table(source.path)
    table = read_pairs(path)
    column = table.columns.index("teacher") if "teacher" in table.columns else None
    rows: dict[Pair, Example] = {}
    for number, (pair, cells) in enumerate(zip(table.pairs, table.rows, strict=True), start=1):
        if pair.label is None or pair in rows:
            continue
        group = json.dumps([source.path, pair.sentence1, pair.sentence2])
        row = Example(pair.sentence1, pair.sentence2, pair.condition, pair.label, group)
        if column is not None and cells[column].strip():
            row = replace(row, teacher=_teacher(path, number, cells[column]))
        rows[pair] = row
    return list(rows.values())


def _teacher(path: Path, number: int, cell: str) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise DataError(f"{path}: row {number}: teacher is {cell!r}, expected a number or a blank cell.") from error


def find_table(path: str) -> Path:
    """Find a file in the current folder or in that of the corpora.

    Raises:
        DataError: If it is in neither.
    """
    places = (Path(path), corpora.data_folder() / path)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise DataError(
            f"{path} is neither in {Path.cwd()} nor in {corpora.data_folder()}. Put the file there, set "
            f"{corpora.VARIABLE}, or give another path with --set train.0.path=FILE."
        )
    return found
