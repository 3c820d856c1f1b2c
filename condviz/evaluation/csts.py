"""How well models agree with ratings of conditional similarity, `condviz.evaluate`; and scores as ratings.

Correlations as in C-STS, pair accuracy as in CASE, seen and unseen conditions as in Hyper-CL (Yoo et al. 2024,
arXiv:2403.09490, table 5).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval

from condviz.data.corpora import build
from condviz.data.corpus import RatedPair, fraction, keep_pairs
from condviz.errors import ConfigError, DataError
from condviz.evaluation.agreement import FIGURES, RESAMPLES, Agreement, measure
from condviz.evaluation.dataset import Dataset, open_data
from condviz.evaluation.metrics import LEVEL, spearman_ceiling
from condviz.models.manifest import CALIBRATION, read_manifest, rewrite_manifest
from condviz.spec import checked
from condviz.types import Calibration, ModelInfo, Progress, Record, Result, columns, table

if TYPE_CHECKING:
    import pandas as pd

    from condviz.data.pairs import PairTable
    from condviz.methods.base import ConditionalScorer

PARTS = ("overall", "seen", "unseen")


@dataclass(frozen=True)
class EvaluationReport(Record):
    """What `evaluate` found about one model."""

    model: str
    revision: str
    trained: bool
    rows: int
    """All rows, rated or not."""
    rated: int
    overall: Agreement
    seen: Agreement | None
    unseen: Agreement | None
    """Figures on the rows whose condition is, or is not, among the training conditions, and on the sentence pairs
    with both rows there; None if these were not given."""
    seconds: float
    predictions: np.ndarray = field(repr=False)
    """(p,) float32, one score per row."""
    left_out = ("predictions",)

    def parts(self) -> Iterator[tuple[str, Agreement]]:
        """Yield the name and figures of all rows and, where they are known, of seen and unseen ones."""
        for name in PARTS:
            if (figures := getattr(self, name)) is not None:
                yield name, figures


@dataclass(frozen=True)
class Evaluation(Result):
    """What `evaluate` found about all models on one set of rows."""

    data: str
    ratings: str
    reports: tuple[EvaluationReport, ...]
    """One per model, in the order given."""
    ceiling: float | None
    """The highest Spearman that these ratings allow, times 100: repeated ratings cap it. None where it is not
    defined."""
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, without the predictions."""
        found = super().to_dict()
        bootstrap = {"unit": "sentence pair, or aspect where wider", "level": LEVEL}
        bootstrap |= {name: found.pop(name) for name in ("resamples", "seed")}
        models = [report | {"bootstrap": bootstrap} for report in found.pop("reports")]
        return found | {"spearman_ceiling": found.pop("ceiling"), "bootstrap": bootstrap, "models": models}

    def to_frame(self) -> pd.DataFrame:
        """Return a table: a row per model and part (overall, seen, unseen), figures with `_low` and `_high`."""
        rows = []
        for report in self.reports:
            for part, figures in report.parts():
                row: dict[str, Any] = {"model": report.model, "part": part, "n": figures.n, "items": figures.items}
                for name in FIGURES:
                    metric = getattr(figures, name)
                    row |= {name: metric.value, f"{name}_low": metric.low, f"{name}_high": metric.high}
                rows.append(row)
        return table(rows)


@dataclass(frozen=True)
class Scores:
    """What a model, or a column of a table, says about all rows."""

    info: ModelInfo | None
    """Of the model; None for a column of the table."""
    name: str
    values: np.ndarray
    seconds: float = 0.0


