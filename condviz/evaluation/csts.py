"""How well a model agrees with people on conditional similarity.

Correlations as in C-STS (Deshpande et al. 2023, arXiv:2305.15093), pair accuracy as in CASE (equations 6 to 9), seen
and unseen conditions as in Hyper-CL (Yoo et al. 2024, arXiv:2403.09490, table 5).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from condviz.errors import ConfigError, DataError
from condviz.types import Pair

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer

LEVEL = 0.95
MIN_RESAMPLED = 10
"""Fewer sentence pairs than this give no honest interval."""


@dataclass(frozen=True)
class Metric:
    """One figure; what holds it says in which unit.

    Attributes:
        value: None where it is not defined.
        low, high: 95 % bootstrap interval over sentence pairs; None without resamples, or from too few rows.
        reason: Why `value` is None; otherwise "".
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class PairAccuracy:
    """How often the condition with the higher rating gets the higher similarity, for one sentence pair at a time.

    Attributes:
        pairs: Sentence pairs with two rated conditions.
        equal_ratings: Those whose two ratings are equal.
        equal_similarities: Those whose two similarities are equal.
        correct: Those where the higher rating has the strictly higher similarity.
        ties_wrong: correct / pairs, in [0, 1]: equal ratings can never be right. What CASE most likely prints.
        ties_excluded: correct / pairs with different ratings, in [0, 1].
        ties_excluded_half: As ties_excluded, but equal similarities count one half.

    The three shares are None where they would divide by zero.
    """

    pairs: int
    equal_ratings: int
    equal_similarities: int
    correct: int
    ties_wrong: float | None
    ties_excluded: float | None
    ties_excluded_half: float | None


@dataclass(frozen=True)
class Subset:
    """The figures of some of the rows.

    Attributes:
        n: Rated rows.
        spearman, pearson: Correlation with the ratings, times 100.
        accuracy: Pair accuracy: shares in [0, 1] and counts.
        ties_wrong, ties_excluded: The same shares times 100, with intervals.
    """

    n: int
    spearman: Metric
    pearson: Metric
    accuracy: PairAccuracy
    ties_wrong: Metric
    ties_excluded: Metric


@dataclass(frozen=True)
class EvaluationReport:
    """What `evaluate` found about one model.

    Attributes:
        model, revision, trained: From the model's `ModelInfo`.
        rows: All rows, rated or not.
        rated: Rows with a rating.
        overall: Figures on all rated rows.
        seen, unseen: Figures on the rows whose condition is, or is not, among the training conditions; None if these
            were not given.
        resamples, seed: Settings of the bootstrap.
        seconds: Time that scoring took.
        predictions: (p,) float32, one score per row.
    """

    model: str
    revision: str
    trained: bool
    rows: int
    rated: int
    overall: Subset
    seen: Subset | None
    unseen: Subset | None
    resamples: int
    seed: int
    seconds: float
    predictions: np.ndarray = field(repr=False)

    def to_dict(self) -> dict:
        """Give plain JSON, without the predictions."""
        shown = {name: getattr(self, name) for name in ("model", "revision", "trained", "rows", "rated")}
        for name in ("overall", "seen", "unseen"):
            subset = getattr(self, name)
            shown[name] = None if subset is None else _subset_dict(subset)
        bootstrap = {"unit": "sentence pair", "level": LEVEL, "resamples": self.resamples, "seed": self.seed}
        return {**shown, "bootstrap": bootstrap, "seconds": round(self.seconds, 3)}


def spearman(ratings: Sequence[float], predictions: Sequence[float]) -> float | None:
    """Give the rank correlation of two (p,) arrays, in [-1, 1]; equal values share their mean rank.

    Returns:
        The coefficient, or None where it is not defined: see `why_undefined`.
    """
    ratings, predictions = _parallel(ratings, predictions)
    if why_undefined(ratings, predictions):
        return None
    return pearson(rankdata(ratings), rankdata(predictions))


def pearson(ratings: Sequence[float], predictions: Sequence[float]) -> float | None:
    """Give the linear correlation of two (p,) arrays, in [-1, 1], or None as in `spearman`."""
    ratings, predictions = _parallel(ratings, predictions)
    if why_undefined(ratings, predictions):
        return None
    return float(np.corrcoef(ratings, predictions)[0, 1])


