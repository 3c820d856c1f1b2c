"""The figure component in a real browser: what is linked, what is kept, and what happens without WebGL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.e2e.conftest import visiting

pytestmark = pytest.mark.app("panels")
NO_WEBGL = """
  const original = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    return String(kind).includes("webgl") ? null : original.call(this, kind, ...rest);
  };"""


@pytest.fixture
def open_panels(context: BrowserContext, address: str) -> Iterator[Callable[..., Page]]:
    """Open the page with nothing but figures; fails the test on a script error."""
    with visiting(context) as open_:

        def open_panels(**options: Any) -> Page:
            page = open_(address, height=1000, **options)
            for name in ("left", "right"):
                frame(page, name, "[data-ready=true]").wait_for()
            return page

        yield open_panels


def frame(page: Page, name: str, state: str = "") -> Locator:
    return page.locator(f"#{name} .cv-figure{state}")


def lasso(page: Page, name: str) -> None:
    box = page.locator(f"#{name} .cv-figure-plot").bounding_box()
    corners = [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7), (0.3, 0.3)]
    (x, y), *rest = [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in corners]
    page.mouse.move(x, y)
    page.mouse.down()
    for x, y in rest:
        page.mouse.move(x, y, steps=4)
    page.mouse.up()


def told(page: Page, part: str) -> dict[str, Any]:
    expect(page.locator("#told")).to_contain_text(part)
    return json.loads(page.locator("#told").inner_text())


def ranges(page: Page, name: str) -> list[float]:
    return page.locator(f"#{name} .cv-figure-plot").evaluate("plot => plot._fullLayout.xaxis.range")


def test_points_are_chosen_in_both_figures_by_hand_and_by_python(open_panels: Callable[..., Page]) -> None:
    page = open_panels()
    a_lasso_reaches_python(page)
    python_selects_and_marks(page)
    new_data_keep_zoom_and_selection(page)
    each_figure_fits_to_what_is_selected(page)
    messages_are_text(page)
    a_fallback_is_drawn_only_where_no_figure_has_come(page)
    many_points_are_drawn_with_webgl(page)


def a_lasso_reaches_python(page: Page) -> None:
    lasso(page, "right")
    ids = told(page, "ids")["ids"]
    assert 10 < len(ids) < 150
    for name in ("left", "right"):
        expect(frame(page, name)).to_have_attribute("data-selected", str(len(ids)))
        expect(page.locator(f"#{name} .cv-figure-count")).to_have_text(f"{len(ids)} / 200 points")
    page.locator("#right .cv-figure-plot").press("Escape")
    for name in ("left", "right"):
        expect(frame(page, name)).to_have_attribute("data-selected", "0")
    expect(page.locator("#told")).to_contain_text('"ids": []')


def python_selects_and_marks(page: Page) -> None:
    page.locator("#choose").click()
    for name in ("left", "right"):
        expect(frame(page, name)).to_have_attribute("data-selected", "3")
    page.locator("#mark").click()
    for name in ("left", "right"):
        expect(frame(page, name)).to_have_attribute("data-marked", "7")
        expect(page.locator(f"#{name} .cv-figure-ring")).to_be_visible()


def new_data_keep_zoom_and_selection(page: Page) -> None:
    page.locator("#left [data-tool=in]").click()
    told(page, '"x"')
    zoomed = ranges(page, "left")
    assert zoomed[1] < 1
    assert ranges(page, "right") == zoomed
    expect(frame(page, "left")).to_have_attribute("data-selected", "3")
    page.locator("#update").click()
    expect(page.locator("#left .cv-figure-count")).to_have_text("2 / 150 points")  # the point 150 is gone
    assert ranges(page, "left") == zoomed
    page.locator("#left [data-tool=reset]").click()
    page.wait_for_function("() => document.querySelector('#left .cv-figure-plot')._fullLayout.xaxis.range[1] > 1")


def each_figure_fits_to_what_is_selected(page: Page) -> None:
    expect(page.locator("#alone [data-tool=fit]")).to_be_hidden()
    page.locator("#left [data-tool=fit]").click()
    both = (
        "() => ['left', 'right'].map((id) => document.querySelector(`#${id} .cv-figure-plot`)._fullLayout.xaxis.range)"
    )
    page.wait_for_function(f"() => ({both})().every(([low, high]) => high - low < 2.2)")
    assert ranges(page, "left") != ranges(page, "right"), "the points lie elsewhere there"
    page.locator("#left [data-tool=reset]").click()
    page.wait_for_function(f"() => ({both})().every(([low, high]) => low === -1.1 && high === 1.1)")


def messages_are_text(page: Page) -> None:
    expect(page.locator("#alone .cv-figure-message")).to_have_text("Nothing yet. Press Load.")
    page.locator("#fail").click()
    expect(page.locator("#left .cv-figure-message")).to_have_text("It <b>failed</b>.")


def a_fallback_is_drawn_only_where_no_figure_has_come(page: Page) -> None:
    page.locator("#late").click()
    expect(page.locator("#alone .cv-figure-count")).to_have_text("9 points")
    expect(page.locator("#left .cv-figure-count")).to_contain_text("150 points")


def many_points_are_drawn_with_webgl(page: Page) -> None:
    if page.evaluate("() => Boolean(document.createElement('canvas').getContext('webgl'))"):
        page.locator("#load").click()
        expect(frame(page, "alone")).to_have_attribute("data-renderer", "webgl")
        expect(page.locator("#alone .cv-figure-count")).to_have_text("6,000 points")


def test_a_figure_tells_and_moves_and_follows_the_theme_and_is_saved(
    open_panels: Callable[..., Page], browser: Browser, tmp_path: Path
) -> None:
    page = open_panels(reduced_motion="reduce")
    tips_show_text_and_nothing_of_it_is_markup(page)
    the_slider_moves_points_from_before_to_after(page)
    colours_follow_light_and_dark(page)
    exports_are_pictures_and_a_page(page, browser, tmp_path)


def tips_show_text_and_nothing_of_it_is_markup(page: Page) -> None:
    page.locator("#left .points path").first.click(force=True)
    assert told(page, '"id"')["id"] is not None
    tip = page.locator("#left .cv-figure-tip")
    expect(tip).to_contain_text("<b>point</b>")
    expect(tip.locator(".cv-badge")).to_have_text("badge")
    assert tip.locator("b").count() == 0


def the_slider_moves_points_from_before_to_after(page: Page) -> None:
    where = "plot => [0, 1].map((i) => plot._fullData[i].x[3])"
    plot = page.locator("#left .cv-figure-plot")
    fixed, moving = plot.evaluate(where)
    page.locator("#left [data-tool=play]").click()
    expect(frame(page, "left")).to_have_attribute("data-share", "0.00")
    assert plot.evaluate(where) == pytest.approx([fixed, -moving])
    page.locator("#left [data-tool=play]").click()
    expect(frame(page, "left")).to_have_attribute("data-share", "1.00")
    assert plot.evaluate(where) == pytest.approx([fixed, moving])


def colours_follow_light_and_dark(page: Page) -> None:
    colours = "plot => [plot._fullLayout.paper_bgcolor, plot._fullData[0].marker.color]"
    light = page.locator("#left .cv-figure-plot").evaluate(colours)
    page.evaluate("document.body.classList.add('dark')")
    page.wait_for_function(
        f"old => ({colours})(document.querySelector('#left .cv-figure-plot'))[0] !== old", arg=light[0]
    )
    dark = page.locator("#left .cv-figure-plot").evaluate(colours)
    assert light[1] != dark[1]


def exports_are_pictures_and_a_page(page: Page, browser: Browser, folder: Path) -> None:
    starts = {"png": b"\x89PNG", "svg": b"<svg", "html": b"<!doctype html>"}
    for kind, start in starts.items():
        with page.expect_download() as download:
            page.locator(f"#left [data-tool={kind}]").click()
        assert download.value.suggested_filename == f"left.{kind}"
        download.value.save_as(folder / f"left.{kind}")
        assert (folder / f"left.{kind}").read_bytes().startswith(start)
    assert b"<image" not in (folder / "left.svg").read_bytes()
    alone = browser.new_page()
    alone.goto((folder / "left.html").as_uri())
    expect(alone.locator(".points path")).to_have_count(200)
    alone.close()


def test_without_webgl_few_points_are_drawn_and_many_are_explained(open_panels: Callable[..., Page]) -> None:
    page = open_panels(script=NO_WEBGL)
    expect(frame(page, "left")).to_have_attribute("data-renderer", "svg")
    page.locator("#load").click()
    expect(page.locator("#alone .cv-figure-message")).to_contain_text("6,000 points need WebGL")
