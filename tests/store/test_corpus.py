"""Sources of a corpus: what is read, and what is refused before anything is encoded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from condviz.errors import DataError
from condviz.store.corpus import read_source


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def texts(path: Path, column: str = "", **options: bool) -> list[str]:
    return [row.text for row in read_source(path, column, **options).rows()]


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"text": "a cat", "stars": 4}, {"text": "two dogs", "stars": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    files = [
        write(tmp_path / "a.csv", "text,stars\na cat,4\ntwo dogs,\n"),
        write(tmp_path / "a.tsv", "text\tstars\na cat\t4\ntwo dogs\t\n"),
        write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
        tmp_path / "a.parquet",
    ]
    for file in files:
        source = read_source(file)
        assert source.columns == {"stars": "number"}, file
        assert [(row.number, row.text, row.cells["stars"]) for row in source.rows()] == [
            (1, "a cat", "4"),
            (2, "two dogs", None),
        ]
        assert [row.text for row in source.rows(1)] == ["two dogs"]
    assert texts(write(tmp_path / "a.txt", "a cat\n\ntwo dogs\n")) == ["a cat", "two dogs"]


def test_a_text_may_hold_the_separator_of_other_files_and_blank_lines_come_first(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "a.csv", "\n \ntext\na cat, a dog\n")) == ["a cat, a dog"]
    assert texts(write(tmp_path / "b.csv", "\ntext;stars\na cat, a dog;3\n")) == ["a cat, a dog"]


def test_every_file_of_a_folder_needs_the_column(tmp_path: Path) -> None:
    write(tmp_path / "a, 1.csv", "text,kind\na cat,x\n")
    write(tmp_path / "a, 2.csv", "txt,kind\na dog,x\n")
    with pytest.raises(DataError, match=r"a, 2\.csv has no column 'text'"):
        read_source(tmp_path)


def test_a_folder_is_one_source_and_blank_rows_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "1.csv", "text,kind\na cat,x\n ,y\n")
    write(tmp_path / "2.csv", "text,stars\ntwo dogs,3\n")
    source = read_source(tmp_path)
    assert (source.total, source.left_out) == (2, 1)
    assert [row.cells for row in source.rows()] == [{"kind": "x", "stars": None}, {"kind": None, "stars": "3"}]


def test_a_column_of_numbers_and_words_is_text(tmp_path: Path) -> None:
    source = read_source(write(tmp_path / "a.csv", "text,size\na,1\nb,large\nc,2\n"))
    assert source.columns == {"size": "text"}
    assert [row.cells["size"] for row in source.rows()] == ["1", "large", "2"]
    months = read_source(write(tmp_path / "b.csv", "text,month\na,2024_01\nb,2024_02\n"))
    assert [row.cells["month"] for row in months.rows()] == ["2024_01", "2024_02"]


def test_names_of_columns_can_stand_in_a_filter(tmp_path: Path) -> None:
    source = read_source(write(tmp_path / "a.csv", "title,kind of dog,row,2nd,text\na,b,c,d,e\n"), "title")
    assert list(source.columns) == ["kind_of_dog", "row_", "_2nd", "text_"]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "text,b\nx,y\n", "txt", "no column 'txt'. Columns: text, b"),
        ("a.csv", "", "", "it has no rows"),
        ("a.csv", "text,b\n", "text", "it has no rows"),
        ("a.csv", "text,b\n ,y\n", "text", "holds no text"),
        ("a.csv", "one,two\nx,y\n", "", "which column holds the texts.*one, two"),
        ("a.csv", "text,text\nx,y\n", "", "two columns called"),
        ("a.csv", "text,b\nx,y,z\n", "", "3 cells, but the header has 2"),
        ("a.csv", "text,b\n" + "x" * 10_000_000 + ",y\n", "", "131,072 characters"),
        ("a.csv", "text,b\n" + "x" * 6_000 + ",y\n", "", r"a\.csv: Row 1 \(line 2\), column text .*set skip_bad"),
        ("a.jsonl", '{"text": [3]}\n', "", "a list or a record; a text is expected"),
        ("a.jsonl", '{"text": "a"}\n{"text"\n', "", "line 2.*Each line has to be one object"),
        ("a.jsonl", "[1]\n", "", "This is a list"),
        ("a.xlsx", "PK\x03\x04", "", "is an Excel or zip file"),
        ("a.parquet", "PAR1 and nothing else", "", "no Parquet file"),
    ],
)
def test_bad_files_are_told_before_anything_is_encoded(
    tmp_path: Path, name: str, content: str, column: str, message: str
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=message):
        read_source(write(tmp_path / name, content), column)


def test_bad_rows_can_be_left_out(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "a"}\n{"text": [3]}\n{"text": "b\\u0000"}\n')
    with pytest.raises(DataError, match="line 2"):
        texts(file)
    source = read_source(file, skip_bad=True)
    assert ([row.text for row in source.rows()], source.left_out) == (["a"], 2)


def test_other_encodings_and_missing_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("text,b\nCafé,y\n".encode("latin-1"))
    source = read_source(tmp_path / "a.csv")
    assert [row.text for row in source.rows()] == ["Café"]
    assert "not UTF-8" in source.report.notes[0]
    with pytest.raises(DataError, match="does not exist"):
        texts(tmp_path / "b.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no file of texts"):
        texts(tmp_path / "empty")


def test_a_dataset_of_the_hub_is_fetched_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "train.csv", "text\na cat\n")
    write(tmp_path / "data" / "test.csv", "text\ntwo dogs\n")
    write(tmp_path / "data" / "train.jsonl", '{"text": "the same once more"}\n')
    write(tmp_path / "README.md", "about cats")
    asked = []

    def fetch(name: str, *, repo_type: str, allow_patterns: list[str]) -> str:
        if name == "someone/nothing":
            raise OSError("no network")
        asked.append((name, repo_type))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    for name in ("someone/cats", "hf://datasets/someone/cats"):
        assert [row.text for row in read_source(name).rows()] == ["two dogs", "a cat"]
    for part, text in (("data/train*", "a cat"), ("data/train.jsonl", "the same once more")):
        assert [row.text for row in read_source(f"hf://datasets/someone/cats/{part}").rows()] == [text]
    assert set(asked) == {("someone/cats", "dataset")}
    with pytest.raises(DataError, match="has no file of texts"):
        read_source("hf://datasets/someone/cats/other")
    with pytest.raises(DataError, match="no network"):
        read_source("someone/nothing")
    with pytest.raises(DataError, match="does not exist"):
        read_source(Path("someone/cats"))  # what a visitor has uploaded is never looked for on the hub
