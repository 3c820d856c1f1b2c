"""A short, measured try of a training, in a process of its own: python -m condviz.training.probe < REQUEST.

The request has two lines: recipe and device, with which it loads what a training loads, and then what to try.

Memory that does not suffice ends this process and no other, and its peak is that of the training alone.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import torch

from condviz.encoder.pretrained import choose_precision
from condviz.errors import CondvizError
from condviz.methods.catalog import CATALOG
from condviz.training.data import Example, Unit, collate, count_texts
from condviz.training.model import build_module
from condviz.training.recipes import SentenceRecipe, from_dict
from condviz.types import columns

MEASURE_S = 2.0
"""Batches are timed until this is over, at least one."""
SHARE = 0.9
"""Of the free memory: the rest is for what a try does not show."""


_GROUP = Path("/sys/fs/cgroup")
"""Limits of a container, for which psutil shows the memory of the whole machine."""


@dataclass(frozen=True)
class Measured:
    """What was measured."""

    preparation: float
    """Seconds until the first batch, from the start of the process, without what it waited."""
    batch: float | None
    """Seconds of a forward and backward pass; None if it does not fit."""
    update: float
    """Seconds of a step of the optimizer."""
    scoring: float
    """Seconds per row that is scored."""
    encoding: float
    """Seconds per text that is encoded ahead, see `count_texts`; 0 where nothing is."""
    memory: int
    """Bytes at the peak; expected where it does not fit."""
    available: int
    """Bytes that there are."""
    fitting_rows: int
    """Rows of a batch that would fit; 0 if not even two do."""
    cut_texts: int
    """How many of the longest texts are longer than the encoder reads."""


class Try:
    """The training of a recipe without its loop."""

    def __init__(self, recipe: SentenceRecipe, device: str) -> None:
        self.device, self.dtype = device, choose_precision(recipe.precision, device)
        self.model = build_module(recipe, device).to(device)
        self.fitted = self.model.method.method_config.fitted
        self.model.frozen |= self.fitted
        self.separable = CATALOG[recipe.method].separable
        trained = [value for value in self.model.parameters() if value.requires_grad]
        # As the Trainer makes it; the rate does not change the time.
        self.optimizer = torch.optim.AdamW(trained, lr=0.0, fused=device != "mps") if trained else None

    def autocast(self) -> torch.autocast:
        """Compute in the precision of the training."""
        return torch.autocast(self.device, self.dtype, enabled=self.dtype != torch.float32)

    def run_batch(self, units: Sequence[Unit]) -> tuple[float, float]:
        """Return the seconds of a batch and of the step of the optimizer after it."""
        inputs = collate(units)
        moved = {key: value.to(self.device) if torch.is_tensor(value) else value for key, value in inputs.items()}
        self.model.train()
        start = self.now()
        with self.autocast():
            loss = self.model(**moved)["loss"]
        loss.backward()
        middle = self.now()
        if self.optimizer is not None:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return middle - start, self.now() - middle

    def time_encoding(self, rows: Sequence[Example]) -> float:
        """Encode rows ahead, where the encoder is frozen; returns the seconds that it took."""
        sentences = [text for row in rows for text in (row.sentence1, row.sentence2)]
        conditions = [row.condition for row in rows for _ in range(2)]
        start = self.now()
        with self.autocast():
            self.model.fill_cache(sentences, conditions)
        return self.now() - start

    def now(self) -> float:
        """Return the time at which all that was asked for is done."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


