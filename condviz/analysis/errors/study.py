"""Scores of models on a dataset, row by row: rating, score, what the score stands for, error, order right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condviz.analysis.errors.calibration import Calibration, fit_calibration
from condviz.analysis.errors.dataset import Dataset
from condviz.analysis.errors.features import describe_rows
from condviz.errors import DataError


@dataclass(frozen=True)
class Judged:
    """One model on one dataset.

    Attributes:
        model: Its name.
        scores: (p,) float64, higher is more similar, in the range of the model.
        calibration: From scores to ratings, fitted on the rated rows.
        fitted: (p,) the rating that each score stands for, 1 to 5.
        error: (p,) fitted minus rating: positive where the model finds the pair too similar; NaN without rating.
        right: (p,) 1 where the model orders the two conditions of the item as people do, 0 where not (equal scores are
            wrong), NaN where the row has no partner or the two ratings are equal.
        margin: (p,) fitted rating of the condition that people rate higher, minus that of the other; NaN as `right`.
    """

    model: str
    scores: np.ndarray
    calibration: Calibration
    fitted: np.ndarray
    error: np.ndarray
    right: np.ndarray
    margin: np.ndarray


def judge(dataset: Dataset, model: str, scores: np.ndarray) -> Judged:
    """Compare the scores of a model with the ratings.

    Args:
        dataset: The rows.
        model: Name of the model.
        scores: (p,), one per row.

    Raises:
        DataError: If the number of scores is not that of the rows.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(dataset.pairs),):
        raise DataError(f"{model} has {scores.size:,} scores for {len(dataset.pairs):,} rows. Score the file again.")
    gold = dataset.gold
    calibration = fit_calibration(scores, gold)
    fitted = calibration(scores)
    right, margin = (np.full(len(scores), np.nan) for _ in range(2))
    first, second = dataset.items.T
    wanted = np.sign(gold[first] - gold[second])
    ordered = np.isfinite(wanted) & (wanted != 0)
    for rows in (first[ordered], second[ordered]):
        right[rows] = np.sign(scores[first] - scores[second])[ordered] == wanted[ordered]
        margin[rows] = (wanted * (fitted[first] - fitted[second]))[ordered]
    return Judged(model, scores, calibration, fitted, fitted - gold, right, margin)


@dataclass(frozen=True)
class Study:
    """A dataset with one model, or with two to compare.

    Attributes:
        dataset: The rows.
        first: The model that errors are looked for in.
        second: Another one to compare with, or None.
        columns: Name -> (p,) values that filters, slices and tables use; `COLUMN_HELP` says what they mean.
    """

    dataset: Dataset
    first: Judged
    second: Judged | None
    columns: dict[str, np.ndarray]

    @property
    def rated(self) -> np.ndarray:
        """Which rows have a rating, (p,) bool."""
        return np.isfinite(self.columns["gold"])

    @property
    def judged(self) -> tuple[Judged, ...]:
        """The one or two models."""
        return (self.first,) if self.second is None else (self.first, self.second)


def make_study(dataset: Dataset, first: Judged, second: Judged | None = None) -> Study:
    """Put rows, features and judgements into one set of columns."""
    columns = describe_rows(dataset)
    for suffix, judged in (("", first), ("_b", second)):
        if judged is not None:
            named = {"score": judged.scores, "fitted": judged.fitted, "error": judged.error}
            named |= {"right": judged.right, "margin": judged.margin}
            columns |= {name + suffix: values for name, values in named.items()}
    return Study(dataset, first, second, columns)
