"""What a recipe's data are like and what its training takes, tried in a process of its own.

python -m condviz.training.probe < REQUEST, one line of JSON: recipe, device, processes. It answers in lines of JSON,
each a `Preflight`: first of the data alone, then of the try as well. Memory that does not suffice ends this process and
no other, and its peak is that of the training alone.
"""

from __future__ import annotations

import heapq
import json
import math
import os
import random
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, cast

import psutil
import torch
from pydantic import TypeAdapter

from condviz.encoder.pretrained import choose_precision
from condviz.errors import CondvizError
from condviz.methods.catalog import CATALOG
from condviz.training.data import (
    TABLE,
    Example,
    MixedOrder,
    Unit,
    collate,
    count_texts,
    load_rows,
    load_source,
    make_units,
    read_examples,
    units_per_batch,
)
from condviz.training.model import build_module
from condviz.training.recipes import SentenceRecipe, from_dict
from condviz.types import columns

MEASURE_S = 2.0
"""Batches are timed until this is over, at least one."""
TIMED_BATCHES, SCORED_ROWS, LONGEST_TEXTS = 2, 32, 64
SHARE = 0.9
"""Of the free memory: the rest is for what a try does not show."""
MIN_ROWS = 16
"""Fewer rows than this teach nothing that holds for others."""
FEW_ROWS = 200
IDLE_S = 600.0
"""A probe that nobody has asked for anything in this time gives its memory back."""
_GROUP = Path("/sys/fs/cgroup")
"""Limits of a container, for which psutil shows the memory of the whole machine."""


@dataclass(frozen=True)
class Preflight:
    """What a training will take: what was found of its data, and what was measured."""

    rows: int = 0
    """Rows that are trained on, once each."""
    validation_rows: int = 0
    """Rows that decide which weights are kept."""
    dropped: int = 0
    """Rows of the files that are not used: repeated, without a label, or without a partner in batches of pairs."""
    problems: tuple[str, ...] = ()
    """Why a training cannot begin, in words."""
    advice: tuple[str, ...] = ()
    device: str = ""
    """One of "cpu", "cuda", "mps"."""
    steps: int = 0
    """Steps of the optimizer; 0 where a projection is fitted."""
    minutes: float | None = None
    """Expected, from the measured try; None if it was not made or did not end."""
    memory: int | None = None
    """Bytes at the peak; None like minutes."""


ANSWER = TypeAdapter(Preflight)


class Survey(NamedTuple):
    """A recipe's data: what was found of them, the units of each source, and the validation rows."""

    found: Preflight
    units: list[list[Unit]]
    validation: list[Example]


def survey(recipe: SentenceRecipe) -> Survey:
    """Survey the data of a recipe; what is wrong is returned in `problems`, not raised."""
    try:
        parts, raw, notes = [], 0, []
        for source in recipe.train:
            is_table = source.name == TABLE and recipe.batching != "blocks"
            part, table = read_examples(source) if is_table else (load_rows(source, recipe), None)
            parts.append(part)
            raw += len(table.pairs) + len(table.report.left_out) if table else len(part)
            notes += table.notes if table else ()
        units = [make_units(part, recipe.batching) for part in parts]
        validation = [row for source in recipe.validation for row in load_source(source)]
    except CondvizError as error:
        return Survey(Preflight(problems=(str(error),)), [], [])
    rows = [row for part in units for unit in part for row in unit]
    said = tuple(_problems(recipe, rows, validation)), (*notes, *_advice(rows, validation))
    return Survey(Preflight(len(rows), len(validation), raw - len(rows), *said), units, validation)


