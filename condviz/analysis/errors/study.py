"""Scores of models on a dataset, row by row: rating, score, the rating it predicts, error, order right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from condviz.analysis.errors.filters import describe_rows, typed_cells
from condviz.data.texts import fold
from condviz.errors import DataError
from condviz.evaluation.agreement import draw, order_right
from condviz.evaluation.dataset import Dataset, identifier
from condviz.evaluation.metrics import LEAST_CORRELATED

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer

BINS = 10
"""Points of a calibration curve, each with as many rows as the others."""
FOLDS = 5
"""Of cross-fitting: a row's rating is predicted by a fit to the sentence pairs of the other folds."""
MAX_REFITS, REFITTED_CELLS = 1000, 4_000_000
"""Resamples in which the fit is repeated: at most so many, and so many rows times resamples (16 MB)."""
APART = 0.35
"""Mean cosine distance of two groups of wordings from which they count as two questions: "the place" and "the location"
are nearer under every shipped encoder, "the mood" and "the weather" are not."""
MOST_WORDINGS = 1_000
"""Wordings that are compared, the most frequent ones; others stand for themselves."""


@dataclass(frozen=True)
class IsotonicFit:
    """The rating that a score predicts: the best fit that never falls as the score grows.

    A model that follows the ratings closely gives a steep curve; one that does not gives a flat line at the mean
    rating, because its scores say nothing.
    """

    scores: np.ndarray
    """(k,) knots, ascending."""
    ratings: np.ndarray
    """(k,) mean rating at each knot, ascending."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return ratings for scores: linear between knots, constant outside; NaN for scores that are not finite."""
        result = np.full(len(scores), np.nan)
        finite = np.isfinite(scores)
        if len(self.scores):
            result[finite] = np.interp(np.asarray(scores)[finite], self.scores, self.ratings)
        return result


@dataclass(frozen=True)
class CurvePoint:
    """Rows whose scores lie next to each other."""

    score: float
    rating: float
    """Their means."""
    error: float
    """Standard error of the mean rating."""
    n: int


@dataclass(frozen=True)
class Judged:
    """One model on one dataset."""

    model: str
    title: str
    """Its name as one types it, and as people read it."""
    scores: np.ndarray
    """(p,) float64, higher is more similar, in the range of the model."""
    calibration: IsotonicFit
    """From scores to ratings, fitted on all rated rows: what curves and rewrites use."""
    fitted: np.ndarray
    """(p,) the rating that each score predicts, 1 to 5, fitted on other sentence pairs than the row's own; see
    `cross_fit` for where it is NaN."""
    error: np.ndarray
    """(p,) fitted minus rating: positive where the model finds the pair too similar; NaN without rating."""
    verdicts: np.ndarray
    """(q,) per item, 1 where the model orders the two conditions as the ratings do, 0 where not (equal scores are
    wrong), NaN where the two ratings are equal or missing."""
    right: np.ndarray
    """(p,) mean of the verdicts on the items of each row, of two conditions 0 or 1; NaN where it has none."""
    margin: np.ndarray
    """(p,) mean over those of the fitted rating of the higher rated condition, minus that of the other."""


