"""Before a training is started: what it may read, and what it will take, by a short measured try."""

from __future__ import annotations

import heapq
import json
import math
import os
import random
import re
import subprocess
import threading
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch

from condviz.data import corpora
from condviz.data.examples import load_examples
from condviz.data.kg_formats import EVERYDAY, LARGE, load_graph
from condviz.encoder import DEFAULT_BACKBONE
from condviz.encoder.pretrained import choose_device
from condviz.errors import CondvizError, ConfigError, DataError
from condviz.methods.catalog import CATALOG
from condviz.models.hub import REVISIONS, explain_missing, is_hub_id
from condviz.models.registry import list_models
from condviz.paths import ASSETS, MODEL_FOLDERS
from condviz.training.data import (
    TABLE,
    Example,
    MixedOrder,
    Unit,
    count_texts,
    load_rows,
    load_source,
    make_units,
    read_examples,
    units_per_batch,
)
from condviz.training.job import OUT_OF_MEMORY, explain_exit
from condviz.training.recipes import LinkRecipe, Recipe, SentenceRecipe, Source
from condviz.training.worker import take_probe
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.training.probe import Measured


T = TypeVar("T")
TIMED_BATCHES = 2
SCORED_ROWS = 32
LONGEST_TEXTS = 64
TIMEOUT_S = 300.0
TICK_S = 0.3
"""Between two looks whether somebody still waits for the answer."""
MIN_ROWS = 16
"""Fewer rows than this teach nothing that holds for others."""
FEW_ROWS = 200
_lock = threading.Lock()
_kept: tuple[tuple[Any, ...], Future[Survey]] | None = None
"""What decides a survey, and the survey: whoever checks a recipe changes something and checks again."""


@dataclass(frozen=True)
class Survey:
    """What a recipe's data look like."""

    rows: int = 0
    """Rows that are trained on, once each."""
    validation_rows: int = 0
    """Rows that decide which weights are kept."""
    dropped: int = 0
    """Rows of the files that are not used: repeated, without a label, or without a partner in batches of pairs."""
    units: tuple[tuple[Unit, ...], ...] = ()
    """What is shuffled, of each source: rows, pairs of rows, or blocks."""
    validation: tuple[Example, ...] = ()
    problems: tuple[str, ...] = ()
    """Why a training cannot begin, in words."""
    advice: tuple[str, ...] = ()


def survey(recipe: SentenceRecipe) -> Survey:
    """Survey the data of a recipe; what is wrong is returned in `problems`, not raised."""
    try:
        parts, raw, notes = [], 0, []
        for source in recipe.train:
            is_table = source.name == TABLE and recipe.batching != "blocks"
            part, table = read_examples(source) if is_table else (load_rows(source, recipe), None)
            parts.append(part)
            raw += len(table.pairs) + len(table.report.left_out) if table else len(part)
            notes += table.notes if table else ()
        units = [make_units(part, recipe.batching) for part in parts]
        validation = [row for source in recipe.validation for row in load_source(source)]
    except CondvizError as error:
        return Survey(problems=(str(error),))
    rows = [row for part in units for unit in part for row in unit]
    said = tuple(_problems(recipe, rows, validation)), (*notes, *_advice(rows, validation))
    return Survey(len(rows), len(validation), raw - len(rows), tuple(map(tuple, units)), tuple(validation), *said)


def _problems(recipe: SentenceRecipe, rows: Sequence[Example], validation: Sequence[Example]) -> Iterator[str]:
    labels, ranked = {row.label for row in rows}, {row.label for row in validation}
    if len(rows) < MIN_ROWS:
        yield f"There are only {len(rows)} rows to train on; at least {MIN_ROWS} are needed, hundreds are better."
    elif recipe.batching != "blocks" and recipe.batch_size > len(rows):
        fitting = 2 ** (len(rows).bit_length() - 1)
        yield f"batch_size is {recipe.batch_size}, but there are only {len(rows)} rows. Set it to {fitting}."
    if len(labels) == 1 and not recipe.loss.teacher:
        yield (
            f"Every row has the label {labels.pop():g}, so there is nothing to tell apart. Add rows with other labels, "
            "from 1 (different) to 5 (same)."
        )
    if recipe.keep == "best" and len(ranked) == 1:
        yield (
            f"Every validation row has the label {ranked.pop():g}: no model ranks them better than another. Add other "
            'labels, or set keep = "last".'
        )


