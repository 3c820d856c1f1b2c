"""The Map tab: sentences before and after conditioning, side by side, with what lies near each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.analysis.maps import EmbeddingMap, Layout, build_map, warm_up
from condviz.analysis.points import (
    DEFAULT_ASPECTS,
    MapPoints,
    guess_columns,
    points_from_table,
    points_from_texts,
    scene_points,
)
from condviz.data.tables import read_table
from condviz.errors import CondvizError, ConfigError, DataError
from condviz.ui import export
from condviz.ui.events import connect, publish
from condviz.ui.map import view
from condviz.ui.markup import html, notice, read_asset, render
from condviz.ui.page import Page, Tab, section
from condviz.ui.plotly_panel import panel_update, plotly_panel
from condviz.ui.state import MAX_TEXT, Values, first, lines, number, write_link

MAX_POINTS = 5_000
"""Of the page and its API, where visitors share the machine; the command line takes more."""
SOURCES = {"scenes": "Example", "texts": "My sentences", "table": "My table"}
TYPED, NO_COLUMN = "(typed below)", "(none)"
ASPECTS = ("number_of_people", "time_of_day", "weather", "place", "age_group", "vehicle", "object_colour",
           "relationship", "duration", "posture", "furniture", "mood")  # fmt: skip
"""Aspects of the scenes that enough test families tell; the last five were in no training."""
SENTENCES = """Three children play football on the beach.
A man surfs alone at dawn.
Two women play chess in the park.
A crowd watches the tennis final.
A girl rides her bicycle to school.
Five friends row across the lake."""
CONDITIONS = "the number of people\nthe sport"
SIDES = ("before", "after")
_PLAIN = InputHTMLAttributes(spellcheck=False)


@dataclass(frozen=True)
class Form:
    """The fields of the form, in the order of the page."""

    model: str
    source: str = "scenes"
    aspects: Sequence[str] = DEFAULT_ASPECTS
    sample: float | None = 0
    sentences: str = SENTENCES
    conditions: str = CONDITIONS
    table: str | None = None
    text_column: str | None = None
    condition_column: str | None = None
    value_column: str | None = None
    rows: float | None = 1_000
    method: str = "umap"
    n_neighbors: float | None = 15
    min_dist: float | None = 0.1
    seed: float | None = 0

    def points(self) -> MapPoints:
        """Read the points.

        Raises:
            DataError: If they cannot be shown; says why and what to do.
        """
        if self.source == "scenes":
            if not 2 <= len(self.aspects) <= 6:
                raise DataError(f"Choose two to six conditions; {len(self.aspects)} are chosen.")
            return scene_points(tuple(self.aspects), seed=_whole(self.sample, "random sample"))
        if self.source == "texts":
            return points_from_texts(self.sentences.splitlines(), lines(self.conditions), max_points=MAX_POINTS)
        if not self.table:
            raise DataError("No file is chosen. Choose a CSV or TSV file with one sentence per row.")
        typed = self.condition_column in (None, "", TYPED)
        return points_from_table(
            read_table(Path(self.table)),
            text_column=self.text_column,
            condition_column="" if typed else self.condition_column,
            value_column="" if self.value_column in (None, NO_COLUMN) else self.value_column,
            conditions=lines(self.conditions) if typed else None,
            sample=_whole(self.rows, "maximum of rows") or None,
            max_points=MAX_POINTS,
        )

    def layout(self) -> dict[str, Any]:
        """Return the settings of the layout as `build_map` takes them; raises ConfigError where one is not allowed."""
        whole = {name: _whole(getattr(self, name), name) for name in ("n_neighbors", "seed")}
        made = {"method": self.method, "min_dist": self.min_dist, **whole}
        Layout(**made)
        return made

    def link(self) -> list[tuple[str, str]] | None:
        """Return what a link says of the form, or None where it cannot carry the sentences."""
        pairs = [("m", self.model), ("from", self.source if self.source != "scenes" else "")]
        if self.source == "table" or len(self.sentences) > MAX_TEXT:
            return None
        if self.source == "scenes":
            pairs += [("a", name) for name in self.aspects] if tuple(self.aspects) != DEFAULT_ASPECTS else []
        else:
            pairs += [("s", self.sentences), *(("c", condition) for condition in lines(self.conditions))]
        plain = Form(self.model)
        for key, name in _LINKED.items():
            if getattr(self, name) != getattr(plain, name):
                pairs.append((key, f"{getattr(self, name)}"))
        return pairs

    @classmethod
    def from_link(cls, values: Values, model: str) -> Form:
        """Read the form that a link describes; what it does not say keeps its default."""
        source = first(values, "from", "scenes")
        aspects = [name for name in values.get("a", []) if name in ASPECTS]
        dist = first(values, "dist", "0.1")
        return cls(
            model,
            source if source in ("scenes", "texts") else "scenes",
            aspects or DEFAULT_ASPECTS,
            number(values, "draw", 0, low=0, high=10_000),
            first(values, "s", SENTENCES),
            "\n".join(" ".join(text.split()) for text in values.get("c", [])) or CONDITIONS,
            method="pca" if first(values, "method") == "pca" else "umap",
            n_neighbors=number(values, "near", 15, low=2, high=200),
            min_dist=float(dist) if dist.replace(".", "", 1).isdecimal() and dist.isascii() else 0.1,
            seed=number(values, "seed", 0, low=0, high=2**32 - 1),
        )


_LINKED = {"draw": "sample", "method": "method", "near": "n_neighbors", "dist": "min_dist", "seed": "seed"}
"""Key in a link -> field whose default is left out."""


@dataclass(frozen=True)
class Shown:
    """What the tab shows: a map, what made it, and what the visitor has picked on it.

    Attributes:
        result: The map.
        form: What made it.
        colour: What the points are coloured by.
        search: Words that chosen points contain, "" for none.
        value: Category of the legend that is chosen, "" for none.
        chosen: Positions of the chosen points, or None.
        marked: Position of the point whose neighbours are shown, or None.
    """

    result: EmbeddingMap
    form: Form
    colour: str
    search: str = ""
    value: str = ""
    chosen: tuple[int, ...] | None = None
    marked: int | None = None

    def link(self) -> str:
        """Return the link to all of this; of an uploaded table only to the tab."""
        form = self.form.link()
        if form is None:
            return write_link("map", [])
        colour = "" if self.colour == self.result.colour else self.colour
        marked = "" if self.marked is None else str(self.marked)
        return write_link("map", [*form, ("by", colour), ("q", self.search), ("v", self.value), ("p", marked)])


class MapTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        """Lay out and connect."""
        self.page, self.pool = page, page.pool
        self.stored = _stored(page)
        with gr.Column(elem_classes="cv-inputs cv-map-form"):
            self._form()
        self.notice = html("", elem_id="cv-map-notice")
        self.head = html(render("map/empty.html"), elem_id="cv-map-head")
        with gr.Row(elem_id="cv-map-stage", equal_height=False):
            for side, label in (("before", "Before: the sentence alone"), ("after", "After: under its condition")):
                with gr.Column(min_width=240, scale=3, elem_id=f"cv-map-{side}-column"):
                    html(render("map/title.html", text=label), elem_id=f"cv-map-{side}-title")
                    panel = plotly_panel(
                        elem_id=f"cv-map-{side}", label=label, link="map", link_zoom=True, tool="lasso", height=350
                    )
                    setattr(self, side, panel)
            with gr.Column(min_width=250, scale=2, elem_id="cv-map-reading-column"):
                self.reading = html("", elem_id="cv-map-reading", script=_script())
        with gr.Row(elem_id="cv-map-tools"):
            self.colour = gr.Dropdown([], label="Colour by", elem_id="cv-map-colour", scale=0, min_width=150)
            self.search = gr.Textbox(
                label="Search", placeholder="a word, e.g. dog", elem_id="cv-map-search", min_width=150, scale=0,
                html_attributes=_PLAIN, max_lines=1,
            )  # fmt: skip
            self.legend = html("", elem_id="cv-map-legend", script=_script())
        self.shown = gr.State(None)
        self._sections()
        self._connect()
        page.warm_up.append(_compile)

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self) -> None:
        start = Form(self.pool.default)
        with gr.Row(elem_classes="cv-map-row"):
            choices = [(title, name) for name, title in SOURCES.items()]
            self.source = gr.Radio(
                choices, value="scenes", label="Sentences", elem_id="cv-map-source", scale=0, min_width=300
            )
            self.aspects = gr.Dropdown(
                [(name.replace("_", " "), name) for name in ASPECTS], value=list(start.aspects), multiselect=True,
                label="Conditions, 20 unseen sentences each", elem_id="cv-map-aspects",
                scale=3, min_width=300,
            )  # fmt: skip
            self.model = gr.Dropdown(
                self.pool.choices(_draws),
                value=start.model,
                label="Model",
                elem_id="cv-map-model",
                scale=2,
                min_width=180,
            )
            with gr.Row(elem_classes="cv-map-run"):
                self.run = gr.Button("Draw map", variant="primary", elem_id="cv-map-run", min_width=110)
                self.stop = gr.Button("Stop", elem_id="cv-map-stop", visible=False, min_width=60)
        with gr.Row(elem_classes="cv-map-row", visible=False) as self.box_table:
            self.table = gr.File(
                label="CSV or TSV, one sentence per row", elem_id="cv-map-upload", height=90, min_width=220
            )
            for name, label in (("text", "Sentences"), ("condition", "Conditions"), ("value", "Values")):
                menu = gr.Dropdown([], label=f"Column: {label.lower()}", elem_id=f"cv-map-{name}-column", min_width=150)
                setattr(self, f"{name}_column", menu)
            self.rows = gr.Number(
                start.rows, label="Maximum rows (0 = all)", precision=0, minimum=0, elem_id="cv-map-rows", min_width=130
            )
        with gr.Row(elem_classes="cv-map-row", visible=False) as self.box_typed:
            boxed = {"lines": 3, "max_lines": 3, "html_attributes": _PLAIN}
            self.sentences = gr.Textbox(
                start.sentences, label="Sentences, one per line; each appears once per condition", visible=False,
                scale=2, elem_id="cv-map-sentences", **boxed,
            )  # fmt: skip
            self.conditions = gr.Textbox(
                start.conditions, label="Conditions, one per line", elem_id="cv-map-conditions", **boxed
            )

    def _sections(self) -> None:
        with section("Do conditions lie apart? Impurity, isotropy and W_c", elem_id="cv-map-impurity") as self.impurity:
            self.impurity_notice = html("", elem_id="cv-map-impurity-notice")
            self.impurity_stop = gr.Button("Stop", visible=False, min_width=60)
            self.measures = html("", elem_id="cv-map-measures", script=_script())
            with gr.Row(visible=False) as self.box_matrices:
                for name, label in (
                    ("spectra", "Singular values of W_c"),
                    ("places", "Which conditions transform alike"),
                ):
                    with gr.Column(min_width=280):
                        html(render("map/title.html", text=label), elem_id=f"cv-map-{name}-title")
                        setattr(self, name, plotly_panel(elem_id=f"cv-map-{name}", label=label, height=300))
        with section("How the map is drawn", elem_id="cv-map-settings"), gr.Row():
            start = Form("")
            self.method = gr.Radio(
                [("UMAP", "umap"), ("PCA", "pca")], value=start.method, label="Method", elem_id="cv-map-method"
            )
            self.n_neighbors = gr.Slider(2, 200, start.n_neighbors, step=1, label="UMAP n_neighbors")
            self.min_dist = gr.Slider(0, 0.99, start.min_dist, step=0.01, label="UMAP min_dist")
            self.seed = gr.Number(start.seed, label="Seed", precision=0, minimum=0)
            self.sample = gr.Number(start.sample, label="Random sample of the example", precision=0, minimum=0)
        with section("All points as a table", elem_id="cv-map-table") as self.all_points:
            self.points = gr.Dataframe(interactive=False, wrap=True, max_height=420, elem_id="cv-map-points")
        with section("Link, JSON, CSV, Python", elem_id="cv-map-export") as self.exports:
            self.hand_out = html("", elem_id="cv-map-hand-out")

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        form = [
            self.model, self.source, self.aspects, self.sample, self.sentences, self.conditions, self.table,
            self.text_column, self.condition_column, self.value_column, self.rows, self.method, self.n_neighbors,
            self.min_dist, self.seed,
        ]  # fmt: skip
        boxes = [self.aspects, self.box_table, self.box_typed, self.sentences]
        painted = [self.shown, self.head, self.legend, self.before, self.after, self.reading]
        sections = [self.impurity, self.all_points, self.exports]
        whole = [*painted, self.colour, self.search, *sections]
        main = {"notice": self.notice, "stop": self.stop, "heavy": True}
        run = connect(self.run.click, self.draw, [*form, self.shown], whole, **main)
        # A stopped run must not leave its progress on the picture.
        for panel in (self.before, self.after):
            run.failure(lambda: panel_update(message=""), None, panel, queue=False, api_visibility="private")
        self.page.on_link(
            "map", self.open_link, [*form, self.shown], [*form, *boxes, *whole], notice=self.notice, stop=self.stop
        )
        self.page.on_models(self.model, _draws)
        connect(self.page.tab.select, self.opened, [self.shown], whole, notice=self.notice)
        connect(self.source.input, self.choose_source, [self.source], boxes, notice=self.notice)
        columns = [self.text_column, self.condition_column, self.value_column, self.box_typed]
        connect(
            self.condition_column.input,
            self.choose_column,
            [self.condition_column],
            [self.box_typed],
            notice=self.notice,
        )
        connect(self.table.change, self.upload, [self.table], columns, notice=self.notice)
        light: dict[str, Any] = {"notice": self.notice, "trigger_mode": "always_last"}
        connect(self.colour.input, self.paint, [self.colour, self.shown], painted, **light)
        connect(self.search.input, self.find, [self.search, self.shown], painted, **light)
        for panel in (self.before, self.after):
            connect(panel.select, self.select, [self.shown], painted, **light)
            connect(panel.click, self.open_point, [self.shown], painted, **light)
        for part in (self.legend, self.reading, self.measures):
            connect(part.act, self.act, [self.shown], [*painted, self.search], **light)
        connect(
            self.impurity.expand, self.measure, [self.shown],
            [self.measures, self.shown, self.colour, self.box_matrices, self.spectra, self.places],
            notice=self.impurity_notice, stop=self.impurity_stop, heavy=True,
        )  # fmt: skip
        connect(self.all_points.expand, self.show_points, [self.shown], [self.points], notice=self.notice)
        connect(self.exports.expand, self.show_exports, [self.shown], [self.hand_out], notice=self.notice)
        publish(self.api_embedding_map, "embedding_map")
        publish(self.api_impurity, "impurity")

    def opened(self, shown: Shown | None) -> dict:
        """Show the stored map when the tab is opened for the first time."""
        if shown is not None or self.stored is None:
            return {self.notice: gr.skip()}
        return self._show(Shown(self.stored, Form(self.pool.default), self.stored.colour))

    def open_link(self, values: Values, *fields: Any) -> Iterator[dict]:  # noqa: ANN401 - the form and the state
        """Restore form, map and what is picked on it from a link."""
        *_, shown = fields
        named = first(values, "m")
        form = Form.from_link(values, named if named in self.pool.names else self.pool.default)
        at_first = self.stored is not None and form.link() == Form(self.pool.default).link()
        if shown is not None and form.link() == shown.form.link():
            shown = Shown(shown.result, form, shown.result.colour)
        elif at_first:
            shown = Shown(self.stored, form, self.stored.colour)
        else:
            filled = [self.model, self.source, self.aspects, self.sample, self.sentences, self.conditions]
            names = ("model", "source", "aspects", "sample", "sentences", "conditions")
            update = {part: getattr(form, name) for part, name in zip(filled, names, strict=True)}
            update |= {
                getattr(self, name): getattr(form, name) for name in ("method", "n_neighbors", "min_dist", "seed")
            }
            yield {**update, **self._boxes(form)}
            for step in self._draw(form, shown):
                shown = step.get(self.shown, shown)
                yield step
        yield self._show(self._picked(shown, values))

    def choose_source(self, source: str) -> dict:
        """Show the fields of what the sentences come from."""
        return self._boxes(Form("", source))

    def choose_column(self, column: str) -> dict:
        """Show the box for conditions while no column holds them."""
        return {self.box_typed: gr.update(visible=column == TYPED)}

    def upload(self, path: str | None) -> dict:
        """Read the header of an uploaded table and offer its columns."""
        if not path:
            return {self.notice: ""}
        table = read_table(Path(path))
        names, guess = [name for name in table.columns if name], guess_columns(table)
        message = f"{len(table.rows):,} rows. Check the columns, then press Draw map."
        return {
            self.text_column: gr.update(choices=names, value=guess.text),
            self.condition_column: gr.update(choices=[TYPED, *names], value=guess.condition or TYPED),
            self.value_column: gr.update(choices=[NO_COLUMN, *names], value=guess.value or NO_COLUMN),
            self.box_typed: gr.update(visible=guess.condition is None),
            self.notice: notice("", message, tone="info"),
        }

    def draw(self, *fields: Any) -> Iterator[dict]:  # noqa: ANN401 - the form and the state
        """Draw the map that the form describes."""
        *values, shown = fields
        yield from self._draw(Form(*values), shown)

    def _draw(self, form: Form, shown: Shown | None) -> Iterator[dict]:
        try:
            settings, points = form.layout(), form.points()
            work = self.pool.run(build_map, form.model, points, **settings, measures=False)
            for done, total in work.steps():
                yield self._busy(
                    f"Drawing {len(points.texts):,} points with {self.pool.info(form.model).title}", done, total
                )
            result = work.result()
        except CondvizError:
            # What is still there must not pass for the answer to what was asked now.
            old = "" if shown is None else "The previous map; the new one could not be drawn."
            yield {getattr(self, side): panel_update(message=old, tone="old") for side in SIDES}
            raise
        yield self._show(Shown(result, form, result.colour)) | {self.stop: gr.update(visible=False)}

    def paint(self, colour: str, shown: Shown | None) -> dict:
        """Colour the points by something else."""
        shown = _needed(shown)
        value = "" if shown.value else shown.value
        return self._show(replace(shown, colour=colour, value=value, chosen=None if shown.value else shown.chosen))

    def find(self, search: str, shown: Shown | None) -> dict:
        """Choose the points whose sentence contains the words."""
        return self._picks(_searched(_needed(shown), search))

    def select(self, event: gr.EventData, shown: Shown | None) -> dict:
        """Choose the points that were drawn around."""
        chosen = view.positions(event.ids, len(_needed(shown).result.points.texts))
        return self._picks(replace(shown, search="", value="", chosen=tuple(chosen) or None, marked=None))

    def open_point(self, event: gr.EventData, shown: Shown | None) -> dict:
        """Show the neighbours of a point."""
        found = view.positions([event.id], len(_needed(shown).result.points.texts))
        return self._picks(replace(shown, marked=found[0])) if found else {self.notice: gr.skip()}

    def act(self, event: gr.EventData, shown: Shown | None) -> dict:
        """Answer a click on the legend, the list of points, or a count of the table of clusters."""
        shown, act = _needed(shown), str(event.act)
        if act == "open":
            return self.open_point(event, shown)
        if act == "back":
            return self._picks(replace(shown, marked=None))
        if act == "clear":
            return self._picks(replace(shown, search="", value="", chosen=None, marked=None)) | {self.search: ""}
        if act == "value":
            return self._picks(_with_value(shown, str(event.id))) | {self.search: ""}
        members = view.cell_members(shown.result, str(event.side), str(event.group), str(event.cluster))
        return self._picks(replace(shown, search="", value="", chosen=members, marked=None)) | {self.search: ""}

    # ---- sections, each computed when it is opened -------------------------------------------------------------------
    def measure(self, shown: Shown | None) -> Iterator[dict]:
        """Measure impurity, isotropy and W_c, and show them."""
        from condviz.plots.maps import plot_conditions, plot_spectra

        shown = _needed(shown)
        result = shown.result
        if result.after.measures is None:
            work = self.pool.run(build_map, shown.form.model, result.points, method="pca")
            for done, total in work.steps():
                message = f"Measuring {100 * done / total:.0f} %" if total else "Measuring."
                yield {
                    self.impurity_notice: notice("", message, tone="busy", share=done / total if total else 0.0),
                    self.impurity_stop: gr.update(visible=True),
                }
            found = work.result()
            sides = {side: replace(getattr(result, side), measures=getattr(found, side).measures) for side in SIDES}
            rest = {name: getattr(found, name) for name in ("matrices", "random_matrices")}
            shown = replace(shown, result=replace(result, **sides, **rest))
        matrices = shown.result.matrices
        step = {
            self.measures: view.measures(shown.result),
            self.shown: shown,
            self.colour: gr.update(choices=view.colours(shown.result)),
            self.box_matrices: gr.update(visible=bool(matrices)),
            self.impurity_stop: gr.update(visible=False),
        }
        if matrices:
            step[self.spectra] = panel_update(figure=plot_spectra(matrices))
            few = "" if matrices["places"] else "Three conditions or more are needed to lay them out."
            step[self.places] = panel_update(figure=plot_conditions(matrices) if not few else None, message=few)
        yield step

    def show_points(self, shown: Shown | None) -> dict:
        """List the chosen points, or all."""
        shown = _needed(shown)
        frame = shown.result.to_frame()
        frame = frame if shown.chosen is None else frame.iloc[list(shown.chosen)]
        return {self.points: frame.head(1_000).round(3)}

    def show_exports(self, shown: Shown | None) -> dict:
        """Offer the map as link, JSON, CSV and Python."""
        shown = _needed(shown)
        points = shown.result.points
        texts = (
            list(dict.fromkeys(points.texts))
            if points.crossed
            else {"text": list(points.texts), "condition": list(points.conditions)}
        )
        call = [("model", shown.form.model), ("sentences", texts)]
        call += [("conditions", list(points.groups))] if points.crossed else []
        made = shown.result.made
        call += [(name, getattr(made, name)) for name in ("method", "n_neighbors", "min_dist", "seed")]
        offered = export.offer(
            shown.result, link=shown.link(), python=export.python_call("build_map", call), file="map.csv"
        )
        return {self.hand_out: render("map/export.html", offered=offered, linked=shown.form.link() is not None)}

    # ---- endpoints ---------------------------------------------------------------------------------------------------
    def api_embedding_map(
        self,
        sentences: list[str],
        conditions: list[str],
        model: str,
        values: list[str] | None = None,
        crossed: bool = False,
        method: str = "umap",
        num_neighbors: int = 15,
        min_dist: float = 0.1,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Lay sentences out before and after conditioning, and measure both spaces.

        Args:
            sentences: Three different ones to 5,000 points.
            conditions: One per sentence; with `crossed`, a list that every sentence is put under.
            model: Name as /models lists it; cross-encoders have no map.
            values: Value of each sentence under its condition, or nothing.
            crossed: Put every sentence under every condition.
            method: "umap" or "pca".
            num_neighbors: n_neighbors of UMAP, 2 to 200.
            min_dist: Of UMAP, from 0 to below 1.
            seed: Of UMAP.

        Returns:
            Coordinates, neighbours, clusters, impurity, isotropy and values; missing numbers are null.
        """
        points = _api_points(sentences, conditions, values, crossed)
        settings = {"method": method, "n_neighbors": num_neighbors, "min_dist": min_dist, "seed": seed}
        return self.pool.run(build_map, model, points, **settings).result().to_dict()

    def api_impurity(
        self,
        sentences: list[str],
        conditions: list[str],
        model: str,
        values: list[str] | None = None,
        crossed: bool = False,
        clusters: int = 0,
    ) -> dict[str, Any]:
        """Measure whether sentences under one condition lie together, before and after conditioning.

        Args:
            sentences: Three different ones to 5,000 points.
            conditions: One per sentence; with `crossed`, a list that every sentence is put under.
            model: Name as /models lists it.
            values: Value of each sentence under its condition, or nothing.
            crossed: Put every sentence under every condition.
            clusters: K of K-means; 0 takes the number of conditions.

        Returns:
            {"points", "before", "after", "random_matrices"}: impurity (nats, bits, share of the maximum, chance, p,
            table), isotropy, silhouette, values, and why one of them is missing.
        """
        points = _api_points(sentences, conditions, values, crossed)
        made = self.pool.run(build_map, model, points, method="pca", clusters=clusters or None).result()
        sides = {side: getattr(made, side).measures.to_dict() for side in SIDES}
        return {"points": len(points.texts), **sides, "random_matrices": made.random_matrices}

    # ---- pictures ----------------------------------------------------------------------------------------------------
    def _busy(self, message: str, done: int, total: int) -> dict:
        share = done / total if total else 0.0
        text = f"{message}, {100 * share:.0f} %" if total else f"{message} ..."
        panels = {getattr(self, side): panel_update(message=text, tone="busy", share=share) for side in SIDES}
        return {**panels, self.stop: gr.update(visible=True)}

    def _boxes(self, form: Form) -> dict:
        typed = form.source == "texts" or (form.source == "table" and form.condition_column in (None, TYPED))
        return {
            self.aspects: gr.update(visible=form.source == "scenes"),
            self.box_table: gr.update(visible=form.source == "table"),
            self.sentences: gr.update(visible=form.source == "texts"),
            self.box_typed: gr.update(visible=typed),
        }

    def _show(self, shown: Shown) -> dict:
        """Draw everything anew."""
        from condviz.plots.maps import colouring, plot_side

        colours = colouring(shown.result, shown.colour)
        figures = {
            getattr(self, side): panel_update(
                figure=plot_side(shown.result, side, colours), message="", selection=_ids(shown), marked=_marked(shown)
            )
            for side in SIDES
        }
        return {
            **self._picks(shown),
            **figures,
            self.head: view.head(shown.result, shown.link()),
            self.legend: view.legend(colours, shown.value),
            self.colour: gr.update(choices=view.colours(shown.result), value=colours.name),
            self.search: shown.search,
            **{part: gr.Accordion(open=False) for part in (self.impurity, self.all_points, self.exports)},
        }

    def _picks(self, shown: Shown) -> dict:
        """Show what is picked; the figures keep their data."""
        from condviz.plots.maps import colouring

        picked = {
            getattr(self, side): panel_update(selection=_ids(shown), marked=_marked(shown)) for side in SIDES
        }  # fmt: skip
        return {
            **picked,
            self.shown: shown,
            self.head: view.head(shown.result, shown.link(), picked=True, typing=bool(shown.search)),
            self.legend: view.legend(colouring(shown.result, shown.colour), shown.value),
            self.reading: view.reading(shown.result, shown.chosen, shown.marked, shown.search or shown.value),
        }

    def _picked(self, shown: Shown, values: Values) -> Shown:
        """Pick what a link says."""
        colour = first(values, "by", shown.result.colour)
        shown = replace(shown, colour=colour if colour in dict(view.colours(shown.result)).values() else shown.colour)
        if value := first(values, "v"):
            shown = _with_value(shown, value)
        if search := first(values, "q"):
            shown = _searched(shown, search)
        marked = view.positions(values.get("p", []), len(shown.result.points.texts))
        return replace(shown, marked=marked[0]) if marked else shown


