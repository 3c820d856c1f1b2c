"""Work in a thread: told, finished, failed, stopped."""

from __future__ import annotations

import threading

import pytest

from condviz.ui.background import Background, Once, percent


def test_steps_end_with_the_result() -> None:
    go = threading.Event()

    def work(progress: object) -> int:
        progress(1, 4)
        go.wait(10)
        return 7

    background = Background(work)
    steps = background.steps()
    assert [next(steps), next(steps)] == [(1, 4)] * 2  # without news, too: a handler is cancelled where it yields
    go.set()
    assert list(steps) == []
    assert background.result() == 7


def test_errors_reach_the_handler() -> None:
    def work(progress: object) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Background(work).result()


def test_leaving_the_steps_stops_the_work() -> None:
    ended = threading.Event()

    def work(progress: object) -> None:
        done = 0
        try:
            while True:
                done += 1
                progress(done, 0)
        finally:
            ended.set()

    steps = Background(work).steps()
    next(steps)
    steps.close()
    assert ended.wait(10)


def test_percent() -> None:
    assert percent(0, 0) == ""
    assert percent(1, 3) == "33 %"


def test_work_is_done_once_and_after_what_it_waits_for() -> None:
    go, done = threading.Event(), []
    first = threading.Thread(target=lambda: (go.wait(10), done.append("first")))
    first.start()
    once = Once(lambda: done.append("once"))
    thread = once.start(after=first)
    assert once.start() is thread
    go.set()
    thread.join(10)
    assert done == ["first", "once"]
