"""The Errors tab: how wrong a model is, where, and in which rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.analysis.errors.columns import COLUMN_HELP, RULES
from condviz.ui.background import Once
from condviz.ui.binder import PRIVATE, SCORING, Binder, stops
from condviz.ui.components import markup
from condviz.ui.errors_handlers import ErrorsHandlers
from condviz.ui.errors_service import DEFAULT, ErrorsService
from condviz.ui.html import esc, tag, text
from condviz.ui.plotly_panel import PlotlyPanel, plotly_panel
from condviz.ui.service import Service, menu_title

_SCRIPT = "condviz.errors(element, watch, (data) => trigger('act', data));"
_TABLE_SCRIPT = "condviz.errorRows(element, watch, (data) => trigger('act', data));"
PAINTING: dict[str, Any] = {**PRIVATE, "concurrency_limit": 2, "concurrency_id": "errors"}
ACTING = ("views", "finder", "worst", "table", "detail", "exports")
"""Pieces of markup whose buttons send events."""


@dataclass
class ErrorsView:
    """The components of the tab, by the name that the handlers use; `warm_up` makes ready what it opens with."""

    data: gr.Dropdown
    upload: gr.UploadButton
    first: gr.Dropdown
    second: gr.Dropdown
    score: gr.Button
    cancel: gr.Button
    notice: gr.HTML
    filter: gr.Textbox
    apply: gr.Button
    clear: gr.Button
    figures: gr.HTML
    views: gr.HTML
    plot: PlotlyPanel
    finder: gr.HTML
    worst: gr.HTML
    more: gr.HTML
    exports: gr.HTML
    table: gr.HTML
    detail: gr.HTML
    extra: gr.HTML
    rule: gr.Dropdown
    old: gr.Textbox
    new: gr.Textbox
    rewrite: gr.Button
    effect: gr.HTML
    out: gr.HTML
    shown: gr.State
    uploads: gr.State
    tabs: gr.Tabs
    warm_up: Once


def build_errors_tab(service: ErrorsService, *, page: gr.Blocks, tabs: gr.Tabs, tab: gr.Tab) -> ErrorsView:
    """Lay out the tab and connect it; call inside its gr.Tab.

    Args:
        service: Datasets, scores and studies.
        page: The page that the tab stands in; a link to this tab opens it with its state.
        tabs: The tabs of the page.
        tab: This tab; the shipped predictions are shown when it is opened for the first time.
    """
    parts = {**_selectors(service), **_filter(), **_overview(), **_rows(), **_rewrites()}
    parts["out"] = markup("", elem_id="cv-err-out", script="condviz.errorFile(element, watch);")
    handlers = ErrorsHandlers(service)
    parts["warm_up"] = Once(handlers.warm_up)
    view = ErrorsView(**parts, shown=gr.State(None), uploads=gr.State([]), tabs=tabs)
    _connect(view, handlers, page=page, tab=tab)
    return view


def error_choices(service: Service) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Give the models to look at and those to compare with, as (title, name)."""
    models = [(menu_title(info), info.name) for info in service.infos()]
    return models, [("none", ""), *models]


def _selectors(service: ErrorsService) -> dict[str, Any]:
    models, others = error_choices(service.service)
    parts: dict[str, Any] = {}
    with gr.Row(elem_id="cv-err-selectors"):
        parts["data"] = gr.Dropdown(
            service.engine.corpora(), value=DEFAULT, label="Data", elem_id="cv-err-data", min_width=180
        )
        parts["first"] = gr.Dropdown(models, value=None, label="Model", elem_id="cv-err-first", min_width=150)
        parts["second"] = gr.Dropdown(others, value="", label="Compare with", elem_id="cv-err-second", min_width=150)
        parts["score"] = gr.Button("Score", variant="primary", elem_id="cv-err-score", min_width=80)
        parts["cancel"] = gr.Button("Stop", elem_id="cv-err-cancel", visible=False, min_width=60)
        parts["upload"] = gr.UploadButton(
            "Upload a table", file_types=[".csv", ".tsv", ".txt"], elem_id="cv-err-upload", min_width=120
        )
    line = (
        "A table has the columns sentence1, sentence2, condition and label (1 to 5); columns score_NAME are taken as "
        "scores of a model. At most 20,000 rows or 5 MB. It stays in this server’s memory until others push it out."
    )
    markup(
        tag("details", tag("summary", "What a table needs"), text("p", line), class_="cv-details"),
        elem_id="cv-err-help",
    )
    parts["notice"] = markup("", elem_id="cv-err-notice")
    return parts


