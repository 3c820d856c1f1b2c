"""Which rows are chosen, and what is measured on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.parts import Chosen, choose, describe, digest, measure
from condviz.data import corpora
from condviz.data.corpus import RatedPair
from condviz.errors import ConfigError, DataError
from condviz.evaluation.metrics import spearman
from condviz.evaluation.scoreboard import PARTS, BoardSample
from tests.tiny import tiny_model


class Told:
    """Scores rows by a function of (sentence 1, sentence 2, condition)."""

    def __init__(self, score: Callable[[str, str, str | None], float]) -> None:
        self.one = score

    def score(self, *columns: Sequence[str], progress: object = None) -> np.ndarray:
        return np.array([self.one(*row) for row in zip(*columns, strict=True)], dtype=np.float32)

    def score_unconditional(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        return np.array([self.one(*row, None) for row in zip(first, second, strict=True)], dtype=np.float32)


def pair(number: int, labels: tuple[int, int], aspects: tuple[str, str], domain: str = "sport") -> list[RatedPair]:
    return [
        RatedPair(number, f"a{number}", f"b{number}", f"c{label}", label, aspect, f"{domain}-001", "city-002")
        for label, aspect in zip(labels, aspects, strict=True)
    ]


def chosen(rows: Sequence[RatedPair], part: str = "test") -> Chosen:
    return Chosen(PARTS[part], tuple(rows), BoardSample(digest(rows), len(rows), len(rows) // 2, len(rows) // 2, 0))


def sentences(item: Chosen) -> set[frozenset[str]]:
    return {frozenset((row.sentence1, row.sentence2)) for row in item.rows}


def test_whole_pairs_are_chosen_by_the_seed() -> None:
    item = choose("test", pairs=20)
    assert [row.pair for row in item.rows[::2]] == [row.pair for row in item.rows[1::2]]
    assert (item.sample.rows, item.sample.pairs) == (40, 20)
    assert item.sample.available > 1000
    assert item == choose("test", pairs=20)
    assert item.sample.digest != choose("test", pairs=20, seed=1).sample.digest


def test_a_chosen_pair_stays_when_more_are_chosen() -> None:
    assert sentences(choose("own_aspects", pairs=20)) < sentences(choose("own_aspects", pairs=40))


def test_unseen_wordings_are_asked_of_the_same_pairs() -> None:
    seen, unseen = choose("test", pairs=30), choose("unseen_phrasings", pairs=30)
    assert sentences(seen) == sentences(unseen)
    assert not {row.condition for row in seen.rows} & {row.condition for row in unseen.rows}


@pytest.mark.parametrize(
    ("part", "options", "error", "message"),
    [
        ("validation", {}, ConfigError, r"no part 'validation' .* There are: csts, csts_unshared"),
        ("test", {"pairs": 9}, ConfigError, "at least 10 sentence pairs, got 9"),
        ("mams", {}, DataError, "test.xml cannot be read"),
        ("cebab", {}, DataError, "cannot be read"),
    ],
)
def test_what_cannot_be_chosen_is_refused(
    part: str, options: dict, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDVIZ_DATA", str(tmp_path))
    with pytest.raises(error, match=message):
        choose(part, **options)


def test_a_model_that_gives_the_ratings_is_right_everywhere() -> None:
    item = choose("test", pairs=200)
    label = {(row.sentence1, row.sentence2, row.condition): row.label for row in item.rows}
    found = measure(Told(lambda *row: label[row]), item, resamples=20)
    assert (found.digest, found.rows, found.pairs, found.equal_scores) == (item.sample.digest, 400, 200, 0)
    for figure in (found.spearman, found.pearson):
        assert (figure.value, figure.low, figure.high) == (100.0, 100.0, 100.0)
    assert (found.pair_accuracy.value, found.pair_accuracy.high) == (100.0, 100.0)
    assert 98 < found.pair_accuracy.low < 100
    assert set(found.groups) == {"aspect", "domain"}
    assert {group.pair_accuracy for kind in found.groups.values() for group in kind.values()} == {100.0}


def test_a_model_without_conditions_is_blind() -> None:
    found = measure(Told(lambda one, two, _: len(one + two)), choose("test", pairs=20), resamples=0)
    assert found.blind
    assert found.pair_accuracy.value == 0
    assert found.pair_accuracy.low is None


def test_groups_take_rows_of_an_aspect_and_the_pairs_around_them() -> None:
    rng = np.random.default_rng(0)
    rows = [row for number in range(12) for row in pair(number, (1, 5), ("mood", "city-002:x_own"))]
    rows += [row for number in range(12, 15) for row in pair(number, (5, 3), ("mood", "rare"), domain="law")]
    scores = {(row.pair, row.label): float(rng.normal()) for row in rows}
    told = Told(lambda one, _, condition: scores[int(one[1:]), int(condition[1:])])
    groups = measure(told, chosen(rows), resamples=0).groups
    assert set(groups["aspect"]) == {"mood"}, "local and rare aspects have no figures"
    mood = groups["aspect"]["mood"]
    own = [row for row in rows if row.aspect == "mood"]
    right = [scores[n, 5] > scores[n, 1] for n in range(12)] + [scores[n, 5] > scores[n, 3] for n in range(12, 15)]
    expected = 100 * spearman([row.label for row in own], [scores[row.pair, row.label] for row in own])
    assert (mood.rows, mood.pairs) == (15, 15)
    assert mood.spearman == pytest.approx(expected, abs=0.01)
    assert mood.pair_accuracy == pytest.approx(100 * np.mean(right), abs=0.01)
    assert {name: group.rows for name, group in groups["domain"].items()} == {"city": 30, "sport": 24}


def test_plain_similarity_is_measured_without_a_condition() -> None:
    rows = corpora.build("scenes-plain", "test")[:40]
    alike = {(row.sentence1, row.sentence2) for row in rows if row.label == 5}
    seen: list[str | None] = []

    def knows(one: str, two: str, condition: str | None) -> float:
        seen.append(condition)
        return float((one, two) in alike)

    found = measure(Told(knows), chosen(rows, "plain"), resamples=20)
    assert set(seen) == {None}
    assert (found.spearman.value, found.pair_accuracy.value, found.pairs) == (100.0, 100.0, 20)
    assert found.groups == {}


def test_a_real_model_has_intervals_and_an_identity() -> None:
    model = tiny_model("bi-encoder")
    calls: list[tuple[int, int]] = []
    found = measure(model, choose("test", pairs=10), resamples=50, progress=lambda *done: calls.append(done))
    assert found.spearman.low <= found.spearman.value <= found.spearman.high
    assert calls
    scores = describe(model, {"test": found})
    assert (scores.weights, scores.precision, scores.trained) == (model.weights_hash, "float32", False)
    assert set(scores.versions) == {"condviz", "torch", "transformers"}


def test_negative_resamples_are_refused() -> None:
    with pytest.raises(ConfigError, match="got -1"):
        measure(Told(lambda *_: 0), choose("test", pairs=10), resamples=-1)
