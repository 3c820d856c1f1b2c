"""The Learn tab: lessons, one step at a time, with figures that are computed while one looks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import gradio as gr
from markupsafe import Markup

from condviz.data.lessons import LESSONS, Lesson, load_lessons
from condviz.errors import DataError
from condviz.ui.events import connect
from condviz.ui.learn.class_room import ClassRoom
from condviz.ui.learn.figures import make_figure
from condviz.ui.learn.figures.base import OUTDATED, Figure
from condviz.ui.limits import Newest
from condviz.ui.markup import TERMS, busy, html, notice, read_asset, render, term
from condviz.ui.page import Page, Tab
from condviz.ui.state import Values, first, number, read_link, write_link

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

KEPT_RESULTS = 500
"""A class of thirty looks at the same figures: each is computed once."""
VIEWS = ("sheet", "teacher")


class LearnTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        self.problem, self.lessons, self.figures, self.stored = "", {}, {}, stored_results()
        self.live: Newest[str, dict[str, Any]] = Newest(KEPT_RESULTS)
        try:
            self.lessons = {lesson.id: lesson for lesson in load_lessons()}
            self.figures = {name: [make_figure(step) for step in one.steps] for name, one in self.lessons.items()}
        except DataError as error:  # a teacher's slip must not take the page down
            self.problem, self.lessons = str(error), {}
        with gr.Column(elem_classes="cv-learn"):
            self.notice = html("", elem_id="cv-learn-notice")
            script = "condviz.learn(element, (data) => trigger('go', data), (data) => trigger('ask', data), watch);"
            self.top = html(self._cards(), elem_id="cv-learn-top", script=script)
            script = "condviz.learnPicture(element, watch);"
            self.picture = html(place(write_link("learn"), asked=False), elem_id="cv-learn-picture", script=script)
            ClassRoom(self)
            self.foot = html("", elem_id="cv-learn-foot")
        parts = [self.top, self.picture, self.foot]
        asked = connect(self.top.ask, self.change, None, [self.picture], notice=self.notice, heavy=True)
        # Who goes on does not wait for the step before, whose figure would come over the new one.
        connect(self.top.go, self.go, None, parts, notice=self.notice, queue=False, cancels=[asked])
        page.on_link(self.show, (), parts, notice=self.notice, heavy=False)

    # ---- where one is ------------------------------------------------------------------------------------------------
    def go(self, event: gr.EventData) -> dict:
        return self.show(read_link(str(event.query))[1])

    def show(self, values: Values) -> dict:
        """Show what a link asks for: the cards, a step, a sheet or a teacher's page."""
        name, asked = first(values, "lesson"), first(values, "view")
        if not name:
            return {self.top: self._cards(), self.picture: place(write_link("learn")), self.foot: ""}
        lesson = self._lesson(name)
        if asked in VIEWS:
            pictures = [self._drawn(figure, "sheet") for figure in self.figures[lesson.id]]
            whole = _render(f"{asked}.html", lesson=lesson, pictures=pictures)
            return {self.top: whole, self.picture: place(view_link(lesson, asked)), self.foot: ""}
        lesson, step, figure = self._asked(values)
        titles = [*(one.title for one in lesson.steps), QUESTIONS]
        text = lesson.steps[step - 1].text if step <= len(lesson.steps) else ""
        head = {"figure": figure, "title": titles[step - 1], "text": text, "names": titles}
        following = next((one for one in self.lessons.values() if one.number == lesson.number + 1), None)
        wanted = first(values, "step")
        told = f"There is no step {wanted[:20]!r} in this lesson: its steps are 1 to {len(titles)}, and this is {step}."
        return {
            self.notice: notice("", told, tone="info") if wanted not in ("", str(step)) else "",
            self.top: _render("step.html", lesson=lesson, step=step, **head),
            self.picture: self._place(lesson, step, figure),
            self.foot: _render("foot.html", lesson=lesson, step=step, count=len(titles), following=following),
        }

    def change(self, event: gr.EventData) -> Iterator[dict]:
        """Compute the figure of a step with the values of its controls."""
        _, values = read_link(str(event.query))
        lesson, step, figure = self._asked(values)
        if figure is None:
            return
        if self._live(figure) is None or not (figure.kept or event.quiet):
            if not event.quiet:
                yield {self.notice: busy("Computing.")}
            work = self.pool.run(figure.compute, figure.models(self.pool.default))
            for _ in work.steps():
                yield {}
            self.live[figure.key] = work.result()
        yield {self.picture: self._place(lesson, step, figure, replace=True)}

    # ---- parts -------------------------------------------------------------------------------------------------------
    def _cards(self) -> Markup:
        return _render("cards.html", lessons=tuple(self.lessons.values()), problem=self.problem)

    def _lesson(self, name: str) -> Lesson:
        if name not in self.lessons:
            known = "; ".join(lesson.title for lesson in self.lessons.values()) or "none"
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
            return place(step_link(lesson, step))
        live, after = self._live(figure), lesson.steps[step - 1].after
        drawn = self._drawn(figure, "stored" if live is None else "live", after)
        drawn = drawn or picture(figure, None, state="stored", after=after)
        link = step_link(lesson, step, figure.changes(self._start(lesson, step) or figure))
        return place(link, content=drawn, asks=live is None, replace=replace)

    def _drawn(self, figure: Figure | None, state: str, after: str = "") -> str:
        """Draw a figure with its live result, else with the stored one; "" where there is neither."""
        if figure is None:
            return ""
        if (live := self._live(figure)) is not None:
            return picture(figure, live, state=state, after=after)
        with suppress(*OUTDATED):
            if (stored := self.stored.get(figure.key)) is not None:
                return picture(figure, stored, state=state, after=after)
        return ""

    def _live(self, figure: Figure) -> dict[str, Any] | None:
        """Return what was computed for a figure before; one that needs no model is computed at once."""
        if figure.key not in self.live and not figure.models(self.pool.default):
            self.live[figure.key] = figure.compute([])
        return self.live.get(figure.key)


