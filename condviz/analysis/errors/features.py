"""What can be said about a row without any model: lengths, shared words, negation, numbers."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from condviz.analysis.errors.dataset import Dataset

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
    """Give the words of a text in lower case, contractions and hyphenated words in one piece."""
    return tuple(word.replace("’", "'") for word in _WORD.findall(text.casefold()))


def has_negation(text: str) -> bool:
    """Say whether a text has a word of negation."""
    return not NEGATIONS.isdisjoint(word_list(text))


def numerals(text: str) -> frozenset[str]:
    """Give the number words and figures of a text."""
    return frozenset(word for word in word_list(text) if word in NUMBER_WORDS or word[0].isdigit())


def describe_rows(dataset: Dataset) -> dict[str, np.ndarray]:
    """Give a column per feature, (p,) each.

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
    """Give a further column as numbers if all its cells that are not blank are numbers."""
    try:
        return np.array([float(value) if value.strip() else np.nan for value in values])
    except ValueError:
        return _objects(values)


def _objects(values: list | tuple) -> np.ndarray:
    # Not np.array(values, dtype=object): that would turn equally long tuples into a second axis.
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
