"""All pages together, and how they are served."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gradio as gr

from condviz.paths import ASSETS
from condviz.ui import compare, limits, links, models, search, words
from condviz.ui.errors import tab as errors
from condviz.ui.events import Pages
from condviz.ui.learn import tab as learn
from condviz.ui.map import tab as map_tab
from condviz.ui.page import Site, Tab, build_page
from condviz.ui.pool import ModelPool
from condviz.ui.requests import forget_uploads
from condviz.ui.server import middleware, missing, password, routes, trust_proxies
from condviz.ui.theme import build_theme, fill_template, page_head
from condviz.ui.train import tab as train

MAX_UPLOAD = "5mb"
UPLOADS_KEPT_SECONDS = 3600
PRELOAD_AFTER_SECONDS = 5.0
TRIM_SECONDS = 10.0
M_ARENA_MAX, HEAPS = -8, 2
"""Option of glibc's `mallopt`, and its value; by default there are eight for each core."""
TABS: tuple[Tab, ...] = tuple(tab.TAB for tab in (compare, words, map_tab, search, errors, learn, links, train, models))
"""In the order of the header. A new view is one file with a `TAB`, and a line here."""


@dataclass(frozen=True)
class Settings:
    """How the pages are built: what makes their models, which they are, and whether models load in the background."""

    pool: Callable[[], ModelPool] = ModelPool
    tabs: tuple[Tab, ...] = field(default_factory=lambda: TABS)
    preload: bool = True


def build_app(settings: Settings | None = None) -> gr.Blocks:
    """Build the pages, by default all; loads no model and not torch.

    On ZeroGPU it loads both, and does what the pages want done ahead: its processes get the models by being forked, and
    one that is forked while a thread of the server imports a module would wait for that module forever.
    """
    settings = settings or Settings()
    pool = settings.pool()

    with Pages(
        title="CondViz", analytics_enabled=False, fill_width=True, delete_cache=(600, UPLOADS_KEPT_SECONDS)
    ) as blocks:
        site = Site(blocks, settings.tabs, pool)
        ahead = settings.preload and not pool.forks
        if ahead:
            site.on_open.append(partial(_preload, site))
        for tab in settings.tabs:
            build_page(site, tab)
            blocks.unload(forget_uploads)
        site.show_first()
    blocks.api_open = False
    limits.tune_queue(blocks._queue)
    limits.keep_sessions_small(blocks)
    blocks.condviz_pool = pool
    if pool.forks:
        _preload(site).join()

    def begin_anew() -> None:
        site.show_first()
        blocks.config = blocks.get_config_file()  # what is sent to those who open a page from now on

    pool.when_measured = begin_anew

    async def preload_soon() -> None:
        # Importing transformers at once would hold the interpreter while the first page is being sent.
        timer = threading.Timer(PRELOAD_AFTER_SECONDS, _preload, [site])
        timer.daemon = True
        timer.start()

    if ahead:
        blocks.extra_startup_events.append(preload_soon)
    blocks.extra_startup_events.append(_trim_memory)
    return blocks


def launch_options(host: str | None = None, port: int | None = None) -> dict[str, Any]:
    """Return the keyword arguments for `launch`; host and port are by default those that GRADIO_SERVER_... name."""
    fill_template()
    trust_proxies()
    host = host or os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1")
    return {
        "server_name": host,
        "app_kwargs": {"middleware": middleware(host), "routes": routes(), "exception_handlers": {404: missing}},
        **password(),
        "server_port": port or int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
        "theme": build_theme(),
        "head": page_head(),
        "ssr_mode": False,
        "show_error": False,
        "enable_monitoring": False,
        "run_history": False,
        "max_file_size": MAX_UPLOAD,
        "max_threads": limits.AT_ONCE + 36,
        "footer_links": [],
        "favicon_path": ASSETS / "favicon.png",
        "state_session_capacity": 1000,
        "share": False,
    }


def _preload(site: Site) -> threading.Thread:
    """Start a thread that loads the models and then does what the pages want done ahead, one after the other."""
    loading, work = site.pool.preload(), tuple(site.warm_up)
    site.warm_up.clear()

    def run() -> None:
        loading.join()
        for step in work:
            step()
        # A million objects stay for good; the search for unused ones leaves them out, or it would be slow, and rare.
        gc.collect()
        gc.freeze()

    if not work:
        return loading
    thread = threading.Thread(target=run, name="condviz-warm-up", daemon=True)
    thread.start()
    return thread


async def _trim_memory() -> None:
    """Have threads share heaps, and start to give freed memory back to the system, every `TRIM_SECONDS`.

    Vectors that stay in the cache lie between what a request needs for a moment, so the heap gets holes, which glibc
    keeps: memory grew with every thousand comparisons. What only refers to itself is looked for as well: by itself
    Python waits until there is a quarter as much of it as of all that stays.
    """
    if sys.platform != "linux" or not hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        return
    library.mallopt(M_ARENA_MAX, HEAPS)

    def run() -> None:
        while True:
            time.sleep(TRIM_SECONDS)
            if gc.get_freeze_count():
                gc.collect()
            library.malloc_trim(0)

    threading.Thread(target=run, name="condviz-trim", daemon=True).start()
