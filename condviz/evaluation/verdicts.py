"""What figures allow to say: more, less, no difference, or too few to tell. Every headline asks here first.

A verdict is "more" or "less" only if its p is below `ALPHA`, divided by how many figures were looked at, and its 95 %
interval leaves out what chance gives. "few" means that no outcome of so few could have told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from condviz.evaluation.metrics import Metric, Z, wilson
from condviz.types import Record

ALPHA = 0.04
"""Below .05, so that also of a thousand draws without any effect at most one in twenty claims one."""
COUNTED = 30
"""Of fewer, a headline names how many of how many, and no percentage."""
LEAST = 5
"""Fewer means, or sentence pairs, cannot tell how far they scatter."""
LEAST_CORRELATED = 8
"""Fewer rows correlate by .7 and more by chance."""


@dataclass(frozen=True)
class Verdict(Record):
    """A figure, and what it allows to say."""

    says: Literal["more", "less", "none", "few"]
    """Against chance, or what it is compared with; "none": the interval covers both; "few": too few rows to tell."""
    value: float
    low: float | None
    high: float | None
    """Its 95 % interval; None where there are too few for one."""
    n: int
    """What it rests on."""

    @property
    def sure(self) -> bool:
        """Whether it says "more" or "less"."""
        return self.says in ("more", "less")


def judge(
    value: float, low: float | None, high: float | None, n: int, *, p: float = 0.0, chance: float = 0.0, tries: int = 1
) -> Verdict:
    """Judge a figure by its interval, and by its p where there is one.

    Args:
        value: The figure.
        low, high: Its 95 % interval; None where there are too few for one.
        n: What it rests on.
        p: Two-sided.
        chance: What the figure is without any effect.
        tries: How many figures were looked at to find this one.
    """
    if low is None or high is None or not np.isfinite([value, low, high]).all():
        return Verdict("few", float(value), None, None, n)
    sure = p * tries < ALPHA and not low <= chance <= high
    return Verdict(("more" if value > chance else "less") if sure else "none", float(value), float(low), float(high), n)


def judge_share(hits: ArrayLike, *, clusters: ArrayLike | None = None, chance: float = 0.5, tries: int = 1) -> Verdict:
    """Judge the share of (n,) outcomes of 0 or 1 against chance, by the exact binomial test.

    Outcomes of one cluster, for instance of a sentence pair under several conditions, hang together: with `clusters`,
    (n,), the test is that of their means (`judge_mean`), and the interval is Wilson's on the effective number.
    """
    hits = np.asarray(hits, dtype=float)
    n = len(hits)
    groups = n if clusters is None else len(np.unique(clusters))
    if n == 0 or 2 * max(chance, 1 - chance) ** groups * tries >= ALPHA:
        return Verdict("few", float(hits.mean()) if n else np.nan, None, None, n)
    share, effective = float(hits.mean()), float(n)
    if groups == n:
        k = round(hits.sum())
        p = min(1.0, 2 * min(special.bdtr(k, n, chance), special.bdtrc(k - 1, n, chance) if k else 1.0))
    else:
        error, p = _error_and_p(hits - chance, np.asarray(clusters))
        if error > 0:
            effective = min(effective, share * (1 - share) / error**2)
        effective = max(1.0, effective) if error > 0 else float(groups)
    return judge(share, *wilson(share, effective), n, p=float(p), chance=chance, tries=tries)


def judge_mean(values: ArrayLike, *, clusters: ArrayLike | None = None, tries: int = 1) -> Verdict:
    """Judge the mean of (n,) values against 0 by Student's t; values of one cluster hang together."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    groups = np.arange(n) if clusters is None else np.asarray(clusters)
    count = len(np.unique(groups))
    if count < LEAST:
        return Verdict("few", float(values.mean()) if n else np.nan, None, None, n)
    error, p = _error_and_p(values, groups)
    reach = float(special.stdtrit(count - 1, 0.975)) * error
    mean = float(values.mean())
    return judge(mean, mean - reach, mean + reach, n, p=p, tries=tries)


