"""Ranks of the right entity among all entities of a knowledge graph, and the figures made of them.

A triple (head, relation, tail) gives two queries: (head, relation) asks for the tail (forward), (tail, inverse
relation) asks for the head (inverse). Relations are numbered 0 to N - 1, the inverse of relation r is r + N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from condviz.errors import DataError
from condviz.types import Record

_BLOCK_ELEMENTS = 8_000_000
"""Scores held at once: 32 MB in single precision, 195 queries of WN18RR."""
HITS = (1, 3, 10)
"""Limits k of hits@k."""


class TrueAnswers:
    """The triples that are known to hold, in both directions, as one sorted array of numbers.

    Answers of a query are neighbours in that array, so that a look-up is a binary search and 93,003 triples of WN18RR
    take 1.5 MB.

    Args:
        triples: Shape (t, 3), integers: head, relation, tail in forward direction. May be empty.
        num_entities: E; heads and tails lie in [0, E).
        num_relations: N; relations lie in [0, N). Inverses N to 2 N - 1 are added here.
    """

    def __init__(self, triples: Tensor | np.ndarray, *, num_entities: int, num_relations: int) -> None:
        self.num_entities, self.num_relations = num_entities, num_relations
        forward = torch.as_tensor(triples, dtype=torch.int64).cpu().reshape(-1, 3)
        inverse = torch.stack([forward[:, 2], forward[:, 1] + num_relations, forward[:, 0]], dim=1)
        self._keys = torch.unique(self._key(*torch.cat([forward, inverse]).unbind(1)))

    def contains(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Return which triples are known: bool of the common shape; arguments broadcast, relations in [0, 2N)."""
        keys = self._key(heads, relations, tails)
        position = torch.searchsorted(self._keys, keys)
        # A search past the end has no key to compare with.
        padded = torch.cat([self._keys, self._keys.new_full((1,), -1)])
        return padded[position] == keys

    def answers(self, entities: Tensor, relations: Tensor) -> list[Tensor]:
        """Return the known answers of p queries (entity asked about, relation in [0, 2N)): their numbers, ascending."""
        first = self._key(entities, relations, torch.zeros_like(entities))
        starts = torch.searchsorted(self._keys, first).tolist()
        ends = torch.searchsorted(self._keys, first + self.num_entities).tolist()
        return [self._keys[start:end] % self.num_entities for start, end in zip(starts, ends, strict=True)]

    def __len__(self) -> int:
        """Count the known triples; each direction counts."""
        return len(self._keys)

    def _key(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (heads * (2 * self.num_relations) + relations) * self.num_entities + tails


class Neighbourhoods:
    """Entities within a number of steps of an entity, in the undirected graph of the train triples.

    Args:
        triples: Train triples, shape (t, 3): head, relation, tail.
        num_entities: E.
        hops: Largest number of steps, at least 0; SimKGC takes 5 for WN18RR and 2 for FB15k-237.

    Source:
        SimKGC (Wang et al. 2022), section 3.4, and rerank.py of its repository.
        Differs: there a neighbourhood of more than 100,000 entities counts as empty, which no benchmark graph reaches.
    """

    def __init__(self, triples: Tensor | np.ndarray, *, num_entities: int, hops: int) -> None:
        from scipy.sparse import csr_array

        rows = np.asarray(triples)
        self.hops = hops
        ends = np.concatenate([rows[:, [0, 2]], rows[:, [2, 0]]])
        self._graph = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(num_entities,) * 2)

    def of(self, entity: int) -> Tensor:
        """Return the entities at most `hops` steps away, the entity itself included, ascending, int64."""
        from scipy.sparse.csgraph import dijkstra

        steps = dijkstra(self._graph, indices=entity, unweighted=True, limit=self.hops)
        return torch.from_numpy(np.flatnonzero(np.isfinite(steps)))


def filtered_ranks(scores: Tensor, targets: Tensor, known: Sequence[Tensor]) -> Tensor:
    """Rank each target among all entities, leaving out the other known answers: (p,) float64 from 1, may end in .5.

    Ties get the mean of the best and worst rank, so a model that scores every entity alike earns (E + 1) / 2, not 1.

    Args:
        scores: Plausibility of every candidate, shape (p, E), finite, higher is better. Not modified.
        targets: Index of the right entity per row, shape (p,), int64 in [0, E).
        known: Per row, the indices of all entities right in any split; the target itself may be among them.

    Source:
        Filtered setting: Bordes et al. 2013 (TransE). Ties: Berrendorf et al. 2020, arXiv:2002.06914.
        Differs from Hyper-CL sim-kgc/evaluate.py:80, which writes -1 over known answers.

    Example:
        >>> filtered_ranks(torch.tensor([[0.9, 0.5, 0.7]]), torch.tensor([1]), [torch.tensor([0, 1])])
        tensor([2.], dtype=torch.float64)
    """
    targets = targets.to(scores.device)
    bad = (~torch.isfinite(scores)).any(dim=1).nonzero().flatten()
    if len(bad):
        raise DataError(f"Scores must be finite to be ranked; row {int(bad[0])} holds a NaN or an infinity.")
    target_scores = scores.gather(1, targets.unsqueeze(1))
    # Counting everything and taking the known answers off again needs no second table of scores.
    greater = (scores > target_scores).sum(1)
    equal = (scores == target_scores).sum(1) - 1
    rows, columns = _cells([torch.unique(row) for row in known], scores.device)
    others = columns != targets[rows]
    rows, columns = rows[others], columns[others]
    left_out, limit = scores[rows, columns], target_scores[rows, 0]
    greater.index_add_(0, rows, (left_out > limit).to(greater.dtype), alpha=-1)
    equal.index_add_(0, rows, (left_out == limit).to(equal.dtype), alpha=-1)
    return (1 + greater.double() + equal.double() / 2).cpu()


