"""Maps: the same on every run, laid over each other, and sensible at the edges."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from numba.core.caching import InTreeCacheLocator

from condviz.analysis.layout import ROUNDS, UNCACHED, Layout, _import_compiled, project, warm_up
from condviz.errors import DataError
from tests.stand_ins import interrupt

GENERATOR = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(3), 20)
BEFORE = GENERATOR.standard_normal((60, 24))
AFTER = 6 * GENERATOR.standard_normal((3, 24))[GROUPS] + BEFORE
UMAP, PCA = Layout("umap", 15, 0.1, 0), Layout("pca", 15, 0.1, 0)


def spread(layout: np.ndarray) -> float:
    return float(np.sqrt(np.square(layout).sum(axis=1).mean()))


def separation(layout: np.ndarray) -> float:
    """Distance of the centres of groups over the spread inside of groups."""
    centres = np.stack([layout[group == GROUPS].mean(axis=0) for group in range(3)])
    inside = spread(layout - centres[GROUPS])
    return float(np.linalg.norm(centres[:, None] - centres[None], axis=-1).max() / inside)


def test_torch_keeps_its_number_of_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    project(BEFORE, AFTER, UMAP)
    assert torch.get_num_threads() == 3, "as numba, which sets it in the first layout of a process"
    torch.set_num_threads(before)


@pytest.mark.parametrize("config", [PCA, UMAP], ids=str)
def test_the_same_input_gives_the_same_map(config: Layout) -> None:
    first, second = (project(BEFORE, AFTER, config)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    for layout in first:
        assert layout.shape == (60, 2)
        np.testing.assert_allclose(layout.mean(axis=0), 0, atol=1e-4)
        assert spread(layout) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("config", [PCA, UMAP], ids=str)
def test_groups_that_lie_apart_lie_apart_on_the_map(config: Layout) -> None:
    (before, after), *_ = project(BEFORE, AFTER, config)
    assert separation(after) > 3 * separation(before)


def test_the_second_map_is_turned_onto_the_first() -> None:
    rotation, _ = np.linalg.qr(GENERATOR.standard_normal((24, 24)))
    (before, after), *_ = project(BEFORE, -BEFORE @ rotation, PCA)
    np.testing.assert_allclose(after, before, atol=1e-4)


def test_the_seed_decides_umap_and_not_the_pca() -> None:
    assert not np.array_equal(project(BEFORE, AFTER, replace(UMAP, seed=1))[0][1], project(BEFORE, AFTER, UMAP)[0][1])
    assert np.array_equal(project(BEFORE, AFTER, replace(PCA, seed=1))[0], project(BEFORE, AFTER, PCA)[0])


def test_equal_rows_have_one_place() -> None:
    (before, _), *_ = project(np.vstack([BEFORE[:20]] * 3), AFTER, UMAP)
    np.testing.assert_array_equal(before[:20], before[40:])


def test_few_points_are_shown_by_the_pca_and_fewer_than_neighbours_are_noted() -> None:
    _, made, notes = project(BEFORE[:4], AFTER[:4], UMAP)
    assert made.method == "pca"
    assert "at least 5" in notes[0]
    (before, after), made, notes = project(np.vstack([BEFORE[:8]] * 2), AFTER[:16], UMAP)
    assert made == replace(UMAP, n_neighbors=7), "on both sides, what the line of the map tells"
    assert "each has 7 neighbours" in notes[0]
    for asked, told in zip(project(np.vstack([BEFORE[:8]] * 2), AFTER[:16], made)[0], (before, after), strict=True):
        np.testing.assert_array_equal(asked, told)


def test_points_that_coincide_lie_in_the_middle() -> None:
    (before, after), *_ = project(np.ones((6, 4)), np.ones((6, 4)), UMAP)
    assert not before.any()
    assert np.isfinite(after).all()


@pytest.mark.parametrize("config", [PCA, UMAP], ids=str)
def test_one_dimension_is_filled_up(config: Layout) -> None:
    line = np.stack([[1.0, angle] for angle in np.linspace(0, 1, 12)])
    (before, _), *_ = project(line, line, config)
    assert before.shape == (12, 2)
    assert np.isfinite(before).all()


def test_progress_runs_to_the_end_and_stops_where_it_raises() -> None:
    seen = []
    project(BEFORE, AFTER, UMAP, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)

    with pytest.raises(KeyboardInterrupt):
        project(BEFORE, AFTER, UMAP, progress=interrupt)


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(DataError, match="same points"):
        project(BEFORE, AFTER[:5], UMAP)
    with pytest.raises(DataError, match="infinity"):
        project(np.full((6, 2), np.inf), np.ones((6, 2)), UMAP)


def test_rounds_of_umap_run_beside_other_threads_and_what_takes_long_to_compile_is_kept() -> None:
    """The functions have no public names: read in umap-learn 0.5.12."""
    from umap import layouts, umap_  # seconds, which a run without these tests saves

    warm_up()
    rounds, *kept = getattr(layouts, ROUNDS), *(getattr(umap_, name) for name in UNCACHED)
    assert all(used.signatures for used in (rounds, *kept)), "this is what a layout compiles and runs"
    assert rounds.targetoptions["nogil"]
    assert all(used.stats.cache_path for used in kept), "else each process compiles them anew"


def test_what_numba_compiles_is_imported_where_no_cache_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compiled_toy.py").write_text("import numba\n\n@numba.njit(cache=True)\ndef one():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setattr(numba.config, "CACHE_DIR", os.devnull)
    monkeypatch.setattr(InTreeCacheLocator, "from_function", lambda *_: None)  # as if packages could not be written
    with pytest.raises(RuntimeError, match="no locator available"):
        import_module("compiled_toy")
    assert _import_compiled("compiled_toy").one() == 1
    assert any(Path(numba.config.CACHE_DIR).rglob("*.nbi"))
