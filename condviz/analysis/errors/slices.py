"""Find what rows with errors have in common: short filters, tested against the other rows, corrected for their number.

Each candidate is a filter of `condviz.analysis.errors.filters` that anybody can read and change. Its rows are compared
with all other rows by the difference of means; the standard error is that of sentence pairs, because the two rows of a
pair are not independent. Small slices may have next to no spread inside by luck, so there p is exact (Fisher) for right
and wrong, and uses no smaller spread than that of all rows for errors. Thousands of candidates are tried, so p is
corrected for the share of false finds.

Sources: Errudite, Wu et al. ACL 2019 (errors as filters); SliceFinder, Chung et al. 2019; standard errors of clusters,
Liang and Zeger 1986; false discovery rate, Benjamini and Hochberg 1995.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from scipy import special

from condviz.analysis.errors.filters import quote
from condviz.analysis.errors.study import Study
from condviz.data.texts import fold
from condviz.errors import ConfigError, DataError
from condviz.evaluation.metrics import error_and_p

Target = Literal["over", "under", "large", "order", "first", "second"]
MIN_SUPPORT = 15
"""Fewer rows are anecdotes."""
MAX_WORDS, MAX_VALUES = 150, 300
JOINED = 30
"""Single filters that are tried in pairs."""
WORSE = 1.2
"""A pair of filters has to have this many times the effect of either, or the longer filter says nothing new."""
ALIKE = 0.8
"""Two slices with more of their rows in common (intersection over union) count as one."""
SIGNIFICANT = 0.05
BATCH = 64
"""Filters compared at once; keeps memory bounded."""
SMALL = 30
"""With fewer sentence pairs on one side the spread inside is not trusted."""


@dataclass(frozen=True)
class Slice:
    """Rows that one filter selects, against all others."""

    filter: str
    n: int
    """Rows in it that the comparison rests on."""
    share: float
    """Of all rows that could be compared, in [0, 1]."""
    inside: float
    outside: float
    """Mean of the target's measure in the slice and outside of it: error, in steps of the rating, beyond that of all
    compared rows with the same rating ("over", "under"), absolute error ("large"), share of wrong orders ("order"),
    absolute error of the second model minus that of the first ("first", "second")."""
    p: float
    """Two-sided, not corrected: that inside and outside are alike or, for "first" and "second", that neither model
    is closer inside; the larger of the two."""
    q: float
    """Corrected for the number of filters tried (Benjamini-Hochberg); a pair of filters counts for all pairs."""

    @property
    def effect(self) -> float:
        """Mean in the slice minus mean outside."""
        return self.inside - self.outside


@dataclass(frozen=True)
class Search:
    """What was found."""

    target: str
    slices: tuple[Slice, ...]
    """Found slices, the surest first."""
    tried: int
    """How many filters, single and in pairs, q allows for."""
    sure: int
    """How many of the compared filters have q below `SIGNIFICANT`; `slices` leaves out those that select nearly the
    same rows, and those beyond the limit."""
    min_support: int


def find_slices(study: Study, target: Target, *, mask: np.ndarray | None = None, limit: int = 20) -> Search:
    """Search the rows of a mask, (p,) bool, for at most `limit` slices in which a model is wrong more than elsewhere.

    Raises:
        ConfigError: If the target, a key of `TARGETS`, needs a second model.
        DataError: If fewer than twice `MIN_SUPPORT` rows can be compared.
    """
    values = _measure(study, target)
    used = np.flatnonzero(np.isfinite(values) & (True if mask is None else mask))
    if len(used) < 2 * MIN_SUPPORT:
        raise DataError(
            f"Only {len(used):,} {'row' if len(used) == 1 else 'rows'} can be compared, and slices of {MIN_SUPPORT} "
            f"rows need {2 * MIN_SUPPORT:,}. Widen the filter, or take a file with more labels."
        )
    values, columns = values[used], {name: column[used] for name, column in study.columns.items()}
    if target in ("over", "under"):
        values = _beyond_rating(values, columns["gold"])
    clusters = np.unique(study.dataset.clusters[used], return_inverse=True)[1]
    sign = -1 if target in ("under", "second") else 1
    single = _candidates(columns)
    if not single:
        return Search(target, (), 0, 0, MIN_SUPPORT)
    masks = np.stack(list(single.values()))
    joined = _join(list(single), masks, sign * values, clusters)
    filters, masks = [*single, *joined], np.stack([*single.values(), *joined.values()])
    inside, outside, p = contrast(values, masks, clusters)
    if target in ("first", "second"):
        # To lose by less than elsewhere is not to win.
        alone = [error_and_p(values[mask], clusters[mask]) for mask in masks]
        p = np.maximum(p, [own if error > 0 else 1.0 for error, own in alone])
    # Pairs are tried only for the strongest filters, so each stands for many that were looked at from afar.
    factor = np.ones(len(filters))
    factor[len(single) :] = len(single) * (len(single) - 1) / 2 / max(1, len(joined))
    from scipy.stats import false_discovery_control  # takes seconds to import

    q = false_discovery_control(np.minimum(1, np.nan_to_num(p, nan=1.0) * factor))
    counts, effects = masks.sum(axis=1), sign * (inside - outside)
    # What a target says of a slice has to be true there, not only truer than elsewhere.
    right = (effects > 0) & (sign * inside > 0) & np.isfinite(p)
    order = [index for index in np.lexsort((-effects, p * factor)) if right[index]]
    found = [
        Slice(
            filters[i], int(counts[i]), float(counts[i] / len(values)), float(inside[i]), float(outside[i]),
            float(p[i]), float(q[i]),
        )
        for i in _without_twins(order, masks, limit)
    ]  # fmt: skip
    tried = len(single) * (len(single) + 1) // 2
    return Search(target, tuple(found), tried, int((right & (q < SIGNIFICANT)).sum()), MIN_SUPPORT)


def contrast(values: np.ndarray, masks: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare the mean inside and outside of each slice: mean inside, mean outside, two-sided p, (s,) each.

    The values are (n,) finite ones, the masks (s, n) bool, none empty or everything, and the clusters (n,) int from 0.
    The standard error adds up residuals over each cluster first; the degrees of freedom are those of the smaller side,
    as few pairs tell little about their own spread. With fewer than `SMALL` clusters on a side p is Fisher's for values
    of 0 and 1, and else never smaller than with the spread of all rows.
    """
    by_cluster = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[by_cluster], prepend=-1))
    values = values[by_cluster]
    parts = [_contrast(values, part[:, by_cluster], starts) for part in np.array_split(masks, len(masks) // BATCH + 1)]
    inside, outside, p = (np.concatenate(part) for part in zip(*parts, strict=True))
    return inside, outside, p


def _contrast(values: np.ndarray, masks: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_in = masks.sum(axis=1)
    n_out = masks.shape[1] - n_in
    total = masks @ values
    inside, outside = total / n_in, (values.sum() - total) / n_out
    residual_in, residual_out = (values - inside[:, None]) / n_in[:, None], (values - outside[:, None]) / n_out[:, None]
    sums = np.add.reduceat(np.where(masks, residual_in, -residual_out), starts, axis=1)
    groups = np.minimum(*((np.logical_or.reduceat(side, starts, axis=1)).sum(axis=1) for side in (masks, ~masks)))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt((sums**2).sum(axis=1) * groups / (groups - 1))
        small = groups < SMALL
        error[small] = np.maximum(error[small], _pooled_error(values, masks[small], starts))
        p = 2 * special.stdtr(groups - 1, -np.abs((inside - outside) / error))
    p = np.where((error > 0) & (groups > 1), p, np.nan)
    if small.any() and np.isin(values, (0, 1)).all():
        p[small] = _fisher(values, masks[small], starts)
    return inside, outside, p


def _pooled_error(values: np.ndarray, masks: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the standard error of the difference where slice and rest have the spread of all rows."""
    n_in = masks.sum(axis=1)
    n_out = masks.shape[1] - n_in
    weights = np.where(masks, 1 / n_in[:, None], -1 / n_out[:, None]) * (values - values.mean())
    return np.sqrt((np.add.reduceat(weights, starts, axis=1) ** 2).sum(axis=1))


def _fisher(values: np.ndarray, masks: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return Fisher's exact two-sided p of sentence pairs: inside, and wrong, if any of its rows is."""
    inside = np.logical_or.reduceat(masks, starts, axis=1)
    wrong = np.maximum.reduceat(values, starts) > 0
    drawn, hits = inside.sum(axis=1), (inside & wrong).sum(axis=1)
    from scipy.stats import hypergeom

    law = hypergeom(len(starts), int(wrong.sum()), drawn)
    return np.minimum(1.0, 2 * np.minimum(law.cdf(hits), law.sf(hits - 1)))


def _measure(study: Study, target: Target) -> np.ndarray:
    first, second = study.first, study.second
    if target in ("first", "second"):
        if second is None:
            raise ConfigError(f"The target {target!r} compares two models. Choose a second one.")
        return np.abs(second.error) - np.abs(first.error)
    if target in ("over", "under"):
        return first.error
    return np.abs(first.error) if target == "large" else 1 - first.right


def _beyond_rating(error: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Subtract what rows of the same rating have on average: low ratings look too similar by themselves."""
    _, level = np.unique(gold, return_inverse=True)
    return error - (np.bincount(level, error) / np.bincount(level))[level]


def _candidates(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return single filters with enough rows inside and outside: filter -> (n,) bool."""
    made: dict[str, np.ndarray] = {}
    for name in ("seen", "negation", "numerals", "numerals_differ"):
        made |= {name: columns[name] == 1, f"not {name}": columns[name] == 0}
    for name in ("length", "length_gap", "overlap"):
        low, high = (float(f"{value:.3g}") for value in np.quantile(columns[name], [0.25, 0.75]))
        made |= {f"{name} <= {low:g}": columns[name] <= low, f"{name} >= {high:g}": columns[name] >= high}
    gold = columns["gold"]
    made |= {"gold <= 2": gold <= 2, "gold >= 4": gold >= 4, "gold > 2 and gold < 4": (gold > 2) & (gold < 4)}
    made |= _values(columns)
    for name in ("shared", "words"):
        made |= _words(columns[name], name)
    size = len(columns["row"])
    return {name: mask for name, mask in made.items() if MIN_SUPPORT <= mask.sum() <= size - MIN_SUPPORT}


def _values(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a filter for each frequent value of the columns of texts: condition, aspect, columns of the file."""
    made: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        if column.dtype != object or name in ("sentence1", "sentence2", "shared", "words"):
            continue
        if name == "asks" and (column == columns["condition"]).all():
            continue
        folded = [fold(value) for value in column]
        _, first, place, counts = np.unique(folded, return_index=True, return_inverse=True, return_counts=True)
        for index in np.argsort(-counts, kind="stable")[:MAX_VALUES]:
            if counts[index] >= MIN_SUPPORT:
                made[f"{name} == {quote(str(column[first[index]]))}"] = place == index
    return made


def _words(column: np.ndarray, name: str) -> dict[str, np.ndarray]:
    rows: dict[str, list[int]] = defaultdict(list)
    for row, words in enumerate(column):
        for word in words:
            rows[word].append(row)
    # Words of up to three letters are nearly all grammar.
    chosen = sorted((word for word in rows if len(word) > 3), key=lambda word: (-len(rows[word]), word))[:MAX_WORDS]
    made = {}
    for word in chosen:
        if len(rows[word]) >= MIN_SUPPORT:
            made[f"{quote(word)} in {name}"] = np.zeros(len(column), dtype=bool)
            made[f"{quote(word)} in {name}"][rows[word]] = True
    return made


def _join(filters: list[str], masks: np.ndarray, values: np.ndarray, clusters: np.ndarray) -> dict[str, np.ndarray]:
    """Join the strongest single filters two by two, where the rows of both are clearly worse than those of either."""
    inside, outside, p = contrast(values, masks, clusters)
    best = [index for index in np.argsort(np.nan_to_num(p, nan=1.0), kind="stable") if inside[index] > outside[index]]
    made = {}
    for one, two in combinations(best[:JOINED], 2):
        both = masks[one] & masks[two]
        if not MIN_SUPPORT <= both.sum() < min(masks[one].sum(), masks[two].sum()):
            continue
        effect = values[both].mean() - values[~both].mean()
        if effect > WORSE * max(inside[one] - outside[one], inside[two] - outside[two]):
            made[f"{filters[one]} and {filters[two]}"] = both
    return made


def _without_twins(order: list[int], masks: np.ndarray, limit: int) -> list[int]:
    kept: list[int] = []
    for index in order:
        own = masks[index]
        if all((own & masks[other]).sum() <= ALIKE * (own | masks[other]).sum() for other in kept):
            kept.append(index)
        if len(kept) == limit:
            break
    return kept
