"""Filtered ranks, known answers, neighbourhoods and the figures of link prediction."""

from __future__ import annotations

import doctest
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import condviz.evaluation.kgc as module
from condviz.data.kg import Entity, Graph, Relation
from condviz.errors import DataError
from condviz.evaluation.kgc import (
    Neighbourhoods,
    TrueAnswers,
    filtered_ranks,
    rank_queries,
    rerank,
    summarise_directions,
    summarise_ranks,
)

EMPTY = torch.empty(0, dtype=torch.int64)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Draw scores with many ties, targets and known answers."""
    rows, entities = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    values = st.lists(st.integers(-3, 3), min_size=entities, max_size=entities)
    scores = torch.tensor([draw(values) for _ in range(rows)], dtype=torch.float64) / 4
    index = st.integers(0, entities - 1)
    targets = torch.tensor([draw(index) for _ in range(rows)])
    known = [torch.tensor(draw(st.lists(index, max_size=6)), dtype=torch.int64) for _ in range(rows)]
    return scores, targets, known


def slow_ranks(scores: Tensor, targets: Tensor, known: list[Tensor]) -> list[float]:
    ranks = []
    for row, target, answers in zip(scores.tolist(), targets.tolist(), known, strict=True):
        left = [score for index, score in enumerate(row) if index == target or index not in answers.tolist()]
        ranks.append(1 + sum(score > row[target] for score in left) + (left.count(row[target]) - 1) / 2)
    return ranks


def test_example_of_the_docstring() -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


def test_ranks_by_hand() -> None:
    scores = torch.tensor([[0.5, 0.9, 0.5, -2.0]])
    assert filtered_ranks(scores, torch.tensor([0]), [EMPTY]).tolist() == [2.5]
    assert filtered_ranks(scores, torch.tensor([0]), [torch.tensor([1])]).tolist() == [1.5]
    assert filtered_ranks(scores, torch.tensor([3]), [torch.tensor([0, 1, 2, 3])]).tolist() == [1.0]


def test_scores_below_minus_one_are_not_beaten_by_left_out_answers() -> None:
    scores = torch.tensor([[-5.0, -4.0, -6.0]])
    assert filtered_ranks(scores, torch.tensor([0]), [torch.tensor([1])]).tolist() == [1.0]


@given(tables())
def test_ranks_are_those_of_the_definition(table: tuple[Tensor, Tensor, list[Tensor]]) -> None:
    scores, targets, known = table
    before = scores.clone()
    ranks = filtered_ranks(scores, targets, known)
    assert ranks.tolist() == slow_ranks(scores, targets, known)
    assert ranks.dtype == torch.float64
    assert torch.equal(scores, before)


@given(tables(), st.randoms())
def test_naming_of_the_entities_does_not_matter(table: tuple[Tensor, Tensor, list[Tensor]], random: object) -> None:
    scores, targets, known = table
    order = random.sample(range(scores.shape[1]), scores.shape[1])
    places = torch.argsort(torch.tensor(order))
    renamed = filtered_ranks(scores[:, order], places[targets], [places[answers] for answers in known])
    assert torch.equal(renamed, filtered_ranks(scores, targets, known))


@given(tables(), st.floats(0.5, 100), st.floats(-50, 50))
def test_scale_and_offset_of_the_scores_do_not_matter(
    table: tuple[Tensor, Tensor, list[Tensor]], factor: float, offset: float
) -> None:
    scores, targets, known = table
    assert torch.equal(filtered_ranks(scores * factor + offset, targets, known), filtered_ranks(scores, targets, known))


@given(tables())
def test_filtering_never_makes_a_rank_worse(table: tuple[Tensor, Tensor, list[Tensor]]) -> None:
    scores, targets, known = table
    filtered = filtered_ranks(scores, targets, known)
    raw = filtered_ranks(scores, targets, [EMPTY] * len(targets))
    assert (filtered <= raw).all()
    assert (filtered >= 1).all()
    assert (raw <= scores.shape[1]).all()


def test_constant_scores_earn_the_middle_rank() -> None:
    assert filtered_ranks(torch.zeros(2, 7), torch.tensor([0, 6]), [EMPTY, EMPTY]).tolist() == [4.0, 4.0]


def test_blocks_do_not_change_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    queries, entities = torch.randn(7, 3, generator=generator), torch.randn(20, 3, generator=generator)
    triples = [(head, 0, tail) for head in range(7) for tail in range(head, 20, 3)]
    splits = {"train": np.array(triples), "valid": np.zeros((0, 3), int), "test": np.zeros((0, 3), int)}
    named = tuple(Entity(f"{number}", f"{number}", f"{number}") for number in range(20))
    graph = Graph("toy", named, (Relation("r", "r"),), splits)
    targets, heads, tails = torch.arange(7), torch.arange(7), torch.arange(7)
    asked = torch.stack([heads, torch.zeros_like(heads), tails], dim=1)
    known = [torch.tensor([tail for head, _, tail in triples if head == own]) for own in range(7)]
    around = Neighbourhoods(splits["train"], num_entities=20, hops=1)
    near, unit = [around.of(head) for head in range(7)], torch.nn.functional.normalize(entities, dim=1)
    scores = rerank(queries @ unit.T, near)
    expected = filtered_ranks(scores, targets, known)
    monkeypatch.setattr(module, "_BLOCK_ELEMENTS", 50)
    assert torch.equal(filtered_ranks(scores, targets, known), expected)
    assert torch.equal(rank_queries(graph, queries, entities, asked, neighbourhoods=around), expected)
    plain = filtered_ranks(queries @ unit.T, targets, known)
    assert torch.equal(rank_queries(graph, queries, entities, asked), plain)


@pytest.mark.parametrize(
    ("scores", "targets", "known", "message"),
    [
        (torch.tensor([[0.0], [torch.nan]]), torch.tensor([0, 0]), [EMPTY, EMPTY], "row 1 holds a NaN"),
        (torch.tensor([[torch.inf]]), torch.tensor([0]), [EMPTY], "row 0 holds a NaN or an infinity"),
    ],
)
def test_tables_that_cannot_be_ranked(scores: Tensor, targets: Tensor, known: list[Tensor], message: str) -> None:
    with pytest.raises(DataError, match=message):
        filtered_ranks(scores, targets, known)


def test_no_query_gives_no_rank() -> None:
    assert filtered_ranks(torch.zeros(0, 3), EMPTY, []).shape == (0,)


def test_bonus_is_added_to_the_neighbours_alone() -> None:
    scores = torch.zeros(2, 3)
    assert rerank(scores, [torch.tensor([0, 2]), EMPTY], bonus=0.5).tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
    assert scores.sum() == 0


TRIPLES = torch.tensor([[0, 0, 1], [0, 0, 2], [3, 1, 0], [0, 0, 1]])


def test_answers_hold_in_both_directions() -> None:
    truth = TrueAnswers(TRIPLES, num_entities=5, num_relations=2)
    assert len(truth) == 6
    found = truth.answers(torch.tensor([0, 1, 0, 0, 4]), torch.tensor([0, 2, 3, 1, 3]))
    assert [answers.tolist() for answers in found] == [[1, 2], [0], [3], [], []]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4)), max_size=12))
def test_look_ups_agree_with_a_plain_set(triples: list[tuple[int, int, int]]) -> None:
    known = set(triples) | {(tail, relation + 2, head) for head, relation, tail in triples}
    truth = TrueAnswers(torch.tensor(triples), num_entities=5, num_relations=2)
    assert len(truth) == len(known)
    heads, relations, tails = torch.cartesian_prod(torch.arange(5), torch.arange(4), torch.arange(5)).unbind(1)
    every = list(zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True))
    assert truth.contains(heads, relations, tails).tolist() == [triple in known for triple in every]
    for answers, head, relation in zip(truth.answers(heads, relations), heads, relations, strict=True):
        assert answers.tolist() == sorted(t for h, r, t in known if (h, r) == (head, relation))


def test_neighbourhoods_by_hand() -> None:
    # A chain 0 - 1 - 2 - 3, written in mixed directions, and 4 alone.
    chain = np.array([[0, 0, 1], [2, 0, 1], [2, 1, 3]])
    for hops, expected in enumerate([[1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3]]):
        assert Neighbourhoods(chain, num_entities=5, hops=hops).of(1).tolist() == expected
    assert Neighbourhoods(chain, num_entities=5, hops=3).of(4).tolist() == [4]


def test_figures_by_hand() -> None:
    metrics = summarise_ranks(torch.tensor([1.0, 2.5, 4.0, 20.0]))
    assert metrics == {
        "MR": 6.875,
        "MRR": pytest.approx((1 + 0.4 + 0.25 + 0.05) / 4),
        "hits@1": 0.25,
        "hits@3": 0.5,
        "hits@10": 0.75,
        "queries": 4,
    }


def test_report_takes_the_plain_mean_of_the_directions() -> None:
    report = summarise_directions(np.array([1.0, 1.0, 1.0]), np.array([4.0]))
    assert report["mean"] == {"MR": 2.5, "MRR": 0.625, "hits@1": 0.5, "hits@3": 0.5, "hits@10": 1.0, "queries": 4}
    assert json.loads(json.dumps(report)).keys() == {"forward", "inverse", "mean"}


@given(st.lists(st.integers(2, 200), min_size=1, max_size=20))
def test_figures_stay_in_their_ranges(doubled: list[int]) -> None:
    metrics = summarise_ranks(np.array(doubled) / 2)
    assert metrics["MR"] >= 1
    assert 0 < metrics["MRR"] <= 1
    assert 1 / metrics["MR"] <= metrics["MRR"] + 1e-12
    assert 0 <= metrics["hits@1"] <= metrics["hits@3"] <= metrics["hits@10"] <= 1
