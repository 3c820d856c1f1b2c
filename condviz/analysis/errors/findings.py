"""Everything that is found about one or two models on a dataset: the public function `condviz.find_errors`."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, get_args

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval

from condviz.analysis.errors import measures
from condviz.analysis.errors.filters import FLAGS, TARGETS, explain_nothing, select
from condviz.analysis.errors.slices import SIGNIFICANT, Search, Slice, Target, find_slices
from condviz.analysis.errors.study import (
    CurvePoint,
    Study,
    calibration_curve,
    confusion,
    group_conditions,
    judge,
    make_study,
)
from condviz.data.pairs import LABEL_COLUMN, RATING_NAMES, TEXT_COLUMNS
from condviz.data.tables import to_csv
from condviz.data.tables.formats import fold_name
from condviz.errors import ConfigError, DataError
from condviz.evaluation.agreement import RESAMPLES
from condviz.evaluation.csts import listed, score_all
from condviz.evaluation.dataset import (
    ASPECT,
    FEATURE_HELP,
    Dataset,
    corpus_dataset,
    open_data,
    trained_rows,
    training_conditions,
)
from condviz.models.registry import describe, load
from condviz.paths import ASSETS
from condviz.spec import Field, Key, checked
from condviz.types import Progress, Result, plain

if TYPE_CHECKING:
    import pandas as pd

    from condviz.data.pairs import PairTable
    from condviz.methods.base import ConditionalScorer

SHOWN_CONDITIONS = 20


@dataclass(frozen=True)
class Remark:
    """What a reader noted about a row."""

    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class ErrorStudy(Result):
    """What was found about one model, or about two to compare."""

    study: Study
    filter: str
    selected: int
    """How many rows were selected by hand, of which the slice holds those that meet the filter; 0 for none."""
    mask: np.ndarray
    """(p,) bool, the slice."""
    every: measures.AgreementReport
    part: measures.AgreementReport | None
    rest: measures.AgreementReport | None
    """Figures of all rows, of the slice and of the rest; the last two are None without a filter."""
    conditions: tuple[measures.GroupErrors, ...]
    """The worst conditions in the slice, as they are worded."""
    aspects: tuple[measures.GroupErrors, ...]
    """The worst of what conditions ask about, where a column "aspect" names it; else empty."""
    summary: measures.Summary
    searches: dict[str, Search]
    """Target -> slices found in it, where there are enough rows."""
    blindness: tuple[measures.Blindness, ...]
    """One per model."""
    curves: tuple[tuple[CurvePoint, ...], ...]
    confusions: tuple[np.ndarray, ...]
    """Per model (5, 5) counts: rating in rows, fitted rating in columns."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Model -> fingerprint of its weights, or "from the file"; for reports."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the one or two models."""
        return tuple(judged.model for judged in self.study.judged)

    @property
    def titles(self) -> tuple[str, ...]:
        """What people read for `models`."""
        return tuple(judged.title for judged in self.study.judged)

    @property
    def rows(self) -> np.ndarray:
        """Positions of the rows of the slice, the largest error of the first model first."""
        order = np.argsort(-np.nan_to_num(np.abs(self.study.first.error), nan=-1.0), kind="stable")
        return order[self.mask[order]]

    @property
    def worst(self) -> tuple[str, Slice] | None:
        """The surest slice in which the model fails, or of two one is closer, with its target; None if none stands out.

        Of all kinds of slices together one claim in twenty may be chance.
        """
        targets = [target for target in TARGETS if (target in ("first", "second")) == (len(self.models) > 1)]
        tried = {target: self.searches[target] for target in targets if target in self.searches}
        found = [(target, search.slices[0]) for target, search in tried.items() if search.slices]
        best = min(found, key=lambda item: item[1].q, default=None)
        return best if best and best[1].q * len(targets) < SIGNIFICANT else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, without the rows; figures that are not defined are None."""
        dataset = self.study.dataset
        about = {name: getattr(dataset, name) for name in ("name", "notes", "digest", "ratings")}
        return plain({
            "dataset": about | {"rows": len(dataset.pairs)},
            "models": self.models, "filter": self.filter, "selected": self.selected, "blindness": self.blindness,
            "figures": {"every": self.every, "part": self.part, "rest": self.rest},
            "summary": self.summary, "conditions": self.conditions, "aspects": self.aspects, "slices": self.searches,
            "calibration": self.curves, "confusion": self.confusions,
        })  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return the rows of the slice in the order of the source: texts, features, judgements of each model."""
        return rows_frame(self.study, self.mask.nonzero()[0])


@checked
def find_errors(
    models: str | ConditionalScorer | Sequence[str | ConditionalScorer],
    data: str | Path | IO[bytes] | pd.DataFrame | PairTable | Dataset,
    *,
    filter: Annotated[
        str, Doc('The slice, for instance rating >= 4 and "dog" in words'), Key("ef"), Field("Filter rows")
    ] = "",
    resamples: Annotated[int, Interval(ge=0), Doc("For the intervals; 0 for none")] = RESAMPLES,
    selected: Sequence[int] = (),
    training_conditions: Collection[str] | None = None,
    wordings: Mapping[str, str] | None = None,
    exclude_seen: Annotated[
        bool,
        Doc("Leave out rows that trained one of the models, as its checkpoint tells"),
        Key("ex"),
        Field("Without training rows"),
    ] = False,
    scale: tuple[float, float] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ErrorStudy:
    """Find where and why a model is wrong, or where two models differ.

    Args:
        models: One or two names, folders, hub ids, or loaded models. Where the data have a column `score_<name>`, that
            is taken as it is.
        data: As in `condviz.evaluate`.
        filter, resamples, exclude_seen: As the signature says.
        selected: Positions of rows that were selected by hand; the slice is then those that meet the filter.
        training_conditions: What counts as seen; None takes what the first model's checkpoint records.
        wordings: Condition -> what it asks for, so that several wordings count as one; None groups them by the vectors
            of the pretrained encoder (`group_conditions`), {} leaves each for itself.
        scale: The numbers that stand for different and for same, as (0, 1), where they are not 1 and 5. For more that
            can be said about a table: `condviz.read_pairs`.
        seed: Of the resamples.
        progress: Told (rows done, all rows), over all models.

    Raises:
        DataError: If the data or the filter cannot be read, or no row is selected, or one that does not exist.
        ConfigError: If not one or two models are given, or an option is not allowed.
        CondvizError: If a model cannot be loaded.

    Example:
        >>> condviz.find_errors("csr", "scenes:test", filter="gold >= 4").worst
    """
    asked = listed(models)
    if not 1 <= len(asked) <= 2:
        raise ConfigError(f"One model or two can be analysed, got {len(asked)}.")
    dataset = open_data(data, training_conditions=training_conditions, scale=scale)
    among(selected, len(dataset.pairs))
    # Columns without a score tell a filter that cannot be read before the scoring, which takes long.
    unscored = judge(dataset, "unscored", np.full(len(dataset.pairs), np.nan))
    select(filter, make_study(dataset, *[unscored] * len(asked)).named)
    asked = [one if isinstance(one, str) and one in dataset.stored else load(one) for one in asked]
    found = list(score_all(asked, dataset, stored=True, progress=progress))
    dataset = with_training_of(dataset, *(one.info.path or one.name if one.info else "" for one in found))
    if wordings is None and ASPECT not in dataset.extra:
        wordings = find_wordings(dataset)
    judged = [judge(dataset, one.name, one.values, one.info.full_title if one.info else "") for one in found]
    study = make_study(dataset, *judged, asks=wordings)
    revisions = {one.name: one.info.revision if one.info else "from the file" for one in found}
    settings = {"resamples": resamples, "seed": seed, "revisions": revisions}
    return analyse(study, filter=filter, selected=selected, exclude_seen=exclude_seen, **settings)


def find_wordings(dataset: Dataset) -> dict[str, str]:
    """Group the conditions of rows by their meaning without training: a trained model's own may hold much for alike."""
    return group_conditions(load("minilm"), [pair.condition for pair in dataset.pairs])


