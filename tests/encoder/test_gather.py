"""Texts of several visitors in one worker: the numbers of a single request, turns, and leaving."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch

from condviz.encoder.gather import (
    FREE_TOKENS,
    LARGE,
    NICENESS,
    TOKEN_STEP,
    Gathering,
    Lane,
    Request,
    Visitor,
    crew,
    encode_here,
)
from condviz.encoder.tokens import Encoded, Joined
from condviz.errors import DataError
from tests.tiny import CONDITIONS, SENTENCES, encoded_rows, for_visitors, tiny_backbone

SHORT, LONG = Encoded((1, 2), (0, 0)), Encoded((3, 4, 5), (0, 1, 1))


def request(
    visitor: str = "a",
    texts: Sequence[str] = ("x",),
    *,
    key: str = "key",
    embed: Callable[[list], list] = lambda rows: list(rows),
    cores: int = 1,
    patient: bool = False,
) -> Request:
    """Make a request whose token ids are the texts themselves, with at most ten letters in a batch."""
    forget = lambda texts: [None] * len(texts)  # noqa: E731
    return Request(key, {text: text for text in texts}, embed, forget, lambda *_: None, nullcontext(), 10,
                   visitor=Visitor(visitor, patient=patient), cores=cores)  # fmt: skip


def waiting(*requests: Request) -> Lane:
    lane = Lane(large=requests[0].large)
    lane._waiting.extend(requests)
    return lane


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


def test_texts_that_are_padded_alike_share_batches() -> None:
    rows = {length: "x" * length for length in (1, 8, 9, 16, 30, 17)} | {"joined": Joined((LONG, SHORT))}
    one = Request("key", rows, list, list, print, nullcontext(), 64, multiple=8)
    assert [set(batch) for batch in one.batches] == [{30}, {17}, {9, 16}, {"joined"}, {1, 8}]


def test_large_batches_have_few_different_numbers_of_tokens() -> None:
    sizes, texts = set(), 0
    for count in range(1, 130):
        rows = {number: "x" * (17 + number % 8) for number in range(count)}
        one = Request("key", rows, list, list, print, nullcontext(), 1024, multiple=8)
        batches = list(one.batches)
        sizes |= {24 * len(batch) for batch in batches}
        texts += sum(map(len, batches))
    assert texts == sum(range(1, 130)), "each once"
    assert all(size <= FREE_TOKENS or size % TOKEN_STEP == 0 for size in sizes)


def test_batches_of_one_turn_are_computed_at_once_a_core_each() -> None:
    together = threading.Barrier(2)

    def embed(rows: list[str]) -> list[str]:
        together.wait(10)
        return rows

    both = [request(name, [name * 5], embed=embed, cores=2) for name in "ab"]
    Lane()._run(both)
    assert [one.values for one in both] == [{"aaaaa": "aaaaa"}, {"bbbbb": "bbbbb"}]


def test_two_encoders_work_at_once_a_core_each() -> None:
    together, gathering = threading.Barrier(2), Gathering()

    def embed(rows: list[str]) -> list[str]:
        together.wait(10)
        return rows

    both = [request(name, ["x"], key=name, embed=embed, cores=2) for name in "ab"]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda one: list(gathering.encode(one)), both))
    assert all(one.values == {"x": "x"} for one in both)


def test_a_key_that_somebody_is_at_waits_and_gathers() -> None:
    requests = [request("a", ["a"], key="busy"), request("b", ["b"]), request("c", ["c"], key="busy")]
    lane = waiting(*requests)
    lane._busy.add("busy")
    assert lane.choose() == [requests[1]]
    lane._busy.clear()
    assert lane.choose() == [requests[0], requests[2]]


def test_work_is_spread_over_the_cores_only_where_nobody_else_wants_them() -> None:
    one = request("a", ["aa", "bb"], cores=2)
    assert len(list(one.batches_of(one.rows))) == 2
    assert len(list(one.batches_of(one.rows, spread=False))) == 1


def test_equal_texts_of_all_visitors_are_encoded_once() -> None:
    backbone = tiny_backbone()
    items = [(text,) for text in SENTENCES]
    with encoded_rows(backbone) as rows:
        for_visitors([lambda: backbone.encode(items, pooling="mean")] * 6)
    assert sum(rows) == len(SENTENCES)


def test_requests_of_one_key_share_a_turn() -> None:
    requests = [request(name, [f"text {name}"]) for name in "abc"]
    other = request("d", ["text d"], key="other")
    assert waiting(*requests, other).choose() == requests


def test_a_turn_has_room_for_a_few_batches() -> None:
    requests = [request(str(number), ["x" * 10]) for number in range(LARGE + 3)]
    assert waiting(*requests).choose() == requests[:LARGE]


def test_a_request_that_is_done_is_forgotten_at_once() -> None:
    done = request()
    for _ in encode_here(done):
        pass
    known = weakref.ref(done)
    gc.disable()
    try:
        del done
        assert known() is None, "what refers to itself stays, with its vectors, until Python looks for it"
    finally:
        gc.enable()


def test_visitors_take_turns() -> None:
    greedy, modest = [request("greedy", [text], key=text) for text in "abc"], request("modest", ["d"], key="d")
    lane = waiting(*greedy, modest)
    names = []
    for _ in range(4):
        (chosen,) = lane.choose()
        names.append(chosen.visitor.name)
        lane._waiting.remove(chosen)
    assert names == ["greedy", "modest", "greedy", "greedy"]


@pytest.mark.parametrize("patient", [False, True], ids=["large", "asked for by nobody yet"])
def test_a_small_request_is_answered_while_a_large_batch_is_being_computed(patient: bool) -> None:
    gathering, entered, gate = Gathering(), threading.Event(), threading.Event()

    def slow(rows: list[str]) -> list[str]:
        entered.set()
        assert gate.wait(10)
        return rows

    texts = ["x"] if patient else [f"{number:010}" for number in range(LARGE + 1)]
    large = request("large", texts, embed=slow, patient=patient)
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(list, gathering.encode(large))
        assert entered.wait(10)
        small = request("small")
        list(gathering.encode(small))
        assert small.done
        assert not large.values
        gate.set()
        end.result(10)
    assert large.done


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets the niceness of a thread")
def test_cores_step_back_for_large_requests_alone() -> None:
    nice = [crew(2, back=back).submit(os.getpriority, os.PRIO_PROCESS, 0).result(10) for back in (False, True)]
    here = os.getpriority(os.PRIO_PROCESS, 0)
    assert nice == [here, here + NICENESS]


def test_large_requests_of_two_visitors_alternate_batch_by_batch() -> None:
    seen: list[str] = []

    def embed(rows: list[str]) -> list[str]:
        seen.append(rows[0][0])
        return rows

    both = [request(name, [f"{name}{number:09}" for number in range(6)], embed=embed) for name in "ab"]
    lane = waiting(*both)
    for _ in range(12):
        lane._run(lane.choose())
    assert all(one.done for one in both)
    assert seen == ["a", "b"] * 6


def test_who_leaves_stops_waiting_and_the_others_get_their_answers() -> None:
    gathering, entered, gate = Gathering(), threading.Event(), threading.Event()

    def slow(rows: list[str]) -> list[str]:
        entered.set()
        gate.wait(10)
        return rows

    def gone() -> None:
        raise InterruptedError

    first, leaving, staying = request("a", embed=slow), request("b", key="other"), request("c", key="other")
    leaving.visitor.check = gone
    with ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(list, gathering.encode(one)) for one in (first, staying)]
        assert entered.wait(10)
        with pytest.raises(InterruptedError):
            list(gathering.encode(leaving))
        assert leaving not in gathering.small._waiting
        gate.set()
        for end in ends:
            end.result(10)
    assert first.done
    assert staying.done
    assert not leaving.values


def test_one_failing_request_does_not_take_the_others_along() -> None:
    def embed(rows: list[str]) -> list[str]:
        if "bad" in rows:
            raise ValueError("bad")
        return rows

    good, bad = request("a", ["good"], embed=embed), request("b", ["bad"], embed=embed)
    Lane()._run([good, bad])
    assert good.values == {"good": "good"}
    assert isinstance(bad.error, ValueError)


def test_a_visitor_may_not_ask_for_more_tokens_than_allowed() -> None:
    visitor = Visitor("a", max_tokens=5)
    visitor.charge(3)
    with pytest.raises(DataError, match="at most 5"):
        visitor.charge(3)
