"""Maps: the same on every run, laid over each other, and sensible at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from condviz.analysis.map_result import ProjectionConfig
from condviz.analysis.projection import project
from condviz.errors import ConfigError, DataError

GENERATOR = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(3), 20)
BEFORE = GENERATOR.standard_normal((60, 24))
AFTER = 6 * GENERATOR.standard_normal((3, 24))[GROUPS] + BEFORE
PCA = ProjectionConfig("pca")


def spread(layout: np.ndarray) -> float:
    return float(np.sqrt(np.square(layout).sum(axis=1).mean()))


def separation(layout: np.ndarray) -> float:
    """Distance of the centres of groups over the spread inside of groups."""
    centres = np.stack([layout[group == GROUPS].mean(axis=0) for group in range(3)])
    inside = spread(layout - centres[GROUPS])
    return float(np.linalg.norm(centres[:, None] - centres[None], axis=-1).max() / inside)


@pytest.mark.parametrize("config", [PCA, ProjectionConfig(), ProjectionConfig(dimensions=3)], ids=str)
def test_the_same_input_gives_the_same_map(config: ProjectionConfig) -> None:
    first, second = (project(BEFORE, AFTER, config) for _ in range(2))
    np.testing.assert_array_equal(first.before, second.before)
    np.testing.assert_array_equal(first.after, second.after)
    assert first.before.shape == first.after.shape == (60, config.dimensions)
    for layout in (first.before, first.after):
        np.testing.assert_allclose(layout.mean(axis=0), 0, atol=1e-4)
        assert spread(layout) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("config", [PCA, ProjectionConfig()], ids=str)
def test_groups_that_lie_apart_lie_apart_on_the_map(config: ProjectionConfig) -> None:
    made = project(BEFORE, AFTER, config)
    assert separation(made.after) > 3 * separation(made.before)


def test_the_second_map_is_turned_onto_the_first() -> None:
    rotation, _ = np.linalg.qr(GENERATOR.standard_normal((24, 24)))
    made = project(BEFORE, -BEFORE @ rotation, PCA)
    np.testing.assert_allclose(made.after, made.before, atol=1e-4)


def test_the_seed_decides_umap_and_not_the_pca() -> None:
    other = project(BEFORE, AFTER, ProjectionConfig(seed=1))
    assert not np.array_equal(other.after, project(BEFORE, AFTER).after)
    assert np.array_equal(
        project(BEFORE, AFTER, ProjectionConfig("pca", seed=1)).after, project(BEFORE, AFTER, PCA).after
    )


def test_equal_rows_have_one_place() -> None:
    before = np.vstack([BEFORE[:20]] * 3)
    made = project(before, AFTER)
    np.testing.assert_array_equal(made.before[:20], made.before[40:])


def test_few_points_are_shown_by_the_pca_and_fewer_than_neighbours_are_noted() -> None:
    few = project(BEFORE[:4], AFTER[:4])
    assert few.config.method == "pca"
    assert "at least 5" in few.notes[0]
    assert "so 8 neighbours" in project(BEFORE[:8], AFTER[:8]).notes[0]


def test_points_that_coincide_lie_in_the_middle() -> None:
    made = project(np.ones((6, 4)), np.ones((6, 4)))
    assert not made.before.any()
    assert np.isfinite(made.after).all()


def test_one_dimension_is_filled_up() -> None:
    made = project(np.array([[1.0], [-1.0], [1.0]]), np.array([[1.0], [1.0], [-1.0]]), PCA)
    assert made.before.shape == (3, 2)


def test_progress_runs_to_the_end_and_stops_where_it_raises() -> None:
    seen = []
    project(BEFORE, AFTER, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project(BEFORE, AFTER, progress=stop)


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(DataError, match="same points"):
        project(BEFORE, AFTER[:5])
    with pytest.raises(DataError, match="infinity"):
        project(np.full((6, 2), np.inf), np.ones((6, 2)))
    for wrong in ({"method": "tsne"}, {"dimensions": 4}, {"num_neighbors": 1}, {"min_dist": 1.0}, {"seed": -1}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            ProjectionConfig(**wrong)
