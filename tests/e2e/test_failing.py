"""Every handler of the page fails; what it says is read in the browser, and nothing else breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from condviz.ui.app import TABS

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = [tab.id for tab in TABS]
PAGES = [NAMES[:3], NAMES[3:6], NAMES[6:]]
"""The more tabs a page has, the longer a browser takes for each press of a button."""


@pytest.mark.parametrize(
    "tabs", [pytest.param(tabs, marks=pytest.mark.tabs("failing", *tabs), id="-".join(tabs)) for tabs in PAGES]
)
def test_what_fails_says_so_in_its_tab(open_page: Callable[..., Page], tabs: Sequence[str]) -> None:
    page = open_page()
    for tab in tabs:
        page.locator(f"#cv-tabs [role=tab][data-tab-id={tab}]").first.click()
        panel = page.locator(".tabitem:visible")
        for button in panel.locator("button.primary:visible:enabled, .cv-section:visible > button.label-wrap").all():
            button.click()
        expect(panel.get_by_test_id("notice-error").filter(has_text="planted in").first).to_be_visible()
        assert page.locator(".toast-body.error").count() == 0
