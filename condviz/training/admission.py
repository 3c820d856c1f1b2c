"""What a job may train on and with: every entry of a recipe that can name a path passes here, before it is opened.

A recipe may come from a visitor, so that the check in front of a training and the training itself ask the same
question, and the answer does not tell whether a file outside of the allowed folders exists.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from condviz.data import corpora
from condviz.data.examples import load_examples
from condviz.encoder import DEFAULT_BACKBONE
from condviz.encoder.pretrained import choose_device
from condviz.errors import ConfigError, DataError
from condviz.models.registry import list_models
from condviz.paths import ASSETS, CHECKPOINTS
from condviz.training.data import TABLE, Example, load_source, survey
from condviz.training.recipes import LinkRecipe, Recipe, SentenceRecipe, Source

PROBED_PAIRS = 3
GRAPHS = ("wn18rr", "fb15k237")
_NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def admit(recipe: Recipe, roots: Sequence[Path]) -> Recipe:
    """Admit a recipe, or say why not.

    Args:
        recipe: The recipe.
        roots: Folders that tables, graphs and models may be in, beside those of the corpora and checkpoints.

    Returns:
        The same with whole paths, so that any process finds them whatever its current folder is.

    Raises:
        ConfigError: If its name is not a plain name, a path is outside of the folders, or, on a Space, encoder or
            models are not among the known ones.
        DataError: If a table cannot be read, or has no rows to learn from.
    """
    if not _NAME.fullmatch(recipe.name):
        raise ConfigError(
            f"name is {recipe.name[:80]!r}; allowed are up to 64 letters, digits, dots, hyphens and underscores."
        )
    folders = [Path(root).resolve() for root in (*roots, corpora.data_folder(), CHECKPOINTS)]
    recipe = replace(recipe, backbone=_encoder(recipe.backbone, folders))
    if isinstance(recipe, LinkRecipe):
        return recipe if recipe.graph in GRAPHS else replace(recipe, graph=_place("graph", recipe.graph, folders))
    recipe = replace(
        recipe,
        train=tuple(_source(source, folders) for source in recipe.train),
        validation=tuple(_source(source, folders) for source in recipe.validation),
        init=_model("init", recipe.init, folders) if recipe.init else "",
        teacher=tuple(_model("teacher", name, folders) for name in recipe.teacher),
    )
    _check_tables(recipe)
    return recipe


def choose_processes(device: str) -> tuple[str, int]:
    """Return the device that "auto" stands for, and how many processes train on it.

    Raises:
        ConfigError: If the device is unknown or not there.
    """
    device = choose_device(device)
    return device, torch.cuda.device_count() if device == "cuda" else 1


def choose_probes(recipe: SentenceRecipe) -> list[tuple[str, str, str]]:
    """Choose pairs to score along the way: of the validation rows, else of the examples of the page.

    Sentence pairs under a condition of high and one of low rating; without such pairs, the rows with the highest and
    the lowest ratings.
    """
    rows = [row for source in recipe.validation for row in load_source(source)]
    groups: dict[str, list[Example]] = {}
    for row in sorted(rows, key=lambda row: -row.label):
        groups.setdefault(row.group, []).append(row)
    told = [(group[0], group[-1]) for group in groups.values() if group[0].label > group[-1].label]
    if len(told) >= PROBED_PAIRS:
        step = len(told) // PROBED_PAIRS
        return [row.texts for pair in told[: step * PROBED_PAIRS : step] for row in pair]
    if len(rows) >= 2 * PROBED_PAIRS:
        ranked = sorted(rows, key=lambda row: -row.label)
        return [row.texts for row in (*ranked[:PROBED_PAIRS], *ranked[-PROBED_PAIRS:])]
    return [
        (example.sentence1, example.sentence2, condition)
        for example in load_examples()[:PROBED_PAIRS]
        for condition in example.conditions[:2]
    ]


@cache
def known_backbones() -> list[str]:
    """List the encoders of the shipped recipes, the default one first."""
    recipes = (tomllib.loads(path.read_text(encoding="utf-8")) for path in (ASSETS / "recipes").glob("*.toml"))
    named = {recipe.get("backbone", DEFAULT_BACKBONE) for recipe in recipes}
    return [DEFAULT_BACKBONE, *sorted(named - {DEFAULT_BACKBONE})]


def _encoder(name: str, folders: Sequence[Path]) -> str:
    if name in known_backbones():
        return name
    if os.environ.get("SPACE_ID"):
        raise ConfigError(f"backbone is {name[:200]!r}; on this Space it is one of {', '.join(known_backbones())}.")
    # A folder of this name in the current one would be loaded instead of the hub's.
    return name if _HUB_ID.fullmatch(name) and not Path(name).exists() else _place("backbone", name, folders)


def _model(key: str, name: str, folders: Sequence[Path]) -> str:
    models = list_models()
    if name in models:
        return name
    if os.environ.get("SPACE_ID"):
        raise ConfigError(f"There is no model {name[:200]!r} on this Space; {key} takes {', '.join(models)}.")
    return _place(key, name, folders)


def _source(source: Source, folders: Sequence[Path]) -> Source:
    return replace(source, path=_place("path", source.path, folders)) if source.name == TABLE else source


def _place(key: str, path: str, folders: Sequence[Path]) -> str:
    """Return a whole path, if it is in one of the folders; links are followed first."""
    try:
        places = [place.resolve() for place in (Path(path), corpora.data_folder() / path)]
    except (OSError, ValueError, RuntimeError) as error:  # a null character, a circle of links
        raise ConfigError(f"{key} is {path[:200]!r}, which is not a path.") from error
    allowed = [place for place in places if any(place.is_relative_to(folder) for folder in folders)]
    if not allowed:
        raise ConfigError(
            f"{key} {path[:200]} is outside of the folders that trainings read from: "
            f"{', '.join(map(str, dict.fromkeys(folders)))}. Upload the table, or copy it there."
        )
    found = next((place for place in allowed if place.exists()), None)
    if found is None:
        parents = ", ".join(dict.fromkeys(str(place.parent) for place in allowed))
        raise DataError(f"{key} {path[:200]}: there is no such file in {parents}.")
    return str(found)


def _check_tables(recipe: SentenceRecipe) -> None:
    # Building pairs of a corpus takes longer than a click may.
    if all(source.name == TABLE for source in (*recipe.train, *recipe.validation)):
        problems = survey(recipe).problems
        if problems:
            raise DataError(" ".join(problems))
