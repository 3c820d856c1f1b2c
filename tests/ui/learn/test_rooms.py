"""Rooms of a class: counted once, closed in time, not guessed."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from condviz.errors import DataError
from condviz.ui.learn import class_room
from condviz.ui.learn.class_room import LETTERS, Rooms, View

TEACHER = "f" * 16
SCHOOL, ATTACKER = "10.0.0.1", "10.0.0.2"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def person(number: int) -> str:
    return f"{number:016x}"


def test_sixty_people_join_double_click_and_leave() -> None:
    rooms = Rooms()
    code = rooms.open(TEACHER, SCHOOL)

    def visit(number: int) -> None:
        for _ in range(2):
            rooms.join(code.lower(), person(number), SCHOOL)
        for choice in ("first", "second" if number % 3 else "first"):
            for _ in range(3):
                rooms.bet(code, person(number), "pair 1", choice, SCHOOL)
        if number >= 50:
            rooms.leave(code, person(number), SCHOOL)
            rooms.leave(code, person(number), SCHOOL)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(visit, range(60)))
    # 0, 3, ..., 48 stayed with the first.
    seen = View(50, teacher=True, counts={"pair 1": Counter(first=17, second=33)})
    assert rooms.look(code, TEACHER, SCHOOL) == seen
    assert rooms.look(code, person(1), SCHOOL) == replace(seen, teacher=False)
    for number in range(50):
        rooms.leave(code, person(number), SCHOOL)
    assert rooms.look(code, TEACHER, SCHOOL).counts == {}


def test_others_bets_show_only_to_the_teacher_and_to_whoever_has_bet() -> None:
    rooms = Rooms()
    code = rooms.open(TEACHER, SCHOOL)
    for number in range(2):
        rooms.join(code, person(number), SCHOOL)
    rooms.bet(code, person(0), "pair 1", "first", SCHOOL)
    assert [rooms.look(code, one, SCHOOL).counts for one in (TEACHER, person(0), person(1))] == [
        {"pair 1": {"first": 1}}, {"pair 1": {"first": 1}}, {}
    ]  # fmt: skip


def test_a_teacher_who_bets_stays_in_the_room_and_is_not_counted() -> None:
    rooms = Rooms()
    code = rooms.open(TEACHER, SCHOOL)
    rooms.bet(code, TEACHER, "pair 1", "first", SCHOOL)
    assert rooms.look(code, TEACHER, SCHOOL) == View(0, True, {})


def test_codes_are_four_letters_and_differ() -> None:
    rooms = Rooms()
    codes = {rooms.open(TEACHER, f"10.0.1.{number}") for number in range(100)}
    assert len(codes) == 100
    assert all(len(code) == 4 and set(code) <= set(LETTERS) for code in codes)


def test_a_room_is_gone_after_two_hours() -> None:
    clock = Clock()
    rooms = Rooms(clock)
    code = rooms.open(TEACHER, SCHOOL)
    clock.now = class_room.SECONDS - 1
    rooms.join(code, person(1), SCHOOL)
    clock.now = class_room.SECONDS + 1
    with pytest.raises(DataError, match="no room"):
        rooms.look(code, person(1), SCHOOL)


def test_guessing_is_stopped_and_does_not_stop_the_class() -> None:
    clock = Clock()
    rooms = Rooms(clock)
    code = rooms.open(TEACHER, SCHOOL)
    rooms.join(code, person(1), SCHOOL)
    for _ in range(class_room.MAX_WRONG):
        with pytest.raises(DataError, match="no room"):
            rooms.join("AAAA", person(2), ATTACKER)
    with pytest.raises(DataError, match="Too many"):  # even with the right one, or it would be given away
        rooms.join(code, person(2), ATTACKER)
    rooms.bet(code, person(1), "pair 1", "first", SCHOOL)
    clock.now = class_room.WINDOW_SECONDS + 1
    rooms.join(code, person(2), ATTACKER)
    for number in range(class_room.MAX_WRONG_IN_ALL):  # many addresses
        with pytest.raises(DataError):
            rooms.join("AAAA", person(2), f"10.1.{number // 200}.{number % 200}")
    with pytest.raises(DataError, match="Too many"):
        rooms.join(code, person(3), "10.9.9.9")
    rooms.bet(code, person(1), "pair 1", "second", SCHOOL)  # whoever is inside goes on
    assert rooms.look(code, person(1), SCHOOL).counts == {"pair 1": {"second": 1}}


def test_nothing_grows_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_room, "MAX_PEOPLE", 2)
    monkeypatch.setattr(class_room, "MAX_QUESTIONS", 1)
    rooms = Rooms()
    code = rooms.open(TEACHER, SCHOOL)
    for number in range(2):
        rooms.join(code, person(number), SCHOOL)
    with pytest.raises(DataError, match="full"):
        rooms.join(code, person(2), SCHOOL)
    rooms.bet(code, person(0), "pair 1", "first", SCHOOL)
    for question, choice in (("pair 2", "first"), ("pair 1", "x" * 41)):
        with pytest.raises(DataError, match="cannot be counted"):
            rooms.bet(code, person(0), question, choice, SCHOOL)
    for bad in ("", "Ann", "<b>", None):
        with pytest.raises(DataError, match="browser's id is missing"):
            rooms.join(code, bad, SCHOOL)
    with pytest.raises(DataError, match="not in room"):
        rooms.bet(code, person(9), "pair 1", "first", SCHOOL)
    for _ in range(class_room.MAX_OPENED - 1):
        rooms.open(TEACHER, SCHOOL)
    with pytest.raises(DataError, match="within a minute"):
        rooms.open(TEACHER, SCHOOL)
