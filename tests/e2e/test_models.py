"""The Models tab in a real browser: sorting, cards, links, Back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.conftest import follow_link
from tests.tiny import tiny_folder


def test_sorting_and_cards_have_links(open_page: Callable[..., Page]) -> None:
    page = open_page("models", width=1440)
    head = page.locator("#cv-models-head h2")
    expect(head).to_have_text("Bi-encoder after C-STS")  # the best of the models that the server has begun with
    page.get_by_test_id("card-case").click()
    expect(head).to_have_text("CASE")
    page.locator("#cv-models-table [data-sort=cebab]").click()
    expect(page.locator("#cv-models-table th[aria-sort=descending]")).to_contain_text("Reviews")
    expect(page).to_have_url(re.compile("m=case.*by=cebab"))
    page.get_by_test_id("card-csr-bi").click()
    expect(head).to_have_text("CSR bi-encoder")
    expect(page).to_have_url(re.compile("m=csr-bi"))  # the card and what names it are two components
    page.go_back()
    expect(head).to_have_text("CASE")
    page.set_viewport_size({"width": 1440, "height": 300})
    low = page.locator("#cv-models-table [data-card]").last
    low.click()
    expect(head).to_have_text(low.inner_text())
    expect(head).to_be_in_viewport()


def test_the_form_of_another_encoder_has_a_link_and_a_folder_becomes_a_model(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    place = str(tiny_folder(tmp_path / "tiny-encoder"))
    page = open_page("models?enc=thenlper/gte-small&method=case&open=encoder", width=1440)
    name = page.locator("#cv-models-encoder-name input")
    expect(name).to_have_value("thenlper/gte-small")
    expect(page.get_by_label("Method")).to_have_value("CASE")
    for typed, answer in (("no such folder", "neither a folder nor a hub id"), (place, "on tiny-encoder is loaded")):
        name.fill(typed)
        name.press("Enter")
        page.locator("#cv-models-encoder-load").click()
        expect(page.locator("#cv-models-encoder-notice")).to_contain_text(answer)
    expect(page).to_have_url(re.compile("enc=.*method="))
    follow_link(page, "Compare")
    page.locator("#cv-model input").click()
    expect(page.get_by_role("option", name="on tiny-encoder").first).to_be_visible()
