"""Predicted links: order, ranks, known answers, both directions, nearest entities."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from condviz.errors import ConfigError, DataError
from condviz.methods import METHODS
from condviz.ui.links_predictor import BONUS, LinkPredictor
from tests.kg_toy import ENTITIES, toy_graph
from tests.tiny import encoded_rows, tiny_backbone

CONFIGS = {"hyper-cl": {"rank": 4, "pooling": "mean"}, "csr": {}, "bi-encoder": {"pooling": "mean"}}


@pytest.fixture(params=sorted(CONFIGS))
def predictor(request: pytest.FixtureRequest, tmp_path: Path) -> LinkPredictor:
    method = METHODS[request.param]
    model = method(tiny_backbone(), method.config_cls(**CONFIGS[request.param])).eval()
    return LinkPredictor(toy_graph(tmp_path / "graph"), model, folder=tmp_path / "cache")


def test_candidates_are_ordered_by_the_cosine(predictor: LinkPredictor) -> None:
    found = predictor.predict(0, "the park", k=ENTITIES)
    scores = [item.score for item in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert sorted(item.entity for item in found.candidates) == list(range(ENTITIES))
    assert [item.rank for item in found.candidates] == [1 + sum(s > item.score for s in scores) + (
        scores.count(item.score) - 1) / 2 for item in found.candidates]  # fmt: skip
    text, alone = predictor.text(0), predictor.vectors(range(ENTITIES))
    query = predictor.model.encode([text], ["the park"])[0]
    np.testing.assert_allclose(alone[found.candidates[0].entity] @ query / np.linalg.norm(query), scores[0], atol=1e-5)
    assert found.median == pytest.approx(np.sort(scores)[(ENTITIES - 1) // 2], abs=1e-6)
    assert found.head.unconditional == pytest.approx(1, abs=1e-5)


def test_known_answers_are_marked(predictor: LinkPredictor) -> None:
    found = predictor.predict(7, "_in", k=3)
    assert [(answer.entity, answer.split) for answer in found.answers] == [(8, "test")]
    assert found.answers[0].filtered_rank == found.answers[0].rank
    back = predictor.predict(8, "_in", inverse=True)
    assert back.relation == "inverse the park"
    assert back.inverse
    assert [(answer.entity, answer.split) for answer in back.answers] == [(7, "test")]
    assert predictor.predict(8, "inverse the park") == back
    assert json.loads(json.dumps(back.to_dict()))["answers"][0]["split"] == "test"


def test_filtered_rank_leaves_other_answers_out(tmp_path: Path) -> None:
    graph = toy_graph(tmp_path / "graph")
    triples = np.array([[0, 0, tail] for tail in range(2, 8)])
    many = type(graph)("many", graph.entities, graph.relations, {**graph.splits, "train": triples})
    model = METHODS["unconditional"](tiny_backbone(), METHODS["unconditional"].config_cls()).eval()
    found = LinkPredictor(many, model, folder=tmp_path / "cache").predict(0, 0)
    assert len(found.answers) == 6
    for place, answer in enumerate(found.answers):
        assert answer.filtered_rank == answer.rank - place


def test_bonus_for_entities_close_by(predictor: LinkPredictor) -> None:
    plain, near = (predictor.predict(0, 0, k=ENTITIES, reranked=flag) for flag in (False, True))
    moved = {item.entity: item.score for item in near.candidates}
    assert {round(moved[item.entity] - item.score, 4) for item in plain.candidates} <= {0.0, BONUS}
    assert moved[0] == pytest.approx(plain.head.score + BONUS, abs=1e-5)
    assert (plain.reranked, near.reranked) == (False, True)


def test_entities_are_encoded_once(predictor: LinkPredictor) -> None:
    assert not predictor.ready
    told: list[tuple[int, int]] = []
    predictor.prepare(lambda *now: told.append(now))
    assert predictor.ready
    assert told[-1] == (ENTITIES, ENTITIES)
    predictor.predict(0, 0)
    with encoded_rows(predictor.model.backbone) as rows:
        predictor.predict(0, 0)
        predictor.nearest(3)
    assert not rows


def test_nearest_leaves_the_entity_out(predictor: LinkPredictor) -> None:
    found = predictor.nearest(2, k=4)
    assert len(found) == 4
    assert 2 not in {item.entity for item in found}
    unit = predictor.vectors(range(ENTITIES))
    best = max((float(unit[i] @ unit[2]), i) for i in range(ENTITIES) if i != 2)
    assert found[0].entity == best[1]


def test_one_entity_under_all_its_relations(predictor: LinkPredictor) -> None:
    assert predictor.relations_of(0) == [0, 1, 2, 3]
    found = predictor.compare(0, k=2)
    assert [item.relation for item in found] == ["the park", "the mood", "inverse the park", "inverse the mood"]
    assert all(len(item.candidates) == 2 for item in found)
    assert predictor.query(0, 1).shape == (32,)


def test_wrong_questions(predictor: LinkPredictor, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no entity 'nobody'"):
        predictor.predict("nobody", 0)
    with pytest.raises(DataError, match="no relation 'beside'"):
        predictor.predict(0, "beside")
    with pytest.raises(DataError, match="no entity 99"):
        predictor.predict(99, 0)
    with pytest.raises(DataError, match="no relation 4"):
        predictor.predict(0, 4)
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        predictor.predict(0, 0, k=0)
    cross = METHODS["cross-encoder"](tiny_backbone(), METHODS["cross-encoder"].config_cls())
    with pytest.raises(ConfigError, match="vectors"):
        LinkPredictor(predictor.graph, cross)
