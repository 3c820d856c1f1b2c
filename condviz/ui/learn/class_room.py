"""Class mode: the bets of everybody in a room, beside those of the model and of whoever wrote the pairs."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gradio as gr

from condviz.errors import DataError
from condviz.ui.events import connect, explain
from condviz.ui.learn.figures.bets import Bet, Bets
from condviz.ui.learn.room import Rooms
from condviz.ui.markup import html, render

if TYPE_CHECKING:
    from condviz.ui.learn.tab import LearnTab

CHOICES = ("alike", "unlike")
ROOMS = Rooms()
"""Of this server: all visitors share them, and they end with it."""


class ClassRoom:
    """A folded part below bets: open a room, or join one with its code."""

    def __init__(self, learn: LearnTab) -> None:
        """Lay out and connect; call inside the Learn tab."""
        self.learn = learn
        self.notice = html("", elem_id="cv-class-notice")
        self.shown = html(
            render("learn/class.html", code=""), elem_id="cv-learn-class",
            script="condviz.learnClass(element, (data) => trigger('room', data), watch);",
        )  # fmt: skip
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
        figure = self._bets(lesson, step)
        place = f"{lesson[:20]} {step} "
        for number, choice in enumerate(event.made[: len(figure.pairs)]):
            if choice in CHOICES:
                ROOMS.bet(code, person, f"{place}{number}", choice, address)
        seen = ROOMS.look(code, person, address)
        rows = [
            (number, seen.counts[f"{place}{number}"], said, pair)
            for number, (pair, said) in enumerate(zip(figure.pairs, self._said(figure), strict=True))
            if f"{place}{number}" in seen.counts
        ]
        return {self.shown: render("learn/class.html", code=code, seen=seen, rows=rows, **_together(rows))}

    def _bets(self, lesson: str, step: str) -> Bets:
        figures = self.learn.figures.get(lesson, []) if self.learn.lessons else []
        if not step.isdigit() or not 1 <= int(step) <= len(figures) or not isinstance(figures[int(step) - 1], Bets):
            raise DataError("There is nothing to bet on in this step. Go to a step with bets, then open class mode.")
        return figures[int(step) - 1]

    def _said(self, figure: Bets) -> list[str]:
        """Return what the model says of each pair; "" where that is not known yet."""
        data: Any = self.learn.live.get(figure.key) or self.learn.stored.get(figure.key)
        return [row["said"] for row in figure.view(data)["rows"]] if data else [""] * len(figure.pairs)


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
