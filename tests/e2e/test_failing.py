"""Every handler of a page fails; what it says is read in the browser, and nothing else breaks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.app("failing")


def test_what_fails_says_so_on_its_page(open_page: Callable[..., Page]) -> None:
    page = open_page()  # of the other pages, tests/ui/test_events.py
    panel = page.locator("#cv-page")
    for button in panel.locator("button.primary:visible:enabled, .cv-section:visible > button.label-wrap").all():
        button.click()
    expect(panel.get_by_test_id("notice-error").filter(has_text="planted in").first).to_be_visible()
    assert page.locator(".toast-body.error").count() == 0
