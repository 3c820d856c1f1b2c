"""The commands `models`, `push` and `calibrate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from condviz.cli import options as shared
from condviz.cli.options import add_command, format_table, load_asked, progress_bar, tell
from condviz.errors import CheckpointError, ConfigError
from condviz.types import plain

HEAD = ("name", "method", "kind", "trained", "added parameters", "source", "paper")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    add_command(commands, "models", run, shared.form())
    parser = add_command(commands, "push", run_push)
    parser.add_argument("model", metavar="NAME", help="name or folder")
    parser.add_argument("repository", metavar="OWNER/NAME", help="is made where it does not exist")
    parser.add_argument("--private", action="store_true", help="make the repository private")
    models = shared.models("all that ship or were trained here")
    parser = add_command(commands, "calibrate", run_calibrate, models, shared.device("float32"))
    parser.add_argument("--pairs", type=int, default=400, help="sentence pairs of each source, at most (default: 400)")


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
    from condviz.evaluation.calibration import calibrate, read_rows, store
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
        store(Path(describe(name).path), found)
        ends = found.rate(found.scores)[[0, -1]]
        table.append((name, f"{sum(found.rows.values()):,}", f"{found.error:.2f}", *(f"{end:.1f}" for end in ends)))
    print(f"Rows: {', '.join(f'{source} {len(part):,}' for source, part in rows.items())}")
    print(format_table(("model", "rows", "calibration error", "lowest reading", "highest reading"), table))
