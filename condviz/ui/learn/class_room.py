"""Class mode: the bets of everybody in a room, beside those of the model and of whoever wrote the pairs.

Rooms go by a four-letter code, are kept in memory, without names, and are gone after two hours. Whoever is in a room
is a random number that the browser drew. It only serves to count a bet once, however often it is clicked, and is
forgotten with the room.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gradio as gr
from cachetools import TTLCache

from condviz.errors import DataError
from condviz.ui.events import connect, explain
from condviz.ui.learn.figures.base import OUTDATED
from condviz.ui.learn.figures.models import Bet, Bets
from condviz.ui.limits import Counts
from condviz.ui.markup import html, render
from condviz.ui.state import place

if TYPE_CHECKING:
    from condviz.ui.learn.tab import LearnTab


LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Without vowels, so that no code is a word, and without Y, which is heard as one."""
LENGTH = 4
SECONDS = 2 * 60 * 60
MAX_ROOMS, MAX_PEOPLE, MAX_QUESTIONS = 200, 300, 100
WINDOW_SECONDS, MAX_WRONG, MAX_WRONG_IN_ALL, MAX_OPENED = 60, 30, 120, 10
"""In a minute: wrong codes from one address (a class often shares one), from all, and new rooms from one address.

There are 160,000 codes. With ten rooms open, 120 tries a minute take more than two hours to find one.
"""
_NUMBER = re.compile(r"[0-9a-f]{16,64}")


@dataclass
class Room:
    """One class: the teacher, who sees all bets, whoever has joined, and question -> person -> choice."""

    teacher: str
    people: set[str] = field(default_factory=set)
    bets: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """What one person sees of a room."""

    people: int
    """How many have joined, without the teacher."""
    teacher: bool
    counts: dict[str, Counter[str]]
    """Question -> choice -> how many; for others than the teacher only of questions that they have bet on."""


class Rooms:
    """All rooms of this server; every method may be called from any thread.

    A `code` is taken as it was typed, in upper or lower case. A `person` is 16 to 64 hexadecimal digits, drawn at
    random by the browser; the `address` that a request comes from is known for a minute at most.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._rooms: TTLCache[str, Room] = TTLCache(MAX_ROOMS, SECONDS, clock)
        self._counts = Counts(WINDOW_SECONDS, clock)
        self._lock = threading.Lock()

    def open(self, person: str, address: str) -> str:
        """Open a room and return its code; raises DataError if the server is full, or too many were opened."""
        with self._lock:
            _check(person)
            self._rooms.expire()
            if len(self._rooms) == MAX_ROOMS:
                raise DataError(f"All {MAX_ROOMS} class rooms of this server are in use. Try again in an hour.")
            if self._counts[f"open {address}"] >= MAX_OPENED:
                raise DataError(f"{MAX_OPENED} rooms were opened from here within a minute. Wait a minute.")
            self._counts[f"open {address}"] += 1
            code = next(code for code in iter(_draw, None) if code not in self._rooms)
            self._rooms[code] = Room(person)
            return code

    def join(self, code: str, person: str, address: str) -> str:
        """Enter a room, and return its code; raises DataError without such a room, or after too many wrong codes."""
        with self._lock:
            _check(person)
            code, room = self._find(code, person, address)
            if person == room.teacher:
                return code
            if person not in room.people and len(room.people) == MAX_PEOPLE:
                raise DataError(f"Room {code} is full: it holds {MAX_PEOPLE}.")
            room.people.add(person)
            return code

    def leave(self, code: str, person: str, address: str) -> None:
        """Leave a room and take one's bets along; does nothing for whoever is not in it. Errors as `join`."""
        with self._lock:
            _, room = self._find(code, person, address)
            room.people.discard(person)
            for bets in room.bets.values():
                bets.pop(person, None)

    def bet(self, code: str, person: str, question: str, choice: str, address: str) -> None:
        """Bet on a question, or change one's bet; the same bet again counts once. `join` has to come first.

        A teacher's bets are shown to nobody and not counted.
        """
        with self._lock:
            code, room = self._find(code, person, address)
            if person == room.teacher:
                return
            if person not in room.people:
                raise DataError(f"You are not in room {code}. Join it first.")
            new = question not in room.bets
            if max(len(question), len(choice)) > 40 or (new and len(room.bets) == MAX_QUESTIONS):
                raise DataError(f"This bet cannot be counted: {question[:40]!r}, {choice[:40]!r}. Reload the page.")
            room.bets.setdefault(question, {})[person] = choice

    def look(self, code: str, person: str, address: str) -> View:
        """Return what one person may see of a room. Errors as `join`."""
        with self._lock:
            _, room = self._find(code, person, address)
            teacher = person == room.teacher
            seen = {asked: bets for asked, bets in room.bets.items() if bets and (teacher or person in bets)}
            return View(len(room.people), teacher, {asked: Counter(bets.values()) for asked, bets in seen.items()})

    def _find(self, code: str, person: str, address: str) -> tuple[str, Room]:
        # Over the limit right codes are refused like wrong ones, or the answer would give them away; but not to
        # whoever is in the room already.
        shown = str(code)[:20]
        code = "".join(shown.upper().split())
        room = self._rooms.get(code)
        if room is not None and (person == room.teacher or person in room.people):
            return code, room
        if self._counts[address] >= MAX_WRONG or self._counts[""] >= MAX_WRONG_IN_ALL:
            raise DataError("Too many wrong codes were tried. Wait a minute, then type the code again.")
        if room is None:
            self._counts[address] += 1
            self._counts[""] += 1
            raise DataError(
                f"There is no room {shown!r}. A code has {LENGTH} letters, for instance {_draw()}; rooms are closed "
                "after two hours. Ask your teacher for the code."
            )
        return code, room


