"""Lessons: Markdown files under assets/lessons that a teacher can write.

A file NUMBER-NAME.md starts with front matter in TOML between two lines `+++`. Then each `## ` heading is a step: at
most `MAX_WORDS` words, a figure, and what there is to see in it.

    +++
    title = "Similar in what respect?"
    minutes = 8
    summary = "One sentence for the card."
    aims = ["What a student can do afterwards"]
    prerequisites = "None."
    [[questions]]
    question = "..."
    hint = "..."
    answer = "..."
    +++

    ## How alike are they?
    Type two sentences.
    ```figure
    name = "compare"
    sentence1 = "A man surfs."
    ```
    What to notice, shown below the figure.
    ```teacher
    2 minutes. For the teacher's page only.
    ```
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from condviz.data.files import read_utf8
from condviz.errors import DataError, explain
from condviz.paths import ASSETS

LESSONS = ASSETS / "lessons"
MAX_WORDS = 60
"""A step says no more than this before there is something to do."""
_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w*) *\n(.*?)^``` *$\n?", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(\d+)-([a-z0-9-]+)\.md")
_CLOSED = ConfigDict(extra="forbid")
Text = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, config=_CLOSED)
class Question:
    """A question at the end of a lesson, with a hint and the answer, in Markdown."""

    question: Text
    hint: Text
    answer: Text


@dataclass(frozen=True)
class Step:
    """One idea: Markdown above the figure (`text`), below it (`after`), and for the teacher's page (`teacher`)."""

    title: str
    text: str
    figure: dict[str, Any]
    """Name and parameters of the figure, as the lesson gives them; empty for a step without one."""
    after: str = ""
    teacher: str = ""
    place: str = ""
    """File and line of the heading, for messages."""


@dataclass(frozen=True, config=_CLOSED)
class Lesson:
    """A lesson: `id` is its name in links, `summary` is for its card."""

    id: str
    number: int
    title: Text
    minutes: Annotated[int, Field(ge=1, le=60)]
    summary: Text
    aims: Annotated[tuple[Text, ...], Field(min_length=1)]
    prerequisites: Text
    questions: Annotated[tuple[Question, ...], Field(min_length=1, max_length=6)]
    steps: tuple[Step, ...] = field(default=())


def load_lessons(folder: Path = LESSONS) -> tuple[Lesson, ...]:
    """Read all lessons of a folder, by their numbers; a DataError names file, line and what is allowed."""
    lessons = sorted((read_lesson(path) for path in folder.glob("*.md")), key=lambda lesson: lesson.number)
    for key in ("id", "number"):
        values = [getattr(lesson, key) for lesson in lessons]
        if twice := {value for value in values if values.count(value) > 1}:
            raise DataError(f"Two lessons in {folder} have the {key} {min(twice)!r}. Rename one of the files.")
    return tuple(lessons)


def read_lesson(path: Path) -> Lesson:
    """Read one lesson. See the top of this module for the format, and `load_lessons` for errors."""
    named = _NAME.fullmatch(path.name)
    if not named:
        raise DataError(f"{path.name}: name a lesson NUMBER-NAME.md in lower case, for instance 09-my-lesson.md.")
    text = read_utf8(path, "Put the lesson there.")
    parts = re.split(r"^\+\+\+ *$\n?", text, maxsplit=2, flags=re.MULTILINE)
    if len(parts) < 3 or parts[0].strip():
        raise DataError(f"{path.name}, line 1: a lesson starts with front matter in TOML between two lines '+++'.")
    head, body = parts[1:]
    start = text.count("\n", 0, len(text) - len(body)) + 1
    head = _toml(head, path.name, 2)
    headings = list(_HEADING.finditer(body))
    if not headings or body[: headings[0].start()].strip():
        raise DataError(f"{path.name}, line {start}: a step has to come next. Start it with '## Title'.")
    steps = []
    for heading, end in zip(headings, [*(after.start() for after in headings[1:]), len(body)], strict=True):
        line = start + body.count("\n", 0, heading.end())
        steps.append(_step(heading[1], body[heading.end() : end], path.name, line))
    try:
        return Lesson(**(head | {"id": named[2], "number": int(named[1]), "steps": tuple(steps)}))
    except (ValidationError, TypeError) as error:
        raise DataError(f"{path.name}, line 1 to {start - 1}: {explain(error)}") from error


def _step(title: str, content: str, name: str, start: int) -> Step:
    def wrong(offset: int, message: str) -> DataError:
        return DataError(f"{name}, line {start + content.count(chr(10), 0, offset)}: {message}")

    found: dict[str, re.Match] = {}
    for block in _BLOCK.finditer(content):
        if block[1] not in ("figure", "teacher") or block[1] in found:
            allowed = "A step may have one block ```figure and one block ```teacher."
            raise wrong(block.start(), f"```{block[1]}. {allowed}")
        found[block[1]] = block
    plain = _BLOCK.sub(lambda block: "\0" if block[1] == "figure" else "", content)
    if "```" in plain:
        raise wrong(content.rindex("```"), "this block is not closed. End it with a line ```.")
    text, _, after = (part.strip() for part in plain.partition("\0"))
    if (count := len(text.split())) > MAX_WORDS:
        advice = "Move what explains the figure below it, or make two steps."
        raise wrong(0, f"{count} words before there is something to do; at most {MAX_WORDS}. {advice}")
    figure: dict[str, Any] = {}
    if block := found.get("figure"):
        figure = _toml(block[2], name, start + content.count("\n", 0, block.start(2)))
        if not isinstance(figure.get("name"), str):
            raise wrong(block.start(), 'the figure has no name. Write for instance: name = "compare"')
    teacher = found["teacher"][2].strip() if "teacher" in found else ""
    return Step(title, text, figure, after, teacher, f"{name}, line {start}")


def _toml(text: str, name: str, start: int) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = re.sub(r"line (\d+)", lambda found: f"line {int(found[1]) + start - 1}", str(error))
        raise DataError(f"{name}, from line {start}: not TOML: {message}") from error
