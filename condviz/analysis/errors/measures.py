"""Figures of all rows, of a slice and of the rest; worst conditions; is a condition read; what figures allow to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from condviz.analysis.errors.slices import contrast
from condviz.analysis.errors.study import Judged, Study
from condviz.data.texts import fold
from condviz.evaluation import metrics
from condviz.evaluation.agreement import RESAMPLES, Agreement, Drawn, interval, resample_means
from condviz.evaluation.agreement import measure as agree
from condviz.evaluation.metrics import ALPHA, LEAST, Metric, Verdict
from condviz.types import Record

HEADS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "ties_wrong": "pair accuracy",
    "ties_excluded": "ties left out",
    "error": "mean error",
    "bias": "bias",
}
"""Figures and how they are called where they are printed; the same names as in `evaluate`."""
NO_ROW = "there is no rated row"
SWAPS = 2000
"""Random swaps for the null distribution of `Blindness.follows`."""
BLIND = 0.01
"""A smaller share of variance between two conditions counts as none."""


@dataclass(frozen=True)
class Figures(Agreement):
    """The figures of one model on some of the rows; at least one row of each of its `items` is among them."""

    model: str
    error: Metric
    """Mean absolute error of the rating that the score predicts, in steps of the rating."""
    bias: Metric
    """Mean error: positive where the model finds pairs too similar."""
    left_out = ("pair_accuracy",)


@dataclass(frozen=True)
class Difference:
    """The first model minus the second, on the same rows."""

    values: dict[str, Metric]
    """Name of the figure -> difference with interval, from the same resamples for both models."""
    p_values: dict[str, float | None]
    """Name -> two-sided p of the paired bootstrap, without correction; None where it is not defined."""
    only_first: int
    only_second: int
    """Items that one model orders rightly and the other does not."""
    mcnemar: float | None
    """Exact two-sided p of McNemar's test on those; None if there is no such item."""


@dataclass(frozen=True)
class AgreementReport(Record):
    """Figures on a part of the rows."""

    n: int
    figures: tuple[Figures, ...]
    """One per model."""
    difference: Difference | None
    """None with one model, or without rated rows."""
    resamples: int
    """How many the intervals rest on; 0 for none."""


