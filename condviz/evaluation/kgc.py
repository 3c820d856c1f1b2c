"""Knowledge-graph completion: how high a model ranks the right entity among all, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from condviz.data.kg import Graph
from condviz.encoder.backbone import Progress
from condviz.errors import ConfigError, DataError
from condviz.evaluation.kgc_vectors import check_encoder, entity_texts, entity_vectors, query_vectors
from condviz.evaluation.ranking import Neighbourhoods, RankingMetrics, RankingReport, TrueAnswers, rank_links
from condviz.methods import ConditionalEncoder, ConditionalScorer


@dataclass(frozen=True)
class LinkReport:
    """What a model reaches on one split of a graph.

    Attributes:
        graph, model, split: Names.
        plain: Filtered ranking over all entities; ties get the middle of their ranks.
        reranked: The same with SimKGC's bonus for entities close by in the train graph.
        by_relation: Text of the relation -> mean of both directions, plain.
    """

    graph: str
    model: str
    split: str
    plain: RankingReport
    reranked: RankingReport
    by_relation: Mapping[str, RankingMetrics]

    def to_dict(self) -> dict:
        """Return plain JSON."""
        return {
            "graph": self.graph,
            "model": self.model,
            "split": self.split,
            "plain": self.plain.to_dict(),
            "reranked": self.reranked.to_dict(),
            "by_relation": {name: metrics.to_dict() for name, metrics in self.by_relation.items()},
        }


def evaluate_links(
    model: ConditionalScorer,
    graph: Graph,
    split: str = "test",
    *,
    limit: int = 0,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> LinkReport:
    """Rank the answers of all triples of a split, tail and head, among all entities.

    Args:
        model: Any encoder.
        graph: The graph.
        split: "valid" or "test" (or "train").
        limit: Take the first triples only, so many; 0 takes all.
        folder: As in `condviz.evaluation.kgc_vectors.stored_vectors`.
        progress: Told (done, total) of the encodings.

    Raises:
        ConfigError: If the model gives no vectors, or there is no such split.
        DataError: If the split is empty.
    """
    encoder, queries = check_encoder(model), split_queries(graph, split, limit=limit)
    texts = entity_texts(graph, encoder)
    entities = entity_vectors(encoder, texts, folder=folder, progress=progress)
    vectors = encode_queries(encoder, graph, entities=entities, texts=texts, queries=queries, progress=progress)
    ranks = rank_queries(graph, vectors, entities, queries)
    bonus = _report(rank_queries(graph, vectors, entities, queries, neighbourhoods=neighbourhoods(graph)))
    relations = queries[:, 1] % graph.num_relations
    by_relation = {
        graph.relations[number].text: RankingMetrics.from_ranks(ranks[relations == number])
        for number in relations.unique().tolist()
    }
    return LinkReport(graph.name, model.info.name, split, _report(ranks), bonus, by_relation)


def split_queries(graph: Graph, split: str, *, limit: int = 0) -> Tensor:
    """Return the questions of a split: (2 t, 3) int64, all tails and then all heads asked for.

    Raises:
        ConfigError: If there is no such split.
        DataError: If it is empty.
    """
    if split not in graph.splits:
        raise ConfigError(f"There is no split {split!r}; there are {', '.join(graph.splits)}.")
    queries = torch.from_numpy(graph.directed(split))
    if not len(queries):
        raise DataError(f"The {split} part of {graph.name} has no triples, so there is nothing to rank. Add some.")
    half = len(queries) // 2
    kept = min(limit or half, half)
    return torch.cat([queries[:kept], queries[half : half + kept]])


def encode_queries(
    model: ConditionalEncoder,
    graph: Graph,
    *,
    entities: Tensor,
    texts: list[str],
    queries: Tensor,
    progress: Progress | None = None,
) -> Tensor:
    """Return the vectors of questions, (p, d), each different (head, relation) once; see `query_vectors`."""
    pairs, index = queries[:, :2].unique(dim=0, return_inverse=True)
    vectors = query_vectors(
        model, graph, entities=entities, texts=texts, heads=pairs[:, 0], relations=pairs[:, 1], progress=progress
    )
    return vectors[index]


def rank_queries(
    graph: Graph, vectors: Tensor, entities: Tensor, queries: Tensor, *, neighbourhoods: Neighbourhoods | None = None
) -> Tensor:
    """Rank the answers of questions by the cosine.

    Args:
        graph: All its triples count as known.
        vectors: Of the questions, (p, d), of length 1.
        entities: Of all entities, (E, d), any length.
        queries: (p, 3): head, relation in [0, 2N), answer.
        neighbourhoods: Whose members get the bonus; None for the plain ranking.

    Returns:
        Filtered ranks, (p,) float64.
    """
    known = TrueAnswers(graph.triples, num_entities=graph.num_entities, num_relations=graph.num_relations)
    near = None
    if neighbourhoods is not None:
        around = {head: neighbourhoods.of(head) for head in queries[:, 0].unique().tolist()}
        near = [around[head] for head in queries[:, 0].tolist()]
    return rank_links(
        vectors,
        functional.normalize(entities, dim=1),
        targets=queries[:, 2],
        known=known.answers(queries[:, 0], queries[:, 1]),
        neighbours=near,
    )


def neighbourhoods(graph: Graph) -> Neighbourhoods:
    """Return what is close by in the train part, within the steps that the graph asks for."""
    return Neighbourhoods(graph.splits["train"], num_entities=graph.num_entities, hops=graph.hops)


def _report(ranks: Tensor) -> RankingReport:
    return RankingReport.from_ranks(*ranks.chunk(2))
