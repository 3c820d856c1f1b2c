"""Time of a training step, as ratios to a plain transformers Trainer and to full fine-tuning in the same run.

python -m benchmarks.training [--json FILE] [--rounds N] [--device cpu|cuda] [--busy] [--docs]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Trainer, TrainingArguments

from benchmarks.common import Plan, Result, options, ratio, report, times_in_turns
from condviz.training.data import Unit, collate, load_blocks, load_source, make_units
from condviz.training.probe import Try
from condviz.training.recipes import SentenceRecipe, from_dict

ROWS = 32
BLOCK = 8
"""Sentences of a block: all their pairs under a few wordings make a batch."""
RANK = 32
SEED = 0


class Plain(nn.Module):
    """Hyper-CL as a Trainer meets it elsewhere: every sentence and condition of every row encoded, padded together."""

    def __init__(self, tried: Try) -> None:
        super().__init__()
        self.method = tried.model.method
        self.encoder, self.tokenizer = self.method.backbone.model, self.method.backbone.tokenizer

    def forward(self, texts: Mapping[str, Tensor], labels: Tensor) -> dict[str, Tensor]:
        """Give the mean squared error of the cosines."""
        states = self.encoder(**texts).last_hidden_state
        mask = texts["attention_mask"][..., None].to(states.dtype)
        first, second, conditions = ((states * mask).sum(1) / mask.sum(1)).chunk(3)
        conditions = self.method.project_conditions(conditions)
        one, other = (self.method.compose(self.method.project_sentences(part), conditions) for part in (first, second))
        return {"loss": functional.mse_loss(functional.cosine_similarity(one.float(), other.float()), labels)}

    def collate(self, units: Sequence[Unit]) -> dict[str, Any]:
        """Tokenize all texts of a batch, 3b rows."""
        inputs = collate(units)
        batch = inputs["batch"]
        texts = [*batch.sentences1, *batch.sentences2, *batch.conditions]
        return {
            "texts": dict(self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")),
            "labels": inputs["labels"],
        }


class PlainStep:
    """A step of transformers' own Trainer, from texts to new weights."""

    def __init__(self, tried: Try, folder: str) -> None:
        self.plain, self.tried = Plain(tried), tried
        arguments = TrainingArguments(
            folder, use_cpu=tried.device == "cpu", bf16=tried.dtype == torch.bfloat16, report_to=[], disable_tqdm=True,
            fp16=tried.dtype == torch.float16, remove_unused_columns=False,
        )  # fmt: skip
        self.trainer = Trainer(self.plain, arguments, optimizers=(tried.optimizer, None))
        self.trainer.current_gradient_accumulation_steps = 1  # what Trainer.train would set

    def __call__(self, units: Sequence[Unit]) -> float:
        """Run a batch; gives its loss."""
        loss = self.trainer.training_step(self.plain, self.plain.collate(units))
        self.tried.optimizer.step()
        self.tried.optimizer.zero_grad()
        return float(loss)


def recipe(tuning: str, batching: str) -> SentenceRecipe:
    """Give Hyper-CL of rank 32 on the default encoder, without dropout, so that losses can be compared."""
    content = {
        "name": "benchmark", "method": "hyper-cl", "config": {"rank": RANK, "pooling": "mean"}, "tuning": tuning,
        "batching": batching, "batch_size": ROWS if batching == "pairs" else BLOCK, "dropout": 0.0, "keep": "last",
        "train": [{"name": "scenes"}],
    }  # fmt: skip
    return from_dict(content)


@cache
def load_units(batching: str) -> list[Unit]:
    """Give the scenes, once."""
    source = recipe("full", batching).train[0]
    return make_units(load_blocks(source, BLOCK) if batching == "blocks" else load_source(source), batching)


def batches(batching: str, number: int) -> list[list[Unit]]:
    """Give batches of the scenes: pairs with two conditions each, or all pairs of some sentences."""
    units = load_units(batching)
    if batching == "blocks":
        return [[unit] for unit in units[:number]]
    order = torch.randperm(len(units), generator=torch.Generator().manual_seed(SEED)).tolist()
    size = ROWS // 2
    return [[units[i] for i in order[start : start + size]] for start in range(0, number * size, size)]


