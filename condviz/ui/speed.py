"""How long models take on this machine: one is timed after the start, the others follow from their stored efforts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count
from time import perf_counter
from typing import Any, Literal, cast, get_args

from condviz.errors import ConfigError

Preference = Literal["auto", "best", "fast"]
"""What each view starts with: the best model that answers in time on this machine, the best, or the fast one."""
VARIABLE = "CONDVIZ_DEFAULT"
TASKS = {"pair": 1, "many": 30}
"""Task of assets/effort.json -> texts that a query is compared with, under each of so many `CONDITIONS`."""
CONDITIONS, ROUNDS = 5, 3
_marks = count()


@dataclass(frozen=True)
class Budget:
    """How long a visitor may wait for the usual answer of a view, and how much of a task that answer is."""

    seconds: float
    task: Literal["pair", "many"] = "pair"
    share: float = 1.0


def preference() -> Preference:
    """Return what the variable says; raises ConfigError where that is not allowed."""
    told = os.environ.get(VARIABLE) or "auto"
    if told not in get_args(Preference):
        raise ConfigError(f"{VARIABLE} is {told[:40]!r}. Set it to one of: {', '.join(get_args(Preference))}.")
    return cast(Preference, told)


def measure(model: Any) -> dict[str, float]:  # noqa: ANN401 - a loaded model
    """Return the least seconds that each task takes, by as many threads as the page has; no text was encoded before.

    Other work can only make it longer, and then more people wait for one answer.
    """
    took: dict[str, list[float]] = {task: [] for task in TASKS}
    for _ in range(ROUNDS):
        for task, others in TASKS.items():
            query, *texts = [f"Two people carry {next(_marks)} boxes through the rain." for _ in range(1 + others)]
            asked = [f"the weather, to reader {next(_marks)}" for _ in range(CONDITIONS)]
            rows = [(query, text, condition) for text in texts for condition in asked]
            start = perf_counter()
            model.score(*map(list, zip(*rows, strict=True)))
            took[task].append(perf_counter() - start)
    return {task: min(seconds) for task, seconds in took.items()}
