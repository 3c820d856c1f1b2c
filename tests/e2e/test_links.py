"""The Links tab in a real browser, over the shipped model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.conftest import go
from tests.kg_toy import write_graph

HEADLINE = "#cv-links-result .cv-headline"


def test_anything_can_be_typed_and_has_a_link(open_page: Callable[..., Page]) -> None:
    page = open_page("links")
    expect(page.locator(HEADLINE)).to_contain_text("honey")
    field = page.locator("#cv-links-entity input")
    field.fill("brown bear cub")
    field.press("Enter")
    expect(page.locator(HEADLINE)).to_contain_text("mammal")
    expect(page).to_have_url(re.compile(r"le=brown\+bear\+cub"))
    page.locator("#cv-links-tries [data-entity=nurse]").click()
    expect(page.locator(HEADLINE)).to_contain_text("hospital")
    expect(page).to_have_url(re.compile("le=nurse"))
    page.go_back()
    expect(page.locator(HEADLINE)).to_contain_text("brown bear cub")
    expect(field).to_have_value("brown bear cub")
    enter_asks_what_was_typed_not_the_first_name_that_contains_it(page)
    go(page, "links?lg=everyday&lm=everyday-concat&le=forest&lr=lives_in&li=1&lk=25")  # of the first edition
    expect(page.locator("#cv-links-result h3").first).to_have_text("What lives in the forest?")


def enter_asks_what_was_typed_not_the_first_name_that_contains_it(page: Page) -> None:
    field = page.locator("#cv-links-entity input")
    shown = page.get_by_role("option").first
    field.clear()
    field.press_sequentially("ear")
    expect(shown).to_contain_text("bear")
    field.press("Enter")
    expect(page).to_have_url(re.compile("le=ear$"))
    expect(field).to_have_value("ear")
    field.clear()
    field.press_sequentially("bea")
    expect(shown).to_contain_text("bea")
    field.press("ArrowDown")
    field.press("Enter")
    expect(page).to_have_url(re.compile("le=(?!bea$)[a-z+]*bea"))
    field.clear()
    field.press("Enter")
    expect(page.get_by_test_id("notice-error").first).to_contain_text("No entity is given")


def test_a_graph_of_ones_own_is_asked_about_also_from_its_link(open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_page("links?open=own")
    tables = sorted(write_graph(tmp_path / "mine").iterdir())
    page.locator("#cv-links-own input[type=file]").set_input_files(tables)
    expect(page).to_have_url(re.compile("lg=upload-"))
    page.reload()
    expect(page.locator("#cv-links-graph input")).to_have_value("Your graph")
    field = page.locator("#cv-links-entity input")
    field.fill("happy dogs")
    field.press("Enter")
    expect(page).to_have_url(re.compile("lg=upload-.*le=happy\\+dogs"))
    expect(page.locator(HEADLINE)).to_contain_text("happy dogs")
