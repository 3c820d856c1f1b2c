"""Rated rows: from a table that somebody brings, or from a corpus. What `evaluate` and `find_errors` work on.

The unit is the item of C-STS: one sentence pair under two conditions; under three, each two of them are an item. Rows
without a partner count in every figure but those about the order of two conditions.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from keyword import iskeyword
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from condviz.data import corpora
from condviz.data.corpus import COLUMNS, cells_of, keep_pairs
from condviz.data.pairs import PAIR_COLUMNS, PairTable, check_read, read_pairs
from condviz.data.tables import Report
from condviz.data.texts import fold
from condviz.errors import CondvizError, DataError
from condviz.evaluation.agreement import Rows
from condviz.evaluation.metrics import condition_pairs, is_seen
from condviz.types import Pair, Texts, columns

if TYPE_CHECKING:
    import pandas as pd

SCORE_PREFIX = "score_"
ASPECT = "aspect"
"""The column that names what a row asks about, where there is one."""
MAX_ROWS = 50_000
"""The official C-STS files have 18,908 rows altogether."""
MAX_SCENE_PAIRS = 2_000
ROW_KEYS = "row_keys"
"""Key of the training data of a checkpoint: `row_keys` of a table."""
KEY_DIGITS = 8
BY_RULE = "ratings made by rule, for sentences that a language model wrote"
FEATURE_HELP = {
    "row": "number of the row in the source",
    "sentence1": "the first sentence",
    "sentence2": "the second sentence",
    "condition": "the condition",
    "gold": "rating, 1 (different) to 5 (same); a filter may say rating, too",
    "seen": "the condition occurs in the training data of the first model",
    "trained": "the row is among those that trained one of the models",
    "asks": "what the condition asks for: wordings that mean the same have one name",
    "length": "mean number of words of the two sentences",
    "length_gap": "difference of the two numbers of words",
    "overlap": "shared words divided by all words, 0 to 1",
    "negation": "one sentence has a negation, the other has none",
    "numerals": "a sentence has a number",
    "numerals_differ": "the two sentences have different numbers",
    "shared": "words in both sentences",
    "words": "words in either sentence",
}
"""Columns that the analysis of errors computes without any model, and what they say."""

_JUDGED = {
    "score": "score of the model, in its own range",
    "fitted": "the rating that the score predicts, 1 to 5, fitted on other sentence pairs",
    "error": "fitted minus gold: positive means too similar",
    "right": "the conditions of the sentence pair are in the right order; of three and more the share, 0 to 1",
    "margin": "fitted rating of the higher condition minus that of the lower one (or the mean); negative: wrong",
}
COLUMN_HELP = FEATURE_HELP | _JUDGED | {f"{name}_b": f"{name} of the second model" for name in _JUDGED}
"""All that it computes; a column of a file cannot take their names."""


@dataclass(frozen=True)
class Dataset:
    """Rows to analyse."""

    name: str
    """For people: the file, or corpus and part."""
    pairs: tuple[Pair, ...]
    """The p rows, in the order of the source."""
    numbers: np.ndarray
    """(p,) int64, the row's number in the source, from 1."""
    items: np.ndarray
    """(q, 2) int64, two rows that rate one sentence pair under different conditions."""
    clusters: np.ndarray
    """(p,) int64, a number for each sentence pair; rows of one pair are not independent."""
    seen: np.ndarray | None
    """(p,) bool, whether the condition occurs in training; None if that is not known."""
    trained: np.ndarray
    """(p,) bool, whether a model was trained on the very row."""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further columns of the source as text, p cells each; names are valid in filters."""
    stored: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Scores that the source brought along in columns `score_<model>`: (p,) float64 each."""
    notes: tuple[str, ...] = ()
    digest: str = ""
    """SHA-256 of rows and further columns."""
    ratings: str = "ratings of the table"
    table: PairTable | None = None
    """The rows as a table: as it was read, or the part of a corpus with where each row comes from."""

    @property
    def gold(self) -> np.ndarray:
        """Ratings, (p,) float64; NaN where there is none."""
        return np.array([math.nan if pair.label is None else pair.label for pair in self.pairs])

    @cached_property
    def rows(self) -> Rows:
        """What `condviz.evaluation.agreement.measure` needs: aspects are those of a column, else the conditions."""
        named = self.extra.get(ASPECT) or [pair.condition for pair in self.pairs]
        aspects = np.unique([fold(name) for name in named], return_inverse=True)[1]
        return Rows(self.gold, self.clusters, self.items, aspects)

    def texts(self) -> tuple[list[str], list[str], list[str]]:
        """Return the three columns that a model scores."""
        return columns(self.pairs)

    def with_training(self, conditions: Collection[str] | None) -> Dataset:
        """Return the same rows with another meaning of "seen"; None if it is not known.

        Raises:
            DataError: If `conditions` is a single text.
        """
        if isinstance(conditions, str):
            raise DataError("training_conditions must be a list of texts, not a single text. Put it into a list.")
        seen = None if conditions is None else is_seen((pair.condition for pair in self.pairs), conditions)
        return replace(self, seen=seen)


