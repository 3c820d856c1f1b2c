"""C-STS re-annotated: parts, sums, the hub. The rows here are invented; the real files are counted, never shown."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from condviz.data import corpora, csts
from condviz.data.csts import TRAIN, VALIDATION
from condviz.data.csts import load_reannotated as load
from condviz.errors import DataError
from condviz.evaluation.dataset import open_data, training_conditions
from tests.data.test_corpora import REAL

HEADER = "sentence1,sentence2,condition,label\n"
TABLES = {
    TRAIN: HEADER + "".join(f"One {i}.,Two {i}.,the sport,1.0\nOne {i}.,Two {i}.,the mood,4.0\n" for i in range(20)),
    VALIDATION: HEADER
    + "".join(
        f"{'One' if i < 3 else 'Three'} {i}.,Four {i}.,the sport,{-1 if i == 9 else 2}\n"
        f"{'One' if i < 3 else 'Three'} {i}.,Four {i}.,the place,5\n"
        for i in range(10)
    ),
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the corpora, with files of the right form and their sums."""
    folder = tmp_path / csts.REANNOTATED.folder
    folder.mkdir()
    for name, table in TABLES.items():
        (folder / name).write_text(table)
        monkeypatch.setitem(csts.SUMS, name, hashlib.sha256(table.encode()).hexdigest())
    monkeypatch.setenv(corpora.VARIABLE, str(tmp_path))
    return tmp_path


def test_rows_that_cannot_be_judged_are_dropped_and_their_partners_kept(data: Path) -> None:
    dataset = open_data("csts-reannotated:validation")
    assert (len(dataset.pairs), len(dataset.items)) == (19, 9)
    assert "people" in dataset.ratings


def test_the_unshared_part_has_no_sentence_of_train(data: Path) -> None:
    rows = corpora.build("csts-reannotated", "validation-unshared")
    assert {row.sentence1 for row in rows} == {f"Three {i}." for i in range(3, 10)}
    assert len(open_data("csts-reannotated:validation-unshared").pairs) == 13


def test_parts_are_divided_by_sentence_pair_and_seed(data: Path) -> None:
    for whole, large, small in (("train", "train90", "dev10"), ("validation", "reannotated70", "reannotated30")):
        sides = [load(data / "csts_reannotated", part) for part in (large, small)]
        assert sorted(map(repr, sides[0] + sides[1])) == sorted(map(repr, load(data / "csts_reannotated", whole)))
        keys = [{(pair.sentence1, pair.sentence2) for pair in side} for side in sides]
        assert not keys[0] & keys[1]
    drawn = {
        frozenset(row.sentence1 for row in corpora.build("csts-reannotated", "reannotated30", seed=seed))
        for seed in (0, 0, 1, 2)
    }
    assert len(drawn) == 3


def test_another_file_is_refused(data: Path) -> None:
    (data / "csts_reannotated" / TRAIN).write_text(HEADER + "a,b,c,1\n")
    with pytest.raises(DataError, match=r"has SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}\. Get the file"):
        corpora.build("csts-reannotated", "train")


def test_a_survey_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(corpora.VARIABLE, str(tmp_path))
    found = corpora.survey("csts-reannotated")
    assert found.files == {TRAIN: False, VALIDATION: False}
    assert "condviz data build csts-reannotated" in found.parts[0].problem


def test_what_a_model_has_seen_is_told_without_a_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(file: str) -> str:
        pytest.fail(f"{file} is downloaded")

    monkeypatch.setenv(corpora.VARIABLE, str(tmp_path))
    monkeypatch.setattr(csts, "_download", download)
    found = training_conditions("bi-encoder-csts")
    assert found is not None
    assert corpora.conditions("scenes", "train") < found, "those of what is here"


@pytest.mark.parametrize("known", csts.HUB)
def test_files_come_from_the_hub_under_either_name(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    from huggingface_hub.errors import RepositoryNotFoundError

    class Missing(RepositoryNotFoundError):
        def __init__(self, name: str) -> None:
            Exception.__init__(self, f"no {name}")

    stored = (data / "csts_reannotated").rename(tmp_path / "hub")

    def download(name: str, file: str, *, repo_type: str) -> str:
        assert repo_type == "dataset"
        if name != known:
            raise Missing(name)
        return str(stored / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    csts._download.cache_clear()
    assert len(load(data / "none", "train")) == 40
    csts._download.cache_clear()


def test_without_hub_and_folder_it_says_where_the_file_belongs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csts, "_download", lambda file: "offline")
    with pytest.raises(DataError, match=r"is not in .*none and did not come from the hub \(offline\)\. Put it there"):
        load(tmp_path / "none", "train")


@pytest.mark.slow
@pytest.mark.skipif(not (REAL / "csts_reannotated").is_dir(), reason="no real corpora")
@pytest.mark.parametrize(
    ("part", "rows"),
    [("train", 11_342), ("validation", 2_620), ("validation-unshared", 1_408), ("train90", 10_208), ("dev10", 1_134)],
)
def test_the_real_files_have_the_published_counts(part: str, rows: int) -> None:
    assert len(load(REAL / "csts_reannotated", part)) == rows
