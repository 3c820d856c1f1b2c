"""How high a model ranks the right entities of a knowledge graph: the figures that papers print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from condviz.data.kg import Graph
from condviz.evaluation.kgc import (
    check_comparable,
    entity_texts,
    entity_vectors,
    neighbourhoods,
    query_vectors,
    rank_queries,
    split_queries,
    summarise_directions,
    summarise_ranks,
)
from condviz.methods import ConditionalScorer
from condviz.types import Progress, Record


@dataclass(frozen=True)
class LinkReport(Record):
    """What a model reaches on one split of a graph."""

    graph: str
    model: str
    split: str
    plain: Mapping[str, Mapping[str, float]]
    """Filtered ranking over all entities; ties get the middle of their ranks."""
    reranked: Mapping[str, Mapping[str, float]]
    """The same with SimKGC's bonus for entities close by in the train graph."""
    by_relation: Mapping[str, Mapping[str, float]]
    """Text of the relation -> mean of both directions, plain."""


def evaluate_links(
    model: ConditionalScorer,
    graph: Graph,
    split: str = "test",
    *,
    limit: int = 0,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> LinkReport:
    """Rank the answers of all triples of a split, or of its first `limit`, tail and head, among all entities.

    `folder` as in `stored_vectors`; `progress` is told (done, total) of the encodings.

    Raises:
        ConfigError: If the model gives no vectors that can be compared, there is no such split, or `limit` is negative.
        DataError: If the split is empty.
    """
    model.check_able("encodes")
    queries = split_queries(graph, split, limit=limit)
    check_comparable(model, model.encode(["word"], ["relation"]), model.encode_sentences(["word"]))
    texts = entity_texts(graph, model)
    entities = entity_vectors(model, texts, folder=folder, progress=progress)
    vectors = query_vectors(model, graph, queries, entities=entities, texts=texts, progress=progress)
    ranks = rank_queries(graph, vectors, entities, queries)
    bonus = rank_queries(graph, vectors, entities, queries, neighbourhoods=neighbourhoods(graph))
    relations = queries[:, 1] % graph.num_relations
    by_relation = {
        graph.relations[number].text: summarise_ranks(ranks[relations == number])
        for number in relations.unique().tolist()
    }
    plain, reranked = (summarise_directions(*found.chunk(2)) for found in (ranks, bonus))
    return LinkReport(graph.name, model.info.name, split, plain, reranked, by_relation)
