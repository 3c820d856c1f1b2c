"""The Errors tab: where a model goes wrong. Filters and slices, the plot, and the row that is read, side by side."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np
from gradio.components.textbox import InputHTMLAttributes

from condviz.analysis.errors.columns import COLUMN_HELP, RULES, TARGETS
from condviz.errors import CondvizError, DataError
from condviz.ui import export
from condviz.ui.errors.tables import MAX_ROWS, MAX_TABLE_BYTES, ROLES, Forgotten, Source, Tables
from condviz.ui.events import connect, explain, publish
from condviz.ui.markup import busy, html, notice, render
from condviz.ui.page import Page, Tab, section
from condviz.ui.plotly_panel import panel_update, plotly_panel
from condviz.ui.state import Values, first, write_link

if TYPE_CHECKING:
    from condviz.analysis.errors.findings import ErrorStudy, Remark
    from condviz.analysis.errors.study import Study

START = "scenes:test"
VIEWS = {"residuals": "Error by score", "against": "Model against model", "calibration": "Calibration"}
WORK = 25_000_000
"""Rows times resamples that take about a second."""
MAX_RESAMPLES = 10_000
LISTED = 500
"""Rows of the table of rows."""
WORST = 40
MAX_REMARKS, MAX_NOTE, MAX_FILTER = 20_000, 2_000, 2_000
EXAMPLES = (
    "right == 0 and negation",
    'condition in ("the mood", "the sport") and not seen',
    "abs(error) - abs(error_b) > 1",
    '"two" in words and numerals_differ',
)
_PLAIN = InputHTMLAttributes(spellcheck=False, autocapitalize="off", autocorrect="off")


@dataclass(frozen=True)
class Choice:
    """What is chosen: all that a session keeps, and what a link restores.

    Attributes:
        source: The rows.
        first, second: The model, and one to compare with or "".
        filter: The slice.
        selected: Positions of rows chosen in the plot; () for none.
        target: What slices are looked for: a key of `TARGETS`.
        view: Key of `VIEWS`.
        row: Position of the row that is read, or None.
    """

    source: Source = field(default_factory=lambda: Source(START))
    first: str = ""
    second: str = ""
    filter: str = ""
    selected: tuple[int, ...] = ()
    target: str = "over"
    view: str = "residuals"
    row: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The one or two models."""
        return tuple(filter(None, (self.first, self.second)))

    @property
    def link(self) -> str:
        """The query string that opens this; an upload is not part of it."""
        row = "" if self.row is None else str(self.row + 1)
        pairs = [("ed", self.source.key), ("ea", self.first), ("eb", self.second), ("ef", self.filter)]
        return write_link("errors", [*pairs, ("et", self.target), ("ev", self.view), ("er", row)])


class ErrorsTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        """Lay out and connect."""
        self.page, self.pool = page, page.pool
        self.tables = Tables(page.pool)
        self.result = html(render("errors/empty.html"), elem_id="cv-err-result")
        with gr.Row(elem_id="cv-err-panes", equal_height=False):
            with gr.Column(elem_id="cv-err-form", elem_classes="cv-form cv-inputs"):
                self._form()
            send = "(data) => trigger('press', data)"
            with gr.Column(elem_id="cv-err-finder"):
                script = f"condviz.errors(element, ['filter', 'target'], {send});"
                self.slices = html("", elem_id="cv-err-slices", script=script)
            with gr.Column(elem_id="cv-err-middle"):
                self.views = html("", elem_id="cv-err-views", script=f"condviz.errors(element, ['view'], {send});")
                self.plot = plotly_panel(elem_id="cv-err-plot", label="Error of each row", tool="select", height=380)
            with gr.Column(elem_id="cv-err-reading"):
                script = "condviz.errorRow(element, watch, (data) => trigger('turn', data));"
                self.row = html(render("errors/nothing.html"), elem_id="cv-err-row", script=script)
        self.figures = html("", elem_id="cv-err-figures")
        self.choice = gr.State(None)
        self.uploaded = gr.State(None)
        self._sections()
        self._connect()

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self) -> None:
        with gr.Row(elem_classes="cv-err-data"):
            self.data = gr.Dropdown(
                self.tables.corpora(), value=START, label="Rows", elem_id="cv-err-data", min_width=120
            )
            self.upload = gr.UploadButton(
                "Upload", file_types=[".csv", ".tsv", ".txt"], elem_id="cv-err-upload", min_width=80, scale=0
            )
        with gr.Column(visible=False, elem_id="cv-err-pickers") as self.pickers:
            self.sample = html("", elem_id="cv-err-sample")
            titles = ("First sentence", "Second sentence", "Condition", "Rating (1 to 5)")
            with gr.Row(elem_classes="cv-err-two"):
                self.columns = [gr.Dropdown([], label=title, min_width=110) for title in titles]
            self.use = gr.Button("Use these columns", variant="primary", elem_id="cv-err-use")
        choices = self.pool.choices()
        with gr.Row(elem_classes="cv-err-models"):
            self.first = gr.Dropdown(
                choices, value=self.pool.default, label="Model", elem_id="cv-err-first", min_width=200
            )
            self.second = gr.Dropdown(
                [("none", ""), *choices], value="", label="Compare with", elem_id="cv-err-second", min_width=200
            )
        self.filter = gr.Textbox(
            label="Filter rows", placeholder="gold >= 4 and error < -1", lines=1, max_lines=3,
            elem_id="cv-err-filter", html_attributes=_PLAIN,
        )  # fmt: skip
        with gr.Row(elem_classes="cv-actions"):
            self.run = gr.Button("Find errors", variant="primary", elem_id="cv-err-run", min_width=90)
            self.clear = gr.Button("All rows", elem_id="cv-err-clear", min_width=70)
            self.stop = gr.Button("Stop", elem_id="cv-err-stop", visible=False, min_width=60)
        self.notice = html("", elem_id="cv-err-notice")

    def _sections(self) -> None:
        with section("Rows of the slice", elem_id="cv-errors-rows") as self.rows_part:
            self.rows = gr.Dataframe(interactive=False, max_height=420, wrap=True, elem_id="cv-err-rows")
        with section("Worst conditions", elem_id="cv-errors-worst") as self.worst_part:
            self.column = gr.Dropdown([], label="Values of the column", min_width=160, elem_id="cv-err-column")
            script = "condviz.errors(element, ['filter'], (data) => trigger('press', data));"
            self.worst = html("", elem_id="cv-err-worst", script=script)
        with section("Does the model follow the condition?", elem_id="cv-errors-follow") as self.follow_part:
            self.follow = html("", elem_id="cv-err-follow")
        with section("Rewrite the slice and score it again", elem_id="cv-errors-rewrite"):
            with gr.Row(elem_classes="cv-actions"):
                rules = [(title, name) for name, title in RULES.items()]
                self.rule = gr.Dropdown(rules, value="number", label="Rule", elem_id="cv-err-rule", min_width=220)
                self.old = gr.Textbox(label="Word", placeholder="red", visible=False, min_width=100)
                self.new = gr.Textbox(label="Replace with", placeholder="blue", visible=False, min_width=100)
                self.rewrite = gr.Button("Rewrite and score", elem_id="cv-err-rewrite", min_width=120)
                self.rewrite_stop = gr.Button("Stop", visible=False, min_width=60)
            self.rewrite_notice = html("", elem_id="cv-err-rewrite-notice")
            self.effect = html("", elem_id="cv-err-effect")
        with section("Training rows like the one that is read", elem_id="cv-errors-near") as self.near_part:
            self.near_notice = html("", elem_id="cv-err-near-notice")
            self.near = html("", elem_id="cv-err-near")
        with section("Report, rows, link, JSON, Python", elem_id="cv-errors-export") as self.exports:
            script = "condviz.errors(element, ['save'], (data) => trigger('press', data));"
            self.save = html(render("errors/save.html"), elem_id="cv-err-save", script=script)
            self.file = html("", elem_id="cv-err-file", script="condviz.errorFile(element, watch);")
            self.hand_out = html("", elem_id="cv-err-hand-out")
        with section("What a table needs, and how filters are written", elem_id="cv-errors-help"):
            html(
                render("errors/help.html", rows=MAX_ROWS, examples=EXAMPLES, columns=COLUMN_HELP), elem_id="cv-err-help"
            )

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        form = [self.data, self.first, self.second, self.filter]
        folded = [self.rows_part, self.worst_part, self.follow_part, self.near_part, self.exports]
        shown = [
            self.result, self.views, self.plot, self.slices, self.figures, self.row, self.choice, self.run, *folded,
        ]  # fmt: skip
        main = {"notice": self.notice, "stop": self.stop, "heavy": True}
        latest = {"trigger_mode": "always_last"}
        chosen = [*form, self.uploaded, self.choice]
        triggers = [self.run.click, self.filter.submit, self.data.input, self.first.input, self.second.input]
        connect(triggers, self.find, chosen, [*form, *shown], **main, **latest)
        connect(self.clear.click, self.all_rows, [self.choice], [self.filter, *shown], **main)
        connect(self.page.tab.select, self.start, chosen, [*form, *shown], **main)
        self.page.on_link("errors", self.open_link, [self.choice], [*form, *shown], notice=self.notice, stop=self.stop)
        picked = [self.pickers, self.sample, *self.columns, self.uploaded, self.data]
        connect(
            self.upload.upload, self.read_upload, [self.upload, self.first, self.second],
            [*picked, *form, *shown], **main,
        )  # fmt: skip
        connect(
            self.use.click, self.use_columns, [*self.columns, self.uploaded, self.first, self.second],
            [*picked, *form, *shown], **main,
        )  # fmt: skip
        for component in (self.slices, self.worst, self.views):
            connect(component.press, self.press, [self.choice], [self.filter, *shown], **main, **latest)
        connect(self.plot.select, self.brush, [self.choice], shown, **main, **latest)
        connect(self.plot.ready, self.draw, [self.choice], [self.views, self.plot], notice=self.notice, queue=False)
        connect(self.plot.click, self.point, [self.choice], [self.row, self.choice, self.result], notice=self.notice)
        connect(self.row.turn, self.turn, [self.choice], [self.row, self.choice, self.plot], notice=self.notice)
        connect(
            self.rows.select, self.pick, [self.choice], [self.row, self.choice, self.plot, self.result],
            notice=self.notice,
        )  # fmt: skip
        connect(self.rows_part.expand, self.show_rows, [self.choice], [self.rows], notice=self.notice)
        connect(
            [self.worst_part.expand, self.column.input], self.show_worst, [self.choice, self.column],
            [self.column, self.worst], notice=self.notice,
        )  # fmt: skip
        connect(self.follow_part.expand, self.show_follow, [self.choice], [self.follow], notice=self.notice)
        connect(self.near_part.expand, self.show_near, [self.choice], [self.near], notice=self.near_notice, heavy=True)
        connect(self.exports.expand, self.show_exports, [self.choice], [self.hand_out], notice=self.notice)
        connect(self.save.press, self.hand_over, [self.choice], [self.file], notice=self.notice, heavy=True)
        connect(
            self.rule.input, lambda rule: dict.fromkeys((self.old, self.new), gr.update(visible=rule == "word")),
            [self.rule], [self.old, self.new], notice=self.rewrite_notice, queue=False,
        )  # fmt: skip
        connect(
            self.rewrite.click, self.change, [self.rule, self.old, self.new, self.choice], [self.effect],
            notice=self.rewrite_notice, stop=self.rewrite_stop, heavy=True,
        )  # fmt: skip
        self.page.on_models(self.first)
        publish(self.api_errors, "errors")

    def start(
        self, data: str, model: str, second: str, filter_: str, uploaded: Source | None, choice: Choice | None,
        request: gr.Request,
    ) -> Iterator[dict]:  # fmt: skip
        """Show the default rows and model when the tab is opened for the first time, unless a link asks for others."""
        if choice is not None or request.query_params.get("ed"):
            yield {self.notice: gr.skip()}
            return
        yield from self.find(data, model, second, filter_, uploaded, choice)

    def find(
        self, data: str, model: str, second: str, filter_: str, uploaded: Source | None, choice: Choice | None
    ) -> Iterator[dict]:
        """Score the rows where that is needed, and show what is found."""
        source = uploaded if data == "upload" and uploaded else Source(str(data))
        old = choice or Choice()
        second = "" if second == model else second or ""
        target = old.target if second or old.target not in ("first", "second") else "over"
        row = old.row if old.source == source else None
        chosen = Choice(source, model or "", second, (filter_ or "")[:MAX_FILTER], (), target, old.view, row)
        yield from self._find(chosen, shown=choice)

    def _find(self, choice: Choice, *, shown: Choice | None = None) -> Iterator[dict]:
        yield {
            self.notice: busy("Reading the rows."),
            self.stop: gr.update(visible=True),
            **({self.result: render("errors/busy.html", picture=self._headline(shown))} if shown else {}),
        }
        dataset = self.tables.dataset(choice.source)
        if not choice.first:
            names = [*dataset.stored, self.pool.default]
            choice = replace(choice, first=names[0])
        self._menus_know(choice, dataset)
        for name in choice.names:
            if self.tables.known(dataset, name) is None:
                work = self.pool.run(_score_rows, name, dataset.pairs)
                for done, total in work.steps():
                    yield {self.notice: busy(f"{name} scores {len(dataset.pairs):,} rows.", done, total)}
                self.tables.keep(dataset, name, work.result())
        stored = [(f"{name} (from the file)", name) for name in dataset.stored]
        choices = [*stored, *((title, name) for title, name in self.pool.choices() if name not in dataset.stored)]
        yield {
            self.first: gr.Dropdown(choices, value=choice.first),
            self.second: gr.Dropdown([("none", ""), *choices], value=choice.second),
            self.filter: choice.filter,
            self.notice: busy("Looking for slices."),
        }
        yield from self._show(choice)

    def _menus_know(self, choice: Choice, dataset: Any) -> None:  # noqa: ANN401 - a Dataset
        for name in choice.names:
            if name not in dataset.stored:
                self.pool.info(name)

    def _show(self, choice: Choice, *, keep_selection: bool = False, close: bool = True) -> Iterator[dict]:
        """Show what is found: at once without intervals, then with them."""
        from condviz.ui.errors import view

        study = self._study(choice)
        found = self._analysed(study, choice, resamples=0)
        rated = bool(study.rated.any())
        parts = (self.rows_part, self.worst_part, self.follow_part, self.near_part, self.exports)
        step = {
            self.result: view.result(found, choice.link),
            self.slices: view.slices(found, choice.target),
            self.figures: view.figures(found, waiting=rated),
            self.choice: choice,
            self.run: "Find errors",
            **self._figure(found, choice, keep_selection=keep_selection),
            **self._row(study, choice, found.rows),
            **(dict.fromkeys(parts, gr.Accordion(open=False)) if close else {}),
        }
        yield {**step, self.notice: busy("Computing intervals.") if rated else ""}
        if rated:
            resamples = int(np.clip(WORK // len(study.dataset.pairs), 1000, MAX_RESAMPLES))
            found = self._analysed(study, choice, resamples=resamples)
            yield {self.figures: view.figures(found, waiting=False)}
        # gradio may drop an update of the plot that another one follows closely: the last one has it again.
        yield {**self._figure(found, choice, keep_selection=keep_selection), self.stop: gr.update(visible=False)}

    def draw(self, choice: Choice | None) -> dict:
        """Draw once more: the figure came before there was a place for it."""
        if choice is None:
            return {self.notice: gr.skip()}
        found = self._analysed(self._study(choice), choice, resamples=0)
        return {**self._figure(found, choice), self.notice: gr.skip()}

    def all_rows(self, choice: Choice | None) -> Iterator[dict]:
        """Take filter and selection away."""
        yield {self.filter: ""}
        yield from self._again(replace(_needed(choice), filter="", selected=()))

    def press(self, event: gr.EventData, choice: Choice | None) -> Iterator[dict]:
        """Filter by a slice, look for another kind of slice, or draw another figure."""
        choice, value = _needed(choice), str(event.value)[:MAX_FILTER]
        if event.name == "filter":
            if choice.filter and value not in choice.filter:
                value = " and ".join(f"({part})" if " or " in part else part for part in (choice.filter, value))
            yield {self.filter: value}
            yield from self._again(replace(choice, filter=value, selected=()))
        elif event.name == "target" and value in TARGETS:
            from condviz.ui.errors import view

            choice = replace(choice, target=value)
            found = self._analysed(self._study(choice), choice, resamples=0)
            yield {self.slices: view.slices(found, value), self.choice: choice}
        elif event.name == "view" and value in VIEWS:
            choice = replace(choice, view=value)
            found = self._analysed(self._study(choice), choice, resamples=0)
            yield {**self._figure(found, choice), self.choice: choice}

    def brush(self, event: gr.EventData, choice: Choice | None) -> Iterator[dict]:
        """Take the rows that were chosen in the plot as the slice."""
        ids = [int(one) for one in event.ids if str(one).isdigit()]
        yield from self._again(replace(_needed(choice), selected=tuple(ids)), keep_selection=True)

    def _again(self, choice: Choice, *, keep_selection: bool = False) -> Iterator[dict]:
        """Show another slice of the same study; where it was dropped, offer to score again."""
        try:
            yield from self._show(choice, keep_selection=keep_selection)
        except Forgotten as error:
            yield {self.notice: explain(error), self.run: "Score again", self.stop: gr.update(visible=False)}

    # ---- one row -----------------------------------------------------------------------------------------------------
    def point(self, event: gr.EventData, choice: Choice | None) -> dict:
        """Open the row of a point beside the plot."""
        return self._open(_needed(choice), event.id) if event.id is not None else {}

    def pick(self, event: gr.SelectData, choice: Choice | None) -> dict:
        """Open a row of the table."""
        return self._open(_needed(choice), int(event.row_value[0]) - 1, mark=True)

    def turn(self, event: gr.EventData, choice: Choice | None) -> dict:
        """Open the next or previous row of the slice."""
        choice = _needed(choice)
        order = self._analysed(self._study(choice), choice, resamples=0).rows
        # Without a choice the first row of the slice is open.
        place = np.flatnonzero(order == (choice.row if choice.row is not None else order[0]))
        step = 1 if int(event.step) > 0 else -1
        target = int(place[0]) + step if len(place) else 0
        if not 0 <= target < len(order):
            return {}
        return self._open(choice, int(order[target]), mark=True)

    def _open(self, choice: Choice, row: Any, *, mark: bool = False) -> dict:  # noqa: ANN401 - from the browser
        study = self._study(choice)
        if not str(row).isdigit() or int(row) >= len(study.dataset.pairs):
            raise DataError(f"There is no row {str(row)[:20]!r}. Reload the page.")
        choice = replace(choice, row=int(row))
        order = self._analysed(study, choice, resamples=0).rows
        marked = {self.plot: panel_update(marked=str(row))} if mark else {}
        return {**self._row(study, choice, order), self.choice: choice, **marked}

    def _row(self, study: Study, choice: Choice, order: np.ndarray) -> dict:
        from condviz.ui.errors import view

        row = choice.row if choice.row is not None else int(order[0]) if len(order) else None
        if row is None or row >= len(study.dataset.pairs):
            return {self.row: render("errors/nothing.html")}
        place = np.flatnonzero(order == row)
        return {self.row: view.row_view(study, row, int(place[0]) if len(place) else -1, len(order))}

    # ---- uploads and links -------------------------------------------------------------------------------------------
    def read_upload(self, path: str | None, model: str, second: str) -> Iterator[dict]:
        """Look into a table; where its columns do not say what they are, ask."""
        if not path:
            raise DataError("No file arrived. Choose a CSV file of at most 5 MB.")
        name = path.replace("\\", "/").rpartition("/")[2]
        columns, rows, found = self.tables.columns(path)
        source = Source("upload", path, name, tuple(found.items()))
        if set(ROLES[:3]) <= found.keys():
            yield {self.pickers: gr.update(visible=False), self.uploaded: source}
            yield from self._adopt(source, model, second)
            return
        menus = [gr.Dropdown(columns, value=found.get(role)) for role in ROLES[:3]]
        menus.append(
            gr.Dropdown([("none", ""), *((column, column) for column in columns)], value=found.get("label", ""))
        )
        yield {
            self.pickers: gr.update(visible=True),
            self.sample: render("errors/sample.html", name=name, columns=columns, rows=rows),
            **dict(zip(self.columns, menus, strict=True)),
            self.uploaded: source,
            self.notice: notice("", "Choose the columns below.", tone="info"),
        }

    def use_columns(
        self,
        sentence1: str,
        sentence2: str,
        condition: str,
        label: str,
        uploaded: Source | None,
        model: str,
        second: str,
    ) -> Iterator[dict]:
        """Read the table with the columns that were picked."""
        if uploaded is None:
            raise DataError("No table is here. Upload one first.")
        chosen = dict(zip(ROLES, (sentence1, sentence2, condition, label), strict=True))
        if missing := [role for role in ROLES[:3] if not chosen[role]]:
            raise DataError(f"Choose a column for {', '.join(missing)}.")
        used = [column for column in chosen.values() if column]
        if len(set(used)) < len(used):
            raise DataError("One column cannot be two things. Choose different columns.")
        source = replace(uploaded, columns=tuple((role, column) for role, column in chosen.items() if column))
        yield {self.pickers: gr.update(visible=False), self.uploaded: source}
        yield from self._adopt(source, model, second)

    def _adopt(self, source: Source, model: str, second: str) -> Iterator[dict]:
        dataset = self.tables.dataset(source)
        names = list(dataset.stored)[:2] or [model, second or ""]
        choices = [*self.tables.corpora(), (source.name, "upload")]
        yield {self.data: gr.Dropdown(choices, value="upload")}
        yield from self._find(Choice(source, names[0], names[1] if len(names) > 1 else ""))

    def open_link(self, values: Values, choice: Choice | None) -> Iterator[dict]:
        """Restore what a link asks for."""
        key = first(values, "ed")
        if not key:
            yield {self.notice: gr.skip()}
            return
        if key == "upload":
            raise DataError("This link shows a table that was uploaded. Upload it again to see it.")
        row = first(values, "er")
        asked = Choice(
            Source(key),
            first(values, "ea") or self.pool.default,
            first(values, "eb"),
            first(values, "ef")[:MAX_FILTER],
            target=first(values, "et") if first(values, "et") in TARGETS else "over",
            view=first(values, "ev") if first(values, "ev") in VIEWS else "residuals",
            row=int(row) - 1 if row.isascii() and row.isdigit() and 0 < int(row) < 10**8 else None,
        )
        yield {self.data: key if key in {known for _, known in self.tables.corpora()} else gr.skip()}
        yield from self._find(asked, shown=choice)

    # ---- sections, each computed when it is opened -------------------------------------------------------------------
    def show_rows(self, choice: Choice | None) -> dict:
        """List the rows of the slice, the largest error first; a click opens one."""
        choice = _needed(choice)
        study = self._study(choice)
        order = self._analysed(study, choice, resamples=0).rows[:LISTED]
        columns = {"row": study.dataset.numbers[order]}
        columns |= {name: study.columns[name][order] for name in ("sentence1", "sentence2", "condition")}
        columns["rating"] = study.columns["gold"][order]
        for judged in study.judged:
            columns[f"error {judged.model}"] = np.round(judged.error[order], 2)
        rows = [[None if value != value else value for value in line] for line in zip(*columns.values(), strict=True)]
        return {self.rows: gr.Dataframe(rows, headers=list(columns))}

    def show_worst(self, choice: Choice | None, column: str | None) -> dict:
        """List the values of a column with the most certain errors."""
        from condviz.analysis.errors.measures import worst_conditions
        from condviz.ui.errors import view

        study, mask = self._masked(choice)
        size = len(study.dataset.pairs)
        extra = [
            name
            for name in study.dataset.extra
            if study.columns[name].dtype == object and len(set(study.columns[name])) <= size / 2
        ]
        columns = sorted([*extra, "condition"], key=lambda name: (name != "aspect", name != "condition"))
        column = column if column in columns else columns[0]
        groups = worst_conditions(study, column=column, mask=mask)[:WORST]
        shown = view.worst(column, groups, [judged.model for judged in study.judged])
        return {self.column: gr.Dropdown(columns, value=column, visible=len(columns) > 1), self.worst: shown}

    def show_follow(self, choice: Choice | None) -> dict:
        """Tell whether scores follow the condition, and how ratings and predictions match."""
        from condviz.plots.errors import sections

        choice = _needed(choice)
        found = sections(self._analysed(self._study(choice), choice, resamples=0))
        view = render("errors/follow.html", blindness=found["blindness"], confusions=found["confusions"])
        return {self.follow: view}

    def show_near(self, choice: Choice | None) -> Iterator[dict]:
        """Find the training rows nearest to the row that is read."""
        from condviz.ui.errors import view

        choice = _needed(choice)
        study = self._study(choice)
        row = choice.row
        if row is None:
            row = int(self._analysed(study, choice, resamples=0).rows[0])
        work = self.pool.run(_nearest, self._scorer(choice.first), study.dataset.pairs[row])
        for _ in work.steps():
            yield {self.near_notice: busy("Encoding training rows.")}
        yield {self.near: view.neighbours(work.result(), choice.first)}

    def change(self, rule: str, old: str, new: str, choice: Choice | None) -> Iterator[dict]:
        """Rewrite the slice by a rule and score it again."""
        from condviz.analysis.errors.rewrites import measure_effect, rewrite
        from condviz.ui.errors import view

        study, mask = self._masked(choice)
        rewritten = rewrite(study, mask, rule, old=old or "", new=new or "")
        effects = []
        for judged in study.judged:
            work = self.pool.run(_score_rows, self._scorer(judged.model), rewritten.pairs)
            for done, total in work.steps():
                message = busy(f"{judged.model} scores {len(rewritten.pairs)} changed rows.", done, total)
                yield {self.rewrite_notice: message, self.rewrite_stop: gr.update(visible=True)}
            effects.append(measure_effect(rewritten, judged, work.result()))
        yield {self.effect: view.effects(study, effects), self.rewrite_stop: gr.update(visible=False)}

    def show_exports(self, choice: Choice | None) -> dict:
        """Offer what is shown as link, JSON and Python."""
        choice = _needed(choice)
        found = self._analysed(self._study(choice), choice, resamples=0)
        source = choice.source.name or choice.source.key
        call = [("models", list(choice.names)), ("data", source), ("filter", choice.filter)]
        python = export.python_call("find_errors", call)
        return {self.hand_out: export.offer(found, link=choice.link, python=python, file="condviz-errors.csv")}

    def hand_over(self, event: gr.EventData, choice: Choice | None) -> Iterator[dict]:
        """Put the report, or the rows with tags and notes of this browser, into the page, which saves it."""
        from condviz.analysis.errors.findings import format_csv
        from condviz.plots.errors import render_report

        choice = _needed(choice)
        study = self._study(choice)
        remarks = _remarks(event.remarks, study)
        if event.value == "report":
            yield {self.notice: busy("Writing the report.")}
            resamples = int(np.clip(WORK // len(study.dataset.pairs), 1000, MAX_RESAMPLES))
            found = self._analysed(study, choice, resamples=resamples)
            known = {name: self.pool.info(name).revision for name in choice.names if name in self.pool.names}
            found = replace(found, revisions=known)
            name, content = "condviz-errors.html", render_report(found, remarks=remarks)
        else:
            rows = self._masked(choice)[1].nonzero()[0]
            name, content = "condviz-errors.csv", format_csv(study, rows, remarks)
        yield {self.file: render("errors/file.html", name=name, content=content)}

    # ---- endpoint ----------------------------------------------------------------------------------------------------
    def api_errors(self, data: str, models: list[str], filter: str = "", resamples: int = 1000) -> dict[str, Any]:
        """Find where one or two models are wrong.

        Args:
            data: A part of a corpus such as "scenes:test", or the content of a CSV file.
            models: One name or two, as /models lists them or as columns score_NAME of the table.
            filter: The slice, for instance 'gold >= 4 and "dog" in shared'; "" for all rows.
            resamples: For the intervals, 0 to 10,000.
        """
        from condviz.analysis.errors.findings import analyse, with_training_of
        from condviz.analysis.errors.study import judge, make_study
        from condviz.evaluation.dataset import read_dataset

        if not isinstance(models, list) or not 1 <= len(models) <= 2:
            raise DataError(f"One model or two can be analysed, got {models!r:.80}. Give a list of names.")
        if not isinstance(resamples, int) or not 0 <= resamples <= MAX_RESAMPLES:
            raise DataError(f"resamples must be a whole number from 0 to {MAX_RESAMPLES:,}, got {resamples!r:.20}.")
        if "\n" in data:
            dataset = read_dataset(io.StringIO(data), max_rows=MAX_ROWS, max_bytes=MAX_TABLE_BYTES)
        else:
            dataset = self.tables.dataset(Source(data))
        for name in models:
            if self.tables.known(dataset, name) is None:
                self.tables.keep(dataset, name, self.pool.run(_score_rows, name, dataset.pairs).result())
        dataset = with_training_of(dataset, "" if models[0] in dataset.stored else models[0])
        judged = (judge(dataset, name, self.tables.known(dataset, name)) for name in models)
        return analyse(make_study(dataset, *judged), filter=filter, resamples=resamples).to_dict()

    # ---- helpers -----------------------------------------------------------------------------------------------------
    def _study(self, choice: Choice) -> Study:
        return self.tables.study(choice.source, choice.names)

    def _analysed(self, study: Study, choice: Choice, *, resamples: int) -> ErrorStudy:
        """Return what was found, kept without the study itself, which has a budget of its own."""
        from condviz.analysis.errors.findings import analyse

        key = (study.dataset.digest, choice.names, choice.filter, choice.selected, resamples)
        settings = {"filter": choice.filter, "selected": choice.selected, "resamples": resamples}
        bare = self.tables.remember(key, partial(_bare, analyse, study, settings))
        return replace(bare, study=study)

    def _masked(self, choice: Choice | None) -> tuple[Study, np.ndarray]:
        choice = _needed(choice)
        study = self._study(choice)
        return study, self._analysed(study, choice, resamples=0).mask

    def _headline(self, choice: Choice) -> str:
        from condviz.ui.errors import view

        try:
            return view.result(self._analysed(self._study(choice), choice, resamples=0), choice.link)
        except CondvizError:
            return ""

    def _figure(self, found: ErrorStudy, choice: Choice, *, keep_selection: bool = False) -> dict:
        from condviz.analysis.errors.study import calibration_curve
        from condviz.plots.error_figures import plot_against, plot_calibration, plot_residuals

        study = found.study
        views = {name: title for name, title in VIEWS.items() if name != "against" or study.second is not None}
        shown = choice.view if choice.view in views else "residuals"
        head = render("errors/views.html", views=views, view=shown)
        if not study.rated.any():
            empty = '{"data": [], "layout": {}}'
            return {self.views: head, self.plot: panel_update(figure=empty, message="No row has a rating.")}
        if shown == "calibration":
            curves = [calibration_curve(judged.scores, study.columns["gold"]) for judged in study.judged]
            return {self.views: head, self.plot: panel_update(figure=plot_calibration(study, curves), message="")}
        draw = plot_against if shown == "against" else plot_residuals
        rows = np.flatnonzero(found.mask) if found.filter or found.selected else ()
        chosen = {} if keep_selection else {"selection": [str(row) for row in rows]}
        marked = None if choice.row is None else str(choice.row)
        return {self.views: head, self.plot: panel_update(figure=draw(study), message="", marked=marked, **chosen)}

    def _scorer(self, name: str) -> str:
        if name not in self.pool.names:
            raise DataError(f"{name} is a column of the file, not a model: it cannot score other rows.")
        return name


def _bare(analyse: Any, study: Study, settings: Mapping[str, Any]) -> ErrorStudy:  # noqa: ANN401
    return replace(analyse(study, **settings), study=None)


def _score_rows(model: Any, pairs: Any, *, progress: Any = None) -> np.ndarray:  # noqa: ANN401 - a loaded model
    columns = [[getattr(pair, name) for pair in pairs] for name in ROLES[:3]]
    return np.asarray(model.score(*columns, progress=progress))


def _nearest(model: Any, pair: Any) -> Any:  # noqa: ANN401
    from condviz.analysis.errors.rewrites import nearest_rows, scene_training_rows

    return nearest_rows(model, pair, scene_training_rows())


def _needed(choice: Choice | None) -> Choice:
    if choice is None:
        raise DataError("Nothing has been found yet. Press Find errors first.")
    return choice


def _remarks(value: Any, study: Study) -> dict[int, Remark]:  # noqa: ANN401 - from the browser
    """Read what the browser has stored: number of the row -> tags and note; anything damaged is left out."""
    from condviz.analysis.errors.findings import Remark
    from condviz.ui.errors.view import TAGS

    try:
        entries = json.loads(value or "{}")
    except (TypeError, ValueError):
        return {}
    places = {str(number): place for place, number in enumerate(study.dataset.numbers.tolist())}
    remarks = {}
    for number, entry in list(entries.items())[:MAX_REMARKS] if isinstance(entries, dict) else ():
        if number in places and isinstance(entry, dict):
            tags = entry.get("tags") if isinstance(entry.get("tags"), list) else []
            note = str(entry.get("note") or "")[:MAX_NOTE]
            remarks[places[number]] = Remark(tuple(tag for tag in TAGS if tag in tags), note)
    return remarks


TAB = Tab("errors", "Errors", ErrorsTab)
