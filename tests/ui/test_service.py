"""Requests: checked before anything is scored, rows as they come, errors of one model kept apart."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from condviz.errors import CondvizError, DataError, UnknownModelError
from condviz.ui.engine import Engine
from condviz.ui.guard import explain
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service
from tests.ui import fakes


def make_service(engine: Engine | None = None) -> Service:
    engine = engine or fakes.make_engine(broken=("csr",))
    return Service(engine, ModelPool(engine.list_models(), engine.load))


def check(service: Service, **changes: object) -> object:
    request = {"sentence1": "A.", "sentence2": "B.", "conditions": ["c"], "models": ["minilm"], **changes}
    texts = request.pop("sentence1"), request.pop("sentence2")
    return service.check(*texts, **request)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sentence1": " \u200b"}, DataError, "Sentence 1 is empty"),
        ({"sentence2": "a\ud800"}, DataError, "Sentence 2 has half of a character"),
        ({"sentence1": "a\0"}, DataError, r"U\+0000"),
        ({"conditions": ["x"] * 500}, DataError, "500 conditions"),
        ({"models": []}, DataError, "No model is chosen"),
        ({"models": "minilm"}, DataError, "No model is chosen"),
        ({"models": ["nobody"]}, UnknownModelError, "nobody"),
    ],
)
def test_bad_requests_name_the_field(changes: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check(make_service(), **changes)


def test_the_steps_end_with_every_row_and_keep_failures_apart() -> None:
    service = make_service()
    steps = list(service.compare_steps(check(service, models=["hyper-cl", "csr", "minilm"])))
    assert [info.name for info in steps[-1].comparison.models] == ["hyper-cl", "minilm"]
    assert "truncated" in steps[-1].failed["csr"]
    assert steps[0].pending.keys() == {"hyper-cl", "csr", "minilm"}
    assert not steps[-1].pending


def test_all_at_once_fails_with_the_name_of_the_model() -> None:
    service = make_service()
    with pytest.raises(CondvizError, match=r"'csr'.*truncated"):
        service.compare(check(service, models=["minilm", "csr"]))


def test_a_repeated_model_is_scored_once() -> None:
    service = make_service()
    assert service.compare(check(service, models=["minilm", "minilm"])).scores.shape == (1, 1)


def test_numbers_are_those_of_the_core() -> None:
    service = make_service()
    answer = service.compare(check(service, models=["hyper-cl", "minilm"]))
    direct = fakes.compare([fakes.FakeModel("hyper-cl"), fakes.FakeModel("minilm")], "A.", "B.", ["c"])
    np.testing.assert_array_equal(answer.scores, direct.scores)


def test_an_unexpected_error_shows_an_id_and_not_the_detail(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        shown = explain(RuntimeError("secret"))
    number = caplog.records[0].args[0]
    assert number in shown
    assert "secret" not in shown
    assert "secret" in caplog.text
