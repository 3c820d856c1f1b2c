"""What holds for every page: nothing clipped, no small print, one screen first, a title, a tour, present mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Locator, Page, expect

from condviz.ui.app import TABS
from condviz.ui.search import TRIES
from condviz.ui.state import path_of
from tests.e2e.conftest import visiting, wait_for_page

SCREENS = {"wide": (1440, 900, "light"), "beamer": (1024, 768, "dark"), "phone": (380, 800, "light")}
PLACES = [(tab.id, screen) for tab in TABS for screen in SCREENS]
LABELS = {tab.id: tab.label for tab in TABS}
MAX_HEIGHT = 2300
"""On a phone, where no list of hits scrolls inside the page."""
PICTURES = {
    "compare": "[data-testid=bars]",
    "words": ".cv-running",
    "map": "#cv-map-after .cv-figure-plot",
    "search": ".cv-search",
    "errors": "#cv-err-plot .cv-figure-plot",
    "links": ".cv-answers",
    "train": "#cv-train-curve .cv-curves",
    "models": ".cv-models",
}
SEARCH = "search?" + urlencode({"q": TRIES[0][0], "c": TRIES[0][1], "m": "hyper-cl"}, doseq=True)
"""The first example of Search, with the model that answers from stored vectors: the default one reads many texts."""
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
    chosen = [(tab, screen) for tab, screen in PLACES if tab in tabs and screen in screens]
    return pytest.mark.parametrize("place", chosen, indirect=True, ids="-".join)


@pytest.fixture(scope="module")
def whole(context: BrowserContext, addresses: dict[str, str]) -> Iterator[Page]:
    """A window in which the pages are opened one after the other."""
    with visiting(context) as open_:
        yield open_(addresses[""])


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Page and screen; all tests of a page share one opening."""
    return request.param


@pytest.fixture(scope="module")
def panel(whole: Page, addresses: dict[str, str], place: tuple[str, str]) -> Locator:
    """The opened page, on the screen."""
    tab, screen = place
    width, height, theme = SCREENS[screen]
    whole.bring_to_front()
    if whole.locator(f".cv-nav [data-to={tab}][aria-current]").count() == 0:
        whole.set_viewport_size({"width": 1440, "height": 900})
        whole.goto(addresses[""] + (SEARCH if tab == "search" else path_of(tab)), wait_until="commit")
    whole.set_viewport_size({"width": width, "height": height})
    panel = whole.locator("#cv-page")
    expect(panel.locator(".cv-headline").first).to_be_visible()
    whole.evaluate("dark => document.body.classList.toggle('dark', dark)", theme == "dark")
    if tab == "search":  # the stored example comes first, then the answer to the link, then the words behind its hits
        panel.locator(":not(.cv-dimmed) > [data-asked] mark").first.wait_for()
    whole.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0); }")
    # What a tab computes as it opens: nothing is dimmed any more, nothing under way.
    expect(panel.locator(".cv-dimmed, .cv-notice-busy")).to_have_count(0)
    whole.wait_for_function("document.getAnimations().length === 0")  # colours change over a moment
    return panel


def test_a_page_opens_on_one_screen(whole: Page, panel: Locator, place: tuple[str, str]) -> None:
    expect(whole).to_have_title(re.compile(LABELS[place[0]]))
    expect(panel.locator(".cv-headline").first).to_be_in_viewport()
    whole.wait_for_function("document.documentElement.scrollWidth <= innerWidth")  # figures follow the window
    whole.wait_for_function("most => document.documentElement.scrollHeight <= most", arg=MAX_HEIGHT)
    assert whole.evaluate(SMALL_PRINT % SMALLEST) == []


@only(PICTURES)
def test_sentence_button_and_picture_are_on_the_first_screen(
    whole: Page, panel: Locator, place: tuple[str, str]
) -> None:
    height = whole.viewport_size["height"]
    expect(panel.locator(".cv-headline").first).to_be_in_viewport(ratio=1)
    for button in panel.locator("button.primary:visible").all()[:1]:
        expect(button).to_be_in_viewport(ratio=1)
    picture = panel.locator(PICTURES[place[0]]).locator("visible=true").first.bounding_box()
    assert height - picture["y"] >= min(SEEN, picture["height"])


