"""The Compare tab: two sentences, some conditions, every model in one table, and the words behind each number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.ui.assets import Example, load_conditions, load_examples
from condviz.ui.compare_handlers import CompareHandlers
from condviz.ui.gallery import render_gallery
from condviz.ui.guard import guarded
from condviz.ui.picker import ModelPicker
from condviz.ui.service import Service
from condviz.ui.state import FormState

_RESULT_SCRIPT = """condviz.result(element, watch, {
  cell: (data) => trigger('cell', data), pick: (data) => trigger('pick', data)});"""
_GALLERY_SCRIPT = "condviz.gallery(element, watch, (data) => trigger('example', data));"
_FINDER_SCRIPT = "condviz.finder(element, (data) => trigger('adopt', data));"
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
SCORING: dict[str, Any] = {**PRIVATE, "concurrency_limit": 2, "concurrency_id": "model"}


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


def build_compare_tab(service: Service, *, first_screen: dict[str, Any] | None, default: FormState) -> CompareView:
    """Lay out the tab and connect it; call inside a gr.Tab.

    Args:
        service: Scores.
        first_screen: Result to show before any model is loaded, or None.
        default: What stands in the form at the start.
    """
    examples, library = load_examples(), load_conditions()
    handlers = CompareHandlers(service, {example.id: example for example in examples}, dict(library))
    view = _layout(service, handlers, examples=examples, default=default, first_screen=first_screen)
    _connect(view, handlers)
    return view


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
            parts["result"] = gr.HTML(result, elem_id="cv-result", js_on_load=_RESULT_SCRIPT)
            parts["attribution"] = gr.HTML(words, elem_id="cv-attribution", js_on_load=None)
    gallery = render_gallery(examples)
    parts["gallery"] = gr.HTML(gallery, elem_id="cv-gallery", js_on_load=_GALLERY_SCRIPT, visible=bool(gallery))
    with gr.Column(elem_id="cv-finder", visible=bool(handlers.library)):
        gr.HTML(
            '<div class="cv-section-head"><h2>Condition finder</h2><p class="cv-muted">Which aspects bring this pair '
            f"together, and which set it apart? Ranks {len(handlers.library)} conditions.</p></div>",
            js_on_load=None,
        )
        with gr.Row(elem_id="cv-finder-tools"):
            readers = [(i.title, i.name) for i in service.infos() if i.name != "minilm"]
            chosen = next((name for _, name in readers if name in default.models), readers[0][1] if readers else None)
            parts["finder_model"] = gr.Dropdown(readers, value=chosen, label="Model", elem_id="cv-finder-model")
            parts["finder_run"] = gr.Button("Rank conditions", elem_id="cv-finder-run")
        parts["finder"] = gr.HTML("", elem_id="cv-finder-result", js_on_load=_FINDER_SCRIPT)
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
    parts["models"] = ModelPicker(service.infos(), default.models, elem_id="cv-models")
    with gr.Row(elem_id="cv-actions"):
        parts["run"] = gr.Button("Compare", variant="primary", elem_id="cv-run", min_width=90)
        parts["cancel"] = gr.Button("Stop", elem_id="cv-cancel", visible=False, min_width=60)
        parts["undo"] = gr.Button("Undo", elem_id="cv-undo", interactive=False, min_width=60)
        parts["redo"] = gr.Button("Redo", elem_id="cv-redo", interactive=False, min_width=60)
    # The script clicks it when typing pauses; "hidden" keeps it in the page.
    parts["auto"] = gr.Button("Score after typing", elem_id="cv-auto", visible="hidden")
    parts["notice"] = gr.HTML("", elem_id="cv-notice", js_on_load=None)
    return parts


def _connect(view: CompareView, handlers: CompareHandlers) -> None:
    form = [view.sentence1, view.sentence2, view.conditions, view.models]
    memory = [view.shown, view.history]
    done = [view.notice, view.result, view.attribution, *memory, view.cancel, view.undo, view.redo]
    guard = guarded(view.notice, updates={view.cancel: gr.update(visible=False)})

    def named(steps: Iterator[dict[str, Any]]) -> Iterator[dict]:
        for step in steps:
            yield {getattr(view, name): update for name, update in step.items()}

    @guard
    def run(*values: Any) -> Iterator[dict]:  # noqa: ANN401 - values of the components in `form` and `memory`
        yield from named(handlers.run(*values))

    @guard
    def step_back(shown: dict, history: dict) -> Iterator[dict]:
        yield from named(handlers.travel(shown, history, forward=False))

    @guard
    def step_forward(shown: dict, history: dict) -> Iterator[dict]:
        yield from named(handlers.travel(shown, history, forward=True))

    @guard
    def example(shown: dict, history: dict, event: gr.EventData) -> Iterator[dict]:
        yield from named(handlers.example(event._data, shown, history))

    @guard
    def add(*values: Any, event: gr.EventData) -> Iterator[dict]:  # noqa: ANN401
        yield from named(handlers.add(event._data, *values))

    @guard
    def cell(shown: dict, event: gr.EventData) -> Iterator[dict]:
        yield from named(handlers.cell(event._data, shown))

    @guard
    def pick(shown: dict, event: gr.EventData) -> Iterator[dict]:
        yield from named(handlers.pick(event._data, shown))

    @guard
    def find(sentence1: str, sentence2: str, model: str) -> Iterator[dict]:
        yield from named(handlers.find(sentence1, sentence2, model))

    @guard
    def stop(shown: dict) -> Iterator[dict]:
        yield from named(handlers.stop(shown))

    runs = [
        view.run.click(run, form + memory, done, **SCORING),
        gr.on([view.auto.click, view.models.input], run, form + memory, done, trigger_mode="always_last", **SCORING),
        view.undo.click(step_back, memory, form + done, **SCORING),
        view.redo.click(step_forward, memory, form + done, **SCORING),
        view.gallery.example(example, memory, form + done, **SCORING),
        view.finder.adopt(add, form + memory, form + done, **SCORING),
    ]
    words = [view.notice, view.attribution, view.shown]
    view.result.cell(cell, view.shown, words, trigger_mode="always_last", **SCORING)
    view.result.pick(pick, view.shown, [view.notice, view.result, view.shown], trigger_mode="always_last", **PRIVATE)
    search = view.finder_run.click(
        find, [view.sentence1, view.sentence2, view.finder_model], [view.notice, view.finder], **SCORING
    )
    view.cancel.click(
        stop, view.shown, [view.notice, view.result, view.cancel], cancels=[*runs, search], queue=False, **PRIVATE
    )

    @guard
    def open_link(shown: dict, history: dict, request: gr.Request) -> Iterator[dict]:
        yield from named(handlers.open_link(str(request.query_params), shown, history))

    gr.context.Context.root_block.load(open_link, memory, form + done, **SCORING)
