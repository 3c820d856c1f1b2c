"""Word attribution as two lines of tinted words on one scale, and the same numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condviz.types import Attribution, ModelInfo, Word
from condviz.ui.html import esc, model_badges, number, shade, signed, tag, text

MIN_LIMIT = 0.01
"""Smallest end of the scale: below it, differences are the noise of the number format and stay white."""


def render_attribution(result: Attribution, info: ModelInfo, *, sentence1: str, sentence2: str) -> str:
    """Write both sentences with every word tinted by its effect on the score, on one symmetric scale.

    Args:
        result: Effects of leaving out each word.
        info: The model, for its name and badges.
        sentence1: The text that the first words stand in; what lies between the words is kept.
        sentence2: The same for the second words.
    """
    effects = [*result.effects1.tolist(), *result.effects2.tolist()]
    limit = max([MIN_LIMIT, *(abs(value) for value in effects if np.isfinite(value))])
    under = text("em", result.condition) if result.condition is not None else "no condition"
    head = tag(
        "header",
        tag("h3", "Which words carry the similarity"),
        tag(
            "p",
            text("strong", info.title),
            " ",
            model_badges(info),
            " under ",
            under,
            f", score {number(result.score)}",
        ),
        class_="cv-attr-head",
    )
    lines = tag(
        "div",
        _sentence("Sentence 1", sentence1, result.words1, effects=result.effects1, limit=limit),
        _sentence("Sentence 2", sentence2, result.words2, effects=result.effects2, limit=limit),
        class_="cv-attr-pair",
    )
    scale = tag(
        "div",
        tag("span", f"{number(-limit)} pulls apart"),
        tag(
            "span", *[tag("span", class_="cv-swatch", **shade(i / 4, 1.0)) for i in range(-4, 5)], class_="cv-swatches"
        ),
        tag("span", f"+{number(limit)} makes alike"),
        tag(
            "span",
            "Score with the word minus score without it. Effects of single words do not add up.",
            class_="cv-muted",
        ),
        class_="cv-legend cv-group-cosine",
    )
    table = tag(
        "details", tag("summary", "Values as a table"), _table(result), class_="cv-details", data_testid="attr-table"
    )
    family = "cv-group-cross" if info.kind == "cross" else "cv-group-cosine"
    return tag(
        "section", head, lines, scale.replace("cv-group-cosine", family), table,
        class_=f"cv-attr {family}", data_testid="attribution", data_model=info.name,
    )  # fmt: skip


def _sentence(label: str, sentence: str, words: Sequence[Word], *, effects: np.ndarray, limit: float) -> str:
    parts, end = [], 0
    for word, effect in zip(words, effects.tolist(), strict=True):
        parts.append(esc(sentence[end : word.start]))
        parts.append(
            tag("span", esc(word.text), class_="cv-word", title=signed(effect), tabindex="-1", **shade(effect, limit))
        )
        end = word.end
    parts.append(esc(sentence[end:]))
    return tag("div", tag("span", label, class_="cv-label"), tag("p", *parts, class_="cv-sentence", dir="auto"))


def _table(result: Attribution) -> str:
    groups = (("1", result.words1, result.effects1), ("2", result.words2, result.effects2))
    rows = [
        tag("tr", tag("td", number_), text("th", word.text, scope="row"), tag("td", signed(effect, 4), class_="cv-num"))
        for number_, words, effects in groups
        for word, effect in zip(words, effects.tolist(), strict=True)
    ]
    columns = ("Sentence", None), ("Word", None), ("Effect", "cv-num")
    head = tag("tr", *[tag("th", name, scope="col", class_=kind) for name, kind in columns])
    return tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", *rows), class_="cv-table"),
        class_="cv-scroll cv-scroll-y cv-slim",
    )
