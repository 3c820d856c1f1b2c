"""Pairs without a condition: a paraphrase, and a sentence of another family."""

from __future__ import annotations

import pytest

from condviz.data.scenes import build_plain_pairs, group_of, load_families
from condviz.errors import ConfigError
from condviz.training.recipes import from_dict
from tests.data.built import build


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_a_paraphrase_and_a_sentence_of_another_family_of_the_same_part(part: str) -> None:
    families = {family.id: family for family in load_families()}
    rows = build("scenes-plain", part)
    assert len(rows) > 200
    assert {row.condition for row in rows} == {""}
    for like, unlike in zip(rows[::2], rows[1::2], strict=True):
        base, paraphrase = families[like.family1].scenes[:2]
        assert (base.role, paraphrase.role) == ("base", "paraphrase")
        assert (like.sentence1, like.sentence2, like.label) == (base.text, paraphrase.text, 5)
        assert (unlike.sentence1, unlike.label) == (base.text, 1)
        assert group_of(families[unlike.family1]) == group_of(families[unlike.family2]) == part
        assert unlike.family1 != unlike.family2


def test_the_seed_decides_and_one_family_has_no_pairs() -> None:
    families = load_families()[:40]
    assert (
        build_plain_pairs(families, seed=1)
        == build_plain_pairs(families, seed=1)
        != build_plain_pairs(families, seed=2)
    )
    assert build_plain_pairs(families[:1], seed=0) == []


def test_only_a_cross_encoder_learns_from_them() -> None:
    content = {"name": "x", "train": [{"name": "scenes-plain"}], "keep": "last"}
    assert from_dict({**content, "method": "cross-encoder"}).train[0].name == "scenes-plain"
    with pytest.raises(ConfigError, match=r"loss\.plain"):
        from_dict({**content, "method": "bi-encoder"})
