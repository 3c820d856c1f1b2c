"""Words under conditions as HTML: running text tinted by the chosen condition, strips, figures of the CSR paper."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from condviz.analysis.words import DeletionTest, WordReading
from condviz.data.texts import is_content, not_english
from condviz.plots.html import plain, render
from condviz.plots.html import signed as with_sign
from condviz.plots.similarity import FAINT
from condviz.types import TokenWeights, Word

if TYPE_CHECKING:
    from condviz.analysis.attention import AttentionRow, HeadMap, RouterPictures

STYLES = ("words.css",)
MIN_LIMIT = 0.01
"""Smallest end of a scale: below it, differences are rounding noise and stay white."""
NEAR = 0.85
"""Share of the largest size from which a word is named beside the heaviest."""
THIN = 0.05
"""A word with less of a router's weight is named with a caution: it stands out in a long text alone."""
SCALES = {
    "weight": ("", "weight", "Router weights of all words, with or without a number, and of no word: 1 in all."),
    "cosine": ("pulls apart", "makes alike", "Leave one word out: change of the cosine."),
    "cross": ("pulls apart", "makes alike", "Leave one word out: change of the cross-encoder's output."),
    "attention": ("", "attention", "Mean over heads; special tokens are not shown."),
}
"""What the ends of each colour scale mean, and where its numbers come from."""


@dataclass(frozen=True)
class Scale:
    """One colour scale for everything that is compared."""

    limit: float
    """Its end; larger values take the end colour."""
    family: str = "weight"
    """Key of `SCALES`."""
    signed: bool = False
    """True for a diverging scale from -limit to limit, False for 0 to limit."""

    def tint(self, value: float) -> str:
        """Return the place of a value on the scale, in [-1, 1], as CSS takes it."""
        place = float(np.clip(value / self.limit, -1, 1)) if math.isfinite(value) else 0.0
        return f"{place:.3f}" if abs(place) >= 0.004 else "0"

    def show(self, value: float, digits: int = 3) -> str:
        """Format a value as it stands under a word: ".142", with its sign on a diverging scale."""
        shown = with_sign(value, digits) if self.signed else plain(value, digits)
        return shown.replace("0.", ".", 1) if abs(value) < 1 else shown


def fit_scale(values: Sequence[np.ndarray], family: str = "weight", *, signed: bool = False) -> Scale:
    """Return the scale that holds all values: its end is the next 1, 2 or 5 times a power of ten."""
    largest = max([MIN_LIMIT, *(float(np.abs(array).max(initial=0)) for array in values)])
    power = 10.0 ** math.floor(math.log10(largest))
    limit = next(step * power for step in (1, 2, 5, 10) if largest <= step * power * (1 + 1e-6))
    return Scale(limit, family, signed)


def reading_scale(readings: Sequence[WordReading], layer: int = -1) -> Scale:
    """Return the scale of readings that came about in the same way."""
    family = family_of(readings[0])
    values = [text.weights[layer_index(text, layer)] for reading in readings for text in reading.texts]
    signed = family != "weight"
    return fit_scale([*values, np.array([FAINT])] if signed else values, family, signed=signed)


def family_of(reading: WordReading) -> str:
    """Return the kind of scale that the values of a reading stand on."""
    if reading.source == "router":
        return "weight"
    return "cosine" if math.isfinite(reading.model.score_range[1]) else "cross"


def layer_index(text: TokenWeights, layer: int) -> int:
    """Return a routed layer counted from the end, or the lowest where there are fewer."""
    return max(layer, -len(text.weights))


def heaviest_word(text: TokenWeights, condition: int) -> str:
    """Return the word or emoji of the largest size under a condition; other marks count only where nothing else is."""
    return _heaviest(text, condition)[0]


def _heaviest(text: TokenWeights, condition: int) -> tuple[str, ...]:
    """Return the heaviest word and up to two others that are nearly as heavy, heaviest first."""
    sizes = np.abs(text.weights[-1, condition])
    says = [any(char.isalnum() or unicodedata.category(char) == "So" for char in word.text) for word in text.words]
    first, *others = sorted(np.flatnonzero(says) if any(says) else range(len(sizes)), key=lambda i: -sizes[i])
    near = [i for i in others if sizes[i] >= NEAR * sizes[first] > 0 and is_content(text.words[i].text)]
    return tuple(dict.fromkeys(text.words[i].text for i in (first, *near[:2])))


