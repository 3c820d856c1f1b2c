"""The Learn tab, driven through its handlers: every step of every lesson is shown and computed, over tiny models."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from markupsafe import Markup, escape

from condviz.data.lessons import Lesson, load_lessons
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.models import registry
from condviz.ui.learn.figures import make_figure
from condviz.ui.learn.tab import TAB, LearnTab, step_link, to_html
from condviz.ui.pool import ModelPool
from condviz.ui.state import read_link
from tests.pages import build_view
from tests.tiny import tiny_backbone, tiny_model

LESSONS = load_lessons()
STEPS = [(lesson, number) for lesson in LESSONS for number in range(1, len(lesson.steps) + 1)]


@pytest.fixture(scope="module")
def tab() -> LearnTab:
    backbone = tiny_backbone()

    def load(name: str) -> ConditionalScorer:
        info = registry.describe(name)
        model = tiny_model(info.method, backbone=backbone, **({"rank": 8} if name == "hyper-cl" else {}))
        model.info = replace(info, revision=model.fingerprint[:12])
        return model

    return build_view(TAB, ModelPool(load=load))


def test_a_lesson_ends_with_the_next_one_and_the_last_with_all(tab: LearnTab) -> None:
    for lesson, other in itertools.zip_longest(LESSONS, LESSONS[1:]):
        ended = tab.show({"lesson": [lesson.id], "step": [str(len(lesson.steps) + 1)]})[tab.foot]
        assert f'href="{escape(step_link(other, 1)) if other else "learn"}" data-go data-next' in ended


def event(query: str, *, quiet: bool = False) -> Any:
    return SimpleNamespace(query=query, quiet=quiet)


def show(tab: LearnTab, query: str) -> dict:
    return tab.show(read_link(query)[1])


@pytest.mark.parametrize(("lesson", "step"), STEPS, ids=lambda value: getattr(value, "id", value))
def test_every_step_shows_a_stored_picture_at_once_and_a_live_one_then(
    tab: LearnTab, lesson: Lesson, step: int
) -> None:
    tab.live.clear()
    link = step_link(lesson, step)
    shown = show(tab, link)
    assert f'data-step="{step}"' in shown[tab.top]
    figure = make_figure(lesson.steps[step - 1])
    if figure is None or not figure.models(tab.pool.default):
        assert 'data-ready="true"' in shown[tab.picture]
        return
    assert figure.key in tab.stored, "run: python -m condviz lessons --store"
    assert 'data-asks="true"' in shown[tab.picture]
    live = [*tab.change(event(link, quiet=True))][-1]
    assert 'data-ready="true"' in live[tab.picture]
    assert 'data-ready="true"' in show(tab, link)[tab.picture]


def test_what_is_stored_was_computed_by_the_model_that_leads_the_page(tab: LearnTab) -> None:
    named = {found["model"] for found in tab.stored.values() if "model" in found}
    assert named == {registry.describe(tab.pool.default).title}, "run: python -m condviz lessons --store"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)
def test_every_lesson_has_questions_a_sheet_and_a_page_for_teachers(tab: LearnTab, lesson: Lesson) -> None:
    assert all(step.teacher for step in lesson.steps)
    assert len(lesson.questions) == 3
    assert 5 <= len(lesson.steps) + 1 <= 8
    assert all(step.teacher for step in lesson.steps)
    last = show(tab, step_link(lesson, 99))
    assert last[tab.top].count("<details>") == 2 * len(lesson.questions)
    teacher, sheet = (show(tab, f"t=learn&lesson={lesson.id}&view={view}")[tab.top] for view in ("teacher", "sheet"))
    assert all(step_link(lesson, number).replace("&", "&amp;") in teacher for number in range(1, len(lesson.steps) + 2))
    assert to_html(lesson.questions[0].answer) in teacher
    assert to_html(lesson.questions[0].answer) not in sheet
    for after in (to_html(step.after).striptags() for step in lesson.steps if step.after):
        assert after in Markup(teacher).striptags()
        assert after not in Markup(sheet).striptags(), "it says what there is to find"


def test_what_an_older_version_has_stored_is_left_out(tab: LearnTab, monkeypatch: pytest.MonkeyPatch) -> None:
    tab.live.clear()
    monkeypatch.setattr(tab, "stored", {key: {} for key in tab.stored})
    for lesson in LESSONS:
        assert "Being computed" not in show(tab, f"t=learn&lesson={lesson.id}&view=sheet")[tab.top]
    assert "Being computed" in show(tab, "t=learn&lesson=respect&step=4")[tab.picture]


def test_what_a_student_changes_is_part_of_the_link(tab: LearnTab) -> None:
    query = "?t=learn&lesson=respect&step=4&p.sentence1=a+man+rides+a+bike"
    shown = show(tab, query)
    assert "a man rides a bike" in shown[tab.top]
    assert "p.sentence1=a+man+rides+a+bike" in shown[tab.picture]


def test_a_step_that_is_not_there_is_not_shown_silently(tab: LearnTab) -> None:
    last = show(tab, "t=learn&lesson=respect&step=99")
    assert "step '99'" in str(last[tab.notice]).replace("&#39;", "'")
    assert show(tab, "t=learn&lesson=respect&step=2")[tab.notice] == ""


@pytest.mark.parametrize("query", ["t=learn&lesson=none", "t=learn&lesson=respect&step=4&p.sentence1=" + 2000 * "x"])
def test_a_wrong_link_says_so(tab: LearnTab, query: str) -> None:
    with pytest.raises(DataError):
        show(tab, query)


def test_markdown_of_a_lesson_is_no_markup() -> None:
    assert "<b>" not in to_html("<b>bold</b>")
    assert "href" not in to_html("[x](javascript:alert(1))")
    assert 'popovertarget="cv-term-router"' in to_html("the [router](term:router)")
