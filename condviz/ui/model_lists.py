"""The lists of models of all tabs, written anew when a model has come since the page was built."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gradio as gr

from condviz.ui.binder import PRIVATE
from condviz.ui.compare_tab import CompareView, finder_choices
from condviz.ui.components import picker_models
from condviz.ui.errors_tab import ErrorsView, error_choices
from condviz.ui.map_service import MapService
from condviz.ui.map_tab import MapView, map_choices
from condviz.ui.router_service import RouterService
from condviz.ui.router_tab import RouterTabView
from condviz.ui.service import Service
from condviz.ui.train_service import TrainService


def keep_lists(
    service: Service,
    *,
    page: gr.Blocks,
    train: tuple[SimpleNamespace, TrainService],
    compare: CompareView,
    router: tuple[RouterTabView, RouterService],
    maps: tuple[MapView, MapService],
    errors: ErrorsView,
) -> None:
    """Show new models in every tab: at once where a training ends, elsewhere when the page is opened.

    Args:
        service: The models.
        page: The page.
        train: The Train tab, whose state `known` changes with the models, and the service that finds new ones.
        compare, errors: Tabs that offer all models.
        router, maps: Tabs that offer some, and the services that know which.
    """
    built = service.pool.names
    outputs = [
        compare.models, compare.finder_model, router[0].models, maps[0].model, errors.first, errors.second,
    ]  # fmt: skip

    def update() -> list[Any]:
        if train[1].add_models() == built:
            return [gr.skip()] * len(outputs)
        first, second = error_choices(service)
        return [
            gr.update(**picker_models(service.infos())),
            gr.update(choices=finder_choices(service)),
            gr.update(**picker_models(router[1].infos())),
            gr.update(choices=map_choices(maps[1])),
            gr.update(choices=first),
            gr.update(choices=second),
        ]

    train[0].known.change(update, None, outputs, queue=False, **PRIVATE)
    page.load(update, None, outputs, queue=False, **PRIVATE)
