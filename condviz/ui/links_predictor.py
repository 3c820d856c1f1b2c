"""Predict links: which entities stand in a relation to an entity, ranked by any encoder, trained for it or not.

The head entity is the sentence and the relation the condition (Hyper-CL and CSR, section on knowledge graphs): the
answer is the entity whose own vector is nearest to that of head under relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from condviz.data.kg import SPLITS, Graph
from condviz.encoder.backbone import Progress
from condviz.errors import ConfigError, DataError
from condviz.evaluation.kgc_vectors import check_encoder, entity_texts, entity_vectors, query_vectors
from condviz.evaluation.ranking import Neighbourhoods, TrueAnswers, rerank
from condviz.methods import ConditionalScorer

BONUS = 0.05
"""What re-ranking adds to entities close by in the train graph (SimKGC)."""


@dataclass(frozen=True)
class Candidate:
    """An entity as an answer.

    Attributes:
        entity: Its number in the graph.
        id, label, name, description: As in `condviz.data.kg.Entity`.
        score: Cosine with the query in [-1, 1], and the bonus where there is re-ranking.
        unconditional: Cosine with the head alone, without the relation.
        rank: Place among all entities, from 1; ties get the middle of theirs.
        split: "train", "valid" or "test" if the graph knows this answer, else "".
        filtered_rank: The rank without the other known answers; None where the graph does not know this answer.
    """

    entity: int
    id: str
    label: str
    name: str
    description: str
    score: float
    unconditional: float
    rank: float
    split: str = ""
    filtered_rank: float | None = None


@dataclass(frozen=True)
class LinkPrediction:
    """Answers to one question.

    Attributes:
        graph, model: Names.
        head: The entity that is asked about, with its own rank and score as an answer.
        relation: What the model read, "inverse " in front where heads are asked for.
        inverse: Whether it asks for heads.
        candidates: The k best, best first.
        answers: All answers that the graph knows, best first.
        median: Median score of all entities: what an unrelated entity gets.
        reranked: Whether entities close by in the train graph got a bonus.
        num_entities: E.
    """

    graph: str
    model: str
    head: Candidate
    relation: str
    inverse: bool
    candidates: tuple[Candidate, ...]
    answers: tuple[Candidate, ...]
    median: float
    reranked: bool
    num_entities: int

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON."""
        return asdict(self)


