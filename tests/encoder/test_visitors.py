"""Several visitors at once: the numbers of a single request, a share of the cores, leaving, and limits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from condviz.encoder.visitors import VISITOR, Visitor, share_cores
from condviz.errors import DataError
from tests.tiny import CONDITIONS, SENTENCES, encoded_rows, for_visitors, tiny_backbone

ITEMS = [(text,) for text in SENTENCES]


def test_a_visitor_gets_the_numbers_of_a_single_request() -> None:
    backbone, alone = tiny_backbone(), tiny_backbone()
    texts = [[(f"{text} {condition}",) for text in SENTENCES] for condition in CONDITIONS]
    found = for_visitors([lambda own=own: backbone.encode(own, pooling="mean") for own in texts])
    for own, vectors in zip(texts, found, strict=True):
        torch.testing.assert_close(vectors, alone.encode(own, pooling="mean"), rtol=0, atol=1e-6)


@pytest.mark.parametrize("cores", [1, 2])
def test_in_half_precision_visitors_at_once_get_the_bits_of_a_single_request(
    monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    monkeypatch.setattr("condviz.encoder.backbone.CORES", cores)
    backbone, alone = (tiny_backbone().to(torch.bfloat16) for _ in range(2))
    texts = [[(f"{text} {condition}",) for text in SENTENCES] for condition in CONDITIONS]
    found = for_visitors([lambda own=own: backbone.encode(own, pooling="mean") for own in texts])
    for own, vectors in zip(texts, found, strict=True):
        assert torch.equal(vectors, alone.encode(own, pooling="mean"))


def test_who_is_alone_has_all_cores_and_several_have_a_share() -> None:
    before, seen, inside, gate = torch.get_num_threads(), [], threading.Barrier(2), threading.Event()

    def compute() -> int:
        with share_cores(4):
            inside.wait(10)
            gate.wait(10)
            return torch.get_num_threads()

    try:
        with ThreadPoolExecutor(1) as thread, share_cores(4):
            seen.append(torch.get_num_threads())
            other = thread.submit(compute)
            inside.wait(10)
            gate.set()
            seen.append(other.result(10))
        with share_cores(4):
            seen.append(torch.get_num_threads())
    finally:
        torch.set_num_threads(before)
    assert seen == [4, 2, 4]


def test_what_another_visitor_has_had_encoded_is_not_encoded_again() -> None:
    backbone = tiny_backbone()

    def meanwhile() -> None:
        VISITOR.set(None)
        backbone.encode(ITEMS, pooling="mean")

    VISITOR.set(Visitor("a", check=meanwhile))
    try:
        with encoded_rows(backbone) as rows:
            backbone.encode(ITEMS, pooling="mean")
    finally:
        VISITOR.set(None)
    assert sum(rows) == len(ITEMS)


def test_who_leaves_stops_before_the_next_batch_and_what_is_done_stays_known() -> None:
    backbone, asked = tiny_backbone(), iter([None, None, InterruptedError()])

    def check() -> None:
        if (error := next(asked)) is not None:
            raise error

    VISITOR.set(Visitor("a", check=check))
    try:
        with pytest.raises(InterruptedError):
            backbone.encode(ITEMS, pooling="mean", batch_size=1)
    finally:
        VISITOR.set(None)
    assert backbone.cache.entries == 2


def test_a_visitor_may_not_ask_for_more_tokens_than_allowed() -> None:
    visitor = Visitor("a", max_tokens=5)
    visitor.charge(3)
    with pytest.raises(DataError, match="at most 5"):
        visitor.charge(3)
    VISITOR.set(visitor)
    try:
        with pytest.raises(DataError, match="at most 5"):
            tiny_backbone().encode(ITEMS, pooling="mean")
    finally:
        VISITOR.set(None)


def test_in_half_precision_a_request_has_the_same_bits_whatever_was_asked_before() -> None:
    backbone, items = tiny_backbone().to(torch.bfloat16), [(text,) for text in SENTENCES]
    fresh = backbone.encode(items, pooling="mean")
    backbone.cache.clear()
    for item in items:
        backbone.encode([item], pooling="mean")
    assert torch.equal(backbone.encode(items, pooling="mean"), fresh)
