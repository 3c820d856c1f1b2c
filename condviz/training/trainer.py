"""Train a model by a recipe and leave a checkpoint.

Built on the Trainer of transformers, so that several GPUs work by `accelerate launch -m condviz train RECIPE`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from condviz.encoder.cache import EmbeddingCache
from condviz.errors import TrainingError, TrainingStopped, require
from condviz.evaluation.cards import write_card
from condviz.evaluation.scoreboard import Board
from condviz.methods import ConditionalScorer
from condviz.models import checkpoints
from condviz.models.registry import CHECKPOINTS, load
from condviz.training.batching import make_units
from condviz.training.loop import Loop, Probe, Steer, columns
from condviz.training.model import TrainingModel
from condviz.training.recipes import Source, TrainRecipe
from condviz.training.runs import Report, Run, shareable, shareable_path
from condviz.training.sources import TABLE, Example, digest, load_source
from condviz.training.survey import load_rows
from condviz.training.tuning import build_model, is_fitted, load_pretrained
from condviz.version import __version__

CHECKED_ROWS = 8
TOLERANCE = {"float32": 1e-4, "float16": 1e-2}
"""Largest change of a score between the trained model and the one that is loaded again."""
PACKAGES = ("torch", "transformers", "accelerate", "peft", "numpy")


def train(
    recipe: TrainRecipe,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    device: str = "auto",
    report: Report | None = None,
    folder: Path | None = None,
    steer: Steer | None = None,
    probes: Sequence[Probe] = (),
    vectors: EmbeddingCache | None = None,
) -> Path:
    """Train a model.

    Args:
        recipe: What and how.
        out: Folder of the checkpoint; None takes the recipe's name in the folder of all checkpoints.
        resume: Go on with an interrupted training of the same recipe. A finished one is left as it is.
        device: "auto", "cpu", "cuda" or "mps".
        report: Told each record of the log; may raise to stop. What is saved by then stays.
        folder: Where states and log are kept; None takes a hidden folder beside `out`.
        steer: Asked after each step whether to go on, to save, or to save and stop.
        probes: Pairs whose scores are noted at the start and at each evaluation.
        vectors: Store for the vectors of a frozen encoder, which trainings in one precision may share; None makes one.

    Returns:
        The checkpoint: loaded again and compared with the trained model on 8 rows.

    Raises:
        ConfigError: If the recipe cannot be carried out, or an unfinished training would be lost.
        DataError: If a source is missing or has no usable rows.
        CheckpointError: If the encoder cannot be found, or `out` is something else.
        TrainingError: If the loss is no longer a number, or the checkpoint scores differently.
        TrainingStopped: If `steer` stopped it.
        MissingExtraError: If a package for training is not installed.
    """
    require("accelerate", "train")
    run = Run(CHECKPOINTS / recipe.name if out is None else Path(out).absolute(), recipe, folder)
    if resume and run.is_finished():
        run.close()
        return run.out
    state = run.find_state(resume=resume)
    train_parts = [load_rows(source, recipe) for source in recipe.train]
    validation_parts = [load_source(source) for source in recipe.validation]
    validation = [row for part in validation_parts for row in part]
    data = _describe([*recipe.train, *recipe.validation], [*train_parts, *validation_parts])
    units = [make_units(_with_teacher(part, recipe, device), recipe.batching) for part in train_parts]
    model = build_model(recipe, vectors)
    pretrained = load_pretrained(recipe, device) if recipe.loss.plain else None
    wrapped = TrainingModel(model, recipe.loss, frozen=recipe.tuning == "frozen", pretrained=pretrained)
    options = {"device": device, "report": report, "steer": steer, "probes": probes}
    loop = Loop(wrapped, recipe, run, parts=units, validation=validation, **options)
    started = time.time()
    _work(loop, wrapped, state, [row for part in train_parts for row in part])
    if loop.stopped:
        raise TrainingStopped(f"Stopped after step {loop.state.global_step} of {loop.state.max_steps}, which is saved.")
    metrics = loop.validate() if validation else {}
    if loop.is_world_process_zero():
        seconds = round(time.time() - started, 1)
        _save(loop, model, metrics, {"data": data, "seconds": seconds}, validation or train_parts[0])
        loop.records.add({"event": "end", "step": loop.state.global_step, "seconds": seconds, **metrics})
        run.close()
    loop.accelerator.wait_for_everyone()
    return run.out


def _work(loop: Loop, model: TrainingModel, state: Path | None, rows: Sequence[Example]) -> None:
    """Train, or fit."""
    loop.accelerator.wait_for_everyone()  # all have looked for a state
    if loop.is_world_process_zero() and state is None:
        loop.run_folder.begin()
    elif loop.is_world_process_zero():
        loop.run_folder.mend()
    loop.accelerator.wait_for_everyone()
    sentences1, sentences2, conditions = columns(rows)
    texts = sentences1 + sentences2, conditions * 2
    if is_fitted(model.method):
        with loop.autocast():
            model.method.fit_projection(*texts, seed=loop.recipe.seed)
        return
    with loop.autocast():
        model.fill_cache(*texts)
    loop.train(resume_from_checkpoint=str(state) if state else None)


def _with_teacher(rows: list[Example], recipe: TrainRecipe, device: str) -> list[Example]:
    """Score rows that have no teacher's score yet by the mean of the teachers."""
    if not recipe.teacher:
        return rows
    means = np.mean([load(name, device=device).score(*columns(rows)) for name in recipe.teacher], axis=0)
    return [
        row if row.teacher is not None else replace(row, teacher=float(mean))
        for row, mean in zip(rows, means, strict=True)
    ]