def headline(reading: WordReading, *, english: bool = False) -> Markup:
    """Render in one sentence which word of the first text counts most under the first two conditions.

    Conditions unlike any that models are trained on take no part, nor does an untrained model. `english` says that the
    texts are known to be English, see `condviz.plots.similarity.headline`.
    """
    untold = [reading.conditions[i] for i in reading.untold]
    told = [(i, condition) for i, condition in enumerate(reading.conditions) if i not in reading.untold]
    tops = [(condition, _heaviest(reading.texts[0], i)) for i, condition in told[:2]]
    foreign = "" if english else not_english(*(text.sentence for text in reading.texts))
    wordless = not any(map(str.isalnum, reading.texts[0].sentence))
    cut = any(text.truncated for text in reading.texts)
    signs = list(dict.fromkeys(word for _, (word, *_) in tops if not any(map(str.isalnum, word))))
    most = max((float(reading.texts[0].weights[-1, i].max(initial=0)) for i, _ in told[:2]), default=1.0)
    thin = most if reading.source == "router" and most < THIN else None
    return render(
        "words/headline.html", tops=tops, untold=untold, foreign=foreign, wordless=wordless, cut=cut, reading=reading,
        signs=signs, thin=thin,
    )  # fmt: skip


# Lines of words


@dataclass(frozen=True)
class Cell:
    """A word in its line: the text in front of it, its tints and numbers (one for each value), and the full account."""

    before: str
    text: str
    tints: tuple[str, ...]
    shown: tuple[str, ...]
    said: str

    @property
    def mark(self) -> bool:
        """Whether it has no letter or digit."""
        return not any(map(str.isalnum, self.text))


@dataclass(frozen=True)
class Line:
    """Words in a row, what stands before and behind (safe markup or plain text), and its name for screen readers."""

    title: str
    name: str
    cells: tuple[Cell, ...]
    note: str = ""
    after: str = ""


def make_cells(
    sentence: str, words: Sequence[Word], values: np.ndarray, scale: Scale, said: Callable[[int], str] | None = None
) -> tuple[Cell, ...]:
    """Make the words of a line from values (m, w), several where the picture switches between them.

    What lies between the words in the sentence is kept; "" puts a blank in every gap. `said` gives all there is to say
    about the word at a place; by default its first value.
    """
    said = said or (lambda word: scale.show(float(values[0, word])))
    cells, end = [], 0
    # A word that is strongly tinted, or most of its line, would be a riddle without its number.
    heavy = np.minimum(0.4 * scale.limit, np.abs(values).max(axis=1, initial=0))
    for i, word in enumerate(words):
        least = np.where(is_content(word.text), 0.0, heavy)
        numbers = tuple(
            scale.show(float(one), 2) if abs(one) >= max(low, 0.005) else ""  # less would be two zeros
            for one, low in zip(values[:, i], least, strict=True)
        )
        cells.append(
            Cell(
                before=sentence[end : word.start] if sentence else " " * (word.start > end > 0),
                text=word.text,
                tints=tuple(scale.tint(float(value)) for value in values[:, i]),
                shown=numbers if any(numbers) else (),
                said=said(i),
            )
        )
        end = word.end
    return tuple(cells)


def _account(reading: WordReading, place: int, layer: int, scale: Scale) -> Callable[[int], str]:
    text = reading.texts[place]
    ranks, shares = text.ranks[layer], text.shares[layer]
    whole = "the words’ weight" if reading.source == "router" else "all effects"

    def said(word: int) -> str:
        lines = [reading.model.title]
        for row, condition in enumerate(text.conditions):
            value = scale.show(float(text.weights[layer, row, word]))
            share = f"{100 * shares[row, word]:.0f} % of {whole}"
            lines.append(f"{condition}: {value}, rank {ranks[row, word]} of {len(text.words)}, {share}")
        return "\n".join(lines)

    return said


def _note(reading: WordReading, text: TokenWeights, layer: int, condition: int) -> str:
    if reading.source != "router":
        return ""
    return f"{100 * text.hidden_mass[layer, condition]:.0f} % of the weight goes to no word."


def running_text(reading: WordReading, *, place: int = 0, chosen: int = 0) -> Markup:
    """Render a sentence as running text, with a switch that moves the tint from condition to condition."""
    text, scale = reading.texts[place], reading_scale([reading])
    cells = make_cells(text.sentence, text.words, text.weights[-1], scale, _account(reading, place, -1, scale))
    line = Line("", f"Sentence {place + 1}", cells, after=text.sentence[text.words[-1].end :] if text.words else "")
    notes = [_note(reading, text, -1, i) for i in range(len(text.conditions))]
    return render(
        "words/running.html", line=line, conditions=text.conditions, chosen=chosen, notes=notes, place=place,
        scale=scale, legend=legend(scale), untold=reading.untold,
    )  # fmt: skip


