"""The Models tab and the named endpoints, over the stand-in core."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.e2e.conftest import open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api").expect

PAIR = {"sentence1": "A man skis.", "sentence2": "A woman surfs."}


@pytest.fixture(scope="module")
def client(address: str) -> Client:
    return Client(address, verbose=False)


def test_models_tab_lists_all_and_opens_a_card(open_page: Callable[..., Page]) -> None:
    page = open_page()
    open_tab(page, "Models")
    assert page.get_by_test_id("models").locator("tbody tr").count() == 11
    page.get_by_test_id("card-csr").click()
    expect(page.locator("#cv-card")).to_contain_text("condviz.load('csr')")
    expect(page.get_by_test_id("runtime")).to_contain_text("float32")
    expect(page.get_by_test_id("models")).to_contain_text("is truncated")


def test_compare_gives_plain_json(client: Client) -> None:
    answer = client.predict(
        **PAIR, conditions=["the sport", "the number"], models=["csr", "minilm"], api_name="/compare"
    )
    assert set(answer) == {"models", "conditions", "scores", "unconditional", "percentiles"}
    assert answer["models"] == ["csr", "minilm"]
    assert [len(row) for row in answer["scores"]] == [2, 2]


def test_attribution_and_models_are_json(client: Client) -> None:
    answer = client.predict(**PAIR, condition="the sport", model="csr", api_name="/attribution")
    assert [word[0] for word in answer["words1"]] == ["A", "man", "skis."]
    assert len(answer["effects2"]) == 3
    listed = client.predict(api_name="/models")
    assert {"name", "trained", "revision", "state"} <= set(listed[0])


def test_maps_and_impurity_are_json(client: Client) -> None:
    request = {"sentences": ["One.", "Two.", "Three.", "Four."], "conditions": ["the mood", "the sport"] * 2}
    measured = client.predict(**request, model="hyper-cl", values=["x", "y", "x", "z"], api_name="/impurity")
    assert set(measured) == {"points", "before", "after", "random_matrices"}
    assert measured["after"]["impurity"]["clusters"] == 2
    made = client.predict(**request, model="csr", method="pca", dimensions=3, api_name="/embedding_map")
    assert [len(place) for place in made["projection"]["after"]] == [3] * 4
    with pytest.raises(AppError, match="one condition"):
        client.predict(**{**request, "conditions": ["the mood"]}, model="csr", api_name="/impurity")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sentence1": " "}, "Sentence 1 is empty"),
        ({"conditions": []}, "There is no condition"),
        ({"conditions": ["a", "A "]}, "are the same"),
        ({"models": ["nobody"]}, "No model is called 'nobody'"),
        ({"models": []}, "No model is chosen"),
        ({"models": ["broken"]}, "is truncated"),
    ],
)
def test_bad_requests_get_the_message(client: Client, changes: dict, message: str) -> None:
    request = {**PAIR, "conditions": ["the sport"], "models": ["csr"], **changes}
    with pytest.raises(AppError, match=message):
        client.predict(**request, api_name="/compare")


def test_only_the_named_endpoints_are_public(client: Client) -> None:
    named = client.view_api(return_format="dict")["named_endpoints"]
    assert set(named) == {
        "/compare", "/attribution", "/router", "/embedding_map", "/impurity", "/errors", "/models",
        "/predict_links", "/train", "/train_status", "/train_stop",
    }  # fmt: skip