def measure(study: Study, mask: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> AgreementReport:
    """Measure one or two models on a part of the rows, (p,) bool.

    Correlations and shares are those of `condviz.evaluation.agreement`. For errors the fit of ratings to scores is
    repeated in each resample of all rows (see `Study.refits`).
    """
    rows, items = np.flatnonzero(mask & study.rated), study.dataset.items
    chosen = np.any(mask[items], axis=1) & np.all(study.rated[items], axis=1)
    items = items[chosen]
    scores = [judged.scores for judged in study.judged]
    found, drawn = agree(study.dataset.rows, scores, chosen=rows, items=items, resamples=resamples, seed=seed)
    errors = [
        _errors(study, index, rows, resamples=resamples if drawn else 0, seed=seed) for index in range(len(scores))
    ]
    figures = tuple(
        _figures(judged, one, rows, draws) for judged, one, draws in zip(study.judged, found, errors, strict=True)
    )
    difference = None
    if len(figures) == 2 and len(rows):
        paired = [[by[index] for by in drawn] + errors[index] for index in range(2)]
        difference = _difference(study, figures, chosen, paired)
    return AgreementReport(int(mask.sum()), figures, difference, resamples if drawn else 0)


def _errors(study: Study, index: int, rows: np.ndarray, *, resamples: int, seed: int) -> list[Drawn]:
    """Return resampled mean absolute and mean error: by sentence pairs with a new fit each, then by aspects."""
    if not resamples:
        return []
    error = study.judged[index].error[rows]
    drawn = [study.refits(index, resamples=resamples, seed=seed).means(rows)]
    for clusters in study.dataset.rows.clusterings(rows)[1:]:
        means = {"error": np.abs(error), "bias": error}
        drawn.append(
            {name: resample_means(one, clusters, resamples=resamples, seed=seed) for name, one in means.items()}
        )
    return drawn


def _figures(judged: Judged, found: Agreement, rows: np.ndarray, drawn: Sequence[Drawn]) -> Figures:
    error, n = judged.error[rows], len(rows)
    missing = Metric(None, n=0, reason="too few rated rows to predict a rating" if n else NO_ROW)
    made: dict[str, Any] = {"error": missing, "bias": missing}
    if n and np.isfinite(error).all():
        means = {"error": float(np.abs(error).mean()), "bias": float(error.mean())}
        made = {name: Metric(mean, *interval(mean, [by[name] for by in drawn]), n) for name, mean in means.items()}
    return Figures(model=judged.model, **vars(found), **made)


def _difference(study: Study, figures: tuple[Figures, ...], chosen: np.ndarray, drawn: list[list[Drawn]]) -> Difference:
    values, p_values = {}, {}
    for name in HEADS:
        one, two = (getattr(figure, name).value for figure in figures)
        scale = 1 if name in ("error", "bias") else 100
        changes = [scale * (a[name] - b[name]) for a, b in zip(*drawn, strict=True) if name in a]
        if one is None or two is None:
            values[name] = Metric(None, reason="one of the two is not defined")
        else:
            values[name] = Metric(one - two, *interval(one - two, changes), n=getattr(figures[0], name).n)
        found = [p for change in changes if (p := _bootstrap_p(change)) is not None]
        p_values[name] = max(found, default=None)
    right = [judged.verdicts[chosen] for judged in study.judged]
    only_first, only_second = (int(((one == 1) & (two == 0)).sum()) for one, two in (right, right[::-1]))
    apart = only_first + only_second
    mcnemar = min(1.0, 2 * float(special.bdtr(min(only_first, only_second), apart, 0.5))) if apart else None
    return Difference(values, p_values, only_first, only_second, mcnemar)


def _bootstrap_p(change: np.ndarray) -> float | None:
    """Return twice the share of resamples on the rarer side of zero; one is added, as no p is exactly 0."""
    defined = change[np.isfinite(change)]
    if not len(defined):
        return None
    rarer = min((defined <= 0).sum(), (defined >= 0).sum())
    return float(min(1.0, 2 * (rarer + 1) / (len(defined) + 1)))


@dataclass(frozen=True)
class GroupErrors:
    """Rows with one condition (or one value of another column of texts)."""

    value: str
    """The condition as it is written where it comes first."""
    n: int
    error: tuple[float, ...]
    """Mean absolute error per model, in steps of the rating."""
    spread: tuple[float, ...]
    """Half of the 95 % interval of `error` (Student's t)."""
    bias: tuple[float, ...]
    """Mean error per model: positive where it finds pairs too similar."""
    wrong: tuple[float, ...]
    """Share of items in the wrong order per model; NaN where no row is part of an item with two ratings."""


@dataclass(frozen=True)
class Blindness(Record):
    """How much of the variance of the scores comes from the condition, and whether it goes the way of the ratings.

    Each is None where it is not defined.
    """

    model: str
    within: float | None
    """Of the scores of items, the share of variance between the two conditions of a pair, in [0, 1]. 0: the score is
    the same whatever is asked. Random scores have one half, so much of it proves nothing."""
    within_gold: float | None
    """The same share of the ratings: what a perfect model would have."""
    follows: float | None
    """Correlation, in [-1, 1], of the change of the score from one condition to the other with the change of the
    rating."""
    chance: tuple[float, float] | None
    """The middle 95 % of `follows` where the two scores of each item are swapped at random."""
    p: float | None
    """One-sided: how often swapping at random follows the ratings as well; at least 1 / (`SWAPS` + 1)."""
    wording: float | None
    """Share of the variance of all scores that the wording of the condition alone explains, whatever the sentences
    are; corrected for the number of wordings (epsilon squared), so that chance gives 0. What a model guesses from
    the question."""
    wording_gold: float | None
    """The same share of the ratings."""
    items: int
    computed = ("verdict",)

    @property
    def verdict(self) -> str:
        """What the figures allow to say, in a few words."""
        if self.within is None:
            return "cannot be told: no sentence pair comes under two conditions"
        if self.within < BLIND:
            return "ignores the condition"
        if self.p is None:
            return "changes its scores with the condition; without ratings nobody knows whether rightly"
        return "follows the condition" if self.p < 0.05 else "does not follow the condition better than chance"


def worst_conditions(study: Study, *, column: str = "condition", mask: np.ndarray | None = None) -> list[GroupErrors]:
    """List conditions by the lower end of the interval of the first model's mean absolute error, the worst first.

    So a condition is not the worst because of a few unlucky rows; values of fewer than `LEAST` rows, which tell too
    little, are left out. `column` may also be "aspect", "asks" or another column of texts.
    """
    rows = np.flatnonzero(study.rated & (True if mask is None else mask) & np.isfinite(study.first.error))
    values = study.columns[column][rows]
    folded = [fold(str(value)) for value in values]
    _, first, place, counts = np.unique(folded, return_index=True, return_inverse=True, return_counts=True)

    def means(numbers: np.ndarray) -> np.ndarray:
        known = np.isfinite(numbers)
        with np.errstate(invalid="ignore"):
            return np.bincount(place, np.where(known, numbers, 0)) / np.bincount(place, known)

    def judge(judged: Judged) -> tuple[np.ndarray, ...]:
        error = np.abs(judged.error[rows])
        mean = means(error)
        squares = means((error - mean[place]) ** 2) * counts
        variance = squares / np.maximum(counts - 1, 1)
        spread = np.sqrt(variance / counts) * special.stdtrit(counts - 1, 0.975)
        return mean, spread, means(judged.error[rows]), means(1 - judged.right[rows])

    judged = [judge(one) for one in study.judged]
    groups = [
        GroupErrors(
            str(values[first[i]]), int(counts[i]), *(tuple(float(j[part][i]) for j in judged) for part in range(4))
        )
        for i in np.flatnonzero(counts >= LEAST)
    ]
    return sorted(groups, key=lambda group: (group.spread[0] - group.error[0], group.value))


def check_blindness(study: Study, judged: Judged) -> Blindness:
    """Measure whether scores change with the condition, and whether the condition's wording alone decides them."""
    items = study.dataset.items
    gold = study.columns["gold"]
    rated = np.isfinite(gold[items]).all(axis=1) & np.isfinite(judged.scores[items]).all(axis=1)
    used = items[rated] if rated.any() else items
    follows, chance, p = _follow(judged.scores, gold, items[rated], study.dataset.clusters)
    return Blindness(
        judged.model,
        within=_within(judged.scores, used),
        within_gold=_within(gold, items[rated]),
        follows=follows,
        chance=chance,
        p=p,
        wording=_explained(judged.scores, study.columns["condition"]),
        wording_gold=_explained(gold, study.columns["condition"]),
        items=len(used),
    )


def _follow(
    scores: np.ndarray, gold: np.ndarray, items: np.ndarray, clusters: np.ndarray
) -> tuple[float | None, tuple[float, float] | None, float | None]:
    """Correlate changes of score and rating in items; the null swaps the scores of an item, or of all of a pair."""
    change, wanted = (values[items[:, 0]] - values[items[:, 1]] for values in (scores, gold))
    products = change * wanted
    scale = np.sqrt((change**2).sum() * (wanted**2).sum())
    if len(items) < 2 or scale == 0:
        return None, None, None
    rng = np.random.default_rng(0)
    if len(np.unique(items)) == items.size:
        swapped = np.array([products @ rng.choice((-1.0, 1.0), size=len(products)) for _ in range(SWAPS)]) / scale
    else:
        rows, (first, second) = np.unique(items), items.T
        order, mixed = rows[np.argsort(clusters[rows], kind="stable")], scores.copy()
        swapped = np.empty(SWAPS)
        for number in range(SWAPS):
            mixed[order] = scores[rows[np.lexsort((rng.random(len(rows)), clusters[rows]))]]
            swapped[number] = (mixed[first] - mixed[second]) @ wanted
        swapped /= scale
    observed = float(products.sum() / scale)
    low, high = np.quantile(swapped, (0.025, 0.975))
    p = (1 + int((swapped >= observed - 1e-12).sum())) / (SWAPS + 1)
    return observed, (float(low), float(high)), p


def _within(values: np.ndarray, items: np.ndarray) -> float | None:
    """Return the share of the sum of squares that lies inside the pairs."""
    if len(items) < 2:
        return None
    chosen = values[items]
    whole = ((chosen - chosen.mean()) ** 2).sum()
    return float(((chosen - chosen.mean(axis=1, keepdims=True)) ** 2).sum() / whole) if whole > 0 else None


def _explained(values: np.ndarray, conditions: np.ndarray) -> float | None:
    """Return epsilon squared of a one-way analysis of variance, not below 0."""
    known = np.isfinite(values)
    used = values[known]
    folded = [fold(str(c)) for c in np.asarray(conditions)[known]]
    _, place, counts = np.unique(folded, return_inverse=True, return_counts=True)
    n, k = len(used), len(counts)
    if not 2 <= k < n:
        return None
    means = np.bincount(place, used) / counts
    whole, inside = ((used - used.mean()) ** 2).sum(), ((used - means[place]) ** 2).sum()
    return float(max(0.0, 1 - (inside / (n - k)) / (whole / (n - 1)))) if whole > 0 else None


# ---- what the figures allow to say, as headlines do ------------------------------------------------------------------

FAR = 1.0
"""Steps of the rating from which an error is called one."""


@dataclass(frozen=True)
class Summary(Record):
    """What can be said of some rows."""

    rows: int
    pairs: int
    """Sentence pairs with two conditions that are rated differently."""
    alike: int
    """Comparisons of two conditions that are rated alike: none of `right`, and wrong in the pair accuracy."""
    right: tuple[int, ...]
    """How many comparisons of two such conditions each model gets right."""
    order: Verdict | None
    """Share of them that the first model gets right, in [0, 1]; of two models the first minus the second. None where
    there are none."""
    follows: Verdict | None
    """Rank correlation of score and rating, for one model without such comparisons; else None."""
    closer: Verdict | None
    """Of two models, by how many steps the first one is closer to the rating; else None."""
    similar: int
    different: int
    """Rows that the first model finds too similar, and too different, by more than a step."""
    best: GroupErrors | None
    worst: GroupErrors | None
    """What is asked where the first model is surely closer to the ratings than elsewhere, and farther; None where
    nothing is sure."""
    wins: tuple[str, ...]
    loses: tuple[str, ...]
    """Of two models: what is asked where the first is surely closer than the second, and farther."""
    asked: str
    """The column that says what is asked: "aspect", "asks" or "condition"."""
    trained: int
    """Rows that trained one of the models."""


def summarise(study: Study, mask: np.ndarray, groups: list[GroupErrors], asked: str) -> Summary:
    """Judge what the rows of a mask, (p,) bool, allow to say; `groups` are the values of the column `asked`."""
    rated = np.flatnonzero(mask & study.rated & np.isfinite(study.first.scores))
    chosen = inside = mask[study.dataset.items].any(axis=1)
    for judged in study.judged:
        chosen = chosen & np.isfinite(judged.verdicts)
    alike = inside & (np.ptp(study.columns["gold"][study.dataset.items], axis=1) == 0)
    clusters = study.dataset.clusters[study.dataset.items[:, 0]][chosen]
    verdicts = [judged.verdicts[chosen] for judged in study.judged]
    error, gold = study.first.error[rated], study.columns["gold"][rated]
    order = follows = closer = None
    if study.second is not None:
        gain = np.abs(study.second.error[rated]) - np.abs(error)
        closer = metrics.judge_mean(gain, clusters=study.dataset.clusters[rated]) if np.isfinite(gain).any() else None
        order = metrics.judge_mean(verdicts[0] - verdicts[1], clusters=clusters) if len(clusters) else None
        wins, loses = _sides(study, rated, gain, groups, asked, against_rest=False)
        best = worst = ()
    else:
        if len(clusters):
            order = metrics.judge_share(verdicts[0], clusters=clusters)
        elif (value := metrics.spearman(gold, study.first.scores[rated])) is not None:
            follows = metrics.judge_correlation(value, len(np.unique(study.dataset.clusters[rated])))
        worst, best = _sides(study, rated, np.abs(error), groups, asked, against_rest=True)
        wins = loses = ()
    return Summary(
        rows=len(rated), pairs=len(np.unique(clusters)), alike=int(alike.sum()),
        right=tuple(int((one == 1).sum()) for one in verdicts), order=order, follows=follows, closer=closer,
        similar=int((error > FAR).sum()), different=int((error < -FAR).sum()),
        best=next(iter(best), None), worst=next(iter(worst), None),
        wins=tuple(group.value for group in wins), loses=tuple(group.value for group in loses), asked=asked,
        trained=int((study.columns["trained"][mask] == 1).sum()),
    )  # fmt: skip


def _sides(
    study: Study, rows: np.ndarray, values: np.ndarray, groups: list[GroupErrors], asked: str, *, against_rest: bool
) -> tuple[list[GroupErrors], list[GroupErrors]]:
    """Return the groups whose mean is surely above, and below, that of the other rows (or 0), the surest first."""
    cells = np.array([fold(str(value)) for value in study.columns[asked][rows]], dtype=object)
    _, clusters = np.unique(study.dataset.clusters[rows], return_inverse=True)
    masks = {one.value: cells == fold(one.value) for one in groups}
    tried = [one for one in groups if LEAST <= masks[one.value].sum() <= len(rows) - (LEAST if against_rest else 0)]
    if not tried:
        return [], []
    if against_rest:
        inside, outside, p = contrast(values, np.stack([masks[one.value] for one in tried]), clusters)
        found = [(p[i], inside[i] - outside[i], one) for i, one in enumerate(tried) if p[i] * len(tried) < ALPHA]
    else:
        judged = [
            (metrics.judge_mean(values[masks[one.value]], clusters=clusters[masks[one.value]], tries=len(tried)), one)
            for one in tried
        ]
        found = [(-abs(verdict.value), verdict.value, one) for verdict, one in judged if verdict.sure]
    found.sort(key=lambda one: one[:2])
    return [one for _, effect, one in found if effect > 0], [one for _, effect, one in found if effect < 0]
