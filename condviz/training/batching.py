"""Batches: which rows go together, and each different text of a batch once.

A batch of pairs holds b / 2 highs and then their b / 2 lows in the same order, as the losses want it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from condviz.errors import DataError
from condviz.training.recipes import Batching
from condviz.training.sources import Example

Unit = tuple[Example, ...]
"""What is shuffled: one row, the high and the low row of a sentence pair, or the highs and then the lows of a block."""
H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True)
class Batch:
    """Texts of b rows.

    Attributes:
        sentences1, sentences2, conditions: b texts each.
    """

    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    conditions: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.conditions)


class Units(Dataset[Unit]):
    """The units of all sources, one source after the other.

    Args:
        parts: Units of each source.
    """

    def __init__(self, parts: Sequence[Sequence[Unit]]) -> None:
        self.units = [unit for part in parts for unit in part]

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, index: int) -> Unit:
        return self.units[index]


class MixedOrder(Sampler[int]):
    """An order of units that depends on seed and epoch alone, so that a training can go on in the middle of an epoch.

    Args:
        sizes: Units of each source.
        weights: How often each unit of a source appears in an epoch; of the broken part, others in every epoch.
        seed: Decides the order.
    """

    def __init__(self, sizes: Sequence[int], weights: Sequence[float], *, seed: int) -> None:
        self.sizes, self.counts, self.seed, self.epoch = list(sizes), [], seed, 0
        for size, weight in zip(sizes, weights, strict=True):
            self.counts.append(max(1, round(size * weight)))

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; the trainer calls it."""
        self.epoch = epoch

    def __len__(self) -> int:
        return sum(self.counts)

    def __iter__(self) -> Iterator[int]:
        order, start = [], 0
        for part, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True)):
            # One endless walk over reshuffled units, of which each epoch takes the next `count`.
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
    groups: dict[str, list[Example]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    pairs = [tuple(sorted(group, key=lambda row: -row.label)) for group in groups.values() if len(group) == 2]
    if not pairs:
        raise DataError(
            f"None of {len(groups)} sentence pairs has exactly two rated conditions, which batches of pairs need. Use "
            'other data, or batching = "rows" with the loss mse.'
        )
    if batching == "pairs":
        return pairs
    blocks: dict[str, list[tuple[Example, ...]]] = {}
    for pair in pairs:
        blocks.setdefault(pair[0].block, []).append(pair)
    return [tuple(row for place in zip(*block, strict=True) for row in place) for block in blocks.values()]


def collate(units: Sequence[Unit]) -> dict[str, Batch | Tensor]:
    """Make a batch: all highs, then all lows; or single rows as they come.

    Returns:
        The texts, "labels" (b,) in [0, 1] and "teacher" (b,), NaN where a row has none.
    """
    halves = [(unit[: len(unit) // 2], unit[len(unit) // 2 :]) for unit in units]
    rows = [row for half in zip(*halves, strict=True) for part in half for row in part]
    missing = float("nan")
    return {
        "batch": Batch(
            tuple(row.sentence1 for row in rows),
            tuple(row.sentence2 for row in rows),
            tuple(row.condition for row in rows),
        ),
        "labels": torch.tensor([row.target for row in rows]),
        "teacher": torch.tensor([missing if row.teacher is None else row.teacher for row in rows]),
    }


def number(items: Iterable[H]) -> tuple[list[H], Tensor]:
    """List the different items, and give the place of each item in that list, (n,) int64."""
    places: dict[H, int] = {}
    index = [places.setdefault(item, len(places)) for item in items]
    return list(places), torch.tensor(index, dtype=torch.long)
