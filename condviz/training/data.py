"""Rows to train on: where they come from, which of them go into one batch, and what is wrong with them.

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
from condviz.data.pairs import PairTable, check_read, read_pairs
from condviz.errors import CondvizError, ConfigError, DataError
from condviz.training.recipes import Batching, SentenceRecipe, Source
from condviz.types import Pair, columns

TABLE = "csv"
"""Name of the source that reads any table with the columns of C-STS; the others are those of `condviz.data.corpora`."""
MIN_ROWS = 16
"""Fewer rows than this teach nothing that holds for others."""
FEW_ROWS = 200


@dataclass(frozen=True)
class Example:
    """One row."""

    sentence1: str
    sentence2: str
    condition: str
    """Texts."""
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
        return _read_table(source)[0]
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

    Args:
        recipe: Any.
        reading: What `read_pairs` takes; what is blank changes nothing.
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


def _read_table(source: Source) -> tuple[list[Example], PairTable]:
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


# Batches


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
        rows: Any rows.
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


# Before a training


@dataclass(frozen=True)
class Survey:
    """What a recipe's data look like."""

    rows: int = 0
    """Rows that are trained on, once each."""
    validation_rows: int = 0
    """Rows that decide which weights are kept."""
    dropped: int = 0
    """Rows of the files that are not used: repeated, without a label, or without a partner in batches of pairs."""
    units: tuple[tuple[Unit, ...], ...] = ()
    """What is shuffled, of each source: rows, pairs of rows, or blocks."""
    validation: tuple[Example, ...] = ()
    problems: tuple[str, ...] = ()
    """Why a training cannot begin, in words."""
    advice: tuple[str, ...] = ()


def survey(recipe: SentenceRecipe) -> Survey:
    """Survey the data of a recipe; what is wrong is returned in `problems`, not raised."""
    try:
        parts, raw, notes = [], 0, []
        for source in recipe.train:
            is_table = source.name == TABLE and recipe.batching != "blocks"
            part, table = _read_table(source) if is_table else (load_rows(source, recipe), None)
            parts.append(part)
            raw += len(table.pairs) + len(table.report.left_out) if table else len(part)
            notes += table.notes if table else ()
        units = [make_units(part, recipe.batching) for part in parts]
        validation = [row for source in recipe.validation for row in load_source(source)]
    except CondvizError as error:
        return Survey(problems=(str(error),))
    rows = [row for part in units for unit in part for row in unit]
    said = tuple(_problems(recipe, rows, validation)), (*notes, *_advice(rows, validation))
    return Survey(len(rows), len(validation), raw - len(rows), tuple(map(tuple, units)), tuple(validation), *said)


def _problems(recipe: SentenceRecipe, rows: Sequence[Example], validation: Sequence[Example]) -> Iterator[str]:
    labels, ranked = {row.label for row in rows}, {row.label for row in validation}
    if len(rows) < MIN_ROWS:
        yield f"There are only {len(rows)} rows to train on; at least {MIN_ROWS} are needed, hundreds are better."
    elif recipe.batching != "blocks" and recipe.batch_size > len(rows):
        fitting = 2 ** (len(rows).bit_length() - 1)
        yield f"batch_size is {recipe.batch_size}, but there are only {len(rows)} rows. Set it to {fitting}."
    if len(labels) == 1 and not recipe.loss.teacher:
        yield (
            f"Every row has the label {labels.pop():g}, so there is nothing to tell apart. Add rows with other labels, "
            "from 1 (different) to 5 (same)."
        )
    if recipe.keep == "best" and len(ranked) == 1:
        yield (
            f"Every validation row has the label {ranked.pop():g}: no model ranks them better than another. Add other "
            'labels, or set keep = "last".'
        )


def _advice(rows: Sequence[Example], validation: Sequence[Example]) -> Iterator[str]:
    if MIN_ROWS <= len(rows) < FEW_ROWS:
        yield f"{len(rows)} rows are few: expect a model that knows these conditions and no others."
    labels: dict[tuple[str, str, str], set[float]] = defaultdict(set)
    for row in rows:
        labels[row.texts].add(row.label)
    if disputed := sum(len(given) > 1 for given in labels.values()):
        yield f"{disputed} triples of texts have several labels; the model learns their mean."
    if shared := sum(row.texts in labels for row in validation):
        yield (
            f"{shared} of {len(validation)} validation rows are also trained on: their scores will look better than "
            "those on new rows."
        )
    if not validation:
        yield "Without validation rows there is no curve of scores, and the last weights are kept."
