"""Pairs of scenes without a condition: what is alike when none is given."""

from __future__ import annotations

import random
from collections.abc import Sequence

from condviz.data.scene_pairs import RatedPair
from condviz.data.scenes import Family


def build_plain_pairs(families: Sequence[Family], *, seed: int) -> list[RatedPair]:
    """Pair each sentence with its paraphrase (5), and with another family's sentence (1); the condition is blank.

    Args:
        families: At least two; of fewer there are no pairs.
        seed: Decides the other sentences.
    """
    rows = []
    for number, family in enumerate(families if len(families) > 1 else ()):
        base, paraphrase = family.scenes[:2]
        other = random.Random(f"{seed} {family.id}").choice([one for one in families if one.id != family.id])
        for label, text, partner in ((5, paraphrase.text, family), (1, other.scenes[0].text, other)):
            rows.append(RatedPair(number, base.text, text, "", label, "", family.id, partner.id))
    return rows