def _problems(recipe: SentenceRecipe, rows: Sequence[Example], validation: Sequence[Example]) -> Iterator[str]:
    labels, ranked = {row.label for row in rows}, {row.label for row in validation}
    if len(rows) < MIN_ROWS:
        yield f"There are only {len(rows)} rows to train on; at least {MIN_ROWS} are needed, hundreds are better."
    elif recipe.batching != "blocks" and recipe.batch_size > len(rows):
        fitting = 2 ** (len(rows).bit_length() - 1)
        yield f"batch_size is {recipe.batch_size}, but there are only {len(rows)} rows. Set it to {fitting}."
    if len(labels) == 1 and not recipe.loss.teacher:
        yield (
            f"Every row has the label {labels.pop():g}, so there is nothing to tell apart. Add rows with other labels, "
            "from 1 (different) to 5 (same)."
        )
    if recipe.keep == "best" and len(ranked) == 1:
        yield (
            f"Every validation row has the label {ranked.pop():g}: no model ranks them better than another. Add other "
            'labels, or set keep = "last".'
        )


def _advice(rows: Sequence[Example], validation: Sequence[Example]) -> Iterator[str]:
    if MIN_ROWS <= len(rows) < FEW_ROWS:
        yield f"{len(rows)} rows are few: expect a model that knows these conditions and no others."
    labels: dict[tuple[str, str, str], set[float]] = defaultdict(set)
    for row in rows:
        labels[row.texts].add(row.label)
    if disputed := sum(len(given) > 1 for given in labels.values()):
        yield f"{disputed} triples of texts have several labels; the model learns their mean."
    if shared := sum(row.texts in labels for row in validation):
        yield (
            f"{shared} of {len(validation)} validation rows are also trained on: their scores will look better than "
            "those on new rows."
        )
    if not validation:
        yield "Without validation rows there is no curve of scores, and the last weights are kept."


def count_steps(recipe: SentenceRecipe, units: Sequence[Sequence[Unit]], processes: int = 1) -> int:
    """Count the steps of the optimizer of a whole training."""
    if recipe.method_config().fitted or not units:
        return 0
    order = MixedOrder(list(map(len, units)), [source.weight for source in recipe.train], seed=recipe.seed)
    batches = math.ceil(len(order) / units_per_batch(recipe) / processes)
    return recipe.epochs * math.ceil(batches / recipe.accumulation)


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
        self.available = free_memory(device)  # the peak, which is held against it, counts the model as well
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


def measure(recipe: SentenceRecipe, tried: Try, data: Survey, *, preparation: float = 0.0) -> Measured:
    """Try the heaviest batch there could be, and some as they come; `preparation` are the seconds until now."""
    start = time.perf_counter()
    units, dice = [unit for part in data.units for unit in part], random.Random(recipe.seed)
    size = min(units_per_batch(recipe), len(units))
    heaviest = heapq.nlargest(size, units, key=lambda unit: sum(len(text) for row in unit for text in row.texts))
    batches = [heaviest, *(dice.sample(units, size) for _ in range(TIMED_BATCHES))]
    rows = dice.sample(data.validation, min(SCORED_ROWS, len(data.validation)))
    encoding = 0.0
    if tried.model.frozen:
        # The heaviest texts say nothing about the others. Batches and scores are timed as a training has them: encoded.
        first, *others = ([row for unit in batch for row in unit] for batch in batches)
        tried.time_encoding(first)
        seconds = tried.time_encoding([row for batch in others for row in batch])
        known, both = (count_texts(part, separable=tried.separable) for part in (first, sum(others, first)))
        encoding = seconds / max(1, both - known)
        tried.time_encoding(rows)
    longest = heapq.nlargest(LONGEST_TEXTS, {text for unit in units for row in unit for text in row.texts}, key=len)
    cut = len(tried.model.method.backbone.truncated([(text,) for text in longest]))
    preparation += time.perf_counter() - start
    memory, fitting, batch, update, scoring = peak_memory(tried.device), recipe.batch_size, 0.0, 0.0, 0.0
    if not tried.fitted:  # a projection cannot score before it is fitted, and then it has little to do
        memory, fitting = _expect(tried, heaviest, recipe.batch_size, SHARE * tried.available)
        fits = fitting >= recipe.batch_size
        batch, update = _time(tried, batches) if fits else (None, 0.0)
        if fits and rows:
            tried.model.train()  # forgets the identity of the weights
            tried.model.eval()
            start = tried.now()
            with tried.autocast():
                tried.model.method.score(*columns(rows))
            scoring = (tried.now() - start) / len(rows)
    memory = max(memory, peak_memory(tried.device))
    return Measured(preparation, batch, update, scoring, encoding, memory, tried.available, fitting, cut)


