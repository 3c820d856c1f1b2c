"""Lessons as markup: cards, steps, the sheet for printing, the page for teachers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from condviz.data.lessons import Lesson
from condviz.ui.glossary import TERMS
from condviz.ui.learn.figures.base import Figure
from condviz.ui.markup import render, term
from condviz.ui.state import write_link

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
    return MarkdownIt("commonmark", {"html": False, "typographer": False}).enable("table")


def step_link(lesson: Lesson, step: int, changes: Sequence[tuple[str, str]] = ()) -> str:
    """Return the query string of a step, counted from 1; the questions come after the last one."""
    return write_link("learn", [("lesson", lesson.id), ("step", str(step)), *changes])


def view_link(lesson: Lesson, view: str) -> str:
    """Return the query string of the sheet ("sheet") or the teacher's page ("teacher") of a lesson."""
    return write_link("learn", [("lesson", lesson.id), ("view", view)])


def cards(lessons: Sequence[Lesson], problem: str = "") -> Markup:
    """Render one card per lesson."""
    return render("learn/cards.html", lessons=lessons, problem=problem, step_link=step_link, view_link=view_link)


def head(lesson: Lesson, step: int, figure: Figure | None) -> Markup:
    """Render what stands above the picture: place, title, text, controls."""
    last = step > len(lesson.steps)
    shown = None if last else lesson.steps[step - 1]
    return render(
        "learn/step.html", lesson=lesson, step=step, figure=figure, markdown=to_html, step_link=step_link,
        title=QUESTIONS if last else shown.title, text="" if last else shown.text, names=titles(lesson),
    )  # fmt: skip


def picture(figure: Figure, data: dict[str, Any] | None, *, state: str, after: str = "") -> Markup:
    """Render a figure.

    Args:
        figure: With its parameters.
        data: What it computed; None where that has to be awaited.
        state: "live", "stored" while the models load, or "sheet" for a picture to be printed.
        after: Markdown of what to notice in it.
    """
    drawn = "" if data is None else render(f"learn/figures/{figure.name}.html", figure=figure, **figure.view(data))
    return render("learn/picture.html", figure=figure, drawn=drawn, state=state, after=after and to_html(after))


def place(link: str, *, content: str = "", asks: bool = False, replace: bool = False) -> Markup:
    """Wrap a picture in what tells the page its address.

    Args:
        link: Query string.
        content: The picture.
        asks: The browser should ask for the live result.
        replace: The address is that of the same step with other parameters.
    """
    return render("learn/place.html", link=link, content=content, asks=asks, replace=replace, number=next(_NUMBERS))


def foot(lesson: Lesson, step: int) -> Markup:
    """Render Back and Next, which stay at the lower edge of the window."""
    count = len(lesson.steps) + 1
    return render("learn/foot.html", lesson=lesson, step=step, count=count, step_link=step_link, view_link=view_link)


def page(lesson: Lesson, view: str, pictures: Sequence[Markup]) -> Markup:
    """Render the sheet for students ("sheet") or the teacher's page ("teacher").

    Args:
        lesson: The lesson.
        view: Which of them.
        pictures: The stored picture of each step, "" where there is none.
    """
    return render(
        f"learn/{view}.html", lesson=lesson, pictures=pictures, markdown=to_html, step_link=step_link,
        view_link=view_link,
    )  # fmt: skip


def titles(lesson: Lesson) -> list[str]:
    """Return the titles of all steps, the questions last."""
    return [*(step.title for step in lesson.steps), QUESTIONS]
