"""Maps with tiny models: what is encoded, what is measured, and what happens where something cannot be."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from condviz.analysis.geometry import describe_matrices, frobenius_variance, value_agreement
from condviz.analysis.maps import EmbeddingMap, build_map, measure_space
from condviz.analysis.points import MapPoints
from condviz.errors import ConfigError, DataError
from condviz.methods.base import ConditionalScorer
from tests.tiny import CONDITIONS, SENTENCES, tiny_model

GROUPED = MapPoints(
    tuple(f"{text} {end}" for end in ("", "a man", "the park") for text in SENTENCES),
    tuple(np.repeat(CONDITIONS[:3], 4).tolist()),
    {"value": ("x", "y") * 6},
    value="value",
)


@pytest.fixture(scope="module")
def hyper_cl() -> ConditionalScorer:
    return tiny_model("hyper-cl")


@pytest.fixture(scope="module")
def progress() -> list[float]:
    """What is told while the map is made."""
    return []


@pytest.fixture(scope="module")
def made(hyper_cl: ConditionalScorer, progress: list[float]) -> EmbeddingMap:
    return build_map(hyper_cl, GROUPED, method="pca", progress=lambda done, total: progress.append(done / total))


def test_a_map_is_plain_json(made: EmbeddingMap) -> None:
    record = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    np.testing.assert_allclose(record["projection"]["after"], made.after.layout, atol=1e-4)
    np.testing.assert_array_equal(record["before"]["neighbors"], made.before.neighbors.indices)


def test_a_map_is_a_table(made: EmbeddingMap) -> None:
    frame = made.to_frame()
    assert len(frame) == 12
    assert frame["value"].tolist() == list(GROUPED.values)
    assert {"x_before", "y_after", "cluster_after"} <= set(frame.columns)


def test_a_map_is_measured_in_the_original_space(made: EmbeddingMap) -> None:
    for side in (made.before, made.after):
        assert side.measures.problems == {}
        assert side.measures.impurity["clusters"] == 3
        assert np.array(side.measures.impurity["table"]["counts"]).sum() == 12
        assert -1 <= side.measures.silhouette <= 1
        assert [row.condition for row in side.values] == list(GROUPED.groups)
        assert 0 <= side.agreement <= 1
        assert side.chance == pytest.approx(1 / 3)
    found = made.after.measures
    counts = np.array(found.impurity["table"]["counts"])
    for row, group in enumerate(found.impurity["table"]["groups"]):
        own = found.clusters[[condition == group for condition in GROUPED.conditions]]
        assert np.bincount(own, minlength=3)[: counts.shape[1]].tolist() == counts[row].tolist()
    assert made.change.shape == (12,)


def test_sentences_are_crossed_with_conditions_and_tables_have_their_own(hyper_cl: ConditionalScorer) -> None:
    crossed = build_map(hyper_cl, SENTENCES, CONDITIONS[:2], method="pca", measures=False)
    np.testing.assert_array_equal(crossed.before.layout[:4], crossed.before.layout[4:])
    assert crossed.after.measures is None
    frame = pd.DataFrame({"text": SENTENCES, "condition": CONDITIONS[:4], "kind": list("abab")})
    made = build_map(hyper_cl, frame, method="pca", measures=False, colour="kind")
    assert made.points.conditions == tuple(CONDITIONS[:4])
    assert made.colour == "kind"
    with pytest.raises(ConfigError, match="colour must be one of"):
        build_map(hyper_cl, frame, colour="sort")


@pytest.mark.usefixtures("made")
def test_progress_never_falls_and_stops_where_it_raises(hyper_cl: ConditionalScorer, progress: list[float]) -> None:
    assert progress == sorted(progress)
    assert progress[-1] > 0.9
    for stop in (0.05, 0.9):

        def leave(done: int, total: int, stop: float = stop) -> None:
            if done / total >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build_map(hyper_cl, GROUPED, method="pca", progress=leave)


def test_one_condition_has_no_impurity_and_everything_else(hyper_cl: ConditionalScorer) -> None:
    found = build_map(hyper_cl, SENTENCES, CONDITIONS[:1], method="pca").after.measures
    assert "only one" in found.problems["impurity"]
    assert found.isotropy is not None
    assert found.clusters is None


def test_a_measure_that_fails_takes_no_other_down() -> None:
    many = measure_space(np.random.default_rng(0).standard_normal((12, 4)), GROUPED, clusters=13)
    assert "number of embeddings, 12" in many.problems["impurity"]
    assert many.silhouette is not None
    half = np.random.default_rng(0).standard_normal((6, 4))
    assert set(measure_space(np.vstack([half, -half]), GROUPED).problems) == {"isotropy"}


@pytest.mark.parametrize("name", ["cross-encoder", "unconditional"])
def test_models_without_a_map_say_so(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        build_map(tiny_model(name), GROUPED)


def test_clusters_are_checked_before_anything_is_encoded() -> None:
    for wrong in (0, 13, 2.5):
        with pytest.raises(ConfigError, match=r"clusters must be a whole number (of at least 1|from 1 to 12)"):
            build_map("a model that does not exist", GROUPED, clusters=wrong)


def test_vectors_that_are_not_finite_name_the_sentence(hyper_cl: ConditionalScorer) -> None:
    class Broken(type(hyper_cl)):
        def encode(self, sentences: list[str], conditions: list[str], **rest: object) -> np.ndarray:
            vectors = np.ones((len(sentences), 4), dtype=np.float32)
            vectors[1] = np.nan
            return vectors

    model = Broken(hyper_cl.backbone, hyper_cl.method_config)
    with pytest.raises(DataError, match=r"not finite for 'two dogs run.*under its condition"):
        build_map(model, GROUPED)


def test_matrices_are_described(hyper_cl: ConditionalScorer) -> None:
    found = describe_matrices(hyper_cl, CONDITIONS[:3])
    matrices = np.stack([hyper_cl.condition_matrix(condition) for condition in CONDITIONS[:3]])
    assert found["variance"] == pytest.approx(frobenius_variance(matrices), rel=1e-4)
    assert np.count_nonzero(np.array(found["spectra"]) > 1e-4) <= 3 * 4
    assert max(found["rank"]) <= 4
    assert np.diag(found["distances"]).tolist() == [0, 0, 0]
    assert np.shape(found["places"]) == (3, 2)
    assert describe_matrices(tiny_model("tri-encoder"), CONDITIONS[:3]) is None


def test_value_agreement_knows_values_that_lie_together() -> None:
    generator = np.random.default_rng(0)
    centres = 8 * generator.standard_normal((2, 6))
    values = ["x", "y"] * 10 + ["x"] * 10
    together = np.stack([centres["xy".index(value)] for value in values]) + generator.standard_normal((30, 6))
    conditions = ["a"] * 20 + ["b"] * 10
    (only,) = value_agreement(together, conditions, values)
    assert (only.condition, only.num_points, only.num_values) == ("a", 20, 2)
    assert only.agreement == 1
    assert only.chance == pytest.approx(9 / 19)
    (mixed,) = value_agreement(generator.standard_normal((30, 6)), conditions, values)
    assert mixed.agreement < 0.8
    assert value_agreement(together, conditions, [""] * 30) == ()


@pytest.mark.parametrize("crossed", [True, False])
def test_copies_of_a_text_are_no_neighbours_and_count_once(hyper_cl: ConditionalScorer, crossed: bool) -> None:
    """Four texts, three times each, under two conditions: from a table with a column of conditions, or without."""
    texts, values = [*SENTENCES, *map(str.upper, SENTENCES), *SENTENCES], [*"xyxy"] * 3
    if crossed:
        given, asked = pd.DataFrame({"text": texts, "value": values}), CONDITIONS[:2]
    else:
        rows = {"text": texts * 2, "condition": np.repeat(CONDITIONS[:2], 12), "value": values * 2}
        given, asked = pd.DataFrame(rows), None
    made = build_map(hyper_cl, given, asked, method="pca")
    assert len(made.points.texts) == 24
    for side in (made.before, made.after):
        assert [row.num_points for row in side.values] == [4, 4]
        assert (side.neighbors.indices[:, 3:] == -1).all(), "three others"
        for point, near in enumerate(side.neighbors.indices[:, :3]):
            found = {made.points.texts[other].casefold() for other in near}
            assert len(found) == 3
            assert made.points.texts[point].casefold() not in found
    assert all(row["chance"] > 0 for row in made.after.measures.values)
