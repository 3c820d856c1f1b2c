"""States of the pool with stand-in models."""

from __future__ import annotations

import gc
import itertools
import os
import queue
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest

from condviz.encoder import BASE_BACKBONE, DEFAULT_BACKBONE, pretrained
from condviz.errors import CheckpointError, CondvizError, ConfigError, UnknownModelError
from condviz.evaluation.scoreboard import efforts
from condviz.models import registry
from condviz.models.registry import describe
from condviz.paths import CHECKPOINTS
from condviz.training.jobs import Jobs
from condviz.types import ModelInfo
from condviz.ui.pool import (
    EAGER_SECONDS,
    LARGE_ROWS,
    NICENESS,
    OWNER,
    LoadState,
    ModelPool,
    Stopped,
    Work,
    _changed,
    load_served,
    places_before,
)
from condviz.ui.speed import VARIABLE, Budget


def test_a_model_is_loaded_once_however_many_ask() -> None:
    calls, gate = [], threading.Event()

    def load(name: str) -> object:
        calls.append(name)
        gate.wait(5)
        return object()

    pool = ModelPool(["a"], load)
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(pool.get("a"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(5)
    assert calls == ["a"]
    assert len(set(map(id, got))) == 1


def test_states_go_from_waiting_over_loading_to_ready() -> None:
    seen = []
    pool = ModelPool(["a"], lambda name: seen.append(pool.states()[name].phase))
    assert pool.states()["a"].phase == "waiting"
    assert not pool.settled
    pool.get("a")
    assert seen == ["loading"]
    assert pool.states()["a"].phase == "ready"
    assert pool.settled


def test_a_failing_model_leaves_the_others_alive_and_is_tried_again() -> None:
    broken = {"b"}

    def load(name: str) -> str:
        if name in broken:
            raise CheckpointError(f"{CHECKPOINTS}/broken/model.safetensors is truncated.")
        return name.upper()

    pool = ModelPool(["a", "b", "c"], load)
    pool.preload().join(10)
    assert [state.phase for state in pool.states().values()] == ["ready", "failed", "ready"]
    assert pool.states()["b"].reason == "broken/model.safetensors is truncated."
    with pytest.raises(CheckpointError, match="truncated"):
        pool.get("b")
    broken.clear()
    assert pool.get("b") == "B"
    assert pool.states()["b"].phase == "ready"


def test_a_model_without_its_encoder_is_listed_and_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"csr"}

    def described(name: str) -> ModelInfo:
        return replace(describe(name), missing="make base" if name in absent else "")

    monkeypatch.setattr(registry, "describe", described)
    loaded: list[str] = []
    pool = ModelPool(["csr", "bi-encoder"], lambda name: loaded.append(name) or SimpleNamespace(info=describe(name)))
    assert [info.name for info in pool.infos()] == ["csr", "bi-encoder"]
    assert [name for _, name in pool.choices()] == ["bi-encoder"]
    assert pool.default == "bi-encoder"
    pool.preload().join(10)
    assert pool.settled
    assert loaded == ["bi-encoder"]
    assert pool.states()["csr"] == LoadState("absent", "make base")
    with pytest.raises(CheckpointError, match="make base"):
        pool.get("csr")
    absent.clear()  # it was installed, or fetched for another model
    assert pool.get("csr").info.name == "csr"
    assert "csr" in [name for _, name in pool.choices()]


@pytest.mark.parametrize(
    ("device", "named", "options"),
    [
        ("cpu", {}, {"backend": "onnx", "precision": "float32"}),
        ("cuda", {}, {}),
        ("cpu", {"CONDVIZ_BACKEND": "torch"}, {}),
        ("cpu", {"CONDVIZ_PRECISION": "bfloat16"}, {}),
    ],
)
def test_a_served_page_computes_in_float32_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch, device: str, named: dict[str, str], options: dict[str, str]
) -> None:
    monkeypatch.setattr(pretrained, "choose_device", lambda: device)
    monkeypatch.setattr(pretrained, "faster_in_float32", lambda: "onnx")
    for variable in ("CONDVIZ_BACKEND", "CONDVIZ_PRECISION"):
        monkeypatch.setenv(variable, named.get(variable, ""))
    monkeypatch.setattr(registry, "load", lambda name, **options: (name, options))
    assert load_served("csr") == ("csr", options)


