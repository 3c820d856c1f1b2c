"""Names of clusters: words that set them apart."""

from __future__ import annotations

import numpy as np

from condviz.analysis.layout import distinctive_words, name_clusters

TEXTS = [f"{number} dogs run in the park {word}" for word in "abcdef" for number in ("Two", "Seven")]


def test_clusters_are_named_by_what_sets_them_apart() -> None:
    generator = np.random.default_rng(0)
    middle = np.array([[0.0, 0.0] if text.startswith("Two") else [5.0, 5.0] for text in TEXTS])
    topics = name_clusters(middle + 0.1 * generator.standard_normal((12, 2)), TEXTS)
    assert {topic.words for topic in topics} == {("two",), ("seven",)}
    assert all(topic.size == 6 for topic in topics)
    seven = next(topic for topic in topics if topic.words == ("seven",))
    np.testing.assert_allclose([seven.x, seven.y], [5, 5], atol=0.5)


def test_no_clusters_and_no_words_give_no_names() -> None:
    assert name_clusters(np.zeros((3, 2)), TEXTS[:3]) == ()
    apart = np.repeat([[0.0, 0.0], [9.0, 9.0]], 10, axis=0) + np.random.default_rng(0).standard_normal((20, 2))
    assert name_clusters(apart, ["and the"] * 20) == ()


def test_a_word_that_is_about_as_frequent_elsewhere_names_nothing() -> None:
    texts = ["old red barn", "old red gate", "old red roof", "old car", "old bus", "new tram"]
    assert distinctive_words(texts, np.array([0, 0, 0, 1, 1, 1]))[0] == ("red",)


def test_a_sentence_under_several_conditions_names_no_cluster_by_itself() -> None:
    apart = np.repeat([[0.0, 0.0], [9.0, 9.0]], 10, axis=0) + np.random.default_rng(0).standard_normal((20, 2))
    assert name_clusters(apart, ["quick dogs"] * 10 + ["slow dogs"] * 10) == ()