def open_data(
    data: str | Path | IO[bytes] | pd.DataFrame | PairTable | Dataset,
    *,
    training_conditions: Collection[str] | None = None,
    max_rows: int | None = MAX_ROWS,
    **reading: Any,  # noqa: ANN401
) -> Dataset:
    """Read rated rows from whatever they are in.

    Args:
        data: As in `condviz.evaluate`; or a Dataset.
        training_conditions: What "seen" means; None if it is not known.
        max_rows: More rows are refused; None allows any number, and takes all sentence pairs of the scenes.
        reading: How a table is read, as `condviz.read_pairs` takes it.
    """
    if isinstance(data, str) and (corpus := re.fullmatch(r"([\w-]+):([\w-]+)", data)) and not Path(data).exists():
        data = corpus_dataset(*corpus.groups(), max_rows=max_rows)
    if isinstance(data, Dataset):
        check_read(data.name, **reading)
    else:
        name = Path(data).name if isinstance(data, str | Path) and data != "-" else "the table"
        data = table_dataset(read_pairs(data, **reading), name, max_rows=max_rows)
    return data if training_conditions is None else data.with_training(training_conditions)


def make_dataset(
    name: str,
    pairs: Sequence[Pair],
    *,
    extra: Mapping[str, Sequence[str]] | None = None,
    notes: Sequence[str] = (),
    max_rows: int | None = MAX_ROWS,
    ratings: str = "ratings of the table",
) -> Dataset:
    """Find items and clusters of rows, at most `max_rows`; raises DataError if there are none, or too many.

    Of the `extra` columns, as long as `pairs`, numeric ones called `score_<model>` are scores of that model. The notes
    are what was found while reading.
    """
    if not pairs:
        raise DataError(f"{name} has no rows. Give at least one pair.")
    if max_rows is not None and len(pairs) > max_rows:
        raise DataError(f"{name} has {len(pairs):,} rows, and at most {max_rows:,} are allowed here. Split the file.")
    columns = {key: list(values) for key, values in (extra or {}).items()}
    stored = {
        key.removeprefix(SCORE_PREFIX): scores
        for key, values in columns.items()
        if key.startswith(SCORE_PREFIX) and (scores := _numbers(values)) is not None
    }
    content = hashlib.sha256()
    for pair in pairs:
        content.update(repr((pair.sentence1, pair.sentence2, pair.condition, pair.label)).encode())
    for column in sorted(columns.items()):
        content.update(repr(column).encode())
    items, clusters = condition_pairs(pairs), {}
    return Dataset(
        name=name,
        pairs=tuple(pairs),
        numbers=np.arange(1, len(pairs) + 1),
        items=items,
        clusters=np.array([clusters.setdefault((p.sentence1, p.sentence2), len(clusters)) for p in pairs]),
        seen=None,
        trained=np.zeros(len(pairs), dtype=bool),
        extra=_named({key: values for key, values in columns.items() if not key.startswith(SCORE_PREFIX)}),
        stored=stored,
        notes=(*notes, *_remarks(pairs, items)),
        digest=content.hexdigest(),
        ratings=ratings if any(pair.label is not None for pair in pairs) else "not rated",
    )


def table_dataset(table: PairTable, name: str, *, max_rows: int | None = MAX_ROWS) -> Dataset:
    """Turn a table that was read into a dataset; arguments and errors as in `make_dataset`."""
    taken = {*table.roles.values(), ""}
    further = {column: table.column(column) for column in table.columns if column not in taken}
    dataset = make_dataset(name, table.pairs, extra=further, notes=table.notes, max_rows=max_rows)
    numbers = np.array([table.place(index).row for index in range(len(table.pairs))])
    return replace(dataset, numbers=numbers, table=table)


def corpus_dataset(corpus: str, part: str, *, max_rows: int | None = MAX_ROWS) -> Dataset:
    """Build one part of a corpus of `condviz.data.corpora`, with the aspect of each row where it is known.

    Unless `max_rows` is None, of large parts of the scenes `MAX_SCENE_PAIRS` are taken, so that every model has scored
    them within minutes. Errors as `corpora.build`.
    """
    rows, notes = corpora.build(corpus, part), []
    if corpus == "scenes" and max_rows is not None and len(rows) > 2 * MAX_SCENE_PAIRS:
        notes.append(f"{MAX_SCENE_PAIRS:,} of {len(rows) // 2:,} sentence pairs of the scenes, always the same ones.")
        rows = keep_pairs(rows, MAX_SCENE_PAIRS)
    pairs = tuple(Pair(row.sentence1, row.sentence2, row.condition, float(row.label)) for row in rows)
    # A local aspect carries the id of its family, which nobody wants to read.
    aspects = [row.aspect.rpartition(":")[2] for row in rows]
    extra = {ASPECT: aspects} if any(aspects) else None
    ratings = BY_RULE if corpora.CORPORA[corpus].ours else corpora.CORPORA[corpus].ratings
    dataset = make_dataset(f"{corpus} {part}", pairs, extra=extra, notes=notes, max_rows=max_rows, ratings=ratings)
    names = {name: name for name in PAIR_COLUMNS}
    return replace(dataset, table=PairTable(COLUMNS, cells_of(rows), Report(dataset.name), pairs=pairs, roles=names))


