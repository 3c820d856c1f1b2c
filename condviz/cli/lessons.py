"""The command `lessons`."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from condviz.cli.terminal import format_table, tell


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "lessons",
        help="check the lessons of the Learn tab",
        description="Read every lesson under assets/lessons and compute the figure of every step, so that a mistake "
        "shows before the class does.",
    )
    parser.add_argument("--store", action="store_true", help="keep the results: shown until the models are loaded")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Compute step by step and print what there is."""
    from condviz.data.files import write_text
    from condviz.data.lessons import LESSONS, load_lessons
    from condviz.models.registry import load
    from condviz.ui.learn.figures import make_figure
    from condviz.ui.pool import ModelPool

    rows, pool = [], ModelPool(load=partial(load, precision="float32"))
    for lesson in load_lessons():
        found: dict[str, Any] = {}
        for number, step in enumerate(lesson.steps, start=1):
            figure = make_figure(step)
            if figure is not None:
                models = [pool.get(name) for name in figure.models(pool.default)]
                data = figure.compute(models)
                if models:  # the others are computed when they are shown
                    found[figure.key] = data
            rows.append((lesson.id, str(number), step.title, figure.name if figure else ""))
        path = Path(LESSONS) / f"{lesson.number:02}-{lesson.id}.json"
        if options.store:
            write_text(path, json.dumps(found, ensure_ascii=False, indent=1) + "\n")
            tell(str(path))
    print(format_table(("lesson", "step", "title", "figure"), rows))
