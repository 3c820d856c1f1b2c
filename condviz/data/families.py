"""Families of scenes: texts with tagged facts, and how two values of a fact are rated.

    equal values                                        5
    number of people, animals or objects: next step     2, any other 1
    ordinal: distance d between the ends of n values    5 - 4 d / (n - 1), rounded, between 1 and 4
    nominal: the same taxonomy group                    3
    anything else                                       1
    an aspect that one sentence does not tell           no row

So ratings follow by rule from stated values: nobody rated these pairs.

Source: written for this project.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from condviz.errors import DataError
from condviz.paths import ASSETS

LOCAL = "x_"
"""Prefix of aspects that only one family uses; they mean different things in different families."""
_COUNTS = "number_of_"
_NOTHING = "none"


@dataclass(frozen=True)
class Aspect:
    """A question that can be asked of many scenes."""

    name: str
    """For instance "time_of_day"."""
    kind: Literal["ordinal", "categorical", "nominal"]
    """Either "ordinal" (values have an order), "categorical" (a closed set), or "nominal" (values lie in groups)."""
    phrasings: tuple[str, ...]
    """Wordings of the condition."""
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
    """The sentence."""
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
    """For instance "hospitals"."""
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
    """Rate two sentences under every aspect that both tell.

    Returns:
        Aspect and rating; the name of a local aspect, which only sentences of one family share, begins with the family:
        "sport-001:x_handedness".
    """
    (family1, scene1), (family2, scene2) = first, second
    ratings = []
    for name, value in scene1.aspects.items():
        if name not in scene2.aspects:
            continue
        is_local = name.startswith(LOCAL)
        if is_local and family1.id != family2.id:
            continue
        if is_local or name in aspects:
            node = f"{family1.id}:{name}" if is_local else name
            ratings.append((node, gold(aspects.get(name), value, scene2.aspects[name])))
    return ratings


@cache
def wordings(corpus: str) -> Mapping[str, tuple[str, ...]]:
    """Return aspect -> our wordings of the condition, for a corpus that has tags but no conditions.

    Raises:
        DataError: If assets/wordings.json is missing or damaged.
    """
    path = ASSETS / "wordings.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))[corpus]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be used: {error}. Restore the folder assets, or set CONDVIZ_ASSETS.") from error
    return {name: tuple(phrasings) for name, phrasings in entries.items()}
