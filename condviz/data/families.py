"""Families of scenes: texts with tagged facts, and how two values of a fact are rated.

    equal values                                        5
    number of people, animals or objects: next step     2, any other 1
    ordinal: distance d between the ends of n values    5 - 4 d / (n - 1), rounded, between 1 and 4
    nominal: the same taxonomy group                    3
    anything else                                       1
    an aspect that one sentence does not tell           no row

So ratings follow by rule from stated values: nobody rated these pairs.

Pairs are two sentences, a condition under which they agree, and one under which they do not: a contrast, which gives
two rows, as in C-STS. No shortcut decides which of the two conditions is the higher one: every aspect, and every single
wording, is as often the higher as the lower, and both rows of a pair share the same words.

Rows come singly or in blocks. A model that reads sentence and condition together encodes n sentences under a condition
for n (n - 1) / 2 rows; single pairs have a wording each and cost two encodings a row. In a block an aspect has one
wording, and all sentences that tell it are compared under it, so that few encodings give many rows.

Source: written for this project; the protocol of two conditions is that of C-STS (Deshpande et al., EMNLP 2023).
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate, combinations, pairwise
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from condviz.data.corpus import Material, RatedPair
from condviz.errors import DataError
from condviz.paths import ASSETS

LOCAL = "x_"
"""Prefix of aspects that only one family uses; they mean different things in different families."""
_COUNTS = "number_of_"
_NOTHING = "none"


@dataclass(frozen=True)
class Aspect:
    """A question that can be asked of many scenes, in several wordings (`phrasings`)."""

    name: str
    kind: Literal["ordinal", "categorical", "nominal"]
    """Either "ordinal" (values have an order), "categorical" (a closed set), or "nominal" (values lie in groups)."""
    phrasings: tuple[str, ...]
    values: tuple[str, ...] = ()
    """The values of an ordinal or categorical aspect, in order; empty for a nominal one."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Group -> values of a nominal aspect; empty for the others. A group called "none" holds values that say that
    there is nothing, so its members are not alike."""

    def group_of(self, value: str) -> str | None:
        """Return the group of a nominal value, or None if it is in none."""
        return next((group for group, members in self.groups.items() if value in members), None)


@dataclass(frozen=True)
class Scene:
    """One sentence of a family."""

    role: str
    """Either "base", "paraphrase" or "edit"."""
    text: str
    aspects: Mapping[str, str]
    """Aspect -> value, as told by the sentence."""
    changed: tuple[str, ...] = ()
    """Aspects of an edit that differ from the base; empty for the other roles."""


@dataclass(frozen=True)
class Family:
    """Sentences about one scene."""

    id: str
    """File and number, for instance "sport-001"."""
    domain: str
    scenes: Annotated[tuple[Scene, ...], Field(alias="sentences")]  # as the files call them
    """In the order of `ROLES`."""
    local_phrasings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Local aspect -> wordings of the condition."""


def gold(aspect: Aspect | None, value1: str, value2: str) -> int:
    """Rate two values of an aspect from 1 (different) to 5 (same), by the table at the top of this module.

    An aspect that is None is a local one, whose values are alike or not.
    """
    if value1 == value2:
        return 5
    if aspect is None or aspect.kind == "categorical":
        return 1
    if aspect.kind == "nominal":
        group = aspect.group_of(value1)
        return 3 if group not in {None, _NOTHING} and group == aspect.group_of(value2) else 1
    distance = abs(aspect.values.index(value1) - aspect.values.index(value2))
    if aspect.name.startswith(_COUNTS):
        return 2 if distance == 1 else 1
    return min(4, max(1, round(5 - 4 * distance / (len(aspect.values) - 1))))


def rate(
    first: tuple[Family, Scene], second: tuple[Family, Scene], aspects: Mapping[str, Aspect]
) -> list[tuple[str, int]]:
    """Rate two sentences under every aspect that both tell: aspect and rating.

    A local aspect, which only sentences of one family share, is named with the family: "sport-001:x_handedness".
    """
    (family1, scene1), (family2, scene2) = first, second
    ratings = []
    for name, value in scene1.aspects.items():
        local = name.startswith(LOCAL)
        if name in scene2.aspects and (family1.id == family2.id if local else name in aspects):
            node = f"{family1.id}:{name}" if local else name
            ratings.append((node, gold(aspects.get(name), value, scene2.aspects[name])))
    return ratings


@cache
def wordings(corpus: str) -> Mapping[str, tuple[str, ...]]:
    """Return aspect -> our wordings of the condition, for a corpus that has tags but no conditions."""
    path = ASSETS / "wordings.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))[corpus]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be used: {error}. Restore the folder assets, or set CONDVIZ_ASSETS.") from error
    return {name: tuple(phrasings) for name, phrasings in entries.items()}


# ---- pairs: two sentences, a condition under which they agree, one under which they do not ---------------------------