def _cells(sets: Sequence[Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return row and column of every entity of every row's set, both (cells,) int64."""
    columns = torch.cat([torch.empty(0, dtype=torch.int64), *(row.cpu().to(torch.int64) for row in sets)])
    rows = torch.repeat_interleave(torch.tensor([len(row) for row in sets], dtype=torch.int64))
    return rows.to(device), columns.to(device)


def rerank(scores: Tensor, neighbours: Sequence[Tensor], *, bonus: float = 0.05) -> Tensor:
    """Return scores (p, E) with a bonus for every entity close to that of the query: the `neighbours` of each row.

    Source:
        SimKGC (Wang et al. 2022), section 3.4: 0.05. The published figures for WN18RR and FB15k-237 include it.
    """
    rows, columns = _cells(neighbours, scores.device)
    scores = scores.clone()
    scores[rows, columns] += bonus
    return scores


@torch.inference_mode()
def rank_links(
    queries: Tensor,
    entities: Tensor,
    *,
    targets: Tensor,
    known: Sequence[Tensor],
    neighbours: Sequence[Tensor] | None = None,
) -> Tensor:
    """Score queries against all entities by the dot product and rank the targets, a block of queries at a time.

    The full table of WN18RR (6,268 x 40,943) would take a gigabyte; a block takes 32 MB.

    Args:
        queries: (head, relation) vectors, shape (p, d), scaled to length 1 for a cosine.
        entities: Shape (E, d).
        targets: Right entity per query, shape (p,), int64.
        known: Per query, all entities right in any split.
        neighbours: Per query, the entities that get the bonus of `rerank`; None gives the plain ranking.

    Returns:
        Ranks as `filtered_ranks`, on the CPU.
    """
    rows = max(1, _BLOCK_ELEMENTS // max(1, len(entities)))
    ranks = [torch.empty(0, dtype=torch.float64)]
    for start in range(0, len(queries), rows):
        block = slice(start, start + rows)
        scores = queries[block] @ entities.T
        if neighbours is not None:
            scores = rerank(scores, neighbours[block])
        ranks.append(filtered_ranks(scores, targets[block], known[block]))
    return torch.cat(ranks)


@dataclass(frozen=True)
class RankingMetrics(Record):
    """Figures of one direction, or the mean of two."""

    mean_rank: float
    """MR, at least 1, lower is better."""
    mean_reciprocal_rank: float
    """MRR in (0, 1], higher is better."""
    hits: Mapping[int, float]
    """Share of ranks that are at most k, in [0, 1], by k."""
    num_queries: int
    """How many ranks these figures are made of."""

    @classmethod
    def from_ranks(cls, ranks: Tensor | np.ndarray) -> RankingMetrics:
        """Summarise ranks, shape (p,), at least 1, may end in .5; at least one."""
        values = np.asarray(ranks, dtype=np.float64)
        hits = {k: float(np.mean(values <= k)) for k in HITS}
        return cls(float(values.mean()), float(np.mean(1 / values)), MappingProxyType(hits), len(values))

    def to_dict(self) -> dict[str, float]:
        """Return plain JSON with the field's names: MR, MRR, hits@k."""
        hits = {f"hits@{k}": share for k, share in self.hits.items()}
        return {"MR": self.mean_rank, "MRR": self.mean_reciprocal_rank, **hits, "queries": self.num_queries}


@dataclass(frozen=True)
class RankingReport(Record):
    """Link prediction in both directions: forward queries for the tail, inverse ones for the head."""

    forward: RankingMetrics
    inverse: RankingMetrics
    computed = ("mean",)

    @classmethod
    def from_ranks(cls, forward: Tensor | np.ndarray, inverse: Tensor | np.ndarray) -> RankingReport:
        """Summarise the ranks of both directions, shapes (p,)."""
        return cls(RankingMetrics.from_ranks(forward), RankingMetrics.from_ranks(inverse))

    @property
    def mean(self) -> RankingMetrics:
        """Plain mean of the two directions, as SimKGC's evaluate.py prints it."""
        one, two = self.forward, self.inverse
        rank = (one.mean_rank + two.mean_rank) / 2
        reciprocal = (one.mean_reciprocal_rank + two.mean_reciprocal_rank) / 2
        hits = MappingProxyType({k: (one.hits[k] + two.hits[k]) / 2 for k in one.hits})
        return RankingMetrics(rank, reciprocal, hits, one.num_queries + two.num_queries)
