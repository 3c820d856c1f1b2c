"""Tabs of the first edition, until each has been rebuilt."""

from __future__ import annotations

from condviz.ui import links, models
from condviz.ui.engine import Engine
from condviz.ui.errors_api import add_errors_api
from condviz.ui.errors_service import ErrorsService
from condviz.ui.errors_tab import build_errors_tab
from condviz.ui.map import tab as map_tab
from condviz.ui.page import Page, Tab
from condviz.ui.service import Service
from condviz.ui.train import tab as train


def _service(page: Page) -> Service:
    return Service(Engine(), page.pool)


def _errors(page: Page) -> None:
    service = ErrorsService(_service(page), Engine().errors)
    view = build_errors_tab(service, page=page.blocks, tabs=page.tabs, tab=page.tab)
    page.warm_up.append(lambda: view.warm_up.start())
    add_errors_api(service)


OLD_TABS = (
    map_tab.TAB,
    Tab("errors", "Errors", _errors),
    links.TAB,
    train.TAB,
    models.TAB,
)
