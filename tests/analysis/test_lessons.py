"""What only lessons compute, against the models and libraries that it explains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from sklearn.decomposition import FastICA

from condviz.analysis.lessons import (
    PROJECTIONS,
    TOY_ITEMS,
    by_hand,
    cosine,
    make_toy,
    measure_spaces,
    plane,
    project_toy,
    rank_same,
    read_offsets,
    trace_router,
)
from condviz.analysis.points import points_from_table
from condviz.encoder.backbone import CPU_HALF_MULTIPLE
from condviz.errors import ConfigError
from condviz.methods import METHODS
from condviz.methods.catalog import CSRConfig
from tests.tiny import tiny_backbone, tiny_model

SENTENCE, CONDITION = "a man rides a bike", "the sport"


@pytest.fixture(scope="module")
def csr() -> object:
    return tiny_model("csr", num_routed_layers=2)


def test_a_trace_is_what_the_model_computes(csr: object) -> None:
    weights = csr.token_weights(SENTENCE, [CONDITION])
    for place, layer in enumerate(csr.routed_layers):
        trace = trace_router(csr, SENTENCE, CONDITION, layer=layer + 1)
        np.testing.assert_allclose(trace.weights, weights.token_weights[place, 0], atol=1e-6)
        powers = np.exp(trace.scores)
        np.testing.assert_allclose(trace.weights, powers / powers.sum(), atol=1e-6)
        np.testing.assert_allclose(trace.vector, csr.encode([SENTENCE], [CONDITION])[0], atol=1e-5)


def test_a_trace_has_one_number_per_token_where_a_cpu_pads_in_half_precision() -> None:
    half = METHODS["csr"](tiny_backbone().to(torch.bfloat16), CSRConfig(num_routed_layers=2)).eval()
    trace = trace_router(half, SENTENCE, CONDITION)
    assert len(trace.tokens) == len(trace.scores) == len(trace.weights) == len(trace.before)
    assert len(trace.tokens) % CPU_HALF_MULTIPLE
    assert trace.weights.sum() == pytest.approx(1, abs=1e-3)


def test_a_high_temperature_makes_all_conditions_alike(csr: object) -> None:
    hot = [trace_router(csr, SENTENCE, text, temperature=1e6) for text in (CONDITION, "the colour of the bike")]
    np.testing.assert_allclose(hot[0].weights, 1 / len(hot[0].tokens), atol=1e-4)
    assert cosine(hot[0].vector, hot[1].vector) == pytest.approx(1, abs=1e-6)


def test_other_models_and_layers_have_no_trace(csr: object) -> None:
    other = tiny_model("bi-encoder")
    for model, options in ((other, {}), (csr, {"layer": 99}), (csr, {"temperature": 0})):
        with pytest.raises(ConfigError):
            trace_router(model, SENTENCE, CONDITION, **options)


def test_offsets_are_those_of_case() -> None:
    case = tiny_model("case", projection=None)
    texts = [SENTENCE, "a dog sleeps"]
    found = read_offsets(case, texts, CONDITION)
    np.testing.assert_allclose(found.offsets, case.encode(texts, [CONDITION] * 2), atol=1e-5)
    assert cosine(*found.offsets) == pytest.approx(float(case.score(texts[:1], texts[1:], [CONDITION])[0]), abs=1e-5)


def test_a_plane_keeps_lengths_and_angles() -> None:
    origin, one, two = np.random.default_rng(0).standard_normal((3, 50))
    flat = plane(origin, one, two)
    np.testing.assert_allclose(
        np.linalg.norm(flat, axis=1), [np.linalg.norm(one - origin), np.linalg.norm(two - origin)]
    )
    assert cosine(*flat) == pytest.approx(cosine(one - origin, two - origin))
    assert np.linalg.norm(flat[0] - flat[1]) == pytest.approx(np.linalg.norm(one - two))


def test_ica_ranks_as_the_library_does_and_ratings_beat_what_varies_most() -> None:
    toy = make_toy(2.0)
    library = FastICA(3, random_state=0).fit(toy.points[: TOY_ITEMS // 2]).transform(toy.points)
    assert rank_same(project_toy(toy, "ica", 3), toy.labels) == pytest.approx(rank_same(library, toy.labels), abs=1e-6)
    shares = {name: rank_same(project_toy(toy, name, 2), toy.labels) for name in PROJECTIONS}
    assert shares["linear"] > 0.9 > 0.7 > shares["pca"]


@pytest.mark.parametrize("clusters", ["AAAABBBBCCCC", "AAAAAAAAAAAA", "ABCAABCAABCA", "AAABBBBCCCAC"])
def test_impurity_by_hand_is_the_mean_entropy_of_the_rows(clusters: str) -> None:
    found = by_hand("111122223333", clusters)
    assert found["rows"] == pytest.approx([entropy(row) for row in found["counts"]])
    assert found["impurity"] == pytest.approx(np.mean(found["rows"]))
    assert np.sum(found["counts"]) == 12


def test_a_label_wins_impurity_and_changes_no_neighbour() -> None:
    texts = [f"{number} {animal} in the {place}" for number in ("one", "two", "three") for animal in ("dogs", "cats")
             for place in ("house", "garden", "street", "park")]  # fmt: skip
    table = {
        "text": texts,
        "condition": ["the number", "the animal"] * 12,
        "value": [text.split()[turn % 2] for turn, text in enumerate(texts)],
    }
    points = points_from_table(table)
    model = tiny_model("bi-encoder")
    found = measure_spaces(model, points, label=5.0)
    assert found["label"]["impurity"] == pytest.approx(0, abs=1e-12)
    assert found["label"]["agreement"] == pytest.approx(found["alone"]["agreement"])
    assert list(measure_spaces(model, points, names=("alone",))) == ["alone", "chance"]


def test_others_than_case_subtract_nothing() -> None:
    with pytest.raises(ConfigError, match="subtracts nothing"):
        read_offsets(tiny_model("case", subtract=False), [SENTENCE], CONDITION)
