"""What all tabs share: the frame of the page, its address, folded sections, the state of the models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import isgeneratorfunction
from typing import Any

import gradio as gr
from gradio.events import Dependency

import condviz
from condviz.training.jobs import is_enabled
from condviz.ui.events import PRIVATE, connect
from condviz.ui.glossary import TERMS
from condviz.ui.markup import html, notice, render
from condviz.ui.pool import ModelPool
from condviz.ui.state import read_link

TOUR = (
    {
        "title": "One pair, several questions",
        "text": "Type two sentences and some conditions. Each bar shows how alike the sentences are in that one "
        "respect; the thin mark shows how alike they are when nothing is asked.",
    },
    {
        "title": "Why?",
        "text": "Under each bar stand the words that carry it. The Words tab shows which words a router picks as the "
        "condition changes.",
    },
    {
        "title": "Many sentences",
        "text": "The Map draws hundreds of sentences before and after the condition. Errors takes your own rated pairs "
        "and finds where a model goes wrong.",
    },
    {
        "title": "Keep it",
        "text": "Whatever you see has a link: copy the address of the page. Underlined terms open a short explanation. "
        "Press P to present.",
    },
)


@dataclass(frozen=True)
class Tab:
    """A tab of the page; to add one, write a file with a `TAB` and list it in `condviz/ui/app.py`.

    Attributes:
        id: Its name in links, `?t=id`.
        label: On the page.
        build: Lays it out and connects it; called inside its gr.Tab. May return what other tabs use.
    """

    id: str
    label: str
    build: Callable[[Page], Any]


@dataclass
class Page:
    """The page while it is built.

    Attributes:
        blocks: The page itself; `blocks.load` fires when it is opened.
        tabs: The row of tabs.
        address: Fires `navigate` with {"query": ...} when the visitor goes back or forward.
        pool: The models.
        models_changed: State that changes when a model was trained or deleted; menus listen to it.
        tab: The tab that is being built; `tab.select` fires when it is opened.
        built: What `build` of each finished tab returned, by id.
        warm_up: Work to do once all models are loaded, one after the other; must not raise.
    """

    blocks: gr.Blocks
    tabs: gr.Tabs
    address: gr.HTML
    pool: ModelPool
    models_changed: gr.State
    tab: gr.Tab | None = None
    built: dict[str, Any] = field(default_factory=dict)
    warm_up: list[Callable[[], object]] = field(default_factory=list)

    def on_link(
        self,
        tab: str,
        handler: Callable[..., Any],
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *,
        notice: gr.HTML,
        stop: gr.Button | None = None,
        heavy: bool = True,
    ) -> list[Dependency]:
        """Restore the state of a tab from its link: when the page is opened, and on Back and Forward.

        Args:
            tab: Id of the tab.
            handler: Takes the `Values` of the link, then the values of `inputs`; answers as in `connect`.
            inputs: Components whose values it takes.
            outputs: Components that it may update.
            notice: Where errors are shown.
            stop: Button that cancels the run.
            heavy: The handler runs a model.
        """

        def answer(query: str, values: Sequence[Any]) -> Iterator[dict]:
            asked, found = read_link(query)
            if asked != tab:
                yield {notice: gr.skip()}
            elif isgeneratorfunction(handler):
                yield from handler(found, *values)
            else:
                yield handler(found, *values)

        def opened(request: gr.Request, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from answer(str(request.query_params), values)

        def moved(event: gr.EventData, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from answer(str(event.query), values)

        return [
            connect(trigger, handle, list(inputs), outputs, notice=notice, stop=stop, heavy=heavy)
            for trigger, handle in ((self.blocks.load, opened), (self.address.navigate, moved))
        ]

    def on_models(self, menu: gr.Dropdown, suits: Callable[[Any], bool] = lambda info: True) -> None:
        """Keep the choices of a menu of models current.

        Args:
            menu: The menu.
            suits: Whether the view can use a model.
        """

        def update() -> Any:  # noqa: ANN401
            return gr.update(choices=self.pool.choices(suits))

        gr.on([self.models_changed.change, self.blocks.load], update, None, menu, queue=False, **PRIVATE)


def section(title: str, *, elem_id: str) -> gr.Accordion:
    """Lay out a folded section; connect `.expand` to what it computes.

    The script of the page lists the sections of a tab on top of them and keeps the open ones in the address.

    Args:
        title: As the visitor reads it.
        elem_id: `cv-TAB-NAME`; NAME is its name in links.
    """
    return gr.Accordion(title, open=False, elem_id=elem_id, elem_classes="cv-section")


def build_frame(blocks: gr.Blocks, tabs: Sequence[Tab], pool: ModelPool) -> Page:
    """Lay out header, tabs, the state of the models and footer; call inside gr.Blocks.

    Args:
        blocks: The page.
        tabs: In the order of the page.
        pool: The models.
    """
    labels = {tab.label: tab.id for tab in tabs}
    address = html(
        render("header.html", tabs=labels, tour=TOUR),
        elem_id="cv-header",
        script="condviz.header(element, (data) => trigger('navigate', data));",
    )
    wrong = html("", elem_id="cv-page-notice")
    row = gr.Tabs(elem_id="cv-tabs")
    page = Page(blocks, row, address, pool, gr.State(0))
    with row:
        for tab in tabs:
            with gr.Tab(tab.label, id=tab.id) as page.tab:
                page.built[tab.id] = tab.build(page)
    status = html(_status(pool), elem_id="cv-status", script="condviz.status(element, watch);")
    html(render("footer.html", terms=TERMS, version=condviz.__version__, storage=storage()), elem_id="cv-footer")
    _open_tab(page, [tab.id for tab in tabs], wrong)
    timer = gr.Timer(0.7)
    gr.on(
        [timer.tick, page.models_changed.change], lambda: (_status(pool), gr.Timer(active=not pool.settled)),
        None, [status, timer], queue=False, **PRIVATE,
    )  # fmt: skip
    return page


def storage() -> str:
    """Return what this server keeps of what visitors type and upload, and for how long."""
    texts = (
        "Sentences and conditions are scored on the machine that runs this page; they are kept in memory while they "
    )
    texts += "are in use and written nowhere. They are part of the page’s address, so whoever gets the link sees them. "
    uploads = "Uploaded files are deleted with the visit, at the latest after an hour; a graph or a list of texts "
    uploads += "stays in memory until newer ones take its place. "
    kept = "A table for training is kept for a day; a training keeps its tables and its model until it is deleted."
    return texts + uploads + (kept if is_enabled() else "")


def _open_tab(page: Page, known: Sequence[str], wrong: gr.HTML) -> None:
    def choose(query: str) -> dict:
        asked, _ = read_link(query)
        if asked in known:
            return {page.tabs: gr.Tabs(selected=asked), wrong: ""}
        if not asked:
            return {wrong: ""}
        names = ", ".join(known)
        return {wrong: notice("", f"This link asks for the tab {asked[:40]!r}. There is none; there are: {names}.")}

    def opened(request: gr.Request) -> dict:
        return choose(str(request.query_params))

    def moved(event: gr.EventData) -> dict:
        return choose(str(event.query))

    for trigger, handle in ((page.blocks.load, opened), (page.address.navigate, moved)):
        connect(trigger, handle, None, [page.tabs], notice=wrong, queue=False)


def _status(pool: ModelPool) -> str:
    states = pool.states()
    ready = sum(state.phase == "ready" for state in states.values())
    failed = {name: state.reason for name, state in states.items() if state.phase == "failed"}
    loading = next((name for name, state in states.items() if state.phase == "loading"), "")
    if ready == len(states):
        line = f"All {ready} models are loaded."
    elif ready + len(failed) == len(states):
        line = f"{ready} of {len(states)} models are loaded, {len(failed)} failed."
    else:
        line = f"{ready} of {len(states)} models are loaded" + (f"; loading {loading}." if loading else ".")
    phases = {name: state.phase for name, state in states.items()}
    share = round(100 * ready / max(1, len(states)))
    return render("status.html", line=line, failed=failed, phases=phases, share=share, settled=pool.settled)