@dataclass(frozen=True)
class Refits:
    """Errors of the rated rows in resamples of sentence pairs, the fit repeated in each."""

    rows: np.ndarray
    """(n,) positions of the rated rows."""
    weights: np.ndarray
    """(r, n) float32: how often each row was drawn."""
    errors: np.ndarray
    """(r, n) float32: its error by the fit to the other folds of that resample."""

    def means(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """Compute mean absolute and mean error of some rows in each resample; NaN where none of them was drawn."""
        inside = np.isin(self.rows, chosen)
        weights, errors = self.weights[:, inside], self.errors[:, inside]
        with np.errstate(invalid="ignore"):
            total = weights.sum(axis=1, dtype=np.float64)
            return {
                "error": np.einsum("rn,rn->r", weights, np.abs(errors), dtype=np.float64) / total,
                "bias": np.einsum("rn,rn->r", weights, errors, dtype=np.float64) / total,
            }


@dataclass(frozen=True)
class Study:
    """A dataset with one model, or with two to compare."""

    dataset: Dataset
    first: Judged
    """The model that errors are looked for in."""
    second: Judged | None
    columns: Mapping[str, np.ndarray]
    """Name -> (p,) values that filters, slices and tables use; `COLUMN_HELP` says what they mean."""
    _refits: dict[tuple[int, int, int], Refits] = field(default_factory=dict, repr=False, compare=False)

    @property
    def rated(self) -> np.ndarray:
        """Which rows have a rating, (p,) bool."""
        return np.isfinite(self.columns["gold"])

    @property
    def named(self) -> Mapping[str, np.ndarray]:
        """The columns by all names that a filter may use: texts and ratings also as the visitor's table has them."""
        if (table := self.dataset.table) is None:
            return self.columns
        own = [name for role, name in table.roles.items() if name.casefold() != role]
        return {identifier(name): typed_cells(table.column(name)) for name in own} | {**self.columns}

    @property
    def judged(self) -> tuple[Judged, ...]:
        """The one or two models."""
        return (self.first,) if self.second is None else (self.first, self.second)

    def refits(self, index: int, *, resamples: int, seed: int) -> Refits:
        """Return the errors of the first (0) or second model (1) in the same resamples, computed once.

        There are fewer resamples than asked for where they would pass the limits.
        """
        count = int(min(resamples, MAX_REFITS, max(100, REFITTED_CELLS // max(1, int(self.rated.sum())))))
        key = index, count, seed
        if key not in self._refits:
            self._refits[key] = _refit(self.dataset, self.judged[index].scores, count, seed)
        return self._refits[key]


def judge(dataset: Dataset, model: str, scores: np.ndarray, title: str = "") -> Judged:
    """Compare the scores of a model, (p,), with the ratings; raises DataError unless there is one per row.

    People read its `title`, by default its name.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(dataset.pairs),):
        raise DataError(f"{model} has {scores.size:,} scores for {len(dataset.pairs):,} rows. Score the file again.")
    gold = dataset.gold
    fitted = cross_fit(scores, gold, dataset.clusters)
    verdicts = order_right(gold, scores, dataset.items)
    first, second = dataset.items.T
    margins = np.sign(gold[first] - gold[second]) * (fitted[first] - fitted[second])
    margins[np.isnan(verdicts)] = np.nan  # equal ratings have no order
    right, margin = (_of_rows(values, dataset.items, len(scores)) for values in (verdicts, margins))
    fit = fit_calibration(scores, gold)
    return Judged(model, title or model, scores, fit, fitted, fitted - gold, verdicts, right, margin)


def make_study(
    dataset: Dataset, first: Judged, second: Judged | None = None, *, asks: Mapping[str, str] | None = None
) -> Study:
    """Join rows, features and judgements into one set of columns; `asks` names what each condition asks for."""
    columns = describe_rows(dataset)
    columns["asks"] = np.array([(asks or {}).get(one, one) for one in columns["condition"]], dtype=object)
    for suffix, judged in (("", first), ("_b", second)):
        if judged is not None:
            named = {"score": judged.scores, "fitted": judged.fitted, "error": judged.error}
            named |= {"right": judged.right, "margin": judged.margin}
            columns |= {name + suffix: values for name, values in named.items()}
    return Study(dataset, first, second, columns)


def fit_calibration(scores: np.ndarray, gold: np.ndarray) -> IsotonicFit:
    """Fit the isotonic regression of rating on score; rows without either are left out.

    Source:
        Pool adjacent violators: Barlow et al. 1972; scipy.optimize.isotonic_regression.
    """
    used = np.isfinite(scores) & np.isfinite(gold)
    if not used.any():
        return IsotonicFit(np.zeros(0), np.zeros(0))
    # Equal scores must get one rating, whatever the order of the rows.
    knots, place, counts = np.unique(scores[used], return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=gold[used]) / counts
    from scipy.optimize import isotonic_regression  # takes a second to import

    return IsotonicFit(knots, isotonic_regression(means, weights=counts).x)


def cross_fit(scores: np.ndarray, gold: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Predict ratings, (p,) float64, by the isotonic fit to the sentence pairs (`clusters`) of the other folds.

    A fit to the row itself would flatter the model: the scores of pure noise would seem to beat a constant. NaN where a
    score is not finite, and everywhere where fewer than `LEAST_CORRELATED` rows are rated, or one sentence pair alone:
    what is fitted to two rows calls a model wrong that has them in order.
    """
    used = np.isfinite(gold) & np.isfinite(scores)
    if used.sum() < LEAST_CORRELATED or len(np.unique(clusters[used])) < 2:
        return np.full(len(scores), np.nan)
    fold, fitted = _folds(clusters, used), fit_calibration(scores, gold)(scores)
    for number in range(FOLDS):
        inside = fold == number
        fitted[inside] = fit_calibration(scores, np.where(inside, np.nan, gold))(scores[inside])
    return fitted


def calibration_curve(scores: np.ndarray, gold: np.ndarray, *, bins: int = BINS) -> tuple[CurvePoint, ...]:
    """Compute the mean rating of rows with neighbouring scores, `bins` groups of equal size; fewer for few rows."""
    used = np.flatnonzero(np.isfinite(scores) & np.isfinite(gold))
    order = used[np.argsort(scores[used], kind="stable")]
    points = []
    for rows in np.array_split(order, min(bins, len(order)) or 1):
        if len(rows):
            spread = float(gold[rows].std(ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else 0.0
            points.append(CurvePoint(float(scores[rows].mean()), float(gold[rows].mean()), spread, len(rows)))
    return tuple(points)


def confusion(gold: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """Count rows by rating and by what the score predicts, both rounded: (5, 5) int64, ratings in rows."""
    used = np.isfinite(gold) & np.isfinite(fitted)
    # Halves go up, as people round; numpy would send 2.5 and 3.5 to even levels.
    levels = [np.clip(np.floor(values[used] + 0.5), 1, 5).astype(np.int64) - 1 for values in (gold, fitted)]
    return np.bincount(levels[0] * 5 + levels[1], minlength=25).reshape(5, 5)


def _of_rows(values: np.ndarray, items: np.ndarray, size: int) -> np.ndarray:
    """Return the mean of the values of the items that each of `size` rows is in; NaN where there is none."""
    known = np.isfinite(values)
    rows = items[known].ravel()
    with np.errstate(invalid="ignore"):
        return np.bincount(rows, np.repeat(values[known], 2), size) / np.bincount(rows, minlength=size)


def _folds(clusters: np.ndarray, rated: np.ndarray) -> np.ndarray:
    """Deal the rated sentence pairs out to the folds, always in the same way; other rows go along."""
    _, place = np.unique(clusters, return_inverse=True)
    known = np.unique(place[rated])
    dealt = np.zeros(place.max(initial=0) + 1, dtype=np.int64)
    dealt[np.random.default_rng(0).permutation(known)] = np.arange(len(known)) % FOLDS
    return dealt[place]


def _refit(dataset: Dataset, scores: np.ndarray, resamples: int, seed: int) -> Refits:
    """Draw sentence pairs, fit to each fold's other pairs among them, predict the fold. Copies stay in their fold."""
    from scipy.optimize import isotonic_regression  # takes a second to import

    known = np.isfinite(dataset.gold) & np.isfinite(scores)
    rows = np.flatnonzero(known)
    gold, own = dataset.gold[rows], scores[rows]
    _, clusters = np.unique(dataset.clusters[rows], return_inverse=True)
    fold = _folds(dataset.clusters, known)[rows]
    members = [np.flatnonzero(fold == number) for number in range(FOLDS)]
    knots, place = np.unique(own, return_inverse=True)
    weights = np.concatenate(list(draw(clusters.max() + 1, len(rows), resamples=resamples, seed=seed)))[:, clusters]
    errors = np.empty((resamples, len(rows)), dtype=np.float32)
    for number, weight in enumerate(weights):
        drawn = np.bincount(place, weight, minlength=len(knots))
        total = np.bincount(place, weight * gold, minlength=len(knots))
        for inside in members:
            left = drawn - np.bincount(place[inside], weight[inside], minlength=len(knots))
            sums = total - np.bincount(place[inside], (weight * gold)[inside], minlength=len(knots))
            used = left > 0.5
            if not used.any():
                errors[number, inside] = 0
                continue
            fit = isotonic_regression(sums[used] / left[used], weights=left[used]).x
            errors[number, inside] = np.interp(own[inside], knots[used], fit) - gold[inside]
    return Refits(rows, weights, errors)


# ---- what conditions ask for, whatever their wording: few rows of each wording make many ----------------------------


def group_conditions(model: ConditionalScorer, conditions: Sequence[str]) -> dict[str, str]:
    """Group the wordings of conditions by the model's vectors: of conditions where it has such, else of sentences.

    Returns:
        Each condition -> the most frequent wording of its group. A dictionary to change, and to pass to `find_errors`.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    model.check_able("encodes")
    counts = Counter(fold(condition) for condition in conditions)
    worded = {fold(condition): condition for condition in reversed(conditions)}
    common = [folded for folded, _ in counts.most_common(MOST_WORDINGS)]
    named = dict(worded)
    texts = [worded[folded] for folded in common]
    own = model.separable and model.conditional
    vectors = np.asarray(model.encode_conditions(texts) if own else model.encode_sentences(texts), dtype=np.float64)
    pointing = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)
    if len(pointing) > 1:
        groups = fcluster(linkage(vectors[pointing], "average", "cosine"), APART, "distance")
        # The first of each group is the most frequent one.
        _, first = np.unique(groups, return_index=True)
        named |= {common[i]: texts[pointing[first[group - 1]]] for i, group in zip(pointing, groups, strict=True)}
    return {condition: named[fold(condition)] for condition in conditions}
