"""The Links tab: which entity stands at the other end of a relation, in a knowledge graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from condviz.ui.binder import SCORING, Binder, stops
from condviz.ui.components import markup
from condviz.ui.html import tag, text
from condviz.ui.links_handlers import LinksHandlers
from condviz.ui.links_help import render_files, render_others
from condviz.ui.links_metrics import render_metrics
from condviz.ui.links_search import EntitySearch, entity_search
from condviz.ui.links_service import LinksService
from condviz.ui.links_state import COUNTS
from condviz.ui.plotly_panel import PlotlyPanel, plotly_panel

_SCRIPT = "condviz.links(element, watch, (data) => trigger('act', data));"
DIRECTIONS = (("entity, relation, ?", False), ("?, relation, entity", True))
MAP_NOTE = (
    "The arrow is what the relation does to the entity. A picture of two dimensions leaves most of the space out: "
    "scores and ranks come from the original space."
)


@dataclass
class LinksView:
    """The components of the tab, by the name that the handlers use."""

    graph: gr.Dropdown
    model: gr.Dropdown
    entity: EntitySearch
    relation: gr.Dropdown
    inverse: gr.Radio
    count: gr.Dropdown
    run: gr.Button
    cancel: gr.Button
    notice: gr.HTML
    others: gr.HTML
    upload: gr.UploadButton
    examples: gr.HTML
    result: gr.HTML
    relations: gr.HTML
    nearest: gr.HTML
    legend: gr.HTML
    map: PlotlyPanel
    metrics: gr.HTML
    shown: gr.State
    uploads: gr.State
    tabs: gr.Tabs


def build_links_tab(service: LinksService, *, page: gr.Blocks, tabs: gr.Tabs, tab: gr.Tab) -> LinksView:
    """Lay out the tab and connect it; call inside its gr.Tab.

    Args:
        service: Graphs and answers.
        page: The page that the tab stands in; a link to this tab opens it with its state.
        tabs: The tabs of the page.
        tab: This tab; the stored answer is shown when it is opened for the first time.
    """
    handlers = LinksHandlers(service)
    with gr.Row(elem_classes="cv-split", equal_height=False):
        with gr.Column(elem_classes="cv-form", scale=0, min_width=320):
            parts = _form(service, handlers)
        with gr.Column(elem_id="cv-links-output", elem_classes="cv-output", scale=1, min_width=320):
            parts |= _output()
    view = LinksView(**parts, shown=gr.State(None), uploads=gr.State([]), tabs=tabs)
    _connect(view, handlers, page=page, tab=tab)
    return view


def _form(service: LinksService, handlers: LinksHandlers) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    state = handlers.start
    models = service.choices(service.graph(state.graph).name)
    parts["graph"] = gr.Dropdown(service.graphs(), value=state.graph, label="Graph", elem_id="cv-links-graph")
    parts["model"] = gr.Dropdown(models, value=state.model or None, label="Model", elem_id="cv-links-model")
    parts["entity"] = entity_search(
        service.find, elem_id="cv-links-entity", label="Entity", info="Type a part of its name, and choose."
    )
    parts["relation"] = gr.Dropdown([], label="Relation", elem_id="cv-links-relation")
    parts["inverse"] = gr.Radio(list(DIRECTIONS), value=False, label="What is asked", elem_id="cv-links-inverse")
    parts["count"] = gr.Dropdown(list(COUNTS), value=COUNTS[0], label="Answers shown", elem_id="cv-links-count")
    with gr.Row(elem_classes="cv-actions"):
        parts["run"] = gr.Button("Predict", variant="primary", elem_id="cv-links-run", min_width=90)
        parts["cancel"] = gr.Button("Stop", elem_id="cv-links-cancel", visible=False, min_width=60)
    parts["notice"] = markup("", elem_id="cv-links-notice")
    with gr.Accordion("Other graphs, and your own", open=False, elem_id="cv-links-own"):
        parts["others"] = markup(render_others(service.engine.missing()), elem_id="cv-links-others")
        markup(render_files(), elem_id="cv-links-files")
        parts["upload"] = gr.UploadButton(
            "Upload three tables", file_count="multiple", file_types=[".tsv", ".txt"], elem_id="cv-links-upload"
        )
    return parts


def _output() -> dict[str, Any]:
    parts: dict[str, Any] = {"examples": markup("", elem_id="cv-links-examples", script=_SCRIPT)}
    parts["result"] = markup("", elem_id="cv-links-result", script=_SCRIPT)
    parts["relations"] = markup("", elem_id="cv-links-relations", script=_SCRIPT)
    head = tag("div", tag("h2", "The neighbourhood"), class_="cv-section-head")
    lead = text("p", MAP_NOTE, class_="cv-muted cv-links-facts")
    with gr.Column(elem_classes="cv-links-part"):
        markup(tag("div", head, lead), elem_id="cv-links-map-head")
        parts["legend"] = markup("", elem_id="cv-links-legend")
        parts["map"] = plotly_panel(elem_id="cv-links-map", label="Entities around the question", height=420)
    parts["nearest"] = markup("", elem_id="cv-links-nearest", script=_SCRIPT)
    parts["metrics"] = markup(render_metrics(), elem_id="cv-links-metrics")
    return parts


def _connect(view: LinksView, handlers: LinksHandlers, *, page: gr.Blocks, tab: gr.Tab) -> None:
    bind = Binder(view)
    fields = [view.graph, view.model, view.entity, view.relation, view.inverse, view.count]
    form = [*fields, view.shown]
    painted = [
        view.notice, view.cancel, view.shown, view.examples, view.result, view.relations, view.nearest, view.legend,
        view.map,
    ]  # fmt: skip
    whole = [*fields, *painted]
    latest: dict[str, Any] = {**SCORING, "trigger_mode": "always_last"}
    asked = [
        view.model.input, view.entity.input, view.relation.input, view.inverse.input, view.count.input, view.run.click,
    ]  # fmt: skip
    runs = [
        gr.on(asked, bind.plain(handlers.ask), form, whole, **latest),
        view.graph.input(bind.plain(handlers.graph), form, whole, **latest),
        view.upload.upload(
            bind.plain(handlers.upload), [view.upload, view.uploads, *form], [*whole, view.uploads], **SCORING
        ),
        tab.select(bind.with_query(handlers.first), form, whole, **SCORING),
        page.load(bind.with_query(handlers.open_link), form, [view.tabs, *whole], **SCORING),
        view.map.click(bind.with_data(handlers.point), form, whole, **latest),
    ]
    for piece in (view.examples, view.result, view.relations, view.nearest):
        runs.append(piece.act(bind.with_data(handlers.act), form, whole, **latest))
    stopped = [view.notice, view.cancel]
    stops(view.cancel, runs, bind.plain(handlers.stop), None, stopped)
