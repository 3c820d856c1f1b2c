"""An uploaded table of rated pairs: what is in it, what will be left out, and its two parts for training."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from condviz.data.files import write_text
from condviz.data.tables import LABEL_COLUMN, TEXT_COLUMNS, read_pairs
from condviz.errors import ConfigError, DataError
from condviz.types import Pair

MAX_BYTES = 5 * 2**20
MIN_ROWS = 20
"""Fewer rated rows teach nothing, and leave none to measure with."""
MIN_PAIRS = 8
"""Sentence pairs with two conditions from which batches of pairs are the better choice."""
LONG_WORDS = 180
"""About what fits into 256 tokens, the limit of the small encoders."""
SHOWN_ROWS = 5


@dataclass(frozen=True)
class TableReport:
    """What was found in an uploaded table.

    Attributes:
        name: Of the file.
        rows: Those that can be used, in the order of the file, each with a rating.
        total: Rows of the file.
        paired: Sentence pairs with exactly two rated conditions, which Hyper-CL's loss compares.
        notes: What the reader should know, a sentence each.
    """

    name: str
    rows: tuple[Pair, ...]
    total: int
    paired: int
    notes: tuple[str, ...]

    @property
    def batching(self) -> str:
        """How its rows are best put into batches: "pairs" where most sentence pairs have two conditions."""
        return "pairs" if self.paired >= MIN_PAIRS and 4 * self.paired >= len(self.rows) else "rows"

    def histogram(self) -> list[int]:
        """Count the ratings, rounded to 1 to 5."""
        counts = Counter(min(5, max(1, math.floor(row.label + 0.5))) for row in self.rows)
        return [counts[rating] for rating in range(1, 6)]


def inspect(path: str | Path) -> TableReport:
    """Read and check a table.

    Raises:
        DataError: If it cannot be read, or nothing can be learnt from it. Says what to do.
    """
    table = read_pairs(Path(path), max_bytes=MAX_BYTES)
    name = Path(path).name
    rated = [pair for pair in table.pairs if pair.label is not None]
    notes = list(table.notes)
    if not rated:
        raise DataError(
            f"{name} has {_rows(len(table.pairs))}, and none has a label. Add a column {LABEL_COLUMN} with ratings "
            "from 1 (different) to 5 (same)."
        )
    if len(rated) < len(table.pairs):
        notes.append(f"{_rows(len(table.pairs) - len(rated))} without a label left out.")
    rows, repeated, disputed = _without_repeats(rated)
    if repeated:
        notes.append(f"{_rows(repeated)} repeated word for word left out.")
    if disputed:
        notes.append(f"{_rows(disputed)} repeated with another label: their mean is taken.")
    if len(rows) < MIN_ROWS:
        raise DataError(f"{name} has {_rows(len(rows))} to learn from. At least {MIN_ROWS} different ones are needed.")
    if len({row.label for row in rows}) == 1:
        raise DataError(
            f"Every label of {name} is {rows[0].label:g}. There is nothing to tell apart: add rows that are "
            "rated lower or higher."
        )
    long = sum(max(len(row.sentence1.split()), len(row.sentence2.split())) > LONG_WORDS for row in rows)
    if long:
        notes.append(f"{_rows(long)} with more than {LONG_WORDS} words: the encoder cuts what is beyond its limit.")
    groups = Counter((row.sentence1, row.sentence2) for row in rows)
    return TableReport(name, tuple(rows), len(table.pairs), sum(n == 2 for n in groups.values()), tuple(notes))


def divide(report: TableReport, share: float) -> tuple[list[Pair], list[Pair]]:
    """Divide into rows to train on and rows to measure with; a sentence pair is never in both.

    Args:
        report: The table.
        share: How much is kept for measuring, in (0, 0.5]. The same table is always divided alike.

    Raises:
        ConfigError: If the share is not allowed.
    """
    if not isinstance(share, int | float) or not 0 < share <= 0.5:
        raise ConfigError(f"The share of rows to measure with is {share!r}, allowed is above 0 and at most 0.5.")
    pairs = sorted({(row.sentence1, row.sentence2) for row in report.rows}, key=_place)
    kept = set(pairs[: max(2, round(share * len(pairs)))])
    train = [row for row in report.rows if (row.sentence1, row.sentence2) not in kept]
    held = [row for row in report.rows if (row.sentence1, row.sentence2) in kept]
    if not train or len({row.label for row in train}) == 1 or len({row.label for row in held}) == 1:
        raise DataError(
            f"{report.name} has too few different sentence pairs to measure on some of them. Keep more rows for "
            "measuring, or add rows."
        )
    return train, held


def store(report: TableReport, share: float, folder: Path) -> tuple[Path, Path]:
    """Write both parts into a folder, under names that tell their content.

    Returns:
        Paths of the rows to train on and of those to measure with.

    Raises:
        ConfigError: If the share is not allowed.
        DataError: If a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for part, rows in zip(("train", "validation"), divide(report, share), strict=True):
        text = _write(rows)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:10]
        stem = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in Path(report.name).stem)[:40]
        paths.append(folder / f"{stem.strip('-') or 'table'}-{part}-{digest}.csv")
        write_text(paths[-1], text)
    return paths[0], paths[1]


def _without_repeats(rated: Sequence[Pair]) -> tuple[list[Pair], int, int]:
    """Give each row once, and how many repeated ones agreed and disagreed about the label."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for pair in rated:
        found.setdefault((pair.sentence1, pair.sentence2, pair.condition), []).append(float(pair.label))
    rows = [Pair(*texts, label=sum(labels) / len(labels)) for texts, labels in found.items()]
    disputed = sum(len(labels) - 1 for labels in found.values() if len(set(labels)) > 1)
    return rows, len(rated) - len(rows) - disputed, disputed


def _write(rows: Sequence[Pair]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*TEXT_COLUMNS, LABEL_COLUMN])
    writer.writerows([row.sentence1, row.sentence2, row.condition, f"{row.label:g}"] for row in rows)
    return buffer.getvalue()


def _place(pair: tuple[str, str]) -> str:
    return hashlib.sha256("\0".join(pair).encode("utf-8", "replace")).hexdigest()


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"
