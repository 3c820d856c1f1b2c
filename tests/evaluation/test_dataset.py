"""Rows to analyse: items, repeats, missing partners and labels, further columns, damaged files."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from condviz.analysis.errors.study import judge, make_study
from condviz.data import corpora
from condviz.data.corpus import COLUMNS
from condviz.errors import DataError
from condviz.evaluation.dataset import (
    COLUMN_HELP,
    MAX_SCENE_PAIRS,
    identifier,
    make_dataset,
    open_data,
    training_conditions,
)
from condviz.models import registry
from condviz.paths import CHECKPOINTS
from condviz.types import Pair

HEAD = "sentence1,sentence2,condition,label"


def read(*lines: str, head: str = HEAD, **options: object):  # noqa: ANN201
    return open_data(io.BytesIO("\n".join([head, *lines]).encode()), **options)


def test_items_are_two_rows_with_the_same_sentences() -> None:
    data = read("a,b,x,1", "c,d,x,2", "a,b,y,5", "c,d,z,3")
    assert data.items.tolist() == [[0, 2], [1, 3]]
    assert data.clusters.tolist() == [0, 1, 0, 1]
    assert data.numbers.tolist() == [1, 2, 3, 4]
    assert data.gold.tolist() == [1, 2, 5, 3]
    assert data.notes == ()


def test_repeats_count_and_are_noted() -> None:
    data = read("a,b,x,1", "a,b,x,1", "a,b,y,2", "c,d,x,4", "c,d,x,5")
    assert len(data.pairs) == 5
    assert any("2 rows repeat an earlier one" in note and "1 of them with another label" in note for note in data.notes)


def test_a_missing_second_condition_is_said() -> None:
    assert "second condition: 1 of 3 rows" in " ".join(read("a,b,x,1", "a,b,y,2", "c,d,x,3").notes)


def test_no_labels_means_scoring_only() -> None:
    data = read("a,b,x", "a,b,y", head="sentence1,sentence2,condition")
    assert np.isnan(data.gold).all()
    assert "No row has a rating" in data.notes[0]


def test_equal_labels_and_one_row_are_accepted_with_a_note() -> None:
    assert any("All labels are 3" in note for note in read("a,b,x,3", "a,b,y,3").notes)
    assert len(read("a,b,x,3").pairs) == 1


@pytest.mark.parametrize(
    ("line", "message"), [("a,b,x,9", "must be a number from 1 to 5"), ("a,,x,1", "is empty"), ("a,b,x", "3 cells")]
)
def test_damaged_rows_are_named(line: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(line)


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(DataError, match="at most 2 are allowed"):
        read("a,b,x,1", "a,b,y,1", "a,b,z,1", max_rows=2)


def test_other_encodings_are_read_with_a_note() -> None:
    data = open_data(io.BytesIO(f"{HEAD}\ncafé,b,x,1\n".encode("latin-1")))
    assert data.pairs[0].sentence1 == "café"
    assert any("not UTF-8" in note for note in data.notes)


def test_further_columns_become_columns_and_scores() -> None:
    data = read("a,b,x,1,p,0.5,bad", "a,b,y,2,q,0.25,", head=f"{HEAD},My Domain!,score_csr,score_other")
    assert data.extra == {"my_domain": ("p", "q")}
    assert list(data.stored) == ["csr"]
    assert data.stored["csr"].tolist() == [0.5, 0.25]


def test_seen_does_not_depend_on_case_and_blanks() -> None:
    data = make_dataset("t", [Pair("a", "b", "The  Sport"), Pair("a", "b", "mood")]).with_training(["the sport"])
    assert data.seen.tolist() == [True, False]
    assert make_dataset("t", [Pair("a", "b", "c")]).seen is None


@pytest.mark.parametrize(
    ("column", "name"),
    [("Domain", "domain"), ("a b-c", "a_b_c"), ("1st", "file_1st"), ("gold", "file_gold"), ("in", "file_in"),
     ("ﬁne", "fine"), ("\uff27old", "file_gold")],
)  # fmt: skip
def test_names_of_columns_are_valid_in_filters(column: str, name: str) -> None:
    assert identifier(column) == name


def test_columns_that_would_have_the_same_name_are_all_kept() -> None:
    data = read("a,b,x,1,p,q,r", head=f"{HEAD},My Domain,my-domain,my_domain_2")
    assert data.extra == {"my_domain": ("p",), "my_domain_2": ("q",), "my_domain_2_2": ("r",)}


def test_a_single_text_is_no_list_of_training_conditions() -> None:
    with pytest.raises(DataError, match="must be a list of texts"):
        read("a,b,x,1").with_training("the mood")


def test_no_computed_column_can_be_taken_by_a_file() -> None:
    data = read("a,b,x,1,p", head=f"{HEAD},mine")
    study = make_study(data, *(judge(data, name, np.zeros(1)) for name in "ab"))
    assert set(study.columns) == {*COLUMN_HELP, "mine"}
    assert [identifier(name) for name in COLUMN_HELP] == [f"file_{name}" for name in COLUMN_HELP]


def test_aspects_are_those_of_the_column_or_else_the_conditions() -> None:
    named = read("a,b,x,1,m", "a,b,y,2,m", head=f"{HEAD},aspect")
    assert named.rows.aspects.tolist() == [0, 0]
    assert read("a,b,x,1", "a,b,X ,2", "a,b,y,2").rows.aspects.tolist() == [0, 0, 1]


def test_a_part_of_a_corpus_is_data_too() -> None:
    assert "language model" in open_data("scenes:test").ratings
    with pytest.raises(DataError, match="There is no part 'odd'"):
        open_data("scenes:odd")


def test_the_conditions_of_a_training_are_those_of_its_checkpoint() -> None:
    assert training_conditions("tri-hadamard") == corpora.conditions("scenes", "train")
    assert training_conditions("minilm") is None
    assert training_conditions("no such model") is None


def test_the_conditions_of_a_training_are_those_of_the_model_that_has_the_name_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MODEL_FOLDERS", (tmp_path,))
    assert training_conditions("mine") is None
    shutil.copytree(CHECKPOINTS / "tri-hadamard", tmp_path / "mine")
    assert training_conditions("mine") == corpora.conditions("scenes", "train")
    manifest = tmp_path / "mine" / "condviz.json"
    content = json.loads(manifest.read_text())
    content["training"]["data"] = [part | {"source": "tables"} for part in content["training"]["data"][:1]]
    manifest.write_text(json.dumps(content))
    assert training_conditions("mine") == corpora.conditions("tables", content["training"]["data"][0]["split"])


def test_the_digest_depends_on_rows_and_columns() -> None:
    one, two = read("a,b,x,1"), read("a,b,x,2")
    assert one.digest == read("a,b,x,1").digest != two.digest
    assert read("a,b,x,1,0.5", head=f"{HEAD},score_m").digest != read("a,b,x,1,0.6", head=f"{HEAD},score_m").digest


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        open_data(tmp_path / "absent.csv")


def test_a_part_of_a_corpus_is_a_table_too_and_whole_where_no_limit_is_asked_for() -> None:
    rows = corpora.build("scenes", "test")
    data = open_data("scenes:test", max_rows=None)
    assert data.table is not None
    assert data.table.columns == COLUMNS
    assert [pair.label for pair in data.table.pairs] == [row.label for row in rows]
    assert data.table.column("family2") == [row.family2 for row in rows]
    assert len(open_data("scenes:test").pairs) == min(len(rows), 2 * MAX_SCENE_PAIRS)
