"""Before a training is started: what it may read, and what it will take, by a short measured try."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import torch

from condviz.data import corpora
from condviz.data.examples import load_examples
from condviz.data.kg_formats import EVERYDAY, LARGE, load_graph
from condviz.encoder import DEFAULT_BACKBONE
from condviz.encoder.pretrained import choose_device
from condviz.errors import CondvizError, ConfigError, DataError
from condviz.models.hub import REVISIONS, explain_missing, is_hub_id
from condviz.models.registry import list_models
from condviz.paths import ASSETS, MODEL_FOLDERS
from condviz.training.data import TABLE, Example, load_source
from condviz.training.job import OUT_OF_MEMORY, explain_exit
from condviz.training.probe import ANSWER, Preflight, survey
from condviz.training.recipes import LinkRecipe, Recipe, SentenceRecipe, Source
from condviz.training.worker import take_probe
from condviz.types import Progress

TIMEOUT_S = 300.0
TICK_S = 0.3
"""Between two looks whether somebody still waits for the answer."""


def check(
    recipe: Recipe, *, roots: Sequence[Path] = (), device: str = "auto", progress: Progress = lambda done, total: None
) -> Preflight:
    """Survey a recipe's data and, if they can be trained on, try some batches, in a process of its own.

    Args:
        recipe: For rated sentences or for links, of which the time is not measured.
        roots: As in `admit`: nothing is read that a training would not be let to read.
        device: "auto", "cpu", "cuda" or "mps".
        progress: Called now and then with (0, 0); what it raises ends the check and its process.

    Raises:
        ConfigError: If the device is unknown or not there, or the recipe names a file or model that it may not read.
    """
    device, processes = choose_processes(device)
    try:
        recipe = admit(recipe, roots)
    except DataError as error:
        return Preflight(device=device, problems=(str(error),))
    if not isinstance(recipe, SentenceRecipe):
        return _check_links(cast("LinkRecipe", recipe), device)
    probe = take_probe()
    try:
        asked = {"recipe": recipe.to_dict(), "device": device, "processes": processes}
        return _ask(probe, json.dumps(asked), Preflight(device=device), progress)
    finally:
        probe.kill()
        probe.communicate()


def _ask(probe: subprocess.Popen, request: str, found: Preflight, progress: Progress) -> Preflight:
    """Let a probe check a recipe, and return the last of what it has found, or why it could not."""
    with suppress(OSError):  # it has ended, and says why
        print(request, file=probe.stdin, flush=True)
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            said, complaints = probe.communicate(timeout=TICK_S)
            break
        except subprocess.TimeoutExpired:
            progress(0, 0)
            if time.monotonic() > end:
                slow = f"A try of a few steps did not end in {TIMEOUT_S / 60:.0f} minutes. Take a smaller encoder."
                return replace(found, problems=(slow,))
    answers = [found]
    for line in said.splitlines():
        with suppress(ValueError):  # a half one, or what a library prints
            answers.append(ANSWER.validate_json(line))
    if probe.returncode == 0 and len(answers) > 1:
        return answers[-1]
    found, why = answers[-1], explain_exit(probe.returncode, complaints)
    return replace(found, problems=(OUT_OF_MEMORY if "killed" in why else why,))


def _check_links(recipe: LinkRecipe, device: str) -> Preflight:
    """Survey a graph; how long a step takes is not measured."""
    try:
        graph = load_graph(recipe.graph)
    except CondvizError as error:
        return Preflight(device=device, problems=(str(error),))
    sizes = {part: 2 * len(graph.splits[part]) for part in ("train", "valid")}
    problems = tuple(f"The {part} part of {graph.name} has no triples." for part, size in sizes.items() if not size)
    rows = sizes["train"]
    steps = recipe.epochs * (rows // max(1, min(recipe.batch_size, rows)))
    advice = ("The time is not measured for links; the first epoch shows it.",)
    return Preflight(rows, sizes["valid"], device=device, steps=steps, problems=problems, advice=advice)


# ---- what a job may train on and with --------------------------------------------------------------------------------

PROBED_PAIRS = 3
_NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)


def admit(recipe: Recipe, roots: Sequence[Path]) -> Recipe:
    """Return a recipe with whole paths, so that any process finds them whatever its current folder is, or say why not.

    Tables, graphs and models may be in the folders `roots`, beside those of the corpora and checkpoints.

    Raises:
        ConfigError: If its name is not a plain name, a path is outside of the folders, or, on a Space, encoder or
            models are not among the known ones.
        DataError: If a table cannot be read, or has no rows to learn from.
    """
    if not _NAME.fullmatch(recipe.name):
        raise ConfigError(
            f"name is {recipe.name[:80]!r}; allowed are up to 64 letters a to z, digits, dots, hyphens and "
            "underscores, for instance my-model."
        )
    folders = [Path(root).resolve() for root in (*roots, corpora.data_folder(), *MODEL_FOLDERS)]
    init = _model("init", recipe.init, folders)
    recipe = replace(recipe, backbone=_encoder(recipe.backbone, folders), init=init)
    if isinstance(recipe, LinkRecipe):
        if recipe.graph in (EVERYDAY, *LARGE):
            return recipe
        return replace(recipe, graph=_place("graph", recipe.graph, [*folders, ASSETS / "graph"]))
    assert isinstance(recipe, SentenceRecipe)  # there are two kinds
    recipe = replace(
        recipe,
        train=tuple(_source(source, folders) for source in recipe.train),
        validation=tuple(_source(source, folders) for source in recipe.validation),
        teacher=tuple(_model("teacher", name, folders) for name in recipe.teacher),
    )
    # Building pairs of a corpus takes longer than a click may.
    tables = all(source.name == TABLE for source in (*recipe.train, *recipe.validation))
    if tables and (problems := survey(recipe).found.problems):
        raise DataError(" ".join(problems))
    return recipe


def choose_processes(device: str) -> tuple[str, int]:
    """Return the device that "auto" stands for, and how many processes train on it; errors as in `choose_device`."""
    device = choose_device(device)
    return device, torch.cuda.device_count() if device == "cuda" else 1


def choose_probes(recipe: SentenceRecipe) -> list[tuple[str, str, str]]:
    """Choose pairs to score along the way: of the validation rows, else of the examples of the page.

    Sentence pairs under a condition of high and one of low rating; without such pairs, the rows with the highest and
    the lowest ratings.
    """
    rows = [row for source in recipe.validation for row in load_source(source)]
    ranked = sorted(rows, key=lambda row: -row.label)
    groups: dict[str, list[Example]] = {}
    for row in ranked:
        groups.setdefault(row.group, []).append(row)
    told = [(group[0], group[-1]) for group in groups.values() if group[0].label > group[-1].label]
    if len(told) >= PROBED_PAIRS:
        step = len(told) // PROBED_PAIRS
        return [row.texts for pair in told[: step * PROBED_PAIRS : step] for row in pair]
    if half := min(len(rows) // 2, PROBED_PAIRS):
        return [row.texts for row in (*ranked[:half], *ranked[-half:])]
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
    return name if is_hub_id(name) and not Path(name).exists() else _place("backbone", name, folders)


def _model(key: str, name: str, folders: Sequence[Path]) -> str:
    models = list_models()
    if not name or name in models:
        return name
    if name in REVISIONS:  # it ships, and is not here
        raise ConfigError(f"{key} is {name}. {explain_missing(name)}")
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
    strangers = os.environ.get("SPACE_ID")  # need not know where on the server things lie
    if not allowed:
        listed = "" if strangers else f": {', '.join(map(str, dict.fromkeys(folders)))}"
        remedy = "Upload the table." if strangers else "Upload the table, or copy it there."
        raise ConfigError(f"{key} {path[:200]} is outside of the folders that trainings read from{listed}. {remedy}")
    found = next((place for place in allowed if place.exists()), None)
    if found is None:
        parents = "" if strangers else f" in {', '.join(dict.fromkeys(str(place.parent) for place in allowed))}"
        raise DataError(f"{key} {path[:200]}: there is no such file{parents}.")
    return str(found)
