"""The Errors tab in a browser: one screen, slices, reading, any table, links."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.conftest import follow_link

SECONDS = 90_000


def open_errors(open_page: Callable[..., Page]) -> Page:
    page = open_page("errors")
    page.wait_for_selector(".cv-err-result[data-ready=true]", timeout=SECONDS)
    page.wait_for_selector("#cv-err-figures [data-testid=figures-part]:not([data-wait])", timeout=SECONDS)
    return page


def test_rows_chosen_in_the_plot_and_fields_of_sections_have_a_link(open_page: Callable[..., Page]) -> None:
    page = open_page("errors?ed=scenes:test&es=3-9.12&col=condition&open=worst&rule=word&old=red&new=blue")
    expect(page.get_by_test_id("count")).to_have_text("8")
    expect(page.locator("#cv-err-column input")).to_have_value("condition", timeout=SECONDS)
    expect(page.locator("#cv-errors-rewrite")).to_contain_text("Rewrite")
    page.locator("#cv-errors-rewrite > .label-wrap").click()
    expect(page.get_by_label("Replace with")).to_have_value("blue")
    expect(page).to_have_url(re.compile("es=3-9.12.*col=condition"))
    page.set_viewport_size({"width": 380, "height": 800})
    for read in (page.locator("#cv-err-row .cv-sentence").last, page.locator("#cv-err-row tr[aria-current]")):
        read.scroll_into_view_if_needed()
        expect(read).to_be_in_viewport(ratio=0.9)


def test_rows_are_read_by_keyboard_keep_tags_and_notes_and_may_be_ones_own(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_errors(open_page)
    assert page.locator("#cv-err-row").bounding_box()["y"] < page.viewport_size["height"], "on the first screen"
    detail = page.get_by_test_id("detail")
    before = detail.get_attribute("data-number")
    detail.focus()
    page.keyboard.press("ArrowDown")
    expect(detail).not_to_have_attribute("data-number", before)
    number = detail.get_attribute("data-number")
    page.keyboard.press("4")
    expect(page.locator('#cv-err-row [data-tag="number"]')).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("n")
    page.keyboard.type("counts <b>wrongly</b>")
    page.locator("#cv-errors-export > button").first.click()
    for _ in range(2):  # the same rows again are saved again
        with page.expect_download(timeout=SECONDS) as download:
            page.get_by_test_id("errors-csv").click()
    saved = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))
    (noted,) = (line for line in saved if line["note"])
    assert (noted["row"], noted["tags"], noted["note"]) == (number, "number", "counts <b>wrongly</b>")
    a_wrong_filter_gets_a_message(page)
    any_table_can_be_read_with_its_own_columns(page, tmp_path)
    a_row_opens_in_compare(page)


def a_wrong_filter_gets_a_message(page: Page) -> None:
    page.locator("#cv-err-filter textarea, #cv-err-filter input").fill("ratng > 1")
    page.locator("#cv-err-run").click()
    expect(page.locator("#cv-err-notice")).to_contain_text("Did you mean rating")


def a_row_opens_in_compare(page: Page) -> None:
    sentence = page.locator("#cv-err-row .cv-sentence").first.inner_text()
    page.goto(page.url.partition("/errors")[0] + "/" + page.get_by_test_id("to-compare").get_attribute("href"))
    expect(page.locator("#cv-sentence1 textarea")).to_have_value(sentence)


def any_table_can_be_read_with_its_own_columns(page: Page, folder: Path) -> None:
    lines = ["premise,other,asked,points"]
    lines += [f"<i>a{i}</i>,b{i},{c},{label}" for i in range(30) for c, label in (("x", 1), ("y", 4))]
    table = folder / "mine.csv"
    table.write_text("\n".join(lines))
    page.locator("#cv-err-upload input[type=file], input[type=file]").first.set_input_files(table)
    expect(page.get_by_test_id("sample")).to_be_visible()
    for label, column in (
        ("Sentence 1", "premise"),
        ("Sentence 2", "other"),
        ("Condition", "asked"),
        ("Rating", "points"),
    ):
        field = page.get_by_label(label, exact=True)
        field.click()
        page.get_by_role("option", name=column, exact=True).click()
        expect(field).to_have_value(column)
        expect(page.get_by_role("option")).to_have_count(0)
    page.locator("#cv-err-use").click()
    expect(page.get_by_test_id("errors")).to_contain_text("mine.csv: 60 rows", timeout=SECONDS)
    expect(page.get_by_test_id("detail")).to_contain_text("<i>a")
    # Back and reload keep the table, of which no address tells.
    page.locator("#cv-err-filter textarea, #cv-err-filter input").fill("rating > 2")
    page.locator("#cv-err-filter textarea, #cv-err-filter input").press("Enter")
    expect(page).to_have_url(re.compile("ef=rating"))
    for again in (page.go_back, page.reload):
        again()
        expect(page).not_to_have_url(re.compile("ef=rating|upload-"))
        expect(page.get_by_test_id("errors")).to_contain_text("mine.csv: 60 rows", timeout=SECONDS)
        expect(page.locator("#cv-err-result .cv-dimmed")).to_have_count(0)
    follow_link(page, "Compare")
    follow_link(page, "Errors")
    expect(page.get_by_test_id("errors")).to_contain_text("mine.csv: 60 rows", timeout=SECONDS)
    expect(page).to_have_url(re.compile("ed=upload(&|$)"))
