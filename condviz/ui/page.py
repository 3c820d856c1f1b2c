"""What all tabs share: the frame of the page, its address, folded sections, the state of the models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes
from gradio.events import Dependency

import condviz
from condviz.errors import DataError
from condviz.training.jobs import is_enabled
from condviz.ui.events import PRIVATE, connect, steps_of
from condviz.ui.markup import TERMS, html, notice, render
from condviz.ui.pool import ModelPool
from condviz.ui.state import Values, read_link

Shown = TypeVar("Shown")


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

    def on_query(
        self, handler: Callable[..., Iterator[dict]], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
        **options: Any,  # noqa: ANN401 - as `connect`
    ) -> list[Dependency]:  # fmt: skip
        """Give a handler the query string of the page, then its inputs: when it is opened, and on Back and Forward."""

        def opened(request: gr.Request, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from handler(str(request.query_params), *values)

        def moved(event: gr.EventData, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from handler(str(event.query), *values)

        pairs = ((self.blocks.load, opened), (self.address.navigate, moved))
        return [connect(trigger, handle, list(inputs), outputs, **options) for trigger, handle in pairs]

    def on_link(
        self, tab: str, handler: Callable[..., Any], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), *,
        notice: gr.HTML, needs: Sequence[str] = (), heavy: bool = True, **options: Any,  # noqa: ANN401 - as `connect`
    ) -> list[Dependency]:  # fmt: skip
        """Restore the state of a tab from its link: when the page is opened, and on Back and Forward.

        Args:
            tab: Id of the tab.
            handler: Takes the `Values` of the link, then the values of `inputs`; answers as in `connect`.
            inputs: Components whose values it takes.
            outputs: Components that it may update.
            notice: Where errors are shown.
            needs: Keys of which the link has to have one; () for any link to the tab.
            heavy: The handler runs a model.
            options: As in `connect`.
        """

        def answer(query: str, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            found = _asked(tab, needs, query)
            if found is None:
                yield {notice: gr.skip()}
            else:
                yield from steps_of(handler(found, *values))

        return self.on_query(answer, inputs, outputs, notice=notice, heavy=heavy, **options)

    def on_first_visit(
        self, tab: str, handler: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Any], *,
        notice: gr.HTML, needs: Sequence[str] = (), **options: Any,  # noqa: ANN401 - as `connect`
    ) -> Dependency:  # fmt: skip
        """Answer when the tab is opened and shows nothing yet, unless a link brings what it shows.

        Args:
            tab, notice, needs, options: As in `on_link`.
            handler: Takes the values of `inputs`; answers as in `connect`.
            inputs: Components, the last one the state of what is shown.
            outputs: Components that it may update.
        """

        def start(request: gr.Request, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            if values[-1] is not None or _asked(tab, needs, str(request.query_params)) is not None:
                yield {notice: gr.skip()}
            else:
                yield from steps_of(handler(*values))

        return connect(self.tab.select, start, inputs, outputs, notice=notice, **options)

    def on_models(self, menu: gr.Dropdown, choices: Callable[[], list[tuple[str, str]]] | None = None) -> None:
        """Keep the choices of a menu of models current; `choices` returns them, by default all of the pool."""
        changed = [self.models_changed.change, self.blocks.load]
        choices = choices or self.pool.choices
        gr.on(changed, lambda: gr.update(choices=choices()), None, menu, queue=False, **PRIVATE)


def _asked(tab: str, needs: Sequence[str], query: str) -> Values | None:
    """Return the values of a link to a tab that has one of the keys; None for any other query string."""
    asked, found = read_link(query)
    given = not needs or any(text.strip() for key in needs for text in found.get(key, ()))
    return found if asked == tab and given else None


def needed(shown: Shown | None, message: str) -> Shown:
    """Return what a tab shows; raises DataError with the message if that is nothing yet."""
    if shown is None:
        raise DataError(message)
    return shown


def text_box(value: str | None, label: str, elem_id: str | None, **options: Any) -> gr.Textbox:  # noqa: ANN401 - as gr.Textbox
    """Lay out a box for a visitor's texts; browsers mark no spelling in it."""
    plain = InputHTMLAttributes(spellcheck=False)
    return gr.Textbox(value, label=label, elem_id=elem_id, html_attributes=plain, **options)


def model_row(
    prefix: str, action: str, choices: list[tuple[str, str]], value: str, min_width: int = 90
) -> tuple[gr.Dropdown, gr.Button, gr.Button]:
    """Lay out the menu of models with the buttons that run and stop; ids are prefix-model, prefix-run, prefix-stop."""
    with gr.Row(elem_classes="cv-actions"):
        model = gr.Dropdown(
            choices, value=value, show_label=False, label="Model", container=False, elem_id=f"{prefix}-model", scale=3,
            min_width=150,
        )  # fmt: skip
        run = gr.Button(action, variant="primary", elem_id=f"{prefix}-run", scale=1, min_width=min_width)
        return model, run, stop_button(elem_id=f"{prefix}-stop")


def stop_button(**options: Any) -> gr.Button:  # noqa: ANN401 - as gr.Button
    """Lay out a button that cancels a run, see `connect`; it is seen only while there is one."""
    return gr.Button("Stop", visible=False, min_width=60, **options)


def tries(chips: Iterable[tuple[str, str]], key: str = "example") -> str:
    """Render examples to click: (value of `data-KEY`, text)."""
    return render("tries.html", chips=chips, key=key)


def closed(parts: Iterable[gr.Accordion]) -> dict:
    """Return updates that fold sections: they belong to the result before."""
    return {part: gr.Accordion(open=False) for part in parts}


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
        render("header.html", tabs=labels),
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
    status = html(_status(pool), elem_id="cv-status")
    foot = render("footer.html", terms=TERMS, version=condviz.__version__, training=is_enabled())
    html(foot, elem_id="cv-footer")
    _open_tab(page, [tab.id for tab in tabs], wrong)
    timer = gr.Timer(0.7)
    gr.on(
        [timer.tick, page.models_changed.change], lambda: (_status(pool), gr.Timer(active=not pool.settled)),
        None, [status, timer], queue=False, **PRIVATE,
    )  # fmt: skip
    return page


def _open_tab(page: Page, known: Sequence[str], wrong: gr.HTML) -> None:
    def choose(query: str) -> Iterator[dict]:
        asked, _ = read_link(query)
        if asked in known:
            yield {page.tabs: gr.Tabs(selected=asked), wrong: ""}
        elif not asked:
            yield {wrong: ""}
        else:
            said = f"This link asks for the tab {asked[:40]!r}, which does not exist. Tabs: {', '.join(known)}."
            yield {wrong: notice("", said)}

    page.on_query(choose, outputs=[page.tabs], notice=wrong, queue=False)


def _status(pool: ModelPool) -> str:
    states = pool.states()
    failed = {name: state.reason for name, state in states.items() if state.phase == "failed"}
    count, ready = len(states), sum(state.phase == "ready" for state in states.values())
    if ready == count:
        line = f"All {ready} models are loaded."
    elif ready + len(failed) == count:
        line = f"{ready} of {count} models are loaded, {len(failed)} failed."
    else:
        loading = next((f"; loading {name}" for name, state in states.items() if state.phase == "loading"), "")
        line = f"{ready} of {count} models are loaded{loading}."
    share = round(100 * ready / max(1, count))
    return render("status.html", line=line, failed=failed, share=share, settled=pool.settled)
