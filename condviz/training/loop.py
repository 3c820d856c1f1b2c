"""The Trainer of transformers with our order of rows, learning rates, evaluation, checks and log."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Sampler
from transformers import EarlyStoppingCallback, PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import TrainerControl, TrainerState
from transformers.trainer_utils import rotate_checkpoints

from condviz.encoder.pretrained import choose_device, choose_precision
from condviz.errors import TrainingError
from condviz.evaluation.metrics import condition_pairs, pair_accuracy, pearson, spearman
from condviz.training.batching import MixedOrder, Unit, Units, collate
from condviz.training.model import TrainingModel
from condviz.training.recipes import TrainRecipe
from condviz.training.runs import Report, Run
from condviz.training.sources import Example
from condviz.training.tuning import parameter_groups

LOG_STEPS = 10
"""Steps between two lines of the log."""
KEPT_STATES = 2
"""The best state and the newest."""
NEVER = 2**31
Wish = Literal["go", "save", "stop"]
Steer = Callable[[int, int], Wish]
"""Asked after each step (steps done, steps in all): go on, save a state and go on, or save one and stop."""
Probe = tuple[str, str, str]
"""Two sentences and a condition."""


class Loop(Trainer):
    """Trains one model.

    Args:
        model: The model with its loss.
        recipe: How.
        run: Folder for states and log.
        parts: Units of each source.
        validation: Rows that decide which weights are kept; may be empty.
        device: As in `condviz.encoder.pretrained.choose_device`.
        report: Told each record of the log.
        steer: Asked after each step whether to go on.
        probes: Pairs whose scores are noted at the start and at each evaluation.

    Attributes:
        stopped: Whether `steer` has stopped the training.
    """

    def __init__(
        self,
        model: TrainingModel,
        recipe: TrainRecipe,
        run: Run,
        *,
        parts: Sequence[Sequence[Unit]],
        validation: Sequence[Example],
        device: str = "auto",
        report: Report | None = None,
        steer: Steer | None = None,
        probes: Sequence[Probe] = (),
    ) -> None:
        weights = [source.weight for source in recipe.train]
        self.order = MixedOrder([len(part) for part in parts], weights, seed=recipe.seed)
        self.recipe, self.run_folder, self.validation = recipe, run, list(validation)
        super().__init__(
            model=model,
            args=_arguments(recipe, run, choose_device(device), evaluated=bool(validation)),
            train_dataset=Units(parts),
            eval_dataset=self.validation or None,
            data_collator=collate,
        )
        self.remove_callback(PrinterCallback)
        self.add_callback(_Moments(recipe.evaluations, evaluated=bool(validation)))
        if recipe.patience:
            self.add_callback(EarlyStoppingCallback(recipe.patience))
        self.probes = list(probes)
        self.records = Log(run, report, model, self.score_probes)
        self.add_callback(self.records)
        self.steering = _Steering(steer)
        self.add_callback(self.steering)

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped the training before its last step."""
        return self.steering.stopped and self.state.global_step < self.state.max_steps

    def score_probes(self) -> dict[str, list[float]]:
        """Give the scores of the probes, {"probes": [...]}, or nothing where there are none."""
        if not self.probes:
            return {}
        self.model.train()
        self.model.eval()
        with self.autocast():
            scores = self.model.method.score(*map(list, zip(*self.probes, strict=True)))
        return {"probes": [round(float(score), 4) for score in scores]}

    def autocast(self) -> AbstractContextManager:
        """Compute in the precision of the training."""
        return self.accelerator.autocast()

    def validate(self) -> dict[str, float]:
        """Score the validation rows.

        Returns:
            Spearman, Pearson and pair accuracy, times 100, NaN where one is not defined; and the number of rows.

        Raises:
            TrainingError: If a score is no number.
        """
        self.model.train()  # forgets the identity of the weights: those of the best step may have been loaded
        self.model.eval()
        with self.autocast():
            scores = self.model.method.score(*columns(self.validation))
        if not np.isfinite(scores).all():
            self._stop("a score on the validation rows is not a number")
        ratings = np.array([row.label for row in self.validation])
        first, second = condition_pairs(self.validation).T
        accuracy = pair_accuracy(ratings[first], ratings[second], scores[first], scores[second]).ties_excluded
        found = {"spearman": spearman(ratings, scores), "pearson": pearson(ratings, scores), "pair_accuracy": accuracy}
        metrics = {name: math.nan if value is None else round(100 * value, 3) for name, value in found.items()}
        return metrics | {"rows": len(scores)}

    # Called by the Trainer

    def _get_train_sampler(self, train_dataset: Units | None = None) -> Sampler[int]:
        return self.order

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Make AdamW with one rate for the encoder and one for the head."""
        if self.optimizer is None:
            model = self.model if model is None else model
            groups = parameter_groups(model, self.recipe, self.get_decay_parameter_names(model))
            make, options = self.get_optimizer_cls_and_kwargs(self.args)
            self.optimizer = make(groups, **options)
        return self.optimizer

    def compute_loss(self, model: nn.Module, inputs: Mapping[str, Any], **_: object) -> Tensor:
        """Give the loss, and stop if it is no number."""
        loss = model(**inputs)["loss"]
        if not bool(loss.isfinite()):
            self._stop(f"the loss is {loss.item()}")
        return loss

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        """Score the validation rows and tell everybody."""
        metrics = {f"eval_{name}": value for name, value in (self.validate() | self.score_probes()).items()}
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _get_grad_norm(self, model: nn.Module, grad_norm: Tensor | None = None) -> float | None:
        # Without clipping the norm would be computed for the log alone, at a tenth of a step on a CPU.
        return None if grad_norm is None else float(grad_norm)

    def _save_checkpoint(self, model: nn.Module, trial: object) -> None:
        # A step can leave weights that are no numbers after a loss that was one.
        if not all(bool(value.isfinite().all()) for value in self.model.parameters() if value.requires_grad):
            self._stop("a weight is not a number")
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            # Older states go only when the new one is known to be whole.
            self.run_folder.complete(Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}")
            rotate_checkpoints(
                self.args.output_dir,
                KEPT_STATES,
                best_model_checkpoint=self.state.best_model_checkpoint,
                use_mtime=True,
            )

    def _stop(self, reason: str) -> None:
        state = self.run_folder.last_state()
        kept = f"The last good state is kept in {state}" if state else "No state had been saved yet"
        raise TrainingError(
            f"Training stopped after step {self.state.global_step}: {reason}. {kept}. Lower lr or head_lr, or set "
            'clip = 1.0 or precision = "float32", and begin again.'
        )


class Log(TrainerCallback):
    """Writes one line per record, and tells `report`.

    Args:
        run: Where to.
        report: Told each record; may raise.
        model: Counts the tokens.
        probe: Gives more for the first record.
    """

    def __init__(
        self, run: Run, report: Report | None, model: TrainingModel, probe: Callable[[], Mapping[str, Any]]
    ) -> None:
        self.run, self.report, self.model, self.probe = run, report, model, probe
        self.clock, self.tokens = time.perf_counter(), 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a record. What is not a number becomes null."""
        record = {key: None if value != value else value for key, value in record.items()}
        self.run.write(record)
        if self.report:
            self.report(record)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Note the first step."""
        if state.is_world_process_zero:
            self.add({"event": "start", "step": state.global_step, "steps": state.max_steps, **self.probe()})
        self.clock, self.tokens = time.perf_counter(), self.model.tokens

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float],
        **_: object,
    ) -> None:
        """Note loss or scores."""
        place = {"step": state.global_step, "steps": state.max_steps, "epoch": round(state.epoch or 0, 4)}
        if not state.is_world_process_zero:
            return
        if "loss" in logs:
            seconds, tokens = time.perf_counter() - self.clock, self.model.tokens - self.tokens
            speed = {"seconds": round(seconds, 3), "tokens_per_second": round(tokens / seconds)}
            shown = {name: logs[name] for name in ("loss", "learning_rate", "grad_norm") if name in logs}
            self.add({"event": "step", **place, **shown, **speed})
        elif "eval_rows" in logs:
            scores = {name[5:]: value for name, value in logs.items() if name.startswith("eval_")}
            self.add({"event": "evaluation", **place, **scores})
        self.clock, self.tokens = time.perf_counter(), self.model.tokens


class _Moments(TrainerCallback):
    """Asks for an evaluation and a saved state at even distances, the last one at the end of each epoch."""

    def __init__(self, per_epoch: int, *, evaluated: bool) -> None:
        self.per_epoch, self.evaluated = per_epoch, evaluated

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        steps = max(1, round(state.max_steps / args.num_train_epochs))
        step = (state.global_step - 1) % steps + 1
        if step in {math.ceil(steps * (part + 1) / self.per_epoch) for part in range(self.per_epoch)}:
            control.should_log = control.should_save = True
            control.should_evaluate = self.evaluated


class _Steering(TrainerCallback):
    """Saves and stops where somebody asks for it, in all processes at the same step."""

    WISHES: tuple[Wish, ...] = ("go", "save", "stop")

    def __init__(self, steer: Steer | None) -> None:
        self.steer, self.stopped = steer, False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        if self.steer is None:
            return
        wish = self._agree(self.WISHES.index(self.steer(state.global_step, state.max_steps)), args.device)
        if wish == "go" or control.should_evaluate:  # an evaluation may end the training by itself
            return
        control.should_save = True
        if wish == "stop":
            control.should_training_stop = self.stopped = True

    def _agree(self, wish: int, device: torch.device) -> Wish:
        """Take the strongest wish of all processes."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            shared = torch.tensor(wish, device=device)
            torch.distributed.all_reduce(shared, torch.distributed.ReduceOp.MAX)
            wish = int(shared)
        return self.WISHES[wish]


