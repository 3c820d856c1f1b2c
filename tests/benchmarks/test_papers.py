"""The papers' tables: what is quoted stands in them, rows can be run, results are kept, pages are made."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.papers import page
from benchmarks.papers import tables as module
from benchmarks.papers.costs import Demand, count_costs
from benchmarks.papers.page import add_result, format_page, format_table, plot_table
from benchmarks.papers.tables import Paper, Row, Run, Table, find_tables, papers
from condviz.errors import ConfigError, DataError
from condviz.paths import ASSETS
from condviz.training.recipes import load_recipe
from tests.test_project import ROOT

DOCS = ROOT / "docs"

TABLES = [pytest.param(one, two, id=f"{one.id}:{two.id}") for one in papers() for two in one.tables]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    return tmp_path / "results.json"


@pytest.mark.parametrize(("paper", "table"), TABLES)
def test_every_table_can_be_run_as_it_is_declared(paper: Paper, table: Table) -> None:
    assert find_tables(f"{paper.id}:{table.id}") == [(paper, table)]
    assert all(len(row.published) <= len(table.columns) for row in table.rows)
    assert len({row.name for row in table.rows}) == len(table.rows)
    assert set(table.compared) <= {row.name for row in table.rows}
    for row in table.rows:
        for run in filter(None, (row.paper, row.here)):
            if run.recipe:
                load_recipe(ASSETS / "recipes" / f"{run.recipe}.toml", run.changes)


NUMBER = r"(?<!p = )(?<![\d.])\d[\d,]*\.\d+"
"""With decimals; p-values come from the command that a claim names."""


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.id)
def test_what_claims_rest_on_stands_in_the_tables(paper: Paper) -> None:
    results = module.read_results()
    tables = "\n".join(f"{table.shows} {table.where} {format_table(results, table)}" for table in paper.tables)
    for claim in paper.claims:
        if claim.holds == "not tested":
            continue
        text = tables + (DOCS / "results.md").read_text(encoding="utf-8") * ("docs/results.md" in claim.because)
        known = [float(number.replace(",", "")) for number in re.findall(NUMBER, text)]
        for number in re.findall(NUMBER, claim.because):
            step = 10.0 ** -len(number.partition(".")[2])
            assert any(abs(float(number) - one) < 0.501 * step for one in known), f"{number}: {claim.says}"


def test_the_papers_settings_name_the_papers_encoders() -> None:
    """Recipes that are called a paper's setting once trained MiniLM."""
    for paper in papers():
        for table in paper.tables:
            for row in table.rows:
                if row.paper and row.paper.recipe:
                    backbone = load_recipe(ASSETS / "recipes" / f"{row.paper.recipe}.toml").backbone
                    assert "MiniLM" not in backbone, f"{paper.id}:{table.id}, {row.name}"
                    if "DiffCSE" in row.name or "SimCSE" in row.name:
                        name, size = row.name.replace(",", "").split()[0].lower().split("-")
                        assert name in backbone, row.name
                        assert size in backbone, row.name


def test_the_recipes_have_the_hyper_parameters_of_table_7() -> None:
    ((_, table),) = find_tables("hyper-cl:table-7")
    for row in table.rows:
        recipe = load_recipe(ASSETS / "recipes" / f"{row.paper.recipe}.toml")
        assert (recipe.lr, recipe.weight_decay, recipe.loss.temperature) == tuple(map(float, row.published)), row.name


def test_counts_give_the_memory_that_table_3_prints() -> None:
    ((_, table),) = find_tables("hyper-cl:table-3")
    for row in table.rows:
        run, (_, hits, cache) = row.paper, row.published
        rows, joint, texts, conditions = run.unique
        demand = Demand(rows, 2 * rows, joint, 0, texts, conditions)
        found = count_costs(demand, run.size, rank=run.rank)[run.count]
        unit = 2**30 if cache.endswith("GB") else 2**20
        assert f"{100 * found.hit_rate:.2f}%" == hits, row.name
        assert found.bytes / unit == pytest.approx(float(cache[:-2]), abs=0.0051), row.name


def test_a_row_is_one_thing() -> None:
    with pytest.raises(ConfigError, match="one of recipe, model and count"):
        Run(recipe="csr", model="csr")
    with pytest.raises(ConfigError, match="no table 'csr:table-9'"):
        find_tables("csr:table-9")
    assert len(find_tables("csr")) > 5


