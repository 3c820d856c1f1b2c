"""A table of rated pairs that somebody brings: its columns, what will be left out, and its two parts for training."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from condviz.data.files import write_text
from condviz.data.pairs import LABEL_COLUMN, TEXT_COLUMNS, PairTable
from condviz.data.pairs import PAIR_COLUMNS as COLUMNS
from condviz.data.tables import to_csv
from condviz.errors import ConfigError, DataError
from condviz.types import Pair

MIN_ROWS = 20
"""Fewer rated rows teach nothing, and leave none to measure on."""
MIN_PAIRS = 8
"""Sentence pairs with two conditions from which batches of pairs are the better choice."""
LONG_WORDS = 180
"""About what fits into 256 tokens, the limit of the small encoders."""


@dataclass(frozen=True)
class RatedTable:
    """What was found in a table."""

    name: str
    rows: tuple[Pair, ...]
    """Those that can be used, in the order of the file, each with a rating; none twice."""
    total: int
    paired: int
    """Sentence pairs with exactly two rated conditions, which Hyper-CL's loss compares."""
    notes: tuple[str, ...]
    """What the reader should know, a sentence each."""

    @property
    def batching(self) -> str:
        """How its rows are best batched: "pairs" where most sentence pairs have two conditions."""
        return "pairs" if self.paired >= MIN_PAIRS and 4 * self.paired >= len(self.rows) else "rows"


def read_rated(table: PairTable, name: str) -> RatedTable:
    """Take the rated rows out of a table, `name` its file's; DataError if nothing can be learnt from them."""
    pairs = table.pairs
    rated = pd.DataFrame([pair for pair in pairs if pair.label is not None], columns=list(COLUMNS))
    if rated.empty:
        raise DataError(
            f"None of {_count(len(pairs))} of {name} has a rating. Ratings go from 1 (different) to 5 (same)."
        )
    groups = rated.groupby(list(TEXT_COLUMNS), sort=False)[LABEL_COLUMN]
    spread = groups.nunique()
    means: Any = groups.mean()  # three texts -> rating
    rows = tuple(Pair(*texts, label=label) for texts, label in means.items())
    if len(rows) < MIN_ROWS:
        raise DataError(f"{name} has {_count(len(rows))} to learn from. At least {MIN_ROWS} different ones are needed.")
    if len({row.label for row in rows}) == 1:
        raise DataError(
            f"Every rating of {name} is {rows[0].label:g}. There is nothing to tell apart: add rows that are rated "
            "lower or higher."
        )
    long = sum(max(len(row.sentence1.split()), len(row.sentence2.split())) > LONG_WORDS for row in rows)
    averaged = "; where ratings differ, their mean is taken" if (spread.to_numpy() > 1).any() else " left out"
    facts = (
        (len(pairs) - len(rated), "without a rating left out"),
        (len(rated) - len(rows), f"repeated{averaged}"),
        (long, f"with more than {LONG_WORDS} words; the encoder cuts what is beyond its limit"),
    )
    notes = (*table.notes, *(f"{_count(number)} {text}." for number, text in facts if number))
    sizes = pd.Series([(row.sentence1, row.sentence2) for row in rows]).value_counts()
    return RatedTable(name, rows, len(pairs), int((sizes == 2).sum()), notes)


def divide(table: RatedTable, share: float) -> tuple[list[Pair], list[Pair]]:
    """Divide into rows to train on and validation rows; a sentence pair is never in both.

    A share of the sentence pairs, in (0, 0.5], is held back; the same table is always divided alike. ConfigError for
    another share, DataError if one part would have a single rating.
    """
    if not isinstance(share, int | float) or not 0 < share <= 0.5:
        raise ConfigError(f"The validation share is {share!r}, allowed is above 0 and at most 0.5.")

    def place(pair: tuple[str, str]) -> str:
        return hashlib.sha256("\0".join(pair).encode("utf-8", "replace")).hexdigest()

    pairs = sorted({(row.sentence1, row.sentence2) for row in table.rows}, key=place)
    held = set(pairs[: max(2, round(share * len(pairs)))])
    parts = [[row for row in table.rows if ((row.sentence1, row.sentence2) in held) == kept] for kept in (False, True)]
    if any(len({row.label for row in part}) < 2 for part in parts):
        raise DataError(
            f"{table.name} has too few different sentence pairs to hold some of them back. Raise the validation share, "
            "or add rows."
        )
    return parts[0], parts[1]


def store(table: RatedTable, share: float, folder: Path) -> tuple[Path, Path]:
    """Store the rows to train on and the validation rows in a folder named after them, and return both paths."""
    frames = (pd.DataFrame(rows, columns=list(COLUMNS)) for rows in divide(table, share))
    texts = [to_csv(frame, as_given=TEXT_COLUMNS) for frame in frames]
    place = folder / hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    paths = place / "train.csv", place / "validation.csv"
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    return paths


def _count(number: int) -> str:
    return f"{number:,} row" if number == 1 else f"{number:,} rows"
