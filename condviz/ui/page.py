"""What all pages share: header, footer, state of the models, the address, folded sections, fields of options."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component
from gradio.components.textbox import InputHTMLAttributes
from gradio.events import Dependency

import condviz
from condviz.errors import DataError
from condviz.spec import Option, check_options, options_of, read_options, write_options
from condviz.training.job import is_shared
from condviz.training.jobs import is_enabled
from condviz.ui.events import PRIVATE, connect, follow, steps_of
from condviz.ui.markup import TERMS, html, render
from condviz.ui.markup import notice as message
from condviz.ui.pool import OWNER, ModelPool, Outcome, Work
from condviz.ui.state import Values, first, path_of, read_link

Shown = TypeVar("Shown")
NO_RESULT = {"open", "__theme"}
"""Keys of an address that say nothing of a result."""
_PLAIN = InputHTMLAttributes(spellcheck=False, autocapitalize="off", autocorrect="off")


@dataclass(frozen=True)
class Tab:
    """A view, a page of its own; to add one, write a file with a `TAB` and list it in `condviz/ui/app.py`."""

    id: str
    """Its path, as in `/map`, and its name in links."""
    label: str
    build: Callable[[Page], Any]
    """Lays it out and connects it. May return what tests use."""


@dataclass
class Site:
    """All pages of the server, in the order of the header, while they are built."""

    blocks: gr.Blocks
    tabs: Sequence[Tab]
    pool: ModelPool
    on_open: list[Callable[[], object]] = field(default_factory=list)
    """Called when any page is opened; must not raise."""
    warm_up: list[Callable[[], object]] = field(default_factory=list)
    """Work to do once all models are loaded, one after the other; must not raise."""
    first: list[Callable[[], Mapping[Block, Mapping[str, Any]]]] = field(default_factory=list)
    """What pages show first with the models that they start with: component -> attributes of it."""

    def show_first(self) -> None:
        """Lay that out; whoever has a page open keeps what is there."""
        for parts in self.first:
            for part, values in parts().items():
                vars(part).update(values)
                if "choices" in values:  # a visitor's own copy, made at the first update, begins with these arguments
                    part.constructor_args["choices"] = values["choices"]


@dataclass
class Page:
    """One page while it is built; no other page knows its components."""

    site: Site
    tab: Tab
    header: gr.HTML
    """Fires `navigate` with {"query": ...} when the visitor goes back or forward within the page."""
    owner: gr.BrowserState
    """The secret that the visitor's trainings and their models belong to."""
    models_changed: gr.State
    """Changes when a model was trained or deleted on this page."""
    menus: dict[gr.Dropdown, Callable[[], list[tuple[str, str]]]] = field(default_factory=dict)
    """Menus of models, and what their choices come from."""
    folded: list[gr.Accordion] = field(default_factory=list)
    """Sections that belong to a result: a new one folds them."""
    built: Any = None
    """What `build` of the view returned."""

    @property
    def pool(self) -> ModelPool:
        return self.site.pool

    @property
    def opened(self) -> Callable[..., Dependency]:
        return self.site.blocks.load

    def on_link(
        self, handler: Callable[..., Any], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), *,
        notice: gr.HTML, needs: Sequence[str] = (), otherwise: Callable[..., Any] | None = None, heavy: bool = True,
        **options: Any,  # noqa: ANN401 - as `connect`
    ) -> list[Dependency]:  # fmt: skip
        """Restore what a link says when the page is opened, and on Back and Forward.

        The handler takes the `Values` of a link that has one of the keys that it `needs`, () for any, then the values
        of `inputs`; `otherwise`, which takes these alone, answers where the page is opened without. Else as `connect`.
        """

        def answer(query: str, values: Sequence[Any], other: Callable[..., Any] | None) -> Iterator[dict]:
            _, found = read_link(f"?{query.removeprefix('?')}")
            keys = needs or {*found} - NO_RESULT
            if any(text.strip() for key in keys for text in found.get(key, ())) or not (needs or other):
                yield from steps_of(handler(found, *values))
                if (model := first(found, "m")) and model not in self.pool.names:
                    text = f"This link asks for the model {model[:40]!r}, which is not here: another one answers."
                    yield {notice: message("", text, tone="info")}
            else:
                yield from steps_of(other(*values) if other else {notice: gr.skip()})

        def opened(request: gr.Request, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from answer(str(request.query_params), values, otherwise or (lambda *_: {notice: gr.skip()}))

        def moved(event: gr.EventData, *values: Any) -> Iterator[dict]:  # noqa: ANN401
            yield from answer(str(event.query), values, None)

        pairs = ((self.opened, opened), (self.header.navigate, moved))
        told = {"notice": notice, "heavy": heavy, **options}
        return [connect(trigger, handle, list(inputs), outputs, **told) for trigger, handle in pairs]

    def on_models(self, menu: gr.Dropdown, choices: Callable[[], list[tuple[str, str]]] | None = None) -> None:
        """Keep the choices of a menu of models current; `choices` returns them, by default all of the pool."""
        self.menus[menu] = choices or self.pool.choices


def needed(shown: Shown | None, message: str) -> Shown:
    """Return what a page shows; raises DataError with the message if that is nothing yet."""
    if shown is None:
        raise DataError(message)
    return shown


def text_box(value: str | None, label: str, elem_id: str | None, **options: Any) -> gr.Textbox:  # noqa: ANN401 - as gr.Textbox
    """Lay out a box for a visitor's texts; browsers mark no spelling in it."""
    plain = InputHTMLAttributes(spellcheck=False)
    return gr.Textbox(value, label=label, elem_id=elem_id, html_attributes=plain, **options)


def model_row(prefix: str, action: str, min_width: int = 90) -> tuple[gr.Dropdown, gr.Button, gr.Button]:
    """Lay out the menu of models with the buttons that run and stop; ids are prefix-model, prefix-run, prefix-stop."""
    with gr.Row(elem_classes="cv-actions"):
        shown = {"show_label": False, "container": False, "elem_id": f"{prefix}-model", "scale": 3, "min_width": 150}
        model = gr.Dropdown([], value=None, label="Model", **shown)
        run = gr.Button(action, variant="primary", elem_id=f"{prefix}-run", scale=1, min_width=min_width)
        return model, run, stop_button(elem_id=f"{prefix}-stop")


def stop_button(**options: Any) -> gr.Button:  # noqa: ANN401 - as gr.Button
    """Lay out a button that cancels a run, see `connect`; it is seen only while there is one."""
    return gr.Button("Stop", visible=False, min_width=60, **options)


def tries(chips: Iterable[tuple[str, str]], key: str = "example", carried: str = "") -> str:
    """Render examples to click: (value of `data-KEY`, text); `carried` offers to take over the texts of Compare."""
    return render("tries.html", chips=chips, key=key, carried=carried)


def closed(parts: Iterable[gr.Accordion]) -> dict:
    """Return updates that fold sections: they belong to the result before."""
    return {part: gr.Accordion(open=False) for part in parts}


def section(title: str, *, elem_id: str, kind: str = "") -> gr.Accordion:
    """Lay out a folded section; its id is `cv-PAGE-NAME`, and NAME stands in the address while it is open."""
    return gr.Accordion(title, open=False, elem_id=elem_id, elem_classes=f"cv-section {kind}".split())


class Section:
    """A folded section that is computed when it is opened. A new result folds it; the browser opens it again if it was.

        with Section(page, "twins", "Alike here, different there", self.show_twins, [self.shown]) as self.twins:
            self.pairs = html("", elem_id="cv-search-pairs")

    The handler takes the values of what it needs, may update what is laid out in it and what is named as `also`, and
    has a notice and, where it is `heavy` and runs a model, a stop button: `found = yield from self.twins.follow(work,
    "Comparing.")`. The name stands in links and ids.
    """

    def __init__(
        self, page: Page, name: str, title: str, show: Callable[..., Any], needs: Sequence[Any] = (), *,
        also: Sequence[Any] = (), heavy: bool = True,
    ) -> None:  # fmt: skip
        self.elem_id = f"cv-{page.tab.id}-{name}"
        self.accordion = section(title, elem_id=self.elem_id, kind="cv-of-result")
        self._show, self._heavy = show, heavy
        self._needs, self._also, self._triggers = list(needs), list(also), [self.accordion.expand]
        page.folded.append(self.accordion)

    def __enter__(self) -> Section:
        self.accordion.__enter__()
        self.notice = html("", elem_id=f"{self.elem_id}-notice")
        self.stop = stop_button(elem_id=f"{self.elem_id}-stop") if self._heavy else None
        return self

    def ask(self, *fields: Any, event: str = "input") -> None:  # noqa: ANN401 - components inside of it
        """Give the handler the values of fields, too, and call it again when one is changed."""
        self._needs += fields
        self._triggers += [getattr(one, event) for one in fields]

    def on(self, trigger: Any) -> None:  # noqa: ANN401 - an event listener of gradio
        """Call the handler on another event, too."""
        self._triggers.append(trigger)

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401 - as of any context
        self.accordion.__exit__(*error)
        if error == (None, None, None):
            outputs = [*_inside(self.accordion), *self._also]
            options = {"notice": self.notice, "stop": self.stop, "heavy": self._heavy}
            connect(self._triggers, self._show, self._needs, outputs, **options)

    def follow(self, work: Work[Outcome], message: str) -> Generator[dict, None, Outcome]:
        """Show what work does until it has ended; the value of the generator is its result."""
        return follow(work, message, self.notice, self.stop)


def _inside(block: Any) -> Iterator[Any]:  # noqa: ANN401 - any block of gradio
    for child in getattr(block, "children", ()):
        yield child
        yield from _inside(child)


# ---- fields for the options of a public function, as its signature declares them (`condviz.spec`) --------------------
class Fields:
    """Fields for the options of a function, all or those named, in its order; lay them out inside gr.Blocks."""

    def __init__(self, function: Callable[..., Any], names: Sequence[str] = (), *, prefix: str) -> None:
        self.function = function
        options = options_of(function)
        self.components = {name: make_field(options[name], f"{prefix}-{name}") for name in names or options}

    def check(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return what the fields hold, in their order, by name; raises ConfigError where one is not allowed."""
        return check_options(self.function, dict(zip(self.components, values, strict=True)))

    def note(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return what a link says of them by key, "" for defaults: as `noted` takes it."""
        keys = [options_of(self.function)[name].key.name for name in self.components]
        told = write_options(self.function, {name: given[name] for name in self.components if name in given})
        return dict.fromkeys(keys, "") | dict(told)

    def read(self, values: Values) -> dict[str, Any]:
        found = read_options(self.function, values)
        return {name: found[name] for name in self.components}

    def updates(self, given: Mapping[str, Any]) -> dict[Any, Any]:
        return {component: given[name] for name, component in self.components.items()}


def make_field(option: Option, elem_id: str) -> Component:
    """Lay out one field, by the type of the option; call inside gr.Blocks."""
    low, high = (option.bounds.get(kind, option.bounds.get(beyond)) for kind, beyond in (("ge", "gt"), ("le", "lt")))
    shown: dict[str, Any] = {"value": option.default, "label": option.label, "info": option.help, "elem_id": elem_id}
    if option.choices:
        titles = option.field.titles or {}
        choices = [(titles.get(name, name), name) for name in option.choices]
        return (gr.Radio if len(choices) <= 3 else gr.Dropdown)(choices, **shown)
    if option.type is bool:
        return gr.Checkbox(**shown)
    if option.type not in (int, float):
        return gr.Textbox(html_attributes=_PLAIN, **shown)
    if low is not None and high is not None and high - low <= 1_000:
        step = 1 if option.type is int else 0.01
        return gr.Slider(low, high if "le" in option.bounds else high - step, step=step, **shown)
    return gr.Number(minimum=low, maximum=high, precision=0 if option.type is int else None, **shown)


# ---- a page ----------------------------------------------------------------------------------------------------------
def build_page(site: Site, tab: Tab) -> Page:
    """Lay out a page with header, view, state of the models and footer; call inside gr.Blocks.

    What is laid out from here on belongs to it. `Blocks.route` does the same, and makes the server anew each time,
    which takes 0.2 s a page (read in gradio 6.31).
    """
    path = path_of(tab.id)
    if path:
        site.blocks.pages.append((path, tab.label, False))
    site.blocks.current_page = path
    pages = [(one.id, path_of(one.id) or "./", one.label) for one in site.tabs]
    header = html(
        render("header.html", pages=pages, tab=tab),
        elem_id="cv-header",
        script="condviz.header(element, (data) => trigger('navigate', data));",
    )
    owner = gr.BrowserState("", storage_key="condviz-trainings", secret="condviz")
    page = Page(site, tab, header, owner, gr.State(0))
    with gr.Column(elem_id="cv-page"):
        page.built = tab.build(page)
    status = html(_status(site.pool), elem_id="cv-status")
    foot = render("footer.html", terms=TERMS, version=condviz.__version__, training=is_enabled(), shared=is_shared())
    html(foot, elem_id="cv-footer")
    timer = gr.Timer(0.7)

    def look() -> tuple[str, gr.Timer]:
        return _status(site.pool), gr.Timer(active=not site.pool.settled)

    def opened(visitor: str, *chosen: Any) -> list[Any]:  # noqa: ANN401 - of the menus
        OWNER.set(visitor or "")
        for step in site.on_open:
            step()
        menus = (_menu(choices(), value) for choices, value in zip(page.menus.values(), chosen, strict=True))
        return [*look(), *menus]

    light, menus = {"queue": False, **PRIVATE}, list(page.menus)
    gr.on([page.opened, page.models_changed.change], opened, [owner, *menus], [status, timer, *menus], **light)
    timer.tick(look, None, [status, timer], **light)
    return page


def _menu(choices: list[tuple[str, str]], value: Any) -> Any:  # noqa: ANN401 - of a menu; an update of it
    """Offer models; one that is chosen and has been deleted makes room for the first."""
    names = [name for _, name in choices]
    gone = isinstance(value, str) and value not in names
    return gr.update(choices=choices, value=names[0] if names else None) if gone else gr.update(choices=choices)


def _status(pool: ModelPool) -> str:
    states = {name: state for name, state in pool.states().items() if state.phase != "absent"}
    failed = {name: state.reason for name, state in states.items() if state.phase == "failed"}
    count, ready = len(states), sum(state.phase == "ready" for state in states.values())
    if ready == count:
        line = f"All {ready} models are loaded."
    elif ready + len(failed) == count:
        line = f"{ready} of {count} models are loaded, {len(failed)} failed."
    else:
        line = f"{ready} of {count} models are loaded."
    share = round(100 * ready / max(1, count))
    return render("status.html", line=line, failed=failed, share=share, settled=pool.settled)