def columns(rows: Sequence[Example]) -> tuple[list[str], list[str], list[str]]:
    """Give sentences 1, sentences 2 and conditions of rows."""
    return [row.sentence1 for row in rows], [row.sentence2 for row in rows], [row.condition for row in rows]


def units_per_batch(recipe: TrainRecipe) -> int:
    """Give how many units one forward pass has."""
    return {"rows": recipe.batch_size, "pairs": recipe.batch_size // 2, "blocks": 1}[recipe.batching]


def _arguments(recipe: TrainRecipe, run: Run, device: str, *, evaluated: bool) -> TrainingArguments:
    dtype = choose_precision(recipe.precision, device)
    best = evaluated and recipe.keep == "best"
    arguments = TrainingArguments(
        output_dir=str(run.folder),
        per_device_train_batch_size=units_per_batch(recipe),
        gradient_accumulation_steps=recipe.accumulation,
        num_train_epochs=recipe.epochs,
        learning_rate=recipe.lr,
        weight_decay=recipe.weight_decay,
        warmup_steps=recipe.warmup,
        lr_scheduler_type="linear",
        max_grad_norm=recipe.clip,
        seed=recipe.seed,
        bf16=dtype == torch.bfloat16,
        fp16=dtype == torch.float16,
        use_cpu=device == "cpu",
        # `_Moments` says when.
        eval_strategy="steps" if evaluated else "no",
        eval_steps=NEVER,
        save_strategy="steps",
        save_steps=NEVER,
        save_total_limit=None,  # `Loop` removes older states
        load_best_model_at_end=best,
        metric_for_best_model="spearman" if best else None,
        greater_is_better=True if best else None,
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
