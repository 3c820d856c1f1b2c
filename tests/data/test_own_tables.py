"""Tables as programs really write them: nothing is lost, nothing is invented, and what is left out is named."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as arrow
import pytest
from pyarrow import parquet

from condviz.analysis.errors.filters import explain_nothing, select
from condviz.data.kg_formats import TABLES, read_tables
from condviz.data.pairs import read_pairs
from condviz.data.tables import Table, read_table
from condviz.data.tables.formats import Form
from condviz.errors import ConfigError, DataError
from condviz.evaluation.dataset import open_data
from condviz.store.corpus import Corpus, FilterColumns, check_columns, read_source
from condviz.store.disk import open_store
from tests.kg_toy import write_graph

HEADER = "sentence1,sentence2,condition,label\n"
PAIR = "A man surfs.,A girl skis.,the sport,2\n"
OPEN_QUOTE = 'text,id\n"Hello, he said,1\nA man surfs.,2\nA girl skis.,3\n'


def read(content: str | bytes, **options: object) -> Table:
    return read_table(io.BytesIO(content.encode() if isinstance(content, str) else content), **options)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_table_in_another_language_is_read_and_says_what_models_have_learned() -> None:
    german = "Die Brille ist ab Montag fertig.,Ihre neuen Linsen sind noch nicht da.,der Tag,2\n"
    assert not any("English" in note for note in read_pairs(read(HEADER + PAIR)).notes)
    assert "English" in read_pairs(read(HEADER + german)).notes[0]


# ---- quotes, and rows of another length ------------------------------------------------------------------------------
def test_an_open_quote_costs_one_row_and_not_the_rest_of_the_file(tmp_path: Path) -> None:
    source = read_source(write(tmp_path / "a.csv", OPEN_QUOTE), skip_bad=True)
    assert [row.text for row in source.rows()] == ["A man surfs.", "A girl skis."]
    assert (source.total, source.left_out) == (2, 1)
    rows = list(csv.DictReader(io.StringIO(source.report.left_out_csv())))
    assert [(row["line"], row["content"]) for row in rows] == [("2", '"Hello, he said,1')]


def test_many_open_quotes_are_read_in_one_pass() -> None:
    table = read("text,id\n" + '"never closed,1\nA man surfs.,2\n' * 2_000, skip_bad=True)
    assert len(table.rows) + len(table.report.left_out) == 4_000


# ---- cells stay what they were ---------------------------------------------------------------------------------------
IDS = ("1234567890123456789", "1234567890123456788")
KEPT = {
    "id": IDS,
    "zip": ("02134", "00501"),
    "n": ("1E5", "1E6"),
    "version": ("1.10", "1.1"),
    "day": ("Nan", "Infinity"),
}


def test_whole_numbers_of_json_and_parquet_stay_what_they_are(tmp_path: Path) -> None:
    rows = [{"text": f"Text {number}.", "id": int(number)} for number in IDS]
    write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write(tmp_path / "b.json", json.dumps(rows))
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "c.parquet")
    with arrow.OSFile(str(tmp_path / "d.arrow"), "wb") as sink, arrow.ipc.new_file(sink, arrow.schema(
        {"text": arrow.string(), "id": arrow.int64()})) as file:  # fmt: skip
        file.write_table(arrow.Table.from_pylist(rows))
    for path in tmp_path.iterdir():
        assert read_table(path).column("id") == list(IDS), path
        assert read_source(path).columns == {"id": "text"}, path


def test_filters_compare_numbers_with_numbers_and_texts_with_texts() -> None:
    columns = check_columns({**KEPT, "stars": ["4", "4.5"], "price": [3, None]})
    corpus = FilterColumns(Corpus(["a", "b"], None, None, None, columns))
    assert select(f'id == "{IDS[0]}" and zip == "02134"', corpus).tolist() == [True, False]
    assert select("stars > 4", corpus).tolist() == [False, True]
    assert select("price <= 3", corpus).tolist() == [True, False]
    for wrong, hint in (("id == 12", 'write "12"'), ("zip == 2134", 'write "2134"'), ('stars == "4"', "write 4")):
        with pytest.raises(DataError, match=hint):
            select(wrong, corpus)


def test_a_filter_that_can_match_nothing_says_so() -> None:
    corpus = FilterColumns(Corpus(["a", "b"], None, None, None, check_columns(KEPT)))
    assert not select('zip == "2134"', corpus).any()
    assert explain_nothing('zip == "2134" or version in ("1.10", "7")', corpus) == (
        ' No row has zip "2134"; one has "02134". No row has version "7".'
    )
    assert explain_nothing("row > 9", corpus) == explain_nothing("", corpus) == ""


def test_the_errors_of_a_table_filter_ids_as_texts() -> None:
    head, row = "sentence1,sentence2,condition,label,id\n", "A man surfs.,A girl skis.,the sport,2,"
    data = open_data(io.StringIO(head + "".join(f"{row}{number}\n" for number in IDS)))
    from condviz.analysis.errors.filters import describe_rows

    assert select(f'id == "{IDS[1]}"', describe_rows(data)).tolist() == [False, True]


# ---- headers ---------------------------------------------------------------------------------------------------------
def test_a_graph_has_a_header_only_if_all_cells_are_names_of_columns(tmp_path: Path) -> None:
    folder = write_graph(tmp_path / "mine")
    (folder / f"{TABLES[0]}.tsv").write_text("id\tIndonesia\nhead\thead\nnose\tnose\n")
    (folder / f"{TABLES[1]}.tsv").write_text("id\tidentity\nhas\thas\n")
    (folder / f"{TABLES[2]}.tsv").write_text("head\thas\tnose\nhead\tid\tid\n")
    graph = read_tables(folder)
    assert any("was taken as a row" in note and "(header)" in note for note in graph.notes)
    assert (graph.num_entities, graph.num_relations, len(graph.triples)) == (3, 2, 2)
    (folder / f"{TABLES[2]}.tsv").write_text("von\tRelation\tnach\nhead\thas\tnose\n")
    (folder / f"{TABLES[0]}.tsv").write_text("Nummer\tWort\nhead\thead\nnose\tnose\n")
    graph = read_tables(folder, Form(header=True))
    assert (graph.num_entities, len(graph.triples), graph.notes) == (2, 1, ())


def test_names_that_pandas_has_quoted_lose_the_quotes_and_others_keep_them(tmp_path: Path) -> None:
    folder, names = write_graph(tmp_path / "mine"), ['the "big" one', "a\tb"]
    frame = pd.DataFrame({"id": ["a", "b"], "name": names})
    frame.to_csv(folder / f"{TABLES[0]}.tsv", sep="\t", index=False)
    (folder / f"{TABLES[2]}.tsv").write_text("a\t_in\tb\n")
    assert [entity.name for entity in read_tables(folder).entities] == names
    (folder / f"{TABLES[0]}.tsv").write_text('a\t"Casablanca" (film)\nb\t"quoted"\n')
    assert [entity.name for entity in read_tables(folder).entities] == ['"Casablanca" (film)', '"quoted"']
    (folder / f"{TABLES[0]}.tsv").write_text(f"a\ta\nb\t{'x' * 200_000}\n")
    with pytest.raises(DataError, match=r"entities\.tsv: line 2 cannot be read"):
        read_tables(folder)


@pytest.mark.parametrize(
    ("content", "columns", "rows", "doubt"),
    [
        ("A man surfs.\nA girl skis.\n", ("text",), 2, "was taken as a row"),
        ("A man surfs\nA girl skis\n", ("text",), 2, "was taken as a row"),
        ("text\nA girl skis.\n", ("text",), 1, ""),
        ("remark;stars\nGood.;4\n", ("remark", "stars"), 1, ""),
        ("Rex;Tom\nBo;Al\n", ("Rex", "Tom"), 1, "taken as names of columns"),
        ("7;Fine.\n8;Bad.\n", ("column_1", "text"), 2, "was taken as a row"),
    ],
)
def test_a_first_row_is_taken_as_a_header_or_not_and_doubt_is_told(
    content: str, columns: tuple[str, ...], rows: int, doubt: str
) -> None:
    table = read(content, names=("text",))
    assert (table.columns, len(table.rows)) == (columns, rows)
    assert doubt in " ".join(table.notes) if doubt else table.notes == ()
    assert len(read(content, header=False).rows) == len(content.splitlines())
    assert read(content, header=True).columns[0] == content.splitlines()[0].split(";")[0]


def test_pairs_without_a_header_are_in_the_order_of_c_sts() -> None:
    assert read_pairs(io.StringIO("A man surfs.,A girl skis.,the sport,2\n")).pairs[0].label == 2


# ---- what spreadsheets add -------------------------------------------------------------------------------------------
def test_a_separator_in_the_quotes_of_a_header_does_not_count() -> None:
    assert read('"id; a; b; c; d","text"\n1,One.\n').columns == ("id; a; b; c; d", "text")


# ---- encodings; how texts in others are read: tests/test_field_inputs.py ---------------------------------------------
def test_an_encoding_that_does_not_exist_is_told() -> None:
    with pytest.raises(DataError, match="no encoding 'nonsense'"):
        read("text,id\nOne.,1\n", encoding="nonsense")


def test_two_columns_of_one_name_are_refused_in_parquet_as_well(tmp_path: Path) -> None:
    table = arrow.Table.from_arrays([arrow.array(["a"]), arrow.array(["b"])], names=["text", "text"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="two columns called 'text'"):
        read_source(tmp_path / "a.parquet")


# ---- ratings ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["label", "Gold", "rating", "similarity", "score"])
def test_ratings_are_recognised_by_name(name: str) -> None:
    table = read_pairs(io.StringIO(HEADER.replace("label", name) + PAIR))
    assert table.pairs[0].label == 2
    assert any(name in note for note in table.notes) == (name != "label")


def test_other_scales_are_asked_for_and_mapped() -> None:
    content = HEADER + "".join(PAIR.replace(",2\n", f",{label}\n") for label in ("0", '"0,5"', "1", ""))
    with pytest.raises(DataError, match=r"go from 0 to 1.*\(scale\)"):
        read_pairs(io.StringIO(content))
    table = read_pairs(io.StringIO(content), scale=(0, 1))
    assert [pair.label for pair in table.pairs] == [1, 3, 5, None]
    assert table.column("label") == ["0", "0,5", "1", ""]
    assert any("0 to 1, 1 to 5" in note for note in table.notes)
    assert read_pairs(io.StringIO(content), scale=(1, 0)).pairs[0].label == 5
    assert read_pairs(io.StringIO(HEADER + PAIR.replace("2", "-1")), scale=(-1, 1)).pairs[0].label == 1
    with pytest.raises(ConfigError, match="two different numbers"):
        read_pairs(io.StringIO(content), scale=(1, 1))


def test_words_are_mapped_to_ratings() -> None:
    content = HEADER + PAIR.replace("2", "No") + PAIR.replace("2", "yes")
    assert [pair.label for pair in read_pairs(io.StringIO(content), labels={"no": 1, "yes": 5}).pairs] == [1, 5]


def test_bad_rows_of_pairs_are_left_out_and_listed_where_that_is_allowed() -> None:
    content = HEADER + PAIR + PAIR.replace("the sport", "") + PAIR.replace("2", "nonsense") + PAIR.replace("2", "3")
    table = read_pairs(io.StringIO(content), skip_bad=True)
    assert [pair.label for pair in table.pairs] == [2, 3]
    assert [one.place.row for one in table.report.left_out] == [2, 3]
    assert "2 rows that cannot be used were left out: Row 2 (line 3), column condition is empty" in table.notes[-1]
    assert open_data(table).numbers.tolist() == [1, 4]


def test_a_map_takes_a_series_of_conditions() -> None:
    from condviz.analysis.maps import _as_points

    texts = ["A man surfs.", "A dog runs.", "A cat sleeps."]
    for points in (texts, pd.Series(texts), pd.DataFrame({"text": texts})):
        assert _as_points(points, pd.Series(["the mood"])).groups == ("the mood",)


# ---- what Python holds -----------------------------------------------------------------------------------------------
RECORD = {"sentence1": "A man surfs.", "sentence2": "A girl skis.", "condition": "the sport", "label": 2, "id": "007"}


class Dataset:
    """What read_table needs of a datasets.Dataset."""

    column_names = tuple(RECORD)

    def __iter__(self) -> Iterator[dict]:
        return iter([RECORD, RECORD])


def test_a_dataset_of_the_hub_is_read_wherever_a_table_is_but_never_by_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "train.csv", HEADER + PAIR)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(tmp_path))
    name = "hf://datasets/someone/pairs"
    assert len(open_data(name).pairs) == len(read_table(name).rows) == 1
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("a visitor has no hub"))
    for reader in (read_table, read_pairs, read_source):
        with pytest.raises(DataError, match="does not exist"):
            reader(Path(name))


def test_what_is_said_about_rows_that_are_not_read_is_an_error() -> None:
    table = read_pairs([RECORD])
    for source in (table, "tables:test", open_data(table)):
        with pytest.raises(ConfigError, match="scale would change nothing"):
            open_data(source, scale=(0, 1))


def test_one_condition_stands_for_all_rows() -> None:
    records = [{name: cell for name, cell in RECORD.items() if name != "condition"}] * 2
    assert {pair.condition for pair in read_pairs(records, condition="the sport").pairs} == {"the sport"}
    with pytest.raises(DataError, match="has a column of conditions"):
        read_pairs([RECORD], condition="the sport")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"train": Dataset()}, "has the parts train"),
        (RECORD, "is one record"),
        ({"text": ["a", "b"], "id": ["1"]}, "different lengths"),
        (pd.Series([1, 2]), "Pass a table"),
        ([{"sentence1": ["a list"], "sentence2": "b", "condition": "c"}], "a list or a record; a text is expected"),
        (pd.DataFrame({"sentence1": [["x"]], "sentence2": "b", "condition": "c"}), "a list or a record"),
    ],
)
def test_what_is_no_table_is_told_in_one_line(source: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_pairs(source)


@pytest.mark.parametrize("reader", [read_table, read_pairs, read_source, open_store])
def test_a_table_in_place_of_its_path_is_told(reader: Callable) -> None:
    with pytest.raises(DataError, match=r"'text,id A man.*cannot be opened as a path .* Give a path") as caught:
        reader("text,id\n" + "A man surfs.,1\n" * 300)
    assert "\n" not in str(caught.value)


def test_a_name_too_long_for_a_path_is_no_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match="is not the name of a dataset"):
        read_source(f"owner/{'x' * 5_000}")


@pytest.mark.parametrize("reader", [read_table, read_pairs])
def test_a_separator_is_one_character_or_named(reader: Callable[..., Table]) -> None:
    with pytest.raises(ConfigError, match="one character, or tab, got '::'"):
        reader(io.StringIO("sentence1::sentence2\na::b\n"), separator="::")
    text = "sentence1\tsentence2\tcondition\na\tb\tc\n"
    for name in ("tab", "\\t", "\t"):
        assert reader(io.StringIO(text), separator=name).rows == (("a", "b", "c"),)


def test_advice_on_several_rows_is_given_once() -> None:
    rows = "a,b,x,1\na,b,y,5\na,c,x,much\na,c,y,5\na,d,x,little\n"
    table = read_pairs(io.StringIO(f"sentence1,sentence2,condition,label\n{rows}"), skip_bad=True)
    assert table.notes[-1].count("Leave it blank") == 1
    assert "'much'; Row 5" in table.notes[-1]
    assert "'little'. Leave" in table.notes[-1]