def _filter() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Row(elem_id="cv-err-filter-row"):
        parts["filter"] = gr.Textbox(
            label="Filter: which rows are the slice",
            placeholder="gold >= 4 and error < -1",
            lines=1, max_lines=3, elem_id="cv-err-filter",
            html_attributes=InputHTMLAttributes(spellcheck=False, autocapitalize="off", autocorrect="off"),
        )  # fmt: skip
        parts["apply"] = gr.Button("Apply", elem_id="cv-err-apply", min_width=70)
        parts["clear"] = gr.Button("All rows", elem_id="cv-err-clear", min_width=70)
    markup(_language(), elem_id="cv-err-language")
    return parts


def _language() -> str:
    rows = [
        tag("tr", tag("th", tag("code", name), scope="row"), text("td", line)) for name, line in COLUMN_HELP.items()
    ]
    examples = (
        "right == 0 and negation",
        'condition in ("the mood", "the sport") and not seen',
        "abs(error) - abs(error_b) > 1",
        '"two" in words and numerals_differ',
    )
    shown = "".join(tag("li", tag("code", esc(example))) for example in examples)
    lead = (
        "Compare numbers with < <= == != >= >, texts with == and in; join with and, or, not. A word in shared or words "
        "is a whole word, a text in sentence1 any part of it. Further columns of the file count too."
    )
    table = tag("div", tag("table", *rows, class_="cv-table"), class_="cv-scroll cv-scroll-y")
    return tag(
        "details", tag("summary", "Columns and examples"), text("p", lead), tag("ul", shown), table, class_="cv-details"
    )


def _head(title: str, line: str, name: str) -> None:
    markup(tag("div", tag("h2", title), text("p", line, class_="cv-muted"), class_="cv-section-head"), elem_id=name)


def _overview() -> dict[str, Any]:
    parts: dict[str, Any] = {"figures": markup("", elem_id="cv-err-figures")}
    with gr.Row(elem_id="cv-err-overview", equal_height=False):
        with gr.Column(scale=1, min_width=300):
            _head("Errors", "Drag a box: the rows below follow. Click a point: it opens.", "cv-err-plot-head")
            parts["views"] = markup("", elem_id="cv-err-views", script=_SCRIPT)
            parts["plot"] = plotly_panel(elem_id="cv-err-plot", label="Error of each row", tool="select", height=380)
            parts["more"] = markup("", elem_id="cv-err-more")
        with gr.Column(scale=1, min_width=300):
            _head("Slices", "What rows with errors have in common.", "cv-err-finder-head")
            parts["finder"] = markup("", elem_id="cv-err-finder", script=_SCRIPT)
            _head("Worst conditions", "Click one to see its rows.", "cv-err-worst-head")
            parts["worst"] = markup("", elem_id="cv-err-worst", script=_SCRIPT)
    return parts


