"""Rows to train on, by the name of their source."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from condviz.data.scene_pairs import build_pairs
from condviz.data.scenes import load_aspects, load_families
from condviz.data.tables import read_pairs
from condviz.errors import ConfigError, DataError
from condviz.training.recipes import Source

VALIDATION_SHARE = 10
"""One family in ten is kept for validation."""


@dataclass(frozen=True)
class Example:
    """One row.

    Attributes:
        sentence1, sentence2, condition: Texts.
        label: Rating, 1 (different) to 5 (same).
        group: Rows with the same group are one sentence pair under different conditions; unique across sources.
        teacher: Score of a teacher, about 0 to 1; None where there is none.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    group: str
    teacher: float | None = None

    @property
    def target(self) -> float:
        """The rating as a number in [0, 1]: y = (label - 1) / 4."""
        return (self.label - 1) / 4


def load_source(source: Source) -> list[Example]:
    """Give the rows of a source, always the same in the same order.

    Raises:
        ConfigError: If there is no such source or split.
        DataError: If its files are missing or cannot be used, or no row is left.
    """
    if source.name not in SOURCES:
        raise ConfigError(f"There is no data source {source.name!r}. Known: {', '.join(SOURCES)}.")
    rows = SOURCES[source.name](source)
    if not rows:
        raise DataError(f"Source {source.name}, split {source.split}: no rated row is left. Choose another split.")
    return rows


def digest(rows: Sequence[Example]) -> str:
    """Give the SHA-256 of rows, in their order."""
    content = hashlib.sha256()
    for row in rows:
        content.update(json.dumps([row.sentence1, row.sentence2, row.condition, row.label, row.teacher]).encode())
    return content.hexdigest()


def _csv(source: Source) -> list[Example]:
    """Read a table; hidden labels are left out, and a column "teacher" is taken over."""
    path = _find(source.path)
    table = read_pairs(path)
    column = table.columns.index("teacher") if "teacher" in table.columns else None
    rows = []
    for number, (pair, cells) in enumerate(zip(table.pairs, table.rows, strict=True), start=1):
        if pair.label is None:
            continue
        group = json.dumps([source.path, pair.sentence1, pair.sentence2])
        row = Example(pair.sentence1, pair.sentence2, pair.condition, pair.label, group)
        if column is not None and cells[column].strip():
            row = replace(row, teacher=_teacher(path, number, cells[column]))
        rows.append(row)
    return rows


def _teacher(path: Path, number: int, cell: str) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise DataError(f"{path}: row {number}: teacher is {cell!r}, expected a number or a blank cell.") from error


def _scenes(source: Source) -> list[Example]:
    """Build pairs from the scenes; families, chosen by a hash of their id, are in one split only."""
    if source.split not in ("train", "validation"):
        raise ConfigError(f"scenes has the splits train and validation, got {source.split!r}.")
    families = [
        family
        for family in load_families()
        if (int(hashlib.sha256(family.id.encode()).hexdigest(), 16) % VALIDATION_SHARE == 0)
        == (source.split == "validation")
    ]
    return [
        Example(row.sentence1, row.sentence2, row.condition, row.label, f"scenes {source.seed} {row.pair}")
        for row in build_pairs(families, load_aspects(), seed=source.seed)
    ]


def _find(path: str) -> Path:
    """Find a file in the current folder or in CONDVIZ_DATA."""
    places = [Path(path)]
    if root := os.environ.get("CONDVIZ_DATA"):
        places.append(Path(root) / path)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise DataError(
            f"{path} is neither in {Path.cwd()} nor in the folder CONDVIZ_DATA ({root or 'not set'}). Put the file "
            "there, or give another path with --set."
        )
    return found


SOURCES: dict[str, Callable[[Source], list[Example]]] = {"scenes": _scenes, "csv": _csv}
"""Name -> rows. A corpus joins in by one line here."""
