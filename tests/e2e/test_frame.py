"""What holds for every tab: nothing clipped, no small print, one screen first, a title, a tour, present mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from condviz.ui.app import TABS
from tests.e2e.conftest import open_tab, visiting, wait_for_tabs

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

SCREENS = [(1440, 900, "light"), (1024, 768, "dark"), (380, 800, "light")]
each_tab = pytest.mark.parametrize("tab", [tab.id for tab in TABS])
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


@pytest.fixture(scope="module", params=SCREENS, ids=["wide", "beamer", "phone"])
def visit(request: pytest.FixtureRequest, context: BrowserContext, address: str) -> Iterator[Page]:
    """One page for each kind of screen, on which the tabs are opened one after the other."""
    width, height, theme = request.param
    with visiting(context) as open_:
        yield wait_for_tabs(open_(f"{address}?__theme={theme}", width=width, height=height))


@pytest.fixture
def panel(visit: Page, tab: str) -> Locator:
    """The opened tab."""
    open_tab(visit, next(found.label for found in TABS if found.id == tab))
    visit.evaluate("scrollTo(0, 0)")
    panel = visit.locator(".tabitem:visible")
    expect(panel.locator(".cv-headline").first).to_be_visible()
    # What a tab computes as it opens: nothing is dimmed any more, nothing under way.
    expect(panel.locator(".cv-dimmed, .cv-notice-busy")).to_have_count(0)
    return panel


@each_tab
def test_a_tab_opens_on_one_screen(visit: Page, panel: Locator, tab: str) -> None:
    expect(visit).to_have_title(re.compile(next(found.label for found in TABS if found.id == tab)))
    expect(panel.locator(".cv-headline").first).to_be_in_viewport()
    assert visit.evaluate("document.documentElement.scrollWidth") <= visit.viewport_size["width"]
    assert visit.evaluate("document.documentElement.scrollHeight") <= MAX_HEIGHT
    assert visit.evaluate(SMALL_PRINT % SMALLEST) == []


@pytest.mark.parametrize("tab", PICTURES)
def test_sentence_button_and_picture_are_on_the_first_screen(visit: Page, panel: Locator, tab: str) -> None:
    height = visit.viewport_size["height"]
    said = panel.locator(".cv-headline").first.bounding_box()
    assert said["y"] + said["height"] <= height
    for button in panel.locator("button.primary:visible").all()[:1]:
        box = button.bounding_box()
        assert box["y"] + box["height"] <= height
    picture = panel.locator(PICTURES[tab]).locator("visible=true").first.bounding_box()
    assert height - picture["y"] >= min(SEEN, picture["height"])


@each_tab
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


@pytest.mark.parametrize("visit", SCREENS[:1], indirect=True, ids=["wide"])
@pytest.mark.parametrize("tab", [tab.id for tab in TABS if tab.id not in ("learn", "models")])
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


def test_tour_once_and_present_mode(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_role("button", name=re.compile("30-second tour")).click()
    for _ in range(3):
        page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Done").click()
    page.reload()
    expect(page.locator(".cv-welcome")).to_be_hidden()
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator("#cv-sentence1")).to_be_hidden()
    page.keyboard.press("p")
    expect(page.locator("#cv-sentence1")).to_be_visible()


def test_the_theme_is_kept(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_test_id("theme-toggle").click()
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.reload()
    expect(page.locator("body")).to_have_class(re.compile("dark"))


def test_a_term_opens_its_explanation(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.locator(".cv-footer .cv-term").first.click()
    expect(page.locator(".cv-popover:popover-open")).to_be_visible()
