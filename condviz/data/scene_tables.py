"""The corpora of scene tables: six different scenes and five conditions that fit them, with the value of each.

Unlike families of edits, the six sentences share no wording, so nothing but the condition says which of them agree. A
table gives 15 pairs under 5 conditions: equal values are rated 5, different ones 1, and a value that a sentence leaves
open (null) gives no row. A contrast is a pair with one condition under which it agrees and one under which it does not.

    tables         kind "natural": equal values are told as people do, by the same word, a related one, a paraphrase
    tables-hard    kind "hard": equal values are always told by other words
    tables-weak    kind "weak": at least three of the five conditions ask about what models are weak at; the beginning
                   of the id says what: roles, time, amounts, negation, questions, lay (wordings)

    train, validation, test    80, 10 and 10 % of the tables, by a hash of their ids (weak: about 90, 5 and 5 %)
    unseen_domains             all tables of law and history notes

Source: written for this project by a language model (assets/tables/README.md), CC BY 4.0; ratings follow by rule from
the stated values, nobody rated the pairs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, groupby
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from condviz.data import corpus
from condviz.data.corpus import Corpus, Material, Password, RatedPair, fraction
from condviz.data.families import Surplus
from condviz.paths import ASSETS

TABLES = ASSETS / "tables"
"""Folder of the corpus."""
PARTS = ("train", "validation", "test", "unseen_domains")
TEST_SHARE, VALIDATION_SHARE = 0.1, 0.1
UNSEEN_DOMAINS = ("law", "history")
"""Beginnings of the domains that no training sees."""
SENTENCES, ASPECTS, WORDINGS = 6, 5, 3
SAME, DIFFERENT = 5, 1


def _check_blanks(text: str) -> str:
    if not text or text != " ".join(text.split()):
        raise ValueError("it must be a text without blanks at its ends or twice inside")
    return text


Text = Annotated[str, AfterValidator(_check_blanks)]
_CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_CLOSED)
class TableAspect:
    """One aspect of a table: its wordings, and a value for each sentence, None where it is not told."""

    wordings: Annotated[tuple[Text, ...], Field(min_length=WORDINGS, max_length=WORDINGS)]
    values: Annotated[tuple[Text | None, ...], Field(min_length=SENTENCES, max_length=SENTENCES)]


@dataclass(frozen=True, config=_CLOSED)
class SceneTable:
    """Six sentences and what is told about them under five conditions."""

    id: str
    kind: str
    domain: str
    sentences: Annotated[tuple[Text, ...], Field(min_length=SENTENCES, max_length=SENTENCES)]
    aspects: Annotated[tuple[TableAspect, ...], Field(min_length=ASPECTS, max_length=ASPECTS)]


_TABLE = TypeAdapter(SceneTable)


@cache
def load_tables(folder: str | Path = TABLES) -> tuple[SceneTable, ...]:
    """Read all tables, file by file in alphabetical order, once per process; a DataError names the line."""
    return corpus.read_entries(folder, _TABLE)


def group_of(table: SceneTable) -> str:
    """Return the part that a table belongs to; a table added later moves no other."""
    if table.domain.casefold().startswith(UNSEEN_DOMAINS):
        return "unseen_domains"
    place = fraction(table.id)
    if place < TEST_SHARE:
        return "test"
    return "validation" if place < TEST_SHARE + VALIDATION_SHARE else "train"


def contrast_rows(tables: Sequence[SceneTable], *, seed: int = 0, one_wording: bool = False) -> list[RatedPair]:
    """Build two rows for each contrast, side by side in random order; no row is in two contrasts.

    A pair can have two contrasts, the second one with swapped sentences. Conditions of a table are about as often the
    higher as the lower one. The same table always gives the same rows, whatever other tables are there. With
    `one_wording` an aspect has the same one in all rows of its table.
    """
    rows = []
    for table in tables:
        rng = random.Random(f"{seed} {table.id}")
        fixed = {aspect: rng.choice(aspect.wordings) for aspect in table.aspects}
        pairs = list(combinations(range(SENTENCES), 2))
        rng.shuffle(pairs)
        surplus = Surplus()
        for pair in pairs:
            places = pair if rng.random() < 0.5 else (pair[1], pair[0])
            for high, low in _contrasts(rate(table, *pair), surplus, rng):
                # A second contrast of the pair is asked the other way round: readers of a table find the two rows of a
                # contrast by their sentences, in this order. Five aspects give two contrasts at most.
                places = places[1], places[0]
                both = [(high, SAME), (low, DIFFERENT)]
                rng.shuffle(both)
                number = len(rows) // 2
                for aspect, label in both:
                    wording = fixed[aspect] if one_wording else rng.choice(aspect.wordings)
                    rows.append(make_row(number, table, places, aspect, wording, label))
    return rows


def build_blocks(tables: Sequence[SceneTable], *, seed: int, sentences: int) -> list[list[RatedPair]]:
    """Build blocks of whole tables, in random order, with at least so many sentences each."""
    tables = random.Random(seed).sample(tables, len(tables))
    size = math.ceil(sentences / SENTENCES)
    rows = contrast_rows(tables, seed=seed, one_wording=True)
    block_of = {table.id: place // size for place, table in enumerate(tables)}
    return [list(block) for _, block in groupby(rows, key=lambda row: block_of[row.family1])]


def rate(table: SceneTable, first: int, second: int) -> list[tuple[TableAspect, int]]:
    """Rate two sentences of a table, by their places, under every aspect that both tell."""
    return [
        (aspect, SAME if aspect.values[first] == aspect.values[second] else DIFFERENT)
        for aspect in table.aspects
        if aspect.values[first] is not None and aspect.values[second] is not None
    ]


def _contrasts(
    ratings: Sequence[tuple[TableAspect, int]], surplus: Surplus, rng: random.Random
) -> Iterator[tuple[TableAspect, TableAspect]]:
    """Choose (high, low) aspects, as many as there are without asking an aspect twice."""
    left = dict(ratings)
    while chosen := surplus.choose([(low, high) for high in left for low in left if left[high] > left[low]], rng):
        low, high = chosen
        del left[high], left[low]
        yield high, low


def make_row(
    number: int, table: SceneTable, places: tuple[int, int], aspect: TableAspect, wording: str, label: int
) -> RatedPair:
    """Return a row on two sentences of a table, by their places."""
    first, second = (table.sentences[place] for place in places)
    return RatedPair(number, first, second, wording, label, f"{table.id}:{aspect.wordings[0]}", table.id, table.id)


def _load(folder: Path, part: str, _: Password, *, kind: str) -> Material:
    tables = [table for table in load_tables(folder) if table.kind == kind and group_of(table) == part]
    conditions = frozenset().union(*(aspect.wordings for table in tables for aspect in table.aspects))
    builders = {"rows": partial(contrast_rows, tables), "blocks": partial(build_blocks, tables)}
    return Material(**builders, texts=SENTENCES * len(tables), conditions=conditions)


CORPUS = Corpus(
    name="tables",
    title="tables of six different scenes under five conditions of their own",
    licence="CC BY 4.0",
    source="assets/tables, written for this project by a language model; ratings by rule from stated values",
    attribution="CondViz scene tables, CC BY 4.0",
    files=("natural-*.jsonl",),
    load=partial(_load, kind="natural"),
    parts=PARTS,
    home=TABLES,
)


def _others(kind: str, title: str, parts: tuple[str, ...] = PARTS) -> Corpus:
    files, load = (f"{kind}-*.jsonl",), partial(_load, kind=kind)
    return replace(CORPUS, name=f"tables-{kind}", title=title, files=files, load=load, parts=parts)


CORPORA = (
    CORPUS,
    _others("hard", "tables of scenes that tell the same value by other words", PARTS[:3]),
    _others("weak", "tables about what models are weak at: roles, time, amounts, negation, questions, lay wordings"),
)
