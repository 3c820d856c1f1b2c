"""How much work each shipped model is, as a multiple of the plain encoder.

python -m benchmarks.effort [--model NAME] [--store]

Processor time of one thread, which other work on the machine hardly changes: one pair of sentences under five
conditions, and a search through 30 texts under five conditions. `--store` writes assets/effort.json, which the page of
models reads; models that are not named keep what they have.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks.common import conditions, mixed_sentences
from condviz.data.files import write_text
from condviz.evaluation.scoreboard import efforts, read_board
from condviz.models.registry import load
from condviz.paths import ASSETS
from condviz.ui.speed import CONDITIONS, TASKS

ROUNDS, PLAIN = 2, "minilm"


def work(model: Any, texts: list[str], asked: list[str]) -> None:  # noqa: ANN401 - a loaded model
    """Compare the first text with each other one under each condition, as a search does where the model has vectors."""
    query, *others = texts
    if model.info.encodes and len(others) > 1:
        for condition in asked:
            model.encode([query, *others], [condition] * len(texts))
    else:
        pairs = [(query, other, condition) for other in others for condition in asked]
        model.score(*map(list, zip(*pairs, strict=True)))


def seconds(job: Callable[[], None]) -> float:
    """Return the processor time of a job."""
    start = time.process_time()
    job()
    return time.process_time() - start


def run(names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Measure models in turns; every round has new texts, so that nothing comes from a cache."""
    torch.set_num_threads(1)
    models = {name: load(name, device="cpu", precision="float32") for name in dict.fromkeys((PLAIN, *names))}
    asked = conditions(CONDITIONS)
    found: dict[str, dict[str, list[float]]] = {name: {task: [] for task in TASKS} for name in models}
    for number in range(-1, ROUNDS):
        for task, count in TASKS.items():
            for place, (name, model) in enumerate(models.items()):
                # Of its own: models on one encoder share its vectors.
                mark = f"{number + 2}{place:02d}"
                texts = [f"{text} {mark}" for text in mixed_sentences(1 + max(TASKS.values()))[: 1 + count]]
                own = [f"{text} {mark}" for text in asked]
                took = seconds(lambda model=model, texts=texts, own=own: work(model, texts, own))
                if number >= 0:
                    found[name][task].append(took)
    middle = {name: {task: statistics.median(took) for task, took in tasks.items()} for name, tasks in found.items()}
    plain = middle[PLAIN]
    return {
        name: {task: round(took / plain[task], 2) for task, took in tasks.items()} for name, tasks in middle.items()
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", action="store_true", help="write assets/effort.json")
    parser.add_argument("--model", action="append", default=[], help="may be repeated (default: all)")
    chosen = parser.parse_args()
    found = run(chosen.model or [name for name in read_board().models if not name.endswith("-zero-shot")])
    print(json.dumps(found, indent=1))
    if chosen.store:
        kept = {name: tasks for name, tasks in efforts().items() if chosen.model and name not in chosen.model}
        found = {name: tasks for name, tasks in found.items() if name not in kept}
        write_text(ASSETS / "effort.json", json.dumps(kept | found, indent=1) + "\n")


if __name__ == "__main__":
    main()
