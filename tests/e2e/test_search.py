"""The Search tab in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.e2e.conftest import open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Page

RESULT = "[data-testid=search][data-ready=true]"


def test_a_query_is_asked_under_two_conditions_and_the_address_restores_it(open_page: Callable[..., Page]) -> None:
    page = open_page()
    open_tab(page, "Search")
    page.locator(RESULT).wait_for()
    page.get_by_label("A sentence like those you want").fill("A cat sleeps in the snow.")
    page.locator("#cv-search-conditions textarea").fill("the weather\nthe animal")
    page.locator("#cv-search-run").click()
    page.wait_for_url("**q=A+cat+sleeps**")
    lists = page.locator(f"{RESULT} .cv-search-list")
    assert lists.locator("h3").all_inner_texts() == ["the weather", "the animal"]
    found = lists.locator(".cv-hit-text").all_inner_texts()
    again = open_page("?" + page.url.partition("?")[2], width=380, height=800)
    again.locator(RESULT).wait_for()
    assert again.locator(f"{RESULT} .cv-hit-text").all_inner_texts() == found
    assert again.evaluate("document.documentElement.scrollWidth") <= 380


def test_an_error_dims_what_was_shown(open_page: Callable[..., Page]) -> None:
    page = open_page("?t=search")
    page.locator(RESULT).wait_for()
    page.get_by_label("A sentence like those you want").fill(" ")
    page.locator("#cv-search-run").click()
    page.locator("#cv-search-notice").get_by_role("alert").wait_for()
    assert page.locator("#cv-search-result .cv-dimmed").count() == 1
