"""The one training loop: the Trainer of transformers with our order of rows, evaluation, checks, log and states.

What is trained, and how it is judged, comes as a `Task`: rated sentence pairs (`model.py`) or links (`links.py`).
"""

from __future__ import annotations

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Sampler
from transformers import EarlyStoppingCallback, PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import TrainerControl, TrainerState
from transformers.trainer_utils import rotate_checkpoints

from condviz.encoder.pretrained import choose_precision
from condviz.errors import ConfigError, TrainingError
from condviz.methods import ConditionalScorer
from condviz.training.data import MixedOrder
from condviz.training.trainer import COMPLETE, Report, Run

LOG_STEPS = 10
"""Steps between two lines of the log."""
KEPT_STATES = 2
"""The best state and the newest."""
NEVER = 2**31
SAVE_SECONDS = 600.0
"""A training that is killed loses at most this much work, however long its epochs are."""
Steer = Callable[[int, int], bool]
"""Asked after each step (steps done, steps in all) whether to save a state and stop."""
Probe = tuple[str, str, str]
"""Two sentences and a condition."""


class Signals:
    """Has a training save its state and stop when SIGTERM or Ctrl-C comes.

    They are taken over with the first step, as there is nothing to save before; a second one ends the process as ever.
    `received` is the number of the signal that came, 0 for none.
    """

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def steer(self, step: int, steps: int) -> bool:
        """Answer as a `Steer`."""
        if not self._before and not self.received and threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._receive) for one in (signal.SIGTERM, signal.SIGINT)}
        return bool(self.received)

    def _receive(self, number: int, _: object) -> None:
        self.received = number
        self._give_back()

    def _give_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        self._before = {}