def _advice(rows: Sequence[Example], validation: Sequence[Example]) -> Iterator[str]:
    if MIN_ROWS <= len(rows) < FEW_ROWS:
        yield f"{len(rows)} rows are few: expect a model that knows these conditions and no others."
    labels: dict[tuple[str, str, str], set[float]] = defaultdict(set)
    for row in rows:
        labels[row.texts].add(row.label)
    if disputed := sum(len(given) > 1 for given in labels.values()):
        yield f"{disputed} triples of texts have several labels; the model learns their mean."
    if shared := sum(row.texts in labels for row in validation):
        yield (
            f"{shared} of {len(validation)} validation rows are also trained on: their scores will look better than "
            "those on new rows."
        )
    if not validation:
        yield "Without validation rows there is no curve of scores, and the last weights are kept."


@dataclass(frozen=True)
class Preflight(Survey):
    """What a training will take: what was found of its data, without the rows themselves, and what was measured."""

    device: str = ""
    """One of "cpu", "cuda", "mps"."""
    steps: int = 0
    """Steps of the optimizer; 0 where a projection is fitted."""
    minutes: float | None = None
    """Expected, from the measured try; None if it was not made or did not end."""
    memory: int | None = None
    """Bytes at the peak; None like minutes."""


def check(
    recipe: Recipe, *, roots: Sequence[Path] = (), device: str = "auto", progress: Progress = lambda done, total: None
) -> Preflight:
    """Survey a recipe's data and, if they can be trained on, try some batches in a process of its own.

    Args:
        recipe: The recipe.
        roots: As in `condviz.training.preflight.admit`: nothing is read that a training would not be let to read.
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
    with _start_probe(recipe, device) as probe:
        found = _follow(read(recipe), progress)
        steps = count_steps(recipe, found, processes)
        facts: dict[str, Any] = vars(replace(found, units=(), validation=()))
        told = Preflight(**facts, device=device, steps=steps)
        if told.problems:
            return told
        tried = _try(probe, _sample(recipe, found), progress)
    if isinstance(tried, str):
        return replace(told, problems=(tried,))
    told = replace(told, memory=tried.memory)
    if tried.cut_texts:
        count = f"At least {tried.cut_texts}" if tried.cut_texts == LONGEST_TEXTS else str(tried.cut_texts)
        cut = f"{count} of the texts are longer than {recipe.backbone} reads; their ends are cut off."
        told = replace(told, advice=(*told.advice, cut))
    if tried.batch is None:
        return replace(told, problems=(_too_large(recipe, tried),))
    return replace(told, minutes=_seconds(recipe, found, steps, tried) / 60)


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


def count_steps(recipe: SentenceRecipe, found: Survey, processes: int = 1) -> int:
    """Count the steps of the optimizer of a whole training."""
    if recipe.method_config().fitted or not found.units:
        return 0
    order = MixedOrder(list(map(len, found.units)), [source.weight for source in recipe.train], seed=recipe.seed)
    batches = math.ceil(len(order) / units_per_batch(recipe) / processes)
    return recipe.epochs * math.ceil(batches / recipe.accumulation)


@contextmanager
def _start_probe(recipe: SentenceRecipe, device: str) -> Iterator[subprocess.Popen]:
    """Let a probe load the encoder while the data are read here."""
    probe = take_probe()
    try:
        with suppress(OSError):  # it has ended, and says why
            print(json.dumps({"recipe": recipe.to_dict(), "device": device}), file=probe.stdin, flush=True)
        yield probe
    finally:
        probe.kill()
        probe.communicate()


def read(recipe: SentenceRecipe) -> Future[Survey]:
    """Start to survey the data of a recipe in a thread; `check` of a recipe with the same data takes what is found.

    One survey is kept, and only of corpora that are part of this project: those do not change while it runs.
    """
    global _kept
    asked = (recipe.train, recipe.validation, recipe.batching, recipe.batch_size, recipe.keep, recipe.loss)
    with _lock:
        if _kept is not None and _kept[0] == asked and not (_kept[1].done() and _kept[1].exception()):
            return _kept[1]
        pool = ThreadPoolExecutor(1)
        future = pool.submit(survey, recipe)
        pool.shutdown(wait=False)
        known = [corpora.CORPORA.get(source.name) for source in (*recipe.train, *recipe.validation)]
        if all(corpus and corpus.ours for corpus in known):
            _kept = (asked, future)
        return future


def _follow(future: Future[T], progress: Progress) -> T:
    """Wait for what takes seconds in a thread; who waits may stop at any time."""
    while wait([future], TICK_S).not_done:
        progress(0, 0)
    return future.result()


def _try(probe: subprocess.Popen, sample: Mapping[str, Any], progress: Progress) -> Measured | str:
    """Let the probe try some batches; gives what it measured, or why it could not."""
    from condviz.training.probe import Measured

    with ThreadPoolExecutor(1) as pool:
        # Not `communicate` again and again: what its first call could not send, the later ones do not send either.
        future = pool.submit(probe.communicate, json.dumps(sample), TIMEOUT_S)
        try:
            said, complaints = _follow(future, progress)
        except subprocess.TimeoutExpired:
            return f"A try of a few steps did not end in {TIMEOUT_S / 60:.0f} minutes. Take a smaller encoder."
        except BaseException:  # who waits has left, and the thread would wait on
            probe.kill()
            raise
    if probe.returncode == 0:
        answer = json.loads(said.splitlines()[-1])
        return answer["problem"] if "problem" in answer else Measured(**answer)
    why = explain_exit(probe.returncode, complaints)
    return OUT_OF_MEMORY if "killed" in why else why


def _sample(recipe: SentenceRecipe, found: Survey) -> dict[str, Any]:
    """Choose what is tried: the heaviest batch there could be, and some as they come."""
    units = [unit for part in found.units for unit in part]
    size = min(units_per_batch(recipe), len(units))
    dice = random.Random(recipe.seed)
    heaviest = heapq.nlargest(size, units, key=lambda unit: sum(len(text) for row in unit for text in row.texts))
    batches = [heaviest, *(dice.sample(units, size) for _ in range(TIMED_BATCHES))]
    texts = {text for unit in units for row in unit for text in row.texts}
    return {
        "batches": [[list(map(asdict, unit)) for unit in batch] for batch in batches],
        "validation": list(map(asdict, dice.sample(found.validation, min(SCORED_ROWS, len(found.validation))))),
        "longest": heapq.nlargest(LONGEST_TEXTS, texts, key=len),
    }


def _seconds(recipe: SentenceRecipe, found: Survey, steps: int, tried: Measured) -> float:
    """Expect the time of a whole training from a measured try."""
    evaluations = recipe.epochs * recipe.evaluations + 2 if found.validation else 0  # at the start, and at the end
    rows = [row for part in found.units for unit in part for row in unit]
    texts = count_texts([*rows, *found.validation], separable=CATALOG[recipe.method].separable) if tried.encoding else 0
    return (
        tried.preparation
        + steps * (recipe.accumulation * (tried.batch or 0.0) + tried.update)
        + evaluations * len(found.validation) * tried.scoring
        + texts * tried.encoding
    )


def _too_large(recipe: SentenceRecipe, tried: Measured) -> str:
    advice = 'Tune less (tuning = "lora" or "frozen"), lower batch_size, or take a smaller encoder.'
    if tried.fitting_rows and recipe.batching != "blocks":
        accumulation = recipe.accumulation * math.ceil(recipe.batch_size / tried.fitting_rows)
        settings = f"batch_size = {tried.fitting_rows} with accumulation = {accumulation}"
        advice = f"{settings} would fit and takes the same steps."
    needed, free = (f"{size / 1e9:.1f} GB" for size in (tried.memory, tried.available))
    return f"This needs about {needed} of memory, and {free} are free on this machine. {advice}"


# ---- what a job may train on and with --------------------------------------------------------------------------------

PROBED_PAIRS = 3
_NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)


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
            f"name is {recipe.name[:80]!r}; allowed are up to 64 letters, digits, dots, hyphens and underscores, "
            "for instance my-model."
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
    if tables and (problems := survey(recipe).problems):
        raise DataError(" ".join(problems))
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
    ranked = sorted(rows, key=lambda row: -row.label)
    groups: dict[str, list[Example]] = {}
    for row in ranked:
        groups.setdefault(row.group, []).append(row)
    told = [(group[0], group[-1]) for group in groups.values() if group[0].label > group[-1].label]
    if len(told) >= PROBED_PAIRS:
        step = len(told) // PROBED_PAIRS
        return [row.texts for pair in told[: step * PROBED_PAIRS : step] for row in pair]
    if len(rows) >= 2 * PROBED_PAIRS:
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
