"""The Words tab in a browser: the tint moves with the condition, words are held, sections open, links restore."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import follow_link, go

LINK = "words?s1=A+man+surfs+on+a+wave,+laughing.&c=the+sport&c=the+mood&m=csr-bi"
ANSWERED = ":not(.cv-dimmed) > [data-link*={}]"
WORDS = "#cv-words-result :not(.cv-dimmed) > [data-ready=true]"


def strongest(page: Page) -> str:
    """The word with the strongest tint in the running text."""
    return page.locator(f"{WORDS} .cv-token").evaluate_all(
        """words => words
            .map((word) => [Number(getComputedStyle(word).getPropertyValue("--v")), word.firstElementChild.textContent])
            .sort((a, b) => b[0] - a[0])[0][1]"""
    )


def test_the_tint_moves_with_the_condition_without_the_server(open_page: Callable[..., Page]) -> None:
    page = open_page(LINK)
    expect(page.locator(WORDS)).to_contain_text("surfs")
    assert strongest(page) == "surfs"
    page.get_by_role("radio", name="the mood").check(force=True)
    expect(page).to_have_url(re.compile("at=1"))
    assert strongest(page) == "laughing"
    page.keyboard.press("ArrowLeft")
    assert strongest(page) == "surfs"
    expect(page.get_by_role("link", name="Your texts from Compare")).to_be_hidden()
    a_held_word_shows_every_condition_until_it_is_let_go(page)
    two_sentences_stand_beside_each_other(page)
    an_error_dims_what_was_shown_and_back_returns_to_it(page)
    markup_in_texts_stays_text_and_a_phone_can_read_it(page)


def a_held_word_shows_every_condition_until_it_is_let_go(page: Page) -> None:
    page.locator("#cv-words-strips > button").click()
    expect(page.locator("#cv-words-strips-view .cv-line").first).to_be_visible()
    page.locator(f"{WORDS} .cv-token", has_text="surfs").click()
    tip = page.locator(".cv-word-tip")
    expect(tip).to_contain_text("the sport")
    expect(tip).to_contain_text("the mood")
    expect(page.locator(".cv-token.is-lit")).to_have_count(3)  # running text, and one line for each condition
    page.keyboard.press("ArrowRight")
    expect(tip.locator("b")).to_have_text("on")
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)


def two_sentences_stand_beside_each_other(page: Page) -> None:
    page.locator("#cv-words-figures > button").click()
    expect(page.get_by_test_id("figure-7")).to_be_visible()
    page.locator("#cv-words-pair > button").click()
    # A box takes no text while it appears.
    expect(page.locator("#cv-words-pair-view")).to_contain_text("second sentence")
    page.locator("#cv-words-sentence2 textarea").fill("A woman skis and weeps.")
    page.locator("#cv-words-both").click()
    expect(page.locator("#cv-words-pair .cv-line[data-place='1']").first).to_contain_text("skis")


def an_error_dims_what_was_shown_and_back_returns_to_it(page: Page) -> None:
    sentence = page.locator("#cv-words-sentence textarea")
    sentence.fill("Two cats sleep.")
    page.locator("#cv-words-run").click()
    expect(page).to_have_url(re.compile("Two\\+cats"))
    sentence.fill(" ")
    page.locator("#cv-words-run").click()
    expect(page.locator("#cv-words-main-notice [role=alert]")).to_be_in_viewport()
    expect(page.locator("#cv-words-result .cv-dimmed")).to_be_attached()
    page.go_back()
    expect(sentence).to_have_value("A man surfs on a wave, laughing.")
    expect(page.get_by_test_id("words-headline")).to_contain_text("“surfs”")


def markup_in_texts_stays_text_and_a_phone_can_read_it(page: Page) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    go(page, "words?s1=<img src=x onerror=alert(1)> ${1} {{2}} cat&c=<b>the mood</b>")
    expect(page.locator(WORDS)).to_contain_text("{{")
    expect(page.locator(f"{WORDS} img")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_the_texts_of_compare_are_taken_over(open_page: Callable[..., Page]) -> None:
    page = open_page("?t=nothing&s1=A+man+surfs.&s2=A+woman+skis.&c=the+sport&m=minilm&__theme=dark")
    expect(page.locator("#cv-page-notice")).to_contain_text("nothing")  # there is no page of this name
    expect(page.get_by_test_id("headline")).to_be_visible()
    follow_link(page, "Words")
    expect(page).to_have_url(re.compile("/words.(?=.*s1=A.man.surfs.*s2=A.woman.skis)(?=.*__theme=dark)"))
    expect(page.get_by_test_id("theme-toggle")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#cv-words-sentence textarea")).to_have_value("A man surfs.")
    expect(page).to_have_url(re.compile("m=csr-bi"))  # the answer is there, too
    go(page, "words?s1=Snow+fell.&c=the+weather")
    expect(page.locator(WORDS)).to_contain_text("Snow")
    follow_link(page, "Compare")
    follow_link(page, "Words")  # these have been here already
    expect(page.locator("#cv-words-sentence textarea")).to_have_value("Snow fell.")
    page.locator("#cv-words-sentence textarea").fill("Not asked yet.")
    follow_link(page, "Compare")
    follow_link(page, "Words")
    expect(page.locator("#cv-words-sentence textarea")).to_have_value("Not asked yet.")
    page.get_by_role("link", name="Your texts from Compare").click()
    expect(page.locator("#cv-words-sentence textarea")).to_have_value("A man surfs.")
    page.goto(page.url.split("?")[0] + "?s1=Snow+fell.&s2=Rain+fell.&c=the+weather", wait_until="commit")
    expect(page.locator(WORDS)).to_contain_text("Snow")
    follow_link(page, "Compare")  # a pair goes the other way, too
    expect(page.locator("#cv-sentence2 textarea")).to_have_value("Rain fell.")
    expect(page.locator(ANSWERED.format("Rain"))).to_be_attached()
    go(page, "?s1=A+man+surfs.&s2=A+woman+skis.&c=the+sport&m=minilm")
    expect(page.locator(ANSWERED.format("surfs"))).to_be_attached()
    follow_link(page, "Search")
    page.get_by_role("link", name="Your first sentence from Compare").click()
    expect(page.locator("#cv-search-query textarea")).to_have_value("A man surfs.")
    expect(page.locator("#cv-search-conditions textarea")).to_have_value("the sport")
