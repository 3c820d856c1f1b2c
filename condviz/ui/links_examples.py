"""Questions worth asking of a graph: chosen by hand for those that are known, drawn from the triples of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from condviz.errors import DataError

if TYPE_CHECKING:
    from condviz.data.kg import Graph

NUMBER = 6


@dataclass(frozen=True)
class Example:
    """A question.

    Attributes:
        entity, relation: Ids.
        inverse: Whether heads are asked for.
        name: Of the entity, for people.
        text: Of the relation, for people.
    """

    entity: str
    relation: str
    inverse: bool
    name: str
    text: str


CHOSEN = {
    "everyday": (
        ("bee", "produces", False),
        ("forest", "lives_in", True),
        ("carpenter", "uses", False),
        ("fox", "eats", False),
        ("hospital", "works_at", True),
        ("needle", "made_of", False),
        ("wing", "has_part", True),
    ),
    "wn18rr": (
        ("land_reform_NN_1", "_hypernym", False),
        ("helsinki_NN_1", "_instance_hypernym", False),
        ("wheeled_vehicle_NN_1", "_has_part", False),
        ("pirouette_NN_1", "_synset_domain_topic_of", False),
        ("lexicology_NN_1", "_derivationally_related_form", False),
        ("songwriter_NN_1", "_instance_hypernym", True),
        ("north_atlantic_treaty_organization_NN_1", "_member_meronym", False),
    ),
}
"""Key of a graph -> (label of the entity, id of the relation, inverse)."""


def find_examples(key: str, graph: Graph) -> list[Example]:
    """Give examples of a graph, at least one.

    Args:
        key: Of the graph.
        graph: The graph; it has a triple.
    """
    questions = CHOSEN.get(key) or _drawn(graph)
    try:
        return [_example(graph, *question) for question in questions]
    except DataError:  # another graph of this name
        return [_example(graph, *question) for question in _drawn(graph)]


def _drawn(graph: Graph) -> tuple[tuple[str, str, bool], ...]:
    """Take one triple of each relation, of the test part where there is one."""
    parts = [graph.splits[name] for name in ("test", "valid", "train")]
    found: dict[int, tuple[str, str, bool]] = {}
    for head, relation, _ in (triple for part in parts for triple in part.tolist()):
        found.setdefault(relation, (graph.entities[head].label, graph.relations[relation].id, False))
        if len(found) == min(NUMBER, graph.num_relations):
            break
    return tuple(found.values())


def _example(graph: Graph, label: str, relation: str, inverse: bool) -> Example:
    entity = graph.entities[graph.find_entity(label)]
    text = graph.relations[graph.find_relation(relation) % graph.num_relations].text
    return Example(entity.id, relation, inverse, entity.name, text)