def judge_correlation(value: float, n: int, *, tries: int = 1) -> Verdict:
    """Judge a rank correlation in [-1, 1] of n independent rows by Student's t, with the interval of Bonett and Wright.

    Source:
        Bonett and Wright 2000 (doi:10.1007/BF02294183).
    """
    if n < LEAST_CORRELATED:
        return Verdict("few", value, None, None, n)
    inside = float(np.clip(value, -0.9999, 0.9999))
    t = inside * np.sqrt((n - 2) / (1 - inside**2))
    reach = Z * np.sqrt((1 + inside**2 / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(inside) + np.array([-reach, reach]))
    return judge(value, low, high, n, p=float(2 * special.stdtr(n - 2, -abs(t))), tries=tries)


def judge_rise(before: float, after: float, n: int, *, correlation: bool = False, tries: int = 1) -> Verdict:
    """Judge how far a share, or a correlation, has risen on the same n rows whose single outcomes are not known.

    Both count as independent, which makes the interval wider than it need be where they go together.
    """
    value, step = after - before, 0.0
    if n < LEAST_CORRELATED:
        return Verdict("few", value, None, None, n)
    if correlation:
        middle = (before + after) / 2
        error = (1 - middle**2) * np.sqrt(2 * (1 + middle**2 / 2) / (n - 3))
    else:
        # One more outcome of either kind, as no spread would leave no doubt (Agresti and Caffo 2000).
        shares = [(one * n + 1) / (n + 2) for one in (before, after)]
        error, step = np.sqrt(sum(share * (1 - share) / (n + 2) for share in shares)), 1 / n
    p = float(2 * special.ndtr(-max(0.0, abs(value) - step) / error))
    reach = Z * error + step
    return judge(value, value - reach, value + reach, n, p=p, tries=tries)


def judge_drawn(value: float, drawn: ArrayLike, n: int, *, error: float = 0.0, tries: int = 1) -> Verdict:
    """Judge a figure against what it is in (r,) draws in which there is no effect, for instance with shuffled values.

    The interval has the spread of the draws, or the standard `error` of the figure where that is larger.
    """
    drawn = np.asarray(drawn, dtype=float)
    chance = float(drawn.mean())
    p = (1 + int((np.abs(drawn - chance) >= abs(value - chance) - 1e-12).sum())) / (len(drawn) + 1)
    reach = Z * max(error, float(drawn.std()))
    return judge(value, value - reach, value + reach, n, p=p, chance=chance, tries=tries)


def judge_gap(first: Metric, second: Metric, *, tries: int = 1) -> Verdict:
    """Judge how far one figure is above another, both with intervals, as if they were independent."""
    known = [
        one for one in (first.value, first.low, first.high, second.value, second.low, second.high) if one is not None
    ]
    if len(known) < 6:
        return Verdict("few", np.nan, None, None, first.n or 0)
    value, error = known[0] - known[3], np.hypot(known[2] - known[1], known[5] - known[4]) / (2 * Z)
    p = float(2 * special.ndtr(-abs(value) / error)) if error > 0 else float(value == 0)
    return judge(value, value - Z * error, value + Z * error, first.n or 0, p=p, tries=tries)


def counted(share: float, n: int) -> str:
    """Return a share in [0, 1] of n as headlines name it: "9 of 12" of a few, else "75 %"."""
    return f"{round(share * n)} of {n}" if n < COUNTED else f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def between(low: float, high: float, digits: int = 0) -> str:
    """Return an interval as headlines name it: "62 to 84", with a real minus."""
    ends = (f"{round(end, digits) + 0.0:.{digits}f}".replace("-", "\N{MINUS SIGN}") for end in (low, high))
    return " to ".join(ends)


def _error_and_p(values: np.ndarray, clusters: np.ndarray) -> tuple[float, float]:
    """Return the standard error of a mean over clusters, and the two-sided p of a mean of 0."""
    _, place = np.unique(clusters, return_inverse=True)
    sums = np.bincount(place, values - values.mean())
    groups = len(sums)
    if groups < 2:
        return 0.0, 1.0
    error = float(np.sqrt((sums**2).sum() * groups / (groups - 1)) / len(values))
    if error < 1e-12:  # all alike: as many signs that agree
        return 0.0, float(min(1.0, 2 * 0.5**groups)) if values.mean() else 1.0
    return error, float(2 * special.stdtr(groups - 1, -abs(values.mean()) / error))
