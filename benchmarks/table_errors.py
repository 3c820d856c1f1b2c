"""What the wrongly ordered contrasts of the natural tables have in common: python -m benchmarks.table_errors [--docs].

All contrasts of the test part and of the unseen domains, by the encoders that read sentence and condition together.
First how many of them err on the same contrast, beside what would be expected if each erred on its own; then the share
in the right order by how the value is told, by length and by domain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.common import fill, options
from condviz.data.corpus import WORD, RatedPair
from condviz.data.scene_tables import SAME, UNSEEN_DOMAINS, Table, contrast_rows, group_of, load_tables
from condviz.evaluation.scoreboard import markdown_table
from condviz.models.registry import load
from condviz.types import columns

MODELS = ("bi-encoder", "case", "csr-bi", "csr-prefix")
PARTS = ("test", "unseen_domains")
STEM, SHORT, LONG, FEW = 4, 38, 46, 30
"""Letters by which words are compared; words of both sentences in short and in long pairs; contrasts that a domain
needs for a line of its own."""


@dataclass(frozen=True)
class Contrast:
    """A pair of sentences that agrees under one condition and differs under another: places of the two rows."""

    table: Table
    high: RatedPair
    places: tuple[int, int]

    @property
    def value(self) -> str:
        """What the two sentences share."""
        aspect = next(aspect for aspect in self.table.aspects if self.high.condition in aspect.wordings)
        return aspect.values[self.table.sentences.index(self.high.sentence1)]

    def groups(self) -> Iterator[tuple[str, str]]:
        """Yield (property, group) for each way of dividing the contrasts."""
        sentences = self.high.sentence1, self.high.sentence2
        named = sum(bool(_stems(self.value) & _stems(sentence)) for sentence in sentences)
        yield "a word of the shared value occurs in", ("neither sentence", "one sentence", "both sentences")[named]
        words = sum(len(sentence.split()) for sentence in sentences)
        size = "long" if words > LONG else "short" if words <= SHORT else "medium"
        yield f"sentences together (short: up to {SHORT} words, long: more than {LONG})", size
        yield "domain", self.table.domain


def find_contrasts(tables: Sequence[Table]) -> tuple[list[RatedPair], list[Contrast]]:
    """Return all rows, and their contrasts; `places` are those of the higher and of the lower row."""
    by_id, rows, contrasts = {table.id: table for table in tables}, contrast_rows(tables), []
    for place in range(0, len(rows), 2):
        high, low = sorted((place, place + 1), key=lambda one: rows[one].label != SAME)
        contrasts.append(Contrast(by_id[rows[high].family1], rows[high], (high, low)))
    return rows, contrasts


def errors_together(right: np.ndarray) -> list[list[str]]:
    """Count contrasts by how many models are wrong, beside models that err on their own: rows of a table.

    Args:
        right: (models, contrasts) whether the order is right.
    """
    wrong = np.bincount((~right).sum(axis=0), minlength=len(right) + 1) / right.shape[1]
    alone = np.ones(1)
    for share in right.mean(axis=1):
        alone = np.convolve(alone, (share, 1 - share))
    both = enumerate(zip(wrong, alone, strict=True))
    return [[str(count), _percent(found), _percent(by_chance)] for count, (found, by_chance) in both]


def shares(contrasts: Sequence[Contrast], right: np.ndarray) -> list[list[str]]:
    """Give the share in the right order, mean of the models, by group: rows of a table, the lowest share first."""
    groups: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for contrast, found in zip(contrasts, right.mean(axis=0), strict=True):
        for name, group in contrast.groups():
            groups[name][group].append(found)
    rows = []
    for name, divided in groups.items():
        large = {group: found for group, found in divided.items() if len(found) >= FEW}
        for group, found in sorted(large.items(), key=lambda item: np.mean(item[1])):
            error = 1.96 * np.std(found) / len(found) ** 0.5
            rows.append([name, group, str(len(found)), f"{_percent(np.mean(found))} ± {_percent(error)}"])
    return rows


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in WORD.findall(text.casefold()) if len(word) >= STEM}


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def main() -> None:
    """Score all contrasts and print the tables."""
    chosen = options(__doc__).parse_args()
    tables = [table for table in load_tables() if table.kind == "natural" and group_of(table) in PARTS]
    rows, contrasts = find_contrasts(tables)
    high, low = np.array([contrast.places for contrast in contrasts]).T
    right = []
    for name in MODELS:
        scores = load(name, precision="float32").score(*columns(rows))
        right.append(scores[high] > scores[low])
    right = np.stack(right)
    about = f"{len(contrasts):,} contrasts of {len(tables)} tables, also of {' and '.join(UNSEEN_DOMAINS)}."
    together = markdown_table(
        ["models that are wrong", "contrasts, %", "if each erred on its own, %"], errors_together(right)
    )
    divided = markdown_table(["what", "group", "contrasts", "in order, %"], shares(contrasts, right))
    text = f"{about} Models: {', '.join(MODELS)}.\n\n{together}\n\n{divided}"
    print(text)
    if chosen.docs:
        fill("table-errors", text)


if __name__ == "__main__":
    main()