def judge(recipe: SentenceRecipe, data: Survey, found: Preflight, tried: Measured) -> Preflight:
    """Add to what was found of the data what a try says of the whole training."""
    found = replace(found, memory=tried.memory)
    if tried.cut_texts:
        count = f"At least {tried.cut_texts}" if tried.cut_texts == LONGEST_TEXTS else str(tried.cut_texts)
        cut = f"{count} of the texts are longer than {recipe.backbone} reads; their ends are cut off."
        found = replace(found, advice=(*found.advice, cut))
    if tried.batch is None:
        return replace(found, problems=(_too_large(recipe, tried),))
    return replace(found, minutes=_seconds(recipe, data, found.steps, tried) / 60)


def _seconds(recipe: SentenceRecipe, data: Survey, steps: int, tried: Measured) -> float:
    """Expect the time of a whole training from a measured try."""
    evaluations = recipe.epochs * recipe.evaluations + 2 if data.validation else 0  # at the start, and at the end
    rows = [row for part in data.units for unit in part for row in unit]
    texts = count_texts([*rows, *data.validation], separable=CATALOG[recipe.method].separable) if tried.encoding else 0
    return (
        tried.preparation
        + steps * (recipe.accumulation * (tried.batch or 0.0) + tried.update)
        + evaluations * len(data.validation) * tried.scoring
        + texts * tried.encoding
    )


def _too_large(recipe: SentenceRecipe, tried: Measured) -> str:
    advice = 'Tune less (tuning = "lora" or "frozen"), lower batch_size, or take a smaller encoder.'
    if tried.fitting_rows and recipe.batching != "blocks":
        accumulation = recipe.accumulation * math.ceil(recipe.batch_size / tried.fitting_rows)
        settings = f"batch_size = {tried.fitting_rows} with accumulation = {accumulation}"
        advice = f"{settings} would fit and takes the same steps."
    needed, free = (f"{size / 1e9:.1f} GB" for size in (tried.memory, tried.available))
    return f"This needs about {needed} of memory, and {free} are free on this machine. {advice}"


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


def probe(recipe: SentenceRecipe, device: str, processes: int = 1, *, imports: float = 0.0) -> Iterator[Preflight]:
    """Yield what is found of a recipe's data and, if they can be trained on, what a try adds to that.

    `imports` are the seconds that the process has taken until now; errors are those of `build_module`.
    """
    start = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(Try, recipe, device)  # while the data are read
        data = survey(recipe)
        found = replace(data.found, device=device, steps=count_steps(recipe, data.units, processes))
        yield found
        if found.problems:
            return
        tried = loading.result()
    preparation = imports + time.perf_counter() - start
    yield judge(recipe, data, found, measure(recipe, tried, data, preparation=preparation))


def main() -> None:
    """Answer one request; what a training would raise is a problem."""
    imports = time.time() - psutil.Process().create_time()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    idle = threading.Timer(IDLE_S, os._exit, (0,))
    idle.daemon = True
    idle.start()
    request = sys.stdin.readline()
    idle.cancel()
    if not request:  # whoever started it has left
        return
    asked = json.loads(request)
    found = Preflight(device=asked["device"])
    try:
        recipe = cast("SentenceRecipe", from_dict(asked["recipe"]))
        for found in probe(recipe, asked["device"], asked["processes"], imports=imports):
            _say(found)
    except CondvizError as error:
        _say(replace(found, problems=(str(error),)))


def _say(found: Preflight) -> None:
    sys.stdout.write(f"\n{ANSWER.dump_json(found).decode()}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
