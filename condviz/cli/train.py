"""The commands `train` and `jobs`: train here, or in processes of their own, without the page."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condviz.cli.options import add_command, form, given, of_function, progress_bar, reading, show, tell, write
from condviz.data.pairs import read_pairs
from condviz.errors import ConfigError, TrainingError, TrainingStopped
from condviz.models.registry import load
from condviz.training.job import UNFINISHED, Job
from condviz.training.jobs import Jobs
from condviz.training.trainer import train

if TYPE_CHECKING:
    from condviz.training.recipes import Recipe

LOOK_S = 0.5
ACTIONS = {
    "follow": "show its log until it ends; Ctrl-C leaves it running",
    "stop": "save its state and stop; --force ends it at once",
    "resume": "go on from the last saved state",
    "rerun": "start the same recipe again",
    "delete": "remove it with its uploads and its model; --keep-model leaves the model",
}
SHOWN = ("spearman", "pearson", "pair_accuracy", "MRR", "hits@1", "hits@3", "hits@10")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands `train` and `jobs` to a parser."""
    parents = of_function(load, only=["backend"], defaults={"backend": None}), of_function(train), reading()
    parser = add_command(commands, "train", run, *parents)
    parser.add_argument("recipe", metavar="RECIPE", help="a TOML file")
    text = "change the recipe: epochs=1, loss.mse=0.5, ..."
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=text)
    text = "train this encoder, not the recipe's: --set backbone=..."
    parser.add_argument("--backbone", metavar="HUB_ID_OR_FOLDER", help=text)
    text = "train as a job, which outlives this terminal, and follow it"
    parser.add_argument("--follow", action="store_true", help=text)
    jobs = add_command(commands, "jobs", run_jobs, form(), of_function(Jobs.stop), of_function(Jobs.delete))
    lines = "; ".join(f"{action}: {text}" for action, text in ACTIONS.items())
    jobs.add_argument("action", nargs="?", choices=[*ACTIONS], help=f"what to do (default: list all). {lines}")
    jobs.add_argument("job", nargs="?", metavar="JOB", help="id of a job, or the name of its model")


def run(options: argparse.Namespace) -> None:
    """Train a model by a recipe.

    A recipe (assets/recipes/*.toml) trains on rated sentence pairs or on the links of a knowledge graph, and leaves a
    checkpoint. On several GPUs: accelerate launch -m condviz train RECIPE.
    """
    from condviz.training.recipes import load_recipe

    encoder = [f"backbone={options.backbone}"] if options.backbone else []
    recipe = _read_tables(load_recipe(options.recipe, [*options.set, *encoder]), options)
    if options.follow:
        start(recipe, options)
        return

    with progress_bar(recipe.name, "steps") as update:

        def report(record: Mapping[str, Any]) -> None:
            if "steps" in record:
                update(record["step"], record["steps"])
            if record["event"] == "evaluation":
                shown = {name: record[name] for name in SHOWN if record.get(name) is not None}
                scores = ", ".join(f"{name} {value:.4g}" for name, value in shown.items())
                sys.stderr.write(f"step {record['step']} of {record['steps']}: {scores}\n")

        try:
            done = train(recipe, **given(options, train), report=report)
        except TrainingStopped as stopped:
            tell(str(stopped))
            sys.exit(128 + stopped.signal)
        except KeyboardInterrupt:
            tell("What was saved is kept; go on with --resume.")
            raise
    if os.environ.get("RANK", "0") == "0":  # of several processes, the first speaks
        sys.stdout.write(f"{done.folder}\n")


def _read_tables(recipe: Recipe, options: argparse.Namespace) -> Recipe:
    """Return the recipe with its tables read as asked, after telling what is left out of them."""
    from condviz.training.data import TABLE, read_as, read_source
    from condviz.training.recipes import SentenceRecipe

    if not isinstance(recipe, SentenceRecipe):
        return recipe
    recipe = read_as(recipe, given(options, read_pairs))
    for source in (*recipe.train, *recipe.validation):
        if source.name == TABLE:
            report = read_source(source).report
            tell(*(f"{source.path}: {note}" for note in report.notes))
            if options.left_out and report.left_out:
                write(options.left_out, report.left_out_csv())
    return recipe


def run_jobs(options: argparse.Namespace) -> None:
    """List the trainings that run, wait or have ended, stop and resume them."""
    jobs = Jobs()
    if options.action is None:
        _print(found := jobs.list(), options)
        if not found:
            tell("There are no trainings. Start one: condviz train RECIPE --follow")
        return
    if options.job is None:
        raise ConfigError(f"Which job? Give its id: condviz jobs {options.action} ID. `condviz jobs` lists them.")
    named = [job for job in jobs.list() if job.name == options.job]
    job = named[0] if named else jobs.get(options.job)
    if options.action == "follow":
        follow(jobs, job)
        return
    act = getattr(Jobs, options.action)
    if (changed := act(jobs, job.id, **given(options, act))) is not None:  # it is still there
        _print([changed], options)


def start(recipe: Recipe, options: argparse.Namespace) -> None:
    """Train as a job and follow it; with `--resume`, go on with the newest job of this recipe."""
    if options.out:
        raise ConfigError("--out goes without --follow: a job puts its model beside the others, under its name.")
    jobs = Jobs(roots=(Path(Path.cwd().anchor),))  # who types here may train on whatever they may read
    if not options.resume:
        follow(jobs, jobs.submit(recipe, device=options.device))
        return
    found = next((job for job in jobs.list() if job.name == recipe.name and job.can_resume), None)
    if found is None:
        raise TrainingError(f"No job of the name {recipe.name!r} can go on. Start one without --resume.")
    follow(jobs, jobs.resume(found.id))


def follow(jobs: Jobs, job: Job) -> None:
    """Copy the log of a job to standard error until it ends; print its model."""
    sys.stderr.write(f"Job {job.id} ({job.name}). Ctrl-C leaves it running: condviz jobs follow {job.id}\n")
    place = 0
    while True:
        job = jobs.get(job.id)
        with suppress(OSError), (job.folder / "log.txt").open("rb") as file:
            file.seek(place)
            content = file.read()
            sys.stderr.write(content.decode("utf-8", "replace"))
            place += len(content)
        if job.state not in UNFINISHED:
            break
        time.sleep(LOOK_S)
    if job.state != "done":
        raise TrainingError(f"Job {job.id} has ended: {job.state}. {job.reason}")
    sys.stdout.write(f"{job.out}\n")


def _print(found: list[Job], options: argparse.Namespace) -> None:
    show(options, lambda: "\n".join(map(_line, found)), lambda: list(map(_facts, found)))


def _line(job: Job) -> str:
    steps = f"{job.heartbeat.step} of {job.heartbeat.steps}" if job.heartbeat.steps else ""
    left = "" if job.seconds_left is None else f"{job.seconds_left / 60:.0f} min left"
    return f"{job.id}  {job.name:24} {job.state:8} {steps:14} {left or job.reason}"


def _facts(job: Job) -> dict[str, object]:
    facts = {name: getattr(job, name) for name in ("id", "name", "state", "reason", "elapsed", "seconds_left")}
    beat = {name: getattr(job.heartbeat, name) for name in ("step", "steps", "tokens_per_second")}
    return {**facts, **beat, "device": job.status.device, "folder": str(job.folder), "out": str(job.out)}
