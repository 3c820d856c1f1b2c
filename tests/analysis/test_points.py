"""Points of a map from tables, lists and scenes; what cannot be shown is refused with a reason."""

from __future__ import annotations

import io
from collections import Counter

import pandas as pd
import pytest

from condviz.analysis.points import MapPoints, points_from_table, points_from_texts, scene_points
from condviz.data.pairs import POINT_ROLES, guess_columns
from condviz.data.tables import Table, read_table
from condviz.errors import DataError

ROWS = (("1", "A man surfs.", "the sport", "surfing"), ("2", "A dog runs.", "the animal", "dog"),
        ("3", "A cat.", "the animal", "nan"), ("4", " ", "the sport", ""))  # fmt: skip
TABLE = Table(("id", "text", "condition", "value"), ROWS)


def test_a_table_with_conditions() -> None:
    points = points_from_table(TABLE, text_column="text", condition_column="condition")
    assert points.texts == ("A man surfs.", "A dog runs.", "A cat.")
    assert points.groups == ("the sport", "the animal")
    assert points.columns == {"id": ("1", "2", "3"), "value": ("surfing", "dog", "")}
    assert points.notes == ("1 row was left out, with nothing in text: 4.",)
    assert points.values == ("surfing", "dog", "")
    assert not points.crossed


def test_a_frame_is_a_table() -> None:
    frame = pd.DataFrame({"comment": ["A man surfs.", "A dog runs.", None, "A cat."], "label": [1, 2, 3, 4]})
    points = points_from_table(frame, conditions=["the animal"])
    assert points.texts == ("A man surfs.", "A dog runs.", "A cat.")
    assert points.values == ("1", "2", "4")
    assert points_from_table(frame, conditions=["the animal"], value_column="").values == ()


