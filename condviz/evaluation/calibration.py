"""Fit what turns the scores of a model into ratings: an isotonic map, on rated rows that no training saw.

Rows of all sources count alike together, however many there are. Scores are put into bins, isotonic regression gives
each bin a rating that no lower bin exceeds, and bins of one rating become one knot; between knots the map is straight.
So a higher score always has a higher rating. How far readings are from labels is measured on rows left out of the fit.

Source: Zadrozny and Elkan 2002, KDD, "Transforming classifier scores into accurate multiclass probability estimates".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import numpy as np

from condviz.data.corpora import build
from condviz.data.corpus import RatedPair, fraction, keep_pairs
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.models.manifest import CALIBRATION, read_manifest, rewrite_manifest
from condviz.types import Calibration, Progress, columns

SOURCES = ("scenes:dev", "tables:validation", "cebab:dev", "mams:dev")
PAIRS = 400
"""Sentence pairs of each source, at most; each has two rows."""
BINS, FOLDS, TENTHS = 40, 5, 10
EDGE = 0.01
"""Knots stay so far inside of (1, 5): the ratings beyond the last one need room."""
Rows = Mapping[str, Sequence[RatedPair]]


def read_rows(pairs: int = PAIRS) -> dict[str, list[RatedPair]]:
    """Build the rows to fit to, by source; sources whose files are missing are left out."""
    rows = {}
    for source in SOURCES:
        name, _, part = source.partition(":")
        try:
            rows[source] = keep_pairs(build(name, part), pairs)
        except DataError:  # other people's reviews are not part of the project
            continue
    return rows


def calibrate(model: ConditionalScorer, rows: Rows, *, progress: Progress | None = None) -> Calibration:
    """Score rated rows, and fit the ratings to the scores."""
    flat = [row for part in rows.values() for row in part]
    scores = model.score(*columns(flat), progress=progress).astype(np.float64)
    labels = np.array([row.label for row in flat], dtype=np.float64)
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for part in rows.values()])
    folds = np.array([int(fraction(row.family1) * FOLDS) for row in flat])
    readings = np.empty_like(scores)
    for fold in range(FOLDS):
        kept = folds != fold
        found = Calibration(*_knots(scores[kept], labels[kept], weights[kept]), error=0.0, rows={})
        readings[~kept] = found.rate(scores[~kept])
    # The expected calibration error: the mean distance of reading and label in tenths of the readings.
    tenths = np.array_split(np.argsort(readings, kind="stable"), TENTHS)
    gaps = [abs(np.average(labels[part] - readings[part], weights=weights[part])) for part in tenths]
    error = np.average(gaps, weights=[weights[part].sum() for part in tenths])
    counts = {source: len(part) for source, part in rows.items()}
    return Calibration(*_knots(scores, labels, weights), error=round(float(error), 4), rows=counts)


def store(folder: Path, calibration: Calibration) -> None:
    """Write a calibration into the condviz.json of a checkpoint; nothing else changes.

    Raises:
        CheckpointError: If the folder is not a checkpoint.
        DataError: If the file cannot be written.
    """
    rewrite_manifest(folder, metrics=read_manifest(folder)["metrics"] | {CALIBRATION: asdict(calibration)})


def _knots(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    from sklearn.isotonic import IsotonicRegression

    bins = np.array_split(np.argsort(scores, kind="stable"), min(BINS, len(scores)))
    x, y = (np.array([np.average(values[part], weights=weights[part]) for part in bins]) for values in (scores, labels))
    total = np.array([weights[part].sum() for part in bins])
    fitted = IsotonicRegression(y_min=1 + EDGE, y_max=5 - EDGE).fit(x, y, total).predict(x).round(4)
    knots = []
    for rating, same in groupby(range(len(x)), key=fitted.__getitem__):
        block = list(same)
        knots.append((round(float(np.average(x[block], weights=total[block])), 5), float(rating)))
    knots = [knot for place, knot in enumerate(knots) if not place or knot[0] > knots[place - 1][0]]
    x, y = zip(*knots, strict=True)
    return x, y