def strips(readings: Sequence[WordReading], *, layer: int = -1, tokens: bool = False) -> Markup:
    """Render every sentence under every condition, one line for each model, on one scale for each kind of value.

    The sentences stand below each other under each condition. The routed layer counts from the end; `tokens` shows the
    sub-tokens of routers instead of words.
    """
    families = {family_of(reading): None for reading in readings}
    scales = {name: reading_scale([r for r in readings if family_of(r) == name], layer) for name in families}

    def lines(reading: WordReading, condition: int) -> list[tuple[Line, Scale]]:
        scale = scales[family_of(reading)]
        return [(_strip(reading, place, condition, layer, scale, tokens), scale) for place in range(len(reading.texts))]

    blocks = [
        (condition, [(_title(reading, i), lines(reading, i)) for reading in readings])
        for i, condition in enumerate(readings[0].conditions)
    ]
    return render("words/strips.html", blocks=blocks, legends=[legend(scale) for scale in scales.values()])


def _title(reading: WordReading, condition: int) -> str:
    title = reading.model.title + ("" if reading.model.trained else " (untrained)")
    if reading.scores is None:
        return title
    score = float(reading.scores[condition])
    rated = "" if reading.model.calibration is None else f"{plain(float(reading.model.rate(score)), 1)} of 5, "
    return f"{title}; the two together: {rated}score {plain(score)}"


def _strip(reading: WordReading, place: int, condition: int, layer: int, scale: Scale, tokens: bool) -> Line:
    text = reading.texts[place]
    layer = layer_index(text, layer)
    name = f"{reading.model.title} under {reading.conditions[condition]}"
    note = _note(reading, text, layer, condition)
    if tokens and text.tokens:
        kept = [i for i, token in enumerate(text.tokens) if token.start < token.end]
        values = text.token_weights[layer, condition][None, kept]
        return Line("", name, make_cells("", [text.tokens[i] for i in kept], values, scale), note)
    account = _account(reading, place, layer, scale)
    cells = make_cells(text.sentence, text.words, text.weights[layer, condition][None], scale, account)
    return Line("", name, cells, note)


def difference(readings: Sequence[WordReading], first: int, second: int) -> Markup:
    """Render the weights under one condition minus those under another, on a diverging scale of their own."""
    names = [readings[0].conditions[i] for i in (first, second)]
    gaps = [[text.weights[-1][first] - text.weights[-1][second] for text in reading.texts] for reading in readings]
    found = list(zip(readings, map(family_of, readings), gaps, strict=True))
    scales = {
        kind: fit_scale([gap for _, other, own in found if other == kind for gap in own], kind, signed=True)
        for _, kind, _ in found
    }

    def lines(reading: WordReading, gaps: Sequence[np.ndarray], scale: Scale) -> list[tuple[Line, Scale]]:
        name = f"{reading.model.title}: {names[0]} minus {names[1]}"
        return [
            (Line("", name, make_cells(text.sentence, text.words, gap[None], scale)), scale)
            for text, gap in zip(reading.texts, gaps, strict=True)
        ]

    parts = [(reading.model.title, lines(reading, own, scales[kind])) for reading, kind, own in found]
    legends = [
        legend(scale, ends=(f"more under {names[1]}", f"more under {names[0]}", "A scale of its own."))
        for scale in scales.values()
    ]
    return render("words/strips.html", blocks=[("", parts)], legends=legends)


def legend(scale: Scale, ends: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """Return what the legend of a scale shows: its steps, what its ends mean, where the numbers come from."""
    low, high, note = ends or SCALES[scale.family]
    steps = [i / 8 for i in (range(-8, 9, 2) if scale.signed else range(9))]
    left = f"−{scale.limit:g} {low}" if scale.signed else f"0 {low}"
    right = f"{'+' if scale.signed else ''}{scale.limit:g} {high}"
    return {"family": scale.family, "steps": steps, "left": left.strip(), "right": right.strip(), "note": note}


# ---- inside a router: Figures 5 to 7 of the CSR paper, layers and heads, the deletion test ---------------------------

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


def deletion(test: DeletionTest, title: str) -> Markup:
    """Render what the heaviest words do to the score of a model against random ones."""
    moves, (low, high) = test.random_moves, test.interval
    most = max(test.top_move, float(moves.max())) or 1.0
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
    places = {"low": low, "width": high - low, "top": test.top_move}
    return render(
        "words/deletion.html", title=title, verdict=verdict, numbers=numbers, held_out=len(test.held_out),
        ticks=[f"{100 * move / most:.2f}" for move in moves.tolist()],
        **{name: f"{100 * place / most:.2f}" for name, place in places.items()},
    )  # fmt: skip


def to_html(result: WordReading) -> Markup:
    """Render what a notebook shows."""
    texts = [running_text(result, place=place) for place in range(len(result.texts))]
    return render("words/reading.html", headline=headline(result), texts=texts)
