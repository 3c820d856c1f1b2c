"""The commands `data` and `lessons`: list and check what ships, and build pairs."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from condviz.cli import options as shared
from condviz.cli.options import add_command, format_table, tell
from condviz.data.corpora import build
from condviz.errors import DataError, require

if TYPE_CHECKING:
    from condviz.data.corpora import CorpusSurvey


RATINGS = (
    "Scenes and tables were written for this project by a language model; their ratings follow by rule from stated "
    "values. Nobody rated these pairs."
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to a parser."""
    data = add_command(commands, "data", _list, shared.form())
    actions = data.add_subparsers(title="actions", metavar="build")
    parser = add_command(actions, "build", _build, shared.of_function(build))
    parser.add_argument("corpus", metavar="NAME", help="as listed by `condviz data`")
    text = "train, dev, test, or another part that is listed"
    parser.add_argument("--split", required=True, metavar="PART", help=text)
    text = "CSV file to write, or - for standard output"
    parser.add_argument("--out", required=True, type=shared.target, metavar="FILE", help=text)
    parser = add_command(commands, "lessons", run_lessons)
    parser.add_argument("--store", action="store_true", help="keep the results: shown until the models are loaded")


def _list(options: argparse.Namespace) -> None:
    """List the corpora, and build pairs.

    Of each: licence, source, expected files, what was found. They are looked for in the folder CONDVIZ_DATA, else in
    ../shared/data.
    """
    from condviz.data.corpora import CORPORA, survey

    surveys = [survey(name) for name in CORPORA]
    text = partial("\n\n".join, [*map(_survey, surveys), RATINGS])
    shared.show(options, text, json=lambda: [item.to_dict() for item in surveys])


def _survey(item: CorpusSurvey) -> str:
    files = [name + ("" if there else " (missing)") for name, there in item.files.items()]
    lines = [f"licence    {item.corpus.licence}", f"source     {item.corpus.source}"]
    lines += [f"looked in  {item.folder}", f"files      {', '.join(files)}"]
    rows = []
    for part in item.parts:
        counts = ("-" if count is None else f"{count:,}" for count in (part.rows, part.pairs))
        rows.append((part.name, *counts))
    lines.append(format_table(("part", "texts", "pairs"), rows))
    lines += dict.fromkeys(part.problem for part in item.parts if part.problem)
    return f"{item.corpus.name}: {item.corpus.title}\n" + indent("\n".join(lines), "  ")


def _build(options: argparse.Namespace) -> None:
    """Write the rated pairs of one part of a corpus, as a table."""
    from condviz.data.corpora import CORPORA
    from condviz.data.corpus import count_contrasts, format_rows

    rows = build(options.corpus, options.split, **shared.given(options, build), password=_csts_password)
    shared.write(options.out, format_rows(rows))
    corpus = CORPORA[options.corpus]
    tell(
        f"{len(rows):,} rows; {count_contrasts(rows):,} sentence pairs under two conditions.",
        *([RATINGS] if corpus.ours else []),
        f"Pass on with: {corpus.attribution}.",
    )  # fmt: skip


def _csts_password() -> str:
    from condviz.data.csts import ARCHIVE, PASSWORD_VARIABLE, environment_password

    if os.environ.get(PASSWORD_VARIABLE) or not sys.stdin.isatty():
        return environment_password()
    try:
        return getpass.getpass(f"Password of {ARCHIVE}: ")
    except EOFError:
        raise DataError(f"No password was given, and {ARCHIVE} cannot be read without it. Run it again.") from None


def run_lessons(options: argparse.Namespace) -> None:
    """Check the lessons of the Learn tab.

    Every lesson under assets/lessons is read and the figure of every step computed, so that a mistake shows before the
    class does.
    """
    from condviz.data.files import write_text
    from condviz.data.lessons import LESSONS, load_lessons

    require("gradio", "app")
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
