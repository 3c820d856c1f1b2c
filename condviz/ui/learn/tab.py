"""The Learn tab: lessons, one step at a time, with figures that are computed while one looks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr
from cachetools import LRUCache

from condviz.data.lessons import LESSONS, Lesson, load_lessons
from condviz.errors import DataError
from condviz.ui.events import connect
from condviz.ui.learn import view
from condviz.ui.learn.class_room import ClassRoom
from condviz.ui.learn.figures import make_figure
from condviz.ui.learn.figures.base import Figure
from condviz.ui.markup import busy, html
from condviz.ui.page import Page, Tab
from condviz.ui.state import Values, first, number, read_link

KEPT_RESULTS = 500
"""A class of thirty looks at the same figures: each is computed once."""
VIEWS = ("sheet", "teacher")


class LearnTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        """Lay out and connect."""
        self.page, self.pool = page, page.pool
        self.problem, self.lessons, self.stored = "", {}, stored_results()
        self.live: LRUCache[str, dict[str, Any]] = LRUCache(KEPT_RESULTS)
        try:
            self.lessons = {lesson.id: lesson for lesson in load_lessons()}
            self.figures = {name: [make_figure(step) for step in one.steps] for name, one in self.lessons.items()}
        except DataError as error:  # a teacher's slip must not take the page down
            self.problem, self.lessons = str(error), {}
        with gr.Column(elem_classes="cv-learn"):
            self.notice = html("", elem_id="cv-learn-notice")
            self.top = html(
                view.cards(tuple(self.lessons.values()), self.problem), elem_id="cv-learn-top",
                script="condviz.learn(element, (data) => trigger('go', data), (data) => trigger('ask', data), watch);",
            )  # fmt: skip
            self.picture = html(
                view.place("t=learn"), elem_id="cv-learn-picture", script="condviz.learnPicture(element, watch);"
            )
            ClassRoom(self)
            self.foot = html("", elem_id="cv-learn-foot")
        parts = [self.top, self.picture, self.foot]
        asked = connect(
            self.top.ask, self.change, None, [self.picture], notice=self.notice, heavy=True, trigger_mode="always_last"
        )
        # Who goes on does not wait for the step before, whose figure would come over the new one.
        connect(self.top.go, self.go, None, parts, notice=self.notice, queue=False, cancels=[asked])
        page.on_link("learn", self.show, (), parts, notice=self.notice, heavy=False)

    # ---- where one is ------------------------------------------------------------------------------------------------
    def go(self, event: gr.EventData) -> dict:
        """Follow a link inside the tab."""
        return self.show(read_link(str(event.query))[1])

    def show(self, values: Values) -> dict:
        """Show what a link asks for: the cards, a step, a sheet or a teacher's page."""
        name, asked = first(values, "lesson"), first(values, "view")
        if not name:
            cards = view.cards(tuple(self.lessons.values()), self.problem)
            return {self.top: cards, self.picture: view.place("t=learn"), self.foot: ""}
        lesson = self._lesson(name)
        if asked in VIEWS:
            pictures = [self._stored_picture(figure) for figure in self.figures[lesson.id]]
            whole = view.page(lesson, asked, pictures)
            return {self.top: whole, self.picture: view.place(view.view_link(lesson, asked)), self.foot: ""}
        lesson, step, figure = self._asked(values)
        picture = self._place(lesson, step, figure)
        return {self.top: view.head(lesson, step, figure), self.picture: picture, self.foot: view.foot(lesson, step)}

    def change(self, event: gr.EventData) -> Iterator[dict]:
        """Compute the figure of a step with the values of its controls."""
        _, values = read_link(str(event.query))
        lesson, step, figure = self._asked(values)
        if figure is None:
            return
        if self._live(figure) is None or not (figure.kept or event.quiet):
            if not event.quiet:
                yield {self.notice: busy("Computing.")}
            work = self.pool.run(_compute, figure.models(self.pool.default), figure)
            for _ in work.steps():
                yield {}
            self.live[figure.key] = work.result()
        yield {self.picture: self._place(lesson, step, figure, replace=True)}

    # ---- parts -------------------------------------------------------------------------------------------------------
    def _lesson(self, name: str) -> Lesson:
        if name not in self.lessons:
            known = ", ".join(self.lessons) or "none"
            raise DataError(f"There is no lesson {name[:40]!r}. There are: {known}.")
        return self.lessons[name]

    def _asked(self, values: Values) -> tuple[Lesson, int, Figure | None]:
        """Return lesson, step and figure of a link, whose keys `p.NAME` are the changed parameters."""
        lesson = self._lesson(first(values, "lesson"))
        step = number(values, "step", 1, low=1, high=len(lesson.steps) + 1)
        changes = {key[2:]: found[0] for key, found in values.items() if key.startswith("p.")}
        start = self._start(lesson, step)
        return lesson, step, start and start.changed(changes)

    def _start(self, lesson: Lesson, step: int) -> Figure | None:
        """Return the figure of a step as the lesson has it; None for the questions."""
        figures = self.figures[lesson.id]
        return figures[step - 1] if 1 <= step <= len(figures) else None

    def _place(self, lesson: Lesson, step: int, figure: Figure | None, *, replace: bool = False) -> str:
        if figure is None:
            return view.place(view.step_link(lesson, step))
        live, after = self._live(figure), lesson.steps[step - 1].after
        try:
            data = self.stored.get(figure.key) if live is None else live
            drawn = view.picture(figure, data, state="stored" if live is None else "live", after=after)
        except (LookupError, TypeError, ValueError):
            if live is not None:
                raise
            drawn = view.picture(figure, None, state="stored", after=after)  # stored by an older version
        link = view.step_link(lesson, step, figure.changes(self._start(lesson, step)))
        return view.place(link, content=drawn, asks=live is None, replace=replace)

    def _stored_picture(self, figure: Figure | None) -> str:
        data = figure and (self._live(figure) or self.stored.get(figure.key))
        return view.picture(figure, data, state="sheet") if figure and data is not None else ""

    def _live(self, figure: Figure) -> dict[str, Any] | None:
        """Return what was computed for a figure before; one that needs no model is computed at once."""
        if figure.key not in self.live and not figure.models(self.pool.default):
            self.live[figure.key] = figure.compute([])
        return self.live.get(figure.key)


def _compute(models: list[Any], figure: Figure) -> dict[str, Any]:
    return figure.compute(models)


def stored_results() -> dict[str, dict[str, Any]]:
    """Read what `python -m condviz lessons --store` has stored, by the key of the figure."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(LESSONS.glob("*.json")):
        try:
            found |= json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # the figure is computed instead
            continue
    return found


TAB = Tab("learn", "Learn", LearnTab)
