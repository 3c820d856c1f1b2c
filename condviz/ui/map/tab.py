"""The Map tab: sentences before and after conditioning, side by side, with what lies near each of them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import gradio as gr

from condviz.analysis.layout import warm_up
from condviz.analysis.maps import build_map
from condviz.errors import CondvizError, DataError, check_count
from condviz.spec import takes
from condviz.ui import export, limits
from condviz.ui.events import PRIVATE, connect, follow, publish
from condviz.ui.imports import POINTS, Import
from condviz.ui.map import view
from condviz.ui.map.view import ASPECTS, CONDITIONS, DRAWN, MAPS, SOURCES, Form, Shown
from condviz.ui.markup import html, notice, render
from condviz.ui.page import Fields, Page, Section, Tab, closed, needed, section, stop_button, text_box
from condviz.ui.plotly_panel import panel_update, plotly_panel
from condviz.ui.requests import KEPT
from condviz.ui.speed import Budget
from condviz.ui.state import Values, first

if TYPE_CHECKING:
    from condviz.plots.maps import SideName

SIDES: dict[SideName, str] = {"before": "Before: the sentence alone", "after": "After: under its condition"}
MAX_TABLE_ROWS = 1_000
BUDGET = Budget(10.0, "many", share=0.8)  # 60 sentences, each alone and under its condition
_SHARED: dict[str, Any] = {"link": "map", "link_zoom": True, "tool": "lasso", "height": 350, "play": True}
_CLICKS = "condviz.map(element, (data) => trigger('act', data));"


class MapTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        self.notice = html("", elem_id="cv-map-notice", render=False)
        with gr.Column(elem_classes="cv-inputs cv-map-form"):
            self._form()
        self.notice.render()
        self.head = html("", elem_id="cv-map-head")
        with gr.Row(elem_id="cv-map-stage", equal_height=False):
            self.panels: dict[SideName, Any]
            self.panels = {side: _panel(side, title, 240, **_SHARED) for side, title in SIDES.items()}
            with gr.Column(min_width=250, scale=2, elem_id="cv-map-reading-column"):
                self.reading = html("", elem_id="cv-map-reading", script=_CLICKS)
        with gr.Row(elem_id="cv-map-tools"):
            small = {"label": "Colour by", "elem_id": "cv-map-colour", "scale": 0, "min_width": 150}
            self.colour = gr.Dropdown([], value=None, **small)
            one = {"placeholder": "a word, e.g. rain", "min_width": 150, "scale": 0, "max_lines": 1}
            self.search = text_box(None, "Search", "cv-map-search", **one)
            self.legend = html("", elem_id="cv-map-legend", script=_CLICKS)
        self.shown, self.filled = gr.State(None), gr.State("")
        self._sections()
        self._connect()
        page.site.first.append(self._first)
        page.site.warm_up.append(_compile)

    @property
    def default(self) -> str:
        return self.pool.choose(BUDGET, view.has_maps)

    def _first(self) -> dict:
        result, screen = view.example(self.default)
        panels = {}
        for side, label in SIDES.items() if result else ():
            drawn = {"figure": screen["figures"][side], "still": screen["stills"][side], **_SHARED}
            new = plotly_panel(**drawn, elem_id=f"cv-map-{side}", label=label, render=False)
            panels[self.panels[side]] = {"html_template": new.html_template, "props": new.props}
        return panels | {
            self.model: {"choices": self.choices(), "value": self.default},
            self.head: {"value": screen.get("head") or str(render("map/empty.html"))},
            self.reading: {"value": screen.get("reading", "")},
            self.colour: {
                "choices": [*map(tuple, screen.get("colours", ()))],
                "value": result.colour if result else None,
            },
            self.legend: {"value": screen.get("legend", "")},
            self.shown: {"value": Shown(ref(result), Form(self.default), result.colour) if result else None},
        }

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self) -> None:
        start = Form("")
        boxed = {"lines": 3, "max_lines": 8}
        with gr.Row(elem_classes="cv-map-row"):
            choices = [(title, name) for name, title in SOURCES.items()]
            wide = {"elem_id": "cv-map-source", "scale": 0, "min_width": 300}
            self.source = gr.Radio(choices, value=start.source, label="Sentences", **wide)
            choices = [(name.replace("_", " "), name) for name in ASPECTS]
            wide = {"elem_id": "cv-map-aspects", "scale": 4, "min_width": 300, "multiselect": True}
            label = "Conditions, 20 unseen sentences each"
            self.aspects = gr.Dropdown(choices, value=list(start.aspects), label=label, **wide)
            wide = {"elem_id": "cv-map-model", "scale": 2, "min_width": 240}
            self.model = gr.Dropdown([], value=None, label="Model", **wide)
            with gr.Row(elem_classes="cv-map-run"):
                self.run = gr.Button("Draw map", variant="primary", elem_id="cv-map-run", min_width=110)
                self.stop = stop_button(elem_id="cv-map-stop")
        with gr.Row(elem_classes="cv-map-row cv-map-file", visible=False) as self.box_table:
            self.file = gr.File(label="CSV or TSV file", elem_id="cv-map-upload", height=90, min_width=220)
            with gr.Column(min_width=300, scale=3):
                html(render("map/table_help.html"), elem_id="cv-map-table-help")
                self.own = Import(self.file, POINTS, "cv-map")
            self.table = self.own.reading
            self.rows = gr.Number(
                start.rows, label="Maximum rows (0 = all)", precision=0, minimum=0, min_width=130, visible=False
            )
        with gr.Row(elem_classes="cv-map-row", visible=False) as self.box_typed:
            label = "Sentences, one per line; each appears once per condition"
            self.sentences = text_box(
                start.sentences, label, "cv-map-sentences", visible=False, scale=2, min_width=300, **boxed
            )
            self.conditions = text_box(start.conditions, "Conditions, one per line", "cv-map-conditions", **boxed)

    def _sections(self) -> None:
        title, also = "Do conditions lie apart? Impurity, isotropy and W_c", [self.shown, self.colour]
        with Section(self.page, "impurity", title, self.measure, [self.shown], also=also) as self.impurity:
            self.measures = html("", elem_id="cv-map-measures", script=_CLICKS)
            with gr.Row(visible=False) as self.box_matrices:
                self.spectra = _panel("spectra", "Singular values of W_c", 280, height=300)
                self.places = _panel("places", "Which conditions transform alike", 280, height=300)
        with section("How the map is drawn", elem_id="cv-map-settings"), gr.Row():
            self.drawn = Fields(build_map, DRAWN, prefix="cv-map")
            self.sample = gr.Number(0, label="Random sample of the example", precision=0, minimum=0)
        with Section(self.page, "table", "All points as a table", self.show_points, [self.shown], heavy=False):
            self.points = gr.Dataframe(interactive=False, wrap=True, max_height=420, elem_id="cv-map-points")
        with Section(self.page, "export", "Link, JSON, CSV, Python", self.show_exports, [self.shown], heavy=False):
            self.hand_out = html("", elem_id="cv-map-hand-out")

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        fields = [getattr(self, name) for name in Form.__dataclass_fields__ if name != "drawn"]
        form = [*fields, *self.drawn.components.values()]
        panels = list(self.panels.values())
        boxes = [self.aspects, self.box_table, self.box_typed, self.sentences, self.rows]
        stale = [*form, self.shown, self.filled], [*boxes, self.conditions, self.filled, *panels]
        picked = [self.shown, self.head, self.legend, *panels, self.reading, self.search]
        whole = [*picked, self.colour, self.own.box, *self.page.folded]
        main = {"notice": self.notice, "stop": self.stop, "heavy": True}
        linked = self.page.on_link(self.open_link, [self.shown], [*form, *boxes, *self.own.shown, *whole], **main)
        # A stopped run must not leave its progress on the picture.
        for run in (connect(self.run.click, self.draw, [*form, self.shown], whole, **main), *linked):
            run.failure(lambda: [panel_update(message="")] * 2, None, panels, queue=False, **PRIVATE)
        to_map = "() => document.querySelector('#cv-map-stage').scrollIntoView({ block: 'nearest' })"
        self.run.click(None, js=to_map, **PRIVATE)
        self.page.on_models(self.model, self.choices)
        light: dict[str, Any] = {"notice": self.notice}
        connect(self.source.input, self.boxes, *stale, **light)
        connect(self.table.change, self.conditions_of_table, *stale, by_itself=True, **light)
        connect(self.colour.input, self.paint, [self.colour, self.shown], [*picked, self.colour], **light)
        connect(self.search.input, self.find, [self.search, self.shown], picked, **light)
        for panel in panels:
            connect(panel.select, self.select, [self.shown], picked, **light)
            connect(panel.click, self.open_point, [self.shown], picked, **light)
        ready = {"queue": False, "by_itself": True}
        connect(self.panels["after"].ready, self.draw_again, [self.shown], panels, **ready, **light)
        for part in (self.legend, self.reading, self.measures):
            connect(part.act, self.act, [self.shown], picked, **light)
        publish(self.api_embedding_map, "embedding_map")
        publish(self.api_impurity, "impurity")

    def open_link(self, values: Values, shown: Shown | None) -> Iterator[dict]:
        """Restore form, map and what is picked on it from a link."""
        named = first(values, "m")
        known = named if named in dict(self.choices()).values() else self.default
        kept = KEPT.find(first(values, "own"), Shown)
        form = kept.form if kept else Form.from_link(values, known)
        changes = form.updates(vars(self)) | self.drawn.updates(form.drawn)
        changes |= self.own.restore(form.table) if form.table else {}
        yield changes | {part: changes.get(part, {}) | seen for part, seen in self._boxes(form).items()}
        if kept and kept.map() is not None:
            shown = replace(kept, colour=kept.result.colour, token=first(values, "own"))
        elif shown is not None and form.link() == shown.form.link():
            shown = Shown(shown.map, shown.form, shown.result.colour)
        elif not (form.linked or kept):
            yield dict.fromkeys(self.panels.values(), panel_update(message=_OLD, tone="old"))
            lost = "its table. Choose the file" if form.source == "table" else "all of its sentences. Enter them"
            raise DataError(f"This link cannot carry {lost} again, then press Draw map.")
        else:
            for step in self._draw(form, shown):
                shown = step.get(self.shown, shown)
                step.pop(self.head, None)  # the link says more: its headline comes below
                yield step
        shown = _needed(shown)
        if first(values, "by") == "cluster":
            shown = yield from self._measured(shown, self.notice, self.stop)
        step = self._show(shown.picked(values), asked=named != "")
        if named and named != known:
            step[self.notice] = notice("", f"This link asks for the model {named[:40]!r}, which draws no map here.")
        yield step

    def boxes(self, *fields: Any) -> dict:  # noqa: ANN401 - the form and the state
        """Show the fields of what the sentences come from."""
        *values, shown, filled = fields
        form = Form.of(*values)
        lost = form.source == "texts" and form.conditions.strip() in ("", filled)  # a table brought its own, or none
        return {**self._boxes(form), **self._stale(form, shown), self.conditions: CONDITIONS if lost else gr.skip()}

    def _stale(self, form: Form, shown: Shown | None) -> dict:
        """Say on the pictures that they are not of the texts that are chosen by now."""
        own = shown is not None and (form.source, form.table) == (shown.form.source, shown.form.table)
        message = "" if own or shown is None else "Press Draw map to see yours."
        return dict.fromkeys(self.panels.values(), panel_update(message=message, tone="old"))

    def conditions_of_table(self, *fields: Any) -> dict:  # noqa: ANN401 - the form and the state
        """Show where conditions are typed if a table brings none; a link may still be choosing it as the source."""
        *values, shown, filled = fields
        form = Form.of(*values)
        form = replace(form, source="table") if form.table and form.source == "scenes" else form
        value = form.table.column("value") if form.table else ""
        typed = shown.form.conditions if shown and shown.form.source == "texts" else ""
        step = self._boxes(form)
        if form.table and form.conditions in (CONDITIONS, typed, filled):  # of the example, other sentences or columns
            step[self.conditions] = step[self.filled] = f"the {value}" if value else ""
        # Else the notice is of the file before, and the pictures are those of a link that is being drawn.
        return step | (self._stale(form, shown) if form.table and form.table.new else {self.notice: gr.skip()})

    def _boxes(self, form: Form) -> dict:
        seen = {
            self.aspects: form.source == "scenes",
            self.box_table: form.source == "table",
            self.sentences: form.source == "texts",
            self.box_typed: form.types_conditions,
            self.rows: form.table is not None,
        }
        return {part: gr.update(visible=visible) for part, visible in seen.items()}

    def draw_again(self, shown: Shown | None) -> dict:
        """Draw both sides now that there is a place for them, unless what a link asks for takes it."""
        figures = self._figures(shown) if shown else {}
        given = {panel: panel_update(fallback=figures[panel]["figure"]) for panel in self.panels.values() if figures}
        return given | {self.notice: gr.skip()}

    def draw(self, *fields: Any) -> Iterator[dict]:  # noqa: ANN401 - the form and the state
        *values, shown = fields
        yield from self._draw(Form.of(*values), shown)

    def _draw(self, form: Form, shown: Shown | None) -> Iterator[dict]:
        stored, _ = view.example(form.model)
        if stored is not None and form.link() == Form(form.model).link():
            yield self._show(Shown(ref(stored), form, stored.colour), asked=True)
            return
        try:
            points = form.points()
            work = self.pool.run(build_map, form.model, points, rows=len(points.texts), **form.drawn, measures=False)
            message = f"Drawing {len(points.texts):,} points with {self.pool.info(form.model).title}"
            for done, total in work.steps():
                yield self._busy(message, done / total if total else 0.0)
            result = work.result()
            asked = self.pool.run(view.doubts, form.model, form, result.points)
            for _ in asked.steps():
                yield self._busy(message, 1.0)
            untold, notes = asked.result()
            result = replace(result, untold=untold, notes=(*notes, *result.notes))
        except Exception:
            # What is still there must not pass for the answer to what was asked now.
            yield dict.fromkeys(self.panels.values(), panel_update(message=_OLD if shown else "", tone="old"))
            raise
        yield self._show(Shown(ref(result), form, result.colour).keep())

    def paint(self, colour: str, shown: Shown | None) -> dict:
        shown = replace(_needed(shown), colour=colour)
        shown = shown.choose(None) if shown.value else shown
        return self._picks(shown) | self._figures(shown)

    def find(self, search: str, shown: Shown | None) -> dict:
        """Choose the points whose sentence contains the words."""
        return self._picks(_needed(shown).with_search(search)) | {self.search: gr.skip()}

    def select(self, event: gr.EventData, shown: Shown | None) -> dict:
        shown = _needed(shown)
        chosen = view.positions(event.ids, len(shown.result.points.texts))
        return self._picks(shown.choose(tuple(chosen) or None))

    def open_point(self, event: gr.EventData, shown: Shown | None) -> dict:
        shown = _needed(shown)
        found = view.positions([event.id], len(shown.result.points.texts))
        return self._picks(replace(shown, marked=found[0])) if found else {self.notice: gr.skip()}

    def act(self, event: gr.EventData, shown: Shown | None) -> dict:
        """Answer a click on the legend, the list of points, or a count of the table of clusters."""
        shown, act = _needed(shown), str(event.act)
        if act == "open":
            return self.open_point(event, shown)
        if act == "back":
            picked = replace(shown, marked=None)
        elif act == "clear":
            picked = shown.choose(None)
        elif act == "value":
            picked = shown.with_value(str(event.id))
        else:
            members = view.cell_members(shown.result, str(event.side), str(event.group), str(event.cluster))
            picked = shown.choose(members)
        return self._picks(picked)

    # ---- sections, each computed when it is opened -------------------------------------------------------------------
    def measure(self, shown: Shown | None) -> Iterator[dict]:
        from condviz.plots.maps import plot_conditions, plot_spectra

        shown = yield from self._measured(_needed(shown), self.impurity.notice, self.impurity.stop)
        matrices = shown.result.matrices
        step = {
            self.measures: view.measures(shown.result),
            self.shown: shown,
            self.colour: gr.update(choices=view.colours(shown.result)),
            self.box_matrices: gr.update(visible=bool(matrices)),
        }
        if matrices:
            few = "" if matrices["places"] else "Three conditions or more are needed to lay them out."
            step[self.spectra] = panel_update(figure=plot_spectra(matrices))
            step[self.places] = panel_update(figure=None if few else plot_conditions(matrices), message=few)
        yield step

    def _measured(self, shown: Shown, notice: gr.HTML, stop: gr.Button | None) -> Generator[dict, None, Shown]:
        if shown.result.after.measures is not None:
            return shown
        points = shown.result.points
        work = self.pool.run(build_map, shown.form.model, points, rows=len(points.texts), method="pca")
        measured = yield from follow(work, "Measuring.", notice, stop)
        result = shown.result.with_measures(measured)
        MAPS.keep(result)
        return replace(shown, map=ref(result))

    def show_points(self, shown: Shown | None) -> dict:
        shown = _needed(shown)
        frame = shown.result.to_frame()
        listed = (frame if shown.chosen is None else frame.iloc[list(shown.chosen)]).head(MAX_TABLE_ROWS)
        exact = listed.astype(dict.fromkeys(listed.select_dtypes("float32"), float)).round(3)
        return {self.points: gr.Dataframe(exact, column_widths=[360, *[130] * (exact.shape[1] - 1)])}

    def show_exports(self, shown: Shown | None) -> dict:
        shown = _needed(shown)
        offered = export.offer(shown.result, link=shown.link(), python=view.python(shown.result), file="map.csv")
        return {self.hand_out: render("map/export.html", offered=offered, unlinked=shown.unlinked)}

    # ---- endpoints ---------------------------------------------------------------------------------------------------
    @takes(build_map, but=("clusters", "colour"), before=("num_neighbors",))
    def api_embedding_map(
        self, sentences: list[str], conditions: list[str], model: str, values: list[str] | None = None,
        crossed: bool = False, **options: Any,  # noqa: ANN401 - of `build_map`
    ) -> dict[str, Any]:  # fmt: skip
        """Lay sentences out before and after conditioning, and measure both spaces.

        Args:
            sentences: Three different ones to 5,000 points.
            conditions: One per sentence; with `crossed`, a list that every sentence is put under.
            model: Name as /models lists it; cross-encoders have no map.
            values: Value of each sentence under its condition, or nothing.
            crossed: Put every sentence under every condition.

        Returns:
            Coordinates, neighbours, clusters, impurity, isotropy and values; missing numbers are null.
        """
        points = view.listed_points(sentences, conditions, values, crossed)
        return self.pool.run(build_map, model, points, rows=len(points.texts), **options).result().to_dict()

    def api_impurity(
        self, sentences: list[str], conditions: list[str], model: str, values: list[str] | None = None,
        crossed: bool = False, clusters: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """Measure whether sentences under one condition lie together, before and after conditioning.

        Args:
            sentences, conditions, model, values, crossed: As in /embedding_map.
            clusters: K of K-means; 0 takes the number of conditions.

        Returns:
            {"points", "before", "after", "random_matrices"}: impurity (nats, bits, share of the maximum, chance, p,
            table), isotropy, silhouette, values, and why one of them is missing.
        """
        points = view.listed_points(sentences, conditions, values, crossed)
        check_count("clusters", clusters, 0, limits.MAP_POINTS)
        options = {"method": "pca", "clusters": clusters or None}
        made = self.pool.run(build_map, model, points, rows=len(points.texts), **options).result()
        sides = {side: getattr(made, side).measures.to_dict() for side in SIDES}
        return {"points": len(points.texts), **sides, "random_matrices": made.random_matrices}

    # ---- pictures ----------------------------------------------------------------------------------------------------
    def _busy(self, message: str, share: float) -> dict:
        text = f"{message}, {100 * share:.0f}\N{NO-BREAK SPACE}%" if share else f"{message} …"
        panels = dict.fromkeys(self.panels.values(), panel_update(message=text, tone="busy", share=share))
        return {**panels, self.notice: "", self.stop: gr.update(visible=True)}

    def choices(self) -> list[tuple[str, str]]:
        return self.pool.choices(view.has_maps, BUDGET)

    def _show(self, shown: Shown, *, asked: bool = False) -> dict:
        """Show another map; a link may have asked for it."""
        folds = closed([*self.page.folded, *([self.own.box] if shown.form.table else [])])  # the map comes into sight
        return {**self._picks(shown), **self._figures(shown), self.head: view.head(shown, asked=asked), **folds}

    def _figures(self, shown: Shown) -> dict:
        """Draw both sides, with what is picked on them."""
        from condviz.plots.maps import colouring, plot_side

        colours = colouring(shown.result, shown.colour)
        step: dict[Any, Any] = {self.colour: gr.update(choices=view.colours(shown.result), value=colours.name)}
        for side, panel in self.panels.items():
            step[panel] = panel_update(figure=plot_side(shown.result, side, colours), message="", **_on(shown))
        return step

    def _picks(self, shown: Shown) -> dict:
        """Show what is picked; the figures keep their data."""
        from condviz.plots.maps import colouring

        MAPS.keep(shown.result)
        return {
            **dict.fromkeys(self.panels.values(), panel_update(**_on(shown))),
            self.shown: shown,
            self.head: view.head(shown, picked=True),
            self.legend: view.legend(shown.result, colouring(shown.result, shown.colour), shown.value),
            self.reading: view.reading(shown.result, shown.chosen, shown.marked, shown.search or shown.value),
            self.search: shown.search,
        }


_OLD = "The previous map; the new one could not be drawn."


def _panel(name: str, title: str, min_width: int, **options: Any) -> gr.HTML:  # noqa: ANN401 - as plotly_panel
    """Lay out a figure below its title."""
    with gr.Column(min_width=min_width, scale=3, elem_id=f"cv-map-{name}-column"):
        html(render("map/title.html", text=title), elem_id=f"cv-map-{name}-title")
        return plotly_panel(elem_id=f"cv-map-{name}", label=title, **options)


def _compile() -> None:
    with suppress(CondvizError):  # without umap-learn, a map says what is missing
        warm_up()


_needed = partial(needed, message="There is no map yet. Press Draw map first.")


def _on(shown: Shown) -> dict[str, Any]:
    """Return what is picked as a figure takes it."""
    marked = None if shown.marked is None else str(shown.marked)
    return {"selection": [str(index) for index in shown.chosen or ()], "marked": marked}


TAB = Tab("map", "Map", MapTab)
