"""The rated rows that errors are looked for in: from a table that somebody brings, or from a corpus.

The unit is the item of C-STS: one sentence pair under two conditions. Rows without a partner count in every figure but
those about the order of two conditions.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from keyword import iskeyword
from pathlib import Path
from typing import IO

import numpy as np

from condviz.analysis.errors.names import COLUMN_HELP
from condviz.data import corpora, scenes, splits
from condviz.data.rows import keep_pairs
from condviz.data.tables import LABEL_COLUMN, MAX_TABLE_BYTES, TEXT_COLUMNS, PairTable, read_pairs
from condviz.errors import DataError
from condviz.evaluation.csts import condition_pairs
from condviz.types import Pair

SCORE_PREFIX = "score_"
MAX_ROWS = 50_000
"""The official C-STS files have 18,908 rows altogether."""
MAX_SCENE_PAIRS = 2_000


@dataclass(frozen=True)
class Dataset:
    """Rows to analyse.

    Attributes:
        name: For people: the file, or corpus and part.
        pairs: p rows, exact repeats removed.
        numbers: (p,) int64, the row's number in the source, from 1.
        items: (q, 2) int64, the two rows of each sentence pair that is rated under two different conditions.
        clusters: (p,) int64, a number for each sentence pair; rows of one pair are not independent.
        seen: (p,) bool, whether the condition occurs in training; None if that is not known.
        extra: Further columns of the source as text, p cells each; names are valid in filters.
        stored: Scores that the source brought along in columns `score_<model>`: (p,) float64 each.
        notes: What the reader should know.
        digest: SHA-256 of rows and further columns.
    """

    name: str
    pairs: tuple[Pair, ...]
    numbers: np.ndarray
    items: np.ndarray
    clusters: np.ndarray
    seen: np.ndarray | None
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stored: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    digest: str = ""

    @property
    def gold(self) -> np.ndarray:
        """Ratings, (p,) float64; NaN where there is none."""
        return np.array([math.nan if pair.label is None else pair.label for pair in self.pairs])

    def texts(self) -> tuple[list[str], list[str], list[str]]:
        """Give the three columns that a model scores."""
        pairs = self.pairs
        return [p.sentence1 for p in pairs], [p.sentence2 for p in pairs], [p.condition for p in pairs]


def make_dataset(
    name: str,
    pairs: Sequence[Pair],
    *,
    extra: Mapping[str, Sequence[str]] | None = None,
    training_conditions: Collection[str] | None = None,
    notes: Sequence[str] = (),
    max_rows: int = MAX_ROWS,
) -> Dataset:
    """Find items and clusters, and leave out rows that repeat an earlier one.

    Args:
        name: For people.
        pairs: Rows, in the order of the source; the label is None where it is not known.
        extra: Further columns, as long as `pairs`; numeric ones called `score_<model>` count as scores of that model.
        training_conditions: What "seen" means; None if it is not known.
        notes: What was found while reading.
        max_rows: More rows are refused.

    Raises:
        DataError: If there are no rows, or too many.
    """
    if not pairs:
        raise DataError(f"{name} has no rows. Give at least one pair.")
    if len(pairs) > max_rows:
        raise DataError(f"{name} has {len(pairs):,} rows, and at most {max_rows:,} are allowed here. Split the file.")
    kept, found = _without_repeats(pairs)
    rows = [pairs[index] for index in kept]
    columns = {key: [values[index] for index in kept] for key, values in (extra or {}).items()}
    stored = {
        key.removeprefix(SCORE_PREFIX): scores
        for key, values in columns.items()
        if key.startswith(SCORE_PREFIX) and (scores := _numbers(values)) is not None
    }
    usable = {identifier(key): tuple(values) for key, values in columns.items() if not key.startswith(SCORE_PREFIX)}
    items = condition_pairs(rows)
    return Dataset(
        name=name,
        pairs=tuple(rows),
        numbers=np.array(kept, dtype=np.int64) + 1,
        items=items,
        clusters=_clusters(rows),
        seen=None if training_conditions is None else _seen(rows, training_conditions),
        extra=usable,
        stored=stored,
        notes=(*notes, *found, *_missing(rows, items)),
        digest=_digest(rows, columns),
    )


def read_dataset(
    source: str | Path | IO[bytes],
    *,
    name: str | None = None,
    training_conditions: Collection[str] | None = None,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_TABLE_BYTES,
) -> Dataset:
    """Read a table as `condviz.data.tables.read_pairs` does, with its further columns.

    Args:
        source: A path, "-" for standard input, or an open file.
        name: For people; None takes that of the file.
        training_conditions: As in `make_dataset`.
        max_rows: More rows are refused.
        max_bytes: Larger files are refused.

    Raises:
        DataError: If it cannot be read or has too many rows.
    """
    table = read_pairs(source, max_bytes=max_bytes)
    title = name or (Path(source).name if isinstance(source, str | Path) and source != "-" else "the table")
    return make_dataset(
        title,
        table.pairs,
        extra=_further_columns(table),
        training_conditions=training_conditions,
        notes=table.notes,
        max_rows=max_rows,
    )


def corpus_dataset(corpus: str, part: str) -> Dataset:
    """Build one part of a corpus of `condviz.data.corpora`, with the aspect of each row where it is known.

    Of large parts of the scenes `MAX_SCENE_PAIRS` are taken, so that every model has scored them within minutes.

    Raises:
        DataError: If it does not exist or its files are missing.
        MissingExtraError: If C-STS has to be decrypted and the package for it is not installed.
    """
    rows, notes = corpora.build(corpus, part), []
    if corpus == "scenes" and len(rows) > 2 * MAX_SCENE_PAIRS:
        notes.append(f"{MAX_SCENE_PAIRS:,} of {len(rows) // 2:,} sentence pairs of the scenes, always the same ones.")
        rows = keep_pairs(rows, MAX_SCENE_PAIRS)
    pairs = [Pair(row.sentence1, row.sentence2, row.condition, float(row.label)) for row in rows]
    # A local aspect carries the id of its family, which nobody wants to read.
    aspects = [row.aspect.rpartition(":")[2] for row in rows]
    return make_dataset(
        f"{corpus} {part}",
        pairs,
        extra={"aspect": aspects} if any(aspects) else None,
        training_conditions=scene_conditions(),
        notes=notes,
    )


@cache
def scene_conditions() -> frozenset[str]:
    """Give the conditions that the training part of the scenes may use, on which the shipped models were trained."""
    return splits.training_conditions(scenes.load_families(), scenes.load_aspects())


def identifier(column: str) -> str:
    """Give a column's name as filters take it: lower case, anything but letters, digits and "_" replaced by "_".

    A name that is taken, or could not be told from a number or from a word of the language, begins with "file_".
    """
    plain = re.sub(r"\W+", "_", column.strip().lower()).strip("_")
    free = plain.isidentifier() and not iskeyword(plain) and plain not in COLUMN_HELP
    return plain if free else f"file_{plain}"


def _without_repeats(pairs: Sequence[Pair]) -> tuple[list[int], list[str]]:
    """Keep the first of rows with the same three texts, or the first of them that has a label."""
    first: dict[tuple[str, str, str], int] = {}
    conflicts = repeats = 0
    for index, pair in enumerate(pairs):
        key = pair.sentence1, pair.sentence2, pair.condition
        earlier = first.setdefault(key, index)
        if earlier == index:
            continue
        repeats += 1
        known = pairs[earlier].label
        if known is None and pair.label is not None:
            first[key] = index
        conflicts += None not in (known, pair.label) and known != pair.label
    notes = []
    if repeats:
        end = f"; {conflicts:,} of them had another label" if conflicts else ""
        notes.append(f"{repeats:,} {'row' if repeats == 1 else 'rows'} repeated an earlier one and were left out{end}.")
    return sorted(first.values()), notes


def _missing(pairs: Sequence[Pair], items: np.ndarray) -> list[str]:
    notes = []
    rated = sum(pair.label is not None for pair in pairs)
    if not rated:
        notes.append("No row has a label: scores only, there is nothing to compare them with.")
    elif rated < len(pairs):
        notes.append(f"{len(pairs) - rated:,} of {len(pairs):,} rows have no label; they are scored only.")
    if alone := len(pairs) - items.size:
        notes.append(
            f"Without a partner that has the same sentences and a second condition: {alone:,} of {len(pairs):,} "
            f"{'row' if len(pairs) == 1 else 'rows'}. The order of conditions is judged without them."
        )
    labels = {pair.label for pair in pairs} - {None}
    if len(labels) == 1 and rated > 1:
        notes.append(f"All labels are {labels.pop():g}: no correlation is defined.")
    return notes


def _clusters(pairs: Sequence[Pair]) -> np.ndarray:
    known: dict[tuple[str, str], int] = {}
    return np.array([known.setdefault((p.sentence1, p.sentence2), len(known)) for p in pairs], dtype=np.int64)


def _seen(pairs: Sequence[Pair], training: Collection[str]) -> np.ndarray:
    known = {_folded(condition) for condition in training}
    return np.array([_folded(pair.condition) in known for pair in pairs], dtype=bool)


def _folded(condition: str) -> str:
    return " ".join(condition.casefold().split())


def _further_columns(table: PairTable) -> dict[str, list[str]]:
    known = {*TEXT_COLUMNS, LABEL_COLUMN}
    return {
        column: [row[position] for row in table.rows]
        for position, column in enumerate(table.columns)
        if column and column.casefold() not in known
    }


def _numbers(values: Sequence[str]) -> np.ndarray | None:
    """Give a column of scores, or None if it has anything but finite numbers."""
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _digest(pairs: Sequence[Pair], columns: Mapping[str, Sequence[str]]) -> str:
    content = hashlib.sha256()
    for pair in pairs:
        content.update(repr((pair.sentence1, pair.sentence2, pair.condition, pair.label)).encode())
    for name, values in sorted(columns.items()):
        content.update(repr((name, list(values))).encode())
    return content.hexdigest()
