"""Blocks of rated pairs that share sentences and wordings, so that few encodings give many rows.

A model that reads sentence and condition together encodes n sentences under a condition for n (n - 1) / 2 rows. In
single pairs, as `scene_pairs.build_pairs` draws them, each row has a wording of its own and costs two encodings. In a
block an aspect has one wording, all sentences of a family are compared under it, and so are those of other families
that tell the same aspect.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from condviz.data.scene_pairs import GAP, RatedPair, rate
from condviz.data.scenes import Aspect, Family, Scene

NEIGHBOURS = 2
"""Families taken from the same file in a row: they tell alike aspects, and differ in little."""
CONTRASTS = 3
"""Most pairs of conditions that two sentences of a family are compared under; sentences of two families have one."""
MOST_SURPLUS = 40
"""How far an aspect may be the higher one more often than another is, before the two are no longer compared."""
_Place = tuple[Family, Scene]


def build_blocks(
    families: Sequence[Family], aspects: Mapping[str, Aspect], *, seed: int, sentences: int
) -> list[list[RatedPair]]:
    """Divide the families into blocks and rate pairs inside each.

    Args:
        families: The families to use.
        aspects: The shared aspects to ask for, with the wordings to use; local aspects always are.
        seed: The same seed and input give the same blocks.
        sentences: How many sentences a block has, at least; the last one may have fewer.

    Returns:
        For each block rows like those of `scene_pairs.build_pairs`: two for each contrast, the higher one first. Two
        sentences can have several contrasts, which then count as different pairs. Aspects are about as often the
        higher as the lower one. Blocks without a contrast are left out.
    """
    rng = random.Random(seed)
    surplus: Counter[str] = Counter()
    blocks, number = [], 0
    for block in _divide(families, rng, sentences):
        wordings = _Wordings(aspects, rng)
        rows: list[RatedPair] = []
        for first, second in _pairs(block, rng):
            for low, high in _contrasts(first, second, aspects, surplus, rng):
                places = (first, second) if rng.random() < 0.5 else (second, first)
                rows += [_row(number, places, wordings, *item) for item in (high, low)]
                number += 1
        if rows:
            blocks.append(rows)
    return blocks


class _Wordings(dict):
    """One wording for each aspect, drawn when it is first asked for; local aspects have those of their family."""

    def __init__(self, aspects: Mapping[str, Aspect], rng: random.Random) -> None:
        super().__init__()
        self.aspects, self.rng = aspects, rng

    def ask(self, node: str, family: Family) -> str:
        if node not in self:
            local = family.local_phrasings.get(node.rpartition(":")[2])
            self[node] = self.rng.choice(local or self.aspects[node].phrasings)
        return self[node]


def _divide(families: Sequence[Family], rng: random.Random, sentences: int) -> Iterator[list[Family]]:
    """Put runs of families from one file into random order, and cut."""
    shuffled = rng.sample(families, len(families))
    shuffled.sort(key=lambda family: family.id.rpartition("-")[0])
    runs = [shuffled[i : i + NEIGHBOURS] for i in range(0, len(shuffled), NEIGHBOURS)]
    rng.shuffle(runs)
    block: list[Family] = []
    for run in runs:
        block += run
        if sum(len(family.scenes) for family in block) >= sentences:
            yield block
            block = []
    if block:
        yield block


def _pairs(block: Sequence[Family], rng: random.Random) -> Iterator[tuple[_Place, _Place]]:
    """Yield all pairs inside of families, and candidates across; few of those have two aspects to compare."""
    within = [
        ((family, first), (family, second)) for family in block for first, second in combinations(family.scenes, 2)
    ]
    across = [
        ((family1, first), (family2, second))
        for family1, family2 in combinations(block, 2)
        for first in family1.scenes
        for second in family2.scenes
    ]
    yield from within
    yield from rng.sample(across, min(len(across), 8 * max(len(within), len(block))))


def _contrasts(
    first: _Place, second: _Place, aspects: Mapping[str, Aspect], surplus: Counter[str], rng: random.Random
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Choose (low, high) aspects with their ratings; those that were mostly low become high and the other way round."""
    left = dict(rate(first, second, aspects))
    for _ in range(CONTRASTS if first[0].id == second[0].id else 1):
        options = [
            (surplus[high] - surplus[low], rng.random(), low, high)
            for low in left
            for high in left
            if left[high] - left[low] >= GAP and surplus[high] - surplus[low] <= MOST_SURPLUS
        ]
        if not options:
            return
        _, _, low, high = min(options)
        surplus[high] += 1
        surplus[low] -= 1
        yield (low, left.pop(low)), (high, left.pop(high))


def _row(number: int, places: tuple[_Place, _Place], wordings: _Wordings, node: str, label: int) -> RatedPair:
    (family1, scene1), (family2, scene2) = places
    return RatedPair(
        pair=number,
        sentence1=scene1.text,
        sentence2=scene2.text,
        condition=wordings.ask(node, family1),
        label=label,
        aspect=node,
        family1=family1.id,
        family2=family2.id,
    )