def _draws(info: Any) -> bool:  # noqa: ANN401 - a ModelInfo
    return info.kind != "cross" and info.method != "unconditional" and not info.graph


def _compile() -> None:
    try:
        warm_up()
    except CondvizError:
        return  # without umap-learn, a map says what is missing


def _script() -> str:
    return "condviz.map(element, (data) => trigger('act', data));"


def _stored(page: Page) -> EmbeddingMap | None:
    """Return the map that is shown before any model has loaded; None where it belongs to another default model."""
    content = read_asset("map_scene.json")
    if not isinstance(content, dict) or content.get("model", {}).get("name") != page.pool.default:
        return None
    return EmbeddingMap.from_dict(content)


def _needed(shown: Shown | None) -> Shown:
    if shown is None:
        raise DataError("There is no map yet. Press Draw map first.")
    return shown


def _ids(shown: Shown) -> list[str]:
    return [] if shown.chosen is None else [str(index) for index in shown.chosen]


def _marked(shown: Shown) -> str | None:
    return None if shown.marked is None else str(shown.marked)


def _searched(shown: Shown, search: str) -> Shown:
    words = search.casefold().split()
    texts = shown.result.points.texts
    found = tuple(i for i, text in enumerate(texts) if all(word in text.casefold() for word in words))
    return replace(shown, search=search if words else "", value="", chosen=found if words else None, marked=None)


