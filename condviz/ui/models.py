"""The Models tab: which models there are, what each is good for, how it scores, and its card."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import gradio as gr
import numpy as np

from condviz.errors import DataError, UnknownModelError
from condviz.evaluation import scoreboard
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import OVERALL, PARTS, Board, PartScores, leading, mean_of, read_board, strengths
from condviz.models import registry
from condviz.plots.svg import Axis
from condviz.types import ModelInfo
from condviz.ui.encoders import EncoderForm
from condviz.ui.events import PRIVATE, connect, publish
from condviz.ui.markup import html, read_asset, render
from condviz.ui.page import Page, Section, Tab, section
from condviz.ui.pool import LoadState
from condviz.ui.state import Values, first, write_link

MAX_CARD_CHARACTERS = 60_000
METRICS = {"pair_accuracy": "Pair accuracy, %", "spearman": "Spearman × 100"}
COLUMNS = {"csts": "C-STS (people)", "tables": "Free conditions", "cebab": "Reviews", "test": "Scenes"}
"""Parts of the benchmark that have a column -> its heading."""
MEAN = "mean"
READS = {
    "cross": "reads both sentences and the condition at once",
    "bi": "reads each sentence with the condition",
    "tri": "reads sentence and condition separately",
}
TASKS = {
    "pair": "compare two sentences",
    "many": "search or map many texts",
    "words": "see which words its router reads",
}
PATIENCE = {
    "least": ("as little as possible", 2.0),
    "some": ("a little more", 8.0),
    "any": ("does not matter", math.inf),
}
"""How much more work than the cheapest model that can do it a model may be."""
PLACES = {"cpu": "a laptop or a small server", "gpu": "a GPU"}
PART = "csts"
"""Of the benchmark: rated by people."""
SECONDS = 2.0
"""Between two looks at what has been loaded."""
_FRONT_MATTER = re.compile(r"\A\ufeff?---\r?\n.*?\r?\n---\r?\n", re.DOTALL)
_CLICKED = "condviz.models(element, (data) => trigger('card', data), (data) => trigger('sort', data));"


@dataclass(frozen=True)
class Row:
    """One line of the table: a model, its figures by column, and how far it has been loaded."""

    info: ModelInfo
    good: str
    figures: dict[str, Metric]
    state: LoadState


@dataclass(frozen=True)
class View:
    """What is chosen: a model, the metric, and the column that the table is sorted by."""

    model: str = ""
    metric: str = "pair_accuracy"
    by: str = PART

    @property
    def link(self) -> str:
        """Query string that restores it; what the tab starts with is left out."""
        start = View()
        changed = [(key, getattr(self, key)) for key in ("metric", "by") if getattr(self, key) != getattr(start, key)]
        return write_link("models", [("m", self.model), *changed])


class ModelsTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        start = View(self._best())
        self.view = gr.State(start)
        with gr.Row(elem_classes="cv-split cv-models-split"):
            with gr.Column(scale=8, min_width=320):
                self.notice = html("", elem_id="cv-models-notice")
                self.table = html(self._table(start, opening=True), elem_id="cv-models-table", script=_CLICKED)
            with gr.Column(scale=5, min_width=320, elem_id="cv-models-panel"):
                self.head = html(self._head(start.model), elem_id="cv-models-head")
                safe = {"sanitize_html": True, "container": False, "latex_delimiters": []}
                with section("The whole card", elem_id="cv-models-card-whole"):
                    self.card = gr.Markdown(self._card(start.model), elem_id="cv-models-card", **safe)
        title = "Which one for me? Accuracy against speed"
        with Section(page, "choose", title, self.show_choice, heavy=False) as self.choice:
            self.choose = Choose()
            self.choice.ask(*self.choose.fields)
        with Section(page, "untrained", "Untrained models, to compare with", self.show_untrained, heavy=False):
            self.twins = html("", elem_id="cv-models-twins", script=_CLICKED)
        with section("Try another encoder", elem_id="cv-models-encoder"):
            self.encoders = EncoderForm(self.page)
        with Section(page, "papers", "What the papers say, and what we see", self.show_papers, heavy=False):
            self.claims = html("", elem_id="cv-models-claims")
        with Section(page, "links", "Models of knowledge graphs", self.show_graphs, heavy=False):
            self.links = html("", elem_id="cv-models-graphs", script=_CLICKED)
        with Section(page, "runtime", "Encoders and caches of this server", self.show_runtime, heavy=False):
            self.runtime = html("", elem_id="cv-models-cache")
        self.timer = gr.Timer(SECONDS, active=not self.pool.settled)
        self._connect()

    def _connect(self) -> None:
        shown = [self.view, self.table, self.head, self.card]
        light = {"notice": self.notice, "queue": False}
        for component in (self.table, self.twins, self.links, self.choose.answer):
            connect(component.card, self.show_card, [self.view], shown, **light)
            connect(component.sort, self.sort, [self.view], shown, **light)
        linked = [*shown, self.twins, self.encoders.encoder, self.encoders.method, *self.choose.fields]
        needs = ("m", "metric", "by", "enc", "task", "time", "place")
        self.page.on_link(
            self.open_link, [self.view], linked, needs=needs, otherwise=self.refresh, **light, heavy=False
        )
        connect(self.page.models_changed.change, self.refresh, [self.view], [*shown, self.twins], **light)
        self.timer.tick(self.look, [self.view], [self.table, self.timer], queue=False, **PRIVATE)
        publish(self.api_models, "models", heavy=False)

    # ---- events ------------------------------------------------------------------------------------------------------
    def show_card(self, event: gr.EventData, view: View) -> dict:
        return self._show(View(str(event.name), view.metric, view.by))

    def sort(self, event: gr.EventData, view: View) -> dict:
        """Sort by a column that was clicked, or change the metric."""
        metric = str(event.metric) if event.metric else view.metric
        return self._show(View(view.model, metric, str(event.by) if event.by else view.by))

    def open_link(self, values: Values, *_: View) -> dict:
        start = View()
        metric, by = first(values, "metric", start.metric), first(values, "by", start.by)
        by = MEAN if by in PARTS and by not in COLUMNS else by  # links to columns that there were
        return self._show(View(first(values, "m", self._best()), metric, by)) | {
            **self.encoders.restore(values),
            **self.choose.restore(values),
        }

    def refresh(self, view: View) -> dict:
        """Show the table again: a model may have been trained or deleted, perhaps the one whose card is shown."""
        shown = {self.notice: gr.skip(), self.table: self._table(view)}
        if view.model not in (*self.pool.names, *registry.link_models()):
            shown = self._show(replace(view, model=self._best()))
        return shown | self.show_untrained()

    def look(self, view: View) -> tuple[str, gr.Timer]:
        """Show what has been loaded since, until everything is."""
        return self._table(view), gr.Timer(active=not self.pool.settled)

    def show_choice(self, task: str, patience: str, place: str) -> dict:
        return self.choose.show(self.pool.infos(), self._board()[0], task, patience, place)

    def show_untrained(self) -> dict:
        infos = [info for info in self.pool.infos() if not info.trained]
        return {self.twins: render("models/untrained.html", infos=infos, reads=READS)}

    def show_papers(self) -> dict:
        """Show which claims of the papers hold, and each of their tables beside ours."""
        return {self.claims: render("models/papers.html", papers=read_asset("papers.json"))}

    def show_graphs(self) -> dict:
        every = scoreboard.link_rows(scoreboard.read_link_scores())
        rows = {row.model: row for row in every if row.ours and row.ranking == "plain"}
        found = [(info, rows.get(info.name)) for info in map(registry.describe, registry.link_models())]
        return {self.links: render("models/graphs.html", rows=found)}

    def show_runtime(self) -> dict:
        """Show each encoder with device and precision, and what its caches of embeddings hold; models may share one."""
        found: dict[str, dict[int, Any]] = {}
        for model in filter(None, map(self.pool.loaded, self.pool.names)):
            found.setdefault(model.backbone.name, {})[id(model.backbone.cache)] = model.backbone
        return {self.runtime: render("models/runtime.html", encoders=[[*one.values()] for one in found.values()])}

    def _show(self, view: View) -> dict:
        if view.metric not in METRICS or view.by not in (MEAN, "name", *COLUMNS):
            raise DataError(f"The table cannot be sorted by {view.metric[:40]!r} and {view.by[:40]!r}.")
        return {
            self.view: view,
            self.table: self._table(view, asked=True),
            self.head: self._head(view.model),
            self.card: self._card(view.model),
        }

    # ---- endpoint ----------------------------------------------------------------------------------------------------
    def api_models(self) -> list[dict[str, Any]]:
        """List the models: names for the other endpoints, what each is, and what it is good for."""
        found = []
        for row in self._rows(Board(), "pair_accuracy"):
            facts = {key: value for key, value in asdict(row.info).items() if key not in ("path", "score_range")}
            found.append(facts | {"best_for": row.good, "state": row.state.phase})
        return found

    # ---- pictures ----------------------------------------------------------------------------------------------------
    def _table(self, view: View, *, asked: bool = False, opening: bool = False) -> str:
        """Draw it. At its `opening`, models that came since the start are about to move the rows: no card opens yet."""
        board, problem = self._board()
        rows = [row for row in self._rows(board, view.metric) if row.info.trained]
        shown = [column for column in (*COLUMNS, MEAN) if any(column in row.figures for row in rows)]
        by_name = view.by == "name"
        rows.sort(key=lambda row: row.info.title.casefold() if by_name else _descending(row, view.by))
        titles = {MEAN: f"Mean of {len(OVERALL)}"} | COLUMNS
        columns = [(column, titles[column], _about(column)) for column in shown]
        drawn = {"rows": rows, "columns": columns, "headline": self._headline(rows), "problem": problem}
        drawn["about_mean"] = _about(MEAN)
        return render("models/table.html", view=view, asked=asked, opening=opening, metrics=METRICS, **drawn)

    def _best(self) -> str:
        """Return the model that the headline names first, whose card the page opens with."""
        rows = [row for row in self._rows(self._board()[0], View().metric) if row.info.trained]
        found = self._headline(rows)
        return found[3][0].info.name if found else self.pool.default

    @staticmethod
    def _headline(rows: Sequence[Row]) -> tuple[str, str, int, list[Row]] | None:
        """Find the best by people's ratings, else on our own tests: column, title, how many, best and as good."""
        named = {row.info.name: row for row in rows}
        for column, title in (("csts", "On C-STS, rated by people,"), (MEAN, "On this project’s own tests")):
            figures = {name: row.figures[column] for name, row in named.items() if column in row.figures}
            if best := leading(figures):
                return column, title, len(figures), [named[name] for name in best]
        return None

    def _rows(self, board: Board, metric: str) -> list[Row]:
        infos, states = self.pool.infos(), self.pool.states()
        good = strengths(infos)
        return [
            Row(info, good.get(info.name, ""), self._figures(board, info.name, metric), states[info.name])
            for info in infos
            if info.name in states
        ]

    def _figures(self, board: Board, name: str, metric: str) -> dict[str, Metric]:
        """Return the figures by column; none where those that are stored belong to other weights."""
        stored, model = board.models.get(name), self.pool.loaded(name)
        if stored is None or (model is not None and model.weights_hash != stored.weights):
            return {}
        found = {part: scores for part in PARTS if (scores := board.find(name, part)) is not None}
        figures = {part: _figure(found[part], metric) for part in COLUMNS if part in found}
        parts = [_figure(found[part], metric) for part in OVERALL if part in found]
        if len(parts) == len(OVERALL) and all(one.value is not None for one in parts):
            figures[MEAN] = mean_of(parts)
        return figures

    def _board(self) -> tuple[Board, str]:
        try:
            return read_board(), ""
        except DataError as error:
            return Board(), str(error)

    def _info(self, name: str) -> ModelInfo:
        if name in registry.link_models():
            return registry.describe(name)
        try:
            return self.pool.info(name)
        except UnknownModelError as error:
            raise DataError(f"There is no model {name[:60]!r} here. Choose one from the table.") from error

    def _head(self, name: str) -> str:
        if not name:
            return ""
        info = self._info(name)
        good = strengths(self.pool.infos()).get(name, "")
        low, high = info.score_range
        limits = (low, high) if math.isfinite(low) and math.isfinite(high) else None
        return render("models/head.html", info=info, reads=READS[info.kind], good=good, limits=limits)

    def _card(self, name: str) -> str:
        """Return the card as Markdown: the README of the checkpoint, else what is known of the model."""
        if not name:
            return ""
        info = self._info(name)
        if info.path and (path := Path(info.path) / "README.md").is_file():
            text = path.read_text(encoding="utf-8", errors="replace")[:MAX_CARD_CHARACTERS]
            return _FRONT_MATTER.sub("", text, count=1)
        return f"{info.summary}\n\nNot trained: the pretrained encoder as it is."