def stored_results() -> dict[str, dict[str, Any]]:
    """Read what `python -m condviz lessons --store` has stored, by the key of the figure."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(LESSONS.glob("*.json")):
        found |= read_asset(path) or {}  # where one is damaged, its figures are computed instead
    return found


# ---- lessons as markup: cards, steps, the sheet for printing, the page for teachers ----------------------------------

_INDEX = re.compile(r"\b([A-Z])_([a-z])\b")
_TERM = re.compile(r'<a href="term:([a-z0-9-]+)">(.*?)</a>')
QUESTIONS = "Questions"
_NUMBERS = itertools.count()
"""The browser hears of an answer only where its markup differs from the one before."""


def to_html(text: str, *, inline: bool = False) -> Markup:
    """Render the Markdown of a lesson; markup in it is shown as it is written.

    `[router](term:router)` opens the entry of the glossary; W_c gets an index.
    """
    markdown = _markdown()
    shown = markdown.renderInline(text) if inline else markdown.render(text)
    shown = _INDEX.sub(r"\1<sub>\2</sub>", shown)
    return Markup(_TERM.sub(lambda found: term(found[1], Markup(found[2])) if found[1] in TERMS else found[2], shown))


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "typographer": False}).enable("table")


def step_link(lesson: Lesson, step: int, changes: Sequence[tuple[str, str]] = ()) -> str:
    """Return the query string of a step, counted from 1; the questions come after the last one."""
    return write_link("learn", [("lesson", lesson.id), ("step", str(step)), *changes])


def view_link(lesson: Lesson, view: str) -> str:
    """Return the query string of the sheet ("sheet") or the teacher's page ("teacher") of a lesson."""
    return write_link("learn", [("lesson", lesson.id), ("view", view)])


def _render(name: str, **values: Any) -> Markup:  # noqa: ANN401 - what the template takes
    return render(f"learn/{name}", markdown=to_html, step_link=step_link, view_link=view_link, **values)


def picture(figure: Figure, data: dict[str, Any] | None, *, state: str, after: str = "") -> Markup:
    """Render a figure with the data that it computed, or None, and the Markdown of what to notice in it.

    The state is "live", "stored" while the models load, or "sheet" for a picture to be printed.
    """
    drawn = "" if data is None else render(f"learn/figures/{figure.name}.html", figure=figure, **figure.view(data))
    return render("learn/picture.html", figure=figure, drawn=drawn, state=state, after=after and to_html(after))


def place(link: str, *, content: str = "", asks: bool = False, replace: bool = False, asked: bool = True) -> Markup:
    """Wrap a picture in what tells the page its address, which may `replace` that of the same step.

    The browser `asks` for the live result; what nobody has `asked` for leaves the address as it is.
    """
    given = {"content": content, "asks": asks, "replace": replace, "asked": asked}
    return render("learn/place.html", link=link, number=next(_NUMBERS), **given)


TAB = Tab("learn", "Learn", LearnTab)