class Task(ABC):
    """What is trained and how it is judged.

    `best` is the figure of `validate` that chooses the weights, higher is better, and `part` the name of these figures
    in a checkpoint; several GPUs may share a batch of what is `divisible`; with `decays_all` biases and norms decay
    like other weights. `module` gives {"loss"} for a batch that `collate` builds of `batch_units` of the `units`, in
    this `order`, and holds the `method` that becomes a checkpoint. `fitted` methods are done by `prepare`, without
    steps.
    """

    best: ClassVar[str]
    part: ClassVar[str]
    divisible: ClassVar[bool] = True
    decays_all: ClassVar[bool] = False
    collate: Callable[[list], dict[str, Any]]
    recipe: Any  # that of the task
    device: str
    method: Any  # of the class that the task needs
    module: Any
    units: Any
    order: MixedOrder
    batch_units: int
    whole_batches = False
    evaluated = True
    fitted = False

    def prepare(self) -> None:  # noqa: B027 (most have nothing to prepare)
        """Fill caches or fit projections: what is done once, in the precision of the training."""

    def finish(self) -> None:  # noqa: B027 (most have nothing to finish)
        """Change the trained weights once more before they are measured and saved."""

    def rank(self, found: Mapping[str, float], step: int) -> float:
        """Return what chooses the weights, of what `validate` found after a step: the first of the highest is kept."""
        return found[self.best]

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Measure the model on the validation rows; NaN where a figure is not defined.

        Raises:
            ArithmeticError: If a score is not a number.
        """

    @abstractmethod
    def sample(self, method: ConditionalScorer) -> np.ndarray:
        """Score a few validation rows with a method, to compare it before and after saving."""

    @abstractmethod
    def describe_data(self) -> list[dict[str, Any]]:
        """Return what a checkpoint tells about its data."""

    @abstractmethod
    def card(self, name: str, training: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
        """Format the model card."""

    def parameter_groups(self, decayed: Iterable[str]) -> list[dict]:
        """Sort the trained parameters by rate and weight decay; `decayed` names all but biases and norms."""
        recipe, decayed = self.recipe, set(decayed)
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad:
                rate = recipe.lr if "backbone." in name or recipe.head_lr is None else recipe.head_lr
                decay = recipe.weight_decay if self.decays_all or name in decayed else 0.0
                groups.setdefault((rate, decay), []).append(parameter)
        return [{"params": group, "lr": rate, "weight_decay": decay} for (rate, decay), group in groups.items()]

    def warmup(self, steps: int) -> float:
        """Return the warm-up as the Trainer takes it: a share of the steps below 1, else steps."""
        return self.recipe.warmup


class Loop(Trainer):
    """Trains one model: `steer` is asked after each step, `probes` are scored at the start and each evaluation."""

    model: Any  # the Trainer's may be None before it has begun

    def __init__(
        self, task: Task, run: Run, *, report: Report | None = None, steer: Steer | None, probes: Sequence[Probe] = ()
    ) -> None:
        self.task, self.run_folder, self.probes = task, run, list(probes)
        recipe = task.recipe
        super().__init__(
            model=task.module,
            args=_arguments(task, run),
            train_dataset=task.units,
            eval_dataset=cast("Any", [None]) if task.evaluated else None,  # `validate` has its own
            data_collator=task.collate,
        )
        if self.accelerator.num_processes > 1 and not task.divisible:
            raise ConfigError("The triples of a batch are each other's negatives: train links on one device.")
        self.remove_callback(PrinterCallback)
        self.moments = _Moments(recipe.evaluations, steer, evaluated=task.evaluated)
        self.records = Log(run, report, task, self.measure_start)
        self.add_callback(self.moments)
        if recipe.patience:
            self.add_callback(EarlyStoppingCallback(recipe.patience))
        self.add_callback(self.records)

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped the training before its last step."""
        return self.moments.stopped and self.state.global_step < self.state.max_steps

    def measure_start(self) -> dict[str, Any]:
        """Return what the model reaches before the first step, so that a curve shows what training has changed."""
        fresh = self.task.evaluated and self.state.global_step == 0
        return (self.validate() if fresh else {}) | self.score_probes()

    def score_probes(self) -> dict[str, list[float]]:
        """Return the scores of the probes, {"probes": [...]}, or nothing where there are none."""
        if not self.probes:
            return {}
        self._refresh()
        with self.accelerator.autocast():
            scores = self.task.method.score(*map(list, zip(*self.probes, strict=True)))
        return {"probes": [round(float(score), 4) for score in scores]}

    def validate(self) -> dict[str, float]:
        """Measure the model on the validation rows; raises TrainingError if a score is not a number."""
        self._refresh()
        try:
            with self.accelerator.autocast():
                return self.task.validate()
        except ArithmeticError as error:
            raise self._stopping(str(error)) from error

    def _refresh(self) -> None:
        """Make the method forget the identity of its weights, which steps change, and with it what is cached."""
        self.model.train()
        self.model.eval()

    # Called by the Trainer

    def _run_epoch(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - the Trainer's
        # A training that ran out of patience, and was killed before its end, is resumed with nothing left to do.
        patient = [one for one in self.callback_handler.callbacks if isinstance(one, EarlyStoppingCallback)]
        if any(one.early_stopping_patience_counter >= one.early_stopping_patience for one in patient):
            self.control.should_training_stop = True
        else:
            super()._run_epoch(*arguments, **options)

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:  # noqa: ANN401 - the Trainer's
        return self.task.order

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Create AdamW with the rates and decays of the task."""
        if self.optimizer is None:
            groups = self.task.parameter_groups(self.get_decay_parameter_names(self.model if model is None else model))
            make, options = self.get_optimizer_cls_and_kwargs(self.args)
            self.optimizer = make(groups, **options)
        return self.optimizer

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *_: object, **__: object) -> Tensor:
        """Compute the loss, and stop if it is not a number."""
        loss = model(**inputs)["loss"]
        if not bool(loss.isfinite()):
            raise self._stopping(f"the loss is {loss.item()}")
        return loss

    def evaluate(self, *_: object, **__: object) -> dict[str, Any]:
        """Validate, and log the figures."""
        metrics: dict[str, Any] = {
            f"eval_{name}": value for name, value in (self.validate() | self.score_probes()).items()
        }
        self.log(dict(metrics))
        found = {name.removeprefix("eval_"): value for name, value in metrics.items()}
        metrics["eval_rank"] = self.task.rank(found, self.state.global_step)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _get_grad_norm(self, model: nn.Module, grad_norm: Tensor | None = None) -> float | None:
        # Without clipping the norm would be computed for the log alone, at a tenth of a step on a CPU.
        return None if grad_norm is None else float(grad_norm)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:  # noqa: ANN401 - of a library that may be absent
        # A step can leave weights that are not numbers after a loss that was one.
        if not all(bool(value.isfinite().all()) for value in self.model.parameters() if value.requires_grad):
            raise self._stopping("a weight is not a number")
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            # Older states go only when the new one is known to be whole: a kill in between leaves one to go on from.
            (self.run_folder.folder / f"checkpoint-{self.state.global_step}" / COMPLETE).touch()
            rotate_checkpoints(str(self.args.output_dir), KEPT_STATES, self.state.best_model_checkpoint)

    def _stopping(self, reason: str) -> TrainingError:
        state = self.run_folder.last_state()
        kept = f"The last good state is kept in {state}" if state else "No state had been saved yet"
        return TrainingError(
            f"Training stopped after step {self.state.global_step}: {reason}. {kept}. Lower the learning rate, or set "
            'clip = 1.0 or precision = "float32", and begin again.'
        )


class Log(TrainerCallback):
    """Writes one line per record, and passes it to `report`."""

    def __init__(self, run: Run, report: Report | None, task: Task, probe: Callable[[], Mapping[str, Any]]) -> None:
        self.run, self.report, self.module, self.probe = run, report, task.module, probe
        self._restart()

    def add(self, record: Mapping[str, Any]) -> None:
        """Store a record. What is not a number becomes null."""
        record = {key: None if value != value else value for key, value in record.items()}
        self.run.write(record)
        if self.report:
            self.report(record)

    def on_train_begin(self, args: object, state: TrainerState, control: object, **_: object) -> None:
        """Record the start."""
        if state.is_world_process_zero:
            self.add({"event": "start", "step": state.global_step, "steps": state.max_steps, **self.probe()})
        self._restart()

    def on_log(
        self, args: object, state: TrainerState, control: object, *, logs: Mapping[str, float], **_: object
    ) -> None:
        """Record loss or scores."""
        place = {"step": state.global_step, "steps": state.max_steps, "epoch": round(state.epoch or 0, 4)}
        scores = {name.removeprefix("eval_"): value for name, value in logs.items() if name.startswith("eval_")}
        if not state.is_world_process_zero:
            return
        seconds, tokens = time.perf_counter() - self.clock, self.module.tokens - self.tokens
        if "loss" in logs:
            speed = {"seconds": round(seconds, 3), "tokens_per_second": round(tokens / seconds)}
            shown = {name: logs[name] for name in ("loss", "learning_rate", "grad_norm") if name in logs}
            self.add({"event": "step", **place, **shown, **speed})
        elif scores:
            self.add({"event": "evaluation", **place, **scores, "seconds": round(seconds, 3)})
        self._restart()

    def _restart(self) -> None:
        self.clock, self.tokens = time.perf_counter(), self.module.tokens


class _Moments(TrainerCallback):
    """Says after each step what comes next.

    The model is evaluated and a state saved at even distances, the last time at the end of each epoch. In between it is
    saved every `SAVE_SECONDS`, or saved and stopped where `steer` asks for it, in all processes at the same step.
    """

    def __init__(self, per_epoch: int, steer: Steer | None, *, evaluated: bool) -> None:
        self.per_epoch, self.steer, self.evaluated = per_epoch, steer, evaluated
        self.stopped, self.saved = False, time.monotonic()

    def on_save(self, *_: object, **__: object) -> None:
        """Count the time from here."""
        self.saved = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        steps = max(1, round(state.max_steps / args.num_train_epochs))
        step = (state.global_step - 1) % steps + 1
        if step in {math.ceil(steps * (part + 1) / self.per_epoch) for part in range(self.per_epoch)}:
            control.should_log = control.should_save = True
            control.should_evaluate = self.evaluated
        save = time.monotonic() - self.saved > SAVE_SECONDS
        stop = self.steer is not None and self.steer(state.global_step, state.max_steps)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            # What one process wants, all do: one that stopped alone would leave the others waiting for it.
            shared = torch.tensor([save, stop], dtype=torch.int, device=args.device)
            torch.distributed.all_reduce(shared, torch.distributed.ReduceOp.MAX)
            save, stop = map(bool, shared.tolist())
        if (save or stop) and not control.should_evaluate:  # an evaluation may end the training by itself
            control.should_save = True
            if stop:
                control.should_training_stop = self.stopped = True


def _arguments(task: Task, run: Run) -> TrainingArguments:
    recipe = task.recipe
    dtype = choose_precision(recipe.precision, task.device)
    best = task.evaluated and recipe.keep == "best"
    kept = {"metric_for_best_model": "rank", "greater_is_better": True} if best else {}
    arguments = TrainingArguments(
        output_dir=str(run.folder),
        per_device_train_batch_size=task.batch_units,
        dataloader_drop_last=task.whole_batches,
        gradient_accumulation_steps=recipe.accumulation,
        num_train_epochs=recipe.epochs,
        learning_rate=recipe.lr,
        weight_decay=recipe.weight_decay,
        warmup_steps=task.warmup(recipe.epochs * (len(task.order) // task.batch_units)),
        lr_scheduler_type="linear",
        max_grad_norm=recipe.clip,
        seed=recipe.seed,
        bf16=dtype == torch.bfloat16,
        fp16=dtype == torch.float16,
        use_cpu=task.device == "cpu",
        # `_Moments` says when.
        eval_strategy="steps" if task.evaluated else "no",
        eval_steps=NEVER,
        save_strategy="steps",
        save_steps=NEVER,
        load_best_model_at_end=best,
        **kept,
        restore_callback_states_from_checkpoint=bool(recipe.patience),
        logging_steps=LOG_STEPS,
        logging_nan_inf_filter=False,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        log_level="error",
    )
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # several GPUs by `accelerate launch`, not by copies of the model in one process
    return arguments