def _rows() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    buttons = "".join(
        tag("button", label, type="button", class_="cv-button", data_export=kind, data_testid=f"errors-{kind}")
        for kind, label in (("csv", "Save rows as CSV"), ("report", "Save report"), ("link", "Copy link"))
    )
    said = tag("span", class_="cv-said", role="status", aria_live="polite")
    head = tag("div", tag("h2", "Rows"), tag("div", buttons, said, class_="cv-exports"), class_="cv-section-head")
    with gr.Column(elem_id="cv-err-reading"):
        parts["exports"] = markup(head, elem_id="cv-err-rows-head", script=_SCRIPT)
        with gr.Row(elem_id="cv-err-reader", equal_height=False):
            with gr.Column(scale=2, min_width=320):
                parts["table"] = markup("", elem_id="cv-err-table", script=_TABLE_SCRIPT)
            with gr.Column(scale=1, min_width=300):
                parts["detail"] = markup("", elem_id="cv-err-detail", script=_SCRIPT)
                parts["extra"] = markup("", elem_id="cv-err-extra")
    return parts


def _rewrites() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Column(elem_id="cv-err-rewrites"):
        _head(
            "Rewrite the slice", "Change its rows by a rule and score them again. The file stays as it is.", "cv-err-re"
        )
        with gr.Row(elem_id="cv-err-rewrite-row"):
            rules = [(title, name) for name, title in RULES.items()]
            parts["rule"] = gr.Dropdown(rules, value="number", label="Rule", elem_id="cv-err-rule", min_width=220)
            parts["old"] = gr.Textbox(
                label="Word", placeholder="red", elem_id="cv-err-old", visible=False, min_width=100
            )
            parts["new"] = gr.Textbox(
                label="by", placeholder="blue", elem_id="cv-err-new", visible=False, min_width=100
            )
            parts["rewrite"] = gr.Button("Rewrite and score", elem_id="cv-err-rewrite", min_width=120)
        parts["effect"] = markup("", elem_id="cv-err-effect")
    return parts


def _connect(view: ErrorsView, handlers: ErrorsHandlers, *, page: gr.Blocks, tab: gr.Tab) -> None:
    bind = Binder(view)
    painted = [
        view.notice, view.score, view.figures, view.views, view.plot, view.finder, view.worst, view.more, view.table,
        view.detail, view.extra, view.effect, view.cancel, view.shown,
    ]  # fmt: skip
    chosen = [view.data, view.first, view.second, view.filter]
    form = [*chosen, view.shown]
    runs = [
        tab.select(bind.with_query(handlers.first), view.shown, [*chosen, *painted], **PAINTING),
        page.load(bind.with_query(handlers.open_link), None, [view.tabs, *chosen, *painted], **PAINTING),
        view.upload.upload(
            bind.plain(handlers.upload), [view.upload, view.uploads, view.first, view.second, view.shown],
            [*chosen, view.uploads, *painted], **PAINTING,
        ),
        view.score.click(bind.plain(handlers.score), form, [*chosen, *painted], **SCORING),
        view.rewrite.click(
            bind.plain(handlers.rewrite), [view.rule, view.old, view.new, view.shown],
            [view.notice, view.effect, view.cancel],
            **SCORING,
        ),
    ]  # fmt: skip
    selected = [view.data.input, view.first.input, view.second.input]
    latest: dict[str, Any] = {**PAINTING, "trigger_mode": "always_last"}
    gr.on(selected, bind.plain(handlers.choose), form, [*chosen, *painted], **latest)
    filtered = [view.apply.click, view.filter.submit]
    gr.on(filtered, bind.plain(handlers.apply), [view.filter, view.shown], painted, **latest)
    view.clear.click(bind.plain(handlers.clear), view.shown, [view.filter, *painted], **latest)
    view.plot.select(bind.with_data(handlers.brush), view.shown, painted, **latest)
    view.plot.click(bind.with_data(handlers.point), view.shown, [*painted], **latest)
    for name in ACTING:
        piece = getattr(view, name)
        piece.act(bind.with_data(handlers.act), view.shown, [view.filter, view.out, *painted], **latest)
    view.rule.input(
        lambda rule: (gr.update(visible=rule == "word"),) * 2, view.rule, [view.old, view.new], queue=False, **PRIVATE
    )
    stopped = [view.notice, view.cancel]
    stops(view.cancel, runs, bind.plain(handlers.stop), None, stopped)