def measure_steps(batching: str, device: str, *, plan: Plan) -> Result:
    """Time our step and that of a plain Trainer on the same batches, with the same encoder and precision."""
    wanted = recipe("full", batching)
    ours, theirs = Try(wanted, device), Try(wanted, device)
    rows = batches(batching, plan.rounds + 1)
    turns = {"ours": iter(rows), "Trainer": iter(rows)}
    with tempfile.TemporaryDirectory() as folder:
        step = PlainStep(theirs, folder)
        jobs = {"Trainer": lambda: step(next(turns["Trainer"])), "ours": lambda: ours.run_batch(next(turns["ours"]))}
        seconds = times_in_turns(jobs, rounds=plan.rounds, clock=plan.clock)
    texts = collate(rows[1])["batch"]
    given, different = 3 * len(texts), len({*texts.sentences1, *texts.sentences2}) + len({*texts.conditions})
    factor, applies = ratio(seconds, "Trainer", "ours"), device == "cuda" or ours.dtype == torch.bfloat16
    target = 1.0 if device == "cuda" else 2.0
    return Result(
        f"step of Hyper-CL, full fine-tuning, batching = {batching}: {len(texts)} rows, {given} texts of which "
        f"{different} differ, {str(ours.dtype).removeprefix('torch.')} on {device}",
        f"≥ {target:g}x a plain transformers Trainer" + ("" if device == "cuda" else " with bfloat16"),
        f"{factor:.2f}x ({1000 * min(seconds['ours']):.0f} ms, {1000 * min(seconds['Trainer']):.0f} ms)",
        factor >= target if applies else None,
        factor,
        {"seconds": seconds},
    )


def measure_heads(device: str, *, plan: Plan) -> Result:
    """Time a step of a head on cached vectors, and of full fine-tuning, on the same batches."""
    full, frozen = Try(recipe("full", "pairs"), device), Try(recipe("frozen", "pairs"), device)
    rows = batches("pairs", plan.rounds + 1)
    encoding = frozen.time_encoding([unit for batch in rows for unit in batch])
    turns = {"full": iter(rows), "frozen": iter(rows)}
    jobs = {
        "full": lambda: full.run_batch(next(turns["full"])),
        "frozen": lambda: frozen.run_batch(next(turns["frozen"])),
    }
    seconds = times_in_turns(jobs, rounds=plan.rounds, clock=plan.clock)
    factor = ratio(seconds, "full", "frozen")
    return Result(
        f"step of a Hyper-CL head of rank {RANK} on vectors that were computed once, {ROWS} rows on {device}",
        "≥ 30x full fine-tuning",
        f"{factor:.1f}x ({1000 * min(seconds['frozen']):.1f} ms, {1000 * min(seconds['full']):.0f} ms; before that "
        f"{1000 * encoding:.1f} ms per text, once)",
        factor >= 30,
        factor,
        {"seconds": seconds, "encoding_seconds_per_text": encoding},
    )


def check_losses(device: str) -> float:
    """Give how far the losses of our step and of the plain one are apart on the same weights and batch."""
    (units,) = batches("pairs", 1)
    tried = Try(recipe("full", "pairs"), device)
    tried.model.eval()
    plain = Plain(tried)
    with torch.no_grad():
        inputs, others = collate(units), plain.collate(units)
        moved = {name: value.to(device) for name, value in others["texts"].items()}
        ours = tried.model(inputs["batch"], inputs["labels"].to(device), inputs["teacher"].to(device))["loss"]
        return abs(float(ours - plain(moved, others["labels"].to(device))["loss"]))


def run(device: str = "cpu", plan: Plan = Plan()) -> list[Result]:  # noqa: B008 (frozen)
    """Measure everything."""
    apart = check_losses(device)
    if not apart < 1e-4:
        raise RuntimeError(f"The two steps do not compute the same: losses are {apart:.2g} apart.")
    results = []
    for measure in (partial(measure_steps, "pairs"), measure_heads, partial(measure_steps, "blocks")):
        results.append(measure(device, plan=plan))
        print(f"{results[-1].what}: {results[-1].measured}", file=sys.stderr)
    return results


def main() -> None:
    """Measure and print."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--busy", action="store_true", help="count processor time of one thread: for busy machines")
    chosen = parser.parse_args()
    torch.manual_seed(SEED)
    if chosen.busy:
        torch.set_num_threads(1)
    report(run(chosen.device, Plan(chosen.rounds, chosen.busy)), chosen, "training")


if __name__ == "__main__":
    main()