def measure(
    recipe: SentenceRecipe, device: str, read: Callable[[], Mapping[str, Any]], *, imports: float = 0.0
) -> Measured:
    """Try a training. `read` waits for what to try; `imports` are the seconds this process has taken until now.

    "batches" are lists of units, the heaviest first; "validation" some rows; "longest" texts.
    """
    available = free_memory(device)
    start = time.perf_counter()
    tried = Try(recipe, device)
    loaded = time.perf_counter() - start
    request = read()
    start = time.perf_counter()
    batches = [[tuple(Example(**row) for row in unit) for unit in batch] for batch in request["batches"]]
    rows = [Example(**row) for row in request["validation"]]
    encoding = 0.0
    if tried.model.frozen:
        # The heaviest texts say nothing about the others. Batches and scores are timed as a training has them: encoded.
        heaviest, *others = ([row for unit in batch for row in unit] for batch in batches)
        tried.time_encoding(heaviest)
        seconds = tried.time_encoding([row for batch in others for row in batch])
        first, both = (count_texts(part, separable=tried.separable) for part in (heaviest, sum(others, heaviest)))
        encoding = seconds / max(1, both - first)
        tried.time_encoding(rows)
    cut = len(tried.model.method.backbone.truncated([(text,) for text in request["longest"]]))
    preparation = imports + loaded + time.perf_counter() - start
    memory, fitting, batch, update, scoring = peak_memory(device), recipe.batch_size, 0.0, 0.0, 0.0
    if not tried.fitted:  # a projection cannot score before it is fitted, and then it has little to do
        memory, fitting = _expect(tried, batches[0], recipe.batch_size, SHARE * available)
        fits = fitting >= recipe.batch_size
        batch, update = _time(tried, batches) if fits else (None, 0.0)
        if fits and rows:
            tried.model.train()  # forgets the identity of the weights
            tried.model.eval()
            start = tried.now()
            with tried.autocast():
                tried.model.method.score(*columns(rows))
            scoring = (tried.now() - start) / len(rows)
    memory = max(memory, peak_memory(device))
    return Measured(preparation, batch, update, scoring, encoding, memory, available, fitting, cut)


def _expect(tried: Try, heaviest: Sequence[Unit], batch_size: int, limit: float) -> tuple[int, int]:
    """Return the memory that the heaviest batch will take, from two smaller ones, and how many rows fit."""
    whole = len(heaviest)
    if whole < 4:
        tried.run_batch(heaviest)
        peak = peak_memory(tried.device)
        return peak, batch_size if peak <= limit else 0
    peaks = []
    for part in (whole // 4, whole // 2):
        tried.run_batch(heaviest[:part])
        peaks.append(peak_memory(tried.device))
    slope = (peaks[1] - peaks[0]) / (whole // 2 - whole // 4)
    expected = int(peaks[1] + slope * (whole - whole // 2))
    if expected <= limit:
        return expected, batch_size
    units = whole // 2 + (limit - peaks[1]) / slope if slope > 0 else 0
    rows = int(max(0, units) / whole * batch_size)
    return expected, 2 ** (rows.bit_length() - 1) if rows >= 2 else 0


def _time(tried: Try, batches: Sequence[Sequence[Unit]]) -> tuple[float, float]:
    """Return the mean seconds of a batch and of a step of the optimizer, without the heaviest batch."""
    seconds: list[tuple[float, float]] = []
    start = time.perf_counter()
    for batch in batches[1:] or batches:
        seconds.append(tried.run_batch(batch))
        if time.perf_counter() - start > MEASURE_S:
            break
    batch, update = map(statistics.fmean, zip(*seconds, strict=True))
    return batch, update


def free_memory(device: str) -> int:
    """Return the bytes that a new process could take on "cuda", or in main memory."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    return min(psutil.virtual_memory().available, _group_free())


def peak_memory(device: str) -> int:
    """Return the most bytes that this process has held on "cuda", or in main memory."""
    if device == "cuda":
        return torch.cuda.max_memory_reserved()
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    import resource  # not there on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _group_free() -> int:
    try:
        limit = (_GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((_GROUP / "memory.current").read_text(encoding="ascii"))
        # Files that were read are counted, and given back when memory is wanted.
        facts = dict(line.split() for line in (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return sys.maxsize
    return sys.maxsize if limit == "max" else int(limit) - used + int(facts.get("inactive_file", 0))


def main() -> None:
    """Read a request from standard input; write what was measured, or {"problem"}, as the last line of the output."""
    imports = time.time() - psutil.Process().create_time()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    request = sys.stdin.readline()
    if not request:  # whoever started it has left
        return
    asked = json.loads(request)
    try:
        recipe = cast("SentenceRecipe", from_dict(asked["recipe"]))
        found = asdict(measure(recipe, asked["device"], lambda: json.load(sys.stdin), imports=imports))
    except CondvizError as error:
        found = {"problem": str(error)}
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
