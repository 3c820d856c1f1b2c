"""What there is: the commands `models`, `push`, `calibrate`, `data` and `lessons`."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

from condviz.cli import options as shared
from condviz.cli.options import add_command, format_table, load_asked, progress_bar, tell
from condviz.data import corpora
from condviz.data.corpus import count_contrasts, format_rows
from condviz.errors import CheckpointError, ConfigError, DataError, require
from condviz.types import plain

RATINGS = (
    "Scenes and tables were written for this project by a language model; their ratings follow by rule from stated "
    "values. Nobody rated these pairs."
)
HEAD = ("name", "method", "kind", "trained", "added parameters", "source", "paper")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to a parser."""
    add_command(commands, "models", run, shared.form())
    parser = add_command(commands, "push", run_push)
    parser.add_argument("model", metavar="NAME", help="name or folder")
    parser.add_argument("repository", metavar="OWNER/NAME", help="is made where it does not exist")
    parser.add_argument("--private", action="store_true", help="make the repository private")
    models = shared.models("all that ship or were trained here")
    parser = add_command(commands, "calibrate", run_calibrate, models, shared.device("float32"))
    parser.add_argument("--pairs", type=int, default=400, help="sentence pairs of each source, at most (default: 400)")
    data = add_command(commands, "data", _list, shared.form())
    actions = data.add_subparsers(title="actions", metavar="build")
    parser = add_command(actions, "build", _build, shared.of_function(corpora.build))
    parser.add_argument("corpus", metavar="NAME", help="as listed by `condviz data`")
    text = "train, dev, test, or another part that is listed"
    parser.add_argument("--split", required=True, metavar="PART", help=text)
    text = "CSV file to write, or - for standard output"
    parser.add_argument("--out", required=True, type=shared.target, metavar="FILE", help=text)
    parser = add_command(commands, "lessons", run_lessons)
    parser.add_argument("--store", action="store_true", help="keep the results: shown until the models are loaded")


def run(options: argparse.Namespace) -> None:
    """List the models that can be loaded."""
    from condviz.models.hub import REVISIONS, explain_missing
    from condviz.models.registry import describe, link_models, list_models

    infos, broken = [], {}
    for name in (*list_models(), *link_models()):
        try:
            infos.append(describe(name))
        except CheckpointError as error:
            broken[name] = str(error)
    rows = []
    for info in infos:
        facts = "yes" if info.trained else "no", f"{info.added_parameters:,}", info.source, info.reference
        rows.append((info.name, info.title, info.kind, *facts))
    notes = [f"{info.name}: {info.missing} condviz.load downloads it at first use." for info in infos if info.missing]
    notes += [f"{name} is damaged: {why}" for name, why in broken.items()]
    shared.show(
        options,
        text=lambda: "\n".join([format_table(HEAD, rows, right={4}), *notes]),
        json=lambda: [*map(plain, infos), *({"name": name, "broken": why} for name, why in broken.items())],
    )
    if absent := [name for name in REVISIONS if name not in {info.name for info in infos} | broken.keys()]:
        tell(f"Not on this machine: {', '.join(absent)}. {explain_missing(absent[0])}")


def run_push(options: argparse.Namespace) -> None:
    """Put a trained model on the Hugging Face hub.

    It is in the form that condviz.load and sentence-transformers open. Log in first: hf auth login, or HF_TOKEN.
    """
    from condviz.models.hub import refusals
    from condviz.models.registry import find_folder, load

    with refusals(options.repository):
        model = load(find_folder(options.model), device="cpu", precision="float32")
        print(model.push_to_hub(options.repository, private=options.private))


def run_calibrate(options: argparse.Namespace) -> None:
    """Fit ratings from 1 to 5 to the scores of a model.

    They are fitted on rated rows of scenes, tables and, where the files are there, reviews, and go into condviz.json of
    each checkpoint; its weights stay.
    """
    from condviz.evaluation.csts import calibrate, read_rows, store_calibration
    from condviz.models.registry import describe, list_models

    names = options.model or [name for name in list_models() if describe(name).source == "checkpoint"]
    for name in names:
        if not (info := describe(name)).path or info.graph:
            raise ConfigError(f"{name} has no checkpoint of a model of sentences to keep ratings in. Name another one.")
    rows, table = read_rows(options.pairs), []
    options.model = names
    for name, model in load_asked(options):
        with progress_bar(name, "texts") as update:
            found = calibrate(model, rows, progress=update)
        store_calibration(Path(describe(name).path), found)
        ends = found.rate(found.scores)[[0, -1]]
        table.append((name, f"{sum(found.rows.values()):,}", f"{found.error:.2f}", *(f"{end:.1f}" for end in ends)))
    print(f"Rows: {', '.join(f'{source} {len(part):,}' for source, part in rows.items())}")
    print(format_table(("model", "rows", "calibration error", "lowest reading", "highest reading"), table))


# ---- corpora and lessons ---------------------------------------------------------------------------------------------
def _list(options: argparse.Namespace) -> None:
    """List the corpora, and build pairs.

    Of each: licence, source, expected files, what was found. They are looked for in the folder CONDVIZ_DATA, else in
    ../shared/data.
    """
    surveys = [corpora.survey(name) for name in corpora.CORPORA]
    text = partial("\n\n".join, [*map(_survey, surveys), RATINGS])
    shared.show(options, text, json=lambda: [item.to_dict() for item in surveys])


def _survey(item: corpora.CorpusSurvey) -> str:
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
    asked = shared.given(options, corpora.build)
    rows = corpora.build(options.corpus, options.split, **asked, password=_csts_password)
    shared.write(options.out, format_rows(rows))
    corpus = corpora.CORPORA[options.corpus]
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
