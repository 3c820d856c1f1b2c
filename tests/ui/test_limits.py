"""Who asks too much is told so at the door, and what nobody waits for any more ends, through a real server."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr
import httpx
import pytest
from gradio.state_holder import SessionState

from condviz.encoder.visitors import VISITOR
from condviz.ui import limits
from condviz.ui.events import connect, publish
from condviz.ui.pool import Work
from condviz.ui.server import middleware


class Count:
    """An endpoint and a button, both of which count until they are stopped."""

    def __init__(self) -> None:
        self.begun, self.ended, self.never = (threading.Event() for _ in range(3))
        with gr.Blocks() as self.page:
            publish(self.endpoint, "count")
            button, notice = gr.Button(), gr.HTML()
            connect(button.click, self.handler, None, [], notice=notice, heavy=True)
        self.page.queue()
        self.button = next(id for id, function in self.page.fns.items() if (button._id, "click") in function.targets)
        self.asked = next(id for id, function in self.page.fns.items() if function.api_name == "count")

    def work(self) -> None:
        try:
            while True:
                self.begun.set()
                self.never.wait(0.05)
                VISITOR.get().check()
        finally:
            self.ended.set()

    def endpoint(self) -> None:
        self.work()

    def handler(self) -> Iterator[dict]:
        for _ in Work(lambda progress: self.work()).steps():
            yield {}


@contextmanager
def served(page: gr.Blocks) -> Iterator[str]:
    host = "127.0.0.1"
    options = {"server_name": host, "app_kwargs": {"middleware": middleware(host)}, "ssr_mode": False}
    _, address, _ = page.launch(prevent_thread_lock=True, quiet=True, **options)
    try:
        yield f"{address}gradio_api"
    finally:
        page.close()


@pytest.mark.parametrize("by_button", [False, True], ids=["endpoint", "button"])
def test_work_ends_when_its_client_has_gone(by_button: bool) -> None:
    count = Count()
    event = count.button if by_button else count.asked
    with served(count.page) as api, httpx.Client(timeout=30) as client:
        client.post(f"{api}/queue/join", json={"data": [], "fn_index": event, "session_hash": "a"}).raise_for_status()
        with client.stream("GET", f"{api}/queue/data", params={"session_hash": "a"}) as stream:
            lines = stream.iter_lines()  # httpx closes the stream with its iterator
            next(lines)
            assert count.begun.wait(30)
            assert not count.ended.is_set()
        assert count.ended.wait(30)


def test_work_ends_when_its_client_never_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Count()
    with served(count.page) as api, httpx.Client(timeout=30) as client:
        monkeypatch.setattr("condviz.ui.events.LISTEN_SECONDS", 0.0)
        asked = client.post(f"{api}/call/count", json={"data": []}).raise_for_status().json()["event_id"]
        assert count.ended.wait(30)
        assert "Nobody read the answer" in client.get(f"{api}/call/count/{asked}").text


def test_a_visitor_with_too_many_requests_is_told_the_limit_and_others_are_not() -> None:
    count = Count()
    with served(count.page) as api, httpx.Client(timeout=30) as client:

        def join(visitor: str) -> httpx.Response:
            # Of a button the first run would end with the second press.
            body = {"data": [], "fn_index": count.asked, "session_hash": visitor}
            return client.post(f"{api}/queue/join", json=body)

        assert {join("greedy").status_code for _ in range(limits.PER_VISITOR)} == {200}
        refused = join("greedy")
        assert refused.status_code == 429
        assert f"at most {limits.PER_VISITOR}" in refused.json()["error"]
        assert join("modest").status_code == 200


@pytest.mark.parametrize(("limit", "named"), [("PER_ADDRESS", "Your address has 1"), ("QUEUE", "together have 0")])
def test_an_address_and_all_visitors_together_have_limits_too(
    monkeypatch: pytest.MonkeyPatch, limit: str, named: str
) -> None:
    count = Count()
    with served(count.page) as api, httpx.Client(timeout=30) as client:
        bodies = ({"data": [], "fn_index": count.button, "session_hash": visitor} for visitor in "ab")
        client.post(f"{api}/queue/join", json=next(bodies)).raise_for_status()
        assert count.begun.wait(30)
        monkeypatch.setattr(limits, limit, 0 if limit == "QUEUE" else 1)
        refused = client.post(f"{api}/queue/join", json=next(bodies))
        assert refused.status_code == 429
        assert named in refused.json()["error"]


def test_sessions_keep_no_description_of_the_page() -> None:
    with gr.Blocks() as page:
        gr.Textbox("long " * 1000)
    described = page.get_config_file()
    limits.keep_sessions_small(page)
    assert not any(SessionState(page).config_values.values())
    assert page.get_config_file()["components"] == described["components"]


def test_the_newest_values_stay_whole_when_many_threads_use_them() -> None:
    kept, failed = limits.Newest(10), []

    def use(first: int) -> None:
        try:
            for key in range(first, first + 5_000):
                kept[key % 40] = key
                kept.get((key * 7) % 40)
        except Exception as error:
            failed.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=use, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(usual)
    assert not failed
    assert (len(kept), kept.currsize) == (10, 10)


def test_a_count_ends_with_its_window_however_often_it_is_used() -> None:
    now = 0.0
    counts = limits.Counts(60, lambda: now)
    for now in (0.0, 30.0, 59.0):  # noqa: B007 - the clock
        counts["a"] += 1
    assert (counts["a"], counts["b"]) == (3, 0)
    now = 60.0
    assert counts["a"] == 0
