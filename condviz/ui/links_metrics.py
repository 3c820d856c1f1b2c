"""The table of filtered ranking on WN18RR: what the papers report, and what is stored of our models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from condviz.errors import DataError
from condviz.evaluation.kgc_scores import read_scores
from condviz.ui.html import tag, text

COLUMNS = ("MRR", "Hits@1", "Hits@3", "Hits@10")


@dataclass(frozen=True)
class Row:
    """One line.

    Attributes:
        model: Its name.
        source: Paper or command.
        backbone: The encoder.
        figures: MRR and hits in percent; None where they are not reported.
        ours: Measured here.
    """

    model: str
    source: str
    backbone: str
    figures: tuple[float | None, ...]
    ours: bool = False


PUBLISHED = (
    Row("SimKGC, re-ranked", "Wang et al. 2022", "BERT-base, two encoders", (66.6, 58.7, 71.7, 80.0)),
    Row("CSR, tri-encoder", "CSR, table 2, most likely re-ranked", "BERT-base", (66.1, 58.1, 71.1, None)),
    Row("Hyper-CL", "Hyper-CL, table 2, re-ranked", "BERT-base", (61.6, 50.6, 69.0, 81.0)),
    Row("Hyper-CL, rank 64", "Hyper-CL, table 2, re-ranked", "BERT-base", (54.8, 42.7, 62.6, 77.0)),
    Row("Tri-encoder, concatenation", "Hyper-CL, table 2, re-ranked", "BERT-base", (33.5, 22.6, 38.2, 55.0)),
    Row("Tri-encoder, Hadamard", "Hyper-CL, table 2, re-ranked", "BERT-base", (16.4, 0.4, 24.3, 48.1)),
)


def stored_rows() -> list[Row]:
    """Read what `python -m condviz benchmark kgc` has stored; nothing where that cannot be read."""
    try:
        scores = read_scores()
    except DataError:
        return []
    return [
        Row(
            item.title if item.model.casefold() in item.title.casefold() else f"{item.title} ({item.model})",
            f"benchmark kgc{', re-ranked' if reranked else ''}",
            f"{item.encoder.rpartition('/')[2]}, {item.how}",
            item.figures(reranked=reranked),
            ours=True,
        )
        for item in scores
        for reranked in (False, True)
    ]


def render_metrics(ours: Sequence[Row] | None = None) -> str:
    """Write the table.

    Args:
        ours: Results of our models; None reads those that are stored.
    """
    ours = stored_rows() if ours is None else ours
    rows = sorted((*ours, *PUBLISHED), key=lambda row: -(row.figures[0] or 0))
    names = ("Model", "From", "Encoder", *COLUMNS)
    head = tag("tr", *[tag("th", name, scope="col", class_="cv-num" if name in COLUMNS else None) for name in names])
    table = tag(
        "table", tag("thead", head), tag("tbody", *map(_line, rows)), class_="cv-table cv-links-metrics",
        data_testid="links-metrics",
    )  # fmt: skip
    lead = (
        "Filtered ranking on the test part of WN18RR over all 40,943 entities, mean of both directions, in percent. "
        "The papers train a BERT-base of 110 million parameters; ours are MiniLM of 23 million."
    )
    return tag(
        "section",
        tag("div", tag("h2", "How well it works on WN18RR"), class_="cv-section-head"),
        text("p", lead, class_="cv-muted cv-links-facts"),
        tag("div", table, class_="cv-scroll", role="region", tabindex="0", aria_label="Results on WN18RR"),
        class_="cv-links-part",
    )


def _line(row: Row) -> str:
    figures = [tag("td", "\N{EN DASH}" if one is None else f"{one:.1f}", class_="cv-num") for one in row.figures]
    first = text("th", row.model, scope="row")
    return tag(
        "tr", first, text("td", row.source), text("td", row.backbone), *figures,
        class_="cv-links-ours" if row.ours else None,
    )  # fmt: skip
