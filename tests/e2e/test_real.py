"""The page as shipped, with real models: what it shows is what the package computes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from gradio_client import Client

import condviz

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest.importorskip("playwright.sync_api")

PAIR = {"sentence1": "A man surfs a big wave.", "sentence2": "A woman skis down a mountain."}
CONDITIONS = ["the sport", "the number of people"]
MODELS = ["minilm", "bi-encoder"]
TOLERANCE = 1e-6
"""The same request gives the same numbers, in half precision too, whatever else was asked before."""


@pytest.fixture(scope="module")
def exported(real_address: str, browser: object) -> dict[str, str]:
    """Open a link to a comparison of two models, wait for its scores, and take what the page hands out."""
    state = [("s1", PAIR["sentence1"]), ("s2", PAIR["sentence2"])]
    state += [("c", condition) for condition in CONDITIONS] + [("m", model) for model in MODELS]
    context = browser.new_context()
    page: Page = context.new_page()
    page.set_default_timeout(180_000)
    page.goto(f"{real_address}?{urlencode(state)}", wait_until="commit")
    page.locator("html:not(.cv-opening) [data-testid=result][data-ready=true][data-query]").wait_for()
    found = {name: page.get_by_test_id(f"export-{name}").input_value() for name in ("json", "python")}
    context.close()
    return found


def test_the_page_shows_what_the_package_computes(exported: dict[str, str]) -> None:
    record = json.loads(exported["json"])
    assert record["models"] == MODELS
    for row, name in enumerate(MODELS):
        model = condviz.load(name)
        scores = model.score([PAIR["sentence1"]] * 2, [PAIR["sentence2"]] * 2, CONDITIONS)
        assert record["scores"][row] == pytest.approx(scores.tolist(), abs=TOLERANCE)
        assert record["revisions"][row]["revision"] == model.info.revision


def test_the_copied_script_prints_the_same_numbers(exported: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", exported["python"]], capture_output=True, text=True, check=True)
    record = json.loads(exported["json"])
    expected = [
        number for base, row in zip(record["unconditional"], record["scores"], strict=True) for number in (base, *row)
    ]
    printed = [float(number) for number in re.findall(r"^  (-?\d+\.\d+)", done.stdout, flags=re.MULTILINE)]
    assert printed == [float(f"{number:.3f}") for number in expected]


def test_the_endpoint_gives_the_same_numbers(real_address: str, exported: dict[str, str]) -> None:
    client = Client(real_address, verbose=False)
    answer = client.predict(**PAIR, conditions=CONDITIONS, models=MODELS, api_name="/compare")
    record = json.loads(exported["json"])
    assert answer["conditions"] == CONDITIONS
    for row in range(len(MODELS)):
        assert answer["scores"][row] == pytest.approx(record["scores"][row], abs=TOLERANCE)


def test_the_first_screen_names_models_that_exist(open_page: Callable[..., Page], real_address: str) -> None:
    page = open_page(base=real_address)
    shown = page.locator("tr[data-model]").evaluate_all("rows => rows.map(row => row.dataset.model)")
    assert shown
    assert set(shown) <= set(condviz.list_models())
    assert page.locator(".cv-card").count() >= 24
