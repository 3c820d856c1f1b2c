"""Class mode through its handler: sixty browsers bet on the pairs of the first lesson."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from condviz.data.lessons import load_lessons
from condviz.errors import DataError
from condviz.ui.learn import class_room
from condviz.ui.learn.class_room import ClassRoom, Rooms
from condviz.ui.learn.figures import make_figure
from condviz.ui.learn.figures.models import Bets
from condviz.ui.learn.tab import stored_results

LESSON = load_lessons()[0]
FIGURES = [make_figure(step) for step in LESSON.steps]
STEP = max(range(len(FIGURES)), key=lambda i: len(FIGURES[i].pairs) if isinstance(FIGURES[i], Bets) else 0) + 1
TEACHER = "f" * 16


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> ClassRoom:
    monkeypatch.setattr(class_room, "ROOMS", Rooms())
    learn = SimpleNamespace(lessons={LESSON.id: LESSON}, figures={LESSON.id: FIGURES}, live={}, stored=stored_results())
    with gr.Blocks():
        return ClassRoom(learn)


def act(room: ClassRoom, name: str, person: str, code: str = "", **values: Any) -> str:
    sent = {"act": name, "person": person, "code": code, "lesson": LESSON.id, "step": STEP, "made": []} | values
    request = SimpleNamespace(client=SimpleNamespace(host="10.0.0.1"))
    return str(room.act(SimpleNamespace(**sent), request)[room.shown])


def opened(room: ClassRoom) -> str:
    return re.search(r'data-code="(\w{4})"', act(room, "open", TEACHER))[1]


def test_the_teacher_sees_what_sixty_have_bet_beside_model_and_authors(room: ClassRoom) -> None:
    code = opened(room)
    for number in range(60):
        made = ["alike" if number % 3 else "unlike", None, "unlike"]
        for _ in range(2):
            act(room, "join", f"{number:016x}", code.lower(), made=made)
    shown = act(room, "look", TEACHER, code)
    assert "60 students" in shown
    assert "40 alike, 20 unlike" in shown
    assert "0 alike, 60 unlike" in shown
    assert shown.count("cv-class-row") == 2
    assert "model: <b>" in shown
    model, decided, authors, split = re.findall(r"\d+", re.search(r'class-sum">(.*?)</p>', shown)[1])
    assert model in "12"
    assert (decided, authors, split) == ("2", "1", "1")
    act(room, "leave", f"{0:016x}", code)
    assert "40 alike, 19 unlike" in act(room, "look", TEACHER, code)


def test_a_student_sees_a_pair_after_betting_on_it(room: ClassRoom) -> None:
    code = opened(room)
    act(room, "join", "1" * 16, code, made=["alike"])
    assert "cv-class-row" not in act(room, "join", "2" * 16, code)
    assert "1 alike, 1 unlike" in act(room, "look", "2" * 16, code, made=["unlike"])


@pytest.mark.parametrize(
    "values", [{"step": 99}, {"step": "x"}, {"step": "²"}, {"step": 0}, {"lesson": "none"}, {"code": "AAAA"}]
)
def test_what_is_not_there_is_told(room: ClassRoom, values: dict[str, Any]) -> None:
    code = opened(room)
    with pytest.raises(DataError):
        act(room, "join", "1" * 16, **({"code": code} | values))


def test_other_choices_are_not_counted(room: ClassRoom) -> None:
    code = opened(room)
    assert "cv-class-row" not in act(room, "join", "1" * 16, code, made=["<b>", 7, None, *["x"] * 1000])


def test_a_room_that_is_gone_is_left(room: ClassRoom) -> None:
    for name in ("look", "leave"):
        assert 'data-left="true"' in act(room, name, "1" * 16, "AAAA")


def test_what_an_older_version_has_stored_is_left_out(room: ClassRoom) -> None:
    room.learn.stored = {key: {"old": True} for key in room.learn.stored}
    code = opened(room)
    act(room, "join", "1" * 16, code, made=["alike"])
    assert "model: <b>" not in act(room, "look", TEACHER, code)