@checked
def evaluate(
    models: str | ConditionalScorer | Sequence[str | ConditionalScorer],
    data: str | Path | IO[bytes] | pd.DataFrame | PairTable | Dataset,
    *,
    training_conditions: Collection[str] | None = None,
    scale: tuple[float, float] | None = None,
    resamples: Annotated[int, Interval(ge=0, le=1_000_000), Doc("For the intervals; 0 for none")] = RESAMPLES,
    seed: Annotated[int, Interval(ge=0), Doc("Of the resamples")] = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Score every row and compare with the ratings where there are any.

    Args:
        models: Names, folders, hub ids, or loaded models.
        data: A path, "-" for standard input, a part of a corpus such as "scenes:test", a data frame, or a table that
            was read. Columns sentence1, sentence2, condition and label; rows without a label are scored only.
        training_conditions: Conditions the models were trained on; a row is "seen" if its condition is one of them,
            upper and lower case and runs of blanks alike.
        scale: The numbers that stand for different and for same, as (0, 1), where they are not 1 and 5. For more that
            can be said about a table: `condviz.read_pairs`.
        resamples, seed: As the signature says.
        progress: Told (rows done, all rows), over all models.

    Raises:
        DataError: If the data cannot be read, or there are no rows.
        ConfigError: If an option is not allowed, or no model is given.
        CondvizError: If a model cannot be loaded.

    Example:
        >>> condviz.evaluate(["minilm", "csr"], "scenes:test", resamples=0).to_frame()
    """
    dataset = open_data(data, training_conditions=training_conditions, max_rows=None, scale=scale)
    rated = np.flatnonzero(np.isfinite(dataset.gold))
    reports = []
    for scores in score_all(models, dataset, progress=progress):

        def part(chosen: np.ndarray, scores: Scores = scores) -> Agreement:
            return measure(dataset.rows, [scores.values], chosen=chosen, resamples=resamples, seed=seed)[0][0]

        assert scores.info is not None  # models were asked for, and no stored columns
        seen = None if training_conditions is None or dataset.seen is None else dataset.seen[rated]
        reports.append(
            EvaluationReport(
                model=scores.name,
                revision=scores.info.revision,
                trained=scores.info.trained,
                rows=len(dataset.pairs),
                rated=len(rated),
                overall=part(rated),
                seen=None if seen is None else part(rated[seen]),
                unseen=None if seen is None else part(rated[~seen]),
                seconds=round(scores.seconds, 3),
                predictions=scores.values.astype(np.float32),
            )
        )
    ceiling = spearman_ceiling(dataset.gold[rated])
    ceiling = None if ceiling is None else 100 * ceiling
    return Evaluation(dataset.name, dataset.ratings, tuple(reports), ceiling, resamples, seed, dataset.notes)


def listed(models: str | ConditionalScorer | Sequence[str | ConditionalScorer]) -> list[str | ConditionalScorer]:
    """Return one model, or several, as a list."""
    return [models] if isinstance(models, str) or not isinstance(models, Sequence) else list(models)


def score_all(
    models: str | ConditionalScorer | Sequence[str | ConditionalScorer],
    dataset: Dataset,
    *,
    stored: bool = False,
    progress: Progress | None = None,
) -> Iterator[Scores]:
    """Score all rows with one model after the other, loading those that are given by name.

    With `stored`, a column `score_<name>` of the table is taken as it is, instead of the model of that name. `progress`
    is told (rows done, all rows), over all models.
    """
    asked = listed(models)
    if not asked:
        raise ConfigError("No model is given. Name one or more; condviz.list_models() lists them.")
    total, texts = len(asked) * len(dataset.pairs), dataset.texts()
    for index, model in enumerate(asked):
        before = index * len(dataset.pairs)
        if stored and isinstance(model, str) and model in dataset.stored:
            yield Scores(None, model, dataset.stored[model])
            continue
        if isinstance(model, str):
            from condviz.models.registry import load

            model = load(model)
        told = None if progress is None else lambda done, _, before=before: progress(before + done, total)
        started = time.perf_counter()
        values = np.asarray(model.score(*texts, progress=told))
        yield Scores(model.info, model.info.name, values, time.perf_counter() - started)


# ---- what turns the scores of a model into ratings: an isotonic map, on rated rows that no training saw --------------

SOURCES = ("scenes:dev", "tables:validation", "cebab:dev", "mams:dev")
PAIRS = 400
"""Sentence pairs of each source, at most; each has two rows."""
BINS, FOLDS, TENTHS = 40, 5, 10
EDGE = 0.01
"""Knots stay so far inside of (1, 5): the ratings beyond the last one need room."""


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


def calibrate(
    model: ConditionalScorer, rows: Mapping[str, Sequence[RatedPair]], *, progress: Progress | None = None
) -> Calibration:
    """Score rated rows, and fit the ratings to the scores.

    Rows of all sources count alike together, however many there are. Scores are put into bins, isotonic regression
    gives each bin a rating that no lower bin exceeds, and bins of one rating become one knot; between knots the map is
    straight. So a higher score always has a higher rating. How far readings are from labels is measured on rows left
    out of the fit.

    Source: Zadrozny and Elkan 2002, KDD, "Transforming classifier scores into accurate multiclass probability
    estimates".
    """
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


def store_calibration(folder: Path, calibration: Calibration) -> None:
    """Write a calibration into the condviz.json of a checkpoint; nothing else changes."""
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
