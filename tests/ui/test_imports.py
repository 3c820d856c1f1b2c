"""The import assistant: what it finds out about a table, what a visitor can change, and what is left out."""

from __future__ import annotations

from pathlib import Path

import gradio as gr
import pytest

from condviz.data.pairs import suggest_ratings
from condviz.errors import DataError
from condviz.ui.imports import (
    PAIRS,
    POINTS,
    RATED,
    TEXTS,
    TRAINED,
    Import,
    Kind,
    Reading,
    check_reading,
    inspect,
)  # fmt: skip

PAIR = "sentence1,sentence2,condition,label\n"


def write(folder: Path, content: str | bytes, name: str = "mine.csv") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def build(kind: Kind) -> Import:
    with gr.Blocks():
        return Import(gr.File(), kind, "cv")


def test_columns_are_taken_with_their_reason_and_named_ones_are_sure(tmp_path: Path) -> None:
    seen = inspect(RATED, Reading(write(tmp_path, PAIR + "a,b,c,4\nd,e,f,2\n")))
    assert seen.reading.sure
    assert set(seen.why.values()) == {"by its name"}
    odd = inspect(RATED, Reading(write(tmp_path, "one,two,asked,points\nlong a,long b,c,4\nlong d,long e,f,2\n")))
    assert not odd.reading.sure
    assert dict(odd.reading.columns) == {
        "sentence1": "one",
        "sentence2": "two",
        "condition": "asked",
        "label": "points",
    }
    assert odd.why["label"] == "which has numbers from 1 to 5"
    assert odd.why["sentence1"] == odd.why["sentence2"] != odd.why["condition"]  # its texts are not the longest


def test_german_headers_are_known_by_their_names(tmp_path: Path) -> None:
    seen = inspect(RATED, Reading(write(tmp_path, "Satz1;Satz2;Bedingung;Bewertung\na;b;c;4\nd;e;f;2\n")))
    assert dict(seen.reading.columns) == {
        "sentence1": "Satz1",
        "sentence2": "Satz2",
        "condition": "Bedingung",
        "label": "Bewertung",
    }
    assert set(seen.why.values()) == {"by its name"}


@pytest.mark.parametrize(
    ("cells", "scale", "words"),
    [
        (["1", "5", "3,5", "-1"], None, {}),
        (["0", "1", "1"], (0, 1), {}),
        (["0.2", "0.9", "1"], (0, 1), {}),
        (["0", "2.5", "5", "0"], (0, 5), {}),
        (["10", "80", "95"], (0, 100), {}),
        (["1", "2", "3", "4", "50"], None, {}),  # a slip
        (["yes", "no", "", "nan"], None, {"yes": 5, "no": 1}),
        (["rather", "no"], None, {"rather": None, "no": 1}),
        (["1", "5", "unsure"], None, {"unsure": None}),
    ],
)
def test_a_scale_and_words_are_offered(cells: list[str], scale: tuple | None, words: dict) -> None:
    assert suggest_ratings(cells) == (scale, words)


def test_ratings_on_another_scale_or_in_words_are_mapped_and_can_be_changed(tmp_path: Path) -> None:
    path = write(tmp_path, PAIR + "a,b,c,0\nd,e,f,0.5\ng,h,i,1\n")
    seen = inspect(RATED, Reading(path))
    assert not seen.reading.sure
    assert [pair.label for pair in seen.reading.pairs().pairs] == [1, 3, 5]
    words = Reading(write(tmp_path, PAIR + "a,b,c,rather\nd,e,f,yes\n", "words.csv"))
    box = build(RATED)
    first = box.open(words.path)
    assert first[box.words] == "rather = \nyes = 5"
    assert first[box.ratings]["visible"]
    said = ("", "", "", "", 1, 5, "rather = 4\nyes = 5", *("sentence1", "sentence2", "condition", "label"))
    changed = box.change(words.path, first[box.reading], *said)[box.reading]
    assert [pair.label for pair in changed.pairs().pairs] == [4, 5]
    with pytest.raises(DataError, match="Write one a line"):
        box.change(words.path, first[box.reading], *said[:6], "rather = much", *said[7:])


def test_one_bad_cell_costs_its_row_and_is_listed_for_download(tmp_path: Path) -> None:
    box = build(RATED)
    opened = box.open(write(tmp_path, PAIR + "a,b,c,4\n,e,f,2\ng,h,i,seven\nj,k,l,1\n"))
    assert "2 of 4 rows" in opened[box.view]
    assert opened[box.told] == ""
    listed = Path(opened[box.left_out]["value"]).read_text()
    assert listed.splitlines()[0] == "file,row,line,reason,content"
    assert "mine.csv,2,3," in listed
    assert len(opened[box.reading].pairs().pairs) == 2


def test_a_header_in_doubt_is_told_and_can_be_changed(tmp_path: Path) -> None:
    path = write(tmp_path, "bread\nA man surfs.\nA girl skis.\n")
    seen = inspect(TEXTS, Reading(path))
    assert not seen.reading.sure
    assert "taken as names" in seen.table.report.doubt
    box = build(TEXTS)
    changed = box.change(path, seen.reading, "row", "", "", "", None, None, "", "bread")
    assert "3 of 3 rows" in changed[box.view]


def test_encoding_and_separator_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "text#id\n\u043c\u0438\u0440#1\n".encode("cp1251"))
    box = build(TEXTS)
    changed = box.change(path, None, "", "#", "cp1251", "", None, None, "", None)
    assert "\u043c\u0438\u0440" in changed[box.view]
    assert changed[box.reading].column("text") == "text"


