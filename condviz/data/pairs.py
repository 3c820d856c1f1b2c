"""Pairs of sentences in a table: which column is what, and ratings on any scale."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from annotated_doc import Doc

from condviz.data import tables
from condviz.data.tables import MAX_TABLE_BYTES, Table, list_names, read_table, to_csv
from condviz.data.tables.formats import ID, fold_name
from condviz.data.tables.memory import Nested
from condviz.data.tables.report import Place, Report, is_missing
from condviz.data.texts import FOREIGN, JUDGED, check_condition, check_sentence, mostly_foreign
from condviz.errors import ConfigError, DataError, suggest
from condviz.types import Pair

if TYPE_CHECKING:
    import numpy as np

TEXT_COLUMNS = ("sentence1", "sentence2", "condition")
LABEL_COLUMN = "label"
PAIR_COLUMNS = (*TEXT_COLUMNS, LABEL_COLUMN)
RATING_NAMES = (LABEL_COLUMN, "gold", "rating", "similarity", "score")
"""Names under which ratings are recognised, the first one that is there."""
TEXT_NAMES = ("text", "sentence", "sentence1")
"""Columns that are taken for the text where none is named."""
POINT_ROLES = ("text", "condition", "value")
LABEL_RANGE = (1.0, 5.0)
RATING_WORDS = {"no": 1, "yes": 5, "false": 1, "true": 5, "different": 1, "same": 5, "dissimilar": 1, "similar": 5,
                "contradiction": 1, "neutral": 3, "entailment": 5, "low": 1, "medium": 3, "high": 5}  # fmt: skip
"""What people write for ratings from 1 (different) to 5 (same); only offered, never taken unasked."""
SCALES = (LABEL_RANGE, (0.0, 1.0), (-1.0, 1.0), (0.0, 5.0), (1.0, 7.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))
"""The usual ones; the first that fits is offered."""
MOST_WORDS, RATING_LENGTH = 12, 3
"""Of a column whose words may be ratings, and words of a single one, as "very much alike"."""
HIDDEN_LABEL = -1.0
"""C-STS: the label of test rows whose rating is kept secret."""
LONG_WORDS = 180
"""About what fits into 256 tokens, the limit of the small encoders."""
SAMPLED = 200
"""Rows that tell long texts from short ones."""
_NAMES = {
    "sentence1": [r"(sent|text|satz|phrase|frase).*[ _-]?(1|a)$|first|premise|anchor|^a$|^s1$"],
    "sentence2": [r"(sent|text|satz|phrase|frase).*[ _-]?(2|b)$|second|hypothesis|^b$|^s2$"],
    "condition": [r"cond|aspe[ck]t|crit[eè]r|respect|question|beding|frage|kriteri|pregunta|^c$"],
    "label": [r"label|rating|score|similar|gold|grade|agreement|bewertung|puntuaci|valoraci", "^(punkte|note|nota|y)$"],
}
"""What columns of pairs are often called, earlier patterns first; and below, those of points."""
_POINT_NAMES = {"text": [*(f"^{name}$" for name in TEXT_NAMES), "^(satz|texte|phrase|texto|frase)$"],
                "condition": ["^(conditions|aspect|criterion)$", "^(bedingung|aspekt|kriterium)$",
                              "^(critère|condición|criterio)$"],
                "value": ["^label$", "^category$", "^class$", "^kind$", "^answer$", "^(wert|kategorie|klasse|antwort)$",
                          "^(valeur|catégorie|classe|réponse|valor|categoría|clase|respuesta)$"]}  # fmt: skip
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
    roles: Mapping[str, str] = field(default_factory=dict)
    mapped: bool = False


def read_pairs(
    source: Any,  # noqa: ANN401
    *,
    columns: Annotated[
        Mapping[str, str] | None, Doc("Columns of other names, as sentence1=premise; label=NAME is the rating")
    ] = None,
    condition: Annotated[str, Doc("One for all rows of a table without a column of conditions")] = "",
    scale: Annotated[
        tuple[float, float] | None, Doc("Numbers that stand for different and for same, as 0 1 (default: 1 5)")
    ] = None,
    labels: Annotated[Mapping[str, float] | None, Doc("Words that stand for ratings, as no=1 yes=5")] = None,
    header: tables.Header = None,
    separator: tables.Separator = "",
    encoding: tables.Encoding = "",
    skip_bad: tables.SkipBad = False,
    max_bytes: int | None = MAX_TABLE_BYTES,
) -> PairTable:
    """Read a table with the columns sentence1, sentence2, condition and, optionally, a rating.

    Other columns are kept. Ratings are recognised as label, gold, rating, similarity or score.

    Args:
        source, header, separator, encoding, skip_bad, max_bytes: As `read_table` takes them.
        columns, condition, scale, labels: As the signature says, for instance {"sentence1": "premise"}, (0, 1) and
            {"no": 0, "yes": 1}, which are numbers on the scale.

    Raises:
        DataError: If the file cannot be read, is no such table, or a cell is not usable: blank text, control
            characters, a label outside the scale (-1 stands for a hidden label). Names row and column.
        ConfigError: If the scale is none, or something is said about a table of pairs, which has been read.
    """
    if isinstance(source, PairTable):
        check_read("This table", columns=columns, condition=condition, scale=scale, labels=labels)
        return source
    if not isinstance(source, Table):
        names = tuple(name for name in PAIR_COLUMNS if not (condition and name == "condition"))
        form = {"header": header, "separator": separator, "encoding": encoding, "skip_bad": skip_bad}
        source = read_table(source, names=names, max_bytes=max_bytes, **form)
    report = deepcopy(source.report)  # what is rejected here is no fault of the table that was given
    report.skip_bad |= skip_bad
    table = replace(source, report=report)
    roles, ratings = _find_roles(table, columns or {}, condition), Ratings(scale, labels)
    if rated := LABEL_COLUMN in roles:
        ratings.check(report, roles[LABEL_COLUMN], table.column(roles[LABEL_COLUMN]))
    kept = []
    for index, cells in enumerate(table.rows):
        place = table.place(index)
        if (found := check_texts(report, place, table.record(index), roles, ratings)) is not None:
            kept.append((cells, place, Pair(**{"condition": condition, **dict(zip(roles, found, strict=True))})))
    if not kept:
        raise report.error(f"{report.name} has no row that can be used.")
    rows, places, pairs = zip(*kept, strict=True)
    if mostly_foreign(text for pair in pairs[:JUDGED] for text in (pair.sentence1, pair.sentence2)):
        report.remarks.insert(0, FOREIGN)
    if long := sum(max(len(pair.sentence1.split()), len(pair.sentence2.split())) > LONG_WORDS for pair in pairs):
        told = "1 row has" if long == 1 else f"{long:,} rows have"
        report.remarks.append(f"{told} more than {LONG_WORDS} words: models cut what is beyond their limit.")
    return PairTable(table.columns, rows, report, places, pairs, roles, rated and bool(ratings.mapping))


def check_read(what: str, **options: Any) -> None:  # noqa: ANN401
    """Raise ConfigError where something is said about how to read rows that are no table, or have been read."""
    if given := [name for name, value in options.items() if value]:
        raise ConfigError(f"{what} is not read from a file of yours: {given[0]} would change nothing. Leave it out.")


def check_texts(
    report: Report, place: Place, record: Mapping[str, str], columns: Mapping[str, str], ratings: Ratings | None = None
) -> tuple[Any, ...] | None:
    """Return the texts of a row as models read them; None, and rejected by the report, where one cannot be used.

    The columns are those of each role; with `ratings`, the label is a rating and no text.
    """
    try:
        read = []
        for role, name in columns.items():
            cell, field = record.get(name, ""), f"{place}, column {name}"
            if ratings and role == LABEL_COLUMN:
                read.append(ratings.read(cell, field))
            elif isinstance(cell, Nested):
                raise DataError(f"{field} holds {cell[:40]!r}, a list or a record; a text is expected.")
            else:
                check = check_condition if role == "condition" else check_sentence
                read.append(check("" if is_missing(cell) else cell, field))
        return tuple(read)
    except DataError as error:
        report.reject(place, str(error), list(record.values()))
        return None


class Ratings:
    """How cells become ratings from 1 (different) to 5 (same): the two ends of their scale, and words for some."""

    def __init__(self, scale: Sequence[float] | None = None, words: Mapping[str, float] | None = None) -> None:
        self.scale = tuple(scale or LABEL_RANGE)
        self.words = {fold_name(word): number for word, number in (words or {}).items()}
        if len(self.scale) != 2 or self.scale[0] == self.scale[1] or not all(map(math.isfinite, self.scale)):
            raise ConfigError(f"A scale is two different numbers, of different and of same, got {self.scale!r}.")
        self.low, self.high = sorted(self.scale)
        ends = zip((f"{end:g}" for end in self.scale), LABEL_RANGE, strict=True)
        mapped = [*(words or {}).items(), *(ends if self.scale != LABEL_RANGE else ())]
        self.mapping = ", ".join(f"{word} to {number:g}" for word, number in mapped)

    def number(self, cell: str) -> float | None:
        """Return the number of a cell on its own scale: None where it is not known, NaN for no number."""
        if is_missing(cell):
            return None
        try:
            # There are no thousands of points.
            value = float(self.words.get(fold_name(cell), cell.strip().removesuffix("%").replace(",", ".")))
        except ValueError:
            return math.nan
        return None if value == HIDDEN_LABEL < self.low else value

    def read(self, cell: str, place: str) -> float | None:
        """Return the rating of a cell from 1 to 5, None where it is not known; raises DataError for anything else."""
        value = self.number(cell)
        if value is None:
            return None
        if not self.low <= value <= self.high:
            raise DataError(
                f"{place} must be a number from {self.low:g} to {self.high:g}, got {cell.strip()[:40]!r}. Leave it "
                f"blank, or write {HIDDEN_LABEL:g}, where no rating is known. For other numbers, or for words, say "
                "what stands for what: scale, labels."
            )
        first, last = self.scale
        return value if self.scale == LABEL_RANGE else 1 + 4 * (value - first) / (last - first)

    def check(self, report: Report, column: str, cells: Sequence[str]) -> None:
        """Refuse ratings most of which are on another scale; note what is mapped."""
        numbers = [number for number in map(self.number, cells) if number is not None and math.isfinite(number)]
        outside = sum(not self.low <= number <= self.high for number in numbers)
        if (len(numbers) > 1 and outside > len(numbers) / 2) or (outside and set(numbers) <= {0, 1}):
            raise report.error(
                f"{report.name}: the ratings in column {column} go from {min(numbers):g} to {max(numbers):g}, not from "
                f"{self.low:g} to {self.high:g}. Say what stands for different and for same (scale), for instance 0 "
                "and 1."
            )
        if self.mapping:
            report.remarks.append(f"The ratings in {column} were mapped to 1 (different) to 5 (same): {self.mapping}.")


def suggest_ratings(cells: Sequence[str]) -> tuple[tuple[float, float] | None, dict[str, float | None]]:
    """Return a scale that the numbers of a column fit, None for 1 to 5; and its words with likely ratings."""
    read = Ratings((HIDDEN_LABEL, LABEL_RANGE[1])).number  # -1 may be an end of the scale
    values = [(cell.strip(), number) for cell in cells if (number := read(cell)) is not None]
    numbers = [number for _, number in values if math.isfinite(number)]
    words = dict.fromkeys(sorted(word for word, number in values if math.isnan(number)))
    words = words if len(words) <= MOST_WORDS else {}
    if not numbers:
        return None, {word: RATING_WORDS.get(fold_name(word)) for word in words}
    low, high = min(numbers), max(numbers)
    outside = sum(not LABEL_RANGE[0] <= number <= LABEL_RANGE[1] for number in numbers if number != HIDDEN_LABEL)
    if outside < max(2, len(numbers) / 20) and not (outside and set(numbers) <= {0.0, 1.0}):  # slips
        return None, words
    usual = ((0.0, 1.0),) if set(numbers) <= {0.0, 1.0} else SCALES
    fitting = (scale for scale in usual if scale[0] <= low and high <= scale[1])
    return next(fitting, (low, high) if low < high else None), words


def format_predictions(
    table: PairTable, scores: Mapping[str, np.ndarray], others: Mapping[str, Sequence[float]] = MappingProxyType({})
) -> str:
    """Format the table as CSV with one more column `score_<model>` per model, and others by their names.

    Columns of that name that the table already has, from an earlier run, are replaced; scores that are not finite are
    blank. Cells stay as they came, so that the file can be scored again; names of columns are guarded against formulas.
    """
    added = {f"score_{name}": values for name, values in scores.items()} | dict(others)
    frame = table.to_frame().drop(columns=[name for name in table.columns if name in added])
    given = list(frame.columns)
    for name, values in added.items():
        frame[name] = [float(value) if math.isfinite(value) else None for value in values]
    return to_csv(frame, as_given=given, float_format="%.9g")  # nine digits restore every float32 exactly


# ---- columns ---------------------------------------------------------------------------------------------------------
def _find_roles(table: Table, asked: Mapping[str, str], condition: str) -> dict[str, str]:
    """Return role -> column: as asked, else by name; case does not matter. The report says why."""
    report = table.report
    for role, column in asked.items():
        if role not in PAIR_COLUMNS:
            raise ConfigError(f"There is no role {role!r} for a column. Roles: {', '.join(PAIR_COLUMNS)}.")
        if column and column not in table.columns:
            hint = suggest(column, table.columns)
            raise DataError(f"{report.name} has no column {column!r}.{hint} Columns: {list_names(table.columns)}.")
    roles = {role: column for role, column in asked.items() if column}
    if len(set(roles.values())) < len(roles):
        raise DataError(f"A column of {report.name} was chosen twice: {', '.join(roles.values())}. Choose others.")
    for role in PAIR_COLUMNS:
        if role not in asked and (column := _named(table, role, [*roles.values()])):
            roles[role] = column
    if condition and "condition" in roles:
        raise DataError(f"{report.name} has a column of conditions. Leave out the one condition for all rows.")
    if missing := [role for role in TEXT_COLUMNS if role not in roles and not (condition and role == "condition")]:
        free = [column for column in table.columns if column not in roles.values()]
        plain = {"".join(filter(str.isalnum, fold_name(column))): column for column in free}
        close = ((get_close_matches(role, plain, n=1, cutoff=0.75), role) for role in missing)
        hints = ", ".join(f"{plain[match[0]]} -> {role}" for match, role in close if match)
        raise report.error(
            f"{report.name} has no column {', '.join(missing)}. Found: {list_names(table.columns)}; wanted: "
            f"{', '.join(TEXT_COLUMNS)} and, optionally, {LABEL_COLUMN}. {f'Did you mean {hints}? ' if hints else ''}"
            f"Rename the columns, or set columns, for instance {missing[0]}=NAME."
            f"{' For one condition in all rows set condition.' if missing == ['condition'] else ''}"
        )
    report.roles = {role: f"{roles[role]}, {'as asked' if role in asked else _named_by(table)}" for role in roles}
    return roles


def _named(table: Table, role: str, taken: Sequence[str]) -> str:
    """Return the column that has the name of a role; notes where it is a rating by another name."""
    free = {column: fold_name(column) for column in table.columns if column not in taken}
    names = RATING_NAMES if role == LABEL_COLUMN else (role,)
    near = [column for name in names for column, folded in free.items() if folded == name]
    if len(same := [column for column in near if free[column] == free[near[0]]]) > 1:
        raise DataError(f"{table.report.name} has {len(same)} columns called {role}. Rename or remove all but one.")
    if near and role == LABEL_COLUMN and (len(near) > 1 or free[near[0]] != LABEL_COLUMN):
        told = f"Ratings are read from the column {', not '.join(near[:2])}. For another set columns, as label=NAME."
        table.report.remarks.append(told)
    return near[0] if near else ""


def guess_columns(table: Table, roles: Sequence[str] = PAIR_COLUMNS) -> dict[str, str]:
    """Choose for each role the column that is probably meant, "" where nothing fits; the table's report says why.

    First by name. Then the longest texts are the sentences of pairs, or the text, and the longest of the others the
    condition, if they are no ids; numbers from 1 to 5 the rating; and cells that repeat four times the values.
    """
    free = [column for column in table.columns if column and not _SCORES.match(column)]
    ratings = Ratings()
    found, pairs = dict.fromkeys(roles, ""), LABEL_COLUMN in roles
    names = _NAMES if pairs else _POINT_NAMES

    def take(role: str, column: str, why: str) -> None:
        if column and not found[role]:
            found[role], table.report.roles[role] = column, f"{column}, {why}"
            free.remove(column)

    cells = {column: table.column(column)[:SAMPLED] for column in free}
    for role in sorted({*roles} - {"value"}, key=[*TEXT_COLUMNS, *roles].index):  # texts may be called "label"
        able = [column for column in free if role != LABEL_COLUMN or not _is_prose(cells[column])]
        take(role, _first_named(able, [f"^{role}$", *names[role]]), _named_by(table))
    for column in tuple(free) if pairs else ():
        filled = [fold_name(cell) for cell in cells[column] if not is_missing(cell)]
        if sum(cell in RATING_WORDS for cell in filled) > 0.8 * len(filled):
            take(LABEL_COLUMN, column, "which has words that rate")
    values = {
        column: [value for cell in cells[column] if (value := ratings.number(cell)) is not None] for column in free
    }
    numbers = [column for column in free if all(map(math.isfinite, values[column]))]
    ids = [name for name in free if len({*cells[name]}) == len(cells[name]) and all(map(ID.fullmatch, cells[name]))]
    texts = [column for column in free if column not in (*numbers, *ids)] or ([] if pairs else [*free])
    texts.sort(key=lambda column: -sum(map(len, cells[column])))
    missing = [role for role in roles if not found[role] and (role in TEXT_COLUMNS if pairs else role == "text")]
    sentences = _sentences([role for role in missing if role != "condition"], [cells[column] for column in texts[:2]])
    # The longer of two sentences is not always the first.
    texts[: len(sentences)] = sorted(texts[: len(sentences)], key=free.index)
    for role, column in zip([*sentences, *(role for role in missing if role == "condition")], texts, strict=False):
        longest = "one of the two with the longest texts" if len(sentences) > 1 else "which has the longest texts"
        take(role, column, longest if role in sentences else "whose texts are the next longest")
    for column in numbers if pairs else ():
        if all(ratings.low <= value <= ratings.high for value in values[column]):
            take(LABEL_COLUMN, column, f"which has numbers from {ratings.low:g} to {ratings.high:g}")
    if "value" in roles:
        take("value", _first_named(free, ["^value$", *names["value"]]), "by its name")
        repeat = [column for column in free if 2 <= len(set(all_ := table.column(column))) <= len(all_) / 4]
        take("condition", _first_named(repeat, ["question|frage|pregunta"]), "by its name")  # alone they are the texts
        take("value", next((column for column in repeat if column in free), ""), "whose cells repeat")
    return found


def _sentences(roles: list[str], longest: list[Sequence[str]]) -> list[str]:
    """Leave out the second where a table has one text a row: single words that repeat beside it are no sentences."""
    labels = [len({*cells}) < len(cells) and all(len(cell.split()) < 2 for cell in cells) for cells in longest]
    return roles[:1] if labels == [False, True] else roles


def _is_prose(cells: Sequence[str]) -> bool:
    """Return whether most cells are texts: a "Bewertung" may be a review as well as a rating."""
    return 2 * sum(len(cell.split()) > RATING_LENGTH for cell in cells) > len(cells)


def _named_by(table: Table) -> str:
    return "by its place: the file has no names" if table.report.header is False else "by its name"


def _first_named(columns: Sequence[str], patterns: Sequence[str]) -> str:
    near = (column for pattern in patterns for column in columns if re.search(pattern, fold_name(column)))
    return next(near, "")
