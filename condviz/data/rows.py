"""Rated rows: what they are, a stable sample of them, what they give away without being understood, and their CSV."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

COLUMNS = ("sentence1", "sentence2", "condition", "label", "aspect", "pair", "family1", "family2")
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class RatedPair:
    """One row: the columns of C-STS, and where it comes from.

    Attributes:
        pair: Number of the contrast; its two rows share it.
        sentence1, sentence2: The sentences.
        condition: A wording of the aspect.
        label: 1 (different) to 5 (same).
        aspect: Name of a shared aspect, or of a local one behind the id of its family: "sport-001:x_handedness".
        family1, family2: Ids of the families; equal for a pair from one family.
    """

    pair: int
    sentence1: str
    sentence2: str
    condition: str
    label: int
    aspect: str
    family1: str
    family2: str


@dataclass(frozen=True)
class Shortcuts:
    """What can be guessed without understanding; 0.5 is chance.

    Attributes:
        condition: Share of rows for which the wording alone tells whether it is the higher or the lower of its pair
            (the better answer for each wording, on the same rows).
        overlap: Balanced accuracy of telling ratings 4 and 5 from 1 and 2 by the words that the sentences share (best
            threshold, on the same rows).
    """

    condition: float
    overlap: float


def keep_pairs(rows: Sequence[RatedPair], count: int, *, seed: int = 0) -> list[RatedPair]:
    """Keep some of the sentence pairs: those with the smallest hashes, whatever else is among the rows.

    Args:
        rows: The two rows of a pair side by side.
        count: Maximum number of pairs.
        seed: Another one keeps others.

    Returns:
        Rows in the order of the hashes.
    """

    def rank(pair: tuple[RatedPair, RatedPair]) -> str:
        texts = "\n".join(sorted((pair[0].sentence1, pair[0].sentence2)))
        return hashlib.sha256(f"{seed}\n{texts}".encode()).hexdigest()

    both = sorted(zip(rows[::2], rows[1::2], strict=True), key=rank)
    return [row for pair in both[:count] for row in pair]


def format_rows(rows: Sequence[RatedPair]) -> str:
    """Format rows as CSV, with the columns that `condviz evaluate` and `train` read, and where each row comes from."""
    import pandas as pd

    table = pd.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS))
    return table.to_csv(index=False, lineterminator="\n", float_format="%g")


def measure_shortcuts(rows: Sequence[RatedPair]) -> Shortcuts:
    """Measure what the wording alone and shared words alone give away; 0.5 for both if there are no rows."""
    if not rows:
        return Shortcuts(condition=0.5, overlap=0.5)
    highest: dict[int, int] = {}
    for row in rows:
        highest[row.pair] = max(row.label, highest.get(row.pair, 0))
    votes: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in rows:
        votes[row.condition.casefold()][row.label == highest[row.pair]] += 1
    condition = sum(max(count.values()) for count in votes.values()) / len(rows)
    return Shortcuts(condition=condition, overlap=_overlap_accuracy(rows))


def _overlap_accuracy(rows: Sequence[RatedPair]) -> float:
    shared = sorted((word_overlap(row.sentence1, row.sentence2), row.label > 3) for row in rows if row.label != 3)
    high = sum(is_high for _, is_high in shared)
    low = len(shared) - high
    if not high or not low:
        return 0.5
    best, highs_below, lows_below = 0.5, 0, 0
    for index, (value, is_high) in enumerate(shared):
        highs_below += is_high
        lows_below += not is_high
        if index + 1 == len(shared) or shared[index + 1][0] != value:
            accuracy = (lows_below / low + 1 - highs_below / high) / 2
            best = max(best, accuracy, 1 - accuracy)
    return best


def word_overlap(sentence1: str, sentence2: str) -> float:
    """Return the share of words that two sentences have in common, from 0 to 1 (Jaccard)."""
    words1, words2 = (set(WORD.findall(sentence.casefold())) for sentence in (sentence1, sentence2))
    return len(words1 & words2) / max(1, len(words1 | words2))
