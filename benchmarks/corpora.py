"""What the ratings of the corpora give away without being understood: python -m benchmarks corpora.

Of each part that is on this machine: how often, in %, the rating can be guessed from the wording of the condition
alone, and from the words that the sentences share; 50 is chance. The table is in docs/data.md.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from condviz.cli.options import add_command, format_table
from condviz.data import scene_tables
from condviz.data.corpora import CORPORA, build, survey
from condviz.data.corpus import RatedPair
from condviz.data.scene_tables import SAME

WORD = re.compile(r"\w+")
LEGEND = "By wording, by shared words: how often, in %, the rating can be guessed from these alone; 50 is chance."


@dataclass(frozen=True)
class Shortcuts:
    """What can be guessed without understanding; 0.5 is chance."""

    condition: float
    """Share of rows for which the wording alone tells whether it is the higher or the lower of its pair (the better
    answer for each wording, on the same rows)."""
    overlap: float
    """Balanced accuracy of telling ratings 4 and 5 from 1 and 2 by the words that the sentences share (best
    threshold, on the same rows)."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = add_command(commands, "corpora", run)
    parser.add_argument("--corpus", action="append", choices=[*CORPORA], help="may be repeated (default: all)")


def run(options: argparse.Namespace) -> None:
    """Measure what the ratings of the corpora give away."""
    rows = []
    for name in options.corpus or CORPORA:
        for part in survey(name).parts:
            if part.problem:
                rows.append((name, part.name, "-", "-", "-", "-"))
                continue
            found = shortcuts(name, build(name, part.name))
            shares = (f"{100 * share:.1f}" for share in (found.condition, found.overlap))
            rows.append((name, part.name, f"{part.rows:,}", f"{part.pairs:,}", *shares))
    head = ("corpus", "part", "texts", "pairs", "by wording", "by shared words")
    print("\n".join([format_table(head, rows, right=range(2, 6)), "", LEGEND]))


def shortcuts(corpus: str, rows: Sequence[RatedPair]) -> Shortcuts:
    """Measure what the rows of a corpus give away."""
    if corpus not in [one.name for one in scene_tables.CORPORA]:
        return measure_shortcuts(rows)
    # Each wording has a handful of rows, so the best answer for each of them on the same rows would say nothing.
    found = measure_order(rows)
    return Shortcuts(condition=found["wording"], overlap=found["overlap"])


def measure_shortcuts(rows: Sequence[RatedPair]) -> Shortcuts:
    """Measure what the wording alone and shared words alone give away; 0.5 for both if there are no rows."""
    if not rows:
        return Shortcuts(condition=0.5, overlap=0.5)
    from scipy.stats import ks_2samp

    highest: dict[int, int] = {}
    for row in rows:
        highest[row.pair] = max(row.label, highest.get(row.pair, 0))
    votes: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in rows:
        votes[row.condition.casefold()][row.label == highest[row.pair]] += 1
    condition = sum(max(count.values()) for count in votes.values()) / len(rows)
    high, low = (
        [word_overlap(row.sentence1, row.sentence2) for row in rows if row.label in labels]
        for labels in ((4, 5), (1, 2))
    )
    # The best threshold is where the two distributions are furthest apart: the statistic of Kolmogorov and Smirnov.
    overlap = (1 + float(cast("Any", ks_2samp(high, low, method="asymp")).statistic)) / 2 if high and low else 0.5
    return Shortcuts(condition=condition, overlap=overlap)


@lru_cache(4096)  # rows side by side share sentences
def words_of(text: str) -> frozenset[str]:
    """Return the different words of a text, whatever their case."""
    return frozenset(WORD.findall(text.casefold()))


def word_overlap(sentence1: str, sentence2: str) -> float:
    """Return the share of words that two sentences have in common, from 0 to 1 (Jaccard)."""
    words1, words2 = words_of(sentence1), words_of(sentence2)
    return len(words1 & words2) / max(1, len(words1 | words2))


def measure_order(rows: Sequence[RatedPair]) -> dict[str, float]:
    """Measure how well the rating is guessed without understanding; 0.5 is chance.

    Returns:
        "wording": Probability that a condition under which a pair agrees gets a higher guess than one under which it
        does not, by the words of its wording in all other tables. "overlap", "length": Probability that a pair that
        agrees shares more words, or is more alike in length, than one that does not.
    """
    high = [row.label == SAME for row in rows]
    length = [-abs(len(row.sentence1) - len(row.sentence2)) for row in rows]
    overlap = [word_overlap(row.sentence1, row.sentence2) for row in rows]
    guesses = {"wording": _guesses(rows), "overlap": overlap, "length": length}
    return {name: _probability(scores, high) for name, scores in guesses.items()}


def _guesses(rows: Sequence[RatedPair]) -> list[float]:
    """Guess each row from how often the words of its wording stand for agreement in other tables: log odds."""
    words = [words_of(row.condition) for row in rows]
    everywhere: Counter[tuple[str, bool]] = Counter()
    within: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for row, found in zip(rows, words, strict=True):
        counts = [(word, row.label == SAME) for word in found]
        everywhere.update(counts)
        within[row.family1].update(counts)

    def odds(word: str, table: str) -> float:
        same, other = (everywhere[word, high] - within[table][word, high] for high in (True, False))
        return math.log((same + 1) / (other + 1))

    return [sum(odds(word, row.family1) for word in found) for row, found in zip(rows, words, strict=True)]


def _probability(scores: Sequence[float], high: Sequence[bool]) -> float:
    """Return the probability that a high row scores above a low one; ties count half (area under the ROC curve)."""
    from scipy.stats import mannwhitneyu

    values, chosen = np.array(scores), np.array(high, dtype=bool)
    if not (pairs := int(chosen.sum()) * int((~chosen).sum())):
        return 0.5
    return float(mannwhitneyu(values[chosen], values[~chosen], method="asymptotic")[0]) / pairs
