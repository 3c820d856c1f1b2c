"""Points of a map from our own scenes: a few conditions with 20 sentences each, whose values are tagged.

After Hyper-CL (Yoo et al. 2024), figure 4 and section 6: three conditions, 20 sentences each, every sentence under one
condition. Their sentences are from C-STS; ours are from families of scenes that no training has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from condviz.analysis.map_builder import VALUE
from condviz.analysis.map_points import MapPoints
from condviz.data.scenes import Aspect, Family, load_aspects, load_families
from condviz.data.splits import UNSEEN_ASPECTS, group_of
from condviz.errors import DataError

DEFAULT_ASPECTS = ("number_of_people", "time_of_day", "weather")
PER_GROUP = 20
NUM_VALUES = 5
"""Values per condition: four sentences each."""


def scene_points(
    names: Sequence[str] = DEFAULT_ASPECTS,
    *,
    per_group: int = PER_GROUP,
    seed: int = 0,
    families: Sequence[Family] | None = None,
    aspects: Mapping[str, Aspect] | None = None,
) -> MapPoints:
    """Draw sentences for conditions, the same number for each of the commonest values as far as there are any.

    Args:
        names: Aspects, each of which becomes one condition in its first wording.
        per_group: Sentences per condition.
        seed: Of the draw.
        families: The scenes; None reads ours. Only families of the test part are used, each at most once.
        aspects: All aspects; None reads ours.

    Returns:
        Points with the columns "value" (the tag), "aspect" and "domain".

    Raises:
        DataError: If an aspect does not exist, or too few families tell it.
    """
    families = load_families() if families is None else families
    aspects = load_aspects() if aspects is None else aspects
    unknown = [name for name in names if name not in aspects]
    if unknown:
        raise DataError(f"There is no aspect {unknown[0]!r} in the scenes. Aspects: {', '.join(sorted(aspects))}.")
    generator = np.random.default_rng(seed)
    shuffled = [families[i] for i in generator.permutation(len(families)) if group_of(families[i]) == "test"]
    told = {name: _by_value(shuffled, name) for name in names}
    used: set[str] = set()
    rows: dict[str, list[tuple[str, str, str]]] = {}
    # The rarest aspect chooses first, so that common ones leave it enough.
    for name in sorted(names, key=lambda name: sum(map(len, told[name].values()))):
        rows[name] = _draw(told[name], used, per_group)
        if len(rows[name]) < per_group:
            raise DataError(
                f"Only {len(rows[name])} test families tell {name} beside {', '.join(set(names) - {name})}; "
                f"{per_group} are needed. Choose other aspects, or fewer sentences."
            )
    flat = [(aspects[name].phrasings[0], name, *row) for name in names for row in rows[name]]
    condition, aspect, value, text, domain = zip(*flat, strict=True)
    return MapPoints(text, condition, {VALUE: value, "aspect": aspect, "domain": domain})


def held_out_triples(draws: int, *, seed: int = 0) -> list[tuple[str, str, str]]:
    """Draw triples of aspects that no training has seen and of which each has enough test families.

    Raises:
        DataError: If fewer than three aspects have.
    """
    families = [family for family in load_families() if group_of(family) == "test"]
    enough = [
        name
        for name in sorted(UNSEEN_ASPECTS)
        if sum(name in family.scenes[0].aspects for family in families) >= 1.3 * PER_GROUP
    ]
    if len(enough) < 3:
        raise DataError(f"Only {len(enough)} held-out aspects are told by enough test families.")
    generator = np.random.default_rng(seed)
    return [tuple(generator.choice(enough, 3, replace=False).tolist()) for _ in range(draws)]


def _by_value(families: Sequence[Family], name: str) -> dict[str, list[tuple[str, str, str]]]:
    """Give value -> (family, text, domain) of one sentence per family and value, commonest value first."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for family in families:
        for value, scene in {scene.aspects[name]: scene for scene in family.scenes if name in scene.aspects}.items():
            found.setdefault(value, []).append((family.id, scene.text, family.domain))
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _draw(told: Mapping[str, list[tuple[str, str, str]]], used: set[str], number: int) -> list[tuple[str, str, str]]:
    """Take sentences value by value in turn: the commonest values first, the others where those run out."""
    rows: list[tuple[str, str, str]] = []
    names = list(told)
    for values in (names[:NUM_VALUES], names[NUM_VALUES:]):
        queues = {value: list(told[value]) for value in values}
        while len(rows) < number and any(queues.values()):
            for value, queue in queues.items():
                while queue:
                    family, text, domain = queue.pop(0)
                    if family not in used:
                        used.add(family)
                        rows.append((value, text, domain))
                        break
                if len(rows) == number:
                    break
    return sorted(rows, key=lambda row: names.index(row[0]))