def _figure(scores: PartScores, metric: str) -> Metric:
    if metric == "pair_accuracy" and scores.blind:
        return Metric(None, reason="Both conditions of a pair always get the same score.")
    return getattr(scores, metric)


def _descending(row: Row, column: str) -> float:
    value = row.figures[column].value if column in row.figures else None
    return math.inf if value is None else -value


def _about(column: str) -> str:
    if column == MEAN:
        titles = "; ".join(COLUMNS.get(part, PARTS[part].title) for part in OVERALL)
        return f"The mean of these tests: {titles}"
    return PARTS[column].about if column in PARTS else ""


# ---- which model for me: three questions, and how right the models are against how much work they are ----------------
def can(info: ModelInfo, task: str) -> bool:
    """Whether a trained model can do what is asked."""
    able = {"pair": True, "many": info.encodes, "words": info.has_router}[task]
    return able and info.trained and info.conditional and not (info.graph or info.missing)


def allowed(work: Mapping[str, float], patience: str, place: str) -> list[str]:
    """Return the models that are quick enough; on a GPU, where work costs little, one may be one step more patient."""
    steps = list(PATIENCE)
    step = min(len(steps) - 1, steps.index(patience) + (place == "gpu"))
    most = PATIENCE[steps[step]][1] * min(work.values(), default=0.0)
    return [name for name, one in work.items() if one <= most]