class LinkPredictor:
    """Answers questions about one graph by one model; safe to use from several threads.

    Args:
        graph: The graph.
        model: Any encoder.
        folder: Where vectors of entities are kept; see `condviz.evaluation.kgc_vectors.entity_vectors`.

    Raises:
        ConfigError: If the model gives no vectors.
    """

    def __init__(self, graph: Graph, model: ConditionalScorer, *, folder: Path | None = None) -> None:
        self.graph, self.model, self.folder = graph, check_encoder(model), folder
        self._lock = RLock()
        self._texts: list[str] = []
        self._vectors: Tensor | None = None
        self._unit = torch.empty(0)
        self._neighbourhoods: Neighbourhoods | None = None
        options = {"num_entities": graph.num_entities, "num_relations": graph.num_relations}
        self._of_split = {split: TrueAnswers(graph.splits[split], **options) for split in SPLITS}

    @property
    def ready(self) -> bool:
        """Whether the entities are encoded and in memory."""
        return self._vectors is not None

    def prepare(self, progress: Progress | None = None) -> LinkPredictor:
        """Read the vectors of all entities from disk, or encode them: minutes for 40,943 entities, once.

        Args:
            progress: Told (done, total) entities; may raise to stop, what is done stays.
        """
        with self._lock:
            if self._vectors is None:
                self._texts = entity_texts(self.graph, self.model)
                vectors = entity_vectors(self.model, self._texts, folder=self.folder, progress=progress)
                self._unit = functional.normalize(vectors, dim=1)
                self._vectors = vectors
        return self

    def predict(
        self, head: int | str, relation: int | str, *, inverse: bool = False, k: int = 10, reranked: bool = False
    ) -> LinkPrediction:
        """Rank all entities as answers.

        Args:
            head: Number, id, label or name of the entity that is asked about.
            relation: Number in [0, 2N), id or text; "inverse hypernym" is the same as "hypernym" and `inverse`.
            inverse: Ask backwards: which entities have this relation to the entity.
            k: How many answers, 1 or more.
            reranked: Add SimKGC's bonus to entities that are close by in the train graph.

        Raises:
            DataError: If there is no such entity (similar ones are named) or relation.
            ConfigError: If k is below 1.
        """
        if k < 1:
            raise ConfigError(f"The number of answers, k, must be at least 1, got {k}.")
        entity, number = self.entity(head), self.relation(relation, inverse=inverse)
        scores = self._scores(self.query(entity, number), entity, reranked)
        plain = self._unit @ self._unit[entity]
        known = self._answers(entity, number)
        places = _Places(scores, list(known))
        best = scores.topk(min(k, len(scores))).indices.tolist()
        found = {i: self._describe(i, scores, plain, places, known.get(i, "")) for i in {entity, *best, *known}}
        return LinkPrediction(
            graph=self.graph.name,
            model=self.model.info.name,
            head=found[entity],
            relation=self.graph.relation_text(number),
            inverse=number >= self.graph.num_relations,
            candidates=tuple(found[i] for i in best),
            answers=tuple(sorted((found[i] for i in known), key=lambda answer: answer.rank)),
            median=float(scores.median()),
            reranked=reranked,
            num_entities=self.graph.num_entities,
        )

    def compare(
        self, head: int | str, relations: Sequence[int | str] | None = None, *, k: int = 5
    ) -> list[LinkPrediction]:
        """Ask about one entity under several relations; by default those that it has in the graph, both directions."""
        entity = self.entity(head)
        chosen = self.relations_of(entity) if relations is None else relations
        return [self.predict(entity, relation, k=k) for relation in chosen]

    def relations_of(self, head: int | str) -> list[int]:
        """Give the relations in [0, 2N) under which the graph knows an answer for an entity, ascending."""
        entity, triples = self.entity(head), self.graph.triples
        forward = triples[triples[:, 0] == entity, 1]
        backward = triples[triples[:, 2] == entity, 1] + self.graph.num_relations
        return np.unique(np.concatenate([forward, backward])).tolist()

    def nearest(self, head: int | str, *, k: int = 10) -> tuple[Candidate, ...]:
        """Give the k entities nearest to an entity without any relation, itself left out, nearest first."""
        entity = self.entity(head)
        scores = self.prepare()._unit @ self._unit[entity]
        best = [i for i in scores.topk(min(k + 1, len(scores))).indices.tolist() if i != entity][:k]
        places = _Places(scores, [])
        return tuple(self._describe(i, scores, scores, places) for i in best)

    def query(self, head: int | str, relation: int | str) -> np.ndarray:
        """Give the vector of head under relation, of length 1: (d,) float32."""
        entity, number = self.entity(head), self.relation(relation)
        self.prepare()
        with self._lock:
            vectors = query_vectors(
                self.model,
                self.graph,
                entities=self._vectors,
                texts=self._texts,
                heads=torch.tensor([entity]),
                relations=torch.tensor([number]),
            )
        return vectors[0].numpy()

    def vectors(self, entities: Sequence[int]) -> np.ndarray:
        """Give the vectors of some entities without a relation, of length 1: (n, d) float32."""
        return self.prepare()._unit[torch.tensor(list(entities), dtype=torch.int64)].numpy()

    def text(self, entity: int) -> str:
        """Give what the model reads for an entity."""
        self.prepare()
        return self._texts[entity]

    def entity(self, head: int | str) -> int:
        """Give the number of an entity; raises DataError if there is none."""
        if isinstance(head, str):
            return self.graph.find_entity(head)
        if not 0 <= head < self.graph.num_entities:
            raise DataError(f"There is no entity {head}; they are numbered 0 to {self.graph.num_entities - 1}.")
        return int(head)

    def relation(self, relation: int | str, *, inverse: bool = False) -> int:
        """Give the number of a relation in [0, 2N); `inverse` turns it round. Raises DataError if there is none."""
        number, size = relation, self.graph.num_relations
        if isinstance(relation, str):
            number = self.graph.find_relation(relation)
        if not 0 <= number < 2 * size:
            raise DataError(f"There is no relation {number}; they are numbered 0 to {2 * size - 1}.")
        return (number + size) % (2 * size) if inverse else int(number)

    def _scores(self, query: np.ndarray, entity: int, reranked: bool) -> Tensor:
        scores = self._unit @ torch.from_numpy(query)
        if not reranked:
            return scores
        with self._lock:
            if self._neighbourhoods is None:
                self._neighbourhoods = Neighbourhoods(
                    self.graph.splits["train"], num_entities=self.graph.num_entities, hops=self.graph.hops
                )
        return rerank(scores[None], [self._neighbourhoods.of(entity)], bonus=BONUS)[0]

    def _answers(self, entity: int, relation: int) -> dict[int, str]:
        """Give the answers that the graph knows, and the split of each; of several the first."""
        asked = torch.tensor([entity]), torch.tensor([relation])
        return {int(answer): split for split in reversed(SPLITS) for answer in self._of_split[split].answers(*asked)[0]}

    def _describe(self, entity: int, scores: Tensor, plain: Tensor, places: _Places, split: str = "") -> Candidate:
        item, score = self.graph.entities[entity], float(scores[entity])
        return Candidate(
            entity=entity,
            id=item.id,
            label=item.label,
            name=item.name,
            description=item.description,
            score=score,
            unconditional=float(plain[entity]),
            rank=places.rank(score),
            split=split,
            filtered_rank=places.filtered_rank(score) if split else None,
        )


class _Places:
    """Ranks among all scores of one question, each by a binary search; ties get the middle of their ranks.

    Args:
        scores: Of all entities, (E,).
        known: Entities that are right.
    """

    def __init__(self, scores: Tensor, known: list[int]) -> None:
        self._all = np.sort(scores.numpy())
        self._known = np.sort(scores.numpy()[known])

    def rank(self, score: float) -> float:
        """Give the rank of a score that is one of all."""
        greater, equal = _count(self._all, score)
        return 1 + greater + (equal - 1) / 2

    def filtered_rank(self, score: float) -> float:
        """Give the rank of a right answer without the other right ones."""
        greater, equal = _count(self._known, score)
        return self.rank(score) - greater - (equal - 1) / 2


def _count(ascending: np.ndarray, score: float) -> tuple[int, int]:
    """Count the numbers greater than a score and those equal to it."""
    low, high = (int(np.searchsorted(ascending, np.float32(score), side=side)) for side in ("left", "right"))
    return len(ascending) - high, high - low
