"""Train a model by a recipe and leave a checkpoint; until then, the folder of a training under way.

Built on the Trainer of transformers, so that several GPUs work by `accelerate launch -m condviz train RECIPE`.
"""

from __future__ import annotations

import json
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from annotated_doc import Doc

from condviz import __version__
from condviz.data import corpora
from condviz.errors import ConfigError, TrainingError, TrainingStopped, require
from condviz.models.manifest import CALIBRATION, MANIFEST, check_replaceable, read_manifest
from condviz.paths import CHECKPOINTS
from condviz.training.job import read_records
from condviz.training.recipes import LinkRecipe, Recipe, SentenceRecipe, from_dict, load_recipe
from condviz.types import Trained

if TYPE_CHECKING:
    from condviz.encoder.cache import EmbeddingCache
    from condviz.training.loop import Loop, Probe, Steer, Task

# torch and transformers take seconds to import: that waits for a training, as the command line asks for options only.

Report = Callable[[Mapping[str, Any]], None]
"""Called with each record of the log; may raise to stop the training."""
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
        folder: Where states and log are kept; None takes a hidden folder beside `out`.
        steer: Asked after each step whether to save and stop.
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


# ---- the folder of a training that is under way: its recipe, its log, and the states that it can go on from ----------

COMPLETE = "complete"
"""Empty file that is put into a saved state last: without it, the program was killed while it wrote."""


class Run:
    """The folder beside a checkpoint in which its training keeps its states; hidden, so that it is not taken for one.

    It is `.NAME.run` beside the checkpoint `out` unless another `folder` is given. `log` has one JSON object per line:
    "event" is "start", "step", "evaluation" or "end".
    """

    def __init__(self, out: Path, recipe: Recipe, folder: Path | None = None) -> None:
        self.out, self.recipe = out, recipe
        self.folder = out.parent / f".{out.name}.run" if folder is None else folder
        self.log = self.folder / "log.jsonl"
        self._recipe = self.folder / "recipe.json"

    def is_finished(self) -> bool:
        """Return whether the checkpoint is there and comes from this very recipe, wherever its tables are."""
        if not (self.out / MANIFEST).is_file():
            return False
        stored = read_manifest(self.out)["training"].get("recipe")
        # Both are made shareable, as older checkpoints hold whole paths.
        return isinstance(stored, dict) and shareable(_current(stored)) == shareable(self.recipe.to_dict())

    def last_state(self) -> Path | None:
        """Return the newest saved state that is complete."""
        states = [path for path in self.folder.glob("checkpoint-*") if (path / COMPLETE).is_file()]
        return max(states, key=lambda path: int(path.name.rpartition("-")[2]), default=None)

    def find_state(self, *, resume: bool) -> Path | None:
        """Find the state from which, with `resume`, an earlier training of the same recipe goes on; None to begin.

        Raises:
            ConfigError: If there is an unfinished training that would be lost, or one by another recipe.
            CheckpointError: If the checkpoint could not be written in the end.
        """
        check_replaceable(self.out)
        state = self.last_state()
        if state is not None and not resume:
            raise ConfigError(
                f"{self.folder} holds an unfinished training ({state.name}). Go on with --resume, or delete the "
                "folder to begin again."
            )
        if state is None:
            return None
        try:
            stored = _current(json.loads(self._recipe.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{self._recipe} cannot be read ({error}). Delete {self.folder} to begin again."
            ) from error
        wanted = self.recipe.to_dict()
        if changed := sorted(key for key in {*stored, *wanted} if stored.get(key) != wanted.get(key)):
            raise ConfigError(
                f"{self.folder} was begun with another recipe: {', '.join(changed)} differ. Take the same recipe, or "
                "delete that folder to begin again."
            )
        return state

    def begin(self) -> None:
        """Create the folder anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._recipe.write_text(json.dumps(self.recipe.to_dict(), indent=2) + "\n", encoding="utf-8")

    def mend(self) -> None:
        """Remove what a killed program left half written: states, and the last line of the log."""
        for path in self.folder.glob("checkpoint-*"):
            if not (path / COMPLETE).is_file():
                shutil.rmtree(path)
        if self.log.is_file():
            whole, newline, _ = self.log.read_bytes().rpartition(b"\n")
            self.log.write_bytes(whole + newline)

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a record to the log."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        """Remove the saved states of a finished training; recipe and log stay."""
        for path in self.folder.glob("*/"):
            shutil.rmtree(path)


def shareable(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe as a checkpoint keeps it, which may be published: without folders of this machine.

    The encoder alone keeps its folder, since the checkpoint is loaded with it.
    """
    places: dict[str, Any] = {
        part: [{**source, "path": shareable_path(source["path"])} for source in recipe[part]]
        for part in ("train", "validation")
        if part in recipe
    }
    places |= {key: shareable_path(recipe[key]) for key in ("init", "graph") if key in recipe}
    if "teacher" in recipe:
        places["teacher"] = list(map(shareable_path, recipe["teacher"]))
    return {**recipe, **places}


def shareable_path(path: str) -> str:
    """Return a whole path as one below the folder of the corpora, else as the name of the file; others as they are."""
    if not Path(path).is_absolute():
        return path
    whole, folder = Path(path).resolve(), corpora.data_folder().resolve()
    return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else whole.name


def _current(stored: dict[str, Any]) -> dict[str, Any]:
    """Add the defaults of keys that recipes did not have when this one was stored."""
    try:
        return from_dict(stored).to_dict()
    except ConfigError:  # of a newer version
        return stored
