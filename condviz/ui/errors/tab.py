"""The Errors tab: where a model goes wrong. Filters and slices, the plot, and the row that is read, side by side."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import gradio as gr
import numpy as np
from markupsafe import Markup

from condviz.analysis.errors.filters import TARGETS
from condviz.analysis.errors.findings import ErrorStudy, find_errors
from condviz.data.pairs import read_pairs
from condviz.errors import CondvizError, DataError, check_count
from condviz.evaluation.dataset import table_dataset
from condviz.spec import takes
from condviz.ui import limits
from condviz.ui.errors import desk as desks
from condviz.ui.errors import view
from condviz.ui.errors.desk import OPTIONS, START, Choice, Desk, Source, needed, resamples_for
from condviz.ui.errors.sections import Sections, presses
from condviz.ui.events import PRIVATE, connect, publish
from condviz.ui.imports import FILE_TYPES, MAX_BYTES, RATED, Import, Reading, check_reading
from condviz.ui.markup import busy, dimmed, html, notice, read_asset, render
from condviz.ui.page import Fields, Page, Tab, closed, stop_button
from condviz.ui.plotly_panel import panel_update, plotly_panel
from condviz.ui.pool import score_rows
from condviz.ui.requests import KEPT
from condviz.ui.state import Values, cut, first, number, place, read_rows

NO_SECOND = ("no second model", "")


class ErrorsTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        self.desk = Desk(page.pool)
        screen = _stored(page)
        shown = self.first_result = Markup(screen.get("result") or render("errors/empty.html"))
        self.result = html(shown, elem_id="cv-err-result", script=presses("filter"))
        with gr.Row(elem_id="cv-err-panes", equal_height=False):
            with gr.Column(elem_id="cv-err-form", elem_classes="cv-form cv-inputs"):
                self._form()
            with gr.Column(elem_id="cv-err-finder"):
                script = presses("filter") + presses("target", "look")
                self.slices = html(screen.get("slices", ""), elem_id="cv-err-slices", script=script)
            with gr.Column(elem_id="cv-err-middle"):
                self.own = Import(self.upload, RATED, "cv-err", "Use this table")
                self.views = html(screen.get("views", ""), elem_id="cv-err-views", script=presses("view", "look"))
                # The figure follows: with its texts it is half a megabyte, which the page would wait for.
                drawn = {"still": screen.get("still", ""), "tool": "select", "height": 380}
                self.plot = plotly_panel(elem_id="cv-err-plot", label="Error of each row", **drawn)
                self.first_figure = screen.get("figure")
            with gr.Column(elem_id="cv-err-reading"):
                script = "condviz.errorRow(element, watch, (data) => trigger('turn', data));"
                read = screen.get("row") or render("errors/nothing.html")
                self.row = html(read, elem_id="cv-err-row", script=script)
        self.figures = html(screen.get("figures", ""), elem_id="cv-err-figures")
        self.choice = gr.State(Choice(first=self.pool.default) if screen else None)
        self.uploaded = gr.State(None)
        self.sections = Sections(page, self.desk, self.choice)
        self._connect()
        page.site.warm_up.append(self._prepare)

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self) -> None:
        self.notice = html("", elem_id="cv-err-notice", render=False)
        with gr.Row(elem_classes="cv-err-data"):
            corpora = self.desk.corpora()
            self.data = gr.Dropdown(corpora, value=START, label="Data", elem_id="cv-err-data", min_width=120)
            files = {"file_types": FILE_TYPES, "elem_id": "cv-err-upload"}
            self.upload = gr.UploadButton("Upload", min_width=80, scale=0, **files)
        choices, default = self.pool.choices(), self.pool.default
        with gr.Row(elem_classes="cv-err-models"):
            self.first = gr.Dropdown(choices, value=default, label="Model", elem_id="cv-err-first", min_width=200)
            second = {"label": "Compare with", "elem_id": "cv-err-second", "min_width": 200}
            self.second = gr.Dropdown([NO_SECOND, *choices], value="", **second)
        self.options = Fields(find_errors, OPTIONS, prefix="cv-err")
        fields: list[Any] = list(self.options.components.values())
        self.filter, self.exclude = fields
        with gr.Row(elem_classes="cv-actions"):
            self.run = gr.Button("Find errors", variant="primary", elem_id="cv-err-run", min_width=90)
            self.clear = gr.Button("All rows", elem_id="cv-err-clear", min_width=70)
            self.stop = stop_button(elem_id="cv-err-stop")
        self.notice.render()

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        form = [self.data, self.first, self.second, self.filter, self.exclude]
        shown = [self.result, self.views, self.plot, self.slices, self.figures, self.row, self.choice]
        shown += [*self.page.folded, self.sections.effect]
        main = {"notice": self.notice, "stop": self.stop, "heavy": True}
        asked, filled = [*form, self.uploaded, self.choice], [*form, *shown]
        models = [self.first, self.second]
        chosen = (self.data, self.first, self.second, self.exclude)
        triggers = [self.filter.submit, *(one.input for one in chosen)]
        read, picked = [self.own.reading, *models, self.choice], [self.own.box, self.own.told, self.uploaded, *filled]
        linked = [*filled, self.uploaded, *self.sections.linked]
        runs = [
            connect(triggers, self.find, asked, filled, **main),
            connect(self.run.click, self.find_here, [self.own.reading, *asked], picked, **main),
            *self.page.on_link(self.open_link, [self.choice], linked, needs=["ed"], **main),
            connect(self.own.reading.change, self.read_upload, read, picked, **main),
            connect(self.own.use.click, self.use_upload, read, picked, **main),
        ]
        # A stopped run must not leave its progress on the picture.
        for run in runs:
            run.failure(lambda: panel_update(message=""), None, self.plot, queue=False, **PRIVATE)
        connect(self.clear.click, self.all_rows, [self.choice], [self.filter, *shown], **main)
        for component in (self.result, self.slices, self.sections.worst):
            connect(component.press, self.press, [self.choice], [self.filter, *shown], **main)
        for component in (self.slices, self.views):  # what is still computed for the slice goes on
            connect(component.look, self.look, [self.choice], shown, notice=self.notice)
        part = self.sections
        asked = [part.groups, self.choice]
        regrouped = [*shown, self.notice, part.column, part.worst, part.grouping, part.groups]
        connect(part.regroup.click, self.regroup, asked, regrouped, notice=part.worst_part.notice, heavy=True)
        connect(self.plot.select, self.brush, [self.choice], shown, **main)
        ready = {"notice": self.notice, "queue": False, "by_itself": True}
        connect(self.plot.ready, self.draw, [self.choice], [self.plot], **ready)
        opened = [self.row, self.choice, self.plot, self.result, self.sections.near_part.accordion]
        for event, open_row in (
            (self.plot.click, self.point), (self.row.turn, self.turn), (self.sections.rows.select, self.pick),
        ):  # fmt: skip
            connect(event, open_row, [self.choice], opened, notice=self.notice)
        self.page.opened(self.offer, [self.choice], [self.first, self.second], queue=False, **PRIVATE)
        publish(self.api_errors, "errors")

    def find(
        self, data: str, model: str, second: str, filter_: str, exclude: bool, uploaded: Source | None,
        choice: Choice | None,
    ) -> Iterator[dict]:  # fmt: skip
        """Score the rows where that is needed, and show what is found."""
        source = uploaded if data == "upload" and uploaded else Source(str(data))
        old = choice or Choice()
        same = old.source == source
        first, second = _two((model, second) if same else self._in_pool(model, second))
        row = old.row if same else None
        target = old.target if second or old.target not in ("first", "second") else ""
        groups = old.groups if same else ""
        asked = Choice(source, first, second, filter_ or "", exclude, (), target, old.view, row, groups)
        yield from self._find(asked, shown=choice)

    def find_here(self, reading: Reading | None, *form: Any) -> Iterator[dict]:  # noqa: ANN401 - as `find`
        """Find errors in the table that the assistant has ready and nobody has used yet, else in what is chosen."""
        _, model, second, *_, uploaded, choice = form
        if reading is None or reading.problem or (uploaded and uploaded.reading == reading):
            yield from self.find(*form)
        else:
            yield from self.use_upload(reading, model, second, choice)

    def offer(self, choice: Choice | None) -> dict:
        """Offer the models that there are by now, and the columns of the file."""
        stored = ()
        with suppress(CondvizError):  # a table that is gone has none
            stored = tuple(self.desk.dataset(choice.source).stored) if choice else ()
        choices = self._choices(stored)
        return {self.first: gr.update(choices=choices), self.second: gr.update(choices=[NO_SECOND, *choices])}

    def _choices(self, stored: Collection[str]) -> list[tuple[str, str]]:
        own = [(f"{name} (from the file)", name) for name in stored]
        return [*own, *((title, name) for title, name in self.pool.choices() if name not in stored)]

    def _in_pool(self, *names: str) -> list[str]:
        """Return those that are models; columns of the file before have no scores of other rows."""
        return [name for name in names if name in self.pool.names]

    def _find(
        self, choice: Choice, *, shown: Choice | None = None, asked: bool = False, rows: str = ""
    ) -> Iterator[dict]:
        """Show what is found in a choice, of which a link may select `rows`; what is `shown` until then is dimmed."""
        yield {**self._busy("Reading the rows."), self.stop: gr.update(visible=True), **self._dimmed(shown)}
        try:
            if rows:
                size = len(self.desk.dataset(choice.source).pairs)
                choice = replace(choice, selected=read_rows(rows, size))
            yield from self._score(choice, asked=asked)
        except Exception:
            # What is still there must not pass for the answer to what was asked now.
            old = "The previous findings; the new ones could not be computed." if shown else ""
            yield {self.plot: panel_update(message=old, tone="old")}
            raise

    def _dimmed(self, shown: Choice | None) -> dict:
        picture = ""
        if shown == Choice(first=self.pool.default):  # nothing was computed for it yet, and a press is answered at once
            picture = self.first_result
        elif shown:
            with suppress(CondvizError):
                picture = view.result(self.desk.found(shown), shown)
        return {self.result: dimmed(picture)} if shown else {}

    def _score(self, choice: Choice, *, asked: bool) -> Iterator[dict]:
        dataset = self.desk.dataset(choice.source)
        if not choice.first:
            choice = replace(choice, first=next(iter(dataset.stored), self.pool.default))
        # Raises where there is none of a name, before anything is scored.
        titles = {name: self.pool.info(name).full_title for name in choice.names if name not in dataset.stored}
        for name, title in titles.items():
            if self.desk.known(dataset, name) is None:
                work = self.pool.run(score_rows, name, dataset.pairs, rows=len(dataset.pairs))
                for done, total in work.steps():
                    yield self._busy(f"{title} scores {len(dataset.pairs):,} rows.", done, total)
                self.desk.keep(dataset, name, work.result())
        choices = self._choices(dataset.stored)
        yield {
            self.first: gr.Dropdown(choices, value=choice.first),
            self.second: gr.Dropdown([NO_SECOND, *choices], value=choice.second),
            **self.options.updates(vars(choice)),
        }
        yield from self._show(choice, asked=asked)

    def _show(self, choice: Choice, *, keep_selection: bool = False, asked: bool = False) -> Iterator[dict]:
        """Show what is found: at once without intervals, then with them."""
        yield self._busy("Looking for slices.")
        study = self.desk.study(choice)
        found = self.desk.found(choice)
        rated = bool(study.rated.any())
        shown = view.parts(found, choice, waiting=rated, asked=asked)
        step = {
            **{getattr(self, name): part for name, part in shown.items()},
            self.choice: choice,
            self.sections.effect: "",
            **self._figure(found, choice, keep_selection=keep_selection),
            **closed(self.page.folded),
        }
        yield {**step, self.notice: busy("Computing intervals.") if rated else ""}
        if rated:
            found = self.desk.found(choice, resamples=resamples_for(study))
            yield {self.figures: view.figures(found, waiting=False)}

    def draw(self, request: gr.Request, choice: Choice | None) -> dict:
        """Draw the figure now that there is a place for it, unless what a link asks for takes it."""
        if choice in (None, Choice(first=self.pool.default)):
            # The example's would be seen for a moment before what a link asks for.
            first = choice and "ed" not in request.query_params
            drawn = {self.plot: panel_update(fallback=self.first_figure)} if first else {}
        else:
            drawn = {self.plot: panel_update(fallback=view.figure(self.desk.found(choice), choice))}
        return {**drawn, self.notice: gr.skip()}

    def all_rows(self, choice: Choice | None) -> Iterator[dict]:
        yield {self.filter: "", **self._dimmed(choice)}
        yield from self._show(replace(needed(choice), filter="", selected=()))

    def regroup(self, groups: str, choice: Choice | None) -> Iterator[dict]:
        """Take conditions for the same as the visitor has written it, and judge them again where they stand."""
        choice = replace(needed(choice), groups=cut(groups.strip()))
        self.desk.study(choice)  # raises before anything is dimmed
        for step in self._show(choice):
            yield {**step, self.sections.worst_part.accordion: gr.skip()}
        yield self.sections.show_worst(choice, "asks")

    def press(self, event: gr.EventData, choice: Choice | None) -> Iterator[dict]:
        """Filter by a slice."""
        choice = needed(choice)
        value = _both(choice.filter, str(event.value))
        yield {self.filter: value, **self._dimmed(choice)}
        yield from self._show(replace(choice, filter=value, row=None))

    def look(self, event: gr.EventData, choice: Choice | None) -> dict:
        """Look for another kind of slice, or draw another figure."""
        choice, value = needed(choice), str(event.value)
        if value not in {"target": TARGETS, "view": view.VIEWS}.get(event.name, ()):
            return {}
        choice = replace(choice, **{event.name: value})
        found = self.desk.found(choice)
        figure = self._figure(found, choice) if event.name == "view" else {}
        parts = {self.slices: view.slices(found, choice.target), self.views: view.parts(found, choice)["views"]}
        return {**parts, **figure, **self._picked(choice), self.notice: gr.skip()}

    def _picked(self, choice: Choice) -> dict:
        """Keep a choice of the same slice, and put it into the address."""
        return {self.choice: choice, self.result: view.result(self.desk.found(choice), choice, picked=True)}

    def brush(self, event: gr.EventData, choice: Choice | None) -> Iterator[dict]:
        """Take the rows that were chosen in the plot as the slice."""
        choice = needed(choice)
        count = len(self.desk.dataset(choice.source).pairs)
        rows = sorted({row for one in event.ids if (row := place(one, count)) is not None})
        yield from self._show(replace(choice, selected=tuple(rows), row=None), keep_selection=True)

    # ---- one row -----------------------------------------------------------------------------------------------------
    def point(self, event: gr.EventData, choice: Choice | None) -> dict:
        return self._open(needed(choice), event.id) if event.id is not None else {}

    def pick(self, event: gr.SelectData, choice: Choice | None) -> dict:
        choice = needed(choice)
        numbers = self.desk.dataset(choice.source).numbers  # rows that were left out count
        found = np.flatnonzero(numbers == (place(event.row_value[0], 10**9) or 0))
        return self._open(choice, int(found[0]) if len(found) else -1, mark=True)

    def turn(self, event: gr.EventData, choice: Choice | None) -> dict:
        choice = needed(choice)
        order = self.desk.found(choice).rows
        # Without a choice the first row of the slice is open.
        here = np.flatnonzero(order == (choice.row if choice.row is not None else order[0]))
        step = -1 if str(event.step).startswith("-") else 1
        target = int(here[0]) + step if len(here) else 0
        if not 0 <= target < len(order):
            return {}
        return self._open(choice, int(order[target]), mark=True)

    def _open(self, choice: Choice, row: Any, *, mark: bool = False) -> dict:  # noqa: ANN401 - from the browser
        found = place(row, len(self.desk.dataset(choice.source).pairs))
        if found is None:
            raise DataError(f"There is no row {str(row)[:20]!r}. Reload the page.")
        choice = replace(choice, row=found)
        marked = {self.plot: panel_update(marked=str(found))} if mark else {}
        near = closed([self.sections.near_part.accordion])  # it is about the row before
        return {self.row: view.row(self.desk.found(choice), choice), **self._picked(choice), **marked, **near}

    # ---- uploads and links -------------------------------------------------------------------------------------------
    def read_upload(self, reading: Reading | None, model: str, second: str, choice: Choice | None) -> Iterator[dict]:
        """Use a table at once where nothing is in doubt; else its visitor looks at it first, and the old is dimmed."""
        if reading is None or (choice and choice.source.reading == reading):
            yield {self.notice: gr.skip()}
        elif reading.new and reading.sure:
            yield from self.use_upload(reading, model, second, choice)
        else:
            look = notice("", "Check how the table is read, then press Use this table.", tone="info")
            yield {self.own.told: gr.skip() if reading.problem else look, **self._dimmed(choice)}

    def use_upload(self, reading: Reading | None, model: str, second: str, choice: Choice | None) -> Iterator[dict]:
        """Find errors in the table as it is read now."""
        if reading is None:
            raise DataError("No table has been uploaded. Upload one first.")
        yield {self.own.box: gr.update(open=not reading.column("label")), self.own.told: ""}
        source = Source("upload", reading)
        first, second = _two([*self.desk.dataset(source).stored] or self._in_pool(model, second))
        source = replace(source, token=KEPT.add(reading, reading.path))
        menu = self._menu(source)
        yield menu
        yield from self._find(Choice(source, first, second), shown=choice)
        # Of two updates that arrive together gradio may drop one: the menu would name other rows than those judged.
        yield {**menu, self.notice: gr.skip()}

    def _menu(self, source: Source) -> dict:
        """Choose an upload, which the menu offers beside the corpora."""
        choices = [*self.desk.corpora(), (source.name, "upload")]
        return {self.data: gr.Dropdown(choices, value="upload"), self.uploaded: source}

    def open_link(self, values: Values, choice: Choice | None) -> Iterator[dict]:
        key, second, target, drawn = (first(values, name) for name in ("ed", "eb", "et", "ev"))
        reading = KEPT.find(key, Reading)
        source = Source("upload", reading, key) if reading else Source(key)
        row = number(values, "er", 0, low=0, high=10**8)
        asked = Choice(
            source, first(values, "ea") or self.pool.default, second, **self.options.read(values),
            target=target if target in TARGETS else "", view=drawn if drawn in view.VIEWS else "",
            row=row - 1 if row else None, groups=first(values, "eg"),
        )  # fmt: skip
        known = key in {name for _, name in self.desk.corpora()}
        menu = self._menu(source) if source.token else {self.data: key if known else gr.skip()}
        yield {**menu, **self.sections.restore(values)}
        yield from self._find(asked, shown=choice, asked=True, rows=first(values, "es"))

    # ---- endpoint ----------------------------------------------------------------------------------------------------
    @takes(find_errors, resamples=1000)
    def api_errors(
        self, data: str, models: list[str], *, reading: dict | None = None,
        **options: Any,  # noqa: ANN401
    ) -> dict[str, Any]:  # fmt: skip
        """Find where one or two models are wrong.

        Args:
            data: A part of a corpus such as "scenes:test", or the content of a CSV file.
            models: One name or two, as /models lists them or as columns score_NAME of the table.
            reading: How the CSV is read: {"columns", "condition", "scale", "labels", "header", "separator",
                "encoding"}, each of them optional, as `condviz.read_pairs` takes them.
        """
        if not 1 <= len(models) <= 2:
            raise DataError(f"One or two models can be analysed, got {len(models)}.")
        check_count("resamples", options["resamples"], 0, desks.MAX_RESAMPLES)
        if not re.fullmatch(r"[\w:.+-]*", data):  # no name of a part: a table, be it a header alone
            table = read_pairs(io.StringIO(data), skip_bad=True, max_bytes=MAX_BYTES, **check_reading(reading))
            dataset = table_dataset(table, "the table", max_rows=limits.ERROR_ROWS)
        else:
            dataset = self.desk.dataset(Source(data))
        for name in models:
            if self.desk.known(dataset, name) is None:
                work = self.pool.run(score_rows, name, dataset.pairs, rows=len(dataset.pairs))
                self.desk.keep(dataset, name, work.result())
        return desks.analyse(self.desk.judge(dataset, models), **options).to_dict()

    # ---- pictures ----------------------------------------------------------------------------------------------------
    def _prepare(self) -> None:
        """Find what the page opens with before a visitor goes on from it."""
        with suppress(CondvizError):
            self.desk.found(Choice(first=self.pool.default))

    def _busy(self, message: str, done: int = 0, total: int = 0) -> dict:
        share = done / total if total else 0.0
        text = f"{message} {100 * share:.0f}\N{NO-BREAK SPACE}%" if total else message
        return {
            self.plot: panel_update(message=text, tone="busy", share=share),
            self.notice: busy(message, done, total),
        }

    def _figure(self, found: ErrorStudy, choice: Choice, *, keep_selection: bool = False) -> dict:
        rows = np.flatnonzero(found.mask) if found.filter or found.selected else ()
        chosen: dict[str, Any] = {} if keep_selection else {"selection": [str(row) for row in rows]}
        marked = None if choice.row is None else str(choice.row)
        return {self.plot: panel_update(figure=view.figure(found, choice), message="", marked=marked, **chosen)}


def _stored(page: Page) -> dict[str, str]:
    """Return what is shown before any model has loaded; nothing for another default model."""
    screen = read_asset("errors_screen.json")
    return screen if isinstance(screen, dict) and screen.get("model") == page.pool.default else {}


def _two(models: Iterable[str | None]) -> tuple[str, str]:
    """Return the first two of the models that are named, each once; "" for none."""
    first, second, *_ = *dict.fromkeys(filter(None, models)), "", ""
    return first, second


def _both(filter_: str, further: str) -> str:
    """Return a filter for the rows that meet both, without a condition that is there already."""
    if not filter_ or further == filter_:
        return further
    if " or " not in filter_ and further in filter_.split(" and "):
        return filter_
    return " and ".join(f"({part})" if " or " in part else part for part in (filter_, further))


TAB = Tab("errors", "Errors", ErrorsTab)
