"""The columns of a study: their names, with a line of help each, and what can be said about a row without a model."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from condviz.evaluation.dataset import Dataset

FEATURE_HELP = {
    "row": "number of the row in the source",
    "sentence1": "the first sentence",
    "sentence2": "the second sentence",
    "condition": "the condition",
    "gold": "rating, 1 (different) to 5 (same)",
    "seen": "the condition occurs in the training data of the first model",
    "length": "mean number of words of the two sentences",
    "length_gap": "difference of the two numbers of words",
    "overlap": "shared words divided by all words, 0 to 1",
    "negation": "one sentence has a negation, the other has none",
    "numerals": "a sentence has a number",
    "numerals_differ": "the two sentences have different numbers",
    "shared": "words in both sentences",
    "words": "words in either sentence",
}
"""Columns that say something about a row without any model."""

COLUMN_HELP = {
    **FEATURE_HELP,
    "score": "score of the model, in its own range",
    "fitted": "the rating that the score predicts, 1 to 5, fitted on other sentence pairs",
    "error": "fitted minus gold: positive means too similar",
    "right": "the two conditions of the item are in the right order",
    "margin": "fitted rating of the higher condition minus that of the lower one; negative means wrong",
    "score_b": "score of the second model",
    "fitted_b": "fitted of the second model",
    "error_b": "error of the second model",
    "right_b": "right of the second model",
    "margin_b": "margin of the second model",
}
"""All columns."""

FLAGS = frozenset({"seen", "negation", "numerals", "numerals_differ", "right", "right_b"})
"""Columns that are true, false or not known; they may stand alone in a filter."""

TARGETS: dict[str, str] = {
    "over": "finds pairs too similar",
    "under": "finds pairs too different",
    "large": "is far off",
    "order": "orders the two conditions wrongly",
    "first": "is closer to the ratings than the other model",
    "second": "is further from the ratings than the other model",
}
"""What slices are looked for: those in which a model ..."""

RULES: dict[str, str] = {
    "number": "Replace numbers in the second sentence by the next one",
    "negate": "Negate the second sentence, or take its negation away",
    "word": "Replace a word",
    "swap_conditions": "Swap the two conditions of the item",
    "swap_sentences": "Swap the two sentences",
}
"""How the rows of a slice may be changed."""

_NEGATIONS = (
    "no not never none nobody nothing nowhere neither nor without cannot isn't aren't wasn't weren't don't doesn't "
    "didn't hasn't haven't hadn't can't couldn't won't wouldn't shouldn't mustn't needn't hardly barely"
)
NEGATIONS = frozenset(_NEGATIONS.split())
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million dozen both "
    "couple single pair twice half"
)
NUMBER_WORDS = frozenset(_NUMBER_WORDS.split())
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@lru_cache(maxsize=100_000)
def word_list(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, contractions and hyphenated words in one piece."""
    return tuple(word.replace("’", "'") for word in _WORD.findall(text.casefold()))


def has_negation(text: str) -> bool:
    """Return whether a text has a word of negation."""
    return not NEGATIONS.isdisjoint(word_list(text))


def numerals(text: str) -> frozenset[str]:
    """Return the number words and figures of a text."""
    return frozenset(word for word in word_list(text) if word in NUMBER_WORDS or word[0].isdigit())


def describe_rows(dataset: Dataset) -> dict[str, np.ndarray]:
    """Compute a column per feature, (p,) each.

    Numbers are float64, flags float64 with 1, 0 or NaN (not known), texts and sets of words objects. `FEATURE_HELP`
    says what each one means.
    """
    first = [word_list(pair.sentence1) for pair in dataset.pairs]
    second = [word_list(pair.sentence2) for pair in dataset.pairs]
    sets = [(frozenset(one), frozenset(two)) for one, two in zip(first, second, strict=True)]
    shared = [one & two for one, two in sets]
    either = [one | two for one, two in sets]
    counts = [(numerals(pair.sentence1), numerals(pair.sentence2)) for pair in dataset.pairs]
    seen = np.full(len(sets), np.nan) if dataset.seen is None else dataset.seen.astype(float)
    return {
        "row": dataset.numbers.astype(float),
        "sentence1": _objects([pair.sentence1 for pair in dataset.pairs]),
        "sentence2": _objects([pair.sentence2 for pair in dataset.pairs]),
        "condition": _objects([pair.condition for pair in dataset.pairs]),
        "gold": dataset.gold,
        "seen": seen,
        "length": np.array([(len(one) + len(two)) / 2 for one, two in zip(first, second, strict=True)]),
        "length_gap": np.array([abs(len(one) - len(two)) for one, two in zip(first, second, strict=True)], dtype=float),
        "overlap": np.array([len(s) / len(e) if e else 0.0 for s, e in zip(shared, either, strict=True)]),
        "negation": np.array([has_negation(p.sentence1) != has_negation(p.sentence2) for p in dataset.pairs], float),
        "numerals": np.array([bool(one or two) for one, two in counts], dtype=float),
        "numerals_differ": np.array([one != two for one, two in counts], dtype=float),
        "shared": _objects(shared),
        "words": _objects(either),
        **{name: _extra(values) for name, values in dataset.extra.items()},
    }


def _extra(values: tuple[str, ...]) -> np.ndarray:
    """Return a further column as numbers if all its cells that are not blank are numbers."""
    try:
        return np.array([float(value) if value.strip() else np.nan for value in values])
    except ValueError:
        return _objects(values)


def _objects(values: list | tuple) -> np.ndarray:
    # Not np.array(values, dtype=object): that would turn equally long tuples into a second axis.
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
