"""Clusters on a map named by the words that set them apart.

Source: c-TF-IDF, Grootendorst 2022, "BERTopic", arXiv:2203.05794, with HDBSCAN (Campello et al. 2013) on the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condviz.errors import require

MOST_POINTS = 10_000
"""HDBSCAN of more points takes seconds and cannot be stopped."""
MAX_TOPICS = 12
"""More labels would cover each other and the points."""
# Scikit-learn's stop words hold number words; under "the number of people" they are what matters.
_NUMBERS = (
    "one two three four five six eight nine ten eleven twelve fifteen twenty forty fifty sixty hundred first third"
)
_KEPT = frozenset(_NUMBERS.split())


@dataclass(frozen=True)
class Topic:
    """A cluster on a map.

    Attributes:
        words: Its most distinctive words, best first.
        x, y: The middle of its upper edge on the map, where a label covers none of its points.
        size: How many points it has.
    """

    words: tuple[str, ...]
    x: float
    y: float
    size: int


def name_clusters(layout: np.ndarray, texts: Sequence[str]) -> tuple[Topic, ...]:
    """Find clusters on a map and name each by words that are frequent in it and rare outside.

    Returns:
        The largest clusters with a name, at most `MAX_TOPICS`; empty if there are fewer than two clusters or more than
        `MOST_POINTS` points.
    """
    smallest = max(4, round(np.sqrt(len(layout)) / 2))
    if not 2 * smallest <= len(layout) <= MOST_POINTS:
        return ()
    clusters = require("sklearn.cluster", "app").HDBSCAN(min_cluster_size=smallest, copy=True).fit(layout).labels_
    number = int(clusters.max()) + 1
    if number < 2:
        return ()
    topics = []
    for cluster, words in enumerate(distinctive_words(texts, clusters)):
        if words:
            places = layout[clusters == cluster].astype(np.float64)
            x, y = round(float(np.median(places[:, 0])), 4), round(float(places[:, 1].max()), 4)
            topics.append(Topic(words, x, y, len(places)))
    return tuple(sorted(topics, key=lambda topic: -topic.size)[:MAX_TOPICS])


def distinctive_words(
    texts: Sequence[str], clusters: np.ndarray, *, num_words: int = 3, share: float = 0.25
) -> list[tuple[str, ...]]:
    """Return the words that are frequent in each cluster and rare outside, best first.

    Args:
        texts: n sentences.
        clusters: (n,) number of the cluster of each, from 0; negative for none.
        num_words: Words at most; each occurs in two sentences of its cluster or more.
        share: Of the sentences of a cluster, how many at least have the word.
    """
    number = int(clusters.max()) + 1
    text = require("sklearn.feature_extraction.text", "app")
    counter = text.CountVectorizer(stop_words=sorted(text.ENGLISH_STOP_WORDS - _KEPT))
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no text has a word that is none of the stop words
        return [()] * number
    names = counter.get_feature_names_out()
    members = [np.flatnonzero(clusters == cluster) for cluster in range(number)]
    totals = np.vstack([np.asarray(counts[rows].sum(axis=0)) for rows in members])
    spread = np.vstack([np.asarray((counts[rows] > 0).sum(axis=0)) for rows in members])
    part = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1)
    weights = part * np.log1p(totals.sum() / number / np.maximum(totals.sum(axis=0), 1))
    # A word that is as frequent everywhere names nothing.
    fewest = np.array([max(2, share * len(rows)) for rows in members])[:, None]
    weights[(spread < fewest) | (totals <= totals.sum(axis=0) / number)] = 0
    best = [
        [index for index in np.argsort(-row, kind="stable")[:num_words] if row[index] > row.max() / 2]
        for row in weights
    ]
    return [tuple(names[found].tolist()) for found in best]
