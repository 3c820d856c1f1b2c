"""Conditions that mean the same: grouped by vectors, editable, and counted together."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import condviz
from condviz.analysis.errors.findings import analyse, find_wordings
from condviz.analysis.errors.study import group_conditions, judge, make_study
from condviz.evaluation.dataset import make_dataset, row_keys, trained_rows
from condviz.types import Pair

PLACES = ["the place", "the location", "The  place", "the mood", "the sport", "the kind of sport"]


@pytest.mark.parametrize("model", ["minilm", "hyper-cl", "csr"])
def test_wordings_of_one_question_share_a_name(model: str) -> None:
    found = group_conditions(condviz.load(model), PLACES)
    assert list(found) == PLACES
    assert [found[one] for one in PLACES] == ["the place"] * 3 + ["the mood", "the sport", "the sport"]


def test_conditions_of_one_domain_are_not_one_question() -> None:
    asked = ["the manner of the adviser", "the feeling of the mother", "whether the bank informed the customer"]
    data = make_dataset("t", [Pair("a", "b", condition, 3.0) for condition in [*asked, "the kind of complaint"]])
    assert len(set(find_wordings(data).values())) == 4, "which a model that was trained holds for alike"


def test_vectors_without_a_direction_and_a_single_condition_are_groups_of_their_own() -> None:
    model = SimpleNamespace(
        check_able=lambda *_: None, separable=False, conditional=True,
        encode_sentences=lambda texts: np.array([[0.0, 0], [1, 0], [0, 1]])[: len(texts)],
    )  # fmt: skip
    assert group_conditions(model, ["a", "b", "c"]) == {"a": "a", "b": "b", "c": "c"}
    assert group_conditions(model, ["a"]) == {"a": "a"}


def test_few_rows_of_each_wording_answer_which_conditions() -> None:
    pairs = [Pair(f"a{i}", "b", f"{('the place', 'where')[i % 2]} {i}", 1.0 + i % 5) for i in range(40)]
    data = make_dataset("t", pairs)
    scores = np.where(np.arange(40) % 2, data.gold, 3.0 + np.arange(40) / 100)
    asks = {pair.condition: pair.condition.rpartition(" ")[0] for pair in pairs}
    alone, grouped = (analyse(make_study(data, judge(data, "m", scores), asks=one), resamples=0) for one in ({}, asks))
    assert alone.conditions == ()
    assert [(one.value, one.n) for one in grouped.conditions] == [("the place", 20), ("where", 20)]
    assert grouped.summary.worst.value == "the place"
    assert analyse(grouped.study, filter='asks == "where"', resamples=0).mask.sum() == 20


def test_find_errors_groups_wordings_unless_it_is_told() -> None:
    texts = ("the place", "the location")
    data = make_dataset("t", [Pair(f"A dog {i}.", "A cat.", texts[i % 2], 1.0 + i % 5) for i in range(12)])
    found = condviz.find_errors("minilm", data, resamples=0)
    assert [(one.value, one.n) for one in found.conditions] == [("the place", 12)]
    found = condviz.find_errors("minilm", data, resamples=0, wordings={})
    assert sorted((one.value, one.n) for one in found.conditions) == [("the location", 6), ("the place", 6)]


def test_rows_are_known_by_their_texts_in_either_order(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = [Pair("A man surfs.", "A girl skis.", "the sport", 1.0)]
    monkeypatch.setattr(
        "condviz.evaluation.dataset._training_data", lambda model: [{"source": "csv", "row_keys": row_keys(trained)}]
    )
    asked = [Pair("a girl skis.", "A man  surfs.", "The sport"), Pair("A man surfs.", "A girl skis.", "the mood")]
    assert trained_rows("mine", asked).tolist() == [True, False]
