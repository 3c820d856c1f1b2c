"""What a map shows: sentences, each under a condition, with whatever else a table says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np

from condviz.data.tables import TextTable
from condviz.data.texts import check_condition, check_conditions, check_sentence
from condviz.errors import DataError

MAX_POINTS = 20_000
"""Points of one map: some minutes of encoding on two cores."""
FEWEST = 3
_MISSING = {"", "nan", "none", "null", "<na>", "n/a"}
_SHOWN_ROWS = 5


@dataclass(frozen=True)
class MapPoints:
    """The points of a map; point i is sentence i under condition i.

    Attributes:
        texts: n sentences.
        conditions: n conditions, one each.
        columns: Other columns of the table: name -> n cells as text, "" where missing.
        crossed: True if every text stands under every condition; then a point's own text is no neighbour of it.
        notes: What the reader should know, for instance which rows were left out.
    """

    texts: tuple[str, ...]
    conditions: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    crossed: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        number = len(self.texts)
        if len(self.conditions) != number or any(len(cells) != number for cells in self.columns.values()):
            raise DataError("Every point needs one text, one condition and one cell per column.")
        different = len(set(self.texts))
        if different < FEWEST:
            found = "one sentence" if different == 1 else f"{different} different sentences"
            raise DataError(f"A map needs at least {FEWEST} different sentences, got {found}. Add some.")

    @property
    def groups(self) -> tuple[str, ...]:
        """Give the conditions, each once, in order of appearance."""
        return tuple(dict.fromkeys(self.conditions))


def from_texts(texts: Sequence[str], conditions: Sequence[str], *, max_points: int = MAX_POINTS) -> MapPoints:
    """Put every text under every condition.

    Args:
        texts: Sentences; blank ones and repetitions are left out, with a note.
        conditions: One or more.
        max_points: The most that are allowed.

    Raises:
        DataError: If a text or condition cannot be used, or there are too few or too many.
    """
    asked = check_conditions(conditions)
    filled = [(f"sentence {number}", text) for number, text in enumerate(texts, start=1) if str(text).strip()]
    checked = [check_sentence(text, place) for place, text in filled]
    distinct = list(dict.fromkeys(checked))
    _check_number(len(distinct) * len(asked), max_points, rows=len(distinct), conditions=len(asked))
    notes = []
    if len(distinct) < len(checked):
        notes.append(f"{len(checked) - len(distinct)} repeated sentences were left out.")
    return MapPoints(*_cross(distinct, asked), crossed=True, notes=tuple(notes))


def from_table(
    table: TextTable,
    *,
    text_column: str,
    condition_column: str | None = None,
    conditions: Sequence[str] = (),
    sample: int | None = None,
    seed: int = 0,
    max_points: int = MAX_POINTS,
) -> MapPoints:
    """Take points from a table: a column of texts with a column of conditions, or with conditions given here.

    Args:
        table: As read.
        text_column: Column of the sentences.
        condition_column: Column of the conditions, or None to put every text under each of `conditions`.
        conditions: Used without a condition column.
        sample: Draw so many rows at random if there are more; the notes say so. None uses all rows.
        seed: Of that draw.
        max_points: The most that are allowed.

    Raises:
        DataError: If a column does not exist or holds numbers, nothing usable is left, or there are too many points.
    """
    places = {name: _position(table, name) for name in (text_column, *([condition_column] if condition_column else []))}
    asked = check_conditions(conditions) if condition_column is None else []
    _refuse_numbers(table, text_column)
    kept, notes = _complete_rows(table, places)
    if sample is not None and 0 < sample < len(kept):
        drawn = np.random.default_rng(seed).choice(len(kept), sample, replace=False)
        notes.append(f"A random sample of {sample:,} of {len(kept):,} rows (seed {seed}).")
        kept = [kept[index] for index in sorted(drawn)]
    _check_number(len(kept) * max(1, len(asked)), max_points, rows=len(kept), conditions=max(1, len(asked)))
    texts = [_text(table, row, text_column, places) for row in kept]
    others = [name for name in table.columns if name not in places and name]
    columns = {name: tuple(_cell(table, row, name) for row in kept) for name in others}
    notes = [*table.notes, *notes]
    if condition_column is None:
        columns = {name: cells * len(asked) for name, cells in columns.items()}
        return MapPoints(*_cross(texts, asked), columns=columns, crossed=True, notes=tuple(notes))
    named = tuple(
        check_condition(table.rows[row][places[condition_column]], f"row {row + 1}, column {condition_column}")
        for row in kept
    )
    return MapPoints(tuple(texts), named, columns=columns, notes=tuple(notes))


def guess_columns(table: TextTable) -> tuple[str, str | None]:
    """Guess the column of the texts (the longest ones on average) and that of the conditions (by its name)."""
    named = {name.casefold(): name for name in table.columns}
    condition = next((named[name] for name in ("condition", "conditions", "aspect") if name in named), None)
    text = next((named[name] for name in ("text", "sentence", "sentence1") if name in named), None)
    sample = table.rows[:200]
    lengths = {
        name: sum(len(row[index]) for row in sample) for index, name in enumerate(table.columns) if name != condition
    }
    return text or max(lengths, key=lengths.__getitem__, default=table.columns[0]), condition


def _cross(texts: Sequence[str], conditions: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(texts) * len(conditions), tuple(condition for condition in conditions for _ in texts)


def _position(table: TextTable, name: str) -> int:
    if name in table.columns:
        return table.columns.index(name)
    near = get_close_matches(name, table.columns, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise DataError(f"There is no column {name!r}.{hint} Columns: {', '.join(table.columns[:20])}.")


def _cell(table: TextTable, row: int, name: str) -> str:
    value = table.rows[row][table.columns.index(name)].strip()
    return "" if value.casefold() in _MISSING else value


def _text(table: TextTable, row: int, name: str, places: Mapping[str, int]) -> str:
    return check_sentence(table.rows[row][places[name]], f"row {row + 1}, column {name}")


def _refuse_numbers(table: TextTable, name: str) -> None:
    cells = [value for row in range(min(len(table.rows), 500)) if (value := _cell(table, row, name))]
    numbers = sum(_is_number(cell) for cell in cells)
    if cells and numbers > 0.8 * len(cells):
        others = ", ".join(column for column in table.columns if column != name) or "none"
        raise DataError(
            f"The column {name!r} holds numbers, for instance {cells[0][:20]!r}, and a map needs sentences. "
            f"Choose another column: {others}."
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ".").rstrip("%"))
    except ValueError:
        return False
    return True


def _complete_rows(table: TextTable, places: Mapping[str, int]) -> tuple[list[int], list[str]]:
    """Give the rows that have all that is needed, and a note on the others."""
    missing = {name: [row for row in range(len(table.rows)) if not _cell(table, row, name)] for name in places}
    out = set().union(*missing.values())
    if len(out) == len(table.rows):
        raise DataError(f"No row has both {' and '.join(places)}. Choose other columns, or fill them.")
    notes = []
    for name, rows in missing.items():
        if rows:
            shown = ", ".join(str(row + 1) for row in rows[:_SHOWN_ROWS])
            more = " and more" if len(rows) > _SHOWN_ROWS else ""
            word = "row was" if len(rows) == 1 else "rows were"
            notes.append(f"{len(rows):,} {word} left out, with nothing in {name}: {shown}{more}.")
    return [row for row in range(len(table.rows)) if row not in out], notes


def _check_number(points: int, most: int, *, rows: int, conditions: int) -> None:
    if points > most:
        under = f" under {conditions} conditions" if conditions > 1 else ""
        raise DataError(
            f"{rows:,} rows{under} make {points:,} points, and a map takes at most {most:,}. "
            f"Draw a sample of at most {most // conditions:,} rows, or leave out conditions."
        )
