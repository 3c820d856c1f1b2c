"""The rows of a study as CSV: texts, ratings, judgements of each model, features, and what a reader noted."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from condviz.analysis.errors.names import FEATURE_HELP, FLAGS
from condviz.analysis.errors.study import Study
from condviz.data.texts import plain_cell

_SETS = ("shared", "words")


@dataclass(frozen=True)
class Remark:
    """What a reader noted about a row.

    Attributes:
        tags: Short names.
        note: Free text.
    """

    tags: tuple[str, ...] = ()
    note: str = ""


def format_csv(study: Study, rows: Iterable[int], remarks: Mapping[int, Remark] | None = None) -> str:
    """Give rows as CSV; a text that a spreadsheet would run as a formula gets an apostrophe in front.

    Args:
        study: Rows and models.
        rows: Positions in the dataset, in the order wanted.
        remarks: By position.
    """
    names = {judged.model: suffix for judged, suffix in zip(study.judged, ("", "_b"), strict=False)}
    judgements = [
        (f"{part}_{model}", study.columns[part + suffix])
        for model, suffix in names.items()
        for part in ("score", "fitted", "error", "right", "margin")
    ]
    features = [(name, study.columns[name]) for name in (*FEATURE_HELP, *study.dataset.extra) if name not in _SETS]
    columns = [*features, *judgements]
    flags = {name for name, _ in columns if name in FLAGS or name.startswith("right_")}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    # "label" is what tables call the rating: the file can be read again.
    writer.writerow([*("label" if name == "gold" else name for name, _ in columns), "tags", "note"])
    for row in rows:
        remark = (remarks or {}).get(row, Remark())
        cells = [_cell(values[row], name in flags) for name, values in columns]
        writer.writerow([*cells, plain_cell("; ".join(remark.tags)), plain_cell(remark.note)])
    return out.getvalue()


def _cell(value: str | float | np.floating, flag: bool) -> str:
    if isinstance(value, str):
        return plain_cell(value)
    if not math.isfinite(value):
        return ""
    return ("yes" if value else "no") if flag else f"{float(value):.9g}"
