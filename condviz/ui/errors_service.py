"""What the Errors tab asks of the core: datasets, scores and studies, of which the last few stay in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from condviz.errors import ConfigError, DataError
from condviz.ui.background import Background
from condviz.ui.errors_engine import ErrorsEngine
from condviz.ui.service import Service, menu_title, on_gpu

if TYPE_CHECKING:
    import numpy as np

    from condviz.analysis.errors.rewrites import Neighbour
    from condviz.analysis.errors.study import Study
    from condviz.evaluation.dataset import Dataset
    from condviz.types import Pair

MAX_ROWS = 20_000
"""Of an uploaded table: what the page filters in a fifth of a second."""
MAX_TABLE_BYTES = 5 * 2**20
DEFAULT = "scenes:test"
CHUNK = 256
"""Rows of a piece: work that was stopped ends with the piece that it is at."""
PIECE = 50
"""The same for the few changed rows of a rewrite, whose progress would not be seen otherwise."""
KEPT_DATASETS, KEPT_SCORES, KEPT_STUDIES, KEPT_REPORTS = 6, 60, 6, 60

Value = TypeVar("Value")


class Recent:
    """The values used last, by key."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value] | None = None) -> Value | None:
        """Give the value of a key, made if it is not there and can be made."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        # Outside of the lock: others need not wait. At worst a value is made twice.
        return None if make is None else self.put(key, make())

    def put(self, key: Hashable, value: Value) -> Value:
        """Keep a value; the one used longest ago leaves."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.size:
                self._values.popitem(last=False)
            return value


@dataclass(frozen=True)
class Scoring:
    """How far scoring is: model, rows done, all rows."""

    model: str
    done: int
    total: int


class ErrorsService:
    """Datasets, scores and studies for all visitors; uploads are known by the hash of their content alone."""

    def __init__(self, service: Service, engine: ErrorsEngine) -> None:
        """Join the models of the page and the core.

        Args:
            service: The models.
            engine: The calls into the core.
        """
        self.service, self.engine = service, engine
        self._datasets, self._scores = Recent(KEPT_DATASETS), Recent(KEPT_SCORES)
        self._studies, self.reports = Recent(KEPT_STUDIES), Recent(KEPT_REPORTS)
        # Names and texts go in, not models: see Service.
        self._score = on_gpu(self._score_here)
        self._neighbours = on_gpu(self._neighbours_here)

    def dataset(self, key: str) -> Dataset:
        """Give a dataset: a part of a corpus ("scenes:test"), or an upload that is still in memory.

        Raises:
            DataError: If there is none of this key.
        """
        corpus, colon, part = str(key).partition(":")
        if colon:
            return self._datasets.get(key, lambda: self.engine.dataset(corpus, part))
        found = self._datasets.get(key)
        if found is None:
            raise DataError("The uploaded table is not in memory any more. Upload it again.")
        return found

    def upload(self, path: str, name: str) -> tuple[str, Dataset]:
        """Read an uploaded table; gives its key.

        Raises:
            DataError: If it cannot be read or is too large.
        """
        from condviz.evaluation.dataset import read_dataset

        dataset = read_dataset(path, name=name, max_rows=MAX_ROWS, max_bytes=MAX_TABLE_BYTES)
        return self.keep(dataset), dataset

    def keep(self, dataset: Dataset) -> str:
        """Keep a dataset in memory; gives its key."""
        self._datasets.put(dataset.digest, dataset)
        return dataset.digest

    def models(self, dataset: Dataset) -> list[tuple[str, str]]:
        """List (title, name) of what can be analysed: the models, and scores that the table brought along."""
        titles = {info.name: menu_title(info) for info in self.service.infos()}
        stored = [(f"{titles.get(name, name)}, from the file", name) for name in dataset.stored]
        return [*stored, *((title, name) for name, title in titles.items() if name not in dataset.stored)]

    def known(self, dataset: Dataset, name: str) -> np.ndarray | None:
        """Give the scores of a model if they are known: from the file, computed before, or stored; else None."""
        if name in dataset.stored:
            return dataset.stored[name]
        weights = self._weights(name)
        found = self._scores.get((dataset.digest, name, weights))
        if found is not None:
            return found
        stored = self._scores.get((dataset.digest, "stored"), lambda: self.engine.stored(dataset)).get(name)
        return None if stored is None or weights not in (None, stored.weights) else stored.scores

    def score(self, dataset: Dataset, name: str) -> Iterator[Scoring]:
        """Score all rows; the result is then `known`. A run that is left ends after the piece that it is at.

        Raises:
            CondvizError: If the model cannot be loaded or used.
        """
        if self.known(dataset, name) is not None:
            return
        self.service.info(name)
        total = len(dataset.pairs)
        yield Scoring(name, 0, total)
        work = self.scoring(name, dataset.pairs, CHUNK)
        for done, _ in work.steps():
            yield Scoring(name, done, total)
        self._scores.put((dataset.digest, name, self._weights(name)), work.result())
        yield Scoring(name, total, total)

    def scoring(self, name: str, pairs: Sequence[Pair], size: int = PIECE) -> Background[np.ndarray]:
        """Start to score pairs, in pieces of so many rows; the result is not kept."""
        return Background(lambda progress: self._score_all(name, pairs, size, progress))

    def _score_all(
        self, name: str, pairs: Sequence[Pair], size: int, progress: Callable[[int, int], None]
    ) -> np.ndarray:
        import numpy as np

        parts = []
        for start in range(0, len(pairs), size):
            progress(start, len(pairs))
            piece = pairs[start : start + size]
            fields = ("sentence1", "sentence2", "condition")
            parts.append(self._score(name, [[getattr(pair, field) for pair in piece] for field in fields]))
        return np.concatenate(parts)

    def study(self, key: str, first: str, second: str | None) -> Study:
        """Give a study of one or two models whose scores are known.

        Raises:
            ConfigError: If a model has not been scored, or the two are the same.
        """
        from condviz.analysis.errors.findings import with_training_of
        from condviz.analysis.errors.study import judge, make_study

        dataset = self.dataset(key)
        names = [name for name in (first, second) if name]
        if len(set(names)) < len(names):
            raise ConfigError("A model cannot be compared with itself. Choose another one, or none.")

        def make() -> Study:
            judged, rows = [], with_training_of(dataset, "" if first in dataset.stored else first)
            for name in names:
                scores = self.known(dataset, name)
                if scores is None:
                    raise ConfigError(f"{name} has not been scored on {dataset.name} yet. Press Score.")
                judged.append(judge(rows, name, scores))
            return make_study(rows, *judged)

        return self._studies.get((dataset.digest, *names), make)

    def neighbours(self, name: str, pair: Pair) -> list[Neighbour]:
        """Give the training rows nearest to a row.

        Raises:
            ConfigError: If the model has no vectors, or is none of this page.
        """
        if name not in self.service.pool.names:
            raise ConfigError(f"{name} is a column of the file, not a model: it has no vectors to compare.")
        return self._neighbours(name, pair)

    def _weights(self, name: str) -> str | None:
        """Give the identity of a model's weights, or None if it is not loaded in this process."""
        return getattr(self.service.pool.loaded(name), "weights_hash", None)

    def _score_here(self, name: str, texts: Sequence[Sequence[str]]) -> np.ndarray:
        return self.engine.score(self.service.pool.get(name), texts)

    def _neighbours_here(self, name: str, pair: Pair) -> list[Neighbour]:
        return self.engine.neighbours(self.service.pool.get(name), pair)
