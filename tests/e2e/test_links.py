"""The Links tab in a real browser, over the stand-in core."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.e2e.conftest import open_tab
from tests.ui.test_links_views import write_tables

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

expect = pytest.importorskip("playwright.sync_api").expect


def open_links(open_page: Callable[..., Page], query: str = "", **options: object) -> Page:
    page = open_page(query, **options)
    if not query:
        open_tab(page, "Links")
    page.get_by_test_id("links-table").wait_for()
    page.locator("#cv-links-map .cv-figure[data-ready=true]").wait_for()
    return page


def question(page: Page) -> Locator:
    return page.get_by_test_id("links-query")


def choose(page: Page, paths: list[str]) -> None:
    """Choose files as a reader does: the click lets the same names be chosen again."""
    with page.expect_file_chooser() as chooser:
        page.locator("#cv-links-upload").click()
    chooser.value.set_files(paths)


def test_the_tab_opens_with_an_answer_and_every_part(open_page: Callable[..., Page]) -> None:
    page = open_links(open_page)
    expect(question(page)).to_contain_text("fox")
    assert page.locator("[data-testid=links-table] tbody tr[data-id]").count() >= 10
    for part in ("links-relations", "links-nearest", "links-metrics", "links-examples"):
        expect(page.get_by_test_id(part)).to_be_visible()
    assert page.locator("#cv-links-map .points path").count() > 3
    assert "t=links" in page.url


def test_an_entity_is_searched_by_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_links(open_page)
    field = page.get_by_test_id("links-search")
    field.click()
    field.press_sequentially("fores")
    expect(page.locator("#cv-links-entity [role=option]")).to_have_count(1)
    field.press("ArrowDown")
    field.press("Enter")
    expect(question(page)).to_contain_text("forest")
    expect(field).to_have_value("forest")
    page.wait_for_function("location.search.includes('le=forest')")
    field.fill("forrest")
    field.press("Enter")
    expect(page.locator("#cv-links-notice")).to_contain_text("Similar: forest")
    expect(question(page)).to_contain_text("forest")


def test_direction_relation_and_rows_ask_anew(open_page: Callable[..., Page]) -> None:
    page = open_links(open_page, "?t=links&lg=everyday&lm=everyday-concat&le=forest&lr=lives_in")
    page.locator("#cv-links-inverse").get_by_text("?, relation, entity").click()
    expect(page.get_by_test_id("links-verdict")).to_contain_text("3 answers that the graph knows")
    expect(page.locator("[data-testid=links-table] .cv-badge-test").first).to_be_visible()
    page.locator('[data-testid=links-table] tr[data-id="fox"] [data-act=entity]').click()
    expect(question(page)).to_contain_text("fox")
    page.locator("[data-testid=links-relations] [data-act=relation]").get_by_text("uses", exact=True).first.click()
    expect(question(page)).to_contain_text("uses")
    page.get_by_test_id("links-examples").locator("button").last.click()
    expect(question(page)).to_contain_text("bee")


def test_definitions_stand_in_a_tip(open_page: Callable[..., Page]) -> None:
    page = open_links(open_page)
    page.locator("[data-testid=links-relations] [data-definition]").first.hover()
    expect(page.locator(".cv-links-tip")).to_contain_text("What a")


def test_what_is_handed_out(open_page: Callable[..., Page]) -> None:
    page = open_links(open_page)
    with page.expect_download() as download:
        page.locator("#cv-links-result [data-copy=csv]").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8-sig"))))
    assert rows[0]["rank"] == "1"
    assert {row["entity"] for row in rows} == {"fox"}


def test_tables_of_a_graph_are_read_and_bad_ones_named(open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_links(open_page)
    page.locator("#cv-links-own button").first.click()
    choose(page, write_tables(tmp_path, triples="a\tgrows_on\tx\n"))
    expect(page.locator("#cv-links-notice")).to_contain_text("triples.tsv, row 1: entity 'x'")
    expect(question(page)).to_contain_text("fox")
    choose(page, write_tables(tmp_path))
    expect(question(page)).to_contain_text("apple")
    expect(page.locator("#cv-links-relation input")).to_have_value("grows on")


def test_hostile_names_are_text_and_the_page_fits_a_phone(open_page: Callable[..., Page]) -> None:
    page = open_links(open_page, "?t=links&lg=everyday&le=moss&lr=uses&lk=25", width=380)
    expect(question(page)).to_contain_text("<b>moss</b>")
    assert page.locator("#cv-links-output b >> text=moss").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_the_endpoint_gives_the_numbers_of_the_page(open_page: Callable[..., Page], address: str) -> None:
    page = open_links(open_page)
    client = Client(address, verbose=False)
    answer = client.predict("fox", "lives in", "everyday-concat", api_name="/predict_links")
    shown = page.locator("[data-testid=links-table] tbody tr").first.locator("td.cv-num").nth(1).inner_text()
    assert shown.replace("−", "-") == f"{answer['rows'][0]['score']:.3f}"
    with pytest.raises(AppError, match="There is no entity"):
        client.predict("nobody", "produces", "everyday-concat", api_name="/predict_links")
