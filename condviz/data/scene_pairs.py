"""Rated pairs from the corpus of scenes: two sentences, a condition under which they agree, one under which not.

Each sentence pair gives two rows, as in C-STS. The rating comes from the tags, by this table:

    equal values                                        5
    number of people, animals or objects: next step     2, any other 1
    ordinal: distance d between the ends of n values    5 - 4 d / (n - 1), rounded, between 1 and 4
    nominal: the same taxonomy group                    3
    anything else                                       1
    an aspect that one sentence does not tell           no row

No shortcut decides which of the two conditions is the higher one: every aspect, and every single wording, is as often
the higher as the lower, and both rows of a pair have the same words in common.

Source: written for this project; the protocol of two conditions is that of C-STS (Deshpande et al., EMNLP 2023).
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from condviz.data.scenes import LOCAL, Aspect, Family, Scene

GAP = 2
"""Least difference between the two ratings of a pair; a smaller one would rest on a rule of thumb."""
_COUNTS = "number_of_"
_NOTHING = "none"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class RatedPair:
    """One row: the columns of C-STS, and where it comes from.

    Attributes:
        pair: Number of the sentence pair; two rows share it.
        sentence1, sentence2: The sentences.
        condition: A wording of the aspect.
        label: 1 (different) to 5 (same).
        aspect: Name in aspects.json, or of a local aspect with its family: "sport-001:x_handedness".
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


@dataclass(frozen=True)
class _Edge:
    """A sentence pair with the aspect that is rated lower and the one that is rated higher."""

    first: tuple[Family, Scene]
    second: tuple[Family, Scene]
    low: str
    high: str
    labels: tuple[int, int]


def gold(aspect: Aspect | None, value1: str, value2: str) -> int:
    """Rate two values of an aspect.

    Args:
        aspect: The shared aspect; None for a local one, whose values are alike or not.
        value1: A value as tagged.
        value2: Another.

    Returns:
        1 (different) to 5 (same), by the table at the top of this module.
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
    """Rate two sentences under every aspect that both tell.

    Args:
        first: A sentence with its family.
        second: Another.
        aspects: The shared aspects to ask for.

    Returns:
        Aspect and rating; the name of a local aspect, which only sentences of one family share, begins with the family:
        "sport-001:x_handedness".
    """
    (family1, scene1), (family2, scene2) = first, second
    ratings = []
    for name, value in scene1.aspects.items():
        is_local = name.startswith(LOCAL)
        if name not in scene2.aspects or (is_local and family1.id != family2.id):
            continue
        if is_local or name in aspects:
            node = f"{family1.id}:{name}" if is_local else name
            ratings.append((node, gold(aspects.get(name), value, scene2.aspects[name])))
    return ratings


def build_pairs(
    families: Sequence[Family], aspects: Mapping[str, Aspect], *, seed: int, cross: int = 1
) -> list[RatedPair]:
    """Make rated rows from families, two for each sentence pair.

    To keep families, aspects or wordings unseen, leave them out of `families`, of `aspects`, or of an aspect's
    `phrasings`.

    Args:
        families: The families to use.
        aspects: The shared aspects to ask for; others are not asked. Local aspects always are.
        seed: The same seed and input give the same rows.
        cross: Pairs to look for across families, for each sentence.

    Returns:
        Rows in random order of pairs, the two of a pair side by side, in either order.
    """
    rng = random.Random(seed)
    candidates = [*_within(families), *_across(families, aspects, rng, cross)]
    rng.shuffle(candidates)
    edges = _balance(_choose(candidates, aspects, rng))
    wordings = _wordings(edges, aspects, {family.id: family for family in families}, rng)
    rows = []
    for number, edge in enumerate(edges):
        sides = [edge.first, edge.second]
        rng.shuffle(sides)
        (family1, scene1), (family2, scene2) = sides
        order = [0, 1]
        rng.shuffle(order)
        rows += [
            RatedPair(
                pair=number,
                sentence1=scene1.text,
                sentence2=scene2.text,
                condition=wordings[number][index],
                label=edge.labels[index],
                aspect=(edge.low, edge.high)[index],
                family1=family1.id,
                family2=family2.id,
            )
            for index in order
        ]
    return rows


def keep_pairs(rows: Sequence[RatedPair], count: int, *, seed: int = 0) -> list[RatedPair]:
    """Keep some of the sentence pairs: those with the smallest hashes, whatever else is among the rows.

    Args:
        rows: The two rows of a pair side by side, as `build_pairs` gives them.
        count: Pairs at most.
        seed: Another one keeps others.

    Returns:
        Rows in the order of the hashes.
    """

    def rank(pair: tuple[RatedPair, RatedPair]) -> str:
        texts = "\n".join(sorted((pair[0].sentence1, pair[0].sentence2)))
        return hashlib.sha256(f"{seed}\n{texts}".encode()).hexdigest()

    both = sorted(zip(rows[::2], rows[1::2], strict=True), key=rank)
    return [row for pair in both[:count] for row in pair]


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
    shared = sorted((_overlap(row.sentence1, row.sentence2), row.label > 3) for row in rows if row.label != 3)
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


def _overlap(sentence1: str, sentence2: str) -> float:
    words1, words2 = (set(_WORD.findall(sentence.casefold())) for sentence in (sentence1, sentence2))
    return len(words1 & words2) / max(1, len(words1 | words2))


def _within(families: Sequence[Family]) -> Iterator[tuple[tuple[Family, Scene], tuple[Family, Scene]]]:
    for family in families:
        for scene1, scene2 in combinations(family.scenes, 2):
            yield (family, scene1), (family, scene2)


def _across(
    families: Sequence[Family], aspects: Mapping[str, Aspect], rng: random.Random, count: int
) -> Iterator[tuple[tuple[Family, Scene], tuple[Family, Scene]]]:
    """Pair each sentence with sentences of other families that tell the same value of one of its aspects."""
    tellers: dict[tuple[str, str], list[tuple[Family, Scene]]] = defaultdict(list)
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


def _choose(
    candidates: Sequence[tuple[tuple[Family, Scene], tuple[Family, Scene]]],
    aspects: Mapping[str, Aspect],
    rng: random.Random,
) -> list[_Edge]:
    """Choose two aspects for each pair, so that those that were mostly low become high and the other way round."""
    surplus: Counter[str] = Counter()
    edges = []
    for first, second in candidates:
        ratings = rate(first, second, aspects)
        options = [
            (surplus[high] - surplus[low], rng.random(), low, high, (low_label, high_label))
            for low, low_label in ratings
            for high, high_label in ratings
            if high_label - low_label >= GAP
        ]
        if options:
            _, _, low, high, labels = min(options)
            surplus[high] += 1
            surplus[low] -= 1
            edges.append(_Edge(first, second, low, high, labels))
    return edges


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
    """Give the aspects on the way from `start` to the nearest one that is high too often; there always is one."""
    reached_from: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while surplus[waiting[0]] <= 0:
        node = waiting.popleft()
        for following in arrows.get(node, ()):
            if following not in reached_from:
                reached_from[following] = node
                waiting.append(following)
    way: list[str] = []
    node: str | None = waiting[0]
    while node is not None:
        way.append(node)
        node = reached_from[node]
    return way[::-1]


def _wordings(
    edges: Sequence[_Edge], aspects: Mapping[str, Aspect], families: Mapping[str, Family], rng: random.Random
) -> list[tuple[str, str]]:
    """Give each row a wording, every wording as often to a high as to a low row of its aspect."""
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
