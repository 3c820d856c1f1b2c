"""What a training will take, before it is started: data, steps, and a short measured try for time and memory."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condviz.data.kg_formats import load_graph
from condviz.errors import CondvizError, DataError
from condviz.training.admission import admit, choose_processes
from condviz.training.data import MixedOrder, Survey, Unit, survey, units_per_batch
from condviz.training.job import OUT_OF_MEMORY, explain_exit
from condviz.training.jobs import child_environment
from condviz.training.recipes import LinkRecipe, Recipe, SentenceRecipe
from condviz.training.tuning import FITTED

if TYPE_CHECKING:
    from condviz.training.probe import Measured

TIMED_BATCHES = 2
SCORED_ROWS = 32
LONGEST_TEXTS = 64
TIMEOUT_S = 300.0
TICK_S = 0.3
"""Between two looks whether somebody still waits for the answer."""


@dataclass(frozen=True)
class Preflight:
    """What a training will take.

    Attributes:
        device: "cpu", "cuda" or "mps".
        rows: Rows that are trained on, once each.
        validation_rows: Rows that decide which weights are kept.
        dropped: Rows of the files that are not used.
        steps: Steps of the optimizer; 0 where a projection is fitted.
        minutes: Expected, from the measured try; None if it was not made or did not end.
        memory: Bytes at the peak; None like minutes.
        problems: Why a training cannot begin, in words, and what would help.
        advice: What to think about.
    """

    device: str
    rows: int
    validation_rows: int
    dropped: int
    steps: int
    minutes: float | None = None
    memory: int | None = None
    problems: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def check(
    recipe: Recipe,
    *,
    roots: Sequence[Path] = (),
    device: str = "auto",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Preflight:
    """Survey a recipe's data and, if they can be trained on, try some batches in a process of its own.

    Args:
        recipe: The recipe.
        roots: As in `condviz.training.admission.admit`: nothing is read that a training would not be let to read.
        device: "auto", "cpu", "cuda" or "mps".
        progress: Called now and then with (0, 0); what it raises ends the check and its process.

    Raises:
        ConfigError: If the device is unknown or not there, or the recipe names a file or model that it may not read.
    """
    device, processes = choose_processes(device)
    try:
        recipe = admit(recipe, roots)
    except DataError as error:
        return Preflight(device, 0, 0, 0, 0, problems=(str(error),))
    if isinstance(recipe, LinkRecipe):
        return _check_links(recipe, device)
    with _start_probe(recipe, device) as probe:
        found = _survey(recipe, progress)
        steps = count_steps(recipe, found, processes)
        facts = (device, found.rows, found.validation_rows, found.dropped, steps)
        if found.problems:
            return Preflight(*facts, problems=found.problems, advice=found.advice)
        tried, problem = _try(probe, _sample(recipe, found), progress)
    if tried is None:
        return Preflight(*facts, problems=problem, advice=found.advice)
    advice = found.advice
    if tried.cut_texts:
        count = f"At least {tried.cut_texts}" if tried.cut_texts == LONGEST_TEXTS else str(tried.cut_texts)
        advice += (f"{count} of the texts are longer than {recipe.backbone} reads; their ends are cut off.",)
    fits = tried.batch is not None
    return Preflight(
        *facts,
        minutes=_seconds(recipe, found, steps, tried) / 60 if fits else None,
        memory=tried.memory,
        problems=() if fits else (_too_large(recipe, tried),),
        advice=advice,
    )


def _check_links(recipe: LinkRecipe, device: str) -> Preflight:
    """Survey a graph; how long a step takes is not measured."""
    try:
        graph = load_graph(recipe.graph)
    except CondvizError as error:
        return Preflight(device, 0, 0, 0, 0, problems=(str(error),))
    rows, held = 2 * len(graph.splits["train"]), 2 * len(graph.splits["valid"])
    problems = [
        f"The {name} part of {graph.name} has no triples." for name, n in (("train", rows), ("valid", held)) if not n
    ]
    steps = recipe.epochs * (rows // max(1, min(recipe.batch_size, rows)))
    advice = ("The time is not measured for links; the first epoch shows it.",)
    return Preflight(device, rows, held, 0, steps, problems=tuple(problems), advice=advice)


def count_steps(recipe: SentenceRecipe, found: Survey, processes: int = 1) -> int:
    """Count the steps of the optimizer of a whole training."""
    if recipe.config.get("projection") in FITTED or not found.units:
        return 0
    order = MixedOrder(list(map(len, found.units)), [source.weight for source in recipe.train], seed=recipe.seed)
    batches = math.ceil(len(order) / units_per_batch(recipe) / processes)
    return recipe.epochs * math.ceil(batches / recipe.accumulation)


@contextmanager
def _start_probe(recipe: SentenceRecipe, device: str) -> Iterator[subprocess.Popen]:
    """Start the probe, which imports torch and loads the encoder while the data are read here."""
    command = [sys.executable, "-m", "condviz.training.probe"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    probe = subprocess.Popen(command, **pipes, text=True, errors="replace", env=child_environment())
    try:
        with suppress(OSError):  # it has ended, and says why
            print(json.dumps({"recipe": recipe.to_dict(), "device": device}), file=probe.stdin, flush=True)
        yield probe
    finally:
        probe.kill()
        probe.communicate()


def _survey(recipe: SentenceRecipe, progress: Callable[[int, int], None]) -> Survey:
    """Survey the data in a thread: that takes seconds, and who waits may stop at any time."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(survey, recipe)
    pool.shutdown(wait=False)
    while wait([future], TICK_S).not_done:
        progress(0, 0)
    return future.result()


