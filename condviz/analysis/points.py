"""The points of a map: sentences, each under a condition, with whatever else a table says about them."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval

from condviz.data.pairs import POINT_ROLES, check_texts, guess_columns
from condviz.data.scenes import Family, group_of, load_aspects, load_families
from condviz.data.tables import Table, list_names, read_table
from condviz.data.tables.report import is_missing
from condviz.data.texts import check_conditions, check_sentence, fold
from condviz.errors import DataError, suggest
from condviz.spec import checked

if TYPE_CHECKING:
    import pandas as pd

MAX_POINTS = 20_000
"""Points of one map: some minutes of encoding on two cores."""
FEWEST = 3
NEIGHBORS = 10
"""Of each point, at most: in the panel and in the change of neighbours."""
DEFAULT_ASPECTS = ("number_of_people", "time_of_day", "weather")
PER_GROUP = 20
NUM_VALUES = 5
"""Values per condition of the scenes: four sentences each."""
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?%?")
_SHOWN_ROWS = 5


@dataclass(frozen=True)
class MapPoints:
    """Checked sentences; point i is sentence i under condition i.

    Attributes:
        texts: n sentences.
        conditions: n conditions, one each.
        columns: Other columns of the table: name -> n cells as text, "" where missing.
        value: The column that holds the value of each sentence under its condition, or "".
        crossed: True if every text stands under every condition.
        notes: What the reader should know, for instance which rows were left out.
    """

    texts: tuple[str, ...]
    conditions: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    value: str = ""
    crossed: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        number = len(self.texts)
        if len(self.conditions) != number or any(len(cells) != number for cells in self.columns.values()):
            raise DataError("Every point needs one text, one condition and one cell per column.")
        different = len(set(map(fold, self.texts)))
        if different < FEWEST:
            found = "one sentence" if different == 1 else f"{different} different sentences"
            raise DataError(f"A map needs at least {FEWEST} different sentences, got {found}. Add some.")

    @property
    def groups(self) -> tuple[str, ...]:
        """The conditions, each once, in order of appearance."""
        return tuple(dict.fromkeys(self.conditions))

    @property
    def values(self) -> tuple[str, ...]:
        """The value of each point, "" where unknown; empty if the table has none."""
        return self.columns.get(self.value, ())

    @cached_property
    def copies(self) -> tuple[np.ndarray, np.ndarray]:
        """(m,) the first point of each different one, and (n,) the place of that of every point among them.

        Copies, which are no neighbours, are equal texts, but for case and blanks, under one condition.
        """
        places: dict[tuple[str, str], int] = {}
        named = zip(self.conditions, map(fold, self.texts), strict=True)
        of = np.array([places.setdefault(one, len(places)) for one in named])
        return np.unique(of, return_index=True)[1], of

    @property
    def within(self) -> bool:
        """Whether a text stands under several conditions: neighbours then share the condition, or it were its own."""
        return len(set(map(fold, self.texts))) < len(self.copies[0])

    @cached_property
    def compared(self) -> np.ndarray:
        """(n,) how many nearest neighbours before and after are compared: `NEIGHBORS`, or a third where others are few.

        Of eleven others the ten nearest are nearly the same in any space. One other is compared where there is one.
        """
        groups = self.conditions if self.within else ("",) * len(self.texts)
        sizes = Counter(groups[row] for row in self.copies[0])
        others = np.array([sizes[group] - 1 for group in groups])
        return np.minimum(NEIGHBORS, np.maximum(others // 3, others > 0))

    def take(self, rows: Iterable[int]) -> MapPoints:
        """Return some of the points, by their positions."""
        rows = list(rows)
        texts, conditions, *columns = (
            tuple(cells[row] for row in rows) for cells in (self.texts, self.conditions, *self.columns.values())
        )
        named = dict(zip(self.columns, columns, strict=True))
        return replace(self, texts=texts, conditions=conditions, columns=named)


def points_from_texts(texts: Sequence[str], conditions: Sequence[str], *, max_points: int = MAX_POINTS) -> MapPoints:
    """Cross every text with every condition; blank texts and repetitions are left out, with a note."""
    asked = check_conditions(conditions)
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise DataError(f"Sentences must be a list of texts, got {type(texts).__name__}. Put them in a list.")
    filled = [(f"sentence {number}", text) for number, text in enumerate(texts, start=1) if str(text).strip()]
    sentences = [check_sentence(text, place) for place, text in filled]
    distinct = list(dict.fromkeys(sentences))
    _check_number(len(distinct), max_points, conditions=len(asked))
    repeated = len(sentences) - len(distinct)
    notes = (f"{repeated:,} repeated {'sentence was' if repeated == 1 else 'sentences were'} left out.",)
    return MapPoints(*_cross(distinct, asked), crossed=True, notes=notes if repeated else ())


@checked
def points_from_table(
    table: pd.DataFrame | Mapping[str, Sequence] | Table,
    *,
    text_column: Annotated[str | None, Doc("Column of the sentences (default: guessed)")] = None,
    condition_column: Annotated[str | None, Doc("Column of the conditions (default: guessed)")] = None,
    value_column: Annotated[str | None, Doc("Column of the values (default: guessed)")] = None,
    conditions: Sequence[str] | None = None,
    sample: Annotated[int | None, Interval(ge=1), Doc("Draw so many rows at random from a larger table")] = None,
    seed: int = 0,
    max_points: int = MAX_POINTS,
) -> MapPoints:
    """Take points from a table: texts with a column of conditions, or crossed with the conditions given here.

    Columns that are None are guessed as by `guess_columns`, "" takes none. A sample of the rows is drawn by the seed,
    and told in the notes.
    """
    table = read_table(table)
    table = replace(table, report=deepcopy(table.report))
    guess = guess_columns(table, POINT_ROLES)
    given = {"text": text_column, "condition": condition_column, "value": value_column}
    text, condition, value = (guess[role] if name is None else name for role, name in given.items())
    asked = [] if conditions is None and condition else check_conditions(list(conditions or ()))
    needed = [text] if asked else [text, condition]
    for name in (*needed, *([value] if value else [])):
        if name not in table.columns:
            columns = list_names(table.columns)
            raise DataError(f"There is no column {name!r}.{suggest(str(name), table.columns)} Columns: {columns}.")
    cells = {name: table.column(name) for name in table.columns}
    for name in {*needed, value} - {"", None}:
        cells[name] = ["" if is_missing(cell) else cell.strip() for cell in cells[name]]
    _refuse_numbers(cells, text)
    kept, left_out = _complete_rows(cells, needed)
    drawn = []
    if sample is not None and sample < len(kept):
        drawn = [f"A random sample of {sample:,} of {len(kept):,} rows (seed {seed})."]
        chosen = np.random.default_rng(seed).choice(len(kept), sample, replace=False)
        kept = [kept[index] for index in sorted(chosen)]
    times = max(1, len(asked))
    _check_number(len(kept), max_points, conditions=times)
    roles: dict[str, str] = dict(zip(POINT_ROLES, needed, strict=False))
    read = {row: check_texts(table.report, table.place(row), table.record(row), roles) for row in kept}
    found = {row: texts for row, texts in read.items() if texts is not None}
    columns = {name: tuple(cells[name][row] for row in found) * times for name in table.columns if name not in needed}
    notes = (*table.notes, *left_out, *drawn)
    rest = {"columns": columns, "value": value if value in columns else "", "notes": notes}
    texts, *named = (tuple(column) for column in zip(*found.values(), strict=True)) if found else ((), ())
    if asked:
        return MapPoints(*_cross(texts, asked), crossed=True, **rest)
    return MapPoints(texts, named[0], **rest)


def scene_points(names: Sequence[str] = DEFAULT_ASPECTS, *, per_group: int = PER_GROUP, seed: int = 0) -> MapPoints:
    """Draw sentences of our scenes for conditions, the same number for each of the commonest values where possible.

    After Hyper-CL (Yoo et al. 2024), figure 4 and section 5.2: three conditions, 20 sentences each, every sentence
    under one condition. Their sentences are from C-STS; ours are from families of scenes that no training has seen.
    Each aspect becomes one condition in its first wording. The points have the columns "value" (the tag), "aspect" and
    "domain"; no family is used twice.
    """
    families, aspects = load_families(), load_aspects()
    unknown = [name for name in names if name not in aspects]
    if unknown:
        raise DataError(f"There is no aspect {unknown[0]!r} in the scenes. Aspects: {', '.join(sorted(aspects))}.")
    generator = np.random.default_rng(seed)
    shuffled = [families[i] for i in generator.permutation(len(families)) if group_of(families[i]) == "test"]
    told = {name: _by_value(shuffled, name) for name in names}
    used: set[str] = set()
    rows: dict[str, list[tuple[str, str, str]]] = {}
    # The rarest aspect chooses first, so that common ones leave it enough.
    for name in sorted(names, key=lambda name: sum(map(len, told[name].values()))):
        rows[name] = _draw(told[name], used, per_group)
        if len(rows[name]) < per_group:
            raise DataError(
                f"Only {len(rows[name])} test families tell {name} beside {', '.join(set(names) - {name})}; "
                f"{per_group} are needed. Choose other aspects, or fewer sentences."
            )
    flat = [(aspects[name].phrasings[0], name, *row) for name in names for row in rows[name]]
    condition, aspect, value, text, domain = zip(*flat, strict=True)
    return MapPoints(text, condition, {"value": value, "aspect": aspect, "domain": domain}, value="value")


def _cross(texts: Sequence[str], conditions: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(texts) * len(conditions), tuple(condition for condition in conditions for _ in texts)


def _refuse_numbers(cells: Mapping[str, Sequence[str]], name: str) -> None:
    filled = [cell.strip() for cell in cells[name][:500] if cell]
    numbers = [cell for cell in filled if _NUMBER.fullmatch(cell)]
    if len(numbers) > 0.8 * len(filled):
        others = ", ".join(column for column in cells if column != name) or "none"
        raise DataError(
            f"The column {name!r} holds numbers, for instance {filled[0][:20]!r}, and a map needs sentences. "
            f"Choose another column: {others}."
        )


def _complete_rows(cells: Mapping[str, Sequence[str]], needed: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the positions of the rows that have all that is needed, and notes on the others."""
    empty = {name: [row for row, cell in enumerate(cells[name]) if not cell] for name in needed}
    kept = sorted(set(range(len(cells[needed[0]]))).difference(*empty.values()))
    if not kept:
        wanted = f"both {' and '.join(needed)}" if len(needed) > 1 else f"anything in {needed[0]}"
        raise DataError(f"No row has {wanted}. Choose other columns, or fill them.")
    notes = []
    for name, rows in empty.items():
        if rows:
            shown = ", ".join(str(row + 1) for row in rows[:_SHOWN_ROWS])
            more = " and more" if len(rows) > _SHOWN_ROWS else ""
            word = "row was" if len(rows) == 1 else "rows were"
            notes.append(f"{len(rows):,} {word} left out, with nothing in {name}: {shown}{more}.")
    return kept, notes


