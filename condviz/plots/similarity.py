"""A comparison as a sentence and a picture: bars for one model, a table for several."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from condviz.data.language import not_english
from condviz.plots.html import render
from condviz.plots.words import is_quiet
from condviz.types import TOLD, Attribution, Comparison

LITTLE = 10.0
"""Difference of two percentiles below which a condition is said to change little."""
CHANGE_LIMIT = {"cross": 1.0, "bi": 0.4, "tri": 0.4}
"""End of the colour scale for changes of the score: of a cosine, or of a cross-encoder's output in units of ratings.
Fixed, so that two screenshots can be compared."""
_DEGREES = (
    (90.0, "very alike"),
    (67.0, "alike"),
    (33.0, "neither alike nor unlike"),
    (10.0, "unlike"),
    (0.0, "far apart"),
)


def to_html(result: Comparison | Attribution) -> str:
    """Render what a notebook shows."""
    if isinstance(result, Attribution):
        return attribution(result, "", "")
    return headline(result) + (bars(result) if len(result.models) == 1 else matrix(result))


def degree(percentile: float) -> str:
    """Return in words how alike a pair is that scores higher than `percentile` % of the reference pairs."""
    return next(word for floor, word in _DEGREES if percentile >= floor)


def silent(comparison: Comparison, column: int) -> str:
    """Return who may not say what a condition asks for: "the sentences", "sentence 1", "sentence 2", or ""."""
    first, second = comparison.applies[:, column] < TOLD
    return "the sentences" if first and second else "sentence 1" if first else "sentence 2" if second else ""


def headline(comparison: Comparison, *, english: bool = False) -> Markup:
    """Render the one sentence that the first model's scores support; what the sentences may not say takes no part.

    Args:
        comparison: Of one or more models.
        english: True if the sentences are known to be English; finding out reads the corpus, once in a process.
    """
    places = comparison.percentiles[0]
    known = [column for column in range(len(places)) if not comparison.untold[column]]
    values: dict = {
        "foreign": "" if english else not_english(comparison.sentence1, comparison.sentence2),
        "untold": [(c, silent(comparison, i)) for i, c in enumerate(comparison.conditions) if comparison.untold[i]],
    }
    if known:
        order = sorted(known, key=lambda column: -places[column])
        high, low = order[0], order[-1]  # two, even where all are equal
        values |= {"high": comparison.conditions[high], "low": comparison.conditions[low]}
        values |= {"high_degree": degree(places[high]), "low_degree": degree(places[low])}
        values |= {"spread": float(places[high] - places[low]), "place": round(float(places[high]))}
    return render("similarity/headline.html", known=len(known), little=LITTLE, **values)


def bars(comparison: Comparison, *, before: dict[str, float] | None = None) -> Markup:
    """Render one bar per condition for the first model: how many reference pairs the model finds less alike.

    Args:
        comparison: One model, or the first of several.
        before: Percentile that a condition had before a sentence was edited; drawn as a pale bar.
    """
    rows, ratings = [], comparison.ratings[0]
    for column, condition in enumerate(comparison.conditions):
        read = comparison.words[column] if comparison.words else None
        score = float(comparison.scores[0, column])
        rows.append(
            {
                "condition": condition,
                "score": score,
                "change": score - float(comparison.unconditional[0]),
                "place": float(comparison.percentiles[0, column]),
                "before": (before or {}).get(condition),
                "rating": float(ratings[column]) if np.isfinite(ratings[column]) else None,
                "silent": silent(comparison, column),
                "read": decisive(read) if read else None,
            }
        )
    order = np.argsort([-row["place"] for row in rows], kind="stable")
    for rank, index in enumerate(order):
        rows[index]["rank"] = rank
    return render(
        "similarity/bars.html",
        rows=rows,
        mark=float(comparison.unconditional_percentiles[0]),
        base=float(comparison.unconditional[0]),
        notes=comparison.notes,
        kind=f"{comparison.models[0].kind}-encoder",
    )


def decisive(read: Attribution) -> dict[str, object]:
    """Return up to three words that decide a score, by the largest effect, and whether they set the pair apart."""
    effects = zip((*read.words1, *read.words2), np.concatenate([read.effects1, read.effects2]), strict=True)
    counted = [0.0, *(float(effect) for word, effect in effects if np.isfinite(effect) and not is_quiet(word.text))]
    apart = -min(counted) > max(counted)
    return {"words": [word for word in read.strongest(6, apart=apart) if not is_quiet(word)][:3], "apart": apart}


def matrix(comparison: Comparison) -> Markup:
    """Render models x conditions as a table; the colour shows the change against no condition."""
    rows = []
    for row, info in enumerate(comparison.models):
        base, limit = float(comparison.unconditional[row]), CHANGE_LIMIT[info.kind]
        cells = [
            {
                "score": float(score),
                "change": float(score) - base,
                "tint": tint(float(score) - base, limit),
                "place": float(place),
                "rating": float(rating),
            }
            for score, place, rating in zip(
                comparison.scores[row], comparison.percentiles[row], comparison.ratings[row], strict=True
            )
        ]
        rows.append({"info": info, "base": base, "cells": cells})
    silence = [silent(comparison, column) for column in range(len(comparison.conditions))]
    return render("similarity/matrix.html", comparison=comparison, rows=rows, limits=CHANGE_LIMIT, silence=silence)


def attribution(result: Attribution, sentence1: str, sentence2: str) -> Markup:
    """Render both sentences, each word tinted by its effect on the score, on one symmetric scale.

    Args:
        result: Effects of leaving out each word.
        sentence1, sentence2: The texts that the words stand in, for what lies between the words.
    """
    effects = np.concatenate([result.effects1, result.effects2])
    limit = max(0.01, float(np.abs(effects[np.isfinite(effects)]).max(initial=0.0)))
    texts = []
    for text, words, found in (
        (sentence1, result.words1, result.effects1),
        (sentence2, result.words2, result.effects2),
    ):
        parts, end = [], 0
        for word, effect in zip(words, found.tolist(), strict=True):
            gap = text[end : word.start] if text else " "
            parts.append({"gap": gap, "word": word.text, "effect": effect, "tint": tint(effect, limit)})
            end = word.end
        texts.append({"parts": parts, "rest": text[end:]})
    return render("similarity/attribution.html", result=result, texts=texts, limit=limit)


def tint(value: float, limit: float) -> dict[str, str]:
    """Return sign and strength of a diverging colour: "pos", "neg", "zero" or "none", and a share in [0, 1]."""
    if not np.isfinite(value):
        return {"sign": "none", "share": "0"}
    share = min(1.0, abs(value) / limit)
    return {"sign": "zero" if share < 0.005 else "pos" if value > 0 else "neg", "share": f"{share:.3f}"}