def _try(
    probe: subprocess.Popen, sample: Mapping[str, Any], progress: Callable[[int, int], None]
) -> tuple[Measured | None, tuple[str, ...]]:
    """Let the probe try some batches; gives what it measured, or why it could not."""
    from condviz.training.probe import Measured

    with ThreadPoolExecutor(1) as pool:
        # Not `communicate` again and again: what its first call could not send, the later ones do not send either.
        future = pool.submit(probe.communicate, json.dumps(sample), TIMEOUT_S)
        try:
            while wait([future], TICK_S).not_done:
                progress(0, 0)
            said, complaints = future.result()
        except subprocess.TimeoutExpired:
            return None, (f"A try of a few steps did not end in {TIMEOUT_S / 60:.0f} minutes. Take a smaller encoder.",)
        except BaseException:  # who waits has left, and the thread would wait on
            probe.kill()
            raise
    if probe.returncode == 0:
        answer = json.loads(said.splitlines()[-1])
        return (None, (answer["problem"],)) if "problem" in answer else (Measured(**answer), ())
    why = explain_exit(probe.returncode, complaints)
    return None, (OUT_OF_MEMORY if "killed" in why else why,)


def _sample(recipe: SentenceRecipe, found: Survey) -> dict[str, Any]:
    """Choose what is tried: the heaviest batch there could be, and some as they come."""
    units = [unit for part in found.units for unit in part]
    size = min(units_per_batch(recipe), len(units))
    dice = random.Random(recipe.seed)
    batches = [sorted(units, key=_weight, reverse=True)[:size]]
    batches += [dice.sample(units, size) for _ in range(TIMED_BATCHES)]
    validation = dice.sample(found.validation, min(SCORED_ROWS, len(found.validation)))
    texts = {text for unit in units for row in unit for text in row.texts}
    longest = sorted(texts, key=len, reverse=True)[:LONGEST_TEXTS]
    return {
        "batches": [[[asdict(row) for row in unit] for unit in batch] for batch in batches],
        "validation": [asdict(row) for row in validation],
        "longest": longest,
    }


def _weight(unit: Unit) -> int:
    return sum(len(text) for row in unit for text in row.texts)


def _seconds(recipe: SentenceRecipe, found: Survey, steps: int, tried: Measured) -> float:
    """Expect the time of a whole training from a measured try."""
    evaluations = recipe.epochs * recipe.evaluations + 2 if found.validation else 0  # at the start, and at the end
    texts = 2 * len({row.texts for part in found.units for unit in part for row in unit})
    return (
        tried.preparation
        + steps * (recipe.accumulation * tried.batch + tried.update)
        + evaluations * len(found.validation) * tried.scoring
        + texts * tried.encoding
    )


def _too_large(recipe: SentenceRecipe, tried: Measured) -> str:
    head = (
        f"This needs about {tried.memory / 1e9:.1f} GB of memory, and {tried.available / 1e9:.1f} GB are free on this "
        "machine."
    )
    if tried.fitting_rows and recipe.batching != "blocks":
        times = math.ceil(recipe.batch_size / tried.fitting_rows)
        return (
            f"{head} batch_size = {tried.fitting_rows} with accumulation = {recipe.accumulation * times} would fit and "
            "takes the same steps."
        )
    return f'{head} Tune less (tuning = "lora" or "frozen"), lower batch_size, or take a smaller encoder.'
