"""Corpora that are not ours: read from small files of the same form, paired, balanced; and the real ones, if there."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from benchmarks.corpora import measure_shortcuts
from condviz.data import cebab, corpora, csts, e2e, mams
from condviz.data.corpus import COLUMNS as ROW_COLUMNS
from condviz.data.corpus import format_rows
from condviz.data.families import gold
from condviz.data.pairs import read_pairs
from condviz.errors import DataError
from tests.data.built import build

REAL = corpora.data_folder()
COLUMNS = ["id", "original_id", "is_original", "split", "edit_type", "edit_goal", "description"]
LABELS = [f"{name}_aspect_majority" for name in cebab.NAMES]


def review(
    group: str, number: int, text: str, *, edited: str = "", split: str = "train", **labels: str
) -> dict[str, str]:
    row = dict.fromkeys([*COLUMNS, *LABELS], "")
    row |= {"id": f"{group}_{number}", "original_id": group, "is_original": str(int(not edited)), "split": split}
    row |= {"edit_type": edited, "description": text}
    return row | {f"{name}_aspect_majority": label for name, label in labels.items()}


def write_cebab(folder: Path, rows: list[dict[str, str]]) -> Path:
    folder.mkdir(exist_ok=True)
    with (folder / cebab.FILE).open("w", newline="") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *LABELS])
        writer.writeheader()
        writer.writerows(rows)
    return folder


def write_mams(folder: Path, sentences: list[tuple[str, dict[str, str]]], name: str = "train.xml") -> Path:
    folder.mkdir(exist_ok=True)
    parts = ["<?xml version='1.0' encoding='utf-8'?>\n<sentences>"]
    for text, labels in sentences:
        entries = "".join(f'<aspectCategory category="{key}" polarity="{value}"/>' for key, value in labels.items())
        parts.append(f"<sentence><text>{text}</text><aspectCategories>{entries}</aspectCategories></sentence>")
    (folder / name).write_text("".join([*parts, "</sentences>"]))
    return folder


def write_e2e(folder: Path, rows: list[tuple[str, str]], name: str = "devel-fixed.no-ol.csv") -> Path:
    folder.mkdir(exist_ok=True)
    buffer = io.StringIO()
    csv.writer(buffer).writerows([("mr", "ref", "fixed", "orig_mr"), *((mr, ref, 0, mr) for mr, ref in rows)])
    (folder / name).write_text(buffer.getvalue())
    return folder


POSITIVE, NEGATIVE = "Positive", "Negative"
GROUP = [
    review("1", 0, "Great food. The service was slow.", food=POSITIVE, service=NEGATIVE, noise="unknown"),
    review("1", 1, "Bad food. The service was slow.", edited="food", food=NEGATIVE, service=NEGATIVE),
    review("1", 2, "Great food. The service was quick.", edited="service", food=POSITIVE, service=POSITIVE),
    review("1", 3, "The food and service were both bad.", edited="food", food=NEGATIVE, service=NEGATIVE),
]


def test_cebab_takes_labels_of_people_only(tmp_path: Path) -> None:
    (family,) = cebab.load(write_cebab(tmp_path, GROUP), "train", copies=False)
    assert [(scene.role, scene.aspects) for scene in family.scenes] == [
        ("base", {"food": "positive", "service": "negative"}),
        ("edit", {"food": "negative"}),
        ("edit", {"service": "positive"}),
        ("edit", {"food": "negative"}),
    ]


def test_cebab_keeps_copied_labels_where_their_clause_stands(tmp_path: Path) -> None:
    (family,) = cebab.load(write_cebab(tmp_path, GROUP), "train", copies=True)
    assert [scene.aspects for scene in family.scenes[1:]] == [
        {"food": "negative", "service": "negative"},
        {"food": "positive", "service": "positive"},
        {"food": "negative"},
    ]


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        ("Bad food. The waiter was kind.", {"service"}),
        ("Great food and service. The waiter was kind.", set()),
        ("Great food. The waiter was rude.", set()),
        ("Bad food but the waiter was kind.", {"service"}),
        ("Bad food. The waiter was kind. Everything was dirty.", set()),
        ("Bad food.", set()),
        ("Bad food and the waiter was kind.", set()),
        ("bad FOOD, the waiter was kind!", {"service"}),
    ],
)
def test_cebab_check_of_copies(edit: str, kept: set[str]) -> None:
    original = "Great food. The waiter was kind."
    result = cebab.kept_aspects(original, edit, {"service": "positive", "noise": "negative"})
    assert set(result) == kept


def test_cebab_does_not_trust_praise_of_a_loud_place(tmp_path: Path) -> None:
    rows = [
        review("1", 0, "Loud and lively, great food.", food=POSITIVE, noise=POSITIVE),
        review("2", 0, "Quiet, great food.", food=POSITIVE, noise=POSITIVE),
        review("3", 0, "Loud, great food.", food=POSITIVE, noise=NEGATIVE),
    ]
    families = cebab.load(write_cebab(tmp_path, rows), "train", copies=False)
    assert ["noise" in family.scenes[0].aspects for family in families] == [False, True, True]


def test_cebab_leaves_out_repeated_texts_and_those_of_the_tests(tmp_path: Path) -> None:
    rows = [
        review("1", 0, "Good food.", food=POSITIVE),
        review("1", 1, "Good  food.", edited="food", food=POSITIVE),
        review("2", 0, "Bad food.", food=NEGATIVE),
        review("3", 0, "Bad food.", food=NEGATIVE, split="test"),
    ]
    folder = write_cebab(tmp_path, rows)
    assert [[scene.text for scene in family.scenes] for family in cebab.load(folder, "train", copies=False)] == [
        ["Good food."]
    ]
    assert len(cebab.load(folder, "test", copies=False)) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (review("1", 0, "x", food="good"), r"row 1, column food_aspect_majority: 'good' is not a label"),
        (review("1", 0, "x", edited="price"), r"row 1, column edit_type: 'price' is not an aspect"),
    ],
)
def test_cebab_names_the_bad_row(tmp_path: Path, row: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        cebab.load(write_cebab(tmp_path, [row]), "train", copies=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,text\n1,a\n", r"has no column .*description"),
        (b"\xff\xfe\x00", "is damaged"),
        ((",".join([*COLUMNS, *LABELS]) + "\n1,1,1,train").encode(), r"Row 1 \(line 2\) has 4 cells"),
    ],
)
def test_cebab_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / cebab.FILE).write_bytes(content)
    with pytest.raises(DataError, match=message):
        cebab.load(tmp_path, "train", copies=False)


def test_mams_polarities_are_in_order(tmp_path: Path) -> None:
    folder = write_mams(
        tmp_path, [("A &amp; B", {"food": "positive", "staff": "neutral", "miscellaneous": "negative"})]
    )
    (family,) = mams.load(folder, "train")
    assert family.scenes[0].text == "A & B"
    assert family.scenes[0].aspects == {"food": "positive", "staff": "neutral"}
    food = mams.aspects()["food"]
    assert [gold(food, "positive", other) for other in mams.POLARITIES] == [1, 3, 5]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"wine": "positive"}, "sentence 1: 'wine' is not a category"),
        ({"food": "5"}, "sentence 1: '5' is not a polarity"),
    ],
)
def test_mams_names_the_bad_sentence(tmp_path: Path, labels: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        mams.load(write_mams(tmp_path, [("a", labels)]), "train")


def test_mams_damaged_files(tmp_path: Path) -> None:
    folder = write_mams(tmp_path, [(" ", {"food": "positive"})])
    with pytest.raises(DataError, match="sentence 1 has no text"):
        mams.load(folder, "train")
    path = folder / "train.xml"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataError, match="is not whole XML"):
        mams.load(folder, "train")


def test_e2e_has_prices_and_ratings_in_order_and_one_family_for_one_meaning(tmp_path: Path) -> None:
    rows = [
        ("name[Cotto], priceRange[cheap], customer rating[5 out of 5]", "Cotto is cheap and excellent."),
        ("name[Cotto], priceRange[cheap], customer rating[5 out of 5]", "Excellent and cheap: Cotto."),
        ("name[Aromi], priceRange[less than £20], rating[average]", "Aromi costs little and is average."),
        ("name[Aromi], area[riverside], area[city centre]", "Aromi is central, at the river."),
    ]
    families = e2e.load(write_e2e(tmp_path, rows), "dev")
    assert [len(family.scenes) for family in families] == [2, 1, 1]
    assert families[0].scenes[0].aspects == {"name": "Cotto", "price": "low", "rating": "high"}
    assert families[1].scenes[0].aspects == {"name": "Aromi", "price": "low", "rating": "average"}
    assert families[2].scenes[0].aspects == {"name": "Aromi"}
    assert gold(e2e.aspects()["price"], "low", "high") == 1
    assert gold(e2e.aspects()["rating"], "average", "high") == 3
    assert gold(e2e.aspects()["cuisine"], "Chinese", "Japanese") == 3
    assert gold(e2e.aspects()["area"], "riverside", "city centre") == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("stars[3]", "x"), "row 1: 'stars' is not an attribute"),
        (("priceRange[free]", "x"), "row 1: 'free' is no price"),
        (("name[x]", ""), "row 1: a cell is blank"),
    ],
)
def test_e2e_names_the_bad_row(tmp_path: Path, row: tuple[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        e2e.load(write_e2e(tmp_path, [row]), "dev")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder of corpora."""
    monkeypatch.setenv(corpora.VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def data(home: Path) -> Path:
    """Give a folder with a small MAMS: every combination of two polarities, eight times."""
    sentences = [
        (f"Sentence {number} {food} {staff}", {"food": food, "staff": staff})
        for number in range(8)
        for food in mams.POLARITIES
        for staff in mams.POLARITIES
    ]
    write_mams(home / "mams", sentences)
    return home


def test_rows_come_in_twos_and_are_balanced(data: Path) -> None:
    rows = corpora.build("mams", "train")
    assert len(rows) > 100
    pairs = set()
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        assert (one.pair, one.sentence1, one.sentence2) == (other.pair, other.sentence1, other.sentence2)
        assert abs(one.label - other.label) >= 2
        pairs.add(frozenset((one.sentence1, one.sentence2)))
    assert len(pairs) == len(rows) // 2
    shortcuts = measure_shortcuts(rows)
    assert shortcuts.condition < 0.6
    assert shortcuts.overlap < 0.6
    assert rows == corpora.build("mams", "train")
    assert rows != corpora.build("mams", "train", seed=1)


@pytest.mark.parametrize(
    ("name", "part"), [("mams", "train"), ("tables", "validation"), ("scenes", "own_aspects"), ("scenes-plain", "test")]
)
def test_the_conditions_of_a_part_hold_those_of_its_rows(data: Path, name: str, part: str) -> None:
    asked = {row.condition for row in corpora.build(name, part)} - {""}
    assert asked <= corpora.conditions(name, part)


def test_a_review_and_its_edits_are_paired(home: Path) -> None:
    write_cebab(home / "cebab", GROUP)
    rows = corpora.build("cebab-edits", "train")
    assert {(row.aspect, row.label) for row in rows} == {("food", 1), ("food", 5), ("service", 1), ("service", 5)}
    assert {row.family1 for row in rows} == {"cebab-1"}
    with pytest.raises(DataError, match=r"part train of cebab is empty: no two of its texts"):
        corpora.build("cebab", "train")


def test_the_table_is_read_back_with_its_origin(data: Path) -> None:
    rows = corpora.build("mams", "train")
    table = read_pairs(io.StringIO(format_rows(rows)))
    assert [pair.label for pair in table.pairs] == [row.label for row in rows]
    assert table.columns == ROW_COLUMNS
    assert table.rows[0][-1] == rows[0].family2


def test_unknown_names_and_missing_files_say_what_there_is(home: Path) -> None:
    with pytest.raises(DataError, match=r"no corpus 'sick'\. There are: scenes, scenes-plain, tables, tables-hard"):
        corpora.build("sick", "train")
    with pytest.raises(DataError, match=r"no part 'val' of mams\. There are: train, dev, test"):
        corpora.build("mams", "val")
    for name in ("cebab", "mams", "e2e"):
        with pytest.raises(DataError, match=r"cannot be read: No such file .* CONDVIZ_DATA"):
            corpora.build(name, "train")


def test_the_folder_is_that_of_the_variable(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    assert corpora.data_folder() == data
    assert corpora.CORPORA["mams"].place == data / "mams"
    monkeypatch.setenv(corpora.VARIABLE, "")
    assert corpora.data_folder().parts[-2:] == ("shared", "data")


def test_a_survey_reports_what_is_there_and_what_is_wrong(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = corpora.survey("mams")
    assert found.files == {"train.xml": True, "val.xml": False, "test.xml": False}
    train, dev, _ = found.parts
    assert (train.rows, train.problem) == (72, "")
    assert train.pairs > 50
    assert (dev.rows, dev.pairs) == (None, None)
    assert "val.xml cannot be read" in dev.problem
    assert found.to_dict()["parts"][0]["pairs"] == train.pairs
    monkeypatch.delenv(csts.PASSWORD_VARIABLE, raising=False)
    (data / "csts").mkdir()
    (data / "csts" / csts.ARCHIVE).write_bytes(b"U2FsdGVkX18")
    assert "set CONDVIZ_CSTS_PASSWORD" in corpora.survey("csts").parts[0].problem


def test_csts_rows_keep_their_labels(home: Path) -> None:
    (home / "csts").mkdir()
    table = "sentence1,sentence2,condition,label\na,b,x,2\na,b,y,2\nc,d,x,1\nc,d,y,5\n"
    (home / "csts" / "csts_validation.csv").write_text(table)
    assert [row.label for row in corpora.build("csts", "dev")] == [2, 2, 1, 5]


@pytest.mark.parametrize("module", [cebab, mams, e2e])
def test_wordings_are_many_and_different(module: object) -> None:
    wordings = [wording.casefold() for aspect in module.aspects().values() for wording in aspect.phrasings]
    assert len(wordings) == len(set(wordings))
    assert min(len(aspect.phrasings) for aspect in module.aspects().values()) >= 8


REAL_PARTS = [
    ("cebab", "train", 700), ("cebab", "dev", 80), ("cebab", "test", 80),
    ("cebab-edits", "train", 1800), ("cebab-edits", "dev", 200), ("cebab-edits", "test", 200),
    ("mams", "train", 2500), ("mams", "dev", 250), ("mams", "test", 250),
    ("e2e", "dev", 3000), ("e2e", "test", 3000),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part", "least"), REAL_PARTS)
def test_real_corpora_give_pairs_without_shortcuts(name: str, part: str, least: int) -> None:
    corpus = corpora.CORPORA[name]
    if not any((REAL / corpus.folder / file).is_file() for file in corpus.files):
        pytest.skip(f"{name} is not in {REAL}")
    rows = build(name, part)
    assert len(rows) // 2 >= least
    shortcuts = measure_shortcuts(rows)
    assert 0.48 <= shortcuts.condition <= 0.55
    assert 0.48 <= shortcuts.overlap <= 0.55
    sides: dict[str, Counter[bool]] = defaultdict(Counter)
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        for row, rival in ((one, other), (other, one)):
            sides[row.aspect][row.label > rival.label] += 1
    assert len(sides) >= 3
    assert dataclasses.astuple(rows[0])[-1].startswith(f"{name.split('-')[0]}-")


@pytest.mark.slow
@pytest.mark.skipif(not (REAL / "cebab").is_dir() or not (REAL / "mams").is_dir(), reason="no real corpora")
@pytest.mark.parametrize("name", ["cebab", "cebab-edits", "mams", "e2e"])
def test_no_real_text_is_in_two_splits(name: str) -> None:
    parts = ("dev", "test") if name == "e2e" else ("train", "dev", "test")
    texts = [{row.sentence1 for row in build(name, part)} for part in parts]
    for place, group in enumerate(texts):
        for other in texts[place + 1 :]:
            assert not group & other
