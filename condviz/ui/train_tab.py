"""The Train tab: a recipe in a form, what it will take, and every training of this machine as it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gradio as gr

from condviz.ui.binder import PRIVATE, Binder
from condviz.ui.components import markup
from condviz.ui.html import tag, text
from condviz.ui.plotly_panel import plotly_panel
from condviz.ui.train_form import build_form, recipe_box
from condviz.ui.train_handlers import FormHandlers
from condviz.ui.train_recipe import FIELDS
from condviz.ui.train_run import METRICS
from condviz.ui.train_service import OFF, TrainService
from condviz.ui.train_view import metric_choices, render_off
from condviz.ui.train_watch import WatchHandlers

TICK_SECONDS = 1.5
_IN_TURN: dict[str, Any] = {**PRIVATE, "concurrency_limit": 1, "concurrency_id": "train-form"}
_REFUSED = "This does not work yet"
_SCRIPT = "condviz.train(element, watch, (name, data) => trigger(name, data));  // 'act' 'take'"
_FILE_SCRIPT = "condviz.mapFile(element, props, watch);"


def build_train_tab(service: TrainService, *, tab: gr.Tab) -> SimpleNamespace:
    """Lay out the tab and connect it; call inside its gr.Tab.

    Args:
        service: Jobs, checks and finished models.
        tab: This tab; opening it shows the newest run.

    Returns:
        The components by the name that the handlers use; fields of the recipe as "field_" and their name. `known`
        changes whenever a new model can be used.
    """
    parts: dict[str, Any] = {}
    if not service.enabled:
        markup(render_off(OFF, service.space), elem_id="cv-train-off")
    with gr.Row(elem_classes="cv-split", equal_height=False):
        with gr.Column(elem_classes="cv-form", elem_id="cv-train-form", scale=0, min_width=320):
            parts |= build_form(local=not service.shared, csts=service.engine.has_csts())
            parts |= recipe_box()
            parts |= _actions(service)
        with gr.Column(elem_id="cv-train-output", elem_classes="cv-output", scale=1, min_width=320):
            parts["table"] = markup("", elem_id="cv-train-table", visible=False)
            parts |= _runs()
    parts["out"] = markup("", elem_id="cv-train-out", script=_FILE_SCRIPT, file=None)
    parts["timer"] = gr.Timer(TICK_SECONDS, active=False)
    parts["shown"] = gr.State({"run": None, "replay": None, "drawn": None})
    states = {"checked": "", "wanted": "", "uploaded": None, "known": [], "written": parts["recipe"].value}
    for name, value in states.items():
        parts[name] = gr.State(value)
    view = SimpleNamespace(**parts)
    _connect_form(view, FormHandlers(service))
    # What goes wrong is said where it was asked for.
    watch = WatchHandlers(service)
    _connect_runs(SimpleNamespace(**{**parts, "notice": parts["run_notice"]}), watch, tab)
    _connect_model(SimpleNamespace(**{**parts, "notice": parts["model_notice"]}), watch)
    return view


def _actions(service: TrainService) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Row(elem_classes="cv-actions"):
        parts["check"] = gr.Button("Check", elem_id="cv-train-check", min_width=80, interactive=service.enabled)
        parts["start"] = gr.Button(
            "Start training", variant="primary", elem_id="cv-train-start", min_width=120, interactive=False
        )
    if service.enabled:
        hint = "Check reads the data and measures a few steps. Then training can start."
        markup(text("p", hint, class_="cv-muted"), elem_id="cv-train-hint")
    parts["notice"] = markup("", elem_id="cv-train-notice")
    parts["preflight"] = markup("", elem_id="cv-train-preflight")
    return parts


def _runs() -> dict[str, Any]:
    parts: dict[str, Any] = {"run_notice": markup("", elem_id="cv-train-run-notice")}
    parts["run"] = markup("", elem_id="cv-train-run", script=_SCRIPT)
    parts["progress"] = markup("", elem_id="cv-train-progress")
    with gr.Column(visible=False, elem_id="cv-train-curves") as parts["box_curves"]:
        with gr.Row(elem_id="cv-train-curve-tools"):
            parts["metric"] = gr.Radio(metric_choices(), value=next(iter(METRICS)), label="Score", min_width=220)
            parts["others"] = gr.Dropdown(
                [], value=[], multiselect=True, label="Compare with", elem_id="cv-train-others", min_width=220,
                visible=False,
            )  # fmt: skip
        with gr.Row(equal_height=False):
            for name, title in (("losses", "Loss"), ("scores", "Score on the rows kept for measuring")):
                with gr.Column(min_width=280):
                    markup(text("h3", title), elem_id=f"cv-train-{name}-head")
                    parts[name] = plotly_panel(elem_id=f"cv-train-{name}-figure", label=title, height=280)
        parts["baselines"] = markup("", elem_id="cv-train-baselines")
    parts["probes"] = markup("", elem_id="cv-train-probes")
    parts |= _model()
    parts["log"] = markup("", elem_id="cv-train-log", script=_SCRIPT)
    parts["history"] = markup("", elem_id="cv-train-history", script=_SCRIPT)
    return parts


def _model() -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Column(visible=False, elem_id="cv-train-model") as parts["box_model"]:
        lead = "It is in the lists of Compare, Router, Map and Errors, and its card is in Models."
        markup(
            tag("div", tag("h2", "The model"), text("p", lead, class_="cv-muted"), class_="cv-section-head"),
            elem_id="cv-train-model-head",
        )
        with gr.Row(elem_classes="cv-actions"):
            parts["pack"] = gr.Button("Pack as zip", elem_id="cv-train-pack", min_width=110)
            parts["zip"] = gr.DownloadButton("Save", visible=False, elem_id="cv-train-zip", min_width=110)
        with gr.Accordion("Put it on the hub", open=False, elem_id="cv-train-hub"):
            parts["repository"] = gr.Textbox(
                label="Repository", placeholder="owner/name", elem_id="cv-train-repository"
            )
            parts["token"] = gr.Textbox(
                label="Token with the right to write", type="password", elem_id="cv-train-token",
                info="Used once for this, and kept nowhere.",
            )  # fmt: skip
            parts["private"] = gr.Checkbox(True, label="Private repository", elem_id="cv-train-private")
            parts["push"] = gr.Button("Put it on the hub", elem_id="cv-train-push", min_width=140)
        parts["model_notice"] = markup("", elem_id="cv-train-model-notice")
    return parts


def _connect_form(view: SimpleNamespace, handlers: FormHandlers) -> None:
    """Connect the form: one edit after the other, each of the text that the one before has left on the server.

    The text in the browser is older while an answer is on its way, and edits of two fields would undo each other.
    """
    bind = Binder(view, _REFUSED)
    fields = [getattr(view, f"field_{name}") for name in FIELDS]
    unchecked = [view.notice, view.preflight, view.checked, view.start]
    written = [*unchecked, view.recipe, view.written]
    filled = [*written, view.data, view.box_table, view.note, *fields]
    last: dict[str, Any] = {"trigger_mode": "always_last", **_IN_TURN}

    def edits(method: Callable[..., Iterator[dict]], **fixed: Any) -> Callable:  # noqa: ANN401
        return bind.plain(_keeping(method), **fixed)

    chosen = [view.preset, view.data, view.uploaded]
    view.preset.input(edits(handlers.preset), chosen, filled, **last)
    gr.on([view.recipe.blur, view.recipe.submit], edits(handlers.text), view.recipe, filled, **last)
    view.load.upload(edits(handlers.load), view.load, filled, **last)
    for name, field in zip(FIELDS, fields, strict=True):
        outputs = filled if name in ("method", "tuning") else written
        # A text box tells of keys that write a character, but not of deleting, pasting and keyboards on a screen.
        events = [field.input, field.blur, field.submit] if isinstance(field, gr.Textbox) else [field.input]
        gr.on(events, edits(handlers.field, name=name), [view.written, field], outputs, **last)
    tables = [*filled, view.table]
    view.data.input(edits(handlers.data), [view.data, view.written, view.uploaded], tables, **last)
    sources = [view.upload, view.share, view.written]
    view.upload.change(edits(handlers.upload), sources, [*tables, view.uploaded], **last)
    view.share.input(edits(handlers.share), sources, [*tables, view.uploaded], **last)
    # One at a time: two measured tries at once would each find a slower machine.
    settled = view.check.click(bind.plain(handlers.settle), None, unchecked, **_IN_TURN)
    settled.then(bind.plain(handlers.check), [view.written, view.data], unchecked, concurrency_limit=1, **PRIVATE)
    view.start.click(bind.plain(handlers.start), [view.written, view.checked], [*unchecked, view.wanted], **_IN_TURN)
    view.download.click(bind.plain(handlers.download), view.written, [view.notice, view.out], **_IN_TURN)
    view.run.take(bind.with_data(_keeping(handlers.take)), None, filled, **last)


def _keeping(method: Callable[..., Iterator[dict]]) -> Callable[..., Iterator[dict]]:
    """Let a handler that writes the recipe leave the text on the server, too."""

    def steps(*values: Any, **fixed: Any) -> Iterator[dict]:  # noqa: ANN401
        for step in method(*values, **fixed):
            yield {**step, "written": step["recipe"]} if "recipe" in step else step

    return steps


def _connect_runs(view: SimpleNamespace, handlers: WatchHandlers, tab: gr.Tab) -> None:
    bind = Binder(view, _REFUSED)
    seen = [view.shown, view.others, view.metric]
    painted = [
        view.timer, view.known, view.shown, view.run, view.progress, view.losses, view.scores, view.baselines,
        view.probes, view.others, view.box_curves, view.box_model, view.zip, view.log, view.history, view.notice,
    ]  # fmt: skip
    last: dict[str, Any] = {"trigger_mode": "always_last", **PRIVATE}
    tab.select(bind.plain(handlers.opened), seen, painted, **PRIVATE)
    # In the queue: of events beside it the browser is not told which states have changed, and `known` would be lost.
    view.timer.tick(bind.plain(handlers.tick), seen, painted, **PRIVATE)
    view.wanted.change(bind.plain(handlers.started), [view.wanted, *seen], painted, **last)
    gr.on([view.others.input, view.metric.input], bind.plain(handlers.compare), seen, painted, **last)
    for part in (view.run, view.history):
        part.act(bind.with_data(handlers.act), seen, painted, **last)


def _connect_model(view: SimpleNamespace, handlers: WatchHandlers) -> None:
    bind = Binder(view, _REFUSED)
    view.pack.click(bind.plain(handlers.pack), view.shown, [view.notice, view.zip], **PRIVATE)
    sent = [view.repository, view.token, view.private, view.shown]
    view.push.click(bind.plain(handlers.push), sent, [view.notice, view.token], **PRIVATE)
