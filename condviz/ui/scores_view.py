"""The stored scores of the models on test parts: columns of the table of models, and all of one model's in detail."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from condviz.errors import DataError
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import (
    BENCHMARK,
    PARTS,
    PLAIN,
    Board,
    ModelScores,
    PartScores,
    read_board,
)
from condviz.types import ModelInfo
from condviz.ui.html import join, notice, number, signed, tag, text

COLUMNS = ("test", "unseen_phrasings", "unseen_aspects")
"""Parts that have a column in the table of models; the others stand in the detail."""
EXPLANATION = (
    "Test columns: pair accuracy in % (chance 50), and Spearman × 100 (chance 0), on this project’s own corpus. "
    "They cannot be compared with figures of papers, which are about other data."
)


def load_board() -> tuple[Board, str]:
    """Read the stored scores, again only when the file has changed.

    Returns:
        The scores, empty where there are none, and what is wrong with the file, or "".
    """
    try:
        return (_read(BENCHMARK, BENCHMARK.stat().st_mtime_ns), "") if BENCHMARK.is_file() else (Board(), "")
    except DataError as error:
        return Board(), str(error)


@lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> Board:
    return read_board(path)


def find_scores(board: Board, info: ModelInfo, model: Any) -> ModelScores | None:  # noqa: ANN401 - a ConditionalScorer
    """Give the scores of a loaded model if they belong to the very weights that are loaded."""
    scores = board.models.get(info.name)
    return scores if scores is not None and model is not None and scores.weights == model.weights_hash else None


def column_titles(board: Board) -> tuple[str, ...]:
    """Give the headings of the columns; none where nothing is stored."""
    return tuple(PARTS[part].title.capitalize() for part in COLUMNS) if board.models else ()


def render_cells(board: Board, info: ModelInfo, model: Any) -> str:  # noqa: ANN401
    """Write the cells of one model, or one that says why there are no figures."""
    if not board.models:
        return ""
    if find_scores(board, info, model) is None:
        reason = "not measured" if model is not None else "not loaded"
        return tag("td", reason, class_="cv-muted", colspan=len(COLUMNS))
    return join(_cell(board.find(info.name, part)) for part in COLUMNS)


def render_detail(board: Board, info: ModelInfo, model: Any) -> str:  # noqa: ANN401
    """Write all scores of one model with their intervals, and how they came about; "" if there are none."""
    scores = find_scores(board, info, model)
    rows = [_row(part, found) for part in PARTS if scores and (found := board.find(info.name, part)) is not None]
    if scores is None or not rows:
        return ""
    columns = ("Test part", "Pairs", "Pair accuracy, %", "Spearman × 100", "Pearson × 100")
    head = tag("tr", *[tag("th", name, scope="col", class_="cv-num" if n else None) for n, name in enumerate(columns)])
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="cv-table", data_testid="scores")
    made = ", ".join(f"{name} {version}" for name, version in scores.versions.items())
    how = f"In brackets: 95 % interval. Computed in {scores.precision} with {made}. Figures of each aspect and domain: "
    command = f"python -m condviz benchmark models --stored --model {info.name} --by aspect"
    return tag(
        "div",
        tag("div", table, class_="cv-scroll", role="region", tabindex="0", aria_label=f"Scores of {info.name}"),
        tag("p", text("span", how), text("code", command), class_="cv-muted"),
        class_="cv-scores",
    )


def render_problem(problem: str) -> str:
    """Write what is wrong with the stored scores, if anything is."""
    return notice("Stored scores are not shown", problem, tone="info") if problem else ""


def _cell(scores: PartScores | None) -> str:
    if scores is None:
        return tag("td", number(float("nan")), class_="cv-num")
    accuracy = number(float("nan")) if scores.blind else _number(scores.pair_accuracy.value)
    said = f"{scores.pairs:,} pairs; pair accuracy {_accuracy(scores)}, Spearman {_figure(scores.spearman)}"
    return tag("td", f"{accuracy} / {_number(scores.spearman.value)}", class_="cv-num", title=said)


def _row(name: str, scores: PartScores) -> str:
    part = PARTS[name]
    about = part.about
    if name == PLAIN and scores.baseline is not None and scores.spearman.value is not None:
        change = signed(scores.spearman.value - scores.baseline, 1)
        about += f"; Spearman {change} against the encoder before training"
    return tag(
        "tr",
        tag("th", text("span", part.title.capitalize() if part.title.islower() else part.title),
            text("span", about, class_="cv-muted"), scope="row"),
        tag("td", f"{scores.pairs:,}", class_="cv-num"),
        tag("td", _accuracy(scores), class_="cv-num"),
        tag("td", _figure(scores.spearman), class_="cv-num"),
        tag("td", _figure(scores.pearson), class_="cv-num"),
    )  # fmt: skip


def _accuracy(scores: PartScores) -> str:
    return "both conditions always score the same" if scores.blind else _figure(scores.pair_accuracy)


def _figure(figure: Metric) -> str:
    if figure.low is None or figure.high is None:
        return _number(figure.value)
    return f"{_number(figure.value)} [{_number(figure.low)}, {_number(figure.high)}]"


def _number(value: float | None) -> str:
    return number(float("nan") if value is None else value, 1)
