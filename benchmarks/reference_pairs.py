"""Draw the reference pairs behind percentiles from the scenes: python -m benchmarks.reference_pairs.

From families that no model is trained on and none is chosen by. Score them then: python -m benchmarks.stored reference
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, groupby
from operator import itemgetter

import numpy as np
import pandas as pd

from condviz.analysis.reference import PAIRS
from condviz.data.families import LOCAL, Family, Scene, rate
from condviz.data.files import write_text
from condviz.data.scenes import group_of, load_aspects, load_families, seen_phrasings

UNTRAINED = ("test", "unseen_domains")
"""Groups of families that no training, and no choice of weights, has seen."""
PER_KIND = 24
"""Pairs of each rating from one family, and as many from two."""
LONGEST = 240
"""Characters of a sentence."""


def draw_pairs(seed: int = 0) -> list[dict[str, object]]:
    """Draw the reference pairs from the families that no model was trained on.

    As many of each rating, half of them from one family and half from two. Every family gives one pair, and aspects
    that have been asked least are asked next; ratings follow by the rule of the scenes, in seen wordings.
    """
    rng, aspects = np.random.default_rng(seed), load_aspects()
    families = [family for family in load_families() if group_of(family) in UNTRAINED]
    found = list(_candidates(families, rng))
    asked: Counter[str] = Counter()
    used: set[str] = set()
    rows = []
    for rating in (4, 2, 3, 1, 5):  # the rarest first
        for within in (True, False):
            kind = [item for item in found if item[0] == rating and (item[2] is item[4]) == within]
            kind = [kind[place] for place in rng.permutation(len(kind))]
            for _ in range(PER_KIND):
                free = (item for item in kind if not used & {item[2].id, item[4].id})
                _, name, family1, scene1, family2, scene2 = min(free, key=lambda item: asked[item[1]])
                asked[name] += 1
                used |= {family1.id, family2.id}
                own = name.startswith(LOCAL)
                texts = family1.local_phrasings[name] if own else seen_phrasings(aspects[name])
                rows.append({
                    "sentence1": scene1.text, "sentence2": scene2.text, "condition": str(rng.choice(texts)),
                    "label": rating, "source_family1": family1.id, "source_family2": family2.id, "aspect": name,
                })  # fmt: skip
    return rows


def _candidates(
    families: list[Family], rng: np.random.Generator
) -> Iterator[tuple[int, str, Family, Scene, Family, Scene]]:
    """Yield the rated pairs inside of each family, and those of as many random pairs of families."""
    aspects = load_aspects()
    told = [(family, scene) for family in families for scene in family.scenes if len(scene.text) <= LONGEST]
    inside = [pair for _, own in groupby(told, itemgetter(0)) for pair in combinations(own, 2)]
    inside = [pair for pair in inside if pair[0][1].text != pair[1][1].text]
    mixed = [(told[one], told[two]) for one, two in rng.integers(len(told), size=(len(inside), 2))]
    for first, second in (*inside, *(pair for pair in mixed if pair[0][0] is not pair[1][0])):
        for name, rating in rate(first, second, aspects):
            yield rating, name.rpartition(":")[2], *first, *second


if __name__ == "__main__":
    write_text(PAIRS, pd.DataFrame(draw_pairs()).to_csv(index=False, lineterminator="\n"))
