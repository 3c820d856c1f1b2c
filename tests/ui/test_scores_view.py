"""Stored scores on the Models tab: only those of the weights that are loaded, and a page that does without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from condviz.evaluation.scoreboard import write_board
from condviz.ui import scores_view
from condviz.ui.models_tab import render_models
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service
from tests.evaluation.boards import make_board, model_scores
from tests.ui import fakes
from tests.ui.test_html import read


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the file of the scores, which is not there yet."""
    path = tmp_path / "benchmark.json"
    monkeypatch.setattr(scores_view, "BENCHMARK", path)
    return path


def page(*loaded: str) -> str:
    engine = fakes.make_engine(("minilm", "csr", "case"))
    service = Service(engine, ModelPool(engine.list_models(), engine.load))
    for name in loaded:
        service.pool.get(name)
    return render_models(service)


def row(markup: str, name: str) -> str:
    return next(part for part in markup.split("<tr>") if f'data-card="{name}"' in part)


def test_without_scores_the_table_has_no_columns_for_them(stored: Path) -> None:
    text = read(page("csr")).text
    assert "Unseen wordings" not in text
    assert "not measured" not in text


def test_scores_stand_beside_the_model_whose_weights_are_loaded(stored: Path) -> None:
    write_board(make_board(csr=model_scores("weights of csr"), case=model_scores("other weights")), stored)
    markup = page("csr", "case")
    assert "Unseen wordings" in markup
    assert "73.0 / 33.1" in row(markup, "csr")
    assert "20 pairs; pair accuracy 73.0 [65.0, 81.0], Spearman 33.1 [20.0, 44.3]" in row(markup, "csr")
    assert "not measured" in row(markup, "case")
    assert "not loaded" in row(markup, "minilm")


def test_every_row_has_as_many_columns_as_the_head(stored: Path) -> None:
    write_board(make_board(csr=model_scores("weights of csr")), stored)
    markup = page("csr")
    wide = markup.count('scope="col"')
    assert row(markup, "csr").count("<td") + 1 == wide
    assert row(markup, "case").count("<td") + 1 == wide - len(scores_view.COLUMNS) + 1


def test_the_detail_has_every_part_with_intervals_and_how_it_was_made(stored: Path) -> None:
    board = make_board(csr=model_scores("weights of csr"))
    model = fakes.FakeModel("csr")
    text = read(scores_view.render_detail(board, model.info, model)).text
    assert "33.1 [20.0, 44.3]" in text
    assert "Spearman −2.5 against the encoder before training" in text
    assert "Computed in float32 with condviz 0.1.0, torch 2.13.0." in text
    assert "--stored --model csr --by aspect" in text
    assert scores_view.render_detail(board, model.info, None) == ""
    assert scores_view.render_detail(make_board(), model.info, model) == ""


def test_new_scores_are_seen_without_a_restart(stored: Path) -> None:
    assert scores_view.load_board()[0].models == {}
    write_board(make_board(), stored)
    assert set(scores_view.load_board()[0].models) == {"csr"}


def test_a_damaged_file_costs_the_scores_only(stored: Path) -> None:
    stored.write_text("<script>")
    markup = page("csr")
    assert "Stored scores are not shown" in markup
    assert 'data-testid="card-csr"' in markup
    assert "<script>" not in markup
