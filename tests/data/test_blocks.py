"""Blocks of rows that share sentences and wordings."""

from __future__ import annotations

from collections import Counter

import pytest

from condviz.data import corpora, scenes
from condviz.data.corpus import RatedPair
from condviz.data.families import GAP
from condviz.data.scenes import load_aspects, load_families
from condviz.errors import DataError

SENTENCES = 20


@pytest.fixture(scope="module")
def blocks() -> list[list[RatedPair]]:
    return corpora.build_blocks("scenes", "train", sentences=SENTENCES, seed=3)


def test_rows_come_in_contrasts_of_two_conditions_with_the_higher_first(blocks: list[list[RatedPair]]) -> None:
    for high, low in ((rows[i], rows[i + 1]) for rows in blocks for i in range(0, len(rows), 2)):
        assert (high.pair, high.sentence1, high.sentence2) == (low.pair, low.sentence1, low.sentence2)
        assert high.aspect != low.aspect
        assert high.label - low.label >= GAP
    numbers = [row.pair for rows in blocks for row in rows]
    assert set(Counter(numbers).values()) == {2}


def test_an_aspect_has_one_wording_in_a_block(blocks: list[list[RatedPair]]) -> None:
    for rows in blocks:
        wordings = {(row.aspect, row.condition) for row in rows}
        assert len(wordings) == len({row.aspect for row in rows})


def test_a_row_costs_less_than_one_encoding(blocks: list[list[RatedPair]]) -> None:
    encodings = sum(
        len({(sentence, row.condition) for row in rows for sentence in (row.sentence1, row.sentence2)})
        for rows in blocks
    )
    assert encodings < sum(map(len, blocks)), "single pairs cost two"


def test_blocks_hold_what_training_may_use(blocks: list[list[RatedPair]]) -> None:
    families = {family.id: family for family in load_families()}
    aspects = load_aspects()
    for rows in blocks:
        for row in rows:
            assert scenes.group_of(families[row.family1]) == scenes.group_of(families[row.family2]) == "train"
            assert row.aspect not in scenes.UNSEEN_ASPECTS
            if row.aspect in aspects:
                assert row.condition in scenes.seen_phrasings(aspects[row.aspect])
        sentences = {sentence for row in rows for sentence in (row.sentence1, row.sentence2)}
        assert len(sentences) <= 2 * SENTENCES


def test_aspects_are_about_as_often_the_higher_as_the_lower_one(blocks: list[list[RatedPair]]) -> None:
    rows = [row for rows in blocks for row in rows]
    high, low = (Counter(row.aspect for row in rows[start::2]) for start in (0, 1))
    frequent = [aspect for aspect, count in (high + low).items() if count >= 200]
    assert len(frequent) > 20
    assert all(0.25 < high[aspect] / (high[aspect] + low[aspect]) < 0.75 for aspect in frequent)


def test_single_pairs_cannot_be_divided() -> None:
    with pytest.raises(DataError, match=r"scenes dev has no blocks.*batching"):
        corpora.build_blocks("scenes", "dev", sentences=SENTENCES)