@only(LABELS, ["beamer", "phone"])  # one in each theme, of which contrasts alone depend
def test_axe_finds_nothing_serious(whole: Page, panel: Locator, place: tuple[str, str]) -> None:
    rules = {"runOnly": ["color-contrast"]} if place[1] == "beamer" else {}
    found = Axe().run(whole, options={"resultTypes": ["violations"], **rules}).response
    assert found["passes"]
    assert [rule["error"]["message"] for rule in found["incomplete"] if "error" in rule] == []
    serious = [
        (violation["id"], node["target"], node["html"][:200])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert serious == []


@only(["models"], ["beamer"])
def test_no_column_of_the_table_is_cut_off_on_a_small_beamer(panel: Locator) -> None:
    inside, whole = panel.locator("#cv-models-table .cv-scroll").evaluate("box => [box.clientWidth, box.scrollWidth]")
    assert whole <= inside


@only([tab.id for tab in TABS if tab.id not in ("learn", "models")], ["wide"])
def test_the_keyboard_alone_reaches_the_main_button(whole: Page, panel: Locator) -> None:
    button = panel.locator("button.primary:visible").first
    button.wait_for()
    whole.locator(".cv-nav [aria-current]").focus()
    for _ in range(60):
        whole.keyboard.press("Tab")
        if button.evaluate("element => element === document.activeElement"):
            break
    expect(button).to_be_focused()
    assert button.evaluate("element => getComputedStyle(element).outlineStyle") != "none"


@only(("compare", "words", "links", "models"))
def test_a_term_opens_by_keyboard_inside_the_window_and_closes_by_escape(whole: Page, panel: Locator) -> None:
    term = panel.locator(".cv-term:visible").first
    term.focus()
    whole.keyboard.press("Enter")
    opened = whole.locator(".cv-popover:popover-open")
    box, window = opened.bounding_box(), whole.viewport_size
    assert 0 <= box["x"] <= box["x"] + box["width"] <= window["width"]
    assert 0 <= box["y"] <= box["y"] + box["height"] <= window["height"]
    whole.keyboard.press("Escape")
    expect(opened).to_have_count(0)


def test_the_tour_comes_once_the_theme_is_kept_and_a_key_presents(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_role("button", name=re.compile("30-second tour")).click()
    for place in ("words", "map"):  # it goes on from page to page, and moves something on each
        page.get_by_role("button", name="Next").click()
        wait_for_page(page)
        expect(page).to_have_url(re.compile(place))
        expect(page.locator("dialog.cv-tour")).to_be_visible()
        page.set_viewport_size({"width": 380, "height": 800})  # a phone, for the map
    bottom = "document.querySelector('#cv-map-after .cv-figure-plot').getBoundingClientRect().bottom"
    page.wait_for_function(f"{bottom} <= document.querySelector('dialog.cv-tour').getBoundingClientRect().top")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Done").click()
    page.locator(".cv-nav [data-to=compare]").click()
    wait_for_page(page)
    expect(page.locator(".cv-welcome")).to_be_hidden()
    assert "s1=" not in page.url
    page.locator("#cv-compare-models > button").click()
    expect(page).to_have_url(re.compile("s1=.*open=models"))  # an example has a link, too
    theme = page.get_by_test_id("theme-toggle")
    theme.click()
    expect(theme).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(theme).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#cv-matrix table")).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator("#cv-sentence1")).to_be_hidden()
    page.reload()
    wait_for_page(page)
    expect(page.locator("#cv-sentence1")).to_be_hidden()
    page.get_by_role("button", name="QR code").click()
    expect(page.get_by_role("img", name="QR code of this page")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("img", name="QR code of this page")).to_be_hidden()
    expect(page.locator("#cv-sentence1")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#cv-sentence1")).to_be_visible()


def test_the_tour_leaves_a_pair_of_ones_own_as_it_is(open_page: Callable[..., Page]) -> None:
    page = open_page("?" + urlencode({"s1": "An egg.", "s2": "Some milk.", "c": "the food"}))
    page.get_by_role("button", name="Tour", exact=True).click()
    expect(page.locator("dialog.cv-tour")).to_be_visible()
    expect(page.get_by_text("Watch another pair")).to_be_hidden()
    page = open_page()
    page.locator("#cv-sentence1 textarea").fill("What is being typed.")
    page.get_by_role("button", name="Tour", exact=True).click()
    expect(page.get_by_text("Watch another pair")).to_be_hidden()
    expect(page.locator("#cv-sentence1 textarea")).to_have_value("What is being typed.")