def why_undefined(ratings: Sequence[float], predictions: Sequence[float]) -> str:
    """Say why a correlation is not defined (fewer than two rows, a constant, not finite values), or give ""."""
    ratings, predictions = _parallel(ratings, predictions)
    if len(ratings) < 2:
        return f"at least 2 rated rows are needed, got {len(ratings)}"
    if not np.isfinite(ratings).all():
        return "some ratings are not finite"
    if infinite := int((~np.isfinite(predictions)).sum()):
        return f"{infinite} of {len(predictions)} scores are not finite"
    if np.ptp(ratings) == 0:
        return f"all ratings are {ratings[0]:g}"
    if np.ptp(predictions) == 0:
        return f"all scores are {predictions[0]:.6g}"
    return ""


def pair_accuracy(
    ratings_a: Sequence[float],
    ratings_b: Sequence[float],
    similarities_a: Sequence[float],
    similarities_b: Sequence[float],
) -> PairAccuracy:
    """Count for how many sentence pairs the model orders the two conditions a and b as people do.

    Args:
        ratings_a: (q,) ratings of q sentence pairs under their first condition.
        ratings_b: (q,) ratings under their second condition.
        similarities_a: (q,) scores under the first condition; those that are not finite are never right.
        similarities_b: (q,) scores under the second condition.

    Raises:
        DataError: If the lengths differ.

    Source:
        CASE, equations 6 to 9. The paper does not say how ties count, so both rules are given.
    """
    ratings_a, ratings_b = _parallel(ratings_a, ratings_b)
    similarities_a, similarities_b = _parallel(similarities_a, similarities_b)
    _parallel(ratings_a, similarities_a)
    wanted, found = np.sign(ratings_a - ratings_b), _signs(similarities_a, similarities_b)
    pairs, equal_ratings = len(wanted), int((wanted == 0).sum())
    different = pairs - equal_ratings
    correct = int(((wanted == found) & (wanted != 0)).sum())
    undecided = int(((found == 0) & (wanted != 0)).sum())
    return PairAccuracy(
        pairs=pairs,
        equal_ratings=equal_ratings,
        equal_similarities=int((found == 0).sum()),
        correct=correct,
        ties_wrong=correct / pairs if pairs else None,
        ties_excluded=correct / different if different else None,
        ties_excluded_half=(correct + undecided / 2) / different if different else None,
    )


def condition_pairs(pairs: Sequence[Pair]) -> np.ndarray:
    """Find the sentence pairs that are rated under exactly two different conditions.

    Returns:
        (q, 2) int64: the two rows of each such sentence pair, in the order of the file. Groups of one, or of three and
        more rows are left out, as in the official code of Hyper-CL.
    """
    groups = [rows for rows in _by_sentences(pairs).values() if len(rows) == 2]
    chosen = [rows for rows in groups if pairs[rows[0]].condition.strip() != pairs[rows[1]].condition.strip()]
    return np.array(chosen, dtype=np.int64).reshape(-1, 2)


