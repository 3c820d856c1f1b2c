"""Everything that is found about one or two models on a dataset, in one result: what command, page and report show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from condviz.analysis.errors.calibration import CurvePoint, calibration_curve, confusion
from condviz.analysis.errors.conditions import Blindness, Group, check_blindness, worst_conditions
from condviz.analysis.errors.filters import select
from condviz.analysis.errors.metrics import RESAMPLES, Report, measure
from condviz.analysis.errors.names import TARGETS
from condviz.analysis.errors.slices import Search, find_slices
from condviz.analysis.errors.study import Study
from condviz.errors import DataError

SHOWN_CONDITIONS = 20
ASPECT = "aspect"


@dataclass(frozen=True)
class Findings:
    """What was found.

    Attributes:
        study: Rows and models.
        filter: The filter of the slice; "" for none.
        selected: How many rows were selected by hand, of which the slice holds those that meet the filter; 0 for none.
        mask: (p,) bool, the slice.
        every, part, rest: Figures of all rows, of the slice and of the rest; the last two are None without a filter.
        conditions: The worst conditions in the slice, as they are worded.
        aspects: The worst of what conditions ask about, where a column "aspect" names it; else empty.
        searches: Target -> slices found in it, where there are enough rows.
        blindness: One per model.
        curves: Calibration curve per model.
        confusions: Per model (5, 5) counts: rating in rows, fitted rating in columns.
    """

    study: Study
    filter: str
    selected: int
    mask: np.ndarray
    every: Report
    part: Report | None
    rest: Report | None
    conditions: tuple[Group, ...]
    aspects: tuple[Group, ...]
    searches: dict[str, Search]
    blindness: tuple[Blindness, ...]
    curves: tuple[tuple[CurvePoint, ...], ...]
    confusions: tuple[np.ndarray, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON, without the rows; figures that are not defined are None."""
        reports = {name: getattr(self, name) for name in ("every", "part", "rest")}
        return {
            "dataset": {"name": self.study.dataset.name, "rows": len(self.study.dataset.pairs)}
            | {"notes": list(self.study.dataset.notes), "digest": self.study.dataset.digest},
            "models": [judged.model for judged in self.study.judged],
            "filter": self.filter,
            "selected": self.selected,
            "figures": {name: report and asdict(report) for name, report in reports.items()},
            "conditions": [_finite(asdict(group)) for group in self.conditions],
            "aspects": [_finite(asdict(group)) for group in self.aspects],
            "slices": {name: _finite(asdict(search)) for name, search in self.searches.items()},
            "blindness": [asdict(one) for one in self.blindness],
            "calibration": [[asdict(point) for point in curve] for curve in self.curves],
            "confusion": [counts.tolist() for counts in self.confusions],
        }


def find(
    study: Study, *, filter: str = "", selected: Sequence[int] = (), resamples: int = RESAMPLES, seed: int = 0
) -> Findings:
    """Measure models on all rows and on a slice, and look for slices and conditions in which they fail.

    Args:
        study: Rows and models.
        filter: The slice; blank for all rows.
        selected: Positions of rows that were selected by hand; the slice is then those that meet the filter.
        resamples: Of the bootstrap; 0 for no intervals.
        seed: Of the bootstrap.

    Raises:
        DataError: If the filter cannot be read or selects no row.
    """
    mask = select(filter, study.columns) & among(selected, len(study.dataset.pairs))
    if not mask.any():
        raise DataError(f"No row meets the filter {filter!r}. Change a limit, or clear it.")
    every = measure(study, np.ones(len(mask), dtype=bool), resamples=resamples, seed=seed)
    part = rest = None
    if filter.strip() or selected:
        part, rest = (measure(study, side, resamples=resamples, seed=seed) for side in (mask, ~mask))
    gold = study.columns["gold"][mask]
    return Findings(
        study,
        filter.strip(),
        len(selected),
        mask,
        every,
        part,
        rest,
        conditions=tuple(worst_conditions(study, mask=mask)[:SHOWN_CONDITIONS]),
        aspects=tuple(worst_conditions(study, column=ASPECT, mask=mask)[:SHOWN_CONDITIONS])
        if ASPECT in study.dataset.extra
        else (),
        searches=search(study, mask),
        blindness=tuple(check_blindness(study, judged) for judged in study.judged),
        curves=tuple(calibration_curve(judged.scores[mask], gold) for judged in study.judged),
        confusions=tuple(confusion(gold, judged.fitted[mask]) for judged in study.judged),
    )


def among(selected: Sequence[int], size: int) -> np.ndarray:
    """Give rows selected by hand as (size,) bool; all rows if none is selected."""
    mask = np.full(size, not selected)
    mask[[row for row in selected if 0 <= row < size]] = True
    return mask


def search(study: Study, mask: np.ndarray) -> dict[str, Search]:
    """Look for slices of every kind; a kind with too few rows is left out."""
    found = {}
    for target in TARGETS:
        if target in ("first", "second") and study.second is None:
            continue
        try:
            result = find_slices(study, target, mask=mask)
        except DataError:
            continue
        found[target] = replace(result, slices=result.slices[:10])
    return found


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