def test_results_add_up_and_are_shown_with_their_spread(kept: Path) -> None:
    first, second = Run(recipe="quick", changes=("epochs=2",)), Run(recipe="better")
    assert (first.seeds(3), Run(model="csr").seeds(3)) == ([42, 43, 44], [0])
    for seed, value in ((42, 20.0), (43, 22.0), (44, 24.0)):
        add_result(first, seed, 1.0, {"test": {"spearman": value, "spearman_error": 3.0}})
        add_result(second, seed, 1.0, {"test": {"spearman": value - 10, "spearman_error": 4.0}})
    add_result(first, 42, 0.5, {"norms": {"variance": 0.1}})
    stored = json.loads(kept.read_text(encoding="utf-8"))["quick epochs=2"]["42"]
    assert stored["minutes"] == 1.5
    assert stored["figures"]["norms"] == {"variance": 0.1}
    assert stored["figures"]["test"]["spearman"] == 20.0
    rows = (Row("A", ("1.0",), here=first), Row("B", here=second), Row("C"))
    table = Table("t", "T", "", rows, ("S",), here_figures=("test.spearman",), compared=("A", "B"))
    results = module.read_results()
    assert module.format_state(results, table, "here") == "2 of 2"
    text = format_table(results, table)
    (drawn,) = plot_table(results, table).data
    assert (list(drawn.x), list(drawn.y), list(drawn.error_y.array)) == (["A", "B"], [22, 12], [2, 2])
    assert "| A | 1.0 | 22.0 ± 2.0 (3) |" in text
    assert "| C | – | – |" in text
    # By trainings alone the ten points would be far from chance (p = 0.004); by 3 and 4 of standard error they are not.
    assert "A against B: p = 0.057 (3 and 3 seeds and the sample of test rows)." in text


def test_a_difference_without_errors_over_test_rows_is_not_judged(kept: Path) -> None:
    runs = Run(recipe="quick"), Run(recipe="better")
    for run, value in zip(runs, (20.0, 30.0), strict=True):
        for seed in (42, 43):
            add_result(run, seed, 1.0, {"test": {"spearman": value + seed / 100}})
    rows = tuple(Row(run.recipe, here=run) for run in runs)
    table = Table("t", "T", "", rows, here_figures=("test.spearman",), compared=("quick", "better"))
    assert module.fill_table(module.read_results(), table).tests == ()


def test_what_other_weights_gave_goes(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(model="csr")
    add_result(run, 0, 1.0, {"looks": {"x": 1.0}})
    add_result(run, 0, 1.0, {"norms": {"x": 2.0}})
    assert set(module.read_own_results()["csr"]["0"]["figures"]) == {"looks", "norms"}
    monkeypatch.setattr(page, "fingerprint", lambda _: "other weights")
    add_result(run, 0, 1.0, {"norms": {"x": 3.0}})
    assert module.read_own_results()["csr"]["0"]["figures"] == {"norms": {"x": 3.0}}


def test_no_table_is_older_than_its_weights_or_its_recipe() -> None:
    """Tables once showed what earlier weights gave, and the command called them done."""
    own = module.read_own_results()
    runs = {
        run.key: run
        for one in papers()
        for two in one.tables
        for kind in ("paper", "here")
        for _, run in two.runs(kind)
    }
    assert set(own) <= set(runs), "a result that no table shows"
    for key, seeds in own.items():
        old = {seed for seed, one in seeds.items() if one["of"] != page.fingerprint(runs[key])}
        assert not old, f"{key}, seeds {old}: measure again with python -m benchmarks papers run"


def test_a_training_is_measured_for_all_tables_that_show_it() -> None:
    ((_, table),) = find_tables("hyper-cl:table-8")
    run = next(run for row, run in table.runs("here") if row.name == "MiniLM, K = d/8")
    assert {"validation", "test", "unseen_aspects", "norms"} <= set(table.wanted(run, "here"))
    ((_, table),) = find_tables("hyper-cl:section-5.4.1")
    assert table.wanted(table.rows[0].here, "here") == ["norms"]


def test_learning_curves_lie_over_each_other(kept: Path) -> None:
    runs = Run(recipe="quick"), Run(recipe="better")
    for run in runs:
        add_result(run, 42, 1.0, {"curve": {"1": 3.0, "2": 5.0}})
    rows = tuple(Row(run.recipe, here=run) for run in runs)
    table = Table("t", "T", "", rows, here_figures=("curve.1", "curve.2"), series="rows")
    assert [(line.type, line.name, line.y) for line in plot_table(module.read_results(), table).data] == [
        ("scatter", "quick", (3.0, 5.0)),
        ("scatter", "better", (3.0, 5.0)),
    ]


def test_the_page_names_the_rows_that_are_still_to_run() -> None:
    ((_, table),) = find_tables("case:tables-4-5")
    (_, done), (_, other) = table.runs("here")
    shown = format_page({done.key: {"0": {"figures": {"isotropy": {}}}}})
    assert "- *Still to run here*: MiniLM, cond\n" in shown
    assert "- *Still to run here*: MiniLM, cond − c; MiniLM, cond\n" in format_page({})
    assert not module.is_done({}, table, "here", other)


def test_a_damaged_file_of_results_is_named(kept: Path) -> None:
    kept.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"results\.json cannot be read"):
        module.read_results()


def test_the_page_of_the_models_shows_what_is_stored() -> None:
    written = json.loads(page.FILLED.read_text(encoding="utf-8"))
    made = page.shown_papers(module.read_results())
    assert written == json.loads(json.dumps(made)), "Run: python -m benchmarks papers --write"


def test_the_page_has_every_table_and_a_verdict_on_every_claim() -> None:
    written = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    made = format_page(module.read_results())
    for paper in papers():
        assert paper.claims
        assert {claim.holds for claim in paper.claims} <= {"yes", "no", "in part", "not settled", "not tested"}
        for text in (*(table.title for table in paper.tables), *(claim.says for claim in paper.claims)):
            assert text in made
            assert text in written, "Run: python -m benchmarks papers --write"
