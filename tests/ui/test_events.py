"""Errors of handlers: each reaches the notice of its tab, and gradio takes what the handler answers."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.state_holder import SessionState

from condviz.errors import DataError
from condviz.ui import events
from condviz.ui.app import TABS, Settings, build_app
from condviz.ui.pool import ModelPool
from tests.pages import plant, run_alone


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Callable, list]]:
    """Return every handler of the page, made to fail: (name, event function, outputs)."""
    guard, found = events._guard, []

    monkeypatch.setattr(events, "_guard", lambda handler, *told, **options: guard(plant(handler), *told, **options))
    page = build_app(Settings(preload=False))
    for function in page.fns.values():
        if hasattr(getattr(function.fn, "__wrapped__", None), "planted"):
            found.append((function.fn.__qualname__, function.fn, function.outputs))
    return found


def test_an_error_in_any_handler_reaches_its_notice(failing: list[tuple[str, Callable, list]]) -> None:
    assert len(failing) > 5 * len(TABS)
    for name, function, outputs in failing:
        steps = list(function())
        assert len(steps) == 1, name
        assert set(steps[0]) <= set(outputs), f"{name} answers to a component that is not among its outputs"
        assert any("planted in" in str(value) for value in steps[0].values()), name


def test_a_run_leaves_what_a_later_one_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "visitor_name", lambda: "somebody")
    monkeypatch.setattr(events, "visitors_before", lambda: 0)
    with gr.Blocks():
        notice, result, other = gr.HTML(), gr.HTML(), gr.HTML()

    def compare(text: str, *, fails: bool = False) -> Iterator[dict]:
        yield {result: text}
        if fails:
            raise DataError("wrong")
        yield {result: f"{text}, words", other: text}

    guard = events._guard(compare, notice, {})
    again = events._guard(lambda *args, **options: compare(*args, **options), notice, {})
    first, second = guard("one"), again("two", fails=True)
    assert [next(first), next(second)] == [{notice: "", result: "one"}, {notice: "", result: "two"}]
    (error,) = second
    assert "wrong" in error[notice]
    assert list(first) == [{other: "one"}], "neither the result of the second nor its error is gone"
    late, newer = guard("three", fails=True), again("four")
    next(late), list(newer)
    assert "wrong" in next(late)[notice], "an error is told in any case"
    guard = events._guard(lambda text: iter([{result: text}, {result: text}]), notice, {})
    early = guard("five")
    next(early), list(events._guard(compare, notice, {})("six", fails=True))
    assert next(early) == {notice: gr.skip()}, "gradio takes an empty answer for an error"
    asked, drawn = guard("seven"), events._guard(lambda: {result: "stored"}, notice, {}, ordered=False)
    next(asked), list(drawn())
    assert next(asked)[result] == "seven", "what the page asks by itself comes later, and is of what was there before"


def test_a_handler_that_is_called_again_ends_its_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A menu of gradio fires twice: the first run failed in gradio, which hid the Stop button of the second."""
    monkeypatch.setattr(events, "visitor_name", lambda: "somebody else")
    monkeypatch.setattr(events, "visitors_before", lambda: 0)
    with gr.Blocks():
        notice, result, stop = gr.HTML(), gr.HTML(), gr.Button()

    def search(text: str) -> Iterator[dict]:
        if text == "slow":
            next(guard("three"))
        yield {result: text, stop: gr.update(visible=True)}
        yield {}
        yield {result: f"{text}, words"}

    guard = events._guard(search, notice, {stop: gr.update(visible=False)})
    first, second = guard("one"), guard("two")
    next(first), next(second)
    assert list(first) == [{notice: gr.skip()}], "nothing of it changes the page, and its work is not done twice"
    steps = list(second)
    assert all(steps), "gradio takes {} for a missing answer"
    assert steps[-1][stop] == gr.update(visible=False)
    for answer in (guard("slow"), events._guard(lambda: iter(()), notice, {})()):
        assert list(answer) == [{notice: gr.skip()}], "gradio empties all outputs of an answer without a step"


