"""What CONTRIBUTING promises: a method, a corpus and a page are one file each, and one line where it is listed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import condviz
from condviz.data import corpora
from condviz.methods import CATALOG, METHODS
from condviz.models import checkpoints
from tests import test_contract as contract
from tests.tiny import tiny_backbone, tiny_folder, tiny_model

ROOT = Path(__file__).parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HOLDS = (
    contract.test_scores_have_shape_type_and_range,
    contract.test_embeddings_have_shape_and_type,
    contract.test_neither_padding_nor_order_nor_neighbours_change_a_row,
    contract.test_condition_changes_the_scores,
    contract.test_scores_are_symmetric,
    contract.test_grid_holds_what_single_calls_give,
    contract.test_separable_methods_compose_what_they_encode,
    contract.test_rows_that_do_not_match_are_refused,
)
Write = Callable[[str], ModuleType]


@pytest.fixture
def example(tmp_path: Path) -> Write:
    """Write the example of a section of CONTRIBUTING into a file of its own, and import it."""

    def write(heading: str) -> ModuleType:
        section = CONTRIBUTING.split(f"## {heading}\n")[1].split("\n## ")[0]
        path = tmp_path / f"{heading.split()[-1].lower()}.py"
        path.write_text(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return write


@pytest.fixture
def method(example: Write) -> Iterator[type]:
    yield example("Add a method").Shift
    CATALOG.pop("shift", None)
    METHODS._classes.pop("shift", None)


@pytest.mark.parametrize("holds", HOLDS, ids=lambda test: test.__name__)
def test_a_method_keeps_the_contract(method: type, holds: Callable[[object], None]) -> None:
    holds(method(tiny_backbone(), method.config_cls()).eval())


def test_a_method_is_built_saved_and_loaded_by_name(method: type, tmp_path: Path) -> None:
    encoder = tiny_folder(tmp_path / "encoder")
    model = condviz.load("shift", backbone=str(encoder), precision="float32", strength=0.5)
    checkpoints.save(model, tmp_path / "mine")
    loaded = condviz.load(str(tmp_path / "mine"), precision="float32")
    texts = ["a cat"], ["two dogs"], ["the mood"]
    assert loaded.score(*texts) == model.score(*texts)
    assert loaded.info.method == "shift"
    assert condviz.compare(loaded, "a cat", "two dogs", ["the mood"]).scores.shape == (1, 1)


def test_a_corpus_is_built_surveyed_and_evaluated(
    example: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = example("Add a corpus").CORPUS
    monkeypatch.setitem(corpora.CORPORA, corpus.name, corpus)
    monkeypatch.setenv(corpora.VARIABLE, str(tmp_path))
    place = tmp_path / "weather" / "train.tsv"
    place.parent.mkdir()
    place.write_text("Rain over the hills.\twet\tmorning\nDrizzle in town.\twet\tnight\nSun at noon.\tdry\tmorning\n")
    rows = corpora.build("weather", "train")
    assert {row.condition for row in rows} <= {"the weather", "the time of day"}
    assert all(row.label in range(1, 6) for row in rows)
    (part,) = corpora.survey("weather").parts
    assert (part.rows, part.problem) == (3, "")
    model = tiny_model("bi-encoder")
    assert len(condviz.evaluate(model, "weather:train", resamples=0).to_frame()) == 1


def test_a_page_has_form_link_section_export_and_endpoint(example: Write) -> None:
    from condviz.ui.app import Settings, build_app
    from condviz.ui.pool import ModelPool
    from condviz.ui.state import read_link
    from tests.pages import build_view

    tab = example("Add a page").TAB
    app = build_app(Settings(pool=lambda: ModelPool(("minilm",)), tabs=(tab,), preload=False))
    assert app.config["page"]["lengths"]["components"]
    told = app.get_api_info()["named_endpoints"]["/lengths"]["parameters"]
    assert [(one["parameter_name"], one["parameter_default"]) for one in told] == [("text", None), ("unit", "words")]
    page = build_view(tab, ModelPool(("minilm",)))
    done = page.open(read_link("lengths?s=two+words&u=letters")[1])
    assert "8 letters" in done[page.result]
    assert 'data-link="lengths?s=two+words&amp;u=letters"' in done[page.result]
    offered = page.hand_out(done[page.shown])[page.offered]
    assert "unit=" in offered
    assert page.api("two words")["count"] == 2


def test_the_map_of_the_house_is_true() -> None:
    section = CONTRIBUTING.split("## Where things are\n")[1].split("\n## ")[0]
    places = re.findall(r"`((?:condviz|assets|tests)/[^`]+)`", section)
    assert len(places) >= 10
    for place in places:
        assert (ROOT / place).exists(), f"CONTRIBUTING says {place}"
