"""The page as a whole: header, tabs, footer, and how it is served."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

import condviz
from condviz.analysis.map_result import EmbeddingMap
from condviz.data.examples import load_examples
from condviz.ui.api import add_api
from condviz.ui.assets import ASSETS, load_first_screen, load_links_scene, load_map_scene
from condviz.ui.background import Once
from condviz.ui.binder import PRIVATE
from condviz.ui.compare_tab import CompareView, build_compare_tab
from condviz.ui.components import markup
from condviz.ui.engine import Engine
from condviz.ui.errors_api import add_errors_api
from condviz.ui.errors_service import ErrorsService
from condviz.ui.errors_tab import build_errors_tab
from condviz.ui.form_state import FormState
from condviz.ui.html import esc, tag
from condviz.ui.links_api import add_links_api
from condviz.ui.links_service import LinksService
from condviz.ui.links_tab import build_links_tab
from condviz.ui.map_api import add_map_api
from condviz.ui.map_service import MapService
from condviz.ui.map_tab import build_map_tab
from condviz.ui.model_lists import keep_lists
from condviz.ui.model_pool import ModelPool
from condviz.ui.models_tab import build_models_tab, render_models, render_runtime
from condviz.ui.router_api import add_router_api
from condviz.ui.router_service import RouterService
from condviz.ui.router_tab import build_router_tab
from condviz.ui.service import Service
from condviz.ui.status_view import render_status
from condviz.ui.theme import build_theme, page_head
from condviz.ui.train_api import add_train_api
from condviz.ui.train_service import TrainService
from condviz.ui.train_tab import build_train_tab

MAX_UPLOAD = "5mb"
PRELOAD_AFTER_SECONDS = 5.0
SHOWN_AT_START = 6
"""Models chosen when there is no first screen: as many as fit a laptop's height."""


@dataclass(frozen=True)
class Settings:
    """How the page is built.

    Attributes:
        engine: The calls into the core.
        models: Names to offer; None offers all.
        preload: True loads all models in the background once the server answers.
        first_screen: Gives the result shown before any model has loaded, or None to start empty.
        map_scene: Gives the map shown before any model has loaded, or None to start empty.
        links_scene: Gives the links shown before any model has loaded, or None to compute them.
    """

    engine: Engine = field(default_factory=Engine)
    models: tuple[str, ...] | None = None
    preload: bool = True
    first_screen: Callable[[], dict[str, Any] | None] = load_first_screen
    map_scene: Callable[[], dict[str, Any] | None] = load_map_scene
    links_scene: Callable[[], dict[str, Any] | None] = load_links_scene


def build_app(settings: Settings | None = None) -> gr.Blocks:
    """Build the page; loads no model and not torch.

    Args:
        settings: How; the default serves everything.
    """
    settings = settings or Settings()
    gr.set_static_paths([ASSETS / "css", ASSETS / "js", ASSETS / "fonts"])
    names = settings.models if settings.models is not None else tuple(settings.engine.list_models())
    pool = ModelPool(names, settings.engine.load)
    service = Service(settings.engine, pool)
    screen = settings.first_screen()
    default = _default_form(screen, names)
    with gr.Blocks(title="CondViz", analytics_enabled=False, fill_width=True) as demo:
        markup(_header(), elem_id="cv-header", script="condviz.header(element);")
        with gr.Tabs(elem_id="cv-tabs") as tabs:
            with gr.Tab("Compare", id="compare"):
                compare = build_compare_tab(service, page=demo, first_screen=screen, default=default)
            with gr.Tab("Router", id="router") as router_tab:
                router = RouterService(service, settings.engine.router)
                words = build_router_tab(router, page=demo, tabs=tabs, tab=router_tab, compare=compare, default=default)
            with gr.Tab("Map", id="map") as map_tab:
                scene = settings.map_scene()
                maps = MapService(service, settings.engine.map, EmbeddingMap.from_dict(scene) if scene else None)
                map_view = build_map_tab(maps, tab=map_tab)
            with gr.Tab("Errors", id="errors") as errors_tab:
                errors = ErrorsService(service, settings.engine.errors)
                errors_view = build_errors_tab(errors, page=demo, tabs=tabs, tab=errors_tab)
            with gr.Tab("Links", id="links") as links_tab:
                links = LinksService(service, settings.engine.links, settings.links_scene())
                build_links_tab(links, page=demo, tabs=tabs, tab=links_tab)
            with gr.Tab("Train", id="train") as train_tab:
                training = TrainService(service, settings.engine.train)
                train = build_train_tab(training, tab=train_tab)
            with gr.Tab("Models", id="models") as models_tab:
                table, runtime = build_models_tab(service)
        status = markup(render_status(pool), elem_id="cv-status", script="condviz.status(element, watch);")
        markup(_footer(), elem_id="cv-footer")
        _keep_current(service, compare, status=status, tab=models_tab, outputs=(table, runtime))
        add_api(service)
        add_router_api(router)
        add_map_api(maps)
        add_errors_api(errors)
        add_links_api(links)
        add_train_api(training)
        keep_lists(
            service, page=demo, train=(train, training), compare=compare, router=(words, router), maps=(map_view, maps),
            errors=errors_view,
        )  # fmt: skip
        later = (errors_view.warm_up, maps.warm_up)
        if settings.preload:
            demo.load(lambda: _preload(pool, screen, later), None, None, queue=False, **PRIVATE)
    demo.queue(api_open=False, default_concurrency_limit=8)
    demo.condviz_pool = pool
    if settings.preload:
        demo.extra_startup_events.append(_preloader(pool, screen, later))
    return demo


