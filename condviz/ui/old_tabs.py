"""Tabs of the first edition, until each has been rebuilt."""

from __future__ import annotations

from condviz.ui import links, models
from condviz.ui.engine import Engine
from condviz.ui.errors_api import add_errors_api
from condviz.ui.errors_service import ErrorsService
from condviz.ui.errors_tab import build_errors_tab
from condviz.ui.events import PRIVATE
from condviz.ui.map import tab as map_tab
from condviz.ui.page import Page, Tab
from condviz.ui.service import Service
from condviz.ui.train_api import add_train_api
from condviz.ui.train_service import TrainService
from condviz.ui.train_tab import build_train_tab


def _service(page: Page) -> Service:
    return Service(Engine(), page.pool)


def _errors(page: Page) -> None:
    service = ErrorsService(_service(page), Engine().errors)
    view = build_errors_tab(service, page=page.blocks, tabs=page.tabs, tab=page.tab)
    page.warm_up.append(lambda: view.warm_up.start())
    add_errors_api(service)


def _train(page: Page) -> None:
    service = TrainService(_service(page), Engine().train)
    build_train_tab(service, tab=page.tab)
    page.blocks.load(lambda: service.add_models() and None, None, None, queue=False, **PRIVATE)
    add_train_api(service)


OLD_TABS = (
    map_tab.TAB,
    Tab("errors", "Errors", _errors),
    links.TAB,
    Tab("train", "Train", _train),
    models.TAB,
)
