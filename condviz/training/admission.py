"""What a job may train on and with, checked before it is put into the queue."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from condviz.data import corpora
from condviz.data.examples import load_examples
from condviz.encoder.pretrained import DEFAULT_BACKBONE, choose_device
from condviz.errors import ConfigError, DataError
from condviz.models.registry import list_models
from condviz.paths import ASSETS
from condviz.training.loop import Probe
from condviz.training.recipes import Source, TrainRecipe
from condviz.training.sources import TABLE, find_table
from condviz.training.survey import survey

NUM_PROBES = 5


def admit(recipe: TrainRecipe, roots: Sequence[Path]) -> TrainRecipe:
    """Let a recipe pass, or say why not.

    Args:
        recipe: The recipe.
        roots: Folders that tables may lie in, beside that of the corpora.

    Returns:
        The same, with tables where any process finds them, whatever its current folder is.

    Raises:
        ConfigError: If its name is no plain name, a table lies elsewhere, or, on a Space, encoder or models are not
            among the known ones.
        DataError: If a table cannot be read, or has no rows to learn from.
    """
    if not re.fullmatch(r"\w[\w.-]{0,63}", recipe.name, re.ASCII):
        raise ConfigError(
            f"name is {recipe.name[:80]!r}; allowed are up to 64 letters, digits, dots, hyphens and underscores."
        )
    placed = {
        name: tuple(_place(source, roots) for source in getattr(recipe, name)) for name in ("train", "validation")
    }
    recipe = replace(recipe, **placed)
    if os.environ.get("SPACE_ID"):
        _check_known(recipe)
    # Building pairs of a corpus takes longer than a click may.
    if all(source.name == TABLE for source in (*recipe.train, *recipe.validation)):
        problems = survey(recipe).problems
        if problems:
            raise DataError(" ".join(problems))
    return recipe


def choose_processes(device: str) -> tuple[str, int]:
    """Give the device that "auto" stands for, and how many processes train on it.

    Raises:
        ConfigError: If the device is unknown or not there.
    """
    device = choose_device(device)
    return device, torch.cuda.device_count() if device == "cuda" else 1


def default_probes(number: int = NUM_PROBES) -> list[Probe]:
    """Give pairs to watch: of the first examples of the page, in turns one under which they are alike, and unlike."""
    found: list[Probe] = []
    for example in load_examples():
        wanted = ("high", "low")[len(found) % 2]
        if wanted in example.expected:
            condition = example.conditions[example.expected.index(wanted)]
            found.append((example.sentence1, example.sentence2, condition))
    return found[:number]


def known_backbones() -> list[str]:
    """Give the encoders of the shipped recipes, the default one first."""
    recipes = (tomllib.loads(path.read_text(encoding="utf-8")) for path in (ASSETS / "recipes").glob("*.toml"))
    named = {recipe.get("backbone", DEFAULT_BACKBONE) for recipe in recipes}
    return [DEFAULT_BACKBONE, *sorted(named - {DEFAULT_BACKBONE})]


def _place(source: Source, roots: Sequence[Path]) -> Source:
    """Give a source with its table as a whole path, if it lies where it may."""
    if source.name != TABLE:
        return source
    found = find_table(source.path).resolve()  # links are followed first
    allowed = [Path(root).resolve() for root in (*roots, corpora.data_folder())]
    if not any(found.is_relative_to(root) for root in allowed):
        raise ConfigError(
            f"{source.path} lies outside of the folders that trainings read from: {', '.join(map(str, allowed))}. "
            "Upload the table, or copy it there."
        )
    return replace(source, path=str(found))


def _check_known(recipe: TrainRecipe) -> None:
    encoders, models = known_backbones(), list_models()
    if recipe.backbone not in encoders:
        raise ConfigError(f"backbone is {recipe.backbone!r}; on this Space it is one of {', '.join(encoders)}.")
    for name in filter(None, (recipe.init, *recipe.teacher)):
        if name not in models:
            raise ConfigError(f"There is no model {name!r} on this Space; init and teacher take {', '.join(models)}.")
