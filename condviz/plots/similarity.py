"""A comparison as a sentence and a picture: bars for one model, a table for several."""

from __future__ import annotations

import re

import numpy as np
from markupsafe import Markup

from condviz.analysis.errors.filters import numerals
from condviz.data.examples import expected_levels
from condviz.data.texts import is_content, not_english, split_words
from condviz.plots.html import render
from condviz.types import SILENT, Attribution, Comparison

LITTLE = 10.0
"""Difference of two percentiles below which a condition is said to change little."""
TYPICAL = 50.0
"""Percentile of a typical pair: words carry a score above it, and set a pair apart below it."""
SAME = 0.9999
"""Score without a condition above which a model has read the same in both sentences."""
LEVELS = {"low": (0, "unlike"), "medium": (1, "in between"), "high": (2, "alike")}
"""What a careful reader finds, in order, and how that is said."""
CHANGE_LIMIT = {"cross": 1.0, "bi": 0.4, "tri": 0.4}
"""End of the colour scale for changes of the score: of a cosine, or of a cross-encoder's output in units of ratings.
Fixed, so that two screenshots can be compared."""
FAINT = 0.1
"""Smallest end of the scale for effects of words: smaller ones are hardly more than noise, and stay pale."""
CLEARLY = 0.7
"""How surely both sentences tell a condition, at least, to be the headline's highest, where two are: see `applies`."""
ALIKE = 67.0
"""Percentile from which a pair is said to be alike."""
_OF_NUMBERS = re.compile(
    r"\b(number|count|how (many|much|long|old|far|often|big|tall|fast)|amount|quantity|age|date|year|duration|length"
    r"|size|weight|height|depth|distance|speed|temperature|dos(e|age)|price|cost|salary|rent|fee|score|percentage)s?\b",
    re.I,
)  # fmt: skip
"""Conditions that may ask for a number."""
_DEGREES = {90: "very alike", ALIKE: "alike", 33: "neither alike nor unlike", 10: "unlike", 0: "far apart"}


def to_html(result: Comparison | Attribution) -> str:
    """Render what a notebook shows."""
    if isinstance(result, Attribution):
        return attribution(result, "", "")
    return headline(result) + (bars(result) if len(result.models) == 1 else matrix(result))


def degree(percentile: float) -> str:
    """Return in words how alike a pair is that scores higher than `percentile` % of the reference pairs."""
    return next(word for floor, word in _DEGREES.items() if percentile >= floor)


def share(percentile: float) -> str:
    """Return a percentile in print: no score is above all pairs there are."""
    return f"{min(99, max(1, round(float(percentile))))} %"


def silent(comparison: Comparison, column: int) -> str:
    """Return who may not say what a condition asks for: "the sentences", "sentence 1", "sentence 2", or "".

    Beside one that may not say it, the other one has to say it clearly.
    """
    told = comparison.applies[:, column]
    first, second = told < (CLEARLY if told.min() < SILENT else SILENT)
    return "the sentences" if first and second else "sentence 1" if first else "sentence 2" if second else ""


def headline(comparison: Comparison, *, english: bool = False) -> Markup:
    """Render the one sentence that the first model's scores support; what the sentences may not say takes no part.

    `english` says that they are known to be English; finding out loads what tells languages apart, half a second.
    """
    places, leading = comparison.percentiles[0], _leading(comparison)
    known = np.flatnonzero(~comparison.untold).tolist()
    untold = [(c, silent(comparison, i)) for i, c in enumerate(comparison.conditions) if comparison.untold[i]]
    who = {name for _, name in untold}
    values: dict = {
        "model": comparison.models[0].title,
        "blind": unread(comparison),
        "unknown": list(dict.fromkeys(word for words in comparison.unknown for word in words)),
        "scant": not all(map(is_telling, (comparison.sentence1, comparison.sentence2))),
        "wrong": misordered(comparison),
        "foreign": "" if english else not_english(comparison.sentence1, comparison.sentence2),
        "notes": comparison.notes,
        "same": comparison.sentence1 == comparison.sentence2,
        "untold": untold,
        "who": who.pop() if len(who) == 1 else "one or both sentences",
    }
    if known:
        order = sorted(leading, key=lambda column: -places[column])
        high, low = order[0], order[-1]  # two, even where all are equal
        values |= {"high": comparison.conditions[high], "low": comparison.conditions[low]}
        values |= {"high_degree": degree(places[high]), "low_degree": degree(places[low])}
        least, most = share(places[low]), share(places[high])
        values |= {"spread": float(places[high] - places[low]), "place": most}
        values |= {"degree": degree((places[high] + places[low]) / 2)}
        values |= {"places": most if least == most else f"{least.removesuffix(' %')} to {most}"}
    return render("similarity/headline.html", known=len(leading), asked=len(places), little=LITTLE, **values)


