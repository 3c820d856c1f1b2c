"""Tables: every form that a spreadsheet writes is read, every fault is named by row and column."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.data import tables
from condviz.data.files import write_text
from condviz.data.pairs import format_predictions, read_pairs
from condviz.data.tables import read_table, to_csv
from condviz.errors import DataError

HEADER = "sentence1,sentence2,condition,label\n"
ROW = "A man surfs.,A girl skis.,the sport,2\n"


def read(content: str | bytes, **options: int) -> object:
    return read_pairs(io.BytesIO(content.encode() if isinstance(content, str) else content), **options)


def test_plain_csv_is_read() -> None:
    table = read(HEADER + ROW)
    assert table.columns == ("sentence1", "sentence2", "condition", "label")
    assert [(pair.sentence1, pair.condition, pair.label) for pair in table.pairs] == [
        ("A man surfs.", "the sport", 2.0)
    ]
    assert table.notes == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_encodings_and_delimiters_are_found(encoding: str, delimiter: str) -> None:
    text = (HEADER + "Der Bär schläft.,Ein Café.,the place,3\n").replace(",", delimiter)
    table = read(text.encode(encoding))
    assert table.pairs[0].sentence2 == "Ein Café."
    assert table.pairs[0].label == 3


def test_windows_text_is_read_with_a_note() -> None:
    table = read((HEADER + "Crème brûlée – “fresh”,soup,the taste,1\n").encode("cp1252"))
    assert table.pairs[0].sentence1 == "Crème brûlée – “fresh”"
    assert "not UTF-8" in table.notes[0]


def test_quoted_delimiters_newlines_and_other_columns_are_kept() -> None:
    table = read('id,Sentence1 ,sentence2,condition,extra\r\n7,"one,\ntwo ""three""",b,c,x\r\n')
    assert table.pairs[0].sentence1 == 'one, two "three"'
    assert table.pairs[0].label is None
    assert table.rows == (("7", 'one,\ntwo "three"', "b", "c", "x"),)


@pytest.mark.parametrize("cell", ["", " ", "nan", "NaN", "-1", "-1.0"])
def test_missing_and_hidden_labels_leave_the_row_unrated(cell: str) -> None:
    assert read(HEADER + ROW.replace("2", cell)).pairs[0].label is None


def test_a_comma_is_a_decimal_point_where_it_does_not_separate() -> None:
    assert read("sentence1;sentence2;condition;label\na;b;c;4,5\n").pairs[0].label == 4.5


def test_blank_rows_are_left_out_and_counted() -> None:
    table = read("\n" + HEADER + ROW + ",,,\n\n" + ROW)
    assert len(table.pairs) == 2
    assert table.notes == ("2 blank rows were left out.",)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