def test_cells_of_any_kind_may_be_missing() -> None:
    frame = pd.DataFrame(
        {
            "text": pd.Categorical(["One.", None, "Three.", "Four."]),
            "stars": pd.array([1, None, 3, 4], dtype="Int64"),
            "day": pd.to_datetime(["2024-05-01", None, None, "2024-05-04"]),
        }
    )
    points = points_from_table(frame, conditions=["the mood"])
    assert points.texts == ("One.", "Three.", "Four.")
    assert points.columns["stars"] == ("1", "3", "4")
    assert points.columns["day"][1:] == ("", "2024-05-04 00:00:00")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"text": ["a", "b"], "label": ["x"]}, "equal length"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "two columns called 'text'"),
    ],
)
def test_tables_that_are_none_are_refused(table: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        points_from_table(table, conditions=["the mood"])


def test_every_text_under_every_condition() -> None:
    points = points_from_table(TABLE, text_column="text", conditions=["the sport", "the mood"])
    assert points.texts == ("A man surfs.", "A dog runs.", "A cat.") * 2
    assert points.conditions == ("the sport",) * 3 + ("the mood",) * 3
    assert points.columns["id"] == ("1", "2", "3") * 2
    assert points.crossed


def test_texts_typed_in() -> None:
    points = points_from_texts(["One.", "", "Two.", "One.", "Three."], ["the mood"])
    assert points.texts == ("One.", "Two.", "Three.")
    assert points.notes == ("1 repeated sentence was left out.",)


@pytest.mark.parametrize(
    ("texts", "message"),
    [(["One."], "one sentence"), (["One."] * 9, "one sentence"), ([], "0 different"), (["a", "b"], "at least 3")],
)
def test_too_few_sentences(texts: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        points_from_texts(texts, ["the mood"])


def test_one_text_is_no_list_of_sentences() -> None:
    with pytest.raises(DataError, match="must be a list of texts, got str"):
        points_from_texts("One sentence.", ["the mood"])


def test_too_many_points_are_refused_or_sampled_where_asked() -> None:
    table = Table(("text",), tuple((f"Sentence {i}.",) for i in range(200)))
    with pytest.raises(DataError, match=r"200 rows under 2 conditions make 400 points.*at most 50 rows"):
        points_from_table(table, text_column="text", conditions=["a", "b"], max_points=100)
    points = points_from_table(table, text_column="text", conditions=["a", "b"], max_points=100, sample=50)
    assert len(points.texts) == 100
    assert points.notes == ("A random sample of 50 of 200 rows (seed 0).",)
    assert points == points_from_table(table, text_column="text", conditions=["a", "b"], max_points=100, sample=50)


def test_numbers_are_no_sentences() -> None:
    with pytest.raises(DataError, match=r"'id' holds numbers.*text, condition, value"):
        points_from_table(TABLE, text_column="id", condition_column="condition")


def test_columns_that_do_not_exist_or_hold_nothing() -> None:
    with pytest.raises(DataError, match="Did you mean text"):
        points_from_table(TABLE, text_column="texts", condition_column="condition")
    empty = Table(("text", "condition"), (("", "x"), ("y", "")))
    with pytest.raises(DataError, match="No row has both text and condition"):
        points_from_table(empty, text_column="text", condition_column="condition")


def test_a_bad_cell_names_its_place() -> None:
    table = Table(("text", "condition"), (("Fine.", "x"), ("B\x00d", "x")))
    with pytest.raises(DataError, match="Row 2, column text"):
        points_from_table(table, text_column="text", condition_column="condition")


def guess(table: Table) -> list[str]:
    return list(guess_columns(table, POINT_ROLES).values())


def test_columns_are_guessed_by_name_and_length() -> None:
    assert guess(TABLE) == ["text", "condition", "value"]
    assert guess(Table(("id", "comment"), (("1", "A long comment."),))) == ["comment", "", ""]


def test_cells_that_repeat_are_guessed_to_be_the_values() -> None:
    rows = tuple((str(number), f"The soup of day {number}.", "good" if number % 2 else "bad") for number in range(8))
    assert guess(Table(("No", "Review", "Verdict"), rows)) == ["Review", "", "Verdict"]


def test_the_texts_are_not_guessed_to_be_the_values() -> None:
    table = {"label": ["A long sentence.", "Another sentence.", "A third one."], "id": ["1", "2", "3"]}
    assert guess(read_table(table)) == ["label", "", ""]
    asked = {"text": ["One is it.", "Two is it.", "Three is it."], "label": ["One.", "Two.", "Three."]}
    assert points_from_table(asked, text_column="label", conditions=["the mood"]).value == ""


def test_a_single_column_may_have_commas() -> None:
    table = read_table(io.StringIO("text\nOne, two.\nThree.\n"))
    assert table.rows == (("One, two.",), ("Three.",))


def test_points_have_one_of_each() -> None:
    with pytest.raises(DataError, match="one condition"):
        MapPoints(("a", "b", "c"), ("x",))


def test_of_few_points_fewer_neighbours_are_compared() -> None:
    """The ten nearest of eleven others are the same in any space."""
    texts = [f"Sentence {number}." for number in range(12)]
    assert set(points_from_texts(texts, ["the sport", "the mood"]).compared) == {3}
    copied = MapPoints((*texts, *texts), ("a",) * 24)
    assert set(copied.compared) == {3}, "copies are no neighbours"
    alone = MapPoints((*texts[:3], texts[0]), ("a", "a", "a", "b"))
    assert alone.compared.tolist() == [1, 1, 1, 0], "nothing else stands under b"
    assert set(scene_points().compared) == {10}


def test_scenes_are_balanced_and_from_test_families() -> None:
    points = scene_points()
    assert Counter(points.conditions) == {condition: 20 for condition in points.groups}
    assert len(set(points.texts)) == 60
    values = Counter(zip(points.conditions, points.columns["value"], strict=True))
    assert set(values.values()) == {4}
    assert points == scene_points()
    assert points != scene_points(seed=1)


def test_unknown_and_rare_aspects_are_refused() -> None:
    with pytest.raises(DataError, match="no aspect 'spelling'"):
        scene_points(("spelling", "mood", "place"))
    with pytest.raises(DataError, match="test families tell"):
        scene_points(("mood", "place", "weather"), per_group=300)
