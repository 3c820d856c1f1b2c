"""One answer of the Links tab as plain JSON: everything that its views show, from a predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.ui.links_state import LinksState
from condviz.ui.record import pack_info

if TYPE_CHECKING:
    from condviz.ui.links_predictor import Candidate, LinkPrediction, LinkPredictor

MAX_COLUMNS = 6
"""Relations side by side."""
COLUMN_ROWS = 5
NEAR = 8
"""Entities in each list of nearest ones, and of each kind in the map."""
MAX_ANSWERS = 200
"""Known answers that are kept; "inverse hypernym" may have hundreds."""
QUESTION = "?"
"""Id of the question itself on the map."""

Record = dict[str, Any]


def build_answer(predictor: LinkPredictor, state: LinksState, title: str) -> Record:
    """Answer a question.

    Args:
        predictor: Of graph and model of the question.
        state: The question; entity and relation exist.
        title: Of the graph.

    Returns:
        "state", "graph", "model", "entity", "relation", "middle" (median score of all entities), "rows" (the best),
        "answers" (known ones, best first), "known" (how many), "columns" (other relations), "alone" and "under"
        (nearest entities without and with the relation), "points" (of the map).
    """
    graph = predictor.graph
    found = predictor.predict(state.entity, state.relation, inverse=state.inverse, k=state.count)
    alone = predictor.nearest(state.entity, k=NEAR)
    under = [item for item in found.candidates if item.entity != found.head.entity][:NEAR]
    return {
        "state": state.to_dict(),
        "graph": {"name": graph.name, "title": title, "entities": graph.num_entities, "notice": graph.notice},
        "model": pack_info(predictor.model.info),
        "entity": _item(found.head),
        "relation": found.relation,
        "middle": found.median,
        "rows": [_item(item) for item in found.candidates],
        "answers": [_item(item) for item in found.answers[:MAX_ANSWERS]],
        "known": len(found.answers),
        "columns": _columns(predictor, found, state),
        "alone": [_item(item) for item in alone],
        "under": [_item(item) for item in under],
        "points": _points(predictor, found, alone, state),
    }


def _item(found: Candidate) -> Record:
    keys = ("id", "label", "name", "description", "score", "unconditional", "rank", "split", "filtered_rank")
    return {key: getattr(found, key) for key in keys}


def _columns(predictor: LinkPredictor, asked: LinkPrediction, state: LinksState) -> list[Record]:
    """Ask about the same entity under other relations: those that the graph knows of it first."""
    graph = predictor.graph
    number = graph.find_relation(state.relation) + (graph.num_relations if state.inverse else 0)
    others = [*predictor.relations_of(asked.head.entity), *range(graph.num_relations)]
    chosen = list(dict.fromkeys([number, *others]))[:MAX_COLUMNS]
    rest = iter(predictor.compare(asked.head.entity, [one for one in chosen if one != number], k=COLUMN_ROWS))
    predictions = [asked if one == number else next(rest) for one in chosen]
    return [
        {
            "relation": graph.relations[one % graph.num_relations].id,
            "inverse": one >= graph.num_relations,
            "text": found.relation,
            "rows": [_item(item) for item in found.candidates[:COLUMN_ROWS]],
            "known": len(found.answers),
            "best": found.answers[0].rank if found.answers else None,
        }
        for one, found in zip(chosen, predictions, strict=True)
    ]


def _points(
    predictor: LinkPredictor, found: LinkPrediction, alone: tuple[Candidate, ...], state: LinksState
) -> list[Record]:
    """Place the question, its answers, and what is near to the entity alone, by a PCA."""
    from condviz.analysis.map_result import ProjectionConfig
    from condviz.analysis.projection import project

    roles: dict[int, tuple[str, Candidate]] = {found.head.entity: ("query", found.head)}
    for role, items in (("right", found.answers[:NEAR]), ("answer", found.candidates[:NEAR]), ("near", alone)):
        for item in items:
            kind = "right" if item.split else role
            roles.setdefault(item.entity, (kind, item))
    asked = predictor.query(state.entity, found.relation)
    vectors = np.concatenate([predictor.vectors(list(roles)), asked[None]])
    places = project(vectors, vectors, ProjectionConfig("pca")).before.tolist()
    points = [
        {
            "id": item.id, "name": item.name, "description": item.description, "role": role,
            "score": None if role == "near" else item.score, "x": place[0], "y": place[1],
        }
        for (role, item), place in zip(roles.values(), places, strict=False)
    ]  # fmt: skip
    question = {"id": QUESTION, "name": found.relation, "description": "", "role": "asked", "score": None}
    x, y = places[-1]
    return [points[0], {**question, "x": x, "y": y}, *points[1:]]