def _leading(comparison: Comparison) -> list[int]:
    """Return the conditions that a headline may speak of.

    What is hardly said makes pairs alike rather than unlike: it may be the lowest, not the highest.
    """
    places, known = comparison.percentiles[0], np.flatnonzero(~comparison.untold).tolist()
    clear = [column for column in known if comparison.applies[:, column].min() >= CLEARLY]
    return [column for column in known if len(clear) < 2 or places[column] <= places[clear].max()]


def is_telling(sentence: str) -> bool:
    """Return whether a sentence has a word or number of its own, more than a letter."""
    words = [word.text for word in split_words(sentence)]
    return any(is_content(word) and (len(word) > 1 or not word.isascii() or word.isdigit()) for word in words)


def bars(comparison: Comparison, *, before: dict[str, float] | None = None) -> Markup:
    """Render one bar per condition for the first model: how many reference pairs the model finds less alike.

    The percentile that a condition had `before` a sentence was edited is drawn as a pale bar.
    """
    rows, ratings, leading = [], comparison.ratings[0], _leading(comparison)
    expected = expected_levels(comparison.sentence1, comparison.sentence2)
    for column, condition in enumerate(comparison.conditions):
        read = comparison.words[column] if comparison.words else None
        score, place = float(comparison.scores[0, column]), float(comparison.percentiles[0, column])
        rows.append(
            {
                "condition": condition,
                "score": score,
                "change": score - float(comparison.unconditional[0]),
                "place": place,
                "share": share(place),
                "expected": LEVELS[expected[condition]][1] if condition in expected else "",
                "before": (before or {}).get(condition),
                "rating": float(ratings[column]) if np.isfinite(ratings[column]) else None,
                "silent": silent(comparison, column),
                "doubtful": column not in leading,
                "read": decisive(read, place) if read else None,
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
        blind=unread(comparison),
        pairs=[attribution(read, comparison.sentence1, comparison.sentence2) for read in comparison.words],
        marked=int(np.argmin(comparison.untold)),  # the first that both tell
        kind=f"{comparison.models[0].kind}-encoder",
    )


def decisive(read: Attribution, place: float) -> dict[str, object]:
    """Return the words behind a score, of percentile `place`, by the size of their effect, and what they do.

    Words that raise a score above that of a typical pair carry it, words that lower one below it set the pair apart.
    Where no word does so, the strongest of the others are told. Function words and marks are left out, numbers are not.

    Returns:
        "verb"; "words", at most three; "against", those that pull the other way at least half as much; of numbers in
        which the sentences differ, where the condition asks for one, "idle", all of them if none counts, and "misread",
        which make the two alike.
    """
    effects = zip((*read.words1, *read.words2), np.concatenate([read.effects1, read.effects2]), strict=True)
    known: dict[str, list[float]] = {}
    for word, effect in effects:
        if is_content(word.text) and np.isfinite(effect):
            known.setdefault(word.text.lower(), []).append(float(effect))
    # A word of both sentences may raise the score in one and lower it in the other.
    means = [(word, sum(found) / len(found)) for word, found in known.items()]
    counted = sorted(means, key=lambda pair: -abs(pair[1]))
    largest = abs(counted[0][1]) if counted else 0.0
    alike = place >= TYPICAL

    first, second = ({word.text.lower() for word in words} for words in (read.words1, read.words2))

    def strongest(least: float, *, side: bool) -> list[str]:
        told = [word for word, effect in counted if abs(effect) >= least and side == (effect > 0)]
        return [word for word in told if side or word not in first & second][:3]  # what both have sets nothing apart

    least = max(0.01, 0.25 * largest)
    words, against = strongest(least, side=alike), strongest(max(0.01, 0.5 * largest), side=not alike)
    verb = "carried by" if alike else "set apart by"
    if not words:
        words, against, verb = strongest(least, side=not alike), [], "lowered most by" if alike else "raised most by"
    own = [{word.text.lower() for word in words if numerals(word.text)} for words in (read.words1, read.words2)]
    numbers = sorted(own[0] ^ own[1]) if all(own) and _OF_NUMBERS.search(read.condition or "") else []
    size = {word: abs(effect) for word, effect in means}
    counts = any(map(numerals, (*words, *against))) or any(size[word] >= least for word in numbers)
    idle = [] if counts else numbers
    spelled = {word.text.lower(): word.text for word in (*read.words2[::-1], *read.words1[::-1])}
    misread = [word for word in numbers if verb == "carried by" and word in words]
    found = {"words": words, "against": against, "idle": idle, "misread": misread}
    return {"verb": verb, **{key: [spelled[word] for word in told] for key, told in found.items()}}


def unread(comparison: Comparison) -> str:
    """Return what the first model cannot read, so that its scores say nothing: a sentence, or where the two differ.

    Words that its tokenizer does not know count as blank, and so do ends that were cut off; "" where it can read.
    """
    if comparison.notes and comparison.sentence1 != comparison.sentence2 and comparison.unconditional[0] > SAME:
        return "the ends of these two texts, where they differ"
    rest = []
    for sentence, words in zip((comparison.sentence1, comparison.sentence2), comparison.unknown, strict=True):
        for word in words:
            sentence = sentence.replace(word, " ")
        rest.append(" ".join(sentence.split()))
    if not any(comparison.unknown):
        return ""
    blank = [side for side in (0, 1) if not any(map(str.isalnum, rest[side]))]
    if not blank and rest[0] != rest[1]:
        return ""
    what = " or ".join(f"sentence {side + 1}" for side in blank) or "what tells these two apart"
    words = dict.fromkeys(word for side in blank or (0, 1) for word in comparison.unknown[side])
    return f"{what} ({', '.join(f'“{word}”' for word in list(words)[:3])})" if words else what


def misordered(comparison: Comparison) -> tuple[str, str] | None:
    """Return two conditions of a shipped example that the first model orders unlike a careful reader, or None.

    The reader finds the sentences more alike under the first than under the second; of several, those furthest apart.
    """
    expected = expected_levels(comparison.sentence1, comparison.sentence2)
    known = [
        (LEVELS[expected[text]][0], float(place), text)
        for text, place in zip(comparison.conditions, comparison.percentiles[0], strict=True)
        if text in expected
    ]
    wrong = [(low[1] - high[1], high[2], low[2]) for high in known for low in known if high[0] > low[0]]
    gap, high, low = max(wrong, default=(-1.0, "", ""))
    return (high, low) if gap >= 0 else None


def agreement(table: Comparison) -> str:
    """Return how many trained models agree with the first on which condition is higher, of those that are told."""
    trained = [row for row, info in enumerate(table.models) if info.trained]
    told = np.array(_leading(table))
    if len(told) < 2 or len(trained) < 2:
        return ""
    places = table.percentiles[0, told]
    high, low = told[places.argmax()], told[places.argmin()]
    agree = sum(table.percentiles[row, high] > table.percentiles[row, low] for row in trained)
    return (
        f"{agree} of {len(trained)} trained models find the two more alike under “{table.conditions[high]}” than under "
        f"“{table.conditions[low]}”."
    )


def matrix(comparison: Comparison) -> Markup:
    """Render models x conditions as a table; the colour shows the change against no condition."""
    rows = []
    for row, info in enumerate(comparison.models):
        base, end = float(comparison.unconditional[row]), CHANGE_LIMIT[info.kind]
        shown = (part[row].tolist() for part in (comparison.scores, comparison.percentiles, comparison.ratings))
        cells = [
            {"score": score, "change": score - base, "tint": tint(score - base, end), "place": place, "rating": rating}
            for score, place, rating in zip(*shown, strict=True)
        ]
        rows.append({"info": info, "base": base, "cells": cells})
    silence = [silent(comparison, column) for column in range(len(comparison.conditions))]
    levels = expected_levels(comparison.sentence1, comparison.sentence2)
    shown = {"comparison": comparison, "rows": rows, "limits": CHANGE_LIMIT, "silence": silence, "share": share}
    return render("similarity/matrix.html", expected={one: LEVELS[level][1] for one, level in levels.items()}, **shown)


def attribution(result: Attribution, sentence1: str, sentence2: str) -> Markup:
    """Render both sentences, each word tinted by its effect on the score, on one symmetric scale.

    Of the sentences what lies between the words is shown; of "" a blank.
    """
    effects = np.concatenate([result.effects1, result.effects2])
    limit = max(FAINT, float(np.abs(effects[np.isfinite(effects)]).max(initial=0.0)))
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
