"""The gallery of examples: pairs of sentences, conditions, and how alike a careful reader finds them under each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pydantic import TypeAdapter

from condviz.paths import ASSETS

Level = Literal["low", "medium", "high"]


@dataclass(frozen=True)
class Example:
    """One card of the gallery; sentences and conditions fill the form."""

    id: str
    grade: str
    """Either "simple", "realistic" or "data"."""
    domain: str
    title: str
    sentence1: str
    sentence2: str
    conditions: tuple[str, ...]
    expected: tuple[Level, ...]
    """Per condition, how alike the sentences are."""
    note: str = ""
    fails: bool = False
    """The default model gets its order wrong; shown as such."""


@lru_cache(64)
def expected_levels(sentence1: str, sentence2: str) -> dict[str, Level]:
    """Return how alike a careful reader finds a pair of the gallery under its conditions; empty for any other pair."""
    found = (one for one in load_examples() if (one.sentence1, one.sentence2) == (sentence1, sentence2))
    return {condition: level for one in found for condition, level in zip(one.conditions, one.expected, strict=True)}


def load_examples() -> list[Example]:
    """Read the gallery; an absent or damaged file gives an empty one, so that the page starts all the same."""
    try:
        return TypeAdapter(list[Example]).validate_json((ASSETS / "examples.json").read_bytes())
    except (OSError, ValueError):
        return []
