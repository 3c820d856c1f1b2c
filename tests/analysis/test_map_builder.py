"""Maps with tiny models: what is encoded, what is measured, and what happens where something cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest

from condviz.analysis.condition_matrices import describe_matrices
from condviz.analysis.geometry import frobenius_variance
from condviz.analysis.map_builder import build_map, embed_points, measure_side
from condviz.analysis.map_points import MapPoints, from_texts
from condviz.analysis.map_result import EmbeddingMap, ProjectionConfig
from condviz.analysis.value_agreement import value_agreement
from condviz.errors import ConfigError, DataError
from condviz.methods import METHODS
from condviz.methods.base import ConditionalScorer
from tests.tiny import CONDITIONS, SENTENCES, tiny_backbone

PCA = ProjectionConfig("pca")
GROUPED = MapPoints(
    tuple(f"{text} {end}" for end in ("", "a man", "the park") for text in SENTENCES),
    tuple(np.repeat(CONDITIONS[:3], 4)),
    {"value": ("x", "y") * 6},
)


def tiny(name: str) -> ConditionalScorer:
    method = METHODS[name]
    config = method.config_cls(rank=4) if name == "hyper-cl" else method.config_cls()
    return method(tiny_backbone(), config).eval()


@pytest.fixture(scope="module")
def hyper_cl() -> ConditionalScorer:
    return tiny("hyper-cl")


def test_before_and_after_are_the_vectors_of_the_model(hyper_cl: ConditionalScorer) -> None:
    points = from_texts(SENTENCES, CONDITIONS[:2])
    embedded = embed_points(hyper_cl, points)
    np.testing.assert_array_equal(embedded.before[:4], embedded.before[4:])
    np.testing.assert_allclose(embedded.before[:4], hyper_cl.encode_sentences(SENTENCES), atol=1e-6)
    matrix = hyper_cl.condition_matrix(CONDITIONS[1])
    np.testing.assert_allclose(embedded.after[4:], embedded.before[4:] @ matrix.T, atol=1e-4)


def test_a_map_survives_json(hyper_cl: ConditionalScorer) -> None:
    made = build_map(hyper_cl, GROUPED, PCA)
    record = json.loads(json.dumps(made.to_dict()))
    again = EmbeddingMap.from_dict(record)
    assert again.to_dict() == record
    np.testing.assert_allclose(again.projection.after, made.projection.after, atol=1e-4)
    np.testing.assert_array_equal(again.before.neighbors.indices, made.before.neighbors.indices)


def test_a_map_is_measured_in_the_original_space(hyper_cl: ConditionalScorer) -> None:
    made = build_map(hyper_cl, GROUPED, PCA)
    for side in (made.before, made.after):
        assert side.problems == {}
        assert side.impurity["clusters"] == 3
        assert np.array(side.impurity["table"]["counts"]).sum() == 12
        assert -1 <= side.silhouette <= 1
        assert [row["condition"] for row in side.values] == list(GROUPED.groups)
    counts = np.array(made.after.impurity["table"]["counts"])
    for row, group in enumerate(made.after.impurity["table"]["groups"]):
        own = made.after.clusters[[condition == group for condition in GROUPED.conditions]]
        assert np.bincount(own, minlength=3)[: counts.shape[1]].tolist() == counts[row].tolist()
    assert made.drift.shape == (12,)


def test_one_condition_has_no_impurity_and_everything_else(hyper_cl: ConditionalScorer) -> None:
    made = build_map(hyper_cl, from_texts(SENTENCES, CONDITIONS[:1]), PCA)
    assert "only one" in made.after.problems["impurity"]
    assert made.after.isotropy is not None
    assert made.after.clusters is None


def test_more_clusters_than_points_are_refused_for_the_impurity_only() -> None:
    side = measure_side(np.random.default_rng(0).standard_normal((12, 4)), GROUPED, num_clusters=13)
    assert "number of embeddings, 12" in side.problems["impurity"]
    assert side.silhouette is not None


def test_vectors_that_cancel_out_cost_the_isotropy_only() -> None:
    half = np.random.default_rng(0).standard_normal((6, 4))
    side = measure_side(np.vstack([half, -half]), GROUPED)
    assert set(side.problems) == {"isotropy"}


@pytest.mark.parametrize("name", ["cross-encoder", "unconditional"])
def test_models_without_a_map_say_so(name: str) -> None:
    with pytest.raises(ConfigError, match=r"no map|are the same"):
        embed_points(tiny(name), GROUPED)


def test_vectors_that_are_not_finite_name_the_sentence(hyper_cl: ConditionalScorer) -> None:
    class Broken(type(hyper_cl)):
        def encode(self, sentences: list[str], conditions: list[str], **rest: object) -> np.ndarray:
            vectors = np.ones((len(sentences), 4), dtype=np.float32)
            vectors[1] = np.nan
            return vectors

    model = Broken(hyper_cl.backbone, hyper_cl.method_config)
    with pytest.raises(DataError, match=r"not finite for 'two dogs run.*under its condition"):
        embed_points(model, GROUPED)


def test_matrices_are_described(hyper_cl: ConditionalScorer) -> None:
    found = describe_matrices(hyper_cl, CONDITIONS[:3])
    matrices = np.stack([hyper_cl.condition_matrix(condition) for condition in CONDITIONS[:3]])
    assert found["variance"] == pytest.approx(frobenius_variance(matrices), rel=1e-4)
    assert np.count_nonzero(np.array(found["spectra"]) > 1e-4) <= 3 * 4
    assert max(found["rank"]) <= 4
    assert np.diag(found["distances"]).tolist() == [0, 0, 0]
    assert np.shape(found["places"]) == (3, 2)
    assert describe_matrices(tiny("tri-encoder"), CONDITIONS[:3]) is None


def test_value_agreement_knows_values_that_lie_together() -> None:
    generator = np.random.default_rng(0)
    centres = 8 * generator.standard_normal((2, 6))
    values = ["x", "y"] * 10 + ["x"] * 10
    together = np.stack([centres["xy".index(value)] for value in values]) + generator.standard_normal((30, 6))
    conditions = ["a"] * 20 + ["b"] * 10
    (only,) = value_agreement(together, conditions, values)
    assert (only.condition, only.num_points, only.num_values) == ("a", 20, 2)
    assert only.agreement == 1
    assert only.impurity == pytest.approx(0, abs=1e-9)
    assert only.chance == pytest.approx(9 / 19)
    (mixed,) = value_agreement(generator.standard_normal((30, 6)), conditions, values)
    assert mixed.agreement < 0.8
    assert mixed.p_value > 0.05
    assert value_agreement(together, conditions, [""] * 30) == ()
