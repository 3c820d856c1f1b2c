"""Rated pairs: the table of ratings, and no shortcut to them."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter, defaultdict

import pytest

from benchmarks.corpora import Shortcuts, measure_shortcuts
from condviz.data.corpus import RatedPair, keep_pairs
from condviz.data.families import GAP, Aspect, Family, Scene, build_pairs, gold
from condviz.data.scenes import load_aspects, load_families

ASPECTS = load_aspects()
FAMILIES = load_families()


@pytest.fixture(scope="module")
def rows() -> list[RatedPair]:
    return build_pairs(FAMILIES[::4], ASPECTS, seed=7)


@pytest.mark.parametrize(
    ("aspect", "value1", "value2", "label"),
    [
        ("number_of_people", "two", "two", 5),
        ("number_of_people", "two", "three", 2),
        ("number_of_people", "two", "four", 1),
        ("number_of_people", "none", "crowd", 1),
        ("temperature", "freezing", "cold", 4),
        ("temperature", "freezing", "mild", 3),
        ("temperature", "freezing", "warm", 2),
        ("temperature", "freezing", "hot", 1),
        ("opinion_food", "negative", "mixed", 3),
        ("opinion_food", "negative", "positive", 1),
        ("sport", "tennis", "badminton", 3),
        ("sport", "tennis", "judo", 1),
        ("safety_gear", "no_gear", "helmet", 1),
        ("season", "spring", "summer", 1),
        (None, "left", "left", 5),
        (None, "left", "right", 1),
    ],
)
def test_gold_follows_the_table(aspect: str | None, value1: str, value2: str, label: int) -> None:
    known = ASPECTS[aspect] if aspect else None
    assert gold(known, value1, value2) == label
    assert gold(known, value2, value1) == label


def test_values_that_say_that_there_is_nothing_are_not_alike() -> None:
    aspect = Aspect("relationship", "nominal", ("wording",), groups={"none": ("alone", "strangers")})
    assert gold(aspect, "alone", "strangers") == 1


def test_every_pair_has_a_high_and_a_low_row(rows: list[RatedPair]) -> None:
    assert len(rows) > 5_000
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        assert one.pair == other.pair
        assert (one.sentence1, one.sentence2) == (other.sentence1, other.sentence2)
        assert one.sentence1 != one.sentence2
        assert one.aspect != other.aspect
        assert abs(one.label - other.label) >= GAP


def test_labels_are_those_of_the_tags(rows: list[RatedPair]) -> None:
    scenes = {scene.text: scene for family in FAMILIES for scene in family.scenes}
    for row in rows:
        family, _, name = row.aspect.rpartition(":")
        values = [scenes[text].aspects[name] for text in (row.sentence1, row.sentence2)]
        assert row.label == gold(ASPECTS.get(name), *values)
        assert not family or row.family1 == row.family2 == family


def test_no_shortcut_tells_the_higher_condition(rows: list[RatedPair]) -> None:
    shortcuts = measure_shortcuts(rows)
    assert shortcuts.condition == 0.5
    assert 0.48 <= shortcuts.overlap <= 0.55


def test_every_aspect_and_wording_is_as_often_high_as_low(rows: list[RatedPair]) -> None:
    sides: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        for row, rival in ((one, other), (other, one)):
            sides[row.aspect, row.condition][row.label > rival.label] += 1
    assert [key for key, count in sides.items() if count[True] != count[False]] == []


def test_rows_come_from_one_family_and_from_two(rows: list[RatedPair]) -> None:
    within = sum(row.family1 == row.family2 for row in rows) / len(rows)
    assert 0.5 < within < 0.9
    assert len({row.family1 for row in rows}) > 0.22 * len(FAMILIES)
    assert len({row.aspect for row in rows if ":" not in row.aspect}) >= 70


def test_the_seed_decides() -> None:
    few = FAMILIES[::20]
    assert build_pairs(few, ASPECTS, seed=1) == build_pairs(few, ASPECTS, seed=1)
    assert build_pairs(few, ASPECTS, seed=1) != build_pairs(few, ASPECTS, seed=2)


def test_what_is_left_out_stays_unseen() -> None:
    kept = {name: aspect for name, aspect in ASPECTS.items() if name != "gender"}
    kept["place"] = dataclasses.replace(ASPECTS["place"], phrasings=ASPECTS["place"].phrasings[:3])
    families = FAMILIES[::5]
    rows = build_pairs(families, kept, seed=3)
    assert {row.aspect for row in rows if ":" not in row.aspect} <= set(kept)
    assert {row.condition for row in rows if row.aspect == "place"} <= set(ASPECTS["place"].phrasings[:3])
    assert {row.family1 for row in rows} | {row.family2 for row in rows} <= {family.id for family in families}


def test_without_cross_pairs_each_pair_is_from_one_family() -> None:
    rows = build_pairs(FAMILIES[::10], ASPECTS, seed=3, cross=0)
    assert rows
    assert all(row.family1 == row.family2 for row in rows)


def test_a_family_that_cannot_be_balanced_gives_no_row() -> None:
    base = {"gender": "male", "season": "spring"}
    edit = Scene("edit", "In spring she sings.", base | {"gender": "female"}, ("gender",))
    family = Family("a-001", "a", (Scene("base", "In spring he sings.", base), edit))
    assert build_pairs([family], ASPECTS, seed=0) == []
    assert build_pairs([], ASPECTS, seed=0) == []


def make_rows(labels: list[tuple[int, int]], condition: str | None = None) -> list[RatedPair]:
    """Rows of pairs with the given ratings; high ratings share all words, low ones none."""
    return [
        RatedPair(pair, "a b c", "a b c" if label > 3 else "x y z", condition or f"c{index}", label, "a", "f", "f")
        for pair, both in enumerate(labels)
        for index, label in enumerate(both)
    ]


def test_shortcuts_are_found_where_there_are_some() -> None:
    assert measure_shortcuts(make_rows([(1, 5), (2, 5), (1, 4)])) == Shortcuts(condition=1.0, overlap=1.0)
    assert measure_shortcuts(make_rows([(1, 5), (5, 1)], condition="the sport")).condition == 0.5
    assert measure_shortcuts([]) == Shortcuts(condition=0.5, overlap=0.5)
    assert measure_shortcuts(make_rows([(3, 5)])).overlap == 0.5


def test_shortcuts_of_random_rows_are_near_chance() -> None:
    rng = random.Random(0)
    words = ["red", "blue", "green", "one", "two", "three", "dog", "cat", "fish"]
    rows = [
        dataclasses.replace(row, **{f"sentence{side}": " ".join(rng.sample(words, 4)) for side in (1, 2)})
        for row in make_rows([(1, 5)] * 2_000, condition="the animal")
    ]
    shortcuts = measure_shortcuts(rows)
    assert shortcuts.condition == 0.5
    assert shortcuts.overlap == pytest.approx(0.5, abs=0.04)


def test_which_pairs_are_kept_does_not_depend_on_the_others(rows: list[RatedPair]) -> None:
    kept = keep_pairs(rows, 50)
    assert len(kept) == 100
    assert all(first.pair == second.pair for first, second in zip(kept[::2], kept[1::2], strict=True))
    fewer = {row.pair for row in rows[: len(rows) // 4 * 2] + kept}
    assert keep_pairs([row for row in rows if row.pair in fewer], 50) == kept
    assert keep_pairs(rows, 50, seed=1) != kept
    assert len(keep_pairs(rows[:8], 50)) == 8
