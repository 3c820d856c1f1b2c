"""Ratings from scores: they keep every order, say what labels say, and stay in the checkpoint."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condviz.data.corpus import RatedPair
from condviz.encoder.pretrained import load_backbone
from condviz.errors import CheckpointError, ConfigError
from condviz.evaluation.csts import calibrate, store_calibration
from condviz.methods import METHODS
from condviz.models import checkpoints, registry
from condviz.models.manifest import calibration_of, read_manifest
from condviz.types import Calibration
from tests.tiny import tiny_folder

FITTED = Calibration((-0.2, 0.1, 0.6), (1.2, 2.0, 4.5), 0.1, {"a": 3})


class Fixed:
    """Scores a pair by the number in its condition."""

    def score(self, sentences1: list[str], sentences2: list[str], conditions: list[str], **_: object) -> np.ndarray:
        return np.array([float(text) for text in conditions], np.float32)


def rows(count: int, mean: float = 3.0, seed: int = 0) -> list[RatedPair]:
    """Rows whose label rises with the number in the condition."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(1, 6, count)
    scores = (labels - mean) / 4 + draw.normal(0, 0.2, count)
    return [
        RatedPair(i, "a", "b", f"{score:.6f}", int(label), "x", f"f{i}", f"f{i}")
        for i, (score, label) in enumerate(zip(scores, labels, strict=True))
    ]


@given(st.lists(st.floats(-50, 50, width=32), min_size=2, max_size=20, unique=True))
def test_a_higher_score_always_has_a_higher_rating(scores: list[float]) -> None:
    scores = sorted(scores)
    apart = [scores[0]] + [b for a, b in pairwise(scores) if b - a > 1e-6]
    ratings = FITTED.rate(np.array(apart, np.float32))
    assert (np.diff(ratings) > 0).all()
    assert ((ratings > 1) & (ratings < 5)).all()


def test_readings_are_what_labels_say_on_average() -> None:
    found = calibrate(Fixed(), {"one": rows(1500), "two": rows(300, seed=1)})
    assert found.error < 0.15
    assert found.rows == {"one": 1500, "two": 300}
    assert found.rate([-0.6])[0] < 1.8
    assert found.rate([0.0])[0] == pytest.approx(3, abs=0.4)
    assert found.rate([0.6])[0] > 4.2


def test_small_sources_count_as_much_as_large_ones() -> None:
    high = [row for row in rows(2000) if row.label > 3]
    found = calibrate(Fixed(), {"large": rows(2000), "small": high[:50]})
    assert found.rate([0.1])[0] > calibrate(Fixed(), {"large": rows(2000)}).rate([0.1])[0]


def test_a_checkpoint_keeps_its_ratings_and_its_weights(tmp_path: Path) -> None:
    model = METHODS["bi-encoder"](
        load_backbone(str(tiny_folder(tmp_path / "encoder")), device="cpu", precision="float32"),
        METHODS["bi-encoder"].config_cls(),
    )
    folder = checkpoints.save(model, tmp_path / "model", metrics={"validation": {"rows": 1}})
    with pytest.raises(ConfigError, match="calibrate"):
        registry.load(str(folder)).rate(["a cat"], ["the man"], ["the mood"])
    before = read_manifest(folder)
    store_calibration(folder, FITTED)
    after = read_manifest(folder)
    assert calibration_of(after) == FITTED
    assert after["weights_sha256"] == before["weights_sha256"]
    assert after["metrics"].pop("calibration") is not None
    assert after == before
    loaded = registry.load(str(folder), precision="float32")
    texts = (["a cat", "the man"], ["the man", "two dogs"], ["the mood", "the sport"])
    np.testing.assert_array_equal(loaded.rate(*texts), FITTED.rate(loaded.score(*texts)))


@pytest.mark.parametrize("damage", [{"scores": [0.3, 0.1, 0.6]}, {"ratings": [1, 2, 3]}, {"ratings": None}])
def test_damaged_ratings_are_refused(tmp_path: Path, damage: dict) -> None:
    content = {"scores": [-0.2, 0.1, 0.6], "ratings": [1.2, 2.0, 4.5], "error": 0.1, "rows": {}} | damage
    with pytest.raises(CheckpointError, match="calibrate"):
        calibration_of({"metrics": {"calibration": json.loads(json.dumps(content))}})
