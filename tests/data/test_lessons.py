"""Lessons are read from Markdown, and a malformed one names file, line and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from condviz.data.lessons import load_lessons, read_lesson
from condviz.errors import DataError

HEAD = """+++
title = "A lesson"
minutes = 5
summary = "Short."
aims = ["One"]
prerequisites = "None."
[[questions]]
question = "Why?"
hint = "Look."
answer = "So."
+++
"""
STEP = '\n## First\nDo it.\n\n```figure\nname = "compare"\nrank = 3\n```\n\nSee?\n\n```teacher\n2 minutes.\n```\n'


def write(folder: Path, text: str, name: str = "09-mine.md") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_lesson_has_steps_with_text_figure_and_notes(tmp_path: Path) -> None:
    lesson = read_lesson(write(tmp_path, HEAD + STEP + "\n## Second\nJust text.\n"))
    first, second = lesson.steps
    assert (lesson.id, lesson.number, lesson.minutes, lesson.questions[0].hint) == ("mine", 9, 5, "Look.")
    assert first.figure == {"name": "compare", "rank": 3}
    assert (first.text, first.after, first.teacher) == ("Do it.", "See?", "2 minutes.")
    assert (second.figure, second.text, second.after) == ({}, "Just text.", "")


def test_a_byte_order_mark_is_no_text_and_other_encodings_are_told(tmp_path: Path) -> None:
    path = tmp_path / "09-mine.md"
    path.write_text(HEAD + STEP, encoding="utf-8-sig")
    assert read_lesson(path).title == "A lesson"
    path.write_text(HEAD + STEP.replace("Do it.", "Naïf."), encoding="latin-1")
    with pytest.raises(DataError, match=r"09-mine\.md is not UTF-8"):
        read_lesson(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# A lesson", "line 1: a lesson starts"),
        (HEAD.replace("minutes = 5", "minutes = x"), "09-mine.md, from line 2: not TOML.*line 3"),
        (HEAD.replace("minutes = 5", "minutes = 0") + STEP, "minutes"),
        (HEAD.replace("minutes = 5", "minuts = 5") + STEP, "minut"),
        (HEAD, "line 12: a step"),
        (HEAD + "Hello\n" + STEP, "line 12: a step"),
        (HEAD + STEP.replace("rank = 3", "rank = "), "line 17: not TOML.*line 18"),
        (HEAD + STEP.replace('name = "compare"\n', ""), "line 16: the figure has no name"),
        (HEAD + STEP.replace("```teacher", "```python"), "line 23: ```python"),
        (HEAD + STEP.removesuffix("```\n"), "line 23: this block is not closed"),
        (HEAD + STEP.replace("Do it.", "word " * 61), "line 13: 61 words"),
    ],
)
def test_a_malformed_lesson_names_file_line_and_remedy(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        read_lesson(write(tmp_path, text))
    assert "09-mine.md" in str(caught.value)


def test_names_and_numbers_are_unique(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="NUMBER-NAME"):
        read_lesson(write(tmp_path, HEAD + STEP, "mine.txt.md"))
    (tmp_path / "mine.txt.md").unlink()
    write(tmp_path, HEAD + STEP)
    write(tmp_path, HEAD + STEP, "08-mine.md")
    with pytest.raises(DataError, match="'mine'"):
        load_lessons(tmp_path)
