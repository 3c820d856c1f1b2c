"""The Search tab in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import follow_link

RESULT = ":not(.cv-dimmed) > [data-testid=search][data-ready=true][data-asked]"
START = "search?q=Two+women+run+in+the+rain.&c=the+weather&m=hyper-cl"
"""With the model that answers from stored vectors: the default one reads hundreds of texts first."""


def test_a_query_is_asked_under_two_conditions_and_the_address_restores_it(open_page: Callable[..., Page]) -> None:
    page = open_page(START)
    query = page.get_by_label("A sentence like those you want")
    query.fill("A cat sleeps in the snow.")  # before the link is answered
    expect(page.locator(RESULT)).to_have_attribute("data-link", re.compile("Two\\+women"))
    expect(query).to_have_value("A cat sleeps in the snow.")
    page.locator("#cv-search-conditions textarea").fill("the weather\nthe animal")
    page.locator("#cv-search-run").click()
    page.wait_for_url("**q=A+cat+sleeps**")
    lists = page.locator(f"{RESULT} .cv-search-list")
    expect(lists.locator("h3")).to_have_text(["the weather", "the animal"])
    found = lists.locator(".cv-hit-text").all_inner_texts()
    again = open_page("search?" + page.url.partition("?")[2], width=380, height=800)
    again.locator(RESULT).wait_for()
    expect(again.locator(f"{RESULT} .cv-hit-text")).to_have_text(found)
    assert again.evaluate("document.documentElement.scrollWidth") <= 380
    page.bring_to_front()
    page.go_back()
    expect(page.locator(f"{RESULT} .cv-search-list h3")).to_have_text(["the weather"])
    ones_own_texts_are_searched(page)


def ones_own_texts_are_searched(page: Page) -> None:
    upload = {"name": "own.csv", "mimeType": "text/csv", "buffer": b"text\nA cat sleeps.\nIt rains.\nTwo boys run.\n"}
    page.locator("#cv-search-own button").first.click()
    page.locator("#cv-search-file input[type=file]").set_input_files(upload)
    page.locator("#cv-search-file", has_text="own").wait_for()
    page.locator("#cv-search-run").click()
    page.locator(RESULT).get_by_text("3 texts").wait_for()
    assert "own.csv" in page.locator("#cv-search-corpus input").input_value()
    follow_link(page, "Compare")
    follow_link(page, "Search")
    page.locator(RESULT).get_by_text("3 texts").wait_for()
    assert "own.csv" in page.locator("#cv-search-corpus input").input_value()
    expect(page).to_have_url(re.compile("in=own"))
    page.reload()
    page.locator(RESULT).get_by_text("3 texts").wait_for()
    follow_link(page, "Compare")
    page.go_back()
    page.locator(RESULT).get_by_text("3 texts").wait_for()
