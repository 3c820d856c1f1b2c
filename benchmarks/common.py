"""What all benchmarks share: texts, timing with anchors and ours in turns, and the table of targets."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.board import fill_document
from condviz.data.scenes import load_aspects, load_families


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Attributes:
        what: What was measured.
        target: What it has to reach, in words; "" where there is no target.
        measured: What came out, in words.
        passed: Whether the target is reached; None where there is none, or it does not apply to this machine.
        value: The figure that is compared with the target.
        details: Everything that was timed.
    """

    what: str
    target: str
    measured: str
    passed: bool | None
    value: float | None
    details: Mapping[str, object]


def times_in_turns(
    jobs: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    before: Callable[[], object] = lambda: None,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time jobs in turns, so that a slow moment of the machine meets all of them.

    Args:
        jobs: What to time, by name.
        rounds: How often each job runs.
        before: Called before each run, outside the time, for instance to empty a cache.
        warm_up: Run each job once more at the start, not counted.
        clock: What tells the time.

    Returns:
        Per job, the seconds of each round.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(-1 if warm_up else 0, rounds):
        for name, job in jobs.items():
            before()
            start = clock()
            job()
            if turn >= 0:
                seconds[name].append(clock() - start)
    return seconds


@dataclass(frozen=True)
class Plan:
    """How speed is measured.

    Attributes:
        rounds: How often each job is timed.
        busy: Take the processor time of a single thread, which other work on the machine hardly changes.
    """

    rounds: int = 3
    busy: bool = False

    @property
    def clock(self) -> Callable[[], float]:
        """What tells the time."""
        return time.thread_time if self.busy else time.perf_counter


def ratio(seconds: Mapping[str, Sequence[float]], slow: str, fast: str) -> float:
    """Give the median over the rounds of how many times faster `fast` is than `slow` in the same round."""
    return statistics.median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True))


def mixed_sentences(number: int, *, seed: int = 0) -> list[str]:
    """Give different texts of mixed length from the scenes: phrases, sentences, and two to six sentences joined."""
    generator = np.random.default_rng(seed)
    sentences = [scene.text for family in load_families() for scene in family.scenes]
    order, phrases = iter(generator.permutation(len(sentences))), iter(conditions(number // 4, seed=seed))
    sizes = generator.choice([0, 1, 2, 6], size=number, p=[0.2, 0.7, 0.08, 0.02])
    return [" ".join(sentences[next(order)] for _ in range(size)) if size else next(phrases) for size in sizes]


def conditions(number: int, *, seed: int = 0) -> list[str]:
    """Give different wordings of conditions from the scenes."""
    phrasings = sorted({text for aspect in load_aspects().values() for text in aspect.phrasings})
    return list(np.random.default_rng(seed).choice(phrasings, size=number, replace=False))


def machine() -> dict[str, object]:
    """Describe processor and libraries in a line's worth of facts."""
    import torch
    import transformers

    from condviz.encoder.pretrained import fast_in_bfloat16

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "threads": torch.get_num_threads(),
        "fast in bfloat16": fast_in_bfloat16(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def table(results: Sequence[Result]) -> str:
    """Give a markdown table."""
    verdict = {True: "pass", False: "**FAIL**", None: "–"}
    lines = ["| measure | target | measured | |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.what} | {row.target or '–'} | {row.measured} | {verdict[row.passed]} |" for row in results]
    return "\n".join(lines)


def fill(name: str, text: str) -> None:
    """Replace what stands between the marks of that name in docs/results.md."""
    fill_document(text, marks=(f"<!-- {name}:start -->", f"<!-- {name}:end -->"))


def options(description: str, *, rounds: int = 0, docs: bool = True) -> argparse.ArgumentParser:
    """Give a parser with the options that benchmarks share.

    Args:
        description: The docstring of the benchmark; its first line is the help.
        rounds: Default of --rounds; 0 for a benchmark without it.
        docs: Whether docs/results.md has a place for the table.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    if docs:
        parser.add_argument("--docs", action="store_true", help="put the table between its marks in docs/results.md")
    if rounds:
        parser.add_argument("--rounds", type=int, default=rounds, help="how often each is timed (default: %(default)s)")
    return parser


def command() -> str:
    """Give the command that was typed, without where its results go."""
    module = sys.modules["__main__"].__spec__.name.removesuffix(".__main__")
    words = [word for word in sys.argv[1:] if word != "--docs"]
    if "--json" in words:
        place = words.index("--json")
        del words[place : place + 2]
    return " ".join(["python -m", module, *words])


def report(results: Sequence[Result], chosen: argparse.Namespace, name: str) -> None:
    """Print the table, write the JSON file, fill the document.

    Args:
        results: Lines of the table.
        chosen: From a parser of `options`.
        name: Of the marks in docs/results.md.
    """
    facts = machine()
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    print(f"Machine: {told}\n")
    print(table(results))
    if getattr(chosen, "docs", False):
        fill(name, f"`{command()}`, everything in one run; {told}:\n\n{table(results)}")
    if chosen.json:
        written = {"machine": facts, "results": [asdict(row) for row in results]}
        chosen.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
