"""What holds for every tab: nothing clipped, no small print, one screen first, a title, a tour, present mode."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from condviz.ui.app import TABS

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCREENS = [(1440, 900, "light"), (1024, 768, "dark"), (380, 800, "light")]
MAX_HEIGHT = 2000
SMALLEST = 13
SMALL_PRINT = """() => [...document.querySelectorAll('body *')].filter((e) => {
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) return false;
  if (!e.checkVisibility() || e.closest("svg, .sr-only, option, .file-preview, .upload-container")) return false;
  if (e.closest("[data-testid=status-tracker]")) return false;  // gradio's own, there but not seen
  return parseFloat(getComputedStyle(e).fontSize) < %d;
}).map((e) => `${e.tagName}.${e.className} ${getComputedStyle(e).fontSize} ${e.textContent.trim().slice(0, 40)}`)"""


@pytest.mark.parametrize("tab", [tab.id for tab in TABS])
@pytest.mark.parametrize(("width", "height", "theme"), SCREENS, ids=["wide", "beamer", "phone"])
def test_a_tab_opens_on_one_screen(
    open_page: Callable[..., Page], tab: str, width: int, height: int, theme: str
) -> None:
    page = open_page(f"?t={tab}&__theme={theme}", width=width, height=height)
    label = next(found.label for found in TABS if found.id == tab)
    expect(page).to_have_title(re.compile(label))
    panel = page.locator(".tabitem:visible")
    expect(panel.locator(".cv-headline").first).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.scrollHeight") <= MAX_HEIGHT
    assert page.evaluate(SMALL_PRINT % SMALLEST) == []


@pytest.mark.parametrize("tab", [tab.id for tab in TABS])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page: Callable[..., Page], tab: str, theme: str) -> None:
    page = open_page(f"?t={tab}&__theme={theme}")
    expect(page.locator(".tabitem:visible .cv-headline").first).to_be_visible()
    found = Axe().run(page).response
    assert found["passes"]
    serious = [
        (violation["id"], node["target"], node["html"][:200])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert serious == []


@pytest.mark.parametrize("tab", [tab.id for tab in TABS if tab.id != "models"])
def test_the_keyboard_alone_reaches_the_main_button(open_page: Callable[..., Page], tab: str) -> None:
    page = open_page(f"?t={tab}")
    button = page.locator(".tabitem:visible button.primary:visible").first
    button.wait_for()
    page.locator("#cv-tabs [role=tab][aria-selected=true]").focus()
    for _ in range(60):
        page.keyboard.press("Tab")
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
