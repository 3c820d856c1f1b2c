"""Every handler of a page fails; what it says is read in the browser, and nothing else breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from condviz.ui.state import path_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.app("failing")


@pytest.mark.parametrize("name", ["compare", "errors"])  # of the others, tests/ui/test_events.py
def test_what_fails_says_so_on_its_page(open_page: Callable[..., Page], name: str) -> None:
    page = open_page(path_of(name))
    panel = page.locator("#cv-page")
    for button in panel.locator("button.primary:visible:enabled, .cv-section:visible > button.label-wrap").all():
        button.click()
    expect(panel.get_by_test_id("notice-error").filter(has_text="planted in").first).to_be_visible()
    assert page.locator(".toast-body.error").count() == 0