def evaluate(
    model: ConditionalScorer,
    pairs: Sequence[Pair],
    *,
    training_conditions: Collection[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> EvaluationReport:
    """Score every row and compare with the ratings where there are any.

    Args:
        model: A loaded model.
        pairs: Rows; those without a label are scored only.
        training_conditions: Conditions the model was trained on; a row is "seen" if its condition is one of them,
            letter by letter but for outer blanks.
        resamples: Number of bootstrap resamples for the intervals; 0 for none. Whole sentence pairs are drawn, because
            their rows are not independent.
        seed: Seed of the bootstrap.
        progress: Called with (rows done, all rows).

    Raises:
        DataError: If there are no rows.
        ConfigError: If `resamples` is negative.
    """
    if not pairs:
        raise DataError("There are no rows to evaluate. Give at least one pair.")
    if resamples < 0:
        raise ConfigError(f"resamples must be 0 (no intervals) or more, got {resamples}. 1000 is usual.")
    started = time.perf_counter()
    texts = zip(*((pair.sentence1, pair.sentence2, pair.condition) for pair in pairs), strict=True)
    predictions = np.asarray(model.score(*(list(column) for column in texts), progress=progress), dtype=np.float32)
    seconds = time.perf_counter() - started

    rated = np.array([index for index, pair in enumerate(pairs) if pair.label is not None], dtype=np.int64)

    def subset(rows: np.ndarray) -> Subset:
        return agreement([pairs[row] for row in rows], predictions[rows], resamples=resamples, seed=seed)

    seen = unseen = None
    if training_conditions is not None:
        known = {condition.strip() for condition in training_conditions}
        is_seen = np.array([pairs[row].condition.strip() in known for row in rated], dtype=bool)
        seen, unseen = subset(rated[is_seen]), subset(rated[~is_seen])
    return EvaluationReport(
        model=model.info.name,
        revision=model.info.revision,
        trained=model.info.trained,
        rows=len(pairs),
        rated=len(rated),
        overall=subset(rated),
        seen=seen,
        unseen=unseen,
        resamples=resamples,
        seed=seed,
        seconds=seconds,
        predictions=predictions,
    )


def agreement(pairs: Sequence[Pair], predictions: np.ndarray, *, resamples: int, seed: int) -> Subset:
    """Compare scores that are there already with the ratings.

    Args:
        pairs: p rows, all with a label.
        predictions: (p,) scores, higher is more similar.
        resamples, seed: As in `evaluate`.
    """
    ratings = np.array([pair.label for pair in pairs], dtype=np.float64)
    scores = predictions.astype(np.float64)
    twos = condition_pairs(pairs)

    def accuracy(chosen: np.ndarray) -> PairAccuracy:
        first, second = chosen.T
        return pair_accuracy(ratings[first], ratings[second], scores[first], scores[second])

    rng = np.random.default_rng(seed)
    drawn: dict[str, list[float | None]] = defaultdict(list)
    groups = [np.array(rows) for rows in _by_sentences(pairs).values()]
    for _ in range(resamples if len(groups) >= MIN_RESAMPLED else 0):
        rows = np.concatenate([groups[group] for group in rng.integers(len(groups), size=len(groups))])
        drawn["spearman"].append(spearman(ratings[rows], scores[rows]))
        drawn["pearson"].append(pearson(ratings[rows], scores[rows]))
        if len(twos) >= MIN_RESAMPLED:
            resampled = accuracy(twos[rng.integers(len(twos), size=len(twos))])
            drawn["ties_wrong"].append(resampled.ties_wrong)
            drawn["ties_excluded"].append(resampled.ties_excluded)

    whole = accuracy(twos)
    reason = why_undefined(ratings, scores)
    no_pairs = "no sentence pair is rated under exactly two conditions"
    all_equal = no_pairs if not whole.pairs else "both ratings are equal in every sentence pair"
    return Subset(
        n=len(pairs),
        spearman=_metric(spearman(ratings, scores), drawn["spearman"], reason),
        pearson=_metric(pearson(ratings, scores), drawn["pearson"], reason),
        accuracy=whole,
        ties_wrong=_metric(whole.ties_wrong, drawn["ties_wrong"], no_pairs),
        ties_excluded=_metric(whole.ties_excluded, drawn["ties_excluded"], all_equal),
    )


def _metric(value: float | None, drawn: Sequence[float | None], reason: str) -> Metric:
    if value is None:
        return Metric(value=None, reason=reason)
    defined = [one for one in drawn if one is not None]
    if not defined:
        return Metric(value=100 * value)
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Metric(value=100 * value, low=100 * float(low), high=100 * float(high))


def _subset_dict(subset: Subset) -> dict:
    metrics = {name: vars(getattr(subset, name)) for name in ("spearman", "pearson", "ties_wrong", "ties_excluded")}
    return {"n": subset.n, **metrics, "pair_accuracy": dict(vars(subset.accuracy))}


def _by_sentences(pairs: Sequence[Pair]) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        groups[pair.sentence1, pair.sentence2].append(index)
    return groups


def _parallel(first: Sequence[float], second: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(f"Two lists of equal length are needed, got shapes {first.shape} and {second.shape}.")
    return first, second


def _signs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Give 1, 0 or -1 per row, and NaN where one of the values is not finite."""
    usable = np.isfinite(first) & np.isfinite(second)
    return np.where(usable, 1.0 * (first > second) - (first < second), np.nan)
