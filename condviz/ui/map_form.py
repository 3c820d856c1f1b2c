"""What stands in the form of the Map tab, checked: points and settings, or one clear message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from condviz.analysis.map_points import MapPoints, from_table, from_texts, guess_columns
from condviz.analysis.map_result import ProjectionConfig
from condviz.data.tables import TextTable, read_table
from condviz.errors import ConfigError, DataError
from condviz.ui.form_state import split_conditions
from condviz.ui.map_engine import MapEngine

SOURCES = {"scenes": "Example sentences", "texts": "My sentences", "table": "My table"}
TYPED = "(typed below)"
"""Choice of the condition column that takes the conditions from the text box."""
MAX_TABLE_BYTES = 20 * 2**20


@dataclass(frozen=True)
class MapForm:
    """The fields, in the order of the page.

    Attributes:
        model: Name.
        source: Key of `SOURCES`.
        aspects: Aspects of the scenes.
        draw: Which draw of sentences, from 0.
        sentences: One per line.
        conditions: One per line; of texts, and of tables without a column of conditions.
        table: Path of the uploaded file, or None.
        text_column, condition_column: Its columns.
        sample: Rows to draw at random from larger tables; 0 draws none.
        method, dimensions, neighbors, min_dist, seed: As `ProjectionConfig`.
        clusters: K of the impurity; 0 takes the number of conditions.
    """

    model: str
    source: str
    aspects: list[str]
    draw: float | None
    sentences: str
    conditions: str
    table: str | None
    text_column: str | None
    condition_column: str | None
    sample: float | None
    method: str
    dimensions: float | None
    neighbors: float | None
    min_dist: float | None
    seed: float | None
    clusters: float | None

    def points(self, engine: MapEngine) -> MapPoints:
        """Read the points.

        Raises:
            DataError: If they cannot be shown; says why and what to do.
        """
        if self.source == "scenes":
            if not 2 <= len(self.aspects) <= 6:
                raise DataError(f"Choose two to six conditions of the example; {len(self.aspects)} are chosen.")
            return engine.scene(tuple(self.aspects), _whole(self.draw, "draw"))
        conditions = list(split_conditions(self.conditions or ""))
        if self.source == "texts":
            return from_texts((self.sentences or "").splitlines(), conditions)
        if not self.table:
            raise DataError("No table is there yet. Upload a CSV or TSV file with one sentence per row.")
        typed = not self.condition_column or self.condition_column == TYPED
        return from_table(
            open_table(self.table),
            text_column=self.text_column or "",
            condition_column=None if typed else self.condition_column,
            conditions=conditions,
            sample=_whole(self.sample, "sample") or None,
        )

    def config(self) -> ProjectionConfig:
        """Read the settings of the layout; raises ConfigError for values that are not allowed."""
        if not isinstance(self.min_dist, int | float):
            raise ConfigError("The minimum distance must be a number from 0 to 0.99.")
        return ProjectionConfig(
            self.method,
            _whole(self.dimensions, "number of dimensions"),
            _whole(self.neighbors, "number of neighbours"),
            float(self.min_dist),
            _whole(self.seed, "seed"),
        )

    def num_clusters(self) -> int | None:
        """Read K, None for the number of conditions."""
        return _whole(self.clusters, "number of clusters") or None


def open_table(path: str) -> TextTable:
    """Read an uploaded table; errors as `read_table`."""
    return read_table(Path(path), max_bytes=MAX_TABLE_BYTES)


def column_choices(table: TextTable) -> dict[str, Any]:
    """Give the choices of both columns with a guess: {"text": (choices, value), "condition": (choices, value)}."""
    text, condition = guess_columns(table)
    names = [name for name in table.columns if name]
    return {"text": (names, text), "condition": ([TYPED, *names], condition or TYPED)}


def _whole(value: float | None, name: str) -> int:
    if not isinstance(value, int | float) or value != value or value < 0 or value != int(value):
        raise ConfigError(f"The {name} must be a whole number of at least 0, got {value!r}.")
    return int(value)
