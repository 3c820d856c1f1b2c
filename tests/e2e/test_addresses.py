"""Addresses: whatever is opened or chosen in a tab is in its link, and a new visitor who opens it sees the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.e2e.conftest import follow_link, visiting, wait_for_page

COMPARE = "?s1=A+man+surfs+at+dawn.&s2=A+woman+skis+in+the+morning.&c=the+sport&c=the+place&c=the+mood"
WORDS = "words?s1=A+man+surfs+on+a+wave,+laughing.&c=the+sport&c=the+mood&m=csr-bi"


@contextmanager
def newcomer(page: Page, link: str) -> Iterator[Page]:
    """Open a link as a new visitor, of whom the browser keeps nothing."""
    page.evaluate("localStorage.clear()")
    with visiting(page.context) as open_:
        yield wait_for_page(open_(link))


def copied(page: Page) -> str:
    """Press "Copy link" in the open tab and return what it hands out."""
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("#cv-page [data-copy=link]").click()
    expect(page.locator("#cv-page .cv-exports:has([data-copy=link]) .cv-said")).to_have_text("Link copied")
    return page.evaluate("window.copied")


def values(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).query)


def shares(page: Page, address: dict[str, list[str]]) -> None:
    """Wait until the address of a page has come to say the same as another."""
    page.wait_for_url(lambda url: values(url) == address, wait_until="commit")


def pick(page: Page, label: str, choice: str) -> None:
    """Choose in a menu of the open tab."""
    page.locator("#cv-page").get_by_label(label, exact=True).click()
    page.get_by_role("option", name=choice, exact=True).click()


def test_compare(open_page: Callable[..., Page]) -> None:
    page = open_page(COMPARE + "&open=models.export")
    expect(page.locator("#cv-matrix table")).to_be_visible()
    page.get_by_label("most alike first").check()
    page.get_by_label("Show further untrained models, too").check()
    expect(page).to_have_url(re.compile("untrained=1"))
    with newcomer(page, copied(page)) as other:
        expect(other.locator("#cv-matrix table")).to_be_visible()
        expect(other.get_by_label("Show further untrained models, too")).to_be_checked()
        expect(other.get_by_label("most alike first")).to_be_checked()
        expect(other.locator("#cv-export [data-copy=link]")).to_be_visible()
        shares(other, values(page.url))
    a_tab_that_is_left_keeps_its_address(page)
    back_opens_the_sections_of_its_address(page)


def a_tab_that_is_left_keeps_its_address(page: Page) -> None:
    before = values(page.url)
    page.set_viewport_size({"width": 380, "height": 800})  # a phone has all pages in one row
    follow_link(page, "Models")
    expect(page).to_have_url(re.compile("/models$"))
    expect(page).to_have_title(re.compile("Models"))
    expect(page.locator(".cv-nav [aria-current]")).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 900})
    follow_link(page, "Compare")
    shares(page, before)
    page.go_back()
    expect(page.locator(".cv-nav [aria-current]")).to_have_text("Models")
    page.go_back()
    expect(page).to_have_title(re.compile("Compare"))
    expect(page.locator("#cv-matrix table")).to_be_visible()
    shares(page, before)


def back_opens_the_sections_of_its_address(page: Page) -> None:
    matrix = page.locator("#cv-matrix table")
    page.get_by_label("Conditions, one per line").fill("the time of day")
    expect(page).to_have_url(re.compile("c=the\\+time"))
    expect(matrix).not_to_contain_text("the place")  # they stay open, for what is asked now
    page.go_back()
    expect(matrix).to_contain_text("the place")


def test_words(open_page: Callable[..., Page]) -> None:
    page = open_page(WORDS + "&open=strips.difference.heads.deletion.export")
    expect(page.get_by_test_id("deletion")).to_be_visible()
    page.get_by_role("radio", name="the mood").first.check(force=True)
    page.get_by_label("Show the model’s sub-tokens").check()
    pick(page, "minus", "the sport")
    deleted = page.get_by_label("number input for Words deleted at once")
    deleted.fill("1")
    deleted.blur()
    page.locator("#cv-words-heads .cv-head[data-layer='2'][data-head='4']").click()
    page.locator("#cv-words-heads").get_by_role("radio").nth(1).check(force=True)
    page.locator("#cv-words-heads .cv-head[data-layer='3'][data-head='5']").click()
    for shown in ("#cv-words-strips-view .cv-line", ".cv-signed", "[data-copy=python]"):
        expect(page.locator(f"#cv-page {shown}").first).to_be_visible()
    for part in ("at=1", "tokens=1", "less=0", "delete=1", "head=4.6", "from="):
        expect(page).to_have_url(re.compile(part))
    link = copied(page)
    page.locator("#cv-words-result .cv-token", has_text="wave").click()
    expect(page).to_have_url(re.compile("word=6"))
    with newcomer(page, link + "&word=6") as other:
        expect(other.locator(".cv-word-tip b")).to_have_text("wave")
        expect(other.get_by_role("radio", name="the mood").first).to_be_checked()
        expect(other.get_by_label("Show the model’s sub-tokens")).to_be_checked()
        expect(other.get_by_label("minus", exact=True)).to_have_value("the sport")
        expect(other.get_by_label("number input for Words deleted at once")).to_have_value("1")
        expect(other.get_by_test_id("deletion")).to_be_visible()
        chosen = other.locator("#cv-words-heads .cv-head[aria-pressed=true]")
        expect(chosen).to_have_attribute("data-layer", "3")
        expect(chosen).to_have_attribute("data-head", "5")
        expect(other.locator("#cv-words-heads").get_by_role("radio").nth(1)).to_be_checked()
        shares(other, values(page.url))


def test_links_and_models(open_page: Callable[..., Page]) -> None:
    page = open_page("links?le=nurse")
    a_section_has_a_link(page, "nurse", "change", "#cv-links-table table")
    page = open_page("models?m=case&by=cebab", width=1440)
    sorted_by = "#cv-models-table th[aria-sort=descending]:has-text('Reviews')"
    a_section_has_a_link(page, "CASE", "links", "#cv-models-graphs table", sorted_by)


def a_section_has_a_link(page: Page, title: str, part: str, *shown: str) -> None:
    expect(page.locator(":is(#cv-links-result .cv-headline, #cv-models-head h2):visible")).to_contain_text(title)
    name = urlsplit(page.url).path.strip("/")
    page.locator(f"#cv-{name}-{part} > button").click()
    expect(page).to_have_url(re.compile(f"open={part}"))
    with newcomer(page, page.url) as other:
        for one in (page, other):
            for found in shown:
                expect(one.locator(found)).to_be_visible()
        shares(other, values(page.url))


def test_errors(open_page: Callable[..., Page]) -> None:
    page = open_page("errors")
    expect(page.get_by_test_id("errors")).to_be_visible()
    slice_ = page.locator("#cv-err-slices [data-filter]").first
    wanted = slice_.get_attribute("data-filter")
    slice_.click()
    expect(page.get_by_test_id("count")).to_be_visible()
    page.wait_for_url(lambda url: values(url).get("ef") == [wanted], wait_until="commit")
    page.get_by_label("Next row").click()
    expect(page).to_have_url(re.compile("er="))
    page.locator("#cv-errors-worst > button").click()
    page.locator("#cv-errors-export > button").click()
    expect(page.locator("#cv-err-worst table")).to_be_visible()
    expect(page).to_have_url(re.compile("open=worst.export"))
    number = page.locator("#cv-err-row [data-number]").get_attribute("data-number")
    with newcomer(page, copied(page)) as other:
        expect(other.get_by_test_id("errors")).to_contain_text(wanted)
        expect(other.locator("#cv-err-worst table")).to_be_visible()
        expect(other.locator("#cv-err-hand-out [data-copy=link]")).to_be_visible()
        expect(other.locator("#cv-err-row [data-number]")).to_have_attribute("data-number", number)
        shares(other, values(page.url))


def test_map(open_page: Callable[..., Page]) -> None:
    page = open_page("map")
    page.locator("#cv-map-legend [data-act=value]").nth(1).click()
    page.locator("#cv-map-reading [data-act=open]").first.click()
    expect(page).to_have_url(re.compile(r"v=.*p=\d+"))
    for part in ("table", "export"):
        page.locator(f"#cv-map-{part} > button").click()
    expect(page).to_have_url(re.compile("open=table.export"))
    with newcomer(page, copied(page)) as other:
        expect(other.locator("#cv-map-points")).to_be_visible()
        expect(other.locator("#cv-map-hand-out [data-copy=link]")).to_be_visible()
        expect(other.locator("#cv-map-legend [data-act=value]").nth(1)).to_have_attribute("aria-pressed", "true")
        expect(other.get_by_test_id("map-neighbors")).to_be_visible()
        shares(other, values(page.url))


def test_train(open_page: Callable[..., Page]) -> None:
    page = open_page("train")
    page.locator("#cv-train-log > button").click()
    page.get_by_label("Example", exact=True).check()
    expect(page).to_have_url(re.compile("(?=.*open=log)(?=.*data=example)"))
    expect(page.locator("#cv-train-upload")).to_be_hidden()
    name = page.locator("#cv-train-name").locator("textarea, input")
    name.fill("mine")
    name.blur()
    expect(page).to_have_url(re.compile("name=mine"))
    with newcomer(page, page.url) as other:
        expect(other.get_by_label("Example", exact=True)).to_be_checked()
        expect(other.locator("#cv-train-name").locator("textarea, input")).to_have_value("mine")
        expect(other.locator("#cv-train-upload")).to_be_hidden()
        expect(other.locator("#cv-train-log-text")).to_be_visible()
        shares(other, values(page.url))
