"""Which column is what: sentences, condition, rating on any scale; texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from condviz.data.tables.formats import fold_name, text_of
from condviz.data.tables.report import SKIP, Place, is_missing
from condviz.data.tables.table import MAX_TABLE_BYTES, Table, read_table
from condviz.data.texts import check_condition, check_sentence
from condviz.errors import ConfigError, DataError, suggest
from condviz.types import Pair

TEXT_COLUMNS = ("sentence1", "sentence2", "condition")
LABEL_COLUMN = "label"
PAIR_COLUMNS = (*TEXT_COLUMNS, LABEL_COLUMN)
RATING_NAMES = (LABEL_COLUMN, "gold", "rating", "similarity", "score")
"""Names under which ratings are recognised, the first one that is there."""
TEXT_NAMES = ("text", "sentence", "sentence1")
"""Columns that are taken for the text where none is named."""
LABEL_RANGE = (1.0, 5.0)
HIDDEN_LABEL = -1.0
"""C-STS: the label of test rows whose rating is kept secret."""
SAMPLED = 200
"""Rows that tell long texts from short ones."""
_CHECKS = {"sentence1": check_sentence, "sentence2": check_sentence, "condition": check_condition}
_NAMES = {
    "sentence1": r"(sent|text).*[ _-]?(1|a)$|first|premise|anchor|^a$|^s1$",
    "sentence2": r"(sent|text).*[ _-]?(2|b)$|second|hypothesis|^b$|^s2$",
    "condition": r"cond|aspect|criter|respect|question|^c$",
    "label": r"label|rating|score|similar|gold|^y$",
}
"""What columns are often called."""
_NUMBER = r"\s*(-?\d+([.,]\d+)?)?\s*"
_SCORES = re.compile(r"score_.", re.IGNORECASE)
"""What a model says of a row is no rating of it."""


@dataclass(frozen=True)
class PairTable(Table):
    """A table of sentence pairs.

    Attributes:
        pairs: One per row, in the order of the file; the label, from 1 to 5, is None where it is blank or hidden.
        roles: Each of `PAIR_COLUMNS` that the table has -> its column.
        mapped: Whether the labels are other numbers than the cells, because of a scale or words.
    """

    pairs: tuple[Pair, ...] = ()
    roles: Mapping[str, str] = None
    mapped: bool = False


@dataclass(frozen=True)
class Ratings:
    """How cells become ratings from 1 (different) to 5 (same).

    Attributes:
        scale: The numbers that stand for different and for same; None for 1 and 5.
        labels: Words -> numbers of the scale.
    """

    scale: tuple[float, float] | None = None
    labels: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            numbers = [n for n in self.scale if isinstance(n, int | float) and math.isfinite(n)]
            if len(self.scale) != 2 or len(numbers) != 2 or numbers[0] == numbers[1]:
                raise ConfigError(f"A scale is two different numbers, of different and of same, got {self.scale!r}.")

    def number(self, cell: str) -> float:
        """Return the number that a cell stands for on its own scale; NaN for none."""
        cell = cell.strip()
        words = {fold_name(word): number for word, number in (self.labels or {}).items()}
        if (word := fold_name(cell)) in words:
            return float(words[word])
        try:
            return float(cell.replace(",", "."))  # in one cell a comma can be nothing but a decimal point
        except ValueError:
            return math.nan

    def is_hidden(self, value: float) -> bool:
        """Whether a number says that the rating is not known."""
        return value == HIDDEN_LABEL and min(self.scale or LABEL_RANGE) > HIDDEN_LABEL

    def read(self, cell: str, place: str) -> float | None:
        """Return the rating of a cell from 1 to 5, None where it is not known; raises DataError for anything else."""
        if is_missing(cell):
            return None
        value = self.number(cell)
        if self.is_hidden(value):
            return None
        first, last = self.scale or LABEL_RANGE
        low, high = sorted((first, last))
        if not low <= value <= high:
            raise DataError(
                f"{place} must be a number from {low:g} to {high:g}, got {cell.strip()[:40]!r}. Leave it blank, or "
                f"write {HIDDEN_LABEL:g}, where no rating is known. Other scales: --scale LOW HIGH (scale=)."
            )
        return value if self.scale is None else 1 + 4 * (value - first) / (last - first)

    @property
    def mapping(self) -> str:
        """What was mapped, for the report; "" for nothing."""
        words = [f"{word} to {number:g}" for word, number in (self.labels or {}).items()]
        ends = [] if self.scale is None else [f"{a:g} to {b:g}" for a, b in zip(self.scale, LABEL_RANGE, strict=True)]
        return ", ".join([*words, *ends])


def read_pairs(
    source: Any,  # noqa: ANN401
    *,
    columns: Mapping[str, str] | None = None,
    condition: str = "",
    scale: tuple[float, float] | None = None,
    labels: Mapping[str, float] | None = None,
    header: bool | None = None,
    separator: str = "",
    encoding: str = "",
    skip_bad: bool = False,
    max_bytes: int | None = MAX_TABLE_BYTES,
) -> PairTable:
    """Read a table with the columns sentence1, sentence2, condition and, optionally, a rating.

    Other columns are kept. Ratings are recognised as label, gold, rating, similarity or score.

    Args:
        source, header, separator, encoding, skip_bad, max_bytes: As `read_table` takes them.
        columns: Columns of other names, such as {"sentence1": "premise"}.
        condition: One condition for all rows, where there is no column of conditions.
        scale: The numbers that stand for different and for same, for instance (0, 1); None for 1 and 5.
        labels: Words that stand for ratings, such as {"no": 0, "yes": 1}.

    Raises:
        DataError: If the file cannot be read, is no such table, or a cell is not usable: blank text, control
            characters, a label outside the scale (-1 stands for a hidden label). Names row and column.
        ConfigError: If the scale is none.
    """
    if isinstance(source, PairTable):
        return source
    known = [name for name in PAIR_COLUMNS if not (condition and name == "condition")]
    if not isinstance(source, Table):
        form = {"header": header, "separator": separator, "encoding": encoding, "skip_bad": skip_bad}
        source = read_table(source, **form, names=tuple(known), max_bytes=max_bytes)
    table = replace(source, report=deepcopy(source.report))  # what is rejected here is no fault of what was given
    report = table.report
    report.skip_bad |= skip_bad
    roles = _find_roles(table, columns or {}, condition)
    positions = {role: table.columns.index(column) for role, column in roles.items()}
    ratings = Ratings(tuple(scale) if scale is not None else None, labels)
    if LABEL_COLUMN in roles:
        _check_range(table, roles[LABEL_COLUMN], ratings)
    kept = []
    for index, cells in enumerate(table.rows):
        place = table.place(index)
        try:
            kept.append((cells, place, _to_pair(cells, place, positions, roles, ratings, condition)))
        except DataError as error:
            report.reject(place, str(error), cells)
    if not kept:
        raise report.error(f"{report.name} has no row that can be used.")
    rows, places, pairs = zip(*kept, strict=True)
    mapped = bool(LABEL_COLUMN in roles and ratings.mapping)
    if mapped:
        report.remarks.append(
            f"The ratings in {roles[LABEL_COLUMN]} were mapped to 1 (different) to 5 (same): {ratings.mapping}."
        )
    return PairTable(table.columns, rows, report, places, pairs, roles, mapped)


def _to_pair(cells: Sequence[str], place: Place, positions: Mapping[str, int], roles: Mapping[str, str],
             ratings: Ratings, condition: str) -> Pair:  # fmt: skip
    found = {"condition": condition}
    for role, check in _CHECKS.items():
        if role in positions:
            field = f"{place}, column {roles[role]}"
            found[role] = check(text_of(cells[positions[role]], field), field)
    label = None
    if LABEL_COLUMN in roles:
        label = ratings.read(cells[positions[LABEL_COLUMN]], f"{str(place).capitalize()}, column {roles[LABEL_COLUMN]}")
    return Pair(**found, label=label)


def _check_range(table: Table, column: str, ratings: Ratings) -> None:
    """Refuse a table most of whose ratings are on another scale than the one that is given."""
    numbers = [ratings.number(cell) for cell in table.column(column) if not is_missing(cell)]
    numbers = [number for number in numbers if math.isfinite(number) and not ratings.is_hidden(number)]
    low, high = sorted(ratings.scale or LABEL_RANGE)
    outside = sum(not low <= number <= high for number in numbers)
    if (len(numbers) > 1 and outside > len(numbers) / 2) or (outside and set(numbers) <= {0, 1}):
        raise DataError(
            f"{table.report.name}: the ratings in column {column} go from {min(numbers):g} to {max(numbers):g}, not "
            f"from {low:g} to {high:g}. Give their scale: --scale LOW HIGH (scale=(LOW, HIGH))."
        )


def _find_roles(table: Table, asked: Mapping[str, str], condition: str) -> dict[str, str]:
    """Return role -> column: as asked, else by name; case does not matter."""
    name = table.report.name
    for role, column in asked.items():
        if role not in PAIR_COLUMNS:
            raise ConfigError(f"There is no role {role!r} for a column. Roles: {', '.join(PAIR_COLUMNS)}.")
        if column and column not in table.columns:
            hint = suggest(column, table.columns)
            raise DataError(f"{name} has no column {column!r}.{hint} Columns: {_list(table.columns)}.")
    roles = {role: column for role, column in asked.items() if column}
    if len(set(roles.values())) < len(roles):
        raise DataError(f"A column of {name} was chosen twice: {', '.join(roles.values())}. Choose different ones.")
    for role in (role for role in PAIR_COLUMNS if role not in asked):
        if column := _named(table, role, [*roles.values()]):
            roles[role] = column
    if condition and "condition" in roles:
        raise DataError(
            f"{name} has a column of conditions, {roles['condition']}. Leave out the condition for all rows."
        )
    if missing := [role for role in TEXT_COLUMNS if role not in roles and not (condition and role == "condition")]:
        free = [column for column in table.columns if column not in roles.values()]
        plain = {"".join(filter(str.isalnum, fold_name(column))): column for column in free}
        close = ((get_close_matches(role, plain, n=1, cutoff=0.75), role) for role in missing)
        hints = ", ".join(f"{plain[match[0]]} -> {role}" for match, role in close if match)
        hint = f"Did you mean {hints}?" if hints else "Rename the columns that hold them."
        wanted = f"{', '.join(TEXT_COLUMNS)} and, optionally, {LABEL_COLUMN}"
        raise table.report.error(
            f"{name} has no column {', '.join(missing)}. Found: {_list(table.columns)}; wanted: {wanted}. {hint} Or "
            f"name them: --columns {missing[0]}=NAME (columns=)."
        )
    whys = {role: "as asked" if role in asked else "by its name" for role in roles}
    table.report.roles |= {role: f"{column}, {whys[role]}" for role, column in roles.items()}
    return roles


def _named(table: Table, role: str, taken: Sequence[str]) -> str:
    """Return the column that has the name of a role; notes where it is a rating by another name."""
    free = {column: fold_name(column) for column in table.columns if column not in taken}
    names = RATING_NAMES if role == LABEL_COLUMN else (role,)
    near = [column for name in names for column, folded in free.items() if folded == name]
    if len(same := [column for column in near if free[column] == free[near[0]]]) > 1:
        raise DataError(f"{table.report.name} has {len(same)} columns called {role}. Rename or remove all but one.")
    if near and role == LABEL_COLUMN and (len(near) > 1 or free[near[0]] != LABEL_COLUMN):
        others = f", not from {', '.join(near[1:])}" if len(near) > 1 else ""
        table.report.remarks.append(
            f"Ratings are read from the column {near[0]}{others}. Another: --columns label=NAME."
        )
    return near[0] if near else ""


def read_release(path: Path, needed: Iterable[str], *, advice: str) -> list[tuple[str, dict[str, str]]]:
    """Read a file that the owners of a corpus published.

    Args:
        path: CSV or TSV file.
        needed: Columns that must be there.
        advice: What to do if the file is missing, for the message.

    Returns:
        For each row its place, for messages, and column -> cell.

    Raises:
        DataError: If the file is missing, damaged or cut off, or has other columns.
    """
    if not path.is_file():
        raise DataError(f"{path} cannot be read: No such file or directory. {advice}")
    try:
        table = read_table(path, header=True)
    except DataError as error:
        told = str(error).removesuffix(SKIP)
        raise DataError(f"{path} is damaged: {told} Restore the file of the release.") from error
    if missing := sorted(set(needed) - set(table.columns)):
        raise DataError(f"{path} has no column {', '.join(missing)}, only: {_list(table.columns)}. Restore the file.")
    return [
        (f"{path}, row {number}", dict(zip(table.columns, cells, strict=True)))
        for number, cells in enumerate(table.rows, start=1)
    ]


# ---- guesses ---------------------------------------------------------------------------------------------------------
def guess_pair_columns(table: Table) -> dict[str, str]:
    """Choose for each of `PAIR_COLUMNS` the column that is probably meant.

    First by name; then the longest texts are the sentences and the condition, and numbers from 1 to 5 the rating.

    Returns:
        Role -> column, "" where nothing fits; no column twice.
    """
    columns = [column for column in table.columns if column and not _SCORES.match(column)]
    found: dict[str, str] = {}
    for role in PAIR_COLUMNS:
        free = [column for column in columns if column not in found.values()]
        exact = [column for column in free if fold_name(column) == role]
        found[role] = next(iter([*exact, *filter(partial(is_named, role), free)]), "")
    left = [column for column in columns if column not in found.values()]
    cells = {column: table.column(column)[:SAMPLED] for column in left}
    numbers = [column for column in left if all(re.fullmatch(_NUMBER, cell) for cell in cells[column])]
    texts = by_length({column: cells[column] for column in left if column not in numbers})
    missing = [role for role in TEXT_COLUMNS if not found[role]]
    sentences = [role for role in missing if role != "condition"]
    # The longer of two sentences is not always the first.
    texts[: len(sentences)] = sorted(texts[: len(sentences)], key=columns.index)
    found |= dict(zip([*sentences, *missing[len(sentences) :]], texts, strict=False))
    low, high = LABEL_RANGE
    for column in numbers:
        values = [float(cell.replace(",", ".")) for cell in cells[column] if cell.strip()]
        if not found[LABEL_COLUMN] and all(low <= value <= high for value in values):
            found[LABEL_COLUMN] = column
    return found


def is_named(role: str, column: str) -> bool:
    """Whether the name of a column says that it has this role."""
    return re.search(_NAMES[role], column, re.IGNORECASE) is not None


def by_length(cells: Mapping[str, Sequence[str]]) -> list[str]:
    """Return columns by the length of their cells, the longest first."""
    return sorted(cells, key=lambda column: -sum(map(len, cells[column])))


def guess_text_column(cells: Mapping[str, Sequence[str]]) -> str:
    """Return the column of texts: by its name, else the one with the longest cells; "" of none."""
    named = [column for name in TEXT_NAMES for column in cells if fold_name(column) == name]
    return next(iter([*named, *by_length(cells)]), "")


def _list(columns: Sequence[str]) -> str:
    shown = ", ".join(column[:40] or "(no name)" for column in columns[:10])
    return shown + (f" and {len(columns) - 10} more" if len(columns) > 10 else "")
