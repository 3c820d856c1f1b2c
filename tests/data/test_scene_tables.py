"""Scene tables: strict reading, rules, rows and contrasts, splits that never move."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpora import shortcuts
from condviz.data import corpora, scene_tables
from condviz.data.corpus import Corpus
from condviz.errors import DataError

ANIMALS = ("cat", "dog", "horse", "goose", "sheep", "otter")
VALUES = (
    ("in", "in", "out", "out", "out", "in"),
    ("wet", "dry", "wet", "dry", "wet", None),
    ("one", "two", "many", "one", "two", "many"),
    ("calm", "calm", "calm", "upset", "upset", "upset"),
    ("day", "night", "night", "day", "day", "night"),
)


def make_entry(number: int, domain: str = "review") -> dict[str, Any]:
    return {
        "id": f"nat-{number:04}",
        "kind": "natural",
        "domain": domain,
        "sentences": [f"In tale {number} the old {animal} looks around and waits." for animal in ANIMALS],
        "aspects": [
            {
                "wordings": [f"the {place} of {number}", f"Which {place}, {number}?", f"{place} {number}"],
                "values": [*row],
            }
            for place, row in zip(("place", "state", "count", "mood", "hour"), VALUES, strict=True)
        ],
    }


def write(folder: Path, entries: list[dict[str, Any]]) -> Path:
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, entries)) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def tables(tmp_path: Path) -> tuple[scene_tables.SceneTable, ...]:
    domains = ("review", "law/contract note", "history note", "photo caption", "diary")
    return scene_tables.load_tables(write(tmp_path, [make_entry(n, domains[n % 5]) for n in range(120)]))


def test_contrasts_disagree_on_one_pair_and_use_a_row_once(tables: tuple[scene_tables.SceneTable, ...]) -> None:
    rows = scene_tables.contrast_rows(tables)
    used = set()
    sides: dict[str, int] = Counter()
    for number, (one, other) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
        assert one.pair == other.pair == number
        assert (one.sentence1, one.sentence2) == (other.sentence1, other.sentence2)
        assert {one.label, other.label} == {5, 1}
        for row in (one, other):
            key = (frozenset((row.sentence1, row.sentence2)), row.aspect)
            assert key not in used
            used.add(key)
            sides[row.aspect.rpartition(":")[2].split()[1]] += 1 if row.label == 5 else -1
    asked = Counter((row.sentence1, row.sentence2) for row in rows)
    assert set(asked.values()) == {2}
    assert max(map(abs, sides.values())) < 0.1 * len(rows)
    assert Counter(row.label for row in rows[::2])[5] == pytest.approx(len(rows) / 4, rel=0.1)


def test_splits_follow_the_id_and_hold_domains_out(tables: tuple[scene_tables.SceneTable, ...]) -> None:
    groups = {table.id: scene_tables.group_of(table) for table in tables}
    for table in tables:
        assert (groups[table.id] == "unseen_domains") == (table.domain in ("law/contract note", "history note"))
    counts = Counter(groups.values())
    assert set(counts) == set(scene_tables.PARTS)
    assert counts["train"] > 0.6 * (counts["train"] + counts["validation"] + counts["test"])
    known = {"nat-0000": "train", "nat-0003": "test", "nat-0005": "validation", "nat-0014": "train"}
    assert {name: groups[name] for name in known} == known


def test_blocks_share_wordings_and_number_their_contrasts(tables: tuple[scene_tables.SceneTable, ...]) -> None:
    blocks = scene_tables.build_blocks(tables, seed=3, sentences=20)
    assert [len({row.family1 for row in block}) for block in blocks] == [4] * 30
    numbers = [row.pair for block in blocks for row in block]
    assert len(set(numbers)) == len(numbers) // 2
    for block in blocks:
        assert len({row.condition for row in block}) == len({row.aspect for row in block})
    assert blocks == scene_tables.build_blocks(tables, seed=3, sentences=20)


def test_a_corpus_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [make_entry(number) for number in range(40)])
    corpus = Corpus(**{**vars(scene_tables.CORPUS), "home": tmp_path})
    monkeypatch.setitem(corpora.CORPORA, "tables", corpus)
    assert len(corpora.build("tables", "train")) > 500
    assert corpora.build_blocks("tables", "train", sentences=12)
    survey = corpora.survey("tables")
    assert [part.name for part in survey.parts] == list(scene_tables.PARTS)
    assert shortcuts("tables", corpora.build("tables", "train")).condition == pytest.approx(0.5, abs=0.1)
    with pytest.raises(DataError, match="part unseen_domains of tables is empty"):
        corpora.build("tables", "unseen_domains")


def test_each_kind_is_a_corpus_of_its_own() -> None:
    tables = {table.id: table for table in scene_tables.load_tables()}
    for name, kind in (("tables", "natural"), ("tables-hard", "hard"), ("tables-weak", "weak")):
        for part in corpora.CORPORA[name].parts:
            found = {tables[row.family1] for row in corpora.build(name, part)}
            assert {(table.kind, scene_tables.group_of(table)) for table in found} == {(kind, part)}


FAULTS = {
    "key": (("extra",), 1),
    "sentences": (("sentences",), ["a"] * 5),
    "blank": (("sentences", 0), " a b"),
    "aspects": (("aspects",), make_entry(1)["aspects"][:4]),
    "wordings": (("aspects", 0, "wordings"), ["a", "b"]),
    "values": (("aspects", 0, "values"), ["a"] * 5),
    "number": (("aspects", 0, "values", 0), 3),
    "kind": (("kind",), "soft"),
    "short": (("sentences", 0), "Too few words."),
    "one value": (("aspects", 0, "values"), ["in"] * 6),
    "nulls": (("aspects", 0, "values"), ["in", None, None, "out", "out", "in"]),
    "twice": (("aspects", 0, "wordings", 1), "THE PLACE of 1?"),
    "no contrast": (("aspects",), [{**aspect, "values": [*"aaaaab"]} for aspect in make_entry(1)["aspects"]]),
}


def broken(change: str) -> dict[str, Any]:
    (*path, last), value = FAULTS[change]
    entry = place = make_entry(1)
    for key in path:
        place = place[key]
    place[last] = value
    return entry


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("key", "line 1 .*Unknown key extra"),
        ("sentences", "sentences has 5 entries, needed are at least 6"),
        ("blank", "without blanks at its ends"),
        ("aspects", "aspects has 4 entries, needed are at least 5"),
        ("wordings", r"aspects\.0\.wordings has 2 entries, needed are at least 3"),
        ("values", r"aspects\.0\.values has 5 entries, needed are at least 6"),
        ("number", r"aspects\.0\.values\.0 is 3, expected string"),
    ],
)
def test_another_form_is_refused(change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        scene_tables.load_tables(write(tmp_path, [broken(change)]))