def with_training_of(dataset: Dataset, *models: str) -> Dataset:
    """Return the rows with what their checkpoints tell of the training of models; "" for a column of the file.

    "seen" is that of the first model, unless it is known otherwise; "trained" are the rows of any.
    """
    if models[0] and dataset.seen is None:
        dataset = dataset.with_training(training_conditions(models[0]))
    trained = [trained_rows(model, dataset.pairs) for model in models if model]
    return replace(dataset, trained=np.any(trained, axis=0)) if trained else dataset


def analyse(
    study: Study,
    *,
    filter: str = "",
    selected: Sequence[int] = (),
    exclude_seen: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    revisions: Mapping[str, str] | None = None,
) -> ErrorStudy:
    """Measure models that have been scored on all rows and on a slice, and look for slices and conditions.

    Arguments and errors as in `find_errors`; `revisions` as in `ErrorStudy`.
    """
    used = study.columns["trained"] != 1 if exclude_seen else np.ones(len(study.dataset.pairs), dtype=bool)
    if not used.any():
        raise DataError("All rows trained one of the models, so none is left. Take rows that did not.")
    mask = used & select(filter, study.named) & among(selected, len(study.dataset.pairs))
    if not mask.any():
        chosen = " among those selected by hand" if len(selected) else ""
        why = explain_nothing(filter, study.named)
        raise DataError(f"No row{chosen} meets the filter {filter!r}.{why} Change a limit, or clear it.")
    every = measures.measure(study, used, resamples=resamples, seed=seed)
    part = rest = None
    if filter.strip() or len(selected):
        part, rest = (measures.measure(study, side, resamples=resamples, seed=seed) for side in (mask, used & ~mask))
    gold = study.columns["gold"][mask]
    conditions = measures.worst_conditions(study, column="asks", mask=mask)
    aspects = measures.worst_conditions(study, column=ASPECT, mask=mask) if ASPECT in study.dataset.extra else []
    summary = measures.summarise(study, mask, aspects or conditions, ASPECT if aspects else "asks")
    return ErrorStudy(
        study,
        filter.strip(),
        len(selected),
        mask,
        every,
        part,
        rest,
        conditions=tuple(conditions[:SHOWN_CONDITIONS]),
        aspects=tuple(aspects[:SHOWN_CONDITIONS]),
        summary=summary,
        searches=search(study, mask),
        blindness=tuple(measures.check_blindness(study, judged) for judged in study.judged),
        curves=tuple(calibration_curve(judged.scores[mask], gold) for judged in study.judged),
        confusions=tuple(confusion(gold, judged.fitted[mask]) for judged in study.judged),
        revisions=revisions or {},
    )


