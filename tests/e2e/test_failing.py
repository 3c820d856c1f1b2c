"""Every handler of the page fails; what it says is read in the browser, and nothing else breaks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from condviz.ui.app import TABS
from tests.e2e.conftest import serve, visiting, wait_for_tabs
from tests.ports import free_ports

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a page in which nothing works."""
    (port,), folder = free_ports(), tmp_path_factory.mktemp("failing")
    command = [sys.executable, "-m", "tests.e2e.serve_failing", str(folder), str(port)]
    yield from serve(command, port, folder / "log.txt")


@pytest.fixture(scope="module")
def page(context: BrowserContext, address: str) -> Iterator[Page]:
    """That page; a script error fails the last test."""
    with visiting(context) as open_:
        yield wait_for_tabs(open_(address))


@pytest.mark.parametrize("tab", [tab.id for tab in TABS])
def test_what_fails_says_so_in_its_tab(page: Page, tab: str) -> None:
    page.locator(f"#cv-tabs [role=tab][data-tab-id={tab}]").first.click()
    panel = page.locator(".tabitem:visible")
    for button in panel.locator("button.primary:visible:enabled, .cv-section:visible > button.label-wrap").all():
        button.click()
    expect(panel.get_by_test_id("notice-error").filter(has_text="planted in").first).to_be_visible()
    assert page.locator(".toast-body.error").count() == 0
