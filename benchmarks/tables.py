"""Check the tables of scenes against the rules of their corpus: python -m benchmarks tables [--folder FOLDER]."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from benchmarks.corpora import LEGEND, measure_order
from condviz.cli.options import add_command, format_table
from condviz.data.corpus import RatedPair
from condviz.data.scene_tables import (
    PARTS,
    SENTENCES,
    TABLES,
    SceneTable,
    TableAspect,
    contrast_rows,
    group_of,
    load_tables,
    make_row,
    rate,
)
from condviz.errors import DataError

KINDS = ("natural", "hard", "weak")
WORDS = (8, 30)
"""Least and most words of a sentence."""
VALUES = (2, 3)
"""Least and most different values of an aspect."""
MOST_UNTOLD, MOST_COMMON = 1, 1
"""Most nulls of an aspect, and most aspects of a table whose wordings other tables use, too."""
LEAST_CONTRASTS = 8
"""Pairs of a table, of 15, that agree under one condition and differ under another."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = add_command(commands, "tables", run)
    parser.add_argument("--folder", metavar="FOLDER", help="folder of .jsonl files (default: assets/tables)")


def run(options: argparse.Namespace) -> None:
    """Check the scene tables against their rules.

    They are counted, and what can be guessed about their ratings without understanding is measured. Exits with code 2
    if a rule is broken.
    """
    tables = load_tables(options.folder or TABLES)
    groups = {
        **{kind: [table for table in tables if table.kind == kind] for kind in KINDS},
        **{part: [table for table in tables if group_of(table) == part] for part in PARTS},
        "all": tables,
    }
    lines = []
    for name, group in groups.items():
        rows = rated_rows(group)
        found = measure_order(rows)
        contrasts = len(contrast_rows(group)) // 2
        untold = sum(aspect.values.count(None) for table in group for aspect in table.aspects)
        shares = [f"{100 * found[key]:.1f}" for key in ("wording", "overlap", "length")]
        lines.append((name, *(f"{count:,}" for count in (len(group), len(rows), contrasts, untold)), *shares))
    head = ("group", "tables", "rated rows", "contrasts", "not told", "by wording", "by shared words", "by length")
    problems = find_problems(tables)
    print("\n".join([format_table(head, lines), "", LEGEND, *problems]))
    if problems:
        raise DataError(f"Broken rules: {len(problems):,} in {len(tables):,} tables, listed above. Fix the tables.")


def rated_rows(tables: Sequence[SceneTable], *, seed: int = 0) -> list[RatedPair]:
    """Rate every pair under every condition that both sentences tell: up to 75 rows a table."""
    rows = []
    for table in tables:
        rng = random.Random(f"{seed} {table.id}")
        for places in combinations(range(SENTENCES), 2):
            number = len(rows)
            for aspect, label in rate(table, *places):
                rows.append(make_row(number, table, places, aspect, rng.choice(aspect.wordings), label))
    return rows


def find_problems(tables: Sequence[SceneTable]) -> list[str]:
    """Look for breaches of the rules of the corpus (README.md beside it).

    Returns:
        One sentence for each problem, naming the table; empty if there is none.
    """
    problems = [f"{name}: the id is used twice" for name in _repeated(table.id for table in tables)]
    texts = _repeated(text.casefold() for table in tables for text in table.sentences)
    problems += [f"this sentence occurs twice: {text}" for text in texts]
    users = Counter(wording for table in tables for wording in {w for a in table.aspects for w in _folded(a)})
    for table in tables:
        problems += [f"{table.id}: {problem}" for problem in _problems(table, users)]
    return problems


def _problems(table: SceneTable, users: Mapping[str, int]) -> Iterator[str]:
    if table.kind not in KINDS:
        yield f"the kind is {table.kind!r}, allowed are {', '.join(KINDS)}"
    for text in table.sentences:
        if not WORDS[0] <= (count := len(text.split())) <= WORDS[1]:
            yield f"{count} words, allowed are {WORDS[0]} to {WORDS[1]}: {text}"
    for aspect in table.aspects:
        different, untold = len(set(aspect.values) - {None}), aspect.values.count(None)
        if not VALUES[0] <= different <= VALUES[1]:
            yield f"{aspect.wordings[0]!r} has {different} values, allowed are {VALUES[0]} to {VALUES[1]}"
        if untold > MOST_UNTOLD:
            yield f"{aspect.wordings[0]!r} has {untold} nulls, allowed is {MOST_UNTOLD}"
    for wording in _repeated(wording for aspect in table.aspects for wording in _folded(aspect)):
        yield f"the wording {wording!r} occurs twice"
    common = [aspect.wordings[0] for aspect in table.aspects if any(users[wording] > 1 for wording in _folded(aspect))]
    if len(common) > MOST_COMMON:
        yield f"{len(common)} aspects have wordings of other tables, allowed is {MOST_COMMON}: {'; '.join(common)}"
    labels = [{label for _, label in rate(table, *pair)} for pair in combinations(range(SENTENCES), 2)]
    crossing = sum(len(found) == 2 for found in labels)
    if crossing < LEAST_CONTRASTS:
        yield f"only {crossing} pairs agree under one condition and differ under another, at least {LEAST_CONTRASTS} do"


def _folded(aspect: TableAspect) -> list[str]:
    return [wording.casefold().strip(" .?") for wording in aspect.wordings]


def _repeated(values: Iterator[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
