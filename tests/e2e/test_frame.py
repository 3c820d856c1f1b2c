"""What holds for every tab: nothing clipped, no small print, one screen first, a title, a tour, present mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from condviz.ui.app import TABS
from tests.e2e.conftest import open_tab, visiting, wait_for_tabs

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

SCREENS = {"wide": (1440, 900, "light"), "beamer": (1024, 768, "dark"), "phone": (380, 800, "light")}
PLACES = [(screen, tab.id) for screen in SCREENS for tab in TABS]
MAX_HEIGHT = 2000
PICTURES = {
    "compare": "[data-testid=bars]",
    "router": ".cv-running",
    "map": "#cv-map-after .cv-figure-plot",
    "search": ".cv-search",
    "errors": "#cv-err-plot .cv-figure-plot",
    "links": ".cv-answers",
    "train": "#cv-train-curve .cv-figure-plot",
    "models": ".cv-models",
}
SEEN = 150
"""Pixels of a picture on the first screen, at least; lists go on below."""
SMALLEST = 13
SMALL_PRINT = """() => [...document.querySelectorAll('body *')].filter((e) => {
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) return false;
  if (!e.checkVisibility() || e.closest("svg, .sr-only, option, .file-preview, .upload-container")) return false;
  if (e.closest("[data-testid=status-tracker]")) return false;  // gradio's own, there but not seen
  return parseFloat(getComputedStyle(e).fontSize) < %d;
}).map((e) => `${e.tagName}.${e.className} ${getComputedStyle(e).fontSize} ${e.textContent.trim().slice(0, 40)}`)"""


def only(tabs: Collection[str], screens: Collection[str] = SCREENS) -> pytest.MarkDecorator:
    """Run a test on some of the places."""
    chosen = [(screen, tab) for screen, tab in PLACES if tab in tabs and screen in screens]
    return pytest.mark.parametrize("place", chosen, indirect=True, ids="-".join)


@pytest.fixture(scope="module")
def pages(context: BrowserContext, addresses: dict[str, str]) -> Iterator[Callable[[str], Page]]:
    """One page for each kind of screen, on which the tabs are opened one after the other."""
    with visiting(context) as open_:

        @cache
        def page(screen: str) -> Page:
            width, height, theme = SCREENS[screen]
            return wait_for_tabs(open_(f"{addresses['']}?__theme={theme}", width=width, height=height))

        yield page


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Screen and tab; all tests of a place share one opening."""
    return request.param


@pytest.fixture(scope="module")
def visit(pages: Callable[[str], Page], place: tuple[str, str]) -> Page:
    """The page for the screen."""
    page = pages(place[0])
    page.bring_to_front()
    return page


@pytest.fixture(scope="module")
def panel(visit: Page, place: tuple[str, str]) -> Locator:
    """The opened tab."""
    open_tab(visit, next(found.label for found in TABS if found.id == place[1]))
    visit.evaluate("scrollTo(0, 0)")
    panel = visit.locator(".tabitem:visible")
    expect(panel.locator(".cv-headline").first).to_be_visible()
    # What a tab computes as it opens: nothing is dimmed any more, nothing under way.
    expect(panel.locator(".cv-dimmed, .cv-notice-busy")).to_have_count(0)
    return panel


def test_a_tab_opens_on_one_screen(visit: Page, panel: Locator, place: tuple[str, str]) -> None:
    expect(visit).to_have_title(re.compile(next(found.label for found in TABS if found.id == place[1])))
    expect(panel.locator(".cv-headline").first).to_be_in_viewport()
    assert visit.evaluate("document.documentElement.scrollWidth") <= visit.viewport_size["width"]
    assert visit.evaluate("document.documentElement.scrollHeight") <= MAX_HEIGHT
    assert visit.evaluate(SMALL_PRINT % SMALLEST) == []


@only(PICTURES)
def test_sentence_button_and_picture_are_on_the_first_screen(
    visit: Page, panel: Locator, place: tuple[str, str]
) -> None:
    height = visit.viewport_size["height"]
    expect(panel.locator(".cv-headline").first).to_be_in_viewport(ratio=1)
    for button in panel.locator("button.primary:visible").all()[:1]:
        expect(button).to_be_in_viewport(ratio=1)
    picture = panel.locator(PICTURES[place[1]]).locator("visible=true").first.bounding_box()
    assert height - picture["y"] >= min(SEEN, picture["height"])


def test_axe_finds_nothing_serious(visit: Page, panel: Locator) -> None:
    found = Axe().run(visit).response
    assert found["passes"]
    serious = [
        (violation["id"], node["target"], node["html"][:200])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert serious == []


@only([tab.id for tab in TABS if tab.id not in ("learn", "models")], ["wide"])
def test_the_keyboard_alone_reaches_the_main_button(visit: Page, panel: Locator) -> None:
    button = panel.locator("button.primary:visible").first
    button.wait_for()
    visit.locator("#cv-tabs [role=tab][aria-selected=true]").focus()
    for _ in range(60):
        visit.keyboard.press("Tab")
        if button.evaluate("element => element === document.activeElement"):
            break
    expect(button).to_be_focused()
    assert button.evaluate("element => getComputedStyle(element).outlineStyle") != "none"


@pytest.mark.tabs("compare")
def test_the_tour_comes_once_the_theme_is_kept_and_a_key_presents(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_role("button", name=re.compile("30-second tour")).click()
    for _ in range(3):
        page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Done").click()
    page.get_by_test_id("theme-toggle").click()
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.reload()
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    expect(page.locator(".cv-welcome")).to_be_hidden()
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator("#cv-sentence1")).to_be_hidden()
    page.keyboard.press("p")
    expect(page.locator("#cv-sentence1")).to_be_visible()


@pytest.mark.tabs("map")
def test_figures_are_presented_in_larger_type(open_page: Callable[..., Page]) -> None:
    page = open_page("?t=map")
    label = page.locator("#cv-map-after .annotation-text").first
    expect(label).to_have_css("font-size", "13px")
    page.get_by_role("button", name="Present").click()
    expect(label).to_have_css("font-size", "18.2px")
    expect(page.locator("#cv-map-after .cv-figure-tools")).to_be_hidden()
    page.get_by_role("button", name="Present").click()
    expect(label).to_have_css("font-size", "13px")


@only(("compare", "router", "links", "models"))
def test_a_term_opens_by_keyboard_inside_the_window_and_closes_by_escape(visit: Page, panel: Locator) -> None:
    term = panel.locator(".cv-term:visible").first
    term.focus()
    visit.keyboard.press("Enter")
    opened = visit.locator(".cv-popover:popover-open")
    box, window = opened.bounding_box(), visit.viewport_size
    assert 0 <= box["x"] <= box["x"] + box["width"] <= window["width"]
    assert 0 <= box["y"] <= box["y"] + box["height"] <= window["height"]
    visit.keyboard.press("Escape")
    expect(opened).to_have_count(0)
