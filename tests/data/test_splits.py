"""The parts of the scenes: nothing that is called unseen was seen."""

from __future__ import annotations

import pytest

from benchmarks.corpora import measure_shortcuts
from condviz.data import scenes
from condviz.data.corpus import RatedPair
from condviz.data.scenes import load_aspects, load_families

ASPECTS = load_aspects()
FAMILIES = load_families()
FAMILY = {family.id: family for family in FAMILIES}
LEAST_PAIRS = {
    "train": 8000,
    "dev": 600,
    "test": 1200,
    "unseen_phrasings": 1200,
    "unseen_aspects": 200,
    "own_aspects": 500,
    "unseen_domains": 400,
}


@pytest.fixture(scope="module")
def parts() -> dict[str, list[RatedPair]]:
    return {part: scenes.build_part(FAMILIES, ASPECTS, part) for part in scenes.PARTS}


def families_of(rows: list[RatedPair]) -> set[str]:
    return {row.family1 for row in rows} | {row.family2 for row in rows}


def folded(rows: list[RatedPair]) -> set[str]:
    return {row.condition.casefold().strip(" .?") for row in rows}


def test_every_part_has_enough_pairs_and_no_shortcut(parts: dict[str, list[RatedPair]]) -> None:
    assert set(parts) == set(LEAST_PAIRS)
    for part, rows in parts.items():
        assert len(rows) // 2 >= LEAST_PAIRS[part], part
        shortcuts = measure_shortcuts(rows)
        assert shortcuts.condition == 0.5, part
        assert 0.48 <= shortcuts.overlap <= 0.55, part


def test_no_family_is_in_two_groups(parts: dict[str, list[RatedPair]]) -> None:
    groups = [families_of(parts[part]) for part in ("train", "dev", "test", "unseen_domains")]
    for place, group in enumerate(groups):
        for other in groups[place + 1 :]:
            assert not group & other


def test_all_tests_but_that_of_domains_are_over_the_test_families(parts: dict[str, list[RatedPair]]) -> None:
    test = {family.id for family in FAMILIES if scenes.group_of(family) == "test"}
    for part in ("test", "unseen_phrasings", "unseen_aspects", "own_aspects"):
        assert families_of(parts[part]) <= test


def test_held_out_aspects_are_asked_in_their_part_alone(parts: dict[str, list[RatedPair]]) -> None:
    assert {row.aspect for row in parts["unseen_aspects"]} <= scenes.UNSEEN_ASPECTS
    for part, rows in parts.items():
        if part != "unseen_aspects":
            assert not {row.aspect for row in rows} & scenes.UNSEEN_ASPECTS, part


@pytest.mark.parametrize("part", ["unseen_phrasings", "unseen_aspects", "own_aspects"])
def test_unseen_conditions_do_not_occur_in_training(parts: dict[str, list[RatedPair]], part: str) -> None:
    assert not folded(parts[part]) & folded(parts["train"])


def test_test_asks_in_the_wordings_of_training(parts: dict[str, list[RatedPair]]) -> None:
    seen = {name: scenes.seen_phrasings(aspect) for name, aspect in ASPECTS.items()}
    for part in ("train", "dev", "test", "unseen_domains"):
        assert all(row.condition in seen[row.aspect] for row in parts[part] if ":" not in row.aspect)


def test_only_the_wordings_of_unseen_phrasings_differ_from_test(parts: dict[str, list[RatedPair]]) -> None:
    both = [
        {(frozenset((row.sentence1, row.sentence2)), row.aspect, row.label) for row in parts[part]}
        for part in ("test", "unseen_phrasings")
    ]
    assert len(both[0] & both[1]) > 0.95 * len(both[0])


def test_own_aspects_stand_in_train_dev_and_their_part(parts: dict[str, list[RatedPair]]) -> None:
    for part, rows in parts.items():
        own = sum(":" in row.aspect for row in rows)
        if part == "own_aspects":
            assert own == len(rows)
        else:
            assert bool(own) == (part in {"train", "dev"}), part


def test_domains_are_held_out_whole(parts: dict[str, list[RatedPair]]) -> None:
    assert {family.domain for family in FAMILIES} >= scenes.UNSEEN_DOMAINS
    for part, rows in parts.items():
        inside = {FAMILY[name].domain in scenes.UNSEEN_DOMAINS for name in families_of(rows)}
        assert inside == {part == "unseen_domains"}, part


def test_held_out_names_exist_and_each_seen_aspect_keeps_its_wordings() -> None:
    assert set(ASPECTS) >= scenes.UNSEEN_ASPECTS
    for aspect in ASPECTS.values():
        seen = scenes.seen_phrasings(aspect)
        assert len(seen) == len(aspect.phrasings) - scenes.HELD_OUT_PHRASINGS
        assert list(seen) == [wording for wording in aspect.phrasings if wording in seen]


def test_shares_are_about_those_wanted() -> None:
    groups = [scenes.group_of(family) for family in FAMILIES]
    inside = len(FAMILIES) - groups.count("unseen_domains")
    assert groups.count("test") / inside == pytest.approx(scenes.TEST_SHARE, abs=0.03)
    assert groups.count("dev") / inside == pytest.approx(scenes.DEV_SHARE, abs=0.03)


def test_the_division_is_the_same_on_every_machine() -> None:
    """Changing it would let models that were trained before see test families."""
    known = {"arts-025": "train", "arts-028": "test", "arts-077": "dev", "arts-001": "unseen_domains"}
    assert {name: scenes.group_of(FAMILY[name]) for name in known} == known


def test_the_seed_decides_the_pairs_only(parts: dict[str, list[RatedPair]]) -> None:
    assert scenes.build_part(FAMILIES, ASPECTS, "dev") == parts["dev"]
    other = scenes.build_part(FAMILIES, ASPECTS, "dev", seed=1)
    assert other != parts["dev"]
    assert families_of(other) <= {family.id for family in FAMILIES if scenes.group_of(family) == "dev"}
