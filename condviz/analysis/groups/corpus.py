"""What groups, twins and the sorting of conditions share: the corpus with its model, k-means and the silhouette."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from condviz.errors import ConfigError, DataError, require
from condviz.methods import ConditionalScorer
from condviz.models.registry import load
from condviz.store.corpus import Corpus
from condviz.store.demo import open_corpus

MOST_TEXTS = 20_000
"""Every text is compared with many others; of more, a part has to be chosen with a store of its own."""
MOST_READ = 5_000
"""The same for a model that reads every text again."""
MOST_GROUPS = 50


def check_count(name: str, value: int, low: int, high: int) -> None:
    """Raise ConfigError unless a number of things is allowed."""
    if not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{name} must be a whole number from {low} to {high:,}, got {value!r}.")


def open_with_model(
    store: str | Path | Corpus, model: str | ConditionalScorer | None, *, fewest: int, bounded: bool = True
) -> tuple[Corpus, ConditionalScorer]:
    """Open a corpus with the model that is to read it, see `group_by`.

    Raises:
        DataError: If it has fewer texts than `fewest`, or is `bounded` and has too many.
        ConfigError: If the model has no vectors under a condition.
    """
    loaded = load(model) if isinstance(model, str) else model
    corpus = open_corpus(store, loaded)
    loaded = loaded or corpus.model
    if not loaded.conditional or not loaded.encodes:
        raise ConfigError(
            f"{loaded.info.name} has no vectors under a condition. Choose another, for instance hyper-cl."
        )
    if loaded.separable:
        corpus.identity.check(loaded)
    most = MOST_TEXTS if loaded.separable else MOST_READ
    if len(corpus) < fewest or (bounded and len(corpus) > most):
        allowed = f"{fewest:,} to {most:,}" if bounded else f"at least {fewest:,}"
        raise DataError(f"The corpus has {len(corpus):,} texts; {allowed} are allowed here with {loaded.info.name}.")
    return corpus, loaded


def cluster(vectors: np.ndarray, groups: int) -> np.ndarray:
    """Return the group of each vector, (n,)."""
    found = require("sklearn.cluster", "app").KMeans(groups, n_init=4, random_state=0).fit(vectors)
    return np.unique(found.labels_, return_inverse=True)[1]  # equal texts can leave a group empty


def silhouette(vectors: np.ndarray, labels: np.ndarray) -> float:
    """Return how clearly groups are apart, in [-1, 1]; 0 for a single one."""
    if not 2 <= labels.max(initial=-1) + 1 < len(labels):
        return 0.0
    score = require("sklearn.metrics", "app").silhouette_score
    return float(score(vectors, labels, sample_size=min(len(labels), 2_000), random_state=0))


def spread(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation, the latter never 0."""
    return float(values.mean()), max(float(values.std()), 1e-6)