def test_a_table_without_conditions_takes_one_for_all_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "sentence1,sentence2\na,b\nc,d\n")
    box = build(PAIRS)
    opened = box.open(path)
    assert "condition" in opened[box.told]
    assert opened[box.condition]["visible"]
    changed = box.change(
        path, opened[box.reading], "", "", "", "the topic", None, None, "", "sentence1", "sentence2", ""
    )
    assert changed[box.told] == ""
    assert {pair.condition for pair in changed[box.reading].pairs().pairs} == {"the topic"}


def test_rows_that_cannot_be_used_as_they_are_read_are_not_counted_as_usable(tmp_path: Path) -> None:
    box = build(TRAINED)
    letters = PAIR + "a,b,c,B\nd,e,f,C\n"
    for content, told in (("text\nfirst\nsecond\n", "Choose"), (letters, "words"), (PAIR + "a,b,c,1\nd,e,f,2\n", "20")):
        opened = box.open(write(tmp_path, content))
        assert told in opened[box.told]
        assert "<b>2 rows</b> in" in opened[box.view]
        assert "can be used" not in opened[box.view]
        assert not opened[box.use]["interactive"]
    unread = box.open(write(tmp_path, ""))
    assert unread[box.reading].problem
    assert not unread[box.use]["interactive"]


def test_ratings_are_known_by_more_names_than_one(tmp_path: Path) -> None:
    for name in ("grade", "agreement", "Bewertung"):
        path = write(tmp_path, f"id,one,two,asked,{name}\n7,long a,long b,c,90\n8,long d,long e,f,20\n")
        assert inspect(RATED, Reading(path)).reading.column("label") == name
    bare = build(RATED)
    opened = bare.open(write(tmp_path, "sentence1,sentence2,condition\na,b,c\nd,e,f\n"))
    assert "No column is taken as a rating" in opened[bare.view]


def test_what_cannot_be_read_is_told_and_a_file_taken_away_forgotten(tmp_path: Path) -> None:
    box = build(POINTS)
    assert "Excel" in box.open(write(tmp_path, b"PK\x03\x04rest"))[box.told]
    assert box.open(None)[box.reading] is None
    with pytest.raises(DataError, match="No file"):
        box.current(None, None)


def test_texts_of_a_table_are_escaped(tmp_path: Path) -> None:
    box = build(TEXTS)
    opened = box.open(write(tmp_path, "text,<i>\n<img src=x onerror=alert(1)>,1\n"))
    assert "<img" not in opened[box.view]
    assert "<i>" not in opened[box.view]


def test_what_the_page_says_names_its_fields_and_no_options(tmp_path: Path) -> None:
    box = build(RATED)
    for content in ("one,two,three\na,b,c\nd,e,f\n", "Müller,b,c,4\n", PAIR + "a,b,c,0\nd,e,f,seven\n"):
        opened = box.open(write(tmp_path, content.encode("cp1252")))
        assert "--" not in opened[box.view] + opened[box.told]


def test_words_that_rate_are_found_whatever_their_column_is_called(tmp_path: Path) -> None:
    path = write(tmp_path, "premise,other,asked,verdict\nlong a,long b,c,no\nlong d,long e,f,yes\n")
    assert inspect(RATED, Reading(path)).reading.column("label") == "verdict"


def test_what_a_client_says_of_a_table_is_checked() -> None:
    assert check_reading({"scale": [0, 1], "labels": {"no": 0}}) == {"scale": (0, 1), "labels": {"no": 0}}
    assert check_reading(None) == {}
    for wrong in ({"scale": [0]}, {"skip": 1}, {"labels": {"no": "x"}}, [1]):
        with pytest.raises(DataError, match="reading: "):
            check_reading(wrong)


def test_the_preview_shows_what_counts_and_all_columns_where_one_is_to_be_chosen(tmp_path: Path) -> None:
    box = build(RATED)
    rows = "\n7,anna,a,b,c,4\n8,otto,d,e,f,2\n"
    opened = box.open(write(tmp_path, "id,who,sentence1,sentence2,condition,rating" + rows))
    assert [name in opened[box.view] for name in (">condition<", ">rating<", "anna")] == [True, True, False]
    none = ("", "", "", "", None, None, "", "", "sentence2", "condition", "rating")
    assert "anna" in box.change(str(tmp_path / "mine.csv"), opened[box.reading], *none)[box.view]


def test_rows_without_a_rating_teach_nothing_and_do_not_count(tmp_path: Path) -> None:
    rows = "".join(f"a{i},b{i},c,{i % 5 + 1 if i else ''}\n" for i in range(25))
    for kind, usable in ((TRAINED, 24), (RATED, 25)):
        box = build(kind)
        assert f"{usable} of 25 rows" in box.open(write(tmp_path, PAIR + rows))[box.view]


def test_percentages_are_numbers(tmp_path: Path) -> None:
    seen = inspect(RATED, Reading(write(tmp_path, PAIR + "a,b,c,20 %\nd,e,f,100%\n")))
    assert (seen.reading.scale, seen.reading.problem) == ((0.0, 100.0), "")
    assert [pair.label for pair in seen.reading.pairs().pairs] == [1.8, 5.0]


def test_ratings_that_are_words_are_told_with_their_row(tmp_path: Path) -> None:
    words = inspect(RATED, Reading(write(tmp_path, PAIR + "a,b,c,hoch\nd,e,f,niedrig\n")))
    told = "All ratings in label are words (the first, 'hoch', in row 1 (line 2)). Write beside each, in Labels,"
    assert words.reading.problem.startswith(told)
    rows = "".join(f"a{row},b,c,{row % 5 + 1}\n" for row in range(3))
    mixed = inspect(TRAINED, Reading(write(tmp_path, PAIR + rows + "d,e,f,sehr gut\n"))).reading.problem
    assert "At least 20" in mixed
    assert "1 of the 4 ratings in label is a word (the first, 'sehr gut', in row 4 (line 5))." in mixed
