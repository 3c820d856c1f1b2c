"""Train a model by a recipe and leave a checkpoint.

Built on the Trainer of transformers, so that several GPUs work by `accelerate launch -m condviz train RECIPE`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from annotated_doc import Doc

from condviz.errors import TrainingError, TrainingStopped, require
from condviz.models.manifest import CALIBRATION, read_manifest
from condviz.paths import CHECKPOINTS
from condviz.training.job import read_records
from condviz.training.recipes import LinkRecipe, Recipe, SentenceRecipe, load_recipe
from condviz.training.runs import Report, Run, shareable
from condviz.types import Trained
from condviz.version import __version__

if TYPE_CHECKING:
    from condviz.encoder.cache import EmbeddingCache
    from condviz.training.loop import Loop, Probe, Steer, Task

# torch and transformers take seconds to import: that waits for a training, as the command line asks for options only.

TOLERANCE = {"float32": 1e-4, "float16": 1e-2}
"""Largest change of a score between the trained model and the one that is loaded again."""
PACKAGES = ("torch", "transformers", "accelerate", "peft", "numpy")


def train(
    recipe: str | Path | Mapping[str, Any] | Recipe,
    *,
    out: Annotated[
        str | Path | None, Doc("Folder of the checkpoint (default: that of the recipe's name beside the others)")
    ] = None,
    resume: Annotated[bool, Doc("Go on with an interrupted training of the same recipe; skip a finished one")] = False,
    device: Annotated[str, Doc("auto, cpu, cuda or mps")] = "auto",
    report: Report | None = None,
) -> Trained:
    """Train a model by a recipe: on rated sentence pairs, or on the links of a knowledge graph.

    Args:
        recipe: A TOML file as in assets/recipes, its table, or a recipe.
        out, resume, device: As the signature says.
        report: Called with each record of the log; "event" is "encode", "start", "step", "evaluation" or "end". May
            raise to stop; what is saved by then stays.

    Returns:
        Where the checkpoint is, its validation figures, and the curve.

    Raises:
        ConfigError: If the recipe cannot be carried out, or an unfinished training would be lost.
        DataError: If a source is missing or has no usable rows.
        CheckpointError: If the encoder cannot be found, or `out` is something else.
        TrainingError: If the loss is no longer a number, or the checkpoint scores differently when loaded again.
        TrainingStopped: If SIGTERM or Ctrl-C came; the state after the current step is saved.
        MissingExtraError: If a package for training is not installed.

    Example:
        >>> condviz.train("assets/recipes/hyper-cl-start.toml", out="my-model").metrics["spearman"]
    """
    from condviz.training.loop import Signals

    found = load_recipe(recipe)
    with Signals() as signals:
        try:
            folder = carry_out(found, out, resume=resume, device=device, report=report, steer=signals.steer)
        except TrainingStopped as stopped:
            raise TrainingStopped(f"{stopped} Go on with --resume (resume=True).", signals.received) from None
    metrics = next((value for name, value in read_manifest(folder)["metrics"].items() if name != CALIBRATION), {})
    return Trained(folder, folder.name, metrics, tuple(read_records(Run(folder, found).log)))


def carry_out(
    recipe: Recipe,
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
    """Train as `train` does, with what jobs need; the other arguments and errors are those of `train`.

    Args:
        recipe: What and how.
        out, resume, device, report: As in `train`.
        folder: Where states and log are kept; None takes a hidden folder beside `out`.
        steer: Asked after each step whether to go on, to save, or to save and stop.
        probes: Pairs whose scores are noted at the start and at each evaluation.
        vectors: Store for the vectors of a frozen encoder, which trainings in one precision may share; None makes one.

    Returns:
        The checkpoint: the very files that were loaded again and compared with the trained model.

    Raises:
        TrainingStopped: If `steer` stopped it.
    """
    require("accelerate", "train")
    from condviz.encoder.pretrained import choose_device
    from condviz.training.links import LinkTask
    from condviz.training.loop import Loop
    from condviz.training.model import SentenceTask

    run = Run(CHECKPOINTS / recipe.name if out is None else Path(out).absolute(), recipe, folder)
    if resume and run.is_finished():
        run.close()
        return run.out
    state = run.find_state(resume=resume)
    device = choose_device(device)
    if isinstance(recipe, LinkRecipe):
        task: Task = LinkTask(recipe, device, report=report)
    else:
        task = SentenceTask(cast("SentenceRecipe", recipe), device, vectors=vectors)
    loop = Loop(task, run, report=report, steer=steer, probes=probes)
    started = time.time()
    if state is not None:  # what the steps and evaluations up to it took
        done = int(state.name.rpartition("-")[2])
        started -= sum(record.get("seconds", 0.0) for record in read_records(run.log) if record["step"] <= done)
    loop.accelerator.wait_for_everyone()  # all have looked for a state
    if loop.is_world_process_zero():
        run.begin() if state is None else run.mend()
    loop.accelerator.wait_for_everyone()
    with loop.accelerator.autocast():  # the precision of the training
        task.prepare()
    if not task.fitted:
        loop.train(resume_from_checkpoint=str(state) if state else None)
    if loop.stopped:
        raise TrainingStopped(f"Stopped after step {loop.state.global_step} of {loop.state.max_steps}, which is saved.")
    task.finish()
    metrics = loop.validate() if task.evaluated else {}
    if loop.is_world_process_zero():
        seconds = round(time.time() - started, 1)
        _save(loop, metrics, seconds)
        loop.records.add({"event": "end", "step": loop.state.global_step, "seconds": seconds, **metrics})
        run.close()
    loop.accelerator.wait_for_everyone()
    return run.out


def _save(loop: Loop, metrics: Mapping[str, Any], seconds: float) -> None:
    """Save the checkpoint beside the states of the run, load and compare it, and move those files into place."""
    import torch

    from condviz.encoder.cache import EmbeddingCache
    from condviz.models import checkpoints

    versions = {"condviz": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):  # peft is needed for adapters only
            versions[package] = version(package)
    task, run, recipe = loop.task, loop.run_folder, loop.task.recipe
    training = {
        "recipe": shareable(recipe.to_dict()),
        "seed": recipe.seed,
        "data": task.describe_data(),
        "seconds": seconds,
        "steps": loop.state.global_step,
        "best_step": loop.state.best_global_step,
        "device": task.device,
        "precision": loop.accelerator.mixed_precision,
        "versions": versions,
    }
    shown = {task.part: {name: None if value != value else value for name, value in metrics.items()}}
    model = task.method.eval()
    model.backbone.cache = EmbeddingCache()  # the vectors so far may have been computed in another precision
    about = {"training": training, "metrics": shown, "card": task.card(run.out.name, training, shown)}
    folder = run.folder / "model" / run.out.name
    tried = checkpoints.save(model, folder, **about, dtype=getattr(torch, recipe.disk))
    loaded = checkpoints.load(tried, device=task.device, precision="float32")
    difference = float(np.abs(task.sample(loaded) - task.sample(model)).max())
    if not difference <= TOLERANCE[recipe.disk]:
        raise TrainingError(
            f"The saved model scores {difference:.2g} apart from the trained one, allowed is {TOLERANCE[recipe.disk]}. "
            f'It is left in {tried}; {run.out} was not written. Try disk = "float32".'
        )
    checkpoints.move(tried, run.out)
