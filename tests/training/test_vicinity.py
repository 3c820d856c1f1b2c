"""An order of triples by parts of the graph: each triple once, others in every epoch, fewer entities in a batch."""

from __future__ import annotations

import numpy as np

from condviz.training.data import MixedOrder
from condviz.training.vicinity import NearbyOrder

SIDE, BATCH = 20, 40


def grid() -> np.ndarray:
    """Return the triples of a grid of SIDE x SIDE entities, and of one pair apart from it."""
    numbers = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    pairs = [*zip(numbers[:, :-1].flat, numbers[:, 1:].flat, strict=True)]
    pairs += [*zip(numbers[:-1].flat, numbers[1:].flat, strict=True), (SIDE * SIDE, SIDE * SIDE + 1)]
    return np.array([(head, 0, tail) for head, tail in pairs])


def order(seed: int = 1, epoch: int = 0) -> list[int]:
    found = NearbyOrder(grid(), num_entities=SIDE * SIDE + 2, size=10, seed=seed)
    found.set_epoch(epoch)
    assert len(found) == len(grid())
    return list(found)


def entities(rows: list[int]) -> float:
    """Return the mean number of different entities in a batch."""
    triples = grid()
    return np.mean(
        [len(np.unique(triples[rows[start : start + BATCH]][:, [0, 2]])) for start in range(0, len(rows), BATCH)]
    )


def test_each_triple_comes_once_in_an_order_of_seed_and_epoch() -> None:
    assert sorted(order()) == list(range(len(grid())))
    assert order() == order()
    assert order() != order(epoch=1)
    assert order() != order(seed=2)


def test_batches_hold_fewer_entities() -> None:
    single = list(MixedOrder([len(grid())], [1.0], seed=1))
    assert entities(order()) < 0.75 * entities(single)