GAP = 2
"""Least difference between the two ratings of a pair; a smaller one would rest on a rule of thumb."""
NEIGHBOURS = 2
"""Families of a block taken from the same file in a row: they tell similar aspects, and differ in little."""
CONTRASTS = 3
"""Contrasts of two sentences of one family in a block at most; sentences of two families have one."""
MOST_SURPLUS = 40
"""How far an aspect of the blocks may be the higher one more often than another, before they are no longer compared."""
Place = tuple[Family, Scene]
T = TypeVar("T", bound=Hashable)


def from_families(families: Sequence[Family], aspects: Mapping[str, Aspect], *, cross: int = 1) -> Material:
    """Build pairs (without repeats) and blocks of families; arguments as in `build_pairs`."""
    own = (wordings for family in families for wordings in family.local_phrasings.values())
    return Material(
        rows=lambda seed: without_repeats(build_pairs(families, aspects, seed=seed, cross=cross)),
        blocks=partial(build_blocks, families, aspects),
        texts=sum(len(family.scenes) for family in families),
        conditions=frozenset().union(*(aspect.phrasings for aspect in aspects.values()), *own),
    )


@dataclass(frozen=True)
class _Edge:
    """A sentence pair with the aspect that is rated lower and the one that is rated higher."""

    first: Place
    second: Place
    low: str
    high: str
    labels: tuple[int, int]


def build_pairs(
    families: Sequence[Family], aspects: Mapping[str, Aspect], *, seed: int, cross: int = 1
) -> list[RatedPair]:
    """Build rated rows from families, two for each sentence pair: in random order, the two of a pair side by side.

    Local aspects are always asked, shared ones only if they are in `aspects`. To keep families, aspects or wordings
    unseen, leave them out of `families`, of `aspects`, or of an aspect's `phrasings`. For each sentence, `cross` pairs
    across families are looked for.
    """
    rng = random.Random(seed)
    candidates = [*_within(families), *_across(families, aspects, rng, cross)]
    rng.shuffle(candidates)
    surplus, edges = Surplus(), []
    for first, second in candidates:
        ratings = dict(rate(first, second, aspects))
        wide = [(low, high) for low in ratings for high in ratings if ratings[high] - ratings[low] >= GAP]
        if chosen := surplus.choose(wide, rng):
            low, high = chosen
            edges.append(_Edge(first, second, low, high, (ratings[low], ratings[high])))
    edges = _balance(edges)
    wordings = _wordings(edges, aspects, {family.id: family for family in families}, rng)
    rows = []
    for number, edge in enumerate(edges):
        sides = [edge.first, edge.second]
        rng.shuffle(sides)
        both = list(zip(wordings[number], (edge.low, edge.high), edge.labels, strict=True))
        rng.shuffle(both)
        rows += [_row(number, sides, *one) for one in both]
    return rows


def without_repeats(rows: Sequence[RatedPair]) -> list[RatedPair]:
    """Keep the first of pairs that were drawn twice: readers of a table find the two rows by their sentences."""
    seen: set[frozenset[str]] = set()
    kept = []
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        texts = frozenset((first.sentence1, first.sentence2))
        if len(texts) == 2 and texts not in seen:
            seen.add(texts)
            kept += [first, second]
    return kept


def _within(families: Sequence[Family]) -> Iterator[tuple[Place, Place]]:
    for family in families:
        for scene1, scene2 in combinations(family.scenes, 2):
            yield (family, scene1), (family, scene2)


def _across(
    families: Sequence[Family], aspects: Mapping[str, Aspect], rng: random.Random, count: int
) -> Iterator[tuple[Place, Place]]:
    """Pair each sentence with sentences of other families that tell the same value of one of its aspects."""
    tellers: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for family in families:
        for scene in family.scenes:
            for name, value in scene.aspects.items():
                if name in aspects:
                    tellers[name, value].append((family, scene))
    for family in families:
        for scene in family.scenes:
            shared = [item for item in scene.aspects.items() if item[0] in aspects]
            for _ in range(count if shared else 0):
                partner = rng.choice(tellers[rng.choice(shared)])
                if partner[0].id != family.id:
                    yield (family, scene), partner


class Surplus(Counter[Hashable]):
    """How much more often each aspect was the higher one of a contrast than the lower one."""

    def choose(self, contrasts: Iterable[tuple[T, T]], rng: random.Random) -> tuple[T, T] | None:
        """Choose (low, high) so that what was mostly low becomes high and the other way round; None of none."""
        options = [(self[high] - self[low], rng.random(), low, high) for low, high in contrasts]
        if not options:
            return None
        _, _, low, high = min(options, key=lambda option: option[:2])
        self[high] += 1
        self[low] -= 1
        return low, high


def _balance(edges: Sequence[_Edge]) -> list[_Edge]:
    """Drop as few pairs as are needed to make every aspect as often high as low.

    Seen as arrows from the low to the high aspect: an aspect that is low too often has more arrows out than in. A
    shortest way from such an aspect to one that is high too often is taken out, until none is left.
    """
    surplus: Counter[str] = Counter()
    arrows: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, edge in enumerate(edges):
        surplus[edge.high] += 1
        surplus[edge.low] -= 1
        arrows[edge.low][edge.high].append(index)
    dropped: set[int] = set()
    for start in sorted(surplus):
        while surplus[start] < 0:
            way = _shortest_way(start, arrows, surplus)
            for low, high in pairwise(way):
                dropped.add(arrows[low][high].pop())
                if not arrows[low][high]:
                    del arrows[low][high]
            surplus[start] += 1
            surplus[way[-1]] -= 1
    return [edge for index, edge in enumerate(edges) if index not in dropped]


