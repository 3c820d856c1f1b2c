"""Stored results of link prediction, and their table beside the figures of the papers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from condviz.errors import DataError
from condviz.paths import ASSETS

SCORES = ASSETS / "kgc.json"
FORMAT = 1
FIGURES = ("MRR", "hits@1", "hits@3", "hits@10")


@dataclass(frozen=True)
class TableRow:
    """A row of the table: ours or a paper's, plain or re-ranked; MRR and hits in %, None where not reported."""

    model: str
    source: str
    encoder: str
    ranking: str
    figures: tuple[float | None, ...]
    ours: bool


BERT, PLAIN, RERANKED, UNSAID = "BERT-base", "plain", "re-ranked", "not stated, probably re-ranked"
RERANKED_NOTE = (
    "Figures of the papers with re-ranking include a bonus of 0.05 for entities within 5 hops: SimKGC says so in "
    "section 3.4, and the evaluation script of Hyper-CL’s code applies it (sim-kgc/scripts/eval.sh). CSR "
    "builds on that code."
)
PUBLISHED = (
    TableRow("SimKGC", "SimKGC; Hyper-CL, table 2", f"{BERT}, two", RERANKED, (66.6, 58.7, 71.7, 80.0), False),
    TableRow("CSR", "CSR, table 2", BERT, UNSAID, (66.1, 58.1, 71.1, None), False),
    TableRow("Hyper-CL", "Hyper-CL, table 2", BERT, RERANKED, (61.6, 50.6, 69.0, 81.0), False),
    TableRow("Hyper-CL, rank 64", "Hyper-CL, table 2", BERT, RERANKED, (54.8, 42.7, 62.6, 77.0), False),
    TableRow("tri-encoder, concatenation", "Hyper-CL, table 2", BERT, RERANKED, (33.5, 22.6, 38.2, 55.0), False),
    TableRow("tri-encoder, Hadamard", "Hyper-CL, table 2", BERT, RERANKED, (16.4, 0.4, 24.3, 48.1), False),
)


@dataclass(frozen=True)
class LinkScores:
    """What one of our models reaches."""

    model: str
    """Its name."""
    title: str
    """For people."""
    weights: str
    """`weights_hash` of the model."""
    encoder: str
    """Name of the encoder."""
    how: str
    """What was trained: "not trained for links", "head on a frozen encoder" or "encoder and head"."""
    hardware: str
    """Of the training, or of the measurement where nothing was trained."""
    seed: int | None
    """Of the training, or None."""
    report: Mapping[str, Any]
    """As `LinkReport.to_dict` gives it."""

    def figures(self, *, reranked: bool = False) -> tuple[float | None, ...]:
        """Return MRR and hits in %, the mean of both directions; None where they were not measured."""
        found = self.report["reranked" if reranked else "plain"]
        return tuple(100 * found["mean"][name] if found else None for name in FIGURES)


def read_scores(path: str | Path = SCORES) -> list[LinkScores]:
    """Read stored results; an absent file gives none.

    Raises:
        DataError: If the file cannot be read or was written by another version.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise DataError(f"{path} has format {content['format']!r}, this version reads {FORMAT}.")
        return [LinkScores(**item) for item in content["models"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} cannot be read ({error!r}). Run: python -m benchmarks links") from error


def table_rows(scores: Sequence[LinkScores]) -> list[TableRow]:
    """Return our results, plain and re-ranked, and the papers' as rows of one table, the best first."""
    rows = [*PUBLISHED]
    for item in scores:
        encoder = f"{item.encoder.rpartition('/')[2]}, {item.hardware}"
        for ranking in (PLAIN, RERANKED):
            figures = item.figures(reranked=ranking == RERANKED)
            if figures[0] is not None:
                rows.append(TableRow(item.model, item.how, encoder, ranking, figures, True))
    return sorted(rows, key=lambda row: -(row.figures[0] or 0))
