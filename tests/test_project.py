"""What stands in the project's own files is true."""

from __future__ import annotations

import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

import condviz
from tests.conftest import MARKED

ROOT = Path(__file__).parent.parent
DOCS = list((ROOT / "docs").glob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([\w-]+)==([\w.]+)$", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("name", condviz.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(condviz, name) is not None
    assert name in dir(condviz)


def test_readme_says_what_it_is_shows_it_and_starts_it() -> None:
    assert README.startswith("# CondViz\n")
    places = [README.index(part) for part in ("How similar", "![", "git clone --depth 1", "make run", "## ")]
    assert places == sorted(places)


def test_readme_stays_short() -> None:
    assert len(README.splitlines()) < 200


def test_every_dependency_of_the_app_is_pinned_above_its_lower_bound() -> None:
    extras = PROJECT["optional-dependencies"]
    for requirement in [*PROJECT["dependencies"], *extras["viz"], *extras["app"], *extras["offline"]]:
        if requirement == "condviz[viz]":
            continue
        name, bound, _, ceiling = re.fullmatch(r"([\w-]+)>=([\d.]+)(,<([\d.]+))?", requirement).groups()
        assert name in PINS, f"{name} has no pin in requirements.txt"
        assert version(PINS[name]) >= version(bound), requirement
        assert not ceiling or version(PINS[name]) < version(ceiling), requirement


def test_the_lock_has_every_pin_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([\w-]+)==([\w.]+)", lock, re.MULTILINE))
    assert {name: locked.get(name) for name in PINS} == PINS, "make lock"
    assert "://" not in lock


def test_the_version_is_in_the_citation_and_in_the_changelog() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == condviz.__version__
    assert f"## v{condviz.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_what_only_an_owner_knows_stands_in_one_place() -> None:
    """The address of the repository, and who publishes the models on the hub."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "CITATION.cff", ROOT / "pyproject.toml"]
    assert [path.name for path in documents if "REPOSITORY" in path.read_text(encoding="utf-8")] == [
        "README.md", "CONTRIBUTING.md"
    ]  # fmt: skip
    assert "`REPOSITORY` is the address" in README
    code = [path for path in (ROOT / "condviz").rglob("*.py") if "/condviz-" in path.read_text(encoding="utf-8")]
    assert [path.name for path in code] == ["hub.py"]


def test_the_site_shows_every_document_and_public_name() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [path.name for path in DOCS if f": {path.name}\n" not in site] == []
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    places = {f"{place}.{name}" for name, place in condviz._PLACES.items() if name != "METHODS"}
    assert [place for place in sorted(places) if f"::: {place}\n" not in reference] == []


def version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split("."))


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in DOCS)])
def test_links_in_the_documents_lead_somewhere(document: str) -> None:
    content = (ROOT / document).read_text(encoding="utf-8")
    for target, _, anchor in re.findall(r"\]\(([^)#:]*)(#([^)]*))?\)", content):
        path = (ROOT / document).parent / target if target else ROOT / document
        assert path.exists(), f"{document} links to {target}"
        if anchor:
            assert anchor in anchors(path), f"{document} links to {target}#{anchor}"


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a Markdown file, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_recipe_is_told_of() -> None:
    told = re.findall(r"`([\w*-]+)`", (ROOT / "docs" / "training.md").read_text(encoding="utf-8"))
    for recipe in (ROOT / "assets" / "recipes").glob("*.toml"):
        assert any(fnmatch(recipe.stem, name) for name in told), f"docs/training.md does not tell of {recipe.stem}"


def test_every_environment_variable_is_told_of() -> None:
    told = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    for path in (ROOT / "condviz").rglob("*.py"):
        for name in re.findall(r"\bCONDVIZ_[A-Z_]+", path.read_text(encoding="utf-8")):
            assert f"`{name}`" in told, f"{path.name} reads {name}, of which docs/deploy.md says nothing"


def test_the_results_have_a_place_for_every_table_that_a_benchmark_writes() -> None:
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    code = [path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py")]
    filled = "".join(text for text in code if "docs=False" not in text)
    names = re.findall(r'(?:report\(.*, |fill\()"(\w+)"', filled)
    assert len(names) >= 4
    for name in [*names, "scores", "links"]:
        assert results.count(f"<!-- {name}:start -->\n") == results.count(f"<!-- {name}:end -->") == 1, name


def test_ci_script_can_be_run() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("words", ["pypi org", "pythonhosted org", "registry npmjs", "deb debian", "download pytorch"])
def test_no_registry_is_named(words: str) -> None:
    forbidden = words.replace(" ", ".")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    small = [ROOT / name for name in tracked if not name.startswith("assets/")]
    for path in small:
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ".json", ""}:
            assert forbidden not in path.read_text(encoding="utf-8", errors="replace"), f"{path.name} names {forbidden}"


def test_every_marked_file_and_test_is_there() -> None:
    for place in (place for places in MARKED.values() for place in places):
        path, _, name = place.partition("::")
        assert (ROOT / "tests" / path).exists()
        assert not name or f"def {name}" in (ROOT / "tests" / path).read_text(encoding="utf-8")