def test_an_unexpected_error_does_not_stop_the_thread() -> None:
    def load(name: str) -> str:
        if name == "a":
            raise RuntimeError("secret detail")
        return name

    pool = ModelPool(["a", "b"], load)
    pool.preload().join(10)
    assert pool.states()["b"].phase == "ready"
    assert "secret" not in pool.states()["a"].reason
    with pytest.raises(CondvizError, match="could not be loaded"):
        pool.get("a")


def test_preloading_begins_with_the_default_and_starts_once() -> None:
    order: list[str] = []
    pool = ModelPool(["a", "b", "c"], order.append)
    pool.default = "c"
    thread = pool.preload()
    assert pool.preload() is thread
    thread.join(10)
    assert order == ["c", "a", "b"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownModelError, match="a, b"):
        ModelPool(["a", "b"], str).get("nobody")


def test_models_of_other_visitors_are_in_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ModelPool(["minilm", "bi-encoder"])
    others = {"mine": set(), "yours": {"bi-encoder"}}
    monkeypatch.setattr(Jobs, "models_of_others", lambda self, token: others[token])
    seen = {}
    for visitor in others:
        OWNER.set(visitor)
        seen[visitor] = [name for _, name in pool.choices()]
    OWNER.set("yours")
    with pytest.raises(UnknownModelError) as told:
        pool.get("nobody")
    OWNER.set("")
    assert (set(seen["mine"]), seen["yours"]) == ({"minilm", "bi-encoder"}, ["minilm"])
    assert "bi-encoder" not in str(told.value)


def test_a_model_that_has_come_since_is_the_last() -> None:
    pool = ModelPool(["a"], lambda name: name.upper())
    pool.add("b")
    pool.add("b")
    assert pool.names == ("a", "b")
    assert pool.states()["b"].phase == "waiting"
    assert not pool.settled
    assert pool.get("b") == "B"


def test_another_model_of_a_name_is_another_version() -> None:
    pool = ModelPool(["a"], str)
    pool.remove("a")
    pool.add("a")
    assert (pool.version("a"), pool.version("b")) == (1, 0)


def test_models_are_in_the_order_of_their_last_use() -> None:
    pool = ModelPool(["a", "b", "c"], str)
    for name in ("b", "a"):
        pool.run(len, name).result()
    assert pool.idle_longest(pool.names) == ["c", "b", "a"]


def test_a_model_that_is_removed_while_it_loads_leaves_nothing_behind() -> None:
    pool = ModelPool(["a"], lambda name: pool.remove(name) or name.upper())
    pool.add("b")
    for name in ("a", "b"):
        with pytest.raises(UnknownModelError, match=name):
            pool.get(name)
    assert (pool.names, pool.states(), pool.loaded("b"), pool.settled) == ((), {}, None, True)
    pool.add("b")
    assert pool.names == ("b",)


def test_a_model_that_is_removed_while_it_is_described_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(name: str) -> None:
        pool.remove(name)
        raise CheckpointError("The folder is gone.")

    pool = ModelPool(["a"], str)
    monkeypatch.setattr(registry, "describe", describe)
    assert pool.infos() == []
    assert pool.states() == {}


def test_only_models_of_the_pool_are_ever_loaded() -> None:
    loaded = []
    pool = ModelPool(["a"], lambda name: loaded.append(name) or name)
    for name in ("b", "../a", "/etc/passwd", "owner/model", "", None, 3):
        with pytest.raises(UnknownModelError):
            pool.run(lambda model: model, [name])
    assert loaded == []
    assert pool.run(lambda model: model, "a").result() == "a"