def row_keys(pairs: Sequence[Texts]) -> str:
    """Return what tells rows from others, 8 hexadecimal digits each: sentences in either order, and condition."""
    return "".join(_row_key(pair) for pair in pairs)


def _row_key(pair: Texts) -> str:
    texts = *sorted(map(fold, (pair.sentence1, pair.sentence2))), fold(pair.condition)
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]


def trained_rows(model: str, pairs: Sequence[Pair]) -> np.ndarray:
    """Return which of p rows a model was trained on, as its checkpoint records its tables: (p,) bool.

    Parts of corpora are not looked at: their test parts share no row with what is trained on.
    """
    known: set[str] = set()
    for part in _training_data(model):
        keys = part.get(ROW_KEYS, "")
        known |= {keys[start : start + KEY_DIGITS] for start in range(0, len(keys), KEY_DIGITS)}
    return np.array([_row_key(pair) in known for pair in pairs]) if known else np.zeros(len(pairs), dtype=bool)


def _training_data(model: str) -> list[Mapping[str, Any]]:
    """Return what was trained on: the sources that stand in front of those that only chose the weights."""
    from condviz.models.manifest import read_manifest
    from condviz.models.registry import describe

    try:
        path = describe(model).path
        training = read_manifest(Path(path))["training"] if path else {}
    except CondvizError:
        return []
    return training.get("data", [])[: len(training.get("recipe", {}).get("train", []))]


def training_conditions(model: str) -> frozenset[str] | None:
    """Return the conditions that a model was trained on, as its checkpoint records its data.

    Corpora whose files are not here are left out. None where nothing is recorded: an untrained model, a column of a
    file, a lost table.
    """
    found: set[str] = set()
    for part in _training_data(model):
        corpus = corpora.CORPORA.get(part.get("source", ""))
        if corpus is not None and not corpus.downloads:
            with suppress(CondvizError):  # its files are not here, or not yet
                found |= _conditions_of(corpus.name, part["split"])
    return frozenset(found) or None


_conditions_of = cache(corpora.conditions)


def identifier(column: str) -> str:
    """Return a column's name as filters take it: lower case, anything but letters, digits and "_" replaced by "_".

    A name that is taken, or could not be told from a number or from a word of the language, begins with "file_".
    """
    # Filters are parsed as Python, which reads names in this form of Unicode.
    plain = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", column).strip().lower()).strip("_")
    free = plain.isidentifier() and not iskeyword(plain) and plain not in COLUMN_HELP
    return plain if free else f"file_{plain}"


def _named(columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return columns by their identifiers; where several would have the same, further ones end in _2, _3 and so on."""
    found: dict[str, tuple[str, ...]] = {}
    for column, values in columns.items():
        plain = identifier(column)
        names = (plain, *(f"{plain}_{number}" for number in range(2, len(columns) + 1)))
        found[next(name for name in names if name not in found)] = tuple(values)
    return found


def _remarks(pairs: Sequence[Pair], items: np.ndarray) -> list[str]:
    """Return notes on rows that repeat (they count like all others, as in official figures) or lack something."""
    notes = []
    if repeats := len(pairs) - len({(pair.sentence1, pair.sentence2, pair.condition) for pair in pairs}):
        conflicts = repeats - (len(pairs) - len(set(pairs)))
        end = f"; {conflicts:,} of them with another label" if conflicts else ""
        verb = "row repeats" if repeats == 1 else "rows repeat"
        notes.append(f"{repeats:,} {verb} an earlier one and count like others{end}.")
    rated = sum(pair.label is not None for pair in pairs)
    if not rated:
        notes.append("No row has a rating: scores only, there is nothing to compare them with.")
    elif missing := len(pairs) - rated:
        told = "has no rating; it is" if missing == 1 else "have no rating; they are"
        notes.append(f"{missing:,} of {len(pairs):,} rows {told} scored only.")
    if alone := len(pairs) - len(np.unique(items)):
        notes.append(
            f"Without a partner that has the same sentences and a second condition: {alone:,} of {len(pairs):,} "
            f"{'row' if len(pairs) == 1 else 'rows'}. The order of conditions is judged without them."
        )
    labels = {pair.label for pair in pairs} - {None}
    if len(labels) == 1 and rated > 1:
        notes.append(f"All labels are {labels.pop():g}: no correlation is defined.")
    return notes


def _numbers(values: Sequence[str]) -> np.ndarray | None:
    """Return a column of scores, or None if it has anything but finite numbers."""
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
