"""The Compare tab: two sentences, some conditions, every model in one table, and the words behind each number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.data.examples import Example, load_examples
from condviz.ui.assets import load_conditions
from condviz.ui.binder import PRIVATE, SCORING, Binder, stops
from condviz.ui.compare_handlers import CompareHandlers
from condviz.ui.components import ModelPicker, markup, model_picker
from condviz.ui.form_state import FormState
from condviz.ui.gallery import render_gallery
from condviz.ui.result_view import UNCONDITIONAL
from condviz.ui.service import Service, menu_title

_RESULT_SCRIPT = """condviz.result(element, watch, {
  cell: (data) => trigger('cell', data), pick: (data) => trigger('pick', data)});"""
_GALLERY_SCRIPT = "condviz.gallery(element, watch, (data) => trigger('example', data));"
_FINDER_SCRIPT = "condviz.finder(element, (data) => trigger('adopt', data));"


@dataclass
class CompareView:
    """The components of the tab, by the name that the handlers use."""

    sentence1: gr.Textbox
    sentence2: gr.Textbox
    conditions: gr.Textbox
    models: ModelPicker
    run: gr.Button
    auto: gr.Button
    cancel: gr.Button
    undo: gr.Button
    redo: gr.Button
    notice: gr.HTML
    result: gr.HTML
    attribution: gr.HTML
    gallery: gr.HTML
    finder_model: gr.Dropdown
    finder_run: gr.Button
    finder: gr.HTML
    shown: gr.State
    history: gr.State


def build_compare_tab(
    service: Service, *, page: gr.Blocks, first_screen: dict[str, Any] | None, default: FormState
) -> CompareView:
    """Lay out the tab and connect it; call inside a gr.Tab.

    Args:
        service: Scores.
        page: The page that the tab stands in; opening it restores the state of its address.
        first_screen: Result to show before any model is loaded, or None.
        default: What stands in the form at the start.
    """
    examples, library = load_examples(), load_conditions()
    handlers = CompareHandlers(service, {example.id: example for example in examples}, dict(library))
    view = _layout(service, handlers, examples=examples, default=default, first_screen=first_screen)
    _connect(view, handlers, page)
    return view


def finder_choices(service: Service) -> list[tuple[str, str]]:
    """Give the models that can rank conditions: (title, name)."""
    return [(menu_title(info), info.name) for info in service.infos() if info.method != UNCONDITIONAL]


def _layout(
    service: Service,
    handlers: CompareHandlers,
    *,
    examples: list[Example],
    default: FormState,
    first_screen: dict[str, Any] | None,
) -> CompareView:
    parts: dict[str, Any] = {}
    with gr.Row(elem_id="cv-compare", equal_height=False):
        with gr.Column(elem_id="cv-form", scale=0, min_width=320):
            parts |= _form(service, default)
        with gr.Column(elem_id="cv-output", scale=1, min_width=320):
            result, words = handlers.first_paint(first_screen)
            parts["result"] = markup(result, elem_id="cv-result", script=_RESULT_SCRIPT)
            parts["attribution"] = markup(words, elem_id="cv-attribution")
    gallery = render_gallery(examples)
    parts["gallery"] = markup(gallery, elem_id="cv-gallery", script=_GALLERY_SCRIPT, visible=bool(gallery))
    with gr.Column(elem_id="cv-finder", visible=bool(handlers.finder_conditions)):
        head = (
            '<div class="cv-section-head"><h2>Condition finder</h2><p class="cv-muted">Which aspects bring this pair '
            f"together, and which set it apart? Ranks {len(handlers.finder_conditions)} conditions.</p></div>"
        )
        markup(head, elem_id="cv-finder-head")
        with gr.Row(elem_id="cv-finder-tools"):
            readers = finder_choices(service)
            chosen = next((name for _, name in readers if name in default.models), readers[0][1] if readers else None)
            parts["finder_model"] = gr.Dropdown(readers, value=chosen, label="Model", elem_id="cv-finder-model")
            parts["finder_run"] = gr.Button("Rank conditions", elem_id="cv-finder-run")
        parts["finder"] = markup("", elem_id="cv-finder-result", script=_FINDER_SCRIPT)
    shown = handlers.first_shown(first_screen)
    return CompareView(**parts, shown=gr.State(shown), history=gr.State(handlers.first_history(default)))


def _form(service: Service, default: FormState) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for index, value in ((1, default.sentence1), (2, default.sentence2)):
        parts[f"sentence{index}"] = gr.Textbox(
            value, label=f"Sentence {index}", lines=2, max_lines=8, elem_id=f"cv-sentence{index}",
            elem_classes="cv-sentence-box", html_attributes=InputHTMLAttributes(spellcheck=False),
        )  # fmt: skip
    parts["conditions"] = gr.Textbox(
        "\n".join(default.conditions),
        label="Conditions, one per line",
        info="Alt + \N{UPWARDS ARROW} or \N{DOWNWARDS ARROW} moves a line. Up to 20.",
        lines=3,
        max_lines=20,
        elem_id="cv-conditions",
        html_attributes=InputHTMLAttributes(spellcheck=False),
    )
    parts["models"] = model_picker(service.infos(), default.models, elem_id="cv-models")
    with gr.Row(elem_id="cv-actions"):
        parts["run"] = gr.Button("Compare", variant="primary", elem_id="cv-run", min_width=90)
        parts["cancel"] = gr.Button("Stop", elem_id="cv-cancel", visible=False, min_width=60)
        parts["undo"] = gr.Button("Undo", elem_id="cv-undo", interactive=False, min_width=60)
        parts["redo"] = gr.Button("Redo", elem_id="cv-redo", interactive=False, min_width=60)
    # The script clicks it when typing pauses; "hidden" keeps it in the page.
    parts["auto"] = gr.Button("Score after typing", elem_id="cv-auto", visible="hidden")
    parts["notice"] = markup("", elem_id="cv-notice")
    return parts


def _connect(view: CompareView, handlers: CompareHandlers, page: gr.Blocks) -> None:
    bind = Binder(view)
    form = [view.sentence1, view.sentence2, view.conditions, view.models]
    memory = [view.shown, view.history]
    done = [view.notice, view.result, view.attribution, *memory, view.cancel, view.undo, view.redo]
    run = bind.plain(handlers.run)
    runs = [
        view.run.click(run, form + memory, done, **SCORING),
        gr.on([view.auto.click, view.models.input], run, form + memory, done, trigger_mode="always_last", **SCORING),
        view.undo.click(bind.plain(handlers.travel, forward=False), memory, form + done, **SCORING),
        view.redo.click(bind.plain(handlers.travel, forward=True), memory, form + done, **SCORING),
        view.gallery.example(bind.with_data(handlers.example), memory, form + done, **SCORING),
        view.finder.adopt(bind.with_data(handlers.adopt), form + memory, form + done, **SCORING),
        page.load(bind.with_query(handlers.open_link), memory, form + done, **SCORING),
    ]
    words = [view.notice, view.attribution, view.shown]
    view.result.cell(bind.with_data(handlers.cell), view.shown, words, trigger_mode="always_last", **SCORING)
    chosen = [view.notice, view.result, view.shown]
    view.result.pick(bind.with_data(handlers.pick), view.shown, chosen, trigger_mode="always_last", **PRIVATE)
    pair = [view.sentence1, view.sentence2, view.finder_model]
    search = view.finder_run.click(bind.plain(handlers.find), pair, [view.notice, view.finder], **SCORING)
    stopped = [view.notice, view.result, view.cancel]
    stops(view.cancel, [*runs, search], bind.plain(handlers.stop), view.shown, stopped)