FAULTS = {
    "empty": ("", "The table is empty"),
    "blank": ("\n \n", "The table is empty"),
    "header only": (HEADER, "has a header but no rows"),
    "no condition": ("sentence1,sentence2,label\na,b,1\n", "no column condition. Found: sentence1, sentence2, label"),
    "misspelt": ("sentence_1,sentense2,Condition\na,b,c\n", "sentence_1 -> sentence1, sentense2 -> sentence2"),
    "twice": ("sentence1,sentence2,condition,Condition\na,b,c,d\n", "has 2 columns called condition"),
    "blank text": (HEADER + ROW + "a,,c,1\n", r"Row 2 \(line 3\), column sentence2 is empty"),
    "nan text": (HEADER + "a,b,nan,1\n", r"Row 1 \(line 2\), column condition is empty"),
    "label text": (HEADER + "a,b,c,same\n", r"Row 1 \(line 2\), column label must be a number from 1 to 5, got 'same'"),
    "label range": (HEADER + ROW + "a,b,c,6\n", r"Row 2 \(line 3\), column label .* got '6'"),
    "label infinite": (HEADER + "a,b,c,inf\n", "column label must be"),
    "long": (HEADER + "a," + "x" * 100_000 + ",c,1\n", "column sentence2 has 100,000 characters"),
    "control": (HEADER + "a\x07,b,c,1\n", r"column sentence1 has a control character \(U\+0007\)"),
    "nul": (HEADER + "a\x00,b,c,1\n", r"column sentence1 has a control character \(U\+0000\)"),
    "ragged": (HEADER + "Yes, it is.,b,c,1\n", "has 5 cells, but the header has 4. Put texts that contain a comma"),
    "short": (HEADER + "a,b\n", "has 2 cells"),
    "line after a quoted break": (HEADER + '"a\nb",b,c,1\na,b,c,9\n', r"Row 2 \(line 4\)"),
    "open quote": (HEADER + ROW + '"never closed,b,c,1\n' + ROW, r"Row 2 \(line 3\) cannot be read"),
    "png": (PNG, "is a PNG image"),
    "excel": (b"PK\x03\x04" + bytes(100), "is an Excel or zip file"),
    "noise": (np.random.default_rng(0).bytes(4000), "binary content"),
    "cut utf-16": ((HEADER + ROW).encode("utf-16")[:-1], "breaks off"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(fault: str) -> None:
    content, message = FAULTS[fault]
    with pytest.raises(DataError, match=message) as caught:
        read(content)
    assert "\n" not in str(caught.value)


def test_a_large_table_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(DataError, match="larger than 1 MB"):
        read(HEADER + ROW * 40_000, max_bytes=2**20)


@pytest.mark.parametrize("source", [None, 3, [3]])
def test_what_is_no_table_is_named(source: object) -> None:
    with pytest.raises(DataError, match=f"data frame, got {type(source).__name__}"):
        read_pairs(source)


def test_a_path_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv does not exist"):
        read_pairs(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="There is no file of texts"):
        read_pairs(tmp_path)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_table_or_one_error(content: bytes) -> None:
    for prefix in (b"", HEADER.encode()):
        with contextlib.suppress(DataError):
            assert read(prefix + content).pairs


def test_predictions_stand_beside_the_original_columns(tmp_path: Path) -> None:
    table = read("id;score_csr;sentence1;sentence2;condition\n1;old;a, b;c;d\n2;old;e;f;g\n")
    scores = {"minilm": np.array([0.1, np.nan], np.float32), "csr": np.array([1 / 3, 1], np.float32)}
    write_text(tmp_path / "out.csv", format_predictions(table, scores))
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,sentence1,sentence2,condition,score_minilm,score_csr"
    assert lines[1] == '1,"a, b",c,d,0.100000001,0.333333343'
    assert lines[2] == "2,e,f,g,,1"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    again = read_pairs(tmp_path / "out.csv")
    assert np.float32(again.rows[0][-1]) == scores["csr"][0]


def test_scores_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="Length"):
        format_predictions(read(HEADER + ROW), {"csr": np.zeros(2, np.float32)})


def test_formulas_are_guarded_in_names_and_texts_but_not_in_numbers() -> None:
    frame = pd.DataFrame({"=1+1": ["@sum", "-5", "-x"], "n": [-1.5, 2, 3]})
    assert to_csv(frame) == "'=1+1,n\n'@sum,-1.5\n-5,2.0\n'-x,3.0\n"
    table = read("sentence1,sentence2,condition,=cmd\n-a,b,c,=1\n")
    assert format_predictions(table, {"=x": np.ones(1, np.float32)}).splitlines() == [
        "sentence1,sentence2,condition,'=cmd,score_=x",
        "-a,b,c,=1,1",
    ]


def test_many_columns_rows_and_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"has 5,000 columns, and at most 1,000"):
        read_table(io.StringIO(",".join(f"c{number}" for number in range(5000)) + "\n"))
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    with pytest.raises(DataError, match="more than 3 rows of 1 columns"):
        read_table(io.StringIO("a\n" + "x\n" * 4))
    monkeypatch.setattr(tables, "MAX_CELLS", 4)
    with pytest.raises(DataError, match="more than 2 rows of 2 columns"):
        read_table(io.StringIO("a,b\n" + "x,y\n" * 3))


def test_damaged_parquet_is_named() -> None:
    with pytest.raises(DataError, match="is no Parquet file, or is damaged"):
        read(b"PAR1" + bytes(50))