def test_work_that_nobody_waits_for_ends_at_its_next_report() -> None:
    started, ended = threading.Event(), threading.Event()

    def count(model: str, *, progress: Callable[[int, int], None]) -> None:
        try:
            for step in itertools.count():
                started.set()
                progress(step, 10**9)
        finally:
            ended.set()

    steps = ModelPool(["a"], str).run(count, "a").steps()
    next(steps)
    assert started.is_set()
    steps.close()
    assert ended.wait(10)


def test_an_error_in_work_reaches_whoever_asks_for_the_result() -> None:
    def fail(model: str) -> None:
        raise CondvizError("no")

    work = ModelPool(["a"], str).run(fail, "a")
    assert list(work.steps()) == []
    with pytest.raises(CondvizError, match="no"):
        work.result()


def test_the_default_is_the_best_trained_encoder() -> None:
    pool = ModelPool()
    assert pool.info(pool.default).trained
    assert pool.info(pool.default).kind != "cross"
    assert pool.choices()[0][1] == pool.default


def test_a_better_model_on_a_larger_encoder_stands_behind_the_fast_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "describe", lambda name: replace(describe(name), encoder=encoders[name], missing=""))
    encoders = {"case": DEFAULT_BACKBONE, "bi-encoder": DEFAULT_BACKBONE, "bi-encoder-csts": BASE_BACKBONE}
    pool = ModelPool(list(encoders))
    assert pool.default == "bi-encoder"
    (fast, first), (best, second), _ = pool.choices()
    assert (first, second) == ("bi-encoder", "bi-encoder-csts")
    assert "fast" in fast
    assert "best" in best or "strong" in best  # others may be as good
    assert "slow" not in best  # as much work


def base_pool(load: Callable[[str], object] = str) -> ModelPool:
    """A pool with a fast model and the best, both of which are here."""
    pool = ModelPool(["bi-encoder-csts", "bi-encoder-mpnet"], load)
    pool._infos = {name: replace(describe(name), missing="") for name in pool.names}
    return pool


@pytest.mark.parametrize(
    ("told", "seconds", "lead"),
    [
        ("", None, "bi-encoder-csts"), ("", 0.01, "bi-encoder-mpnet"), ("auto", 10.0, "bi-encoder-csts"),
        ("fast", 0.01, "bi-encoder-csts"), ("best", None, "bi-encoder-mpnet"), ("best", 10.0, "bi-encoder-mpnet"),
    ],
)  # fmt: skip
def test_a_view_starts_with_the_best_that_answers_in_time(
    monkeypatch: pytest.MonkeyPatch, told: str, seconds: float | None, lead: str
) -> None:
    monkeypatch.setenv(VARIABLE, told)
    pool = base_pool()
    pool._took = {"pair": seconds, "many": 10.0} if seconds else {}
    assert pool.choose(Budget(1.0)) == lead
    assert pool.choices(budget=Budget(1.0))[0][1] == lead
    assert pool.choices()[0][1] == pool.default == "bi-encoder-csts"  # what has no budget


def test_a_budget_counts_how_much_is_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "auto")
    pool, ratios = base_pool(), efforts()
    slower = ratios["bi-encoder-mpnet"]["many"] / ratios["bi-encoder-csts"]["many"]
    pool._took = {"pair": 10.0, "many": 0.1}
    for share, lead in ((0.99, "bi-encoder-mpnet"), (1.01, "bi-encoder-csts")):
        assert pool.choose(Budget(0.1 * slower, "many", share)) == lead


