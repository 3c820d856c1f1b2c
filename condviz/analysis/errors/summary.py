"""The findings that a headline names: what the figures of one model, or of two, allow to say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condviz.analysis.errors.measures import GroupErrors
from condviz.analysis.errors.slices import contrast
from condviz.analysis.errors.study import Study
from condviz.data.texts import fold
from condviz.evaluation.metrics import spearman
from condviz.evaluation.verdicts import ALPHA, LEAST, Verdict, judge_correlation, judge_mean, judge_share
from condviz.types import Record

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
    rated = np.flatnonzero(mask & study.rated & np.isfinite(study.first.error))
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
        closer = judge_mean(gain, clusters=study.dataset.clusters[rated]) if len(rated) else None
        order = judge_mean(verdicts[0] - verdicts[1], clusters=clusters) if len(clusters) else None
        wins, loses = _sides(study, rated, gain, groups, asked, against_rest=False)
        best = worst = ()
    else:
        if len(clusters):
            order = judge_share(verdicts[0], clusters=clusters)
        elif (value := spearman(gold, study.first.scores[rated])) is not None:
            follows = judge_correlation(value, len(np.unique(study.dataset.clusters[rated])))
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
            (judge_mean(values[masks[one.value]], clusters=clusters[masks[one.value]], tries=len(tried)), one)
            for one in tried
        ]
        found = [(-abs(verdict.value), verdict.value, one) for verdict, one in judged if verdict.sure]
    found.sort(key=lambda one: one[:2])
    return [one for _, effect, one in found if effect > 0], [one for _, effect, one in found if effect < 0]
