"""The Learn tab in a browser: every lesson by keyboard alone, at three widths, in both themes; and what students do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from condviz.data.lessons import Lesson, load_lessons
from tests.e2e.conftest import go, visiting, wait_for_page

WIDTHS, TALLEST = (380, 1024, 1440), 2000
"""Every step is looked at on a phone, every second one on one of the others, too; the themes take turns."""
FITS = """([width, height]) => {
    const { scrollWidth, scrollHeight } = document.documentElement;
    return scrollWidth <= width && scrollHeight < height;
}"""
READY = "#cv-learn-picture [data-ready=true]"
SMALL = """() => [...document.querySelectorAll(".cv-learn *")]
    .filter((node) => node.checkVisibility() && !node.closest("svg, sub, sup"))
    .filter((node) => [...node.childNodes].some((part) => part.nodeType === 3 && part.textContent.trim()))
    .filter((node) => parseFloat(getComputedStyle(node).fontSize) < 12.9)
    .map((node) => node.outerHTML.slice(0, 80))"""


def at(page: Page, step: int) -> None:
    """Wait until a step is there, with its live figure."""
    expect(page.locator(f"#cv-learn-top [data-step='{step}']")).to_be_attached()
    expect(page.locator(f"#cv-learn-picture [data-link*='step={step}']")).to_be_attached()
    expect(page.locator(READY)).to_be_attached()


@pytest.fixture(scope="module")
def window(context: BrowserContext, addresses: dict[str, str]) -> Iterator[Page]:
    """A window in which the lessons are opened one after the other."""
    with visiting(context) as open_:
        yield wait_for_page(open_(addresses[""] + "learn"))


def turn_to(page: Page, lesson: str, step: int) -> Page:
    page.set_viewport_size({"width": 1280, "height": 900})
    go(page, f"learn?lesson={lesson}&step={step}")
    expect(page.locator(f"#cv-learn-top [data-lesson={lesson}]")).to_be_attached()
    at(page, step)
    return page


@pytest.mark.parametrize("lesson", load_lessons(), ids=lambda lesson: lesson.id)
def test_a_lesson_by_keyboard_at_three_widths_in_both_themes(window: Page, lesson: Lesson) -> None:
    page = turn_to(window, lesson.id, 1)
    count = len(lesson.steps) + 1
    for step in range(1, count + 1):
        at(page, step)
        expect(page.locator("#cv-learn-notice [role=alert]")).to_have_count(0)
        page.evaluate("(dark) => document.body.classList.toggle('dark', dark)", step // 2 % 2 == 0)
        for width in (WIDTHS[0], WIDTHS[1 + step // 2 % 2])[: 1 + step % 2]:
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_function(FITS, arg=[width, TALLEST])  # figures follow the window
            assert page.evaluate(SMALL) == [], (step, width)
        if step < count:
            page.locator(".cv-step-title").focus()
            page.keyboard.press("ArrowRight")
    hint = page.locator(".cv-questions summary").first
    hint.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".cv-questions details[open]")).to_have_count(1)
    page.locator(".cv-step-title").focus()
    page.keyboard.press("ArrowLeft")
    at(page, count - 1)


def test_a_lesson_is_left_and_found_again(open_page: Callable[..., Page]) -> None:
    page = open_page("learn")
    page.locator(".cv-lesson-card").first.click()
    at(page, 1)
    page.locator("#cv-learn-foot [data-next]").click()
    at(page, 2)
    page.go_back()
    at(page, 1)
    page.go_forward()
    at(page, 2)
    page.reload(wait_until="commit")
    at(page, 2)


def test_bets_are_kept_and_answers_shown_only_after_them(open_page: Callable[..., Page]) -> None:
    page = open_page("learn?lesson=respect&step=2")
    at(page, 2)
    reveal = page.locator(".cv-bet-reveal:visible")
    expect(reveal).to_have_count(0)
    page.locator("[data-choice=alike]:visible").click()
    expect(reveal).to_contain_text("You: alike")
    page.reload(wait_until="commit")
    at(page, 2)
    page.locator("[data-choice=unlike]:visible").click()
    expect(page.locator(".cv-bet-sum")).to_contain_text("you 2")
    page.locator("[data-bet-reset]").click()
    expect(reveal).to_have_count(0)


def test_what_a_student_changes_goes_into_the_address_and_on_to_compare(open_page: Callable[..., Page]) -> None:
    page = open_page("learn?lesson=respect&step=4")
    at(page, 4)
    box = page.locator("[name=sentence2]")
    box.fill("Nine monks play table tennis.")
    box.press("Enter")
    expect(page).to_have_url(re.compile("Nine\\+monks"))
    expect(page.locator(READY)).to_be_attached()
    box.fill(" ")
    box.press("Enter")
    expect(page.locator("#cv-learn-notice [role=alert]")).to_be_visible()
    page.reload(wait_until="commit")
    expect(box).to_have_value("Nine monks play table tennis.")
    page.get_by_role("link", name="Open this on its page").click()
    expect(page.locator("#cv-sentence2 textarea")).to_have_value("Nine monks play table tennis.")


def test_arrows_turn_by_mouse_and_by_keys(window: Page) -> None:
    page = turn_to(window, "vectors", 2)
    first, said = page.locator("[data-arrow='0']"), page.locator("[data-cosine]")
    note = page.locator(".cv-step-after p")
    expect(note).to_be_hidden()
    first.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    expect(said).to_have_text("1.00")
    expect(note).to_be_visible()
    expect(page.locator("[data-goal].is-done")).not_to_have_count(0)
    drawing, tip = page.locator(".cv-plane svg").bounding_box(), page.locator("[data-arrow='1'] circle").bounding_box()
    page.mouse.move(tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2)
    page.mouse.down()
    page.mouse.move(drawing["x"] + 5, drawing["y"] + drawing["height"] / 2)
    page.mouse.up()
    expect(said).to_contain_text("−")


def test_singular_values_are_switched_and_a_late_figure_does_not_come_back(window: Page) -> None:
    page = turn_to(window, "hyper-cl", 5)
    page.locator("[data-value='1']").click()
    expect(page).to_have_url(re.compile("p.off=1"))
    expect(page.locator(".cv-step-picture .cv-headline")).to_contain_text("47 of 48")
    page.locator("[data-value='2']").click()
    page.locator(".cv-step-title").focus()
    for step in (6, 7):
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"#cv-learn-top [data-step='{step}']")).to_be_attached()
    at(page, 7)
    page.wait_for_load_state()
    expect(page.locator("#cv-learn-picture [data-link*='step=7']")).to_be_attached()


def test_a_sheet_prints_light_and_to_its_end(open_page: Callable[..., Page]) -> None:
    page = open_page("learn?lesson=errors&view=sheet&__theme=dark")
    expect(page.locator("[data-testid=sheet] h3").last).to_have_text("Questions")
    page.emulate_media(media="print")
    # Chromium cuts off what lies in a flex box or in one that hides its overflow, where a page breaks it.
    cut = """() => { const found = [];
        for (let node = document.querySelector(".cv-sheet"); node; node = node.parentElement) {
            const { display, overflow } = getComputedStyle(node);
            if (display !== "block" || overflow !== "visible") found.push(node.className);
        } return found; }"""
    assert page.evaluate(cut) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(page.locator("#cv-learn-class")).to_be_hidden()
    page = open_page("learn?lesson=vectors&view=sheet")
    arrow = page.locator(".cv-sheet .cv-plane-a line").first
    expect(arrow).not_to_have_attribute("x2", "0")
    expect(page.locator(".cv-sheet .cv-plane-goals li").first).to_be_visible()
