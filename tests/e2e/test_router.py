"""The Router tab in a real browser, over the stand-in core."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.e2e.conftest import open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

expect = pytest.importorskip("playwright.sync_api").expect

STATE = [("t", "router"), ("rs1", "One red fox jumps."), ("rs2", "Two cats sleep."), ("rc", "the number"),
         ("rc", "the mood"), ("rm", "csr-bi"), ("rm", "csr@hidden")]  # fmt: skip


@pytest.fixture
def router(open_page: Callable[..., Page]) -> Page:
    """The tab with two models, opened by a link."""
    page = open_page("?" + urlencode(STATE))
    ready(page)
    return page


def ready(page: Page) -> None:
    """Wait until strips, pictures and deletion test are there."""
    page.locator("#cv-router-result [data-testid=router]").wait_for()
    page.locator("[data-testid=heads]").wait_for()
    page.locator(".cv-deletion").first.wait_for()
    page.locator("#cv-router-cancel").wait_for(state="hidden")


def chip(page: Page, place: int, *, row: int = 0, sentence: int = 0) -> Locator:
    strips = page.locator(f"#cv-router-result > * [data-testid=strips-{sentence}]").first
    return strips.locator(".cv-toks").nth(row).locator(".cv-tok").nth(place)


def lit(page: Page) -> set[tuple[str, str]]:
    """Give (sentence, word) of every chip that is lit."""
    chips = page.locator("#cv-router-output .cv-tok.is-lit")
    pairs = chips.evaluate_all("all => all.map(c => [c.closest('[data-text]').dataset.text, c.dataset.w])")
    return {(text, word) for text, word in pairs}


def test_a_click_on_the_tab_reads_the_example(open_page: Callable[..., Page]) -> None:
    page = open_page()
    open_tab(page, "Router")
    ready(page)
    expect(page.get_by_test_id("router-headline")).to_contain_text("the sport")
    assert "rs1" not in page.url
    page.locator("#cv-router-models [data-testid=model-minilm]").check()
    page.get_by_text("No router: score with the word").first.wait_for()
    page.wait_for_function("location.search.includes('rm=minilm')")


def test_a_word_is_lit_in_every_strip_held_moved_and_released(router: Page) -> None:
    chip(router, 2).hover()
    assert lit(router) == {("0", "2")}
    # Two models under two conditions, their differences, three pictures with two conditions, and the head.
    count = 2 * 2 + 2 + (1 + 1 + 2) + 1
    assert router.locator(".cv-tok.is-lit").count() == count
    expect(router.get_by_test_id("readout")).to_contain_text("fox")
    chip(router, 1, sentence=1).hover()
    assert lit(router) == {("1", "1")}
    chip(router, 2).click()
    chip(router, 1, sentence=1).hover()
    assert lit(router) == {("0", "2")}
    assert chip(router, 2).get_attribute("aria-pressed") == "true"
    router.keyboard.press("ArrowRight")
    assert lit(router) == {("0", "3")}
    router.keyboard.press("ArrowDown")
    expect(chip(router, 3, row=1)).to_be_focused()
    router.keyboard.press("Escape")
    assert lit(router) == set()


def test_the_keyboard_alone_reaches_every_word(router: Page) -> None:
    assert router.locator("[data-testid=strips-0]").first.locator('.cv-tok[tabindex="0"]').count() == 1
    chip(router, 0).focus()
    router.keyboard.press("End")
    expect(chip(router, 3)).to_be_focused()
    router.keyboard.press("Enter")
    assert chip(router, 3).get_attribute("aria-pressed") == "true"
    assert re.search(r"^jumps\.: \.\d{3}, rank \d of 4, share \d+ %$", chip(router, 3).get_attribute("aria-label"))


def test_layers_and_heads_follow_the_word_and_open_a_head(router: Page) -> None:
    heads = router.get_by_test_id("heads")
    assert heads.locator(".cv-head").count() == 3 * 4
    cell = heads.locator('.cv-head[data-layer="1"][data-head="2"]')
    before = cell.inner_text()
    cell.click()
    expect(router.get_by_test_id("heads-said")).to_contain_text("Layer 2, head 3")
    words = router.get_by_test_id("head-words").locator(".cv-tok small").all_inner_texts()
    assert f"{max(map(float, words)):.2f}" == f"0{before}"
    chip(router, 1).click()
    assert float(cell.inner_text()) == pytest.approx(float(words[1]), abs=0.006)
    heads.get_by_text("From the sentence").click()
    assert router.get_by_test_id("head-words").locator(".cv-tok small").all_inner_texts() != words


def test_other_looks_keep_the_form(router: Page) -> None:
    router.get_by_text("Sub-tokens", exact=True).click()
    router.locator('.cv-strips[data-text="0t"]').first.wait_for()
    router.locator("select[data-set=depth]").select_option("1")
    router.get_by_text("Layer 5.").first.wait_for()
    router.locator("select[data-set=first]").select_option("1")
    router.wait_for_function("location.search.includes('rd=1-0')")
    router.locator("select[data-set=text]").select_option(index=1)
    router.locator('[data-testid=figure-5] [data-text="1"]').wait_for()
    router.locator("select[data-set=delete]").select_option("0")
    router.get_by_text("without its heaviest word,").first.wait_for()


def test_what_is_handed_out(router: Page) -> None:
    rows = list(csv.DictReader(io.StringIO(router.locator("#cv-router-result [data-export=csv]").input_value())))
    assert {row["model"] for row in rows} == {"csr-bi", "csr@hidden"}
    with router.expect_download() as download:
        router.locator("#cv-router-result [data-copy=csv]").click()
    assert download.value.suggested_filename == "condviz.csv"
    shown = router.url.split("?")[1]
    assert set(router.locator("#cv-router-result [data-export=link]").input_value().split("&")) <= set(shown.split("&"))


def test_texts_go_over_from_compare_and_leave_the_address_with_the_tab(router: Page) -> None:
    router.locator("#cv-router-take").click()
    router.wait_for_function("location.search.includes('blue+jacket')")
    open_tab(router, "Compare")
    assert "t=router" not in router.url


def test_bad_input_is_a_notice_and_the_strips_stay(router: Page) -> None:
    field = router.locator("#cv-router-conditions textarea")
    field.fill("\n".join(f"condition {i}" for i in range(13)))
    router.locator("#cv-router-run").click()
    expect(router.locator("#cv-router-notice")).to_contain_text("at most 12 are allowed")
    assert router.get_by_test_id("router").is_visible()


def test_hostile_texts_are_text(open_page: Callable[..., Page]) -> None:
    hostile = "<img src=x onerror=alert(1)> ${1+1} {{7*7}} </textarea> مرحبا 👩‍👩‍👧"
    page = open_page("?" + urlencode([("t", "router"), ("rs1", hostile), ("rc", hostile), ("rm", "csr")]))
    ready(page)
    expect(chip(page, 3)).to_contain_text("${1+1}")
    expect(chip(page, 4)).to_contain_text("{{7*7}}")
    assert page.locator("#cv-router-output img").count() == 0


def test_it_fits_a_phone(open_page: Callable[..., Page]) -> None:
    page = open_page("?" + urlencode(STATE), width=380)
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_the_endpoint_gives_the_numbers_of_the_page(router: Page, address: str) -> None:
    client = Client(address, verbose=False)
    arguments = {"sentence1": "One red fox jumps.", "sentence2": "Two cats sleep.", "models": ["csr-bi"]}
    answer = client.predict(**arguments, conditions=["the number", "the mood"], delete=1, api_name="/router")
    weights = answer["models"][0]["sentences"][0]["weights"][-1][0]
    assert chip(router, 0, row=1).locator("small").inner_text() == f"{weights[0]:.3f}".removeprefix("0")
    assert answer["models"][0]["deletion"]["draws"] == 20
    with pytest.raises(AppError, match="No model is called 'nobody'"):
        client.predict(**{**arguments, "models": ["nobody"]}, conditions=["a"], delete=0, api_name="/router")
