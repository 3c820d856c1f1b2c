"""Batches of triples that are close to each other in the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from condviz.training.data import MixedOrder


class NearbyOrder(MixedOrder):
    """An order of triples in which those of one part of the graph follow each other.

    Each epoch draws some entities anew, and every other entity belongs to the one that is nearest; a triple goes with
    its head or its tail. A batch then holds several such parts: fewer different entities than triples drawn singly,
    and among them negatives that are close to the right answer (compare Ko et al. 2024, arXiv:2407.12703).

    Args:
        triples: (t, 3): head, relation, tail.
        num_entities: E.
        size: How many triples a part has on average.
        seed: Decides the order, with the epoch.
    """

    def __init__(self, triples: np.ndarray, *, num_entities: int, size: int, seed: int) -> None:
        super().__init__([len(triples)], [1.0], seed=seed)
        self.ends, self.size = triples[:, [0, 2]], size
        ones = np.ones(len(triples), dtype=np.int8)
        self.links = coo_array((ones, tuple(self.ends.T)), shape=(num_entities, num_entities)).tocsr()

    def __iter__(self) -> Iterator[int]:
        dice = np.random.default_rng([self.seed, self.epoch])
        entities, count = self.links.shape[0], len(self.ends)
        centres = dice.permutation(entities)[: max(1, math.ceil(count / self.size))]
        *_, owners = dijkstra(
            self.links, directed=False, indices=centres, unweighted=True, min_only=True, return_predecessors=True
        )
        alone = owners < 0  # nobody was drawn in its component
        owners[alone] = np.flatnonzero(alone)
        chosen = self.ends[np.arange(count), dice.integers(2, size=count)]
        turn = dice.permutation(entities)[owners[chosen]]
        yield from np.lexsort((dice.permutation(count), turn)).tolist()
