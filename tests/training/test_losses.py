"""Losses by hand, their ranges and invariances, and the state of the two modules."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from condviz.errors import DataError
from condviz.evaluation.kgc import TrueAnswers
from condviz.training.losses import (
    MASKED_LOGIT,
    LinkContrast,
    TailQueue,
    false_negative_mask,
    high_low_halves,
    in_batch_logits,
    info_nce,
    mean_squared_error,
    pre_batch_logits,
    quadruplet,
    self_negative_logits,
    self_negative_mask,
    symmetric_cross_entropy,
)

cosine = st.floats(-1, 1, allow_subnormal=False)
pairs = st.lists(st.tuples(cosine, cosine), min_size=1, max_size=8)


def batch(rows: list[tuple[float, float]]) -> Tensor:
    high, low = zip(*rows, strict=True)
    return torch.tensor(high + low, dtype=torch.float64)


def test_squared_error_by_hand() -> None:
    assert mean_squared_error(torch.tensor([0.5, 1.0]), torch.tensor([0.0, 1.0])).item() == 0.125


def test_targets_in_another_precision_are_converted() -> None:
    loss = mean_squared_error(torch.tensor([0.5], dtype=torch.float64), torch.tensor([0.25]))
    assert loss.dtype == torch.float64
    assert loss.item() == 0.0625


def test_quadruplet_by_hand() -> None:
    # First pair: max(0, 1 - 0.5 + 0.25) = 0.75. Second: max(0, 1 - 1 - 0.5) = 0.
    scores = torch.tensor([0.5, 1.0, 0.25, -0.5])
    assert quadruplet(scores).item() == 0.375
    assert quadruplet(scores, margin=0.25).item() == 0.0


def test_info_nce_by_hand() -> None:
    # One pair, p = 1, n = 0, t = 2: -log(e^0.5 / (e^0.5 + 1)).
    loss = info_nce(torch.tensor([1.0, 0.0], dtype=torch.float64), temperature=2)
    assert loss.item() == pytest.approx(-math.log(math.exp(0.5) / (math.exp(0.5) + 1)), abs=1e-15)


def test_info_nce_stays_finite_at_tiny_temperatures() -> None:
    scores = torch.tensor([-1.0, 1.0], requires_grad=True)
    loss = info_nce(scores, temperature=1e-4)
    loss.backward()
    assert loss.item() == pytest.approx(2e4)
    assert torch.isfinite(scores.grad).all()


@given(pairs, st.floats(0.05, 5))
def test_info_nce_is_the_softmax_form(rows: list[tuple[float, float]], temperature: float) -> None:
    logits = torch.tensor(rows, dtype=torch.float64) / temperature
    expected = torch.nn.functional.cross_entropy(logits, torch.zeros(len(rows), dtype=torch.int64))
    torch.testing.assert_close(info_nce(batch(rows), temperature=temperature), expected, rtol=1e-10, atol=1e-12)


@given(pairs, st.randoms())
def test_order_of_the_pairs_does_not_matter(rows: list[tuple[float, float]], random: object) -> None:
    shuffled = random.sample(rows, len(rows))
    for loss in (quadruplet, lambda scores: info_nce(scores, temperature=1.5)):
        torch.testing.assert_close(loss(batch(rows)), loss(batch(shuffled)), rtol=0, atol=1e-12)


@given(pairs)
def test_ranges(rows: list[tuple[float, float]]) -> None:
    scores = batch(rows)
    assert 0 <= quadruplet(scores).item() <= 3
    assert info_nce(scores, temperature=1.5).item() > 0
    ordered = batch([(max(row), min(row)) for row in rows])
    assert info_nce(ordered, temperature=1.5).item() <= math.log(2) + 1e-12


@pytest.mark.parametrize("scores", [torch.zeros(3), torch.zeros(0), torch.zeros(2, 2)])
def test_batches_that_cannot_be_halved(scores: Tensor) -> None:
    with pytest.raises(DataError, match="cannot be halved"):
        high_low_halves(scores)


@pytest.mark.parametrize(("scores", "targets"), [(torch.zeros(2), torch.zeros(3)), (torch.zeros(0), torch.zeros(0))])
def test_scores_without_targets(scores: Tensor, targets: Tensor) -> None:
    with pytest.raises(DataError, match="one shape"):
        mean_squared_error(scores, targets)


# Entities 0 to 5, relations 0 and 1, their inverses 2 and 3.
KNOWN = TrueAnswers(torch.tensor([[0, 0, 1], [0, 0, 2], [3, 1, 3]]), num_entities=6, num_relations=2)
TRIPLES = torch.tensor([[0, 0, 1], [4, 1, 2], [2, 2, 0], [3, 1, 3], [5, 0, 1]])


def test_false_negatives_by_hand() -> None:
    # (0, 0, ?) also holds for 2; rows 0 and 4 share the tail 1; nothing else is known.
    expected = torch.ones(5, 5, dtype=torch.bool)
    expected[0, 1] = expected[0, 4] = expected[4, 0] = False
    assert torch.equal(false_negative_mask(TRIPLES, KNOWN), expected)


def test_false_negatives_against_other_columns() -> None:
    columns = torch.tensor([[5, 0, 2], [5, 0, 5], [5, 0, 1]])
    mask = false_negative_mask(TRIPLES[:1], KNOWN, columns=columns)
    assert mask.tolist() == [[False, True, False]]


def test_self_negatives_by_hand() -> None:
    assert self_negative_mask(TRIPLES, KNOWN).tolist() == [True, True, True, False, True]


def test_logits_by_hand() -> None:
    queries, tails = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 1.0], [0.5, 3.0]])
    keep = torch.tensor([[True, False], [True, True]])
    logits = in_batch_logits(queries, tails, temperature=0.5, margin=0.25, keep=keep)
    assert logits.tolist() == [[1.5, MASKED_LOGIT], [4.0, 11.5]]
    own = self_negative_logits(queries, tails, temperature=0.5, keep=torch.tensor([False, True]))
    assert own.tolist() == [[MASKED_LOGIT], [12.0]]
    earlier = pre_batch_logits(queries, tails, temperature=0.5, weight=0.25)
    assert earlier.tolist() == [[0.5, 0.25], [1.0, 3.0]]


def test_cross_entropy_goes_both_ways() -> None:
    logits = torch.tensor([[0.0, 1.0, 5.0], [2.0, 3.0, 0.0]], dtype=torch.float64)
    rows = sum(torch.logsumexp(logits[i], 0) - logits[i, i] for i in range(2)) / 2
    columns = sum(torch.logsumexp(logits[:, i], 0) - logits[i, i] for i in range(2)) / 2
    torch.testing.assert_close(symmetric_cross_entropy(logits), rows + columns)


@given(st.permutations(range(5)))
def test_order_of_the_batch_does_not_matter(order: list[int]) -> None:
    queries, tails = vectors(1), vectors(2)
    loss = LinkContrast(KNOWN).double()
    expected = loss(queries, tails, triples=TRIPLES, heads=vectors(3))
    found = loss(queries[order], tails[order], triples=TRIPLES[order], heads=vectors(3)[order])
    torch.testing.assert_close(found, expected)


def vectors(seed: int, rows: int = 5) -> Tensor:
    drawn = torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(drawn, dim=1)


def test_margin_and_self_negatives_belong_to_training() -> None:
    queries, tails, heads = vectors(1), vectors(2), vectors(3)
    loss = LinkContrast(KNOWN).double().eval()
    keep = false_negative_mask(TRIPLES, KNOWN)
    plain = symmetric_cross_entropy(in_batch_logits(queries, tails, temperature=loss.temperature, keep=keep))
    torch.testing.assert_close(loss(queries, tails, triples=TRIPLES, heads=heads), plain)
    assert loss.train()(queries, tails, triples=TRIPLES, heads=heads) > plain


def test_temperature_is_learnt() -> None:
    loss = LinkContrast(KNOWN, temperature=0.05)
    assert loss.temperature.item() == pytest.approx(0.05)
    loss(vectors(1).float(), vectors(2).float(), triples=TRIPLES).backward()
    assert loss.log_inverse_temperature.grad != 0


def test_gradient_reaches_all_vectors_but_not_the_queue() -> None:
    queries, tails, heads = (vectors(seed).requires_grad_() for seed in (1, 2, 3))
    loss = LinkContrast(KNOWN, queue=TailQueue(10, 4)).double()
    loss(queries, tails, triples=TRIPLES, heads=heads).backward()
    assert all(tensor.grad.abs().sum() > 0 for tensor in (queries, tails, heads))
    assert not loss.queue.vectors.requires_grad


def test_queue_starts_with_unit_vectors_and_replaces_the_oldest() -> None:
    queue = TailQueue(3, 4, seed=1)
    torch.testing.assert_close(queue.vectors.norm(dim=1), torch.ones(3))
    assert torch.equal(queue.vectors, TailQueue(3, 4, seed=1).vectors)
    start = queue.vectors.clone()
    first, second = vectors(1, 2).float(), vectors(2, 2).float()
    queue.add(first, TRIPLES[:2])
    assert torch.equal(queue.vectors, torch.cat([first, start[2:]]))
    assert not queue.full
    queue.add(second, TRIPLES[2:4])
    assert torch.equal(queue.vectors, torch.stack([second[1], first[1], second[0]]))
    assert queue.triples.tolist() == [TRIPLES[3].tolist(), TRIPLES[1].tolist(), TRIPLES[2].tolist()]
    assert queue.full


def test_a_full_queue_is_masked() -> None:
    queries, tails = vectors(1), vectors(2)
    loss = LinkContrast(KNOWN, queue=TailQueue(5, 4)).double()
    loss(queries, tails, triples=TRIPLES)
    temperature = loss.temperature
    keep = false_negative_mask(TRIPLES, KNOWN, columns=TRIPLES)
    block = in_batch_logits(
        queries, tails, temperature=temperature, margin=0.02, keep=false_negative_mask(TRIPLES, KNOWN)
    )
    earlier = pre_batch_logits(queries, tails, temperature=temperature, keep=keep)
    assert not keep.diagonal().any()
    expected = symmetric_cross_entropy(torch.cat([block, earlier], dim=1))
    torch.testing.assert_close(loss(queries, tails, triples=TRIPLES), expected)


def test_evaluation_leaves_the_queue_alone() -> None:
    loss = LinkContrast(KNOWN, queue=TailQueue(5, 4)).double().eval()
    before = loss.queue.vectors.clone()
    loss(vectors(1), vectors(2), triples=TRIPLES)
    assert torch.equal(loss.queue.vectors, before)