def test_a_menu_asks_only_where_it_holds_another_value() -> None:
    """A menu of gradio fires when it loses the focus, too: a page was computed anew because somebody looked at it."""
    with events.Pages() as pages:
        menu, other, result = gr.Dropdown(["a", "b"], value="a"), gr.Button(), gr.HTML()
        gr.on([menu.input, other.click], lambda value: value, menu, result)
        other.click(lambda: {menu: gr.update(value="a", label="Set back")}, None, [menu])
    session = SessionState(pages)
    answers, sets_back = pages.fns.values()

    def ask(trigger: gr.Dropdown | gr.Button, value: str) -> Any:
        # What has been changed is another component for the visitor, and fires as such.
        event = gr.EventData(session.blocks_config.blocks.get(trigger._id, trigger), {})
        (sent,) = run_alone(pages.process_api(answers, [value], session, event_data=event))["data"]
        return None if isinstance(sent, dict) else sent

    assert ask(menu, "a") is None, "as the page was built"
    assert [ask(menu, "b"), ask(menu, "b")] == ["b", None]
    assert ask(other, "b") == "b", "a button always asks"
    run_alone(pages.process_api(sets_back, [], session))
    assert [ask(menu, "a"), ask(menu, "b")] == [None, "b"], "the page knows what the server has set"
    asking = session.blocks_config.blocks[menu._id]
    run_alone(pages.process_api(sets_back, [], session))
    assert ask(asking, "a") is None, "it asked before it was set again, and is heard afterwards"


def sent(blocks: gr.Blocks, steps: list[list[Any]]) -> list[list[Any]]:
    """Return what a browser holds for each step of an answer when all have come before the first is drawn.

    The last is sent again at the end. As gradio's client does, it edits the values before in place.
    """
    outputs, values, messages = SimpleNamespace(outputs=steps[0]), [], []
    for step in [*steps, steps[-1]]:
        final = len(messages) == len(steps)
        data = blocks.handle_streaming_diffs(outputs, copy.deepcopy(step), "session", "run", final)
        values = (
            data
            if final or not messages
            else [functools.reduce(_edit, edits, old) for old, edits in zip(values, data, strict=True)]
        )
        messages.append(values)
    return messages


def _edit(value: Any, edit: tuple[str, list[str], Any]) -> Any:
    action, path, new = edit
    if not path:
        return value + new if action == "append" else new
    place = functools.reduce(lambda part, key: part[key], path[:-1], value)
    if action == "delete":
        del place[path[-1]]
    else:
        place[path[-1]] = new
    return value


STEPS = [[{"__type__": "update", "open": False}, "a"], [{"__type__": "update"}, "ab"]]


def test_a_change_of_a_component_is_not_lost_to_the_step_behind_it() -> None:
    with events.Pages() as pages:
        assert sent(pages, STEPS)[:2] == STEPS
    assert not pages.pending_diff_streams


def test_the_last_step_is_sent_once() -> None:
    with events.Pages() as pages:
        assert sent(pages, STEPS)[-1] == [gr.skip(), gr.skip()]


def test_gradio_still_loses_such_a_change() -> None:
    """Else `Pages` can go."""
    with gr.Blocks() as blocks:
        assert sent(blocks, STEPS)[0] != STEPS[0]
        assert sent(blocks, STEPS)[-1] == STEPS[-1]


def test_sections_fold_before_the_result_that_opens_them_again() -> None:
    with gr.Blocks():
        section, text, notice = gr.Accordion(), gr.Textbox(), gr.HTML()
        button = gr.Button()
        run = events.connect(
            button.click,
            lambda: {text: "found", section: gr.Accordion(open=False)},
            None,
            [text, section],
            notice=notice,
        )
    folded, result = run.fn()
    assert set(folded) == {section}
    assert result == {text: "found", notice: ""}


def test_the_stop_button_is_gone_when_a_run_has_ended() -> None:
    with gr.Blocks():
        text, notice, stop, button = gr.Textbox(), gr.HTML(), gr.Button(visible=False), gr.Button()

        def handler() -> Iterator[dict]:
            yield {stop: gr.update(visible=True)}
            yield {text: "found"}

        run = events.connect(button.click, handler, None, [text], notice=notice, stop=stop)
    *_, last = run.fn()
    assert last == {notice: gr.skip(), stop: gr.update(visible=False)}


def test_what_folds_sections_answers_in_steps_which_only_the_queue_sends() -> None:
    functions = build_app(Settings(preload=False)).fns.values()
    folding = [function for function in functions if any(isinstance(part, gr.Accordion) for part in function.outputs)]
    assert folding
    assert all(function.queue for function in folding)


def test_unexpected_errors_are_logged_under_a_number(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        shown = events.explain(ZeroDivisionError("secret /home/path"))
    assert "secret" not in shown
    assert caplog.messages[0].split()[-1] in shown


def test_an_endpoint_answers_with_the_message_of_the_error() -> None:
    def endpoint(text: str) -> dict:
        raise DataError(f"{text} cannot be used. Choose another.")

    with gr.Blocks() as page:
        events.publish(endpoint, "endpoint")
    (function,) = page.fns.values()
    with pytest.raises(gr.Error, match="x cannot be used"):
        run_alone(function.fn("x"))


def test_the_pool_of_the_page_is_that_of_its_settings() -> None:
    pool = ModelPool(("minilm",))
    assert build_app(Settings(pool=lambda: pool, tabs=TABS[:1], preload=False)).condviz_pool is pool
