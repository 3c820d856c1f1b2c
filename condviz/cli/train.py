"""The command `train`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from condviz.cli import jobs

if TYPE_CHECKING:
    from condviz.training.recipes import Recipe

SHOWN = ("spearman", "pearson", "pair_accuracy", "MRR", "hits@1", "hits@3", "hits@10")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands `train` and `jobs` to a parser."""
    parser = commands.add_parser(
        "train",
        help="train a model by a recipe",
        description="Train a model by a recipe (assets/recipes/*.toml), on rated sentence pairs or on the links of a "
        "knowledge graph, and leave a checkpoint. On several GPUs: accelerate launch -m condviz train RECIPE.",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a TOML file")
    parser.add_argument("--out", metavar="FOLDER", help="the checkpoint (default: checkpoints/NAME, of the recipe)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted training; skip a finished one")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipe: epochs=1, loss.mse=0.5, ..."
    )
    parser.add_argument(
        "--follow", action="store_true", help="train as a job, which outlives this terminal, and follow it"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    parser.set_defaults(command=run)
    jobs.add_to(commands)


def run(options: argparse.Namespace) -> None:
    """Train, with a bar and the scores of each evaluation on standard error; print the checkpoint."""
    from condviz.training.recipes import load_recipe

    recipe = load_recipe(options.recipe, options.set)
    if options.follow:
        jobs.start(recipe, options)
    else:
        _train(recipe, options)


def _train(recipe: Recipe, options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from condviz.training.trainer import train  # takes seconds to import

    with tqdm(desc=recipe.name, disable=not sys.stderr.isatty(), leave=False) as bar:

        def report(record: Mapping[str, Any]) -> None:
            if "steps" in record:
                bar.total, bar.unit = record["steps"], "text" if record["event"] == "encode" else "step"
                bar.update(record["step"] - bar.n)
            if record["event"] == "evaluation":
                shown = {name: record[name] for name in SHOWN if record.get(name) is not None}
                scores = ", ".join(f"{name} {value:.4g}" for name, value in shown.items())
                bar.write(f"step {record['step']} of {record['steps']}: {scores}", file=sys.stderr)

        try:
            done = train(recipe, out=options.out, resume=options.resume, device=options.device, report=report)
        except KeyboardInterrupt:
            bar.write("What was saved is kept; go on with --resume.", file=sys.stderr)
            raise
    if os.environ.get("RANK", "0") == "0":  # of several processes, the first speaks
        sys.stdout.write(f"{done.folder}\n")
