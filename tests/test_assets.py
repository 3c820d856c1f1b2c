"""The written content of the page: complete, unique, within limits, and what its README says."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from condviz.data.texts import MAX_SENTENCE_CHARACTERS, check_conditions, check_sentence

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "assets"
GRADES = {"simple", "realistic", "data"}
LEVELS = {"high", "medium", "low"}
EXAMPLE_KEYS = {"id", "grade", "domain", "title", "sentence1", "sentence2", "conditions", "expected", "note"}
REFERENCE_COLUMNS = ["sentence1", "sentence2", "condition", "label", "source_family1", "source_family2", "aspect"]


def read_text(name: str) -> str:
    return (ASSETS / name).read_bytes().decode("utf-8")


EXAMPLES = json.loads(read_text("examples.json"))
CONDITIONS = json.loads(read_text("conditions.json"))
REFERENCE = list(csv.DictReader(read_text("reference_pairs.csv").splitlines()))


def is_clean(text: str) -> bool:
    """Whether a text has no blanks at its ends, no double blanks, no control characters, and is in normal form C."""
    return (
        bool(text)
        and text == " ".join(text.split())
        and text == unicodedata.normalize("NFC", text)
        and all(unicodedata.category(character) not in {"Cc", "Cs", "Co", "Cn"} for character in text)
    )


def repeated(values: list[str]) -> list[str]:
    return [value for value, count in Counter(value.casefold() for value in values).items() if count > 1]


@pytest.mark.parametrize("name", ["examples.json", "conditions.json", "reference_pairs.csv", "README.md"])
def test_file_is_plain_utf8(name: str) -> None:
    text = read_text(name)
    assert not text.startswith("\ufeff")
    assert "\r" not in text
    assert "\ufffd" not in text


@pytest.mark.parametrize("item", EXAMPLES, ids=lambda item: item["id"])
def test_example(item: dict) -> None:
    assert set(item) - {"fails"} == EXAMPLE_KEYS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", item["id"])
    assert item["grade"] in GRADES
    assert len(item["title"]) <= 40
    assert 2 <= len(item["conditions"]) <= 5
    assert len(item["expected"]) == len(item["conditions"])
    assert set(item["expected"]) <= LEVELS
    assert not repeated(item["conditions"])
    texts = [value for key, value in item.items() if key not in {"conditions", "expected", "fails"}]
    assert [text for text in texts + item["conditions"] if not is_clean(text)] == []
    assert item["sentence1"] != item["sentence2"]
    assert item["note"].endswith(".")


@pytest.mark.parametrize("item", EXAMPLES, ids=lambda item: item["id"])
def test_example_passes_the_checks_of_the_page(item: dict) -> None:
    """What the gallery offers must not be refused or changed by the form it fills."""
    for field in ("sentence1", "sentence2"):
        assert check_sentence(item[field], field) == item[field]
    assert check_conditions(item["conditions"]) == item["conditions"]


def test_examples_as_a_whole() -> None:
    assert len(EXAMPLES) >= 30
    for key in ("id", "title", "sentence1", "sentence2", "note"):
        assert repeated([item[key] for item in EXAMPLES]) == []
    assert all(count >= 8 for count in Counter(item["grade"] for item in EXAMPLES).values())
    assert {item["grade"] for item in EXAMPLES} == GRADES
    assert len({item["domain"] for item in EXAMPLES}) >= 15
    assert {level for item in EXAMPLES for level in item["expected"]} == LEVELS


def test_most_examples_pull_conditions_apart() -> None:
    """A gallery of conditional similarity needs pairs whose similarity depends on the condition."""
    flat = [item["id"] for item in EXAMPLES if len(set(item["expected"])) == 1]
    assert flat == []


def test_first_example_is_short_and_shows_two_opposite_conditions() -> None:
    first = EXAMPLES[0]
    assert {"high", "low"} <= set(first["expected"])
    assert not first.get("fails")
    assert max(len(first["sentence1"]), len(first["sentence2"])) <= 120


def test_gallery_has_the_awkward_texts() -> None:
    text = " ".join(item["sentence1"] + item["sentence2"] for item in EXAMPLES if item["grade"] == "data")
    directions = {unicodedata.bidirectional(character) for character in text}
    assert {"R", "AL"} & directions, "no right-to-left text"
    assert any(unicodedata.category(character) == "So" for character in text), "no emoji"
    assert "<" in text, "no mark-up"
    assert re.search(r"\d", text), "no numbers"


def test_conditions_of_the_finder() -> None:
    assert len(CONDITIONS) >= 120
    assert all(set(entry) == {"condition", "group"} for entry in CONDITIONS)
    conditions = [entry["condition"] for entry in CONDITIONS]
    assert repeated(conditions) == []
    assert [text for text in conditions if not is_clean(text) or len(text) > 80 or text.endswith((".", "?"))] == []
    groups = Counter(entry["group"] for entry in CONDITIONS)
    assert 10 <= len(groups) <= 20
    assert min(groups.values()) >= 5


def test_finder_lists_each_group_in_one_run() -> None:
    """The page prints the library group by group in file order."""
    order = [entry["group"] for entry in CONDITIONS]
    runs = [group for index, group in enumerate(order) if index == 0 or order[index - 1] != group]
    assert repeated(runs) == []


def test_reference_pairs_rows() -> None:
    assert len(REFERENCE) == 240
    assert list(REFERENCE[0]) == REFERENCE_COLUMNS
    for number, row in enumerate(REFERENCE, start=2):
        assert all(is_clean(row[column]) for column in REFERENCE_COLUMNS), f"line {number}: {row}"
        assert max(len(row["sentence1"]), len(row["sentence2"])) <= MAX_SENTENCE_CHARACTERS, f"line {number}"
        assert row["label"] in {"1", "2", "3", "4", "5"}, f"line {number}: {row['label']}"
        assert re.fullmatch(r"[a-z]+-\d{3}", row["source_family1"]), f"line {number}"
        assert re.fullmatch(r"[a-z]+-\d{3}", row["source_family2"]), f"line {number}"


def test_reference_pairs_are_balanced_and_do_not_repeat() -> None:
    labels = Counter(row["label"] for row in REFERENCE)
    assert set(labels.values()) == {48}
    sentences = [row[column] for row in REFERENCE for column in ("sentence1", "sentence2")]
    assert repeated(sentences) == []
    within = sum(row["source_family1"] == row["source_family2"] for row in REFERENCE)
    assert 96 <= within <= 144
    assert len({row["aspect"] for row in REFERENCE}) >= 60
    assert len({row["source_family1"].split("-")[0] for row in REFERENCE}) >= 12
    assert max(Counter(row["condition"].casefold() for row in REFERENCE).values()) <= 4


def test_neither_the_condition_nor_the_source_gives_the_label_away() -> None:
    """Both kinds of pair carry every label in about the same share."""
    for label in "12345":
        rows = [row for row in REFERENCE if row["label"] == label]
        within = sum(row["source_family1"] == row["source_family2"] for row in rows)
        assert 0.35 <= within / len(rows) <= 0.65, label


def test_readme_counts_are_those_of_the_files() -> None:
    readme = read_text("README.md")
    groups = {entry["group"] for entry in CONDITIONS}
    assert f"{len(EXAMPLES)} sentence pairs" in readme
    assert f"{len(CONDITIONS)} conditions in {len(groups)} groups" in readme
    assert f"{len(REFERENCE)} labelled pairs" in readme


def test_no_damaged_file_or_model_keeps_the_page_from_starting(tmp_path: Path) -> None:
    assets, models = tmp_path / "assets", tmp_path / "checkpoints"
    shutil.copytree(ROOT / "assets", assets)
    for path in assets.glob("*.json"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for name, damaged in {"tri-concat": "model.safetensors", "tri-hadamard": "condviz.json"}.items():
        shutil.copytree(ROOT / "checkpoints" / name, models / name)
        (models / name / damaged).write_bytes(b"{" * 5000)
    code = "from condviz.ui.app import build_app; print(len(build_app().condviz_pool.infos()))"
    env = os.environ | {"CONDVIZ_ASSETS": str(assets), "CONDVIZ_CHECKPOINTS": str(models)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 3
