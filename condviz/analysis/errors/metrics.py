"""Figures of all rows, of a slice and of the rest, with intervals; and whether two models really differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from condviz.analysis.errors.bootstrap import Sample, resample
from condviz.analysis.errors.study import Judged, Study
from condviz.errors import ConfigError
from condviz.evaluation.csts import LEVEL, MIN_RESAMPLED, Metric, pair_accuracy, pearson, spearman, why_undefined

RESAMPLES = 10_000
NAMES = ("spearman", "pearson", "accuracy", "ties_wrong", "error", "bias")


@dataclass(frozen=True)
class Figures:
    """The figures of one model on some of the rows: correlations in [-1, 1], accuracies in [0, 1].

    Attributes:
        model: Its name.
        n: Rated rows.
        items: Sentence pairs with two rated conditions, of which at least one row is among them.
        spearman, pearson: Correlation of score and rating.
        accuracy: Share of items in the right order; items with equal ratings are left out.
        ties_wrong: The same with equal ratings counted as wrong, as CASE most likely prints.
        error: Mean absolute error, in steps of the rating.
        bias: Mean error: positive where the model finds pairs too similar.
    """

    model: str
    n: int
    items: int
    spearman: Metric
    pearson: Metric
    accuracy: Metric
    ties_wrong: Metric
    error: Metric
    bias: Metric


@dataclass(frozen=True)
class Difference:
    """The first model minus the second, on the same rows.

    Attributes:
        values: Name of the figure -> difference with interval, from the same resamples for both models.
        p_values: Name -> two-sided p of the paired bootstrap, without correction; None where it is not defined.
        only_first, only_second: Items that one model orders rightly and the other does not.
        mcnemar: Exact two-sided p of McNemar's test on those; None if there is no such item.
    """

    values: dict[str, Metric]
    p_values: dict[str, float | None]
    only_first: int
    only_second: int
    mcnemar: float | None


@dataclass(frozen=True)
class Report:
    """Figures on a part of the rows.

    Attributes:
        n: Rows, rated or not.
        figures: One per model.
        difference: None with one model, or without rated rows.
        resamples: How many the intervals rest on; 0 for none.
    """

    n: int
    figures: tuple[Figures, ...]
    difference: Difference | None
    resamples: int


def measure(study: Study, mask: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> Report:
    """Measure one or two models on a part of the rows.

    Args:
        study: Rows and models.
        mask: (p,) bool, the part.
        resamples: Number of bootstrap resamples; 0 for no intervals.
        seed: Seed of the bootstrap.

    Raises:
        ConfigError: If `resamples` is negative.
    """
    if resamples < 0:
        raise ConfigError(f"resamples must be 0 (no intervals) or more, got {resamples}. 10,000 is usual.")
    scored = np.logical_and.reduce([np.isfinite(judged.scores) for judged in study.judged])
    rows = np.flatnonzero(mask & study.rated & scored)
    items = study.dataset.items[mask[study.dataset.items].any(axis=1)]
    items = items[(study.rated & scored)[items].all(axis=1)]
    clusters = study.dataset.clusters[rows]
    enough = len(np.unique(clusters)) >= MIN_RESAMPLED
    drawn: list[dict[str, np.ndarray]] = [{} for _ in study.judged]
    if resamples and enough:
        drawn = resample(_sample(study, rows, items), resamples=resamples, seed=seed)
    used = resamples if enough else 0
    figures = tuple(
        _figures(study, judged, rows, items, values) for judged, values in zip(study.judged, drawn, strict=True)
    )
    difference = _difference(study, figures, items, drawn) if len(figures) == 2 and len(rows) else None
    return Report(int(mask.sum()), figures, difference, used)


def _sample(study: Study, rows: np.ndarray, items: np.ndarray) -> Sample:
    return Sample(
        gold=study.columns["gold"][rows],
        clusters=study.dataset.clusters[rows],
        in_item=np.isin(rows, items),
        scores=[judged.scores[rows] for judged in study.judged],
        errors=[judged.error[rows] for judged in study.judged],
        right=[judged.right[rows] for judged in study.judged],
    )


def _figures(
    study: Study, judged: Judged, rows: np.ndarray, items: np.ndarray, drawn: dict[str, np.ndarray]
) -> Figures:
    gold, scores = study.columns["gold"], judged.scores
    first, second = items.T
    order = pair_accuracy(gold[first], gold[second], scores[first], scores[second])
    reason = why_undefined(gold[rows], scores[rows])
    no_items = (
        "no sentence pair is rated under two conditions" if not len(items) else "both ratings are equal in every item"
    )
    error = judged.error[rows]
    values = {
        "spearman": (spearman(gold[rows], scores[rows]), reason),
        "pearson": (pearson(gold[rows], scores[rows]), reason),
        "accuracy": (order.ties_excluded, no_items),
        "ties_wrong": (order.ties_wrong, no_items),
        "error": (float(np.abs(error).mean()) if len(rows) else None, "there is no rated row"),
        "bias": (float(error.mean()) if len(rows) else None, "there is no rated row"),
    }
    made = {name: _figure(value, drawn.get(name), why) for name, (value, why) in values.items()}
    return Figures(judged.model, len(rows), len(items), **made)


def _figure(value: float | None, drawn: np.ndarray | None, reason: str) -> Metric:
    if value is None:
        return Metric(None, reason=reason)
    defined = drawn[np.isfinite(drawn)] if drawn is not None else ()
    if not len(defined):
        return Metric(value)
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Metric(value, float(low), float(high))


def _difference(
    study: Study, figures: tuple[Figures, ...], items: np.ndarray, drawn: list[dict[str, np.ndarray]]
) -> Difference:
    values, p_values = {}, {}
    for name in NAMES:
        one, two = (getattr(figure, name).value for figure in figures)
        change = drawn[0][name] - drawn[1][name] if name in drawn[0] else None
        values[name] = _figure(
            None if one is None or two is None else one - two, change, "one of the two is not defined"
        )
        p_values[name] = _bootstrap_p(change)
    right = [judged.right[items[:, 0]] for judged in study.judged]
    only_first, only_second = (int(((one == 1) & (two == 0)).sum()) for one, two in (right, right[::-1]))
    apart = only_first + only_second
    return Difference(values, p_values, only_first, only_second, binomtest(only_first, apart).pvalue if apart else None)


def _bootstrap_p(change: np.ndarray | None) -> float | None:
    """Twice the share of resamples on the rarer side of zero; one is added, as no p is exactly 0."""
    defined = change[np.isfinite(change)] if change is not None else ()
    if not len(defined):
        return None
    rarer = min((defined <= 0).sum(), (defined >= 0).sum())
    return float(min(1.0, 2 * (rarer + 1) / (len(defined) + 1)))