class Choose:
    """Questions, answer and picture; lay it out inside its section."""

    def __init__(self) -> None:
        waits = [(name, title) for name, (title, _) in PATIENCE.items()]
        questions = (
            ("What do you want to do?", "pair", TASKS.items()),
            ("How much time may an answer take?", "any", waits),
            ("Where does it run?", "cpu", PLACES.items()),
        )
        with gr.Row(elem_classes="cv-models-choose"):
            self.fields = [
                gr.Radio([(title, name) for name, title in choices], value=start, label=label, min_width=200)
                for label, start, choices in questions
            ]
        self.answer = html("", elem_id="cv-models-answer", script=_CLICKED)

    def restore(self, values: Values) -> dict[Any, str]:
        given = zip(self.fields, (first(values, key) for key in ("task", "time", "place")), strict=True)
        known = zip(given, (TASKS, PATIENCE, PLACES), strict=True)
        return {one: name if name in names else next(iter(names)) for (one, name), names in known if name}

    def show(self, infos: Sequence[ModelInfo], board: Board, task: str, patience: str, place: str) -> dict:
        efforts = scoreboard.efforts()
        kind = "pair" if task == "words" else task
        right: dict[str, Metric] = {}
        for info in infos:
            scores = board.find(info.name, PART)
            if info.name in efforts and scores and info.trained and scores.pair_accuracy.value is not None:
                right[info.name] = scores.pair_accuracy
        work = {name: float(efforts[name][kind]) for name in right}
        able = {info.name: work[info.name] for info in infos if info.name in right and can(info, task)}
        quick = allowed(able, patience, place)
        best = leading({name: right[name] for name in quick})
        noted = urlencode({"task": task, "time": patience, "place": place})
        shown = {"best": best, "right": right, "work": work, "titles": {info.name: info.title for info in infos}}
        shown["lines"] = _draw(right, work, quick)
        return {self.answer: render("models/choose.html", noted=noted, count=len(quick), **shown)}


def _draw(right: Mapping[str, Metric], work: Mapping[str, float], quick: Sequence[str]) -> list[dict[str, Any]]:
    """Return a line for each model, the most accurate first: accuracy, interval and work, and their places, in %."""
    spans = {name: np.array([one.value, one.low, one.high], float) for name, one in right.items()}
    low, high = min((span[1] for span in spans.values()), default=0.0), max((s[2] for s in spans.values()), default=1.0)
    x = Axis(low, high, 0, 100)
    return [
        {
            "name": name, "value": span[0], "span": [x.place(value) for value in span], "work": work[name],
            "share": 100 * work[name] / max(work.values()), "quick": name in quick,
        }
        for name, span in sorted(spans.items(), key=lambda found: -found[1][0])
    ]  # fmt: skip


TAB = Tab("models", "Models", ModelsTab)