def _describe(sources: Sequence[Source], parts: Sequence[Sequence[Example]]) -> list[dict[str, Any]]:
    return [
        {
            "source": source.name,
            "split": "" if source.name == TABLE else source.split,
            "path": shareable_path(source.path),
            "rows": len(rows),
            "sha256": digest(rows),
        }
        for source, rows in zip(sources, parts, strict=True)
    ]


def _save(
    loop: Loop,
    model: ConditionalScorer,
    metrics: Mapping[str, Any],
    facts: Mapping[str, Any],
    rows: Sequence[Example],
) -> None:
    """Write the checkpoint beside the states of the run, try it, and only then put it into its place.

    Raises:
        TrainingError: If it scores differently.
    """
    recipe, device = loop.recipe, loop.args.device.type
    training = {
        "recipe": shareable(recipe.to_dict()),
        "seed": recipe.seed,
        **facts,
        "steps": loop.state.global_step,
        "best_step": loop.state.best_global_step,
        "device": device,
        "precision": loop.accelerator.mixed_precision,
        "versions": _versions(),
    }
    shown = {name: None if value != value else value for name, value in metrics.items()}
    options = {"training": training, "metrics": {"validation": shown}, "dtype": getattr(torch, recipe.disk)}
    model.eval()
    model.backbone.cache = EmbeddingCache()  # the vectors so far may have been computed in another precision
    tried = checkpoints.save(model, loop.run_folder.folder / "model", **options)
    texts = columns(rows[:CHECKED_ROWS])
    loaded = checkpoints.load(tried, device=device, precision="float32")
    difference = float(np.abs(loaded.score(*texts) - model.score(*texts)).max())
    if not difference <= TOLERANCE[recipe.disk]:
        raise TrainingError(
            f"The saved model scores {difference:.2g} apart from the trained one, allowed is {TOLERANCE[recipe.disk]}. "
            f'It is left in {tried}; {loop.run_folder.out} was not written. Try disk = "float32".'
        )
    write_card(checkpoints.save(model, loop.run_folder.out, **options), Board())


def _versions() -> dict[str, str]:
    found = {"condviz": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # peft is needed for adapters only
            continue
    return found
