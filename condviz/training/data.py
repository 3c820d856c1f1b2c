"""Rows to train on: where they come from, and which of them go into one batch.

A batch of pairs holds b / 2 highs and then their b / 2 lows in the same order, as the losses expect.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from condviz.data import corpora
from condviz.data.corpus import RatedPair
from condviz.data.files import write_text
from condviz.data.pairs import LABEL_COLUMN, PAIR_COLUMNS, TEXT_COLUMNS, PairTable, check_read, read_pairs
from condviz.data.tables import to_csv
from condviz.errors import ConfigError, DataError
from condviz.training.recipes import Batching, SentenceRecipe, Source
from condviz.types import Pair, columns

TABLE = "csv"
"""Name of the source that reads any table with the columns of C-STS; the others are those of `condviz.data.corpora`."""
MIN_ROWS = 20
"""Fewer rated rows teach nothing, and leave none to measure on."""
MIN_PAIRS = 8
"""Sentence pairs with two conditions from which batches of pairs are the better choice."""


@dataclass(frozen=True)
class Example:
    """One row."""

    sentence1: str
    sentence2: str
    condition: str
    label: float
    """Rating, 1 (different) to 5 (same)."""
    group: str
    """Rows with the same group are one sentence pair under different conditions; unique across sources."""
    teacher: float | None = None
    """Score of a teacher, about 0 to 1; None where there is none."""
    block: str = ""
    """Rows of the same block go into one batch; "" where rows come singly."""

    @property
    def target(self) -> float:
        """The rating as a number in [0, 1]: y = (label - 1) / 4."""
        return (self.label - 1) / 4

    @property
    def texts(self) -> tuple[str, str, str]:
        """The two sentences and the condition."""
        return self.sentence1, self.sentence2, self.condition


Unit = tuple[Example, ...]
"""What is shuffled: one row, the high and the low row of a sentence pair, or the highs and then the lows of a block."""


def count_texts(rows: Sequence[Example], *, separable: bool) -> int:
    """Count what a frozen encoder encodes of rows: each text once, or each sentence once under each condition."""
    if separable:
        return len({text for row in rows for text in row.texts})
    return len({(text, row.condition) for row in rows for text in (row.sentence1, row.sentence2)})


def load_rows(source: Source, recipe: SentenceRecipe) -> list[Example]:
    """Load the rows of a source as the recipe batches them; errors as in `load_source` and `load_blocks`."""
    return load_blocks(source, recipe.batch_size) if recipe.batching == "blocks" else load_source(source)


def load_source(source: Source) -> list[Example]:
    """Load the rows of a source, always the same in the same order.

    Raises:
        DataError: If there is no such source or split, its files are missing or cannot be used, or no row is left.
        MissingExtraError: If a package that reads the source is not installed.
    """
    if source.name == TABLE:
        return read_examples(source)[0]
    rows = corpora.build(source.name, source.split, seed=source.seed)[: source.rows or None]
    return _examples(rows, f"{source.name} {source.split} {source.seed}")


def load_blocks(source: Source, sentences: int) -> list[Example]:
    """Load the rows of a source in blocks of so many sentences, drawn `source.draws` times.

    Raises:
        ConfigError: If the source is a table, which has no tags to build blocks from.
        DataError: As `load_source`.
    """
    if source.name == TABLE:
        raise ConfigError(f'{source.path}: a table cannot be divided into blocks. Set batching = "pairs".')
    rows = []
    for seed in range(source.seed, source.seed + source.draws):
        place = f"{source.name} {source.split} {seed}"
        for number, block in enumerate(corpora.build_blocks(source.name, source.split, sentences=sentences, seed=seed)):
            rows += _examples(block, place, f"{place} block {number}")
    return rows[: source.rows or None]


def _examples(rows: Sequence[RatedPair], place: str, block: str = "") -> list[Example]:
    return [
        Example(row.sentence1, row.sentence2, row.condition, row.label, f"{place} {row.pair}", block=block)
        for row in rows
    ]


def find_table(path: str) -> Path:
    """Find a file in the current folder or in that of the corpora; raises DataError if it is in neither."""
    places = (Path(path), corpora.data_folder() / path)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise DataError(
            f"{path} is neither in {Path.cwd()} nor in {corpora.data_folder()}. Put the file there, set "
            f"{corpora.VARIABLE}, or give another path with --set train.0.path=FILE."
        )
    return found


def digest(rows: Sequence[Example]) -> str:
    """Compute the SHA-256 of rows, in their order."""
    content = hashlib.sha256()
    for row in rows:
        content.update(json.dumps([*row.texts, row.label, row.teacher]).encode())
    return content.hexdigest()


def read_as(recipe: SentenceRecipe, reading: Mapping[str, Any]) -> SentenceRecipe:
    """Return a recipe whose tables are read in another way; raises ConfigError where it has no table.

    `reading` is what `read_pairs` takes; what is blank changes nothing.
    """
    given = {name: value for name, value in reading.items() if value not in (None, "", False, {})}
    sources = (*recipe.train, *recipe.validation)
    if not any(source.name == TABLE for source in sources):
        check_read("What this recipe trains on", **given)
    changed = [replace(source, **given) if source.name == TABLE else source for source in sources]
    return replace(recipe, train=tuple(changed[: len(recipe.train)]), validation=tuple(changed[len(recipe.train) :]))


def read_source(source: Source) -> PairTable:
    """Read the table of a source; errors as in `read_pairs`."""
    return read_pairs(find_table(source.path), **source.reading)


def read_examples(source: Source) -> tuple[list[Example], PairTable]:
    """Read a table with its column "teacher", if it has one: rows with a label, each once, and all of it."""
    table = read_source(source)
    column = table.columns.index("teacher") if "teacher" in table.columns else None
    rows: dict[Pair, Example] = {}
    for index, (pair, cells) in enumerate(zip(table.pairs, table.rows, strict=True)):
        if pair.label is None or pair in rows:
            continue
        group = json.dumps([source.path, pair.sentence1, pair.sentence2])
        cell = "" if column is None else cells[column]
        try:
            teacher = float(cell) if cell.strip() else None
        except ValueError:
            teacher = math.nan
        if teacher is not None and not math.isfinite(teacher):
            place = f"{source.path}: {table.place(index)}"
            raise DataError(f"{place}: teacher is {cell!r}, expected a number or a blank cell.")
        rows[pair] = Example(pair.sentence1, pair.sentence2, pair.condition, pair.label, group, teacher)
    if not rows:
        raise DataError(f"{source.path}: no row has a label, so there is nothing to learn from.")
    return list(rows.values())[: source.rows or None], table


@dataclass(frozen=True)
class Batch:
    """Texts of b rows: `sentences1`, `sentences2` and `conditions`, b each."""

    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    conditions: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.conditions)


class MixedOrder(Sampler[int]):
    """An order of units that depends on seed and epoch alone, so that training can resume in the middle of an epoch.

    Args:
        sizes: Units of each source.
        weights: How often each unit of a source appears in an epoch; of the broken part, others in every epoch.
        seed: Decides the order.
    """

    def __init__(self, sizes: Sequence[int], weights: Sequence[float], *, seed: int) -> None:
        self.sizes, self.seed, self.epoch = list(sizes), seed, 0
        self.counts = [max(1, round(size * weight)) for size, weight in zip(sizes, weights, strict=True)]

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; the Trainer calls it."""
        self.epoch = epoch

    def __len__(self) -> int:
        return sum(self.counts)

    def __iter__(self) -> Iterator[int]:
        order, start = [], 0
        for part, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True)):
            # One endless walk over reshuffled units, of which each epoch takes the next `count`: a weight of 0.4
            # shows every unit twice in five epochs, and none three times.
            first = self.epoch * count
            for lap in range(first // size, (first + count - 1) // size + 1):
                shuffled = self._shuffled(size, part, lap)
                order += [start + i for i in shuffled[max(0, first - lap * size) : first + count - lap * size]]
            start += size
        yield from (order[i] for i in self._shuffled(len(order), len(self.sizes), self.epoch))

    def _shuffled(self, size: int, *key: int) -> list[int]:
        return np.random.default_rng([self.seed, *key]).permutation(size).tolist()


def make_units(rows: Sequence[Example], batching: Batching) -> list[Unit]:
    """Turn rows into units.

    Args:
        rows: Examples, in any order.
        batching: "rows" keeps all; "pairs" keeps groups of exactly two rows, the higher label first (of equal ones the
            first row), as the official code of Hyper-CL does; "blocks" puts such pairs of one block together.

    Raises:
        DataError: If no pair is left.
    """
    if batching == "rows":
        return [(row,) for row in rows]
    groups: dict[str, list[Example]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    pairs = [tuple(sorted(group, key=lambda row: -row.label)) for group in groups.values() if len(group) == 2]
    if not pairs:
        raise DataError(
            f"None of {len(groups)} sentence pairs has exactly two rated conditions, which batches of pairs need. Use "
            'other data, or batching = "rows" with the loss mse.'
        )
    if batching == "pairs":
        return pairs
    blocks: dict[str, list[Unit]] = defaultdict(list)
    for pair in pairs:
        blocks[pair[0].block].append(pair)
    return [tuple(row for place in zip(*block, strict=True) for row in place) for block in blocks.values()]


def units_per_batch(recipe: SentenceRecipe) -> int:
    """Return how many units one forward pass has."""
    return {"rows": recipe.batch_size, "pairs": recipe.batch_size // 2, "blocks": 1}[recipe.batching]


def collate(units: Sequence[Unit]) -> dict[str, Batch | Tensor]:
    """Build a batch: all highs, then all lows; or single rows as they come.

    Returns:
        The texts, "labels" (b,) in [0, 1] and "teacher" (b,), NaN where a row has none.
    """
    halves = [(unit[: len(unit) // 2], unit[len(unit) // 2 :]) for unit in units]
    rows = [row for half in zip(*halves, strict=True) for part in half for row in part]
    return {
        "batch": Batch(*map(tuple, columns(rows))),
        "labels": torch.tensor([row.target for row in rows]),
        "teacher": torch.tensor([float("nan") if row.teacher is None else row.teacher for row in rows]),
    }


# ---- a table of rated pairs that somebody brings: what will be left out of it, and its two parts ---------------------


@dataclass(frozen=True)
class RatedTable:
    """What was found in a table."""

    name: str
    rows: tuple[Pair, ...]
    """Those that can be used, in the order of the file, each with a rating; none twice."""
    paired: int
    """Sentence pairs with exactly two rated conditions, which Hyper-CL's loss compares."""
    several: int
    """Sentence pairs with two rated conditions or more, whose order can be right or wrong."""
    notes: tuple[str, ...]
    """What the reader should know, a sentence each."""

    @property
    def batching(self) -> str:
        """How its rows are best batched: "pairs" where most sentence pairs have two conditions."""
        return "pairs" if self.paired >= MIN_PAIRS and 4 * self.paired >= len(self.rows) else "rows"


def read_rated(table: PairTable, name: str) -> RatedTable:
    """Take the rated rows out of a table, `name` its file's; DataError if nothing can be learnt from them."""
    import pandas as pd

    pairs = table.pairs
    rated = pd.DataFrame([pair for pair in pairs if pair.label is not None], columns=list(PAIR_COLUMNS))
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
    averaged = "; where ratings differ, their mean is taken" if (spread.to_numpy() > 1).any() else ""
    facts = (
        (len(pairs) - len(rated), "left out for want of a rating"),
        (len(rated) - len(rows), f"left out as repeated{averaged}"),
    )
    notes = (*table.notes, *(f"{_count(number)} {text}." for number, text in facts if number))
    sizes = pd.Series([(row.sentence1, row.sentence2) for row in rows]).value_counts()
    return RatedTable(name, rows, int((sizes == 2).sum()), int((sizes > 1).sum()), notes)


def divide(table: RatedTable, share: float) -> tuple[list[Pair], list[Pair]]:
    """Divide into rows to train on and validation rows; a sentence pair is never in both, in whichever order.

    A share of the sentence pairs, in (0, 0.5], is held back; the same table is always divided alike. ConfigError for
    another share, DataError if one part would have a single rating.
    """
    if not isinstance(share, int | float) or not 0 < share <= 0.5:
        raise ConfigError(f"The validation share is {share!r}, allowed is above 0 and at most 0.5.")

    def place(row: Pair) -> str:
        return hashlib.sha256("\0".join(sorted((row.sentence1, row.sentence2))).encode("utf-8", "replace")).hexdigest()

    places = sorted(set(map(place, table.rows)))
    held = set(places[: max(2, round(share * len(places)))])
    parts = [[row for row in table.rows if (place(row) in held) == kept] for kept in (False, True)]
    if any(len({row.label for row in part}) < 2 for part in parts):
        raise DataError(
            f"{table.name} has too few different sentence pairs to hold some of them back. Raise the validation share, "
            "or add rows."
        )
    return parts[0], parts[1]


def store_parts(table: RatedTable, share: float, folder: Path) -> tuple[Path, Path]:
    """Store the rows to train on and the validation rows in a folder named after them, and return both paths."""
    import pandas as pd

    frames = (pd.DataFrame(rows, columns=list(PAIR_COLUMNS)) for rows in divide(table, share))
    texts = [to_csv(frame, as_given=TEXT_COLUMNS) for frame in frames]
    place = folder / hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    paths = place / "train.csv", place / "rows-held-back.csv"
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    return paths


def _count(number: int) -> str:
    return f"{number:,} row" if number == 1 else f"{number:,} rows"