def test_loading_measures_the_default_once_and_then_tells_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "auto")

    class Model:
        """Stands in for what is loaded, and counts what it is asked."""

        asked: ClassVar[Counter[tuple[str, ...]]] = Counter()

        def __init__(self, name: str) -> None:
            self.info = replace(describe(name), missing="")

        def score(self, first: list[str], second: list[str], conditions: list[str]) -> None:
            self.asked.update(zip(first, second, conditions, strict=True))

    loaded, told = [], []
    pool = base_pool(lambda name: loaded.append(name) or Model(name))
    pool.when_measured = lambda: told.append((tuple(loaded), pool.choose(Budget(60.0))))
    pool.preload().join(30)
    assert told == [(("bi-encoder-csts",), "bi-encoder-mpnet")]
    assert loaded == ["bi-encoder-csts", "bi-encoder-mpnet"]
    assert set(Model.asked.values()) == {1}  # a text that comes twice is in a cache


def test_a_preference_that_is_none_is_an_error_that_names_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "quickest")
    with pytest.raises(ConfigError, match=r"quickest.*auto, best, fast"):
        base_pool().choose(Budget(1.0))


def test_the_menu_tells_briefly_that_a_better_model_is_slow() -> None:
    (_, first), (best, second) = base_pool().choices()
    assert (first, second) == ("bi-encoder-csts", "bi-encoder-mpnet")
    assert "slow" in best
    assert len(best) <= len("Bi-encoder on MPNet (strong, slow)"), "what fits a narrow form"


def test_large_work_is_done_one_after_the_other_and_its_place_is_known() -> None:
    pool, gates, entered = ModelPool(["a"], str), [threading.Event() for _ in "abc"], queue.Queue()

    def draw(model: str, number: int) -> int:
        entered.put(number)
        gates[number].wait(10)
        return number

    works = [pool.run(draw, "a", number, rows=LARGE_ROWS + 1) for number in range(3)]
    small = pool.run(draw, "a", 0)
    assert {entered.get(timeout=10), entered.get(timeout=10)} == {0}, "small work does not wait for large"
    assert [places_before(work) for work in works] == [0, 1, 2]
    works[1].stop()
    gates[0].set()
    assert entered.get(timeout=10) == 2
    gates[2].set()
    assert [works[0].result(), works[2].result(), small.result()] == [0, 2, 0]
    with pytest.raises(Stopped):
        works[1].result()


def test_threads_hand_the_interpreter_on_early_while_large_work_is_done() -> None:
    usual, gate = sys.getswitchinterval(), threading.Event()
    work = ModelPool(["a"], str).run(lambda model: gate.wait(10), "a", rows=LARGE_ROWS + 1)
    assert sys.getswitchinterval() == pytest.approx(EAGER_SECONDS)
    gate.set()
    assert work.result()
    with _changed:
        assert _changed.wait_for(lambda: sys.getswitchinterval() == usual, timeout=10)


def test_work_that_has_ended_is_forgotten_at_once() -> None:
    gate = threading.Event()
    work = ModelPool(["a"], str).run(lambda model: gate.wait(10), "a")
    with _changed:
        threads = [thread for thread in threading.enumerate() if thread.name == "condviz-work"]
    gate.set()
    assert work.result()
    for thread in threads:
        thread.join(10)
    known = weakref.ref(work)
    gc.disable()
    try:
        del work, threads, thread
        assert known() is None
    finally:
        gc.enable()


def test_work_that_other_work_has_started_ends_with_it() -> None:
    pool, begun = ModelPool(["a"], str), threading.Event()

    def count(model: str, *, progress: Callable[[int, int], None]) -> None:
        for step in itertools.count():
            begun.set()
            progress(step, 10**9)

    outer = Work(lambda progress: pool.run(count, "a").result())
    assert begun.wait(10)
    outer.stop()
    with pytest.raises(Stopped):
        outer.result()


@pytest.mark.skipif(sys.platform != "linux", reason="niceness of a thread is Linux's")
def test_large_work_steps_back_alone() -> None:
    def niceness(_: object = None) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()
    assert Work(niceness, large=True).result() == min(19, before + NICENESS)
    assert Work(niceness).result() == niceness() == before
