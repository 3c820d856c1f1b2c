"""Inside a router: Figures 5 to 7 of the CSR paper, layers and heads, the deletion test, as HTML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from condviz.analysis.readings import AttentionRow, DeletionTest, HeadMap, RouterPictures
from condviz.plots.html import plain, render
from condviz.plots.words import STYLES, Line, Scale, fit_scale, legend, make_cells
from condviz.types import Word

__all__ = ["STYLES", "deletion", "figures", "heads", "to_html"]
CAPTIONS = {
    5: "Where the sentence’s own first token looks without the router.",
    6: "Where the condition’s first token looks in the sentence: the router.",
    7: "Where the sentence’s own first token looks with the router, under each condition.",
}


def figures(pictures: RouterPictures, condition: int = 0) -> Markup:
    """Render Figures 5 to 7 of the CSR paper on one scale: the first two of one condition, the third of all."""
    rows = {number: found if number == 7 else found[condition : condition + 1]
            for number, found in pictures.figures.items()}  # fmt: skip
    scale = fit_scale([row.weights for found in rows.values() for row in found], "attention")
    parts = [
        {
            "number": number,
            "caption": CAPTIONS[number],
            "remark": _remark(number, found, pictures),
            "lines": [(_attention_line(number, row, scale), scale) for row in found],
        }
        for number, found in rows.items()
    ]
    return render("words/figures.html", figures=parts, legend=legend(scale))


def _remark(number: int, rows: Sequence[AttentionRow], pictures: RouterPictures) -> str:
    if number == 5:
        seen = float(rows[0].condition_weights.sum())
        if not seen:
            return "The sentence cannot see the condition."
        return f"In this model the sentence sees the condition, which gets {100 * seen:.0f} % of the attention."
    if number == 6 and not rows:
        return "CSR-prefix does not compute this row: its router is the row of Figure 7."
    if number == 7 and not pictures.varies:
        return (
            "It is the same under every condition: with one routed layer, the router scales what comes out of the "
            "attention, not the attention itself. It differs in the variant “three layers” and in CSR-prefix."
        )
    return ""


def _attention_line(number: int, row: AttentionRow, scale: Scale) -> Line:
    seen = ", ".join(
        f"{word.text} {plain(float(weight), 3)}"
        for word, weight in zip(row.condition_words, row.condition_weights, strict=True)
        if weight
    )
    note = f"{100 * row.hidden_mass:.0f} % on special tokens." + (f" On the condition: {seen}." if seen else "")
    cells = make_cells("", row.words, row.weights[None], scale)
    return Line(row.condition, f"Figure {number} under {row.condition}", cells, note)


def heads(found: HeadMap) -> Markup:
    """Render attention as a grid of layers and heads, each with its strongest word, and the words of one head below."""
    labels = {"condition": "From the condition’s first token", "sentence": "From the sentence’s first token"}
    scale = fit_scale(list(found.sources.values()), "attention")
    values = next(iter(found.sources.values()))
    grid = [
        (f"Layer {layer + 1}", [_peak(found.words, row, scale) for row in values[layer]])
        for layer in reversed(range(len(values)))
    ]
    return render(
        "words/heads.html",
        sources=[(source, labels[source]) for source in found.sources],
        grid=grid,
        line=Line("", "Words of the chosen head", make_cells("", found.words, values[-1].mean(axis=0)[None], scale)),
        scale=scale,
        legend=legend(scale, ends=("", "attention", "The router switched off; special tokens are not shown.")),
        values=json.dumps({source: np.round(array, 4).tolist() for source, array in found.sources.items()}),
    )


def _peak(words: Sequence[Word], row: np.ndarray, scale: Scale) -> dict[str, str]:
    if not len(row):
        return {"tint": "0", "shown": "", "said": "no words"}
    best = int(np.argmax(row))
    value = float(row[best])
    return {
        "tint": scale.tint(value), "shown": scale.show(value, 2), "said": f"“{words[best].text}” {scale.show(value)}"
    }  # fmt: skip


def deletion(tests: Sequence[DeletionTest], titles: Sequence[str]) -> Markup:
    """Render one line for each model: what the heaviest words do to the score against random ones."""
    most = max((max(test.top_move, float(test.random_moves.max())) for test in tests), default=0.0) or 1.0
    rows = [_deletion_row(test, title, most) for test, title in zip(tests, titles, strict=True)]
    return render("words/deletion.html", rows=rows)


def _deletion_row(test: DeletionTest, title: str, most: float) -> dict[str, Any]:
    moves, (low, high) = test.random_moves, test.interval
    words, random = ("heaviest word", "a random word") if test.num_words == 1 else (
        f"{test.num_words} heaviest words", f"{test.num_words} random words"
    )  # fmt: skip
    used = test.as_far <= 0.05 * len(moves)
    verdict = f"its score {'depends' if used else 'does not clearly depend'} on the {words}."
    numbers = (
        f"Without the {words} the score changes by {plain(test.top_move, 3)}, without {random} by "
        f"{plain(float(moves.mean()), 3)} (middle 95 % of {len(moves)} draws: {plain(low, 3)} to {plain(high, 3)}); "
        f"{test.as_far or 'no'} {'draws change' if test.as_far != 1 else 'draw changes'} it as much."
    )
    return {
        "title": title, "verdict": verdict, "numbers": numbers, "held_out": len(test.held_out),
        "low": f"{100 * low / most:.2f}", "width": f"{100 * (high - low) / most:.2f}",
        "top": f"{100 * test.top_move / most:.2f}", "ticks": [f"{100 * move / most:.2f}" for move in moves.tolist()],
    }  # fmt: skip


def to_html(result: RouterPictures | HeadMap | DeletionTest) -> Markup:
    """Render one of them as a notebook shows it."""
    if isinstance(result, RouterPictures):
        return figures(result)
    if isinstance(result, HeadMap):
        return heads(result)
    return deletion([result], [result.model])