def launch_options() -> dict[str, Any]:
    """Give the keyword arguments for `demo.launch`.

    The address is 127.0.0.1:7860; GRADIO_SERVER_NAME and GRADIO_SERVER_PORT change it.
    """
    return {
        "server_name": os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        "server_port": int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
        "theme": build_theme(),
        "head": page_head(),
        "ssr_mode": False,
        "show_error": False,
        "enable_monitoring": False,
        "run_history": False,
        "max_file_size": MAX_UPLOAD,
        "footer_links": [],
        "favicon_path": ASSETS / "favicon.png",
        "state_session_capacity": 1000,
        "share": False,
    }


def _preload(pool: ModelPool, screen: dict[str, Any] | None, later: Sequence[Once]) -> None:
    """Load the models in a thread, then do the rest, one after the other."""
    thread = pool.preload(screen["shown"]["form"]["models"] if screen else ())
    for work in later:
        thread = work.start(after=thread)


def _preloader(
    pool: ModelPool, screen: dict[str, Any] | None, later: Sequence[Once]
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Start loading once the first visitor sees the page, or after a while without one.

    Importing transformers at once would hold the interpreter while the first page is being sent.
    """

    async def start() -> None:
        timer = threading.Timer(PRELOAD_AFTER_SECONDS, _preload, (pool, screen, later))
        timer.daemon = True
        timer.start()

    return start


def _default_form(screen: dict[str, Any] | None, names: Sequence[str]) -> FormState:
    if screen:
        form = FormState.from_dict(screen["shown"]["form"])
        return form.with_models(names)
    examples = load_examples()
    chosen = tuple(names[:SHOWN_AT_START])
    if examples:
        return FormState(examples[0].sentence1, examples[0].sentence2, examples[0].conditions, chosen)
    return FormState(models=chosen)


def _keep_current(
    service: Service, compare: CompareView, *, status: gr.HTML, tab: gr.Tab, outputs: tuple[gr.HTML, gr.HTML]
) -> None:
    """Poll the pool while models load, and refresh the Models tab whenever it is opened."""
    timer = gr.Timer(0.7)

    def tick() -> tuple[Any, Any, Any]:
        done = service.pool.settled
        return render_status(service.pool), gr.Timer(active=not done), render_models(service)

    timer.tick(tick, None, [status, timer, outputs[0]], queue=False, **PRIVATE)
    tab.select(lambda: (render_models(service), render_runtime(service)), None, list(outputs), queue=False, **PRIVATE)


def _header() -> str:
    mark = (
        '<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true"><path d="M16 3v26" stroke="currentColor" '
        'stroke-width="1.5"/><circle cx="8" cy="11" r="4" class="cv-mark-pos"/><circle cx="24" cy="21" r="4" '
        'class="cv-mark-neg"/><path d="M8 15v10M24 17V7" stroke="currentColor" stroke-width="1.5" fill="none"/></svg>'
    )
    title = tag("h1", mark, "CondViz", class_="cv-brand")
    line = tag("p", "How alike are two sentences? It depends on what you ask about.", class_="cv-tagline")
    toggle = tag(
        "button", "Dark", type="button", class_="cv-button", data_theme_toggle=True, aria_pressed="false",
        data_testid="theme-toggle",
    )  # fmt: skip
    return tag("header", tag("div", title, line, class_="cv-brand-box"), toggle, class_="cv-header")


LIMITS = """A score is a model’s output, not a fact about the sentences. Raw cosines of two models cannot be compared;
the percentile says where a score stands among reference pairs of the same model. Leaving out a word also makes the
sentence ungrammatical, so word effects mix meaning with surprise. Models marked “not trained” were never taught to
follow a condition. Texts are scored on the machine that runs this page and are not stored."""


def _footer() -> str:
    version = f"CondViz {condviz.__version__}, Apache-2.0"
    return tag(
        "footer",
        tag("div", tag("h2", "What this does not show"), tag("p", esc(LIMITS)), class_="cv-limits"),
        tag("p", esc(version), class_="cv-muted"),
        class_="cv-footer",
    )
