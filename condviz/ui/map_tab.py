"""The Map tab: sentences before and after conditioning, side by side, and what is measured behind the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.ui.binder import PRIVATE, SCORING, Binder, stops
from condviz.ui.components import markup
from condviz.ui.html import tag, text
from condviz.ui.map_form import SOURCES, TYPED
from condviz.ui.map_handlers import MapHandlers
from condviz.ui.map_service import MapService
from condviz.ui.map_view import NOTE
from condviz.ui.plotly_panel import PlotlyPanel, plotly_panel
from condviz.ui.service import menu_title

_SCRIPT = "condviz.map(element, (data) => trigger('act', data));"
_EMPTY = "Press Draw to encode the sentences and lay them out."
DEFAULT_MODEL = "hyper-cl"
ASPECTS = ("number_of_people", "time_of_day", "weather", "place", "age_group", "vehicle", "object_colour",
           "relationship", "duration", "posture", "furniture", "mood")  # fmt: skip
"""Aspects of the scenes that have enough test families; the last five were in no training."""
DEFAULT_ASPECTS = ASPECTS[:3]
_SENTENCES = """Three children play football on the beach.
A man surfs alone at dawn.
Two women play chess in the park.
A crowd watches the tennis final.
A girl rides her bicycle to school.
Five friends row across the lake."""
_CONDITIONS = "the number of people\nthe sport"


@dataclass
class MapView:
    """The components of the tab, by the name that the handlers use."""

    model: gr.Dropdown
    source: gr.Radio
    box_scenes: gr.Column
    box_texts: gr.Column
    box_table: gr.Column
    box_conditions: gr.Column
    aspects: gr.Dropdown
    draw: gr.Number
    sentences: gr.Textbox
    conditions: gr.Textbox
    upload: gr.File
    text_column: gr.Dropdown
    condition_column: gr.Dropdown
    sample: gr.Number
    method: gr.Radio
    dimensions: gr.Radio
    num_neighbors: gr.Slider
    min_dist: gr.Slider
    seed: gr.Number
    clusters: gr.Number
    run: gr.Button
    cancel: gr.Button
    notice: gr.HTML
    head: gr.HTML
    colour: gr.Dropdown
    legend: gr.HTML
    before: PlotlyPanel
    after: PlotlyPanel
    neighbors: gr.HTML
    table: gr.HTML
    measures: gr.HTML
    box_weights: gr.Column
    spectra: PlotlyPanel
    places: PlotlyPanel
    sizes: gr.HTML
    out: gr.HTML
    shown: gr.State


def build_map_tab(service: MapService, *, tab: gr.Tab) -> MapView:
    """Lay out the tab and connect it; call inside its gr.Tab.

    Args:
        service: Makes maps.
        tab: This tab; opening it shows the stored map.
    """
    with gr.Row(elem_classes="cv-split", equal_height=False):
        with gr.Column(elem_classes="cv-form", scale=0, min_width=320):
            parts = _form(service)
        with gr.Column(elem_id="cv-map-output", elem_classes="cv-output", scale=1, min_width=320):
            parts |= _output()
    view = MapView(**parts, shown=gr.State(None))
    _connect(view, MapHandlers(service), tab)
    return view


def map_choices(service: MapService) -> list[tuple[str, str]]:
    """Give the models that a map can be made of: (title, name)."""
    return [(menu_title(info), info.name) for info in service.infos()]


def _form(service: MapService) -> dict[str, Any]:
    models = map_choices(service)
    names = [name for _, name in models]
    stored = service.first.model["name"] if service.first else DEFAULT_MODEL
    chosen = stored if stored in names else DEFAULT_MODEL if DEFAULT_MODEL in names else next(iter(names), None)
    parts: dict[str, Any] = {"model": gr.Dropdown(models, value=chosen, label="Model", elem_id="cv-map-model")}
    choices = [(title, name) for name, title in SOURCES.items()]
    parts["source"] = gr.Radio(choices, value="scenes", label="Sentences", elem_id="cv-map-source")
    parts |= _sources()
    parts |= _settings()
    with gr.Row(elem_classes="cv-actions"):
        parts["run"] = gr.Button("Draw", variant="primary", elem_id="cv-map-run", min_width=90)
        parts["cancel"] = gr.Button("Stop", elem_id="cv-map-cancel", visible=False, min_width=60)
    parts["notice"] = markup("", elem_id="cv-map-notice")
    return parts


def _sources() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    plain = InputHTMLAttributes(spellcheck=False)
    with gr.Column(elem_classes="cv-map-box") as parts["box_scenes"]:
        parts["aspects"] = gr.Dropdown(
            [(name.replace("_", " "), name) for name in ASPECTS], value=list(DEFAULT_ASPECTS), multiselect=True,
            label="Conditions", info="20 sentences each, from scenes that no model was trained on.",
            elem_id="cv-map-aspects",
        )  # fmt: skip
        parts["draw"] = gr.Number(0, label="Draw of sentences", precision=0, minimum=0, elem_id="cv-map-draw")
    with gr.Column(visible=False, elem_classes="cv-map-box") as parts["box_texts"]:
        parts["sentences"] = gr.Textbox(
            _SENTENCES, label="Sentences, one per line", lines=6, max_lines=14, elem_id="cv-map-sentences",
            html_attributes=plain,
        )  # fmt: skip
    with gr.Column(visible=False, elem_classes="cv-map-box") as parts["box_table"]:
        parts["upload"] = gr.File(
            label="CSV or TSV, one sentence per row", file_types=[".csv", ".tsv", ".txt"], elem_id="cv-map-upload",
            height=110,
        )  # fmt: skip
        parts["text_column"] = gr.Dropdown([], label="Column of the sentences", elem_id="cv-map-text-column")
        parts["condition_column"] = gr.Dropdown(
            [TYPED], value=TYPED, label="Column of the conditions", elem_id="cv-map-condition-column"
        )
        parts["sample"] = gr.Number(
            0, label="Sample at random", info="So many rows of larger tables; 0 uses all.", precision=0, minimum=0,
            elem_id="cv-map-sample",
        )  # fmt: skip
    with gr.Column(visible=False, elem_classes="cv-map-box") as parts["box_conditions"]:
        parts["conditions"] = gr.Textbox(
            _CONDITIONS, label="Conditions, one per line", info="Every sentence stands under each of them.", lines=2,
            max_lines=8, elem_id="cv-map-conditions", html_attributes=plain,
        )  # fmt: skip
    return parts


def _settings() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Accordion("Layout and clusters", open=False, elem_id="cv-map-settings"):
        parts["method"] = gr.Radio([("UMAP", "umap"), ("PCA", "pca")], value="umap", label="Method")
        parts["dimensions"] = gr.Radio([("2", 2), ("3", 3)], value=2, label="Dimensions", elem_id="cv-map-dimensions")
        parts["num_neighbors"] = gr.Slider(2, 100, value=15, step=1, label="Neighbours of UMAP")
        parts["min_dist"] = gr.Slider(0, 0.99, value=0.1, step=0.01, label="Smallest distance of UMAP")
        parts["seed"] = gr.Number(0, label="Seed of UMAP", precision=0, minimum=0)
        parts["clusters"] = gr.Number(
            0, label="Clusters of the impurity", info="0: as many as conditions.", precision=0, minimum=0,
            elem_id="cv-map-clusters",
        )  # fmt: skip
    return parts


def _output() -> dict[str, Any]:
    parts: dict[str, Any] = {"head": markup("", elem_id="cv-map-head")}
    with gr.Row(elem_id="cv-map-colours"):
        parts["colour"] = gr.Dropdown([("condition", "condition")], label="Colour by", elem_id="cv-map-colour", scale=0)
        parts["legend"] = markup("", elem_id="cv-map-legend")
    shared: dict[str, Any] = {"link": "map", "link_zoom": True, "tool": "lasso", "height": 400, "message": _EMPTY}
    with gr.Row(elem_id="cv-map-panes", equal_height=False):
        for side, title in (("before", "Before: the sentence alone"), ("after", "After: under its condition")):
            with gr.Column(min_width=280):
                markup(text("h3", title), elem_id=f"cv-map-{side}-head")
                parts[side] = plotly_panel(elem_id=f"cv-map-{side}", label=title, **shared)
    markup(text("p", NOTE, class_="cv-map-caution"), elem_id="cv-map-caution")
    parts["table"] = markup("", elem_id="cv-map-table", script=_SCRIPT)
    parts["neighbors"] = markup("", elem_id="cv-map-neighbors", script=_SCRIPT)
    parts["measures"] = markup("", elem_id="cv-map-measures", script=_SCRIPT)
    parts |= _weights()
    parts["out"] = markup("", elem_id="cv-map-out", script="condviz.mapFile(element, props, watch);", file=None)
    return parts


def _weights() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    lead = (
        "The hypernetwork turns each condition into a matrix. How many directions it keeps, how large it is, and which "
        "conditions get similar ones."
    )
    with gr.Column(visible=False, elem_id="cv-map-weights") as parts["box_weights"]:
        head = tag("div", tag("h2", "The matrices W", tag("sub", "c")), text("p", lead, class_="cv-muted"))
        markup(head, elem_id="cv-map-weights-head")
        with gr.Row(equal_height=False):
            with gr.Column(min_width=280):
                markup(tag("h3", "Singular values"), elem_id="cv-map-spectra-head")
                parts["spectra"] = plotly_panel(elem_id="cv-map-spectra", label="Singular values", height=280)
            with gr.Column(min_width=280):
                markup(tag("h3", "Conditions by similarity of W"), elem_id="cv-map-places-head")
                parts["places"] = plotly_panel(elem_id="cv-map-places", label="Conditions", height=280)
        parts["sizes"] = markup("", elem_id="cv-map-sizes")
    return parts


def _connect(view: MapView, handlers: MapHandlers, tab: gr.Tab) -> None:
    bind = Binder(view)
    form = [
        view.model, view.source, view.aspects, view.draw, view.sentences, view.conditions, view.upload,
        view.text_column, view.condition_column, view.sample, view.method, view.dimensions, view.num_neighbors,
        view.min_dist, view.seed, view.clusters,
    ]  # fmt: skip
    figures = [view.before, view.after, view.legend]
    rows = [view.table, view.shown, view.neighbors, view.before, view.after]
    weights = [view.box_weights, view.spectra, view.places, view.sizes]
    whole = [view.notice, view.cancel, view.head, view.colour, view.measures, *figures, *weights, *rows[:3]]
    boxes = [view.box_scenes, view.box_texts, view.box_table, view.box_conditions]
    view.source.input(bind.plain(handlers.source), view.source, boxes, **PRIVATE)
    columns = [view.notice, view.text_column, view.condition_column]
    view.upload.change(bind.plain(handlers.upload), view.upload, columns, **PRIVATE)
    run = view.run.click(bind.plain(handlers.draw), [*form, view.shown], whole, **SCORING)
    tab.select(bind.plain(handlers.opened), view.shown, whole, **PRIVATE)
    last: dict[str, Any] = {"trigger_mode": "always_last", **PRIVATE}
    painted = [view.notice, view.shown, *figures]
    view.colour.input(bind.plain(handlers.colour), [view.colour, view.shown], painted, **last)
    for panel in (view.before, view.after):
        panel.select(bind.with_data(handlers.select), view.shown, [view.notice, view.table, view.shown], **last)
        panel.click(bind.with_data(handlers.open), view.shown, [view.notice, *rows], **last)
    for part in (view.table, view.neighbors, view.measures):
        part.act(bind.with_data(handlers.act), view.shown, [view.notice, view.out, *rows], **last)
    stopped = [view.notice, view.cancel]
    stops(view.cancel, [run], bind.plain(handlers.stop), None, stopped)
