"""Class mode in two browsers: a teacher opens a room, a student joins it with the code and bets."""

from __future__ import annotations

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.conftest import visiting, wait_for_page

STEP = "learn?lesson=respect&step=1"


def unfold(page: Page) -> None:
    page.locator("#cv-learn-picture [data-choice=alike]").first.wait_for()
    page.locator("#cv-learn-class summary").click()


def test_a_teacher_sees_the_bet_of_a_student_and_both_keep_the_room(
    context: BrowserContext, browser: Browser, address: str
) -> None:
    with browser.new_context() as apart, visiting(context) as open_teacher, visiting(apart) as open_student:
        teacher = wait_for_page(open_teacher(address + STEP))
        unfold(teacher)
        student = wait_for_page(open_student(address + STEP, width=380, height=800))
        teacher.locator("[data-room=open]").click()
        code = teacher.locator(".cv-class-code").inner_text()

        unfold(student)
        field = student.locator(".cv-class-join input")
        field.fill("aaaa")
        field.press("Enter")
        expect(student.locator("#cv-class-notice")).to_contain_text("no room")
        field.fill(code.lower())
        field.press("Enter")
        expect(student.locator(".cv-class-code")).to_have_text(code)
        student.locator("#cv-learn-picture [data-choice=alike]").first.dblclick()
        expect(student.locator(".cv-class-row")).to_contain_text("1 alike, 0 unlike")
        expect(teacher.locator(".cv-class-row")).to_contain_text("1 alike, 0 unlike")  # without a click of the teacher

        student.reload()
        expect(student.locator(".cv-class-code")).to_have_text(code)
        student.locator("[data-room=leave]").click()
        expect(student.locator("#cv-learn-class summary")).to_be_visible()
        expect(teacher.locator(".cv-class-row")).to_have_count(0)
