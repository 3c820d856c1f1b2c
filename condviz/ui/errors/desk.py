"""What is chosen in the Errors tab, the rows and scores behind it, and what was found.

Tables, scores and studies are shared by all visitors, each kind within a budget of memory. What does not fit any more
is dropped, the least recently used first. A session keeps only where its table lies, so a dropped table is read again;
dropped scores have to be computed again, which the tab offers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cachetools import LRUCache

from condviz.analysis.errors import findings
from condviz.analysis.errors.findings import ErrorStudy, analyse, find_errors
from condviz.analysis.errors.study import Study, judge, make_study
from condviz.data.corpora import CORPORA
from condviz.data.texts import fold
from condviz.errors import DataError, suggest
from condviz.evaluation.dataset import Dataset, corpus_dataset, table_dataset
from condviz.spec import write_options
from condviz.ui import limits, page
from condviz.ui.imports import Reading
from condviz.ui.limits import Value
from condviz.ui.pool import ModelPool
from condviz.ui.state import write_link, write_rows

START = "scenes:test"
OPTIONS = ("filter", "exclude_seen")
"""Of `find_errors`, in the form."""
WORK = 25_000_000
"""Rows times resamples that take about a second."""
MAX_RESAMPLES = 10_000
MB = 2**20
DATASETS, SCORES, STUDIES = 200 * MB, 50 * MB, 400 * MB
"""Budgets."""
ROW_BYTES, REFIT_BYTES = 4_500, 32 * MB
"""Of a study, measured: a row with its features, and the resampled errors of a model."""


@dataclass(frozen=True)
class Source:
    """Where rows come from; small, as each session keeps its own."""

    key: str
    """As "scenes:test" for a part of a corpus, or "upload"."""
    reading: Reading | None = None
    token: str = ""
    """Opens an upload again in the same sitting."""

    @property
    def name(self) -> str:
        """The name of an upload, for people; "" for a corpus."""
        return self.reading.name if self.reading else ""


@dataclass(frozen=True)
class Choice:
    """What is chosen: all that a session keeps, and what a link restores."""

    source: Source = field(default_factory=lambda: Source(START))
    first: str = ""
    second: str = ""
    filter: str = ""
    exclude_seen: bool = False
    selected: tuple[int, ...] = ()
    """Positions of rows chosen in the plot."""
    target: str = ""
    """What slices are looked for: a key of `TARGETS`; "" for what the headline names."""
    view: str = ""
    """Key of `VIEWS`; "" for that of one model or of two."""
    row: int | None = None
    """Position of the row that is read."""
    groups: str = ""
    """Which conditions mean the same, as `read_groups` takes it; "" leaves it to the model."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.first, self.second)))

    @property
    def link(self) -> str:
        """The query string that opens this; an upload is not part of it."""
        rows, row = write_rows(self.selected), "" if self.row is None else str(self.row + 1)
        asked = [("ed", self.source.key), ("ea", self.first), ("eb", self.second)]
        asked += write_options(find_errors, vars(self))
        return write_link(
            "errors", [*asked, ("es", rows), ("et", self.target), ("ev", self.view), ("er", row), ("eg", self.groups)]
        )

    @property
    def unlinked(self) -> str:
        """What the link does not hold, in a sentence; "" if it holds all."""
        if self.source.key == "upload":
            return "The link opens this table in this tab of your browser alone."
        if self.selected and not write_rows(self.selected):
            return "You chose more rows than the link can hold: it shows all rows."
        return ""