def _draw() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def _check(person: str) -> None:
    if not isinstance(person, str) or not _NUMBER.fullmatch(person):
        raise DataError("The browser's id is missing. Reload the page.")


# ---- the part of the page --------------------------------------------------------------------------------------------

CHOICES = ("alike", "unlike")
ROOMS = Rooms()
"""Of this server: all visitors share them, and they end with it."""


class ClassRoom:
    """A folded part below bets: open a room, or join one with its code."""

    def __init__(self, learn: LearnTab) -> None:
        self.learn = learn
        script = "condviz.learnClass(element, (data) => trigger('room', data), watch);"
        self.shown = html(render("learn/class.html", code=""), elem_id="cv-learn-class", script=script)
        self.notice = html("", elem_id="cv-class-notice")
        connect(self.shown.room, self.act, None, [self.shown], notice=self.notice, queue=False)

    def act(self, event: gr.EventData, request: gr.Request) -> dict:
        """Open, join or leave a room, count the bets that the browser has kept for this step, and show the room."""
        address = request.client.host if request.client else ""
        code, person = str(event.code), str(event.person)
        closed = {self.shown: render("learn/class.html", code="", left=True)}
        if event.act == "leave":
            with suppress(DataError):  # gone already
                ROOMS.leave(code, person, address)
            return closed
        if event.act == "open":
            code = ROOMS.open(person, address)
        try:
            code = ROOMS.join(code, person, address)
        except DataError as error:
            if event.act == "join":
                raise
            return closed | {self.notice: explain(error)}
        lesson, step = str(event.lesson), str(event.step)
        figures = self.learn.figures.get(lesson, [])
        index = place(step, len(figures) + 1)
        figure = figures[index - 1] if index else None
        if not isinstance(figure, Bets):
            raise DataError("There is nothing to bet on in this step. Go to a step with bets, then open class mode.")
        key = f"{lesson[:20]} {index} "
        for number, choice in enumerate(event.made[: len(figure.pairs)]):
            if choice in CHOICES:
                ROOMS.bet(code, person, f"{key}{number}", choice, address)
        seen = ROOMS.look(code, person, address)
        rows = [
            (number, seen.counts[f"{key}{number}"], said, pair)
            for number, (pair, said) in enumerate(zip(figure.pairs, self._said(figure), strict=True))
            if f"{key}{number}" in seen.counts
        ]
        return {self.shown: render("learn/class.html", code=code, seen=seen, rows=rows, **_together(rows))}

    def _said(self, figure: Bets) -> list[str]:
        """Return what the model says of each pair; "" where that is not known yet."""
        data: Any = self.learn.live.get(figure.key) or self.learn.stored.get(figure.key)
        with suppress(*OUTDATED):  # or nothing yet
            return [row["said"] for row in figure.view(data)["rows"]]
        return [""] * len(figure.pairs)


def _together(rows: list[tuple[int, Counter[str], str, Bet]]) -> dict[str, int]:
    """Return on how many pairs most bets agree, how often they say what model and authors say, and the split pair."""
    if not rows:
        return {}
    decided = [
        ("alike" if counts["alike"] > counts["unlike"] else "unlike", said, pair.answer)
        for _, counts, said, pair in rows
        if counts["alike"] != counts["unlike"]
    ]
    number, *_ = min(rows, key=lambda row: abs(row[1]["alike"] - row[1]["unlike"]) / row[1].total())
    return {
        "decided": len(decided), "as_model": sum(bet == said for bet, said, _ in decided),
        "as_authors": sum(bet == answer for bet, _, answer in decided), "split": number + 1,
    }  # fmt: skip
