"""The commands `train` and `jobs`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from typing import Any

from condviz.cli import jobs
from condviz.errors import ConfigError

SHOWN = ("spearman", "pearson", "pair_accuracy")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to a parser."""
    parser = commands.add_parser(
        "train",
        help="train a model by a recipe",
        description="Train a model as a recipe says (assets/recipes/*.toml) and leave a checkpoint. On several GPUs: "
        "accelerate launch -m condviz train RECIPE.",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a TOML file")
    parser.add_argument("--out", metavar="FOLDER", help="the checkpoint (default: checkpoints/NAME, of the recipe)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted training; skip a finished one")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipe: epochs=1, loss.mse=0.5, ..."
    )
    parser.add_argument(
        "--follow", action="store_true", help="train as a job, which outlives this terminal, and show how it goes"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    parser.set_defaults(command=run)
    jobs.add_to(commands)


def run(options: argparse.Namespace) -> None:
    """Train, with a bar and the scores of each evaluation on standard error; print the checkpoint."""
    from condviz.cli import train_links
    from condviz.training.recipes import load_recipe, read_toml

    content = read_toml(options.recipe)
    if "graph" in content:  # a knowledge graph
        if options.follow:
            raise ConfigError(
                "Models of knowledge graphs are trained without --follow: jobs are for those of sentences."
            )
        train_links.run(content, options)
        return
    recipe = load_recipe(options.recipe, options.set)
    if options.follow:
        jobs.start(recipe, options)
        return
    from tqdm import tqdm

    from condviz.training.trainer import train  # takes seconds to import

    with tqdm(desc=recipe.name, unit="step", disable=not sys.stderr.isatty(), leave=False) as bar:

        def report(record: Mapping[str, Any]) -> None:
            if "steps" in record:
                bar.total = record["steps"]
                bar.update(record["step"] - bar.n)
            if record["event"] == "evaluation":
                scores = ", ".join(f"{name} {record[name]}" for name in SHOWN)
                bar.write(f"step {record['step']} of {record['steps']}: {scores}", file=sys.stderr)

        try:
            folder = train(recipe, options.out, resume=options.resume, device=options.device, report=report)
        except KeyboardInterrupt:
            bar.write("What was saved is kept; go on with --resume.", file=sys.stderr)
            raise
    if os.environ.get("RANK", "0") == "0":  # of several processes, the first speaks
        sys.stdout.write(f"{folder}\n")