class Desk:
    """Tables, scores, studies, and what was found in them."""

    def __init__(self, pool: ModelPool) -> None:
        self.pool = pool
        self._datasets: LRUCache = LRUCache(DATASETS, getsizeof=_dataset_bytes)
        self._scores: LRUCache[Any, Any] = LRUCache(SCORES, getsizeof=lambda scores: scores.nbytes)
        self._studies: LRUCache = LRUCache(STUDIES, getsizeof=_study_bytes)
        self._results: LRUCache = LRUCache(60)
        self._lock = threading.Lock()

    @staticmethod
    def corpora() -> list[tuple[str, str]]:
        """List (title, key) of the parts of corpora whose files are here; what models were trained on is left out."""
        return [
            (f"{name}: {part.replace('_', ' ')}", f"{name}:{part}")
            for name, corpus in CORPORA.items()
            if corpus.ours or any(corpus.found().values())
            for part in corpus.parts
            if part != "train" and name != "scenes-plain"
        ]

    def dataset(self, source: Source) -> Dataset:
        """Return the rows of a source, read again where they were dropped; raises DataError if they are gone."""
        if (reading := source.reading) is not None:
            if not Path(reading.path).is_file():
                raise DataError("The uploaded table is not on this server any more. Upload it again.")
            return self._keep(self._datasets, source, lambda: self._read(reading))
        if source.key.startswith("upload"):
            raise DataError("This link shows a table that was uploaded. Upload it again to see it.")
        if source.key not in {key for _, key in self.corpora()}:
            raise DataError(f"There are no rows called {source.key[:60]!r} here. Choose a corpus, or upload a table.")
        return self._keep(self._datasets, source, lambda: corpus_dataset(*source.key.split(":")))

    def known(self, dataset: Dataset, name: str) -> np.ndarray | None:
        """Return the scores of a model if they are known: from the file, computed before, or shipped; else None."""
        if name in dataset.stored:
            return dataset.stored[name]
        weights = getattr(self.pool.loaded(name), "weights_hash", None)
        with self._lock:
            found = self._scores.get((dataset.digest, self._known_as(name)))
        if found is not None:
            return found
        stored = self._keep(self._results, ("stored", dataset.digest), lambda: findings.read_stored(dataset)).get(name)
        return None if stored is None or weights not in (None, stored[0]) else stored[1]

    def keep(self, dataset: Dataset, name: str, scores: np.ndarray) -> None:
        with self._lock:
            self._scores[dataset.digest, self._known_as(name)] = scores

    def _known_as(self, name: str) -> tuple[str, int]:
        """Return a name and which model of that name it is: one may be deleted, and another trained under it."""
        return name, self.pool.version(name)

    def study(self, choice: Choice) -> Study:
        """Return the rows with the scores of the chosen models; raises DataError if some are not in memory."""
        dataset, names = self.dataset(choice.source), choice.names
        return self._keep(self._studies, self._key(choice), lambda: self.judge(dataset, names, choice.groups))

    def _key(self, choice: Choice) -> Hashable:
        # The same rows may have come under another name, which only those who brought them may see.
        dataset = self.dataset(choice.source)
        return dataset.name, dataset.digest, choice.groups, *map(self._known_as, choice.names)

    def judge(self, dataset: Dataset, names: Sequence[str], groups: str = "") -> Study:
        """Make a study of one or two models whose scores are known; errors as in `study` and `read_groups`."""
        rows = findings.with_training_of(dataset, *("" if name in dataset.stored else name for name in names))
        found = {name: self.known(dataset, name) for name in names}
        scores = {name: values for name, values in found.items() if values is not None}
        titles = {name: name if name in dataset.stored else self.pool.info(name).full_title for name in names}
        if lost := " and ".join(titles[name] for name in names if name not in scores):
            raise DataError(f"The scores of {lost} are no longer cached. Press Find errors to score again.")
        if groups:
            asks = read_groups(groups, (pair.condition for pair in rows.pairs))
        else:
            asks = {} if "aspect" in rows.extra or self.pool.forks else findings.find_wordings(rows)
        return make_study(
            rows, *(judge(rows, name, values, titles[name]) for name, values in scores.items()), asks=asks
        )

    def found(self, choice: Choice, *, resamples: int = 0) -> ErrorStudy:
        """Return what was found; raises DataError if the filter cannot be read or selects no row."""
        study = self.study(choice)
        settings: dict[str, Any] = {name: getattr(choice, name) for name in ("selected", *OPTIONS)}
        settings["resamples"] = resamples
        key = (self._key(choice), *settings.values())
        # Kept without the study itself, which has a budget of its own.
        bare = self._keep(self._results, key, lambda: replace(analyse(study, **settings), study=None))
        return replace(bare, study=study)

    def scorer(self, name: str) -> str:
        """Return the name of a model; a column of the file cannot score other rows."""
        if name not in self.pool.names:
            raise DataError(f"{name} is a column of the file, not a model: it cannot score other rows.")
        return name

    def _read(self, reading: Reading) -> Dataset:
        return table_dataset(reading.pairs(), reading.name, max_rows=limits.ERROR_ROWS)

    def _keep(self, cache: LRUCache, key: Hashable, make: Callable[[], Value]) -> Value:
        with self._lock:
            if key in cache:
                return cache[key]
        value = make()  # outside of the lock: others need not wait; at worst it is made twice
        with self._lock:
            if cache.getsizeof(value) <= cache.maxsize:
                cache[key] = value
        return value


def read_groups(text: str, conditions: Iterable[str]) -> dict[str, str]:
    """Read lines such as "name: condition; condition": each condition that one names -> the name of its group."""
    worded, found = {fold(condition): condition for condition in conditions}, {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, _, listed = (part.strip() for part in line.partition(":"))
        if line.strip() and not (name and listed):
            raise DataError(f"Line {number} is no group. Write one a line, as: taste: the flavour; how it tastes")
        for one in filter(None, map(str.strip, listed.split(";"))):
            if fold(one) not in worded:
                raise DataError(f"Line {number}: there is no condition {one[:60]!r}.{suggest(one, worded.values())}")
            if found.setdefault(fold(one), name) != name:
                raise DataError(f"{one} stands in two groups: {found[fold(one)]}, {name}. Take it out of one of them.")
    return {worded[folded]: name for folded, name in found.items()}


def write_groups(study: Study) -> str:
    """Return the groups of conditions that are worded differently, as `read_groups` reads them."""
    groups: dict[str, dict[str, None]] = {}
    for condition, name in zip(study.columns["condition"], study.columns["asks"], strict=True):
        groups.setdefault(name, {})[condition] = None
    return "\n".join(f"{name.replace(':', ' ')}: {'; '.join(one)}" for name, one in groups.items() if len(one) > 1)


def resamples_for(study: Study) -> int:
    """Return as many resamples as take about a second."""
    return int(np.clip(WORK // len(study.dataset.pairs), 1000, MAX_RESAMPLES))


needed = partial(page.needed, message="Nothing has been found yet. Press Find errors first.")
"""Returns a choice, or says that there is none yet."""


def _dataset_bytes(dataset: Dataset) -> int:
    texts = sum(len(p.sentence1) + len(p.sentence2) + len(p.condition) + 600 for p in dataset.pairs)
    return texts + sum(len(cell) + 50 for cells in dataset.extra.values() for cell in cells)


def _study_bytes(study: Any) -> int:  # noqa: ANN401 - a Study
    return ROW_BYTES * len(study.dataset.pairs) + REFIT_BYTES * len(study.judged)
