"""The Errors tab in a real browser: from opening it to taking the report away."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.e2e.conftest import open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api").expect
SECONDS = 30_000
"""Plotly and ten thousand resamples start on first use, on a machine that may be busy."""
expect.set_options(timeout=SECONDS)


def open_errors(open_page: Callable[..., Page], **options: object) -> Page:
    page = open_page(**options)
    open_tab(page, "Errors")
    wait_painted(page)
    return page


def wait_painted(page: Page) -> None:
    """Wait for the last step of a run: the intervals."""
    page.locator("#cv-err-figures .cv-err-note:not([data-wait])").wait_for(timeout=SECONDS)


def apply_filter(page: Page, text: str) -> None:
    page.locator("#cv-err-filter :is(textarea, input)").fill(text)
    page.locator("#cv-err-apply").click()


def test_someone_new_finds_what_is_wrong_and_takes_the_report_away(open_page: Callable[..., Page]) -> None:
    page = open_errors(open_page)
    worst = page.get_by_test_id("worst").locator("tbody tr")
    assert worst.count() == 3
    expect(page.get_by_test_id("figures")).to_contain_text("difference")
    # The words that misled hyper-cl.
    expect(page.get_by_test_id("slices")).to_contain_text('"umbrella" in')
    # A slice where it beats csr.
    page.get_by_role("button", name="hyper-cl closer").click()
    page.locator("[data-testid=finder][data-target=first]").wait_for()
    found = page.get_by_test_id("slices").locator("[data-filter]").filter(has_text="number").first
    wanted = found.get_attribute("data-filter")
    found.click()
    expect(page.locator("#cv-err-filter :is(textarea, input)")).to_have_value(wanted)
    expect(page.get_by_test_id("figures")).to_contain_text("Rest")
    wait_painted(page)
    with page.expect_download(timeout=SECONDS) as download:
        page.get_by_test_id("errors-report").click()
    expect(page.locator("#cv-err-rows-head .cv-said")).to_have_text("Saved condviz-errors.html")
    report = download.value.path().read_text(encoding="utf-8")
    assert report.startswith("<!DOCTYPE html>")
    assert "Worst conditions" in report
    assert "umbrella" in report
    assert "<script" not in report
    assert "://" not in report


def test_one_click_shows_the_words_that_misled_a_model(open_page: Callable[..., Page]) -> None:
    page = open_errors(open_page)
    page.get_by_test_id("worst").locator("tbody [data-filter]").first.click()
    expect(page.get_by_test_id("figures")).to_contain_text("Slice")
    row = page.locator("#cv-err-table tr[data-row]").first
    row.click()
    condition = row.locator("td").nth(1).locator("span").first.inner_text()
    page.get_by_test_id("detail").wait_for()
    with page.expect_popup() as opened:
        page.get_by_test_id("to-compare").click()
    words = opened.value.get_by_test_id("attribution")
    expect(words).to_have_attribute("data-model", "hyper-cl")
    expect(words).to_contain_text(condition)
    with page.expect_popup() as opened:
        page.get_by_test_id("to-router").click()
    expect(opened.value.get_by_test_id("router")).to_contain_text(condition)


@pytest.mark.parametrize("width", [1280, 380])
def test_an_opened_row_is_in_sight_wherever_the_table_is(open_page: Callable[..., Page], width: int) -> None:
    page = open_errors(open_page)
    page.set_viewport_size({"width": width, "height": 800})
    row = page.locator("#cv-err-table tr[data-row]").nth(20)
    row.click()
    number = row.get_attribute("data-number")
    detail = page.locator(f"#cv-err-detail [data-testid=detail][data-number='{number}']")
    expect(detail).to_be_in_viewport()
    page.get_by_role("button", name="Nearest training rows").click()
    near = page.get_by_test_id("neighbours")
    near.scroll_into_view_if_needed()
    expect(near).to_be_in_viewport()
    expect(detail).to_be_visible()


def test_a_box_in_the_figure_selects_rows_and_a_row_opens(open_page: Callable[..., Page]) -> None:
    page = open_errors(open_page)
    figure = page.locator("#cv-err-plot [data-ready=true]")
    figure.wait_for(timeout=SECONDS)
    box = page.locator("#cv-err-plot .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5, steps=5)
    page.mouse.up()
    count = page.get_by_test_id("count")
    expect(count).not_to_have_text("240 / 240 rows")
    page.locator("#cv-err-table tr[data-row]").first.click()
    expect(page.get_by_test_id("detail")).to_be_visible()
    link = page.get_by_test_id("to-compare").get_attribute("href")
    assert link.startswith("?s1=")
    assert "m=hyper-cl" in link


def test_a_row_opens_in_compare(open_page: Callable[..., Page]) -> None:
    page = open_errors(open_page)
    page.locator("#cv-err-table tr[data-row]").first.click()
    link = page.get_by_test_id("to-compare")
    link.wait_for()
    sentence = page.locator("#cv-err-detail .cv-sentence").first.inner_text()
    other = open_page(link.get_attribute("href"))
    expect(other.locator("#cv-sentence1 textarea")).to_have_value(sentence)


def test_reading_by_keyboard_keeps_tags_and_notes(open_page: Callable[..., Page]) -> None:
    page = open_errors(open_page)
    rows = page.locator("#cv-err-table tr[data-row]")
    rows.first.click()
    page.get_by_test_id("detail").wait_for()
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    number = rows.nth(1).get_attribute("data-number")
    expect(page.locator(f"#cv-err-detail [data-number='{number}'][data-testid=detail]")).to_be_visible()
    page.keyboard.press("4")
    expect(rows.nth(1).locator(".cv-err-tags")).to_contain_text("number")
    page.keyboard.press("n")
    page.keyboard.type("counts <b>wrongly</b>")
    page.keyboard.press("Escape")
    expect(rows.nth(1)).to_be_focused()
    page.reload(wait_until="commit")
    wait_painted(page)  # the address brings the tab back
    row = page.locator(f"#cv-err-table tr[data-number='{number}']")
    expect(row.locator(".cv-err-tags")).to_contain_text("number")
    with page.expect_download(timeout=SECONDS) as download:
        page.get_by_test_id("errors-csv").click()
    saved = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))
    assert len(saved) == 240
    (noted,) = (line for line in saved if line["note"])
    assert (noted["row"], noted["tags"], noted["note"]) == (number, "number", "counts <b>wrongly</b>")


def test_a_filter_is_in_the_address_and_a_wrong_one_gets_a_message(open_page: Callable[..., Page]) -> None:
    page = open_errors(open_page)
    apply_filter(page, 'aspect == "mood" and error > 0')
    expect(page.get_by_test_id("figures")).to_contain_text("Slice")
    page.wait_for_function(
        "() => new URLSearchParams(location.search).get('ef') === 'aspect == \"mood\" and error > 0'"
    )
    shown = page.get_by_test_id("count").inner_text()
    again = page.context.new_page()
    again.goto(page.url, wait_until="commit")
    wait_painted(again)
    expect(again.get_by_test_id("count")).to_have_text(shown)
    apply_filter(again, "golf > 1")
    expect(again.locator("#cv-err-notice")).to_contain_text("Did you mean gold")
    expect(again.get_by_test_id("count")).to_have_text(shown)


def test_an_uploaded_table_is_scored_with_progress(open_page: Callable[..., Page], tmp_path: Path) -> None:
    lines = ["sentence1,sentence2,condition,label"]
    lines += [f"<i>a{i}</i>,b{i},{c},{label}" for i in range(30) for c, label in (("x", 1), ("y", 4))]
    table = tmp_path / "mine.csv"
    table.write_text("\n".join(lines))
    page = open_errors(open_page)
    page.locator("#cv-err-upload input[type=file], input[type=file]").first.set_input_files(table)
    expect(page.locator("#cv-err-notice")).to_contain_text("Press Score")
    page.locator("#cv-err-score").click()
    expect(page.get_by_test_id("count")).to_have_text("60 / 60 rows")
    expect(page.locator("#cv-err-table .cv-err-texts p").first).to_have_text(re.compile("<i>a"))


def test_rewrites_show_what_changes(open_page: Callable[..., Page]) -> None:
    page = open_errors(open_page)
    page.locator("#cv-err-rule input").click()
    page.get_by_role("option", name="Swap the two sentences").click()
    page.locator("#cv-err-rewrite").click()
    expect(page.get_by_test_id("effect")).to_contain_text("240 rows changed")


@pytest.mark.parametrize("dark", [False, True])
def test_the_tab_fits_a_phone(open_page: Callable[..., Page], dark: bool) -> None:
    page = open_errors(open_page, color_scheme="dark" if dark else "light")
    page.set_viewport_size({"width": 380, "height": 800})  # now the tab itself stands in the menu of the others
    expect(page.get_by_test_id("figures")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_endpoint_gives_findings_as_json(address: str) -> None:
    client = Client(address, verbose=False)
    found = client.predict(
        data="scenes:test", models=["hyper-cl", "csr"], filter="gold > 1", resamples=20, api_name="/errors"
    )
    assert found["models"] == ["hyper-cl", "csr"]
    assert found["figures"]["part"]["n"] < found["figures"]["every"]["n"] == 240
    with pytest.raises(AppError, match="Did you mean gold"):
        client.predict(data="scenes:test", models=["csr"], filter="golf > 1", resamples=0, api_name="/errors")
