"""The command `train` with a recipe of knowledge-graph completion."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from condviz.errors import ConfigError
from condviz.training.kgc_recipes import from_dict

SHOWN = ("MRR", "hits@1", "hits@3", "hits@10")


def run(content: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Train, with a bar and the figures of each epoch on standard error; print the checkpoint.

    Raises:
        ConfigError: If the recipe is wrong, or the options ask for what such a training cannot do.
    """
    if options.resume or options.follow:
        raise ConfigError(
            "A recipe with a graph trains in one go. Leave out --resume and --follow; lower epochs to make it short."
        )
    try:
        recipe = from_dict(content, options.set)
    except ConfigError as error:
        raise ConfigError(f"{options.recipe}: {error}") from error
    from tqdm import tqdm

    from condviz.training.kgc_trainer import train_links  # takes seconds to import

    with tqdm(desc=recipe.name, disable=not sys.stderr.isatty(), leave=False) as bar:

        def report(record: Mapping[str, Any]) -> None:
            if record["event"] == "evaluation":
                figures = ", ".join(f"{name} {100 * record[name]:.1f}" for name in SHOWN)
                bar.write(f"step {record['step']} of {record['steps']}, validation: {figures}", file=sys.stderr)
            elif record["event"] != "end":
                bar.total, bar.unit = record["steps"], "text" if record["event"] == "encode" else "step"
                bar.update(record["step"] - bar.n)

        folder = train_links(recipe, options.out, device=options.device, report=report)
    sys.stdout.write(f"{folder}\n")
