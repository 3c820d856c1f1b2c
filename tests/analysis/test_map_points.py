"""Points of a map from tables, lists and scenes; what cannot be shown is refused with a reason."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from condviz.analysis.map_points import MapPoints, from_table, from_texts, guess_columns
from condviz.analysis.scene_points import held_out_triples, scene_points
from condviz.data.splits import UNSEEN_ASPECTS
from condviz.data.tables import TextTable, read_table
from condviz.errors import DataError

ROWS = (("1", "A man surfs.", "the sport", "surfing"), ("2", "A dog runs.", "the animal", "dog"),
        ("3", "A cat.", "the animal", "nan"), ("4", " ", "the sport", ""))  # fmt: skip
TABLE = TextTable(("id", "text", "condition", "value"), ROWS)


def test_a_table_with_conditions() -> None:
    points = from_table(TABLE, text_column="text", condition_column="condition")
    assert points.texts == ("A man surfs.", "A dog runs.", "A cat.")
    assert points.groups == ("the sport", "the animal")
    assert points.columns == {"id": ("1", "2", "3"), "value": ("surfing", "dog", "")}
    assert points.notes == ("1 row was left out, with nothing in text: 4.",)
    assert not points.crossed


def test_every_text_under_every_condition() -> None:
    points = from_table(TABLE, text_column="text", conditions=["the sport", "the mood"])
    assert points.texts == ("A man surfs.", "A dog runs.", "A cat.") * 2
    assert points.conditions == ("the sport",) * 3 + ("the mood",) * 3
    assert points.columns["id"] == ("1", "2", "3") * 2
    assert points.crossed


def test_texts_typed_in() -> None:
    points = from_texts(["One.", "", "Two.", "One.", "Three."], ["the mood"])
    assert points.texts == ("One.", "Two.", "Three.")
    assert points.notes == ("1 repeated sentences were left out.",)


@pytest.mark.parametrize(
    ("texts", "message"),
    [(["One."], "one sentence"), (["One."] * 9, "one sentence"), ([], "0 different"), (["a", "b"], "at least 3")],
)
def test_too_few_sentences(texts: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_texts(texts, ["the mood"])


def test_too_many_points_are_refused_or_sampled_where_asked() -> None:
    table = TextTable(("text",), tuple((f"Sentence {i}.",) for i in range(200)))
    with pytest.raises(DataError, match=r"200 rows under 2 conditions make 400 points.*at most 50 rows"):
        from_table(table, text_column="text", conditions=["a", "b"], max_points=100)
    points = from_table(table, text_column="text", conditions=["a", "b"], max_points=100, sample=50)
    assert len(points.texts) == 100
    assert points.notes == ("A random sample of 50 of 200 rows (seed 0).",)
    assert points == from_table(table, text_column="text", conditions=["a", "b"], max_points=100, sample=50)


def test_numbers_are_no_sentences() -> None:
    with pytest.raises(DataError, match=r"'id' holds numbers.*text, condition, value"):
        from_table(TABLE, text_column="id", condition_column="condition")


def test_columns_that_do_not_exist_or_hold_nothing() -> None:
    with pytest.raises(DataError, match="Did you mean text"):
        from_table(TABLE, text_column="texts", condition_column="condition")
    empty = TextTable(("text", "condition"), (("", "x"), ("y", "")))
    with pytest.raises(DataError, match="No row has both text and condition"):
        from_table(empty, text_column="text", condition_column="condition")


def test_a_bad_cell_names_its_place() -> None:
    table = TextTable(("text", "condition"), (("Fine.", "x"), ("B\x00d", "x")))
    with pytest.raises(DataError, match="Row 2, column text"):
        from_table(table, text_column="text", condition_column="condition")


def test_columns_are_guessed_by_name_and_length() -> None:
    assert guess_columns(TABLE) == ("text", "condition")
    assert guess_columns(TextTable(("id", "comment"), (("1", "A long comment."),))) == ("comment", None)


def test_a_single_column_may_have_commas() -> None:
    table = read_table(io.StringIO("text\nOne, two.\nThree.\n"))
    assert table.rows == (("One, two.",), ("Three.",))


def test_points_have_one_of_each() -> None:
    with pytest.raises(DataError, match="one condition"):
        MapPoints(("a", "b", "c"), ("x",))


def test_scenes_are_balanced_and_from_test_families() -> None:
    points = scene_points()
    assert Counter(points.conditions) == {condition: 20 for condition in points.groups}
    assert len(set(points.texts)) == 60
    values = Counter(zip(points.conditions, points.columns["value"], strict=True))
    assert set(values.values()) == {4}
    assert points == scene_points()
    assert points != scene_points(seed=1)


def test_held_out_triples_can_all_be_drawn() -> None:
    triples = held_out_triples(20)
    assert len(triples) == 20
    for seed, names in enumerate(triples):
        assert set(names) <= UNSEEN_ASPECTS
        assert len(scene_points(names, seed=seed).texts) == 60


def test_unknown_and_rare_aspects_are_refused() -> None:
    with pytest.raises(DataError, match="no aspect 'spelling'"):
        scene_points(("spelling", "mood", "place"))
    with pytest.raises(DataError, match="test families tell"):
        scene_points(("mood", "place", "weather"), per_group=300)
