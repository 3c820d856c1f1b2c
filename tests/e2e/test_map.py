"""The Map tab in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import follow_link, go

EARLY = """new MutationObserver((_, observer) => {
  const key = document.querySelectorAll("#cv-map-legend [data-act=value]")[1];
  if (key) { observer.disconnect(); key.click(); }
}).observe(document, { childList: true, subtree: true });"""

FITS = """() => [...document.querySelectorAll("#cv-map-stage .cv-figure-plot")].every((plot) => {
  const [drawn, place] = [plot.querySelector(".main-svg"), plot].map((part) => part.getBoundingClientRect());
  return Math.abs(drawn.width - place.width) < 2 && Math.abs(drawn.height - place.height) < 2;
})"""
"""The figures have been drawn anew in the size of their places."""


def open_map(open_page: Callable[..., Page], query: str = "map", **options: object) -> Page:
    page = open_page(query, **options)
    pane(page, "after", "[data-ready=true]").wait_for()
    expect(page.locator("#cv-page .cv-headline").first).to_be_visible()
    expect(page.locator("#cv-page .cv-notice-busy")).to_have_count(0)  # what was drawn on opening has come
    return page


def pane(page: Page, side: str, state: str = "") -> Locator:
    return page.locator(f"#cv-map-{side} .cv-figure{state}")


def choose_pca(page: Page) -> None:
    """UMAP is compiled where it first runs, which takes longer on a busy machine than anybody waits for."""
    page.locator("#cv-map-settings > button").click()
    page.get_by_label("PCA", exact=True).check()


def lasso(page: Page, side: str) -> None:
    """Drag a loop around the left half."""
    area = page.locator(f"#cv-map-{side} .cv-figure-plot").bounding_box()
    page.mouse.move(area["x"] + 15, area["y"] + 15)
    page.mouse.down()
    for across, down in ((0.5, 0.05), (0.5, 0.95), (0.05, 0.95), (0.05, 0.05)):
        page.mouse.move(area["x"] + across * area["width"], area["y"] + down * area["height"], steps=4)
    page.mouse.up()


def test_the_first_map_moves_and_its_points_are_searched_looped_and_opened(open_page: Callable[..., Page]) -> None:
    page = open_map(open_page, reduced_motion="no-preference")
    expect(pane(page, "after")).to_have_attribute("data-share", "1.00")  # from before to after
    page.emulate_media(reduced_motion="reduce")
    expect(page.get_by_test_id("map-headline")).to_contain_text("same value are neighbours")
    expect(page.locator("#cv-map-after .points path")).to_have_count(60)
    expect(page.locator(".cv-map-key")).to_have_count(15)
    figures_are_presented_in_larger_type(page)
    a_point_opens_its_neighbours(page)
    go(page, "map")
    expect(page.get_by_test_id("map-chosen")).to_contain_text("Click a point")
    a_loop_greys_the_others_and_lists_what_is_inside(page)
    impurity_is_a_section_and_its_counts_choose_points(page)
    search_and_legend_light_up_points(page)
    go(page, "map?i=3-5.11")
    expect(page.get_by_test_id("map-count")).to_contain_text("4 of 60 points")
    expect(pane(page, "after")).to_have_attribute("data-selected", "4")
    go(page, "map?by=cluster")
    expect(page.get_by_test_id("map-legend")).to_contain_text("cluster 1")
    page.set_viewport_size({"width": 380, "height": 800})  # a phone shows one picture
    expect(pane(page, "before")).to_be_hidden()
    for share, shown in enumerate(("before", "after")):
        page.locator("#cv-map-after .cv-figure-morph input").fill(str(share))
        expect(page.locator("#cv-map-stage h3:visible").first).to_contain_text(shown, ignore_case=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def a_loop_greys_the_others_and_lists_what_is_inside(page: Page) -> None:
    lasso(page, "after")
    count = page.get_by_test_id("map-count")
    expect(count).to_contain_text(re.compile(r"^\d+ of 60 points"))
    chosen = int(count.inner_text().split()[0])
    assert 0 < chosen < 60
    for side in ("before", "after"):
        expect(pane(page, side)).to_have_attribute("data-selected", str(chosen))
        greyed = page.locator(f"#cv-map-{side} .cv-figure-plot").evaluate(
            "plot => [...plot.querySelectorAll('.points path')].filter((p) => p.style.opacity < 0.5).length"
        )
        assert greyed == 60 - chosen
    expect(page.locator(".cv-map-item")).to_have_count(chosen)
    expect(page.locator("#cv-map-after .cv-figure-tip")).to_be_hidden()
    page.get_by_test_id("map-chosen").get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_test_id("map-chosen")).to_contain_text("Click a point")


def impurity_is_a_section_and_its_counts_choose_points(page: Page) -> None:
    page.locator("#cv-map-impurity > button").click()
    expect(page.get_by_test_id("impurity")).to_contain_text("random matrices")
    cell = page.locator("[data-testid=crosstab-after] [data-act=cell]").first
    count = cell.inner_text()
    cell.click()
    expect(page.get_by_test_id("map-count")).to_contain_text(f"{count} of 60 points")


def search_and_legend_light_up_points(page: Page) -> None:
    page.locator("#cv-map-search :is(input, textarea)").press_sequentially("night")
    expect(page.get_by_test_id("map-count")).to_contain_text("night")
    page.locator(".cv-map-key").nth(1).click()
    expect(page.get_by_test_id("map-count")).to_contain_text("4 of 60 points")
    for side in ("before", "after"):  # it zooms to them, and names those that have room
        expect(page.locator(f"#cv-map-{side} .annotation", has_text="…").first).to_be_visible()
    expect(page).to_have_url(re.compile("v="))
    page.go_back()
    expect(page.get_by_test_id("map-count")).to_contain_text("night")


def a_point_opens_its_neighbours(page: Page) -> None:
    page.locator("#cv-map-after .points path").nth(5).click(force=True)
    near = page.get_by_test_id("map-neighbors")
    expect(near.get_by_role("heading", level=4)).to_have_count(2)
    expect(page).to_have_url(re.compile(r"p=\d+$"))
    marked = page.url.rpartition("p=")[2]
    for side in ("before", "after"):
        expect(pane(page, side)).to_have_attribute("data-marked", marked)
    page.locator("h1").click()
    expect(page.locator("#cv-map-after .cv-figure-tip")).to_be_hidden()
    page.reload()  # its picture stands before plotly has come
    for side in ("before", "after"):
        expect(pane(page, side)).to_have_attribute("data-marked", marked)
        expect(page.locator(f"#cv-map-{side} .cv-figure-ring")).to_be_visible()


def figures_are_presented_in_larger_type(page: Page) -> None:
    label = page.locator("#cv-map-after .annotation-text").first
    expect(label).to_have_css("font-size", "13px")
    page.get_by_role("button", name="Present").click()
    expect(label).to_have_css("font-size", "18.2px")
    expect(page.locator("#cv-map-after .cv-figure-tools")).to_be_hidden()
    page.get_by_role("button", name="Leave").click()
    expect(label).to_have_css("font-size", "13px")
    page.wait_for_function(FITS)  # points move until then, away from where they are clicked


def test_a_click_counts_from_the_moment_that_the_page_stands(open_page: Callable[..., Page]) -> None:
    page = open_page("map", script=EARLY)
    expect(page.locator("#cv-map-reading [data-act=open]").first).to_be_visible()


def test_own_sentences_and_tables_are_drawn_have_a_link_and_errors_show(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_map(open_page)
    choose_pca(page)
    page.get_by_text("My sentences").click()
    page.locator("#cv-map-sentences textarea").fill("One.\nTwo.")
    page.locator("#cv-map-run").click()
    expect(page.locator("#cv-map-notice")).to_contain_text("at least 3 different sentences")
    expect(pane(page, "after")).to_have_attribute("data-tone", "old")
    page.locator("#cv-map-sentences textarea").fill("One <b>dog</b>.\nTwo.\nThree.\nFour.\nFive.\nSix.")
    page.locator("#cv-map-run").click()
    expect(page.locator("#cv-map-after .cv-figure-count")).to_have_text("12 points")
    expect(page.locator("#cv-map-notice")).to_be_empty()
    expect(page).to_have_url(re.compile("from=texts"))
    page.reload()
    expect(page.locator("#cv-map-after .cv-figure-count")).to_have_text("12 points")
    expect(page.locator("#cv-map-sentences textarea")).to_have_value(re.compile("<b>dog</b>"))
    a_bad_upload_gets_its_message_and_a_table_is_coloured_by_its_values(page, tmp_path)


def a_bad_upload_gets_its_message_and_a_table_is_coloured_by_its_values(page: Page, folder: Path) -> None:
    path = folder / "mine.csv"
    rows = [f'"Sentence, {i}.",{"the mood" if i % 2 else "the sport"},{"abc"[i % 3]}' for i in range(12)]
    path.write_text("\n".join(["text,condition,label", *rows]) + "\n")
    page.get_by_text("My table").click()
    upload = page.locator("#cv-map-upload input[type=file]")
    upload.set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": b""})
    expect(page.locator("#cv-map-import-told")).to_contain_text("is empty")  # of other faults, tests/ui/test_map.py
    page.locator("#cv-map-upload").get_by_label("Clear", exact=True).click()
    upload.set_input_files(path)
    expect(page.get_by_test_id("import")).to_contain_text("12 of 12 rows")
    page.locator("#cv-map-run").click()
    expect(page.locator("#cv-map-after .cv-figure-count")).to_have_text("12 points")
    expect(page.locator(".cv-map-key")).to_have_count(3)
    expect(page.get_by_test_id("map-unlinked")).to_be_visible()
    expect(page).to_have_url(re.compile("from=table"))
    address = page.url
    follow_link(page, "Compare")
    follow_link(page, "Map")
    expect(page.locator("#cv-map-after .cv-figure-count")).to_have_text("12 points")
    expect(page.locator("#cv-map-column-text input")).to_have_value("text")
    expect(page.locator("#cv-map-upload")).to_contain_text("mine")
    page.goto(address)
    expect(page.locator("#cv-map-notice")).to_contain_text("table")
    expect(page.locator("#cv-map-upload")).to_be_visible()
