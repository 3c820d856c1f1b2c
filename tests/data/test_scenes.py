"""The corpus keeps its rules, and the validator finds each way to break them."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from condviz.data.families import LOCAL, Aspect, Family, Scene
from condviz.data.scenes import SCENES, group_of, load_aspects, load_families
from condviz.errors import DataError
from tests.data.scene_rules import validate

REFERENCE = SCENES.parent / "reference_pairs.csv"


@pytest.fixture(scope="module")
def aspects() -> dict[str, Aspect]:
    return load_aspects()


@pytest.fixture(scope="module")
def families() -> tuple[Family, ...]:
    return load_families()


def test_the_corpus_has_no_problem(families: tuple[Family, ...], aspects: dict[str, Aspect]) -> None:
    assert validate(families, aspects) == []


def test_readme_counts_are_those_of_the_files(families: tuple[Family, ...], aspects: dict[str, Aspect]) -> None:
    readme = (SCENES / "README.md").read_text(encoding="utf-8")
    sentences = sum(len(family.scenes) for family in families)
    assert f"{len(families):,} families, {sentences:,} English sentences" in readme
    assert f"{len(aspects)} aspects" in readme
    files = Counter(family.id.split("-")[0] for family in families)
    rows = [line.split("|") for line in readme.splitlines() if line.startswith("| ")]
    assert {cells[1].strip(): int(cells[3]) for cells in rows if cells[3].strip().isdigit()} == files


def test_every_aspect_is_used_and_varies(families: tuple[Family, ...], aspects: dict[str, Aspect]) -> None:
    values = {name: set() for name in aspects}
    for family in families:
        for scene in family.scenes:
            for name, value in scene.aspects.items():
                if not name.startswith(LOCAL):
                    values[name].add(value)
    assert [name for name, found in values.items() if len(found) < 2] == []


def test_a_nominal_value_has_one_group(aspects: dict[str, Aspect]) -> None:
    assert aspects["animal"].group_of("dog") == "pet"
    assert aspects["animal"].group_of("bee") == aspects["animal"].group_of("spider")
    assert aspects["animal"].group_of("unicorn") is None
    assert aspects["clothing_colour"].group_of("black") != aspects["clothing_colour"].group_of("white")


def test_reference_pairs_are_sentences_of_their_families(families: tuple[Family, ...]) -> None:
    by_id = {family.id: family for family in families}
    with REFERENCE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for side in "12":
            family = by_id[row[f"source_family{side}"]]
            assert group_of(family) in ("test", "unseen_domains"), "a model was trained or chosen on it"
            scenes = {scene.text: scene for scene in family.scenes}
            assert row[f"sentence{side}"] in scenes
            assert row["aspect"] in scenes[row[f"sentence{side}"]].aspects


def test_equal_values_and_only_they_have_the_highest_reference_label(families: tuple[Family, ...]) -> None:
    values = {scene.text: scene.aspects for family in families for scene in family.scenes}
    with REFERENCE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            same = len({values[row[f"sentence{side}"]][row["aspect"]] for side in "12"}) == 1
            assert same == (row["label"] == "5"), row


SIZE = Aspect("size", "ordinal", tuple(f"wording {number}" for number in range(16)), values=("small", "large"))
PET = Aspect("pet", "nominal", SIZE.phrasings, groups={"cats": ("cat",), "dogs": ("dog", "puppy")})
ASPECTS = {"size": SIZE, "pet": PET}


def make_family() -> Family:
    base = {"size": "small", "pet": "cat", "x_mat": "red"}
    edits = ({"size": "large"}, {"pet": "dog"}, {"x_mat": "blue"})
    return Family(
        id="pets-001",
        domain="pets",
        scenes=(
            Scene("base", "A small cat is on the red mat.", base),
            Scene("paraphrase", "The little cat lies on a red mat.", base),
            *(Scene("edit", f"Edit {number}.", base | edit, tuple(edit)) for number, edit in enumerate(edits)),
        ),
        local_phrasings={"x_mat": ("The mat", "The colour of the mat", "Which mat it is")},
    )


def with_scene(index: int, **changes: object) -> Family:
    family = make_family()
    scenes = list(family.scenes)
    scenes[index] = dataclasses.replace(scenes[index], **changes)
    return dataclasses.replace(family, scenes=tuple(scenes))


def test_a_family_by_the_rules_has_no_problem() -> None:
    assert validate([make_family()], ASPECTS) == []


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (dataclasses.replace(make_family(), id="pets 1"), "the id is not file-number"),
        (dataclasses.replace(make_family(), scenes=make_family().scenes[:4]), "the roles are"),
        (dataclasses.replace(make_family(), local_phrasings={}), "x_mat: a local aspect needs phrasings"),
        (dataclasses.replace(make_family(), local_phrasings={"x_mat": ("The mat",)}), "1 phrasings, at least 3"),
        (dataclasses.replace(make_family(), local_phrasings={"x_mat": ("Mat", "mat.", "m")}), "'mat' occurs twice"),
        (dataclasses.replace(make_family(), local_phrasings={"x_mat": ("Mat", "", "m")}), "a phrasing is empty"),
        (with_scene(1, text="A small  cat."), "has blanks"),
        (with_scene(1, text="A small\x00cat."), "control characters"),
        (with_scene(1, text="A SMALL cat is on the red mat."), "this sentence occurs twice"),
        (with_scene(1, aspects={"size": "small"}), "tells other aspects than the base"),
        (with_scene(1, aspects={"size": "large", "pet": "cat", "x_mat": "red"}), "the paraphrase changes"),
        (with_scene(2, changed=("pet",)), "lists ['pet'] as changed, but differs in ['size']"),
        (with_scene(2, aspects=make_family().scenes[0].aspects, changed=()), "does not change any tagged fact"),
        (with_scene(3, aspects={"size": "small", "pet": "newt", "x_mat": "red"}), "'newt' is not in aspects.json"),
        (with_scene(4, aspects={"size": "small", "pet": "cat", "x_mat": "Sky Blue"}), "'Sky Blue' is not in"),
    ],
)
def test_a_breach_of_the_rules_is_named(family: Family, message: str) -> None:
    problems = validate([family], ASPECTS)
    assert any(message in problem for problem in problems), problems


def test_an_unknown_aspect_and_a_repeated_id_are_named() -> None:
    problems = validate([make_family(), make_family()], {"size": SIZE})
    assert "pets-001: the id is used twice" in problems
    assert "pets-001: pet: there is no such aspect in aspects.json" in problems


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "x_size"}, "not a name for a shared aspect"),
        ({"phrasings": SIZE.phrasings[:3]}, "3 phrasings instead of 16"),
        ({"phrasings": (*SIZE.phrasings[:15], "Wording 0?")}, "'wording 0' occurs twice"),
        ({"kind": "vague"}, "the kind 'vague' does not exist"),
        ({"groups": {"all": ("small",)}}, "a nominal aspect has groups"),
        ({"values": ("small", "small")}, "'small' is listed twice"),
        ({"values": ("small", "very large")}, "'very large' is not a name"),
    ],
)
def test_a_faulty_aspect_is_named(change: dict, message: str) -> None:
    problems = validate([], {"size": dataclasses.replace(SIZE, **change)})
    assert any(message in problem for problem in problems), problems


def test_reading_what_was_written_gives_the_same(tmp_path: Path) -> None:
    shutil.copy(SCENES / "sport.jsonl", tmp_path)
    families = load_families(tmp_path)
    first = json.loads((tmp_path / "sport.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert families[0].id == first["id"]
    assert [scene.text for scene in families[0].scenes] == [entry["text"] for entry in first["sentences"]]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no \.jsonl file"):
        load_families(tmp_path)
    with pytest.raises(DataError, match=r"aspects\.json cannot be read"):
        load_aspects(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not of the form of the corpus: The input: Invalid JSON"),
        ("\udcff", "is not UTF-8"),
        ("[]", "line 2 is not of the form"),
        ('{"id": "a-001", "domain": "a"}', "Key sentences is missing"),
        ('{"id": "a-001", "domain": "a", "sentences": [{"role": "base", "text": "A."}]}', r"0\.aspects is missing"),
        ('{"id": "a-001", "domain": "a", "sentences": 3}', "line 2 is not of the form"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(f"\n{line}\n", encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DataError, match=message):
        load_families(tmp_path)


@pytest.mark.parametrize("content", ['{"size": {"kind": "ordinal"}}', "[1]", '{"size": 3}'])
def test_aspects_of_another_form_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "aspects.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="is not of the form"):
        load_aspects(tmp_path)