def _shortest_way(
    start: str, arrows: Mapping[str, Mapping[str, Sequence[int]]], surplus: Mapping[str, int]
) -> list[str]:
    """Return the aspects on the way from `start` to the nearest one that is high too often; there always is one."""
    ways = {start: [start]}
    waiting = deque([start])
    while surplus[waiting[0]] <= 0:
        node = waiting.popleft()
        for following in arrows.get(node, ()):
            if following not in ways:
                ways[following] = [*ways[node], following]
                waiting.append(following)
    return ways[waiting[0]]


def _wordings(
    edges: Sequence[_Edge], aspects: Mapping[str, Aspect], families: Mapping[str, Family], rng: random.Random
) -> list[tuple[str, str]]:
    """Choose a wording for each row, every wording as often for a high as for a low row of its aspect."""
    places: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for index, edge in enumerate(edges):
        places[edge.low][0].append(index)
        places[edge.high][1].append(index)
    found: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for node, sides in places.items():
        family, _, name = node.rpartition(":")
        phrasings = list(families[family].local_phrasings[name] if family else aspects[node].phrasings)
        rng.shuffle(phrasings)
        for wording_of, indices in zip(found, sides, strict=True):
            rng.shuffle(indices)
            for place, index in enumerate(indices):
                wording_of[index] = phrasings[place % len(phrasings)]
    return [(found[0][index], found[1][index]) for index in range(len(edges))]


def build_blocks(
    families: Sequence[Family], aspects: Mapping[str, Aspect], *, seed: int, sentences: int
) -> list[list[RatedPair]]:
    """Divide the families into blocks of at least so many `sentences`, but for the last, and rate pairs inside each.

    Rows are like those of `build_pairs`, the higher one of a contrast first. Two sentences can have several contrasts,
    which then count as different pairs. Aspects are about as often the higher as the lower one. Blocks without a
    contrast are left out.
    """
    rng = random.Random(seed)
    surplus = Surplus()
    blocks, number = [], 0
    for block in _divide(families, rng, sentences):
        wordings: dict[str, str] = {}
        rows: list[RatedPair] = []
        for first, second in _block_pairs(block, rng):
            for low, high in _contrasts(first, second, aspects, surplus, rng):
                places = (first, second) if rng.random() < 0.5 else (second, first)
                for node, label in (high, low):
                    if node not in wordings:  # drawn when it is first asked for
                        local = places[0][0].local_phrasings.get(node.rpartition(":")[2])
                        wordings[node] = rng.choice(local or aspects[node].phrasings)
                    rows.append(_row(number, places, wordings[node], node, label))
                number += 1
        if rows:
            blocks.append(rows)
    return blocks


def _divide(families: Sequence[Family], rng: random.Random, sentences: int) -> Iterator[list[Family]]:
    """Shuffle runs of families from one file, and cut them into blocks."""
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


def _block_pairs(block: Sequence[Family], rng: random.Random) -> Iterator[tuple[Place, Place]]:
    """Yield all pairs inside of families, and candidates across; few of those have two aspects to compare."""
    within = list(_within(block))
    yield from within
    # Pairs across are numbered, family by family, and only those that are drawn are built: there are thousands.
    couples = list(combinations(block, 2))
    ends = list(accumulate(len(family1.scenes) * len(family2.scenes) for family1, family2 in couples))
    number = ends[-1] if ends else 0
    for place in rng.sample(range(number), min(number, 8 * max(len(within), len(block)))):
        couple = bisect_right(ends, place)
        family1, family2 = couples[couple]
        row, column = divmod(place - (ends[couple - 1] if couple else 0), len(family2.scenes))
        yield (family1, family1.scenes[row]), (family2, family2.scenes[column])


def _contrasts(
    first: Place, second: Place, aspects: Mapping[str, Aspect], surplus: Surplus, rng: random.Random
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Choose (low, high) aspects with their ratings."""
    left = dict(rate(first, second, aspects))
    if not left or max(left.values()) - min(left.values()) < GAP:  # most pairs
        return
    for _ in range(CONTRASTS if first[0].id == second[0].id else 1):
        wide = [(low, high) for low in left for high in left if left[high] - left[low] >= GAP]
        wide = [(low, high) for low, high in wide if surplus[high] - surplus[low] <= MOST_SURPLUS]
        if (chosen := surplus.choose(wide, rng)) is None:
            return
        low, high = chosen
        yield (low, left.pop(low)), (high, left.pop(high))


def _row(number: int, places: Sequence[Place], condition: str, node: str, label: int) -> RatedPair:
    (family1, scene1), (family2, scene2) = places
    return RatedPair(number, scene1.text, scene2.text, condition, label, node, family1.id, family2.id)
