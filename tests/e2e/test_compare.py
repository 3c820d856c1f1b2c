"""The Compare tab in a browser: typing, history, errors, tables."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

LINK = "?s1=A+man+surfs+at+dawn.&s2=A+woman+skis+in+the+morning.&c=the+sport&c=the+time+of+day"
READY = "#cv-result :not(.cv-dimmed) > [data-ready=true]"


def scored(page: Page, condition: str) -> None:
    expect(page.locator(f"{READY} [data-condition='{condition}']")).to_be_visible()


def test_typing_scores_after_a_pause_and_back_returns(open_page: Callable[..., Page]) -> None:
    page = open_page(LINK)
    scored(page, "the sport")
    page.get_by_label("Conditions, one per line").fill("the place")
    scored(page, "the place")
    expect(page).to_have_url(re.compile("c=the\\+place"))
    page.go_back()
    scored(page, "the time of day")
    expect(page.get_by_label("Conditions, one per line")).to_have_value("the sport\nthe time of day")
    a_press_while_words_are_looked_for_is_not_lost(page)
    an_open_section_is_of_the_new_pair(page)
    an_error_stands_beside_the_button_and_the_text_stays(page)


def a_press_while_words_are_looked_for_is_not_lost(page: Page) -> None:
    conditions, button = page.get_by_label("Conditions, one per line"), page.locator("#cv-run")
    many = [f"the part of number {number}" for number in range(12)]
    conditions.fill("\n".join(many))
    button.click()
    page.locator(f"#cv-result [data-condition='{many[0]}']").wait_for()
    conditions.fill("the place")
    expect(page.locator("#cv-result")).to_have_class(re.compile("cv-stale"))  # the bars are those of other conditions
    button.click()
    scored(page, "the place")
    expect(page.locator("#cv-result")).not_to_have_class(re.compile("cv-stale"))


def an_open_section_is_of_the_new_pair(page: Page) -> None:
    section = page.locator("#cv-compare-words")
    section.get_by_role("button").first.click()
    expect(section).to_contain_text("surfs")
    page.get_by_label("Sentence 1").fill("A man knits at dawn.")
    page.locator("#cv-run").click()
    expect(section).to_contain_text("knits")
    expect(page).to_have_url(re.compile("knits.*open=words"))
    # An answer may fold it after its result was drawn: only who presses its title folds it for good.
    title = section.get_by_role("button").first
    title.evaluate("(button) => button.click()")
    expect(title).to_have_class(re.compile("open"))
    title.click()
    expect(title).not_to_have_class(re.compile("open"))
    expect(page).not_to_have_url(re.compile("open=words"))
    # An answer may fold it long before its result comes: the address has lost it by then.
    title.click()
    expect(section).to_contain_text("knits")
    title.evaluate("(button) => button.click()")
    expect(page).not_to_have_url(re.compile("open=words"))
    page.get_by_label("Sentence 1").fill("A man paints at dawn.")
    page.locator("#cv-run").click()
    expect(section).to_contain_text("paints")
    expect(title).to_have_class(re.compile("open"))


def an_error_stands_beside_the_button_and_the_text_stays(page: Page) -> None:
    page.get_by_label("Sentence 1").fill("")
    page.locator("#cv-run").click()
    expect(page.locator("#cv-notice [role=alert]")).to_contain_text("Sentence 1 is empty")
    expect(page.locator("#cv-notice [role=alert]")).to_be_in_viewport()
    expect(page.get_by_label("Sentence 2")).to_have_value("A woman skis in the morning.")
    expect(page.locator("#cv-result .cv-dimmed")).to_be_visible()


def test_a_table_is_scored_or_says_why_not_once_and_beside_it(open_page: Callable[..., Page]) -> None:
    page = open_page("?open=table")
    section = page.locator("#cv-compare-table")
    told, rows = section.get_by_role("alert"), page.locator("#cv-table-rows")
    bad, good = b"a,b\n1,2\n", b"sentence1,sentence2,condition\nA man surfs.,A woman skis.,the sport\n"
    for content in (bad, good, bad):
        upload = {"name": "pairs.csv", "mimeType": "text/csv", "buffer": content}
        page.locator("#cv-compare-upload input[type=file]").set_input_files(upload)
        expect(section.locator(".file-preview")).to_be_visible()
        button = page.get_by_role("button", name="Score the table")
        if content is bad:
            expect(told).to_contain_text("for: condition")
            expect(button).to_be_disabled()
            expect(rows).to_be_hidden()  # scores of the table before would look like those of this one
        else:
            expect(told).to_have_count(0)
            button.click()
            expect(rows).to_contain_text("the sport")
        section.get_by_label("Clear", exact=True).click()
