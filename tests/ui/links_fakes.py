"""The calls of the Links tab without torch's models: vectors from a hash, over a graph of a few entities."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.data.kg import SPLITS, Entity, Graph, Relation, build_graph
from condviz.data.kg_formats import read_tables
from condviz.types import ModelInfo
from condviz.ui.links_engine import LinksEngine
from tests.ui import fakes

if TYPE_CHECKING:
    from condviz.ui.links_predictor import Candidate, LinkPrediction

SIZE = 12
NAMES = ("bee", "honey", "forest", "bear", "tree", "wing", "<b>moss</b>", "river", "fish", "carpenter", "saw", "fox")


def make_graph(name: str = "everyday") -> Graph:
    """Give a graph in which bees produce honey."""
    entities = [Entity(word.replace("<b>", "").replace("</b>", ""), word, word, f"What a {word} is.") for word in NAMES]
    relations = [Relation("produces", "produces"), Relation("lives_in", "lives in"), Relation("uses", "uses")]
    splits = {
        "train": [("bee", "produces", "honey"), ("bear", "lives_in", "forest"), ("fish", "lives_in", "river")],
        "valid": [("carpenter", "uses", "saw")],
        "test": [("fox", "lives_in", "forest"), ("bee", "lives_in", "forest")],
    }
    return build_graph(name, entities, relations, splits)


def vector(*texts: str) -> np.ndarray:
    """Give a vector of length 1 that depends on all texts."""
    found = np.random.default_rng(zlib.crc32("\x1f".join(texts).encode())).standard_normal(SIZE)
    return (found / np.linalg.norm(found)).astype(np.float32)


class FakePredictor:
    """As condviz.analysis.links.LinkPredictor."""

    def __init__(self, graph: Graph, model: Any) -> None:
        """Keep both."""
        self.graph, self.model, self.ready = graph, model, False
        self._unit = np.stack([vector(entity.id) for entity in graph.entities])

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> FakePredictor:
        """Tell a progress once."""
        if progress and not self.ready:
            progress(1, len(self._unit))
        self.ready = True
        return self

    def predict(self, head: int | str, relation: int | str, *, inverse: bool = False, k: int = 10) -> LinkPrediction:
        """Rank all entities."""
        from condviz.ui.links_predictor import LinkPrediction

        graph, entity = self.graph, self._entity(head)
        number = graph.find_relation(relation) if isinstance(relation, str) else relation
        number = (number + graph.num_relations) % (2 * graph.num_relations) if inverse else number
        scores = self._unit @ self.query(entity, number)
        triples = [(split, *row) for split in SPLITS for row in graph.directed(split).tolist()]
        known = {tail: split for split, first, kind, tail in triples if (first, kind) == (entity, number)}
        order = np.argsort(-scores)
        found = [self._candidate(int(i), scores, entity, rank, known) for rank, i in enumerate(order, start=1)]
        answers = tuple(item for item in found if item.split)
        itself = next(item for item in found if item.entity == entity)
        backward = number >= graph.num_relations
        options = {"median": float(np.median(scores)), "reranked": False, "num_entities": graph.num_entities}
        text = graph.relation_text(number)
        return LinkPrediction(
            graph.name, self.model.info.name, itself, text, backward, tuple(found[:k]), answers, **options
        )

    def compare(self, head: int, relations: Sequence[int], *, k: int = 5) -> list[LinkPrediction]:
        """Ask under several relations."""
        return [self.predict(head, relation, k=k) for relation in relations]

    def relations_of(self, head: int) -> list[int]:
        """Give the relations of an entity."""
        directed = np.concatenate([self.graph.directed(split) for split in SPLITS])
        return sorted({int(kind) for first, kind, _ in directed if first == head})

    def nearest(self, head: int | str, *, k: int = 10) -> tuple[Candidate, ...]:
        """Give the nearest entities."""
        entity = self._entity(head)
        scores = self._unit @ self._unit[entity]
        order = [int(i) for i in np.argsort(-scores) if i != entity][:k]
        return tuple(self._candidate(i, scores, entity, rank, {}) for rank, i in enumerate(order, start=1))

    def query(self, head: int | str, relation: int | str) -> np.ndarray:
        """Give the vector of head under relation."""
        number = self.graph.find_relation(relation) if isinstance(relation, str) else relation
        found = self._unit[self._entity(head)] + vector(self.model.info.name, str(number))
        return found / np.linalg.norm(found)

    def vectors(self, entities: Sequence[int]) -> np.ndarray:
        """Give the vectors of entities."""
        return self._unit[list(entities)]

    def _entity(self, head: int | str) -> int:
        return self.graph.find_entity(head) if isinstance(head, str) else head

    def _candidate(self, index: int, scores: np.ndarray, entity: int, rank: int, known: dict[int, str]) -> Candidate:
        from condviz.ui.links_predictor import Candidate

        item, split = self.graph.entities[index], known.get(index, "")
        filtered = float(rank - sum(scores[i] > scores[index] for i in known)) if split else None
        alone = float(self._unit[index] @ self._unit[entity])
        texts = (item.id, item.label, item.name, item.description)
        return Candidate(index, *texts, float(scores[index]), alone, float(rank), split, filtered)


def describe(name: str) -> ModelInfo:
    """As condviz.models.registry.describe, for a model of links."""
    return fakes.make_info(name, graph="everyday", trained=True, method="tri-encoder", kind="tri")


def load_model(name: str) -> fakes.FakeModel:
    """As condviz.models.registry.load."""
    model = fakes.FakeModel(name)
    model.info = describe(name)
    return model


def read(folder: Path) -> Graph:
    """As condviz.data.kg_formats.read_tables."""
    return read_tables(folder)


def make_links_engine() -> LinksEngine:
    """Give the calls; the graph called wn18rr is not there."""
    return LinksEngine(
        graphs=lambda: ["everyday"],
        load=make_graph,
        read=read,
        predictor=lambda graph, model, _keep: FakePredictor(graph, model),
        models=lambda: ["everyday-concat"],
        describe=describe,
        load_model=load_model,
    )
