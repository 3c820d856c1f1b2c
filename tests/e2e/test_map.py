"""The Map tab in a real browser, over the stand-in core."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

expect = pytest.importorskip("playwright.sync_api").expect


def open_map(open_page: Callable[..., Page], **options: object) -> Page:
    page = open_page(**options)
    open_tab(page, "Map")
    for side in ("before", "after"):
        pane(page, side, "[data-ready=true]").wait_for()
    return page


def pane(page: Page, side: str, state: str = "") -> Locator:
    return page.locator(f"#cv-map-{side} .cv-figure{state}")


def box_select(page: Page, side: str) -> None:
    """Drag a box around the left half."""
    page.locator(f"#cv-map-{side} [data-tool=select]").click()
    area = page.locator(f"#cv-map-{side} .cv-figure-plot").bounding_box()
    page.mouse.move(area["x"] + 15, area["y"] + 15)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] - 15, steps=5)
    page.mouse.up()


def test_the_first_map_is_there_without_a_model(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page)
    expect(page.get_by_test_id("map-headline")).to_contain_text("Impurity")
    assert page.locator("#cv-map-before .points path").count() == 24
    expect(page.get_by_test_id("map-shown")).to_have_text("24 points")
    expect(page.locator("#cv-map-caution")).to_contain_text("no evidence")
    for name in ("impurity", "crosstab-after", "values", "isotropy"):
        expect(page.get_by_test_id(name)).to_be_visible()
    expect(page.locator("#cv-map-spectra .cv-figure[data-ready=true]")).to_be_visible()


def test_a_selection_fills_the_table_and_both_maps(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page)
    box_select(page, "after")
    expect(page.get_by_test_id("map-shown")).to_contain_text("/ 24 points")
    count = page.locator("[data-testid=map-table] tbody tr").count()
    assert 0 < count < 24
    for side in ("before", "after"):
        expect(pane(page, side)).to_have_attribute("data-selected", str(count))
    page.locator("#cv-map-after [data-tool=clear]").click()
    expect(page.get_by_test_id("map-shown")).to_have_text("24 points")


def test_a_row_marks_its_point_and_shows_its_neighbours(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page)
    page.locator("[data-testid=map-table] [data-act=open]").nth(5).click()
    for side in ("before", "after"):
        expect(pane(page, side)).to_have_attribute("data-marked", "5")
    neighbors = page.get_by_test_id("map-neighbors")
    expect(neighbors.locator(".cv-map-sentence")).to_contain_text("Sentence 5 of sport")
    nearest = neighbors.locator(".cv-near").first
    name = nearest.locator(".cv-rank-name > span").inner_text()
    nearest.click()
    expect(neighbors.locator(".cv-map-sentence")).to_have_text(name)


def test_a_point_opens_its_neighbours(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page)
    page.locator("#cv-map-after .points path").first.click(force=True)
    expect(page.get_by_test_id("map-neighbors").locator(".cv-map-sentence")).to_be_visible()


def test_a_cell_of_the_table_selects_its_points(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page)
    cell = page.locator("[data-testid=crosstab-after] [data-act=cell]").first
    count = cell.inner_text()
    cell.click()
    expect(page.get_by_test_id("map-shown")).to_have_text(f"{count} / 24 points")
    expect(pane(page, "before")).to_have_attribute("data-selected", count)


def test_points_travel_from_before_to_after(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page, reduced_motion="reduce")
    where = "plot => plot._fullData.map((trace) => [...trace.x].slice(0, 3))"
    before = page.locator("#cv-map-before .cv-figure-plot").evaluate(where)
    page.locator("#cv-map-after [data-tool=play]").click()
    expect(pane(page, "after")).to_have_attribute("data-share", "0.00")
    moved = page.locator("#cv-map-after .cv-figure-plot").evaluate(where)
    assert moved == [pytest.approx(row, abs=1e-5) for row in before]


def test_own_sentences_are_drawn_and_errors_leave_the_map(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page)
    page.locator("#cv-map-source").get_by_text("My sentences").click()
    page.locator("#cv-map-sentences textarea").fill("One.\nTwo.")
    page.locator("#cv-map-run").click()
    expect(page.locator("#cv-map-notice")).to_contain_text("at least 3 different sentences")
    expect(page.get_by_test_id("map-shown")).to_have_text("24 points")
    page.locator("#cv-map-sentences textarea").fill("One <b>bold</b>.\nTwo.\nThree.\nFour.\nFive.\nSix.")
    page.locator("#cv-map-settings button").first.click()
    page.locator("#cv-map-settings").get_by_text("PCA", exact=True).click()
    page.locator("#cv-map-run").click()
    expect(page.get_by_test_id("map-shown")).to_have_text("12 points")
    expect(page.locator("[data-testid=map-table]")).to_contain_text("One <b>bold</b>.")


def test_a_table_is_read_and_coloured_by_its_columns(open_page: Callable[..., Page], tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f'"Sentence, {i}.",{"the mood" if i % 2 else "the sport"},{"abc"[i % 3]}' for i in range(12)]
    path.write_text("\n".join(["text,condition,label", *rows]) + "\n")
    page = open_map(open_page)
    page.locator("#cv-map-source").get_by_text("My table").click()
    page.locator("#cv-map-upload input[type=file]").set_input_files(path)
    expect(page.locator("#cv-map-notice")).to_contain_text("12 rows")
    page.locator("#cv-map-settings button").first.click()
    page.locator("#cv-map-settings").get_by_text("PCA", exact=True).click()
    page.locator("#cv-map-run").click()
    expect(page.get_by_test_id("map-shown")).to_have_text("12 points")
    page.locator("#cv-map-colour input").click()
    page.get_by_role("option", name="label").click()
    expect(page.locator("#cv-map-legend")).to_contain_text("label")
    assert page.locator("#cv-map-legend .cv-key").count() == 3


def test_files_hold_what_is_selected(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page)
    page.locator("[data-testid=crosstab-after] [data-act=cell]").first.click()
    expect(page.get_by_test_id("map-shown")).to_contain_text("/ 24")
    with page.expect_download() as download:
        page.get_by_test_id("map-csv").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8-sig"))))
    assert f"{len(rows)} / 24 points" == page.get_by_test_id("map-shown").inner_text()
    with page.expect_download() as download:
        page.get_by_test_id("map-json").click()
    assert len(json.loads(Path(download.value.path()).read_text())["texts"]) == 24
    with page.expect_download() as download:
        page.locator("#cv-map-after [data-tool=svg]").click()
    assert b"The sport" in Path(download.value.path()).read_bytes()


def test_a_phone_shows_one_map_below_the_other(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page, width=380)
    before, after = (pane(page, side).bounding_box() for side in ("before", "after"))
    assert after["y"] > before["y"] + before["height"] - 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
