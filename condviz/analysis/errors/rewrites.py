"""Why an error may have come about: change rows by a rule and score them again; find the nearest training rows.

Source: behavioural tests by perturbation, Ribeiro et al. ACL 2020 (CheckList); Errudite, Wu et al. ACL 2019.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.analysis.errors.filters import COUNTING, RULES
from condviz.analysis.errors.study import Study
from condviz.analysis.geometry import unit_rows
from condviz.data import corpora
from condviz.errors import ConfigError, DataError, require
from condviz.types import Pair

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer

MAX_ROWS = 300
"""Rows scored again at once: some seconds."""
CANDIDATES = 200
"""Training rows that are encoded for one question; those that share most words with the row."""
_NUMBER = re.compile(rf"(?<!\d[.,])\b({'|'.join(COUNTING[1:-1])}|(?!1\b)\d{{1,6}})\b(?![.,]\d)", re.IGNORECASE)
_NEGATION = re.compile(r"\s(not|never)\b|(?<=[a-z])n['’]t\b", re.IGNORECASE)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|should|must|may|might|am)\b", re.IGNORECASE
)
_IRREGULAR = {"can't": "can", "won't": "will", "shan't": "shall"}


@dataclass(frozen=True)
class Rewritten:
    """Rows after a rule."""

    rule: str
    rows: np.ndarray
    """(k,) int64, positions of the changed rows in the dataset."""
    pairs: tuple[Pair, ...]
    """k changed rows; their labels no longer hold and are None."""
    unchanged: int
    """Rows of the slice to which the rule does not apply."""
    left_out: int
    """Rows beyond `MAX_ROWS`."""


def rewrite(
    study: Study, mask: np.ndarray, rule: str, *, old: str = "", new: str = "", max_rows: int = MAX_ROWS
) -> Rewritten:
    """Apply one of `RULES` to at most so many rows of a slice, (p,) bool.

    For "word", the word `old` is replaced in either sentence, by `new`, which may be blank. Raises DataError if that
    word is missing, or the rule changes no row.
    """
    if rule not in RULES:
        raise ConfigError(f"There is no rule {rule!r}. There are: {', '.join(RULES)}.")
    if rule == "word" and not old.strip():
        raise DataError("There is no word to replace. Write the word that stands in the sentences.")
    change = _changer(study, rule, old.strip(), new.strip())
    rows, pairs, left_out, unchanged = [], [], 0, 0
    for row in np.flatnonzero(mask):
        changed = change(int(row))
        if changed is None:
            unchanged += 1
        elif len(rows) == max_rows:
            left_out += 1
        else:
            rows.append(int(row))
            pairs.append(replace(changed, label=None))
    if not rows:
        raise DataError(
            f"The rule changes none of the {int(mask.sum()):,} rows. Widen the filter, or take another rule."
        )
    return Rewritten(rule, np.array(rows), tuple(pairs), unchanged, left_out)


def next_number(text: str) -> str | None:
    """Replace every number by the next one, "two" by "three" and "9" by "10"; None if there is none.

    Neither "one" nor "1": the noun would need a plural, and "one" often counts nothing, as in "no one".
    """

    def step(match: re.Match[str]) -> str:
        word = match.group()
        if word.isdigit():
            return str(int(word) + 1)
        following = COUNTING[COUNTING.index(word.lower()) + 1]
        if len(word) > 1 and word.isupper():
            return following.upper()
        return following.capitalize() if word[0].isupper() else following

    changed = _NUMBER.sub(step, text)
    return changed if changed != text else None


def negate(text: str) -> str | None:
    """Take away the first "not", "never" or "n't", else put "not" after the first auxiliary; None without either."""
    for short, full in _IRREGULAR.items():
        if found := re.search(rf"\b{short[:-2]}['’]t\b", text, re.IGNORECASE):
            return text[: found.start()] + full + text[found.end() :]
    if _NEGATION.search(text):
        return _NEGATION.sub("", text, count=1)
    if found := _AUXILIARY.search(text):
        return f"{text[: found.end()]} not{text[found.end() :]}"
    return None


def replace_word(text: str, old: str, new: str) -> str | None:
    """Replace a whole word, upper and lower case alike; None if the text does not have it."""
    word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)", re.IGNORECASE)
    changed = " ".join(word.sub(lambda _: new, text).split())
    return changed if word.search(text) and changed else None


def _changer(study: Study, rule: str, old: str, new: str) -> Callable[[int], Pair | None]:
    pairs = study.dataset.pairs
    first, second = study.dataset.items.T.tolist()
    partner = dict(zip([*first, *second], [*second, *first], strict=True))

    def change(row: int) -> Pair | None:
        pair = pairs[row]
        if rule == "swap_sentences":
            return replace(pair, sentence1=pair.sentence2, sentence2=pair.sentence1)
        if rule == "swap_conditions":
            return replace(pair, condition=pairs[partner[row]].condition) if row in partner else None
        if rule == "word":
            one, two = replace_word(pair.sentence1, old, new), replace_word(pair.sentence2, old, new)
            if one is None and two is None:
                return None
            return replace(pair, sentence1=one or pair.sentence1, sentence2=two or pair.sentence2)
        second = next_number(pair.sentence2) if rule == "number" else negate(pair.sentence2)
        return None if second is None else replace(pair, sentence2=second)

    return change


@dataclass(frozen=True)
class Neighbour:
    """A training row."""

    pair: Pair
    similarity: float
    """Mean cosine of the two sentence vectors under their conditions to those of the row asked for, in [-1, 1]; the
    sentences are matched in the better of the two orders."""


@cache
def scene_training_rows() -> tuple[Pair, ...]:
    """Return the training part of the scenes, on which the shipped models were trained."""
    rows = corpora.build("scenes", "train")
    return tuple(Pair(row.sentence1, row.sentence2, row.condition, float(row.label)) for row in rows)


@cache
def _weighted_words(rows: tuple[Pair, ...]) -> tuple[Any, Any]:
    """Return what counts the words of rows, rare ones more, and their counts."""
    vectorizer = require("sklearn.feature_extraction.text", "viz").TfidfVectorizer(sublinear_tf=True)
    return vectorizer, vectorizer.fit_transform(map(_joined, rows))


def nearest_rows(
    model: ConditionalScorer, pair: Pair, training: tuple[Pair, ...], *, count: int = 5
) -> list[Neighbour]:
    """Find the training rows whose conditioned embeddings are nearest to those of a row, the nearest first.

    Raises ConfigError if the model has no vectors, as a cross-encoder.
    """
    model.check_able("encodes")
    vectorizer, counts = _weighted_words(training)
    likeness = (counts @ vectorizer.transform([_joined(pair)]).T).toarray().ravel()
    rows = [pair, *(training[index] for index in np.argsort(-likeness, kind="stable")[:CANDIDATES])]
    sentences = [text for row in rows for text in (row.sentence1, row.sentence2)]
    conditions = [row.condition for row in rows for _ in range(2)]
    vectors = unit_rows(model.encode(sentences, conditions)).reshape(len(rows), 2, -1)
    cosines = np.einsum("ad,nbd->nab", vectors[0], vectors[1:])
    straight, crossed = cosines[:, 0, 0] + cosines[:, 1, 1], cosines[:, 0, 1] + cosines[:, 1, 0]
    similarity = np.maximum(straight, crossed) / 2
    order = np.argsort(-similarity, kind="stable")[:count]
    return [Neighbour(rows[1 + index], float(similarity[index])) for index in order]


def _joined(pair: Pair) -> str:
    return f"{pair.sentence1} {pair.sentence2} {pair.condition}"