def rows_frame(study: Study, rows: Iterable[int], remarks: Mapping[int, Remark] | None = None) -> pd.DataFrame:
    """Return rows, by their positions, as a table that `evaluate` and `find_errors` can read again.

    Tags and notes are given by position; None leaves their columns out.
    """
    import pandas as pd

    chosen = np.asarray(list(rows), dtype=np.int64)
    columns = {
        # "label" is what tables call the rating: the file can be read again.
        "label" if name == "gold" else name: study.columns[name][chosen]
        for name in FEATURE_HELP
        if name not in ("shared", "words")  # sets
    }
    columns |= {name: [cells[row] for row in chosen] for name, cells in study.dataset.extra.items()}
    for judged, suffix in zip(study.judged, ("", "_b"), strict=False):
        for part in ("score", "fitted", "error", "right", "margin"):
            columns[f"{part}_{judged.model}"] = study.columns[part + suffix][chosen]
    frame = pd.DataFrame(columns).astype({"row": int})
    for name in frame:
        if name in FLAGS or str(name).startswith("right_"):
            said = frame[name].map({1.0: "yes", 0.0: "no"}.get)
            frame[name] = said.where(said.notna(), frame[name])  # a share, or nothing
    if remarks is not None:
        noted = [remarks.get(row, Remark()) for row in chosen.tolist()]
        frame["tags"] = ["; ".join(remark.tags) for remark in noted]
        frame["note"] = [remark.note for remark in noted]
    return frame


