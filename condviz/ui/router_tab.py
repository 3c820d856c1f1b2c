"""The Router tab: which words a model weighs under each condition, and what inside it does so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.ui.binder import PRIVATE, SCORING, Binder, stops
from condviz.ui.compare import CompareTab as CompareView
from condviz.ui.components import ModelPicker, markup, model_picker
from condviz.ui.form_state import FormState
from condviz.ui.html import notice
from condviz.ui.router_handlers import RouterHandlers
from condviz.ui.router_service import RouterService

_SCRIPT = "condviz.router(element, watch, (data) => trigger('look', data));"
_EMPTY = notice("Ready", "Press Show words to read the sentences under each condition.", tone="info")


@dataclass
class RouterTabView:
    """The components of the tab, by the name that the handlers use."""

    sentence1: gr.Textbox
    sentence2: gr.Textbox
    conditions: gr.Textbox
    models: ModelPicker
    run: gr.Button
    cancel: gr.Button
    take: gr.Button
    notice: gr.HTML
    result: gr.HTML
    deletion: gr.HTML
    detail: gr.HTML
    shown: gr.State
    tabs: gr.Tabs


def build_router_tab(
    service: RouterService, *, page: gr.Blocks, tabs: gr.Tabs, tab: gr.Tab, compare: CompareView, default: FormState
) -> RouterTabView:
    """Lay out the tab and connect it; call inside its gr.Tab.

    Args:
        service: Reads words.
        page: The page that the tab stands in; a link to this tab opens it with its state.
        tabs: The tabs of the page.
        tab: This tab; the example is read when it is opened for the first time.
        compare: The Compare tab, whose texts can be taken over.
        default: Texts in the form at the start.
    """
    handlers = RouterHandlers(service)
    default = default.replace(models=handlers.default_models())
    with gr.Row(elem_classes="cv-split", equal_height=False):
        with gr.Column(elem_classes="cv-form", scale=0, min_width=320):
            parts = _form(service, default)
        with gr.Column(elem_id="cv-router-output", elem_classes="cv-output", scale=1, min_width=320):
            parts["result"] = markup(_EMPTY, elem_id="cv-router-result", script=_SCRIPT)
            parts["deletion"] = markup("", elem_id="cv-router-deletion", script=_SCRIPT)
            parts["detail"] = markup("", elem_id="cv-router-detail", script=_SCRIPT)
    view = RouterTabView(**parts, shown=gr.State(None), tabs=tabs)
    _connect(view, handlers, page=page, tab=tab, compare=compare)
    return view


def _form(service: RouterService, default: FormState) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    labels = {1: "Sentence", 2: "Second sentence, optional"}
    for index, value in ((1, default.sentence1), (2, default.sentence2)):
        parts[f"sentence{index}"] = gr.Textbox(
            value, label=labels[index], lines=2, max_lines=8, elem_id=f"cv-router-sentence{index}",
            elem_classes="cv-sentence-box", html_attributes=InputHTMLAttributes(spellcheck=False),
        )  # fmt: skip
    parts["conditions"] = gr.Textbox(
        "\n".join(default.conditions),
        label="Conditions, one per line",
        info="Up to 12.",
        lines=3,
        max_lines=12,
        elem_id="cv-router-conditions",
        elem_classes="cv-conditions-box",
        html_attributes=InputHTMLAttributes(spellcheck=False),
    )
    parts["models"] = model_picker(service.infos(), default.models, elem_id="cv-router-models")
    with gr.Row(elem_classes="cv-actions"):
        parts["run"] = gr.Button("Show words", variant="primary", elem_id="cv-router-run", min_width=90)
        parts["cancel"] = gr.Button("Stop", elem_id="cv-router-cancel", visible=False, min_width=60)
        parts["take"] = gr.Button("Take from Compare", elem_id="cv-router-take", min_width=60)
    parts["notice"] = markup("", elem_id="cv-router-notice")
    return parts


def _connect(
    view: RouterTabView, handlers: RouterHandlers, *, page: gr.Blocks, tab: gr.Tab, compare: CompareView
) -> None:
    bind = Binder(view)
    texts = [view.sentence1, view.sentence2, view.conditions]
    form = [*texts, view.models, view.shown]
    done = [view.notice, view.result, view.deletion, view.detail, view.shown, view.cancel]
    fields = [*texts, view.models]
    run = bind.plain(handlers.run)
    others = [compare.sentence1, compare.sentence2, compare.conditions, view.models, view.shown]
    runs = [
        view.run.click(run, form, done, **SCORING),
        view.models.input(run, form, done, trigger_mode="always_last", **SCORING),
        view.take.click(bind.plain(handlers.take), others, [*fields, *done], **SCORING),
        tab.select(bind.with_query(handlers.first), form, done, **SCORING),
        page.load(bind.with_query(handlers.open_link), view.shown, [view.tabs, *fields, *done], **SCORING),
        view.deletion.look(
            bind.with_data(handlers.delete), view.shown, [view.notice, view.deletion, view.shown, view.cancel],
            trigger_mode="always_last", **SCORING,
        ),
    ]  # fmt: skip
    view.detail.look(
        bind.with_data(handlers.detail), view.shown, [view.notice, view.detail, view.shown],
        trigger_mode="always_last", **SCORING,
    )  # fmt: skip
    view.result.look(
        bind.with_data(handlers.look), view.shown, [view.notice, view.result, view.shown],
        trigger_mode="always_last", **PRIVATE,
    )  # fmt: skip
    stopped = [view.notice, view.deletion, view.cancel]
    stops(view.cancel, runs, bind.plain(handlers.stop), None, stopped)
