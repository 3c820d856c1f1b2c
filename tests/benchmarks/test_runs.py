"""Rows of the papers' tables are carried out once, by the public functions, and go on where they stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.papers import runs as module
from benchmarks.papers import tables
from benchmarks.papers.runs import run_table
from benchmarks.papers.tables import Row, Run, Table
from condviz.errors import ConfigError
from tests.tiny import tiny_model
from tests.training.toy import toy_recipe


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "results.json")
    return tmp_path / "results.json"


def test_counts_and_norms_of_a_shipped_model(kept: Path) -> None:
    count = Run(count="hyper-cl", size=4, data="x", unique=(10, 9, 8, 2))
    rows = (Row("count", paper=count), Row("norms", here=Run(model="tri-hadamard")))
    table = Table("t", "T", "", rows, paper_figures=("cost.hits",), here_figures=("norms.variance",))
    told: list[str] = []
    for setting in ("paper", "here", "here"):
        run_table(table, setting=setting, seeds=1, report=told.append)
    results = tables.read_results()
    assert results[count.key]["0"]["figures"]["cost"]["hits"] == pytest.approx(100 * 20 / 30)
    assert results["tri-hadamard"]["0"]["figures"]["norms"]["variance"] >= 0
    assert len(told) == 2, "what is known was measured again"


@pytest.mark.training
def test_a_recipe_is_trained_once_for_each_seed(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "load_recipe", lambda _, changes: toy_recipe(tmp_path, epochs=1, seed=int(changes[-1][5:]))
    )
    run = Run(recipe="quick")  # its file is part of what figures belong to; what is trained is the toy
    figures = ("validation.spearman", "size.added_M", "curve.1")
    table = Table("t", "T", "", (Row("one", here=run), Row("two", here=run)), here_figures=figures)
    run_table(table, setting="here", seeds=2, report=print)
    found = tables.read_results()[run.key]
    assert list(found) == ["42", "43"]
    first, second = (one["figures"]["validation"]["spearman"] for one in found.values())
    assert first != second
    assert found["42"]["figures"]["curve"] == {"1": pytest.approx(first)}
    assert {one["figures"]["size"]["added_M"] for one in found.values()} == {0.025584}


def test_cosines_and_the_case_study_of_a_model(kept: Path) -> None:
    model = tiny_model("case")
    shares = module.measure(model, "cosines")
    assert sum(shares.values()) == pytest.approx(100)
    assert {"-10 to 0", "0 to 10", "90 to 100"} <= set(shares)
    study = module.measure(model, "study")
    assert sorted(study) == [f"{pair} {kind}" for pair in (1, 2, 3) for kind in ("alike", "different")]
    ((_, table),) = tables.find_tables("case:figures-5-6")
    assert {name.partition(".")[2] for name in table.here_figures} <= set(shares)
    ((_, table),) = tables.find_tables("case:tables-3-7")
    assert {name.partition(".")[2] for name in table.here_figures} == set(study)


def test_the_shares_of_figures_5_to_7_are_of_one_word(kept: Path) -> None:
    model = tiny_model("csr", num_routed_layers=2)
    shares = module.measure(model, "looks")
    ((_, table),) = tables.find_tables("csr:figures-5-7")
    assert {name.partition(".")[2] for name in table.here_figures} == set(shares)
    assert all(0 < share < 100 for share in shares.values())
    weights = model.token_weights(module.LOOKS[0], list(module.LOOKS[2])).weights[-1]
    assert shares["Figure 6, the sport"] == pytest.approx(100 * weights[0, 2], abs=1e-4)


def test_a_table_without_rows_says_why() -> None:
    with pytest.raises(ConfigError, match=r"has no row to run here\. No GPU"):
        run_table(Table("t", "T", "", absent="No GPU."), setting="here", seeds=1, report=print)
