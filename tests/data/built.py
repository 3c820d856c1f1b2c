"""Rows of corpora, built once for all files that look at them: `tests/conftest.py` sends these to one worker."""

from __future__ import annotations

from functools import cache

from condviz.data import corpora
from condviz.data.corpus import RatedPair


@cache
def _build(name: str, part: str, seed: int) -> list[RatedPair]:
    return corpora.build(name, part, seed=seed)


def build(name: str, part: str, seed: int = 0) -> list[RatedPair]:
    return _build(name, part, seed)
