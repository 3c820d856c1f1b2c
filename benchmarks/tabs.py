"""What a visitor waits for, once the models are loaded: one run of each tab's function on texts it has not seen.

python -m benchmarks.tabs [--json FILE] [--docs] [--rounds N]
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator

import pandas as pd

import condviz
from benchmarks.common import Result, conditions, mixed_sentences, options, report, times_in_turns
from condviz.training.preflight import check
from condviz.training.recipes import load_recipe
from condviz.training.worker import prepare_probe
from condviz.ui.pool import ModelPool
from condviz.ui.train.recipe import compose, parse

ROUTER, ERROR_ROWS, MAP_ROWS = "csr-bi", 160, 300
ALLOWED_S = {"Compare: 5 conditions": None, "Words: 2 conditions": 1, "Errors: 160 rows": 3, "Map: 300 rows": 2}
CHECK_ALLOWED_S = 5


def rated_rows(sentences: Iterator[str], asked: list[str]) -> pd.DataFrame:
    """Return rows of two sentences and a condition, two conditions for each pair, with alternating ratings."""
    rows = []
    for _ in range(ERROR_ROWS // 2):
        pair = next(sentences), next(sentences)
        rows += [(*pair, asked[0], 5), (*pair, asked[1], 1)]
    return pd.DataFrame(rows, columns=["sentence1", "sentence2", "condition", "label"])


def jobs() -> dict[str, Callable[[], object]]:
    """Return what to time; each call takes sentences that no call before it had."""
    default = condviz.load(ModelPool().default)
    router = condviz.load(ROUTER)
    asked = conditions(5)
    sentences = iter(itertools.cycle(mixed_sentences(4_000)))
    return {
        "Compare: 5 conditions": lambda: condviz.compare(default, next(sentences), next(sentences), asked),
        "Words: 2 conditions": lambda: condviz.read_words(router, [next(sentences)], asked[:2]),
        "Errors: 160 rows": lambda: condviz.find_errors(default, rated_rows(sentences, asked)),
        "Map: 300 rows": lambda: condviz.build_map(
            default, [next(sentences) for _ in range(MAP_ROWS)], asked[:1], measures=False
        ),
    }


def check_times(rounds: int) -> list[float]:
    """Return the seconds of checks of a training, each by a process that has waited since the tab was opened."""
    recipe = load_recipe(parse(compose("quick", "benchmark", None)))
    job = {"check": lambda: check(recipe)}
    return times_in_turns(job, rounds=rounds, before=lambda: prepare_probe().stdout.readline())["check"]


def run(*, rounds: int = 3) -> list[Result]:
    """Measure in turns; a minute or two."""
    seconds = times_in_turns(jobs(), rounds=rounds) | {"Train: check": check_times(rounds)}
    results = []
    for name, allowed in (ALLOWED_S | {"Train: check": CHECK_ALLOWED_S}).items():
        median = statistics.median(seconds[name])
        target = f"≤ {allowed} s" if allowed else ""
        passed = None if allowed is None else median <= allowed
        results.append(Result(name, target, f"{median:.2f} s", passed, median, {"seconds": seconds[name]}))
    return results


def main() -> None:
    """Run from the command line."""
    chosen = options(__doc__, rounds=3).parse_args()
    report(run(rounds=chosen.rounds), chosen, "tabs")


if __name__ == "__main__":
    main()