def _with_value(shown: Shown, value: str) -> Shown:
    """Choose a category of the legend, or release it where it is chosen already."""
    from condviz.plots.maps import colouring

    members = {view.category_id(row): row.members for row in colouring(shown.result, shown.colour).categories}
    if value == shown.value or value not in members:
        return replace(shown, value="", search="", chosen=None)
    return replace(shown, value=value, search="", chosen=members[value], marked=None)


def _api_points(
    sentences: Sequence[str], conditions: Sequence[str], values: Sequence[str] | None, crossed: bool
) -> MapPoints:
    import pandas as pd

    if not isinstance(sentences, list) or not isinstance(conditions, list):
        raise DataError("sentences and conditions must be lists of texts.")
    if crossed:
        if values:
            raise DataError("values belong to one condition each; leave them out, or give one condition per sentence.")
        return points_from_texts(sentences, conditions, max_points=MAX_POINTS)
    columns = {"text": sentences, "condition": conditions, **({"value": values} if values else {})}
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{length:,} of {name}" for name, length in lengths.items())
        raise DataError(f"Give one condition (and value) per sentence, or set crossed; got {found}.")
    return points_from_table(pd.DataFrame(columns), max_points=MAX_POINTS)


def _whole(value: float | None, name: str) -> int:
    if not isinstance(value, int | float) or value != value or value < 0 or value != int(value):
        raise ConfigError(f"The {name} must be a whole number of at least 0, got {value!r}.")
    return int(value)


TAB = Tab("map", "Map", MapTab)