def _check_number(rows: int, most: int, *, conditions: int) -> None:
    if rows * conditions > most:
        under = f" under {conditions} conditions" if conditions > 1 else ""
        raise DataError(
            f"{rows:,} rows{under} make {rows * conditions:,} points, and a map takes at most {most:,}. "
            f"Draw a sample of at most {most // conditions:,} rows, or leave out conditions."
        )


def _by_value(families: Sequence[Family], name: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return value -> (family, text, domain) of one sentence per family and value, commonest value first."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for family in families:
        for value, scene in {scene.aspects[name]: scene for scene in family.scenes if name in scene.aspects}.items():
            found.setdefault(value.replace("_", " "), []).append((family.id, scene.text, family.domain))
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _draw(told: Mapping[str, list[tuple[str, str, str]]], used: set[str], number: int) -> list[tuple[str, str, str]]:
    """Take sentences value by value in turn: the commonest values first, the others where those run out."""
    rows: list[tuple[str, str, str]] = []
    names = list(told)
    for values in (names[:NUM_VALUES], names[NUM_VALUES:]):
        queues = deque((value, (row for row in told[value] if row[0] not in used)) for value in values)
        while queues and len(rows) < number:
            value, queue = queues.popleft()
            if row := next(queue, None):
                used.add(row[0])
                rows.append((value, *row[1:]))
                queues.append((value, queue))
    return sorted(rows, key=lambda row: names.index(row[0]))