def format_csv(study: Study, rows: Iterable[int], remarks: Mapping[int, Remark] | None = None) -> str:
    """Format rows as CSV: all columns of the table with the cells that it has, and what was computed.

    A computed text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    import pandas as pd

    chosen = list(rows)
    frame, table = rows_frame(study, chosen, remarks or {}), study.dataset.table
    if table is None:
        return to_csv(frame, float_format="%.9g")
    given = table.to_frame().iloc[chosen].reset_index(drop=True)
    rated = fold_name(table.roles.get(LABEL_COLUMN, "")) in RATING_NAMES and not table.mapped
    dropped = {*TEXT_COLUMNS, *study.dataset.extra, *(f"score_{name}" for name in study.dataset.stored)}
    dropped |= {LABEL_COLUMN} if rated or LABEL_COLUMN not in table.roles else set()
    computed = frame.drop(columns=[name for name in frame if name in dropped])
    computed = computed.rename(columns={name: f"{name} (computed)" for name in computed if name in given})
    return to_csv(pd.concat([given, computed], axis=1), as_given=given.columns, float_format="%.9g")


def among(selected: Sequence[int], size: int) -> np.ndarray:
    """Return rows selected by hand as (size,) bool, all rows if none is; raises DataError for one that is not there."""
    outside = [row for row in selected if not 0 <= row < size]
    if outside:
        raise DataError(f"There is no row at position {outside[0]} to select; positions go from 0 to {size - 1}.")
    mask = np.full(size, not len(selected))
    mask[list(selected)] = True
    return mask


def search(study: Study, mask: np.ndarray) -> dict[str, Search]:
    """Look for slices of every kind; a kind with too few rows, or without the model that it needs, is left out."""
    found = {}
    for target in get_args(Target):
        if target in ("first", "second") and study.second is None:
            continue
        with suppress(DataError):  # there are too few rows
            found[target] = find_slices(study, target, mask=mask, limit=10)
    return found


# ---- scores of the shipped models, so that the page has something to show at once: `benchmarks.stored errors` --------

STORED_SCORES = ASSETS / "error_scores.json"


def read_stored(dataset: Dataset) -> dict[str, tuple[str, np.ndarray]]:
    """Return stored scores by the name of the model: the hash of the weights that gave them, and (p,) float32.

    Nothing where they belong to other rows, or there is no file.
    """
    if not STORED_SCORES.is_file():
        return {}
    content = json.loads(STORED_SCORES.read_text(encoding="utf-8"))
    if content["rows"] != dataset.digest:
        return {}
    return {
        name: (entry["weights"], np.frombuffer(base64.b64decode(entry["scores"]), dtype="<f4").astype(np.float32))
        for name, entry in content["models"].items()
    }


@lru_cache(maxsize=1)
def stored_study(model: str) -> Study:
    """Return a study of a shipped model on the test part of the scenes, made of its stored scores."""
    dataset = with_training_of(corpus_dataset("scenes", "test"), model)
    found = read_stored(dataset)
    if model not in found:
        raise DataError(f"No scores of {model[:40]!r} are stored. There are: {', '.join(found)}.")
    return make_study(dataset, judge(dataset, model, found[model][1], describe(model).full_title))
