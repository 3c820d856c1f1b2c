"""The Links tab: any entity, the questions that fit it, and what a model of a knowledge graph answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import gradio as gr

import condviz
from condviz.analysis.answers import LinkProfile
from condviz.data.kg import Graph
from condviz.data.kg_formats import EVERYDAY, MAX_ENTITIES, MAX_TRIPLES, list_graphs, load_graph, read_files
from condviz.data.tables.formats import Form
from condviz.data.tables.report import Report
from condviz.errors import DataError, check_count
from condviz.evaluation import scoreboard
from condviz.models import registry
from condviz.plots import links as picture
from condviz.ui import export
from condviz.ui.events import PRIVATE, connect, publish
from condviz.ui.export import read_first
from condviz.ui.imports import SHOWN_ROWS, form_fields, form_of, offer
from condviz.ui.limits import Newest
from condviz.ui.markup import busy, dimmed, html, notice, render
from condviz.ui.page import Page, Section, Tab, closed, needed, section, stop_button, tries
from condviz.ui.pool import ModelPool
from condviz.ui.state import Values, first, write_link

TITLES = {EVERYDAY: "Everyday things", "wn18rr": "WN18RR", "fb15k237": "FB15k-237"}
TRIES = {
    EVERYDAY: ("bee", "nurse", "violin", "forest", "brown bear cub", "ambulance driver", "unicorn"),
    "wn18rr": ("land_reform_NN_1", "helsinki_NN_1", "wheeled_vehicle_NN_1", "pirouette_NN_1"),
}
HINT = "For instance: bee, or: What does a cow eat?"
START = "bee"
KEPT_UPLOADS = 20
ALL_LISTED = 1_000
"""Entities up to which a menu lists them all; of larger graphs it lists those that begin with what is typed."""
SUGGESTIONS = 20
_CLICKS = "condviz.links(element, (data) => trigger('ask', data));"
NOWHERE = Path(os.devnull)
"""A folder that nothing can be written to: vectors of uploaded graphs stay in memory."""
Asked = tuple[str, str] | None
"""(id of a relation, direction) that is asked first, or None for those that fit."""


class LinksTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.trained = ModelPool(registry.link_models())
        self.graphs = list_graphs()
        self._uploads: Newest[str, Graph] = Newest(KEPT_UPLOADS)
        named = next(iter(registry.link_models(EVERYDAY)), "")
        stored = read_first(LinkProfile, "links", named)
        with gr.Row(elem_classes="cv-split"):
            with gr.Column(elem_classes="cv-form cv-inputs", scale=0, min_width=320):
                self._form()
            with gr.Column(elem_classes="cv-output", scale=1, min_width=320):
                view = self._picture(stored, first=True) if stored else render("links/empty.html")
                self.result = html(view, elem_id="cv-links-result", script=_CLICKS)
                self.tries = html(_tries(TRIES[EVERYDAY]), elem_id="cv-links-tries", script=_CLICKS)
                html(render("links/why.html"), elem_id="cv-links-why")
        self.shown = gr.State(stored)
        self._sections()
        self._connect()

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self) -> None:
        said = {"label": "Name a thing, or ask", "info": HINT}
        free = {"allow_custom_value": True, "elem_id": "cv-links-entity"}
        self.entity = gr.Dropdown(self._names(load_graph(EVERYDAY)), value=START, **said, **free)
        with gr.Row(elem_classes="cv-actions"):
            self.run = gr.Button("Ask", variant="primary", elem_id="cv-links-run", scale=1, min_width=90)
            self.stop = stop_button(elem_id="cv-links-stop")
        self.notice = html("", elem_id="cv-links-notice")
        models = self._choices(EVERYDAY)
        shared: dict[str, Any] = {"min_width": 130}
        with gr.Row(elem_classes="cv-links-choice"):
            graphs = [(TITLES[name], name) for name in self.graphs]
            found = {"visible": len(graphs) > 1, **shared}
            self.graph = gr.Dropdown(graphs, value=EVERYDAY, label="Graph", elem_id="cv-links-graph", **found)
            first_model = models[0][1] if models else None
            self.model = gr.Dropdown(models, value=first_model, label="Model", elem_id="cv-links-model", **shared)

    def _sections(self) -> None:
        shown = [self.shown]
        light: dict[str, Any] = {"heavy": False}
        with Section(self.page, "questions", "More questions", self.show_questions, shown, **light):
            self.more = html("", elem_id="cv-links-more", script=_CLICKS)
        with Section(self.page, "change", "What the relation changes", self.show_change, shown, **light):
            self.table = html("", elem_id="cv-links-table")
        with Section(self.page, "quality", "How often is it right?", self.show_quality, shown, **light):
            self.figures = html("", elem_id="cv-links-figures")
        with Section(self.page, "papers", "WN18RR: our models and the papers’", self.show_papers, [], **light):
            self.metrics = html("", elem_id="cv-links-metrics")
        with section("Your own graph", elem_id="cv-links-own"):
            text = render("links/own.html", entities=MAX_ENTITIES, triples=MAX_TRIPLES, graphs=self.graphs)
            html(text, elem_id="cv-links-help")
            files = {"file_count": "multiple", "file_types": [".tsv", ".csv", ".tab", ".txt"]}
            self.upload = gr.UploadButton("Upload a graph", elem_id="cv-links-upload", **files)
            self.upload_notice = html("", elem_id="cv-links-upload-notice")
            with gr.Accordion("How the tables are read", visible=False, elem_id="cv-links-import") as self.import_box:
                self.first_rows = html("", elem_id="cv-links-import-view")
                *self.form_fields, self.left_out = form_fields("cv-links")
        with Section(self.page, "export", "Link, JSON, CSV, Python", self.show_exports, shown, **light):
            self.hand_out = html("", elem_id="cv-links-hand-out")

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        done = [self.result, self.shown, *self.page.folded]
        form = [self.entity, self.model, self.graph]
        main = {"notice": self.notice, "stop": self.stop, "heavy": True}
        filled = [*form, self.tries, *done]
        connect([self.run.click, self.entity.input, self.model.input], self.ask, [*form, self.shown], done, **main)
        connect(self.graph.input, self.change_graph, [self.graph, self.shown], filled, **main)
        for component in (self.result, self.tries, self.more):
            connect(component.ask, self.click, [*form, self.shown], filled, **main)
        connect(self.entity.key_up, self.suggest, [self.graph], [self.entity], notice=self.notice, queue=False)
        told, read = {**main, "notice": self.upload_notice}, [self.upload, *self.form_fields, self.shown]
        changed = [self.upload.upload, *(one.input for one in self.form_fields)]
        shown = [*filled, self.notice, self.import_box, self.first_rows, self.left_out]
        connect(changed, self.read_upload, read, shown, **told)
        self.page.on_link(self.open_link, [self.shown], filled, needs=["le"], **main)
        self.page.opened(self.offer, [self.graph], [self.model], queue=False, **PRIVATE)
        if self.trained.forks:  # each process would load them anew
            self.page.site.warm_up.append(lambda: self.trained.preload().join())
        publish(self.api_predict_links, "predict_links")

    def offer(self, graph: str) -> dict:
        """Offer the models that there are by now; one may have been trained or loaded since."""
        name = graph if graph in self.graphs else self._graph(graph).name
        return {self.model: gr.update(choices=self._choices(name))}

    def ask(
        self, entity: str, model: str, graph: str, shown: LinkProfile | None, asked: Asked = None
    ) -> Iterator[dict]:
        from condviz.analysis.links import describe_entity, plain_name

        yield {self.result: dimmed(self._picture(shown) if shown else "")}
        plain_name(entity or "")  # a blank field is told before anything loads
        found = self._graph(graph)
        folder = None if graph in TITLES else NOWHERE
        work = self._pool(model).run(describe_entity, model, entity, asked=asked, graph=found, folder=folder)
        for done, total in work.steps():
            message = "Encoding the entities of the graph, once." if total > 1 else "Asking the model."
            yield {self.notice: busy(message, done, total), self.stop: gr.update(visible=True)}
        profile = work.result()
        yield {self.result: self._picture(profile), self.shown: profile, **closed(self.page.folded)}

    def click(
        self, event: gr.EventData, entity: str, model: str, graph: str, shown: LinkProfile | None
    ) -> Iterator[dict]:
        """Ask about an answer or an example that was clicked, or ask the question that was clicked."""
        name, asked = entity, None
        if event.entity:
            name = self._label(self._graph(graph), str(event.entity))
        if event.relation:
            asked = (str(event.relation), "head" if event.direction == "head" else "tail")
        yield {self.entity: name}
        yield from self.ask(name, model, graph, shown, asked)

    def change_graph(self, graph: str, shown: LinkProfile | None) -> Iterator[dict]:
        """Offer the entities, models and examples of another graph, and ask about its first example."""
        yield {self.result: dimmed(self._picture(shown) if shown else ""), self.notice: busy("Reading the graph.")}
        found = self._graph(graph)
        entity = _examples(found)[0]
        filled, model = self._filled(found, entity)
        yield filled
        yield from self.ask(entity, model, graph, shown)

    def _filled(self, graph: Graph, entity: str, asked: str = "") -> tuple[dict, str]:
        """Return the updates of the form for a graph, and the model: the one that is asked for, or the first."""
        models = self._choices(graph.name)
        known = [name for _, name in models]
        model = asked if asked in known else next(iter(known), "")
        filled = {
            self.entity: gr.Dropdown(self._names(graph), value=entity, info=HINT if graph.name == EVERYDAY else None),
            self.model: gr.Dropdown(models, value=model or None),
            self.tries: _tries(_examples(graph)),
        }
        return filled, model

    def suggest(self, event: gr.KeyUpData, graph: str) -> dict:
        """List the entities of a large graph that match what is typed; small ones are listed anyway."""
        found = self._graph(graph)
        if found.num_entities <= ALL_LISTED:
            return {self.entity: gr.skip()}
        near = found.search(str(event.input_value or ""), limit=SUGGESTIONS)
        return {self.entity: gr.Dropdown([found.entities[number].label for number in near])}

    def read_upload(
        self, paths: list[str] | None, header: str, separator: str, encoding: str, shown: LinkProfile | None
    ) -> Iterator[dict]:
        """Read the tables of a visitor's own graph and ask about its first entity."""
        if not paths:
            yield {self.upload_notice: ""}
            return
        report = Report("Your graph", skip_bad=True)
        yield {self.import_box: gr.update(visible=True), self.first_rows: "", self.left_out: gr.update(visible=False)}
        form = Form(*form_of(header, separator, encoding))
        digest, graph = read_files([Path(path) for path in paths], form, report)
        key = f"upload-{digest[:24]}"
        self._uploads[key] = replace(graph, name=key)
        yield {self.graph: self._menu(key), self.notice: ""}
        for step in self.change_graph(key, shown):
            yield {self.upload_notice if part is self.notice else part: value for part, value in step.items()}
        named = ((graph.entities[h].name, graph.relations[r].text, graph.entities[t].name) for h, r, t in graph.triples)
        said = f"{len(graph.triples):,} triples of {graph.num_entities:,} entities."
        yield {
            self.upload_notice: notice("", " ".join([said, *graph.notes]), tone="info"),
            self.first_rows: render("links/first_rows.html", rows=list(islice(named, SHOWN_ROWS))),
            self.left_out: offer(report, Path(paths[0])),
        }

    def _menu(self, graph: str) -> gr.Dropdown:
        """Choose a graph; an uploaded one is offered, too."""
        own = [] if graph in self.graphs else [("Your graph", graph)]
        choices = [*((TITLES[name], name) for name in self.graphs), *own]
        return gr.Dropdown(choices, value=graph, visible=len(choices) > 1)

    def open_link(self, values: Values, shown: LinkProfile | None) -> Iterator[dict]:
        """Restore a link: graph, model, entity and, where one was asked, the question."""
        graph, relation = first(values, "lg", EVERYDAY), first(values, "lr")
        found = self._graph(graph)
        asked = (relation, "head" if first(values, "li") == "1" else "tail") if relation else None
        label = self._label(found, first(values, "le"))
        filled, model = self._filled(found, label, first(values, "lm"))
        yield {self.graph: graph if graph in self.graphs else self._menu(graph), **filled}
        yield from self.ask(label, model, graph, shown, asked)

    # ---- sections, each computed when it is opened -------------------------------------------------------------------
    def show_questions(self, shown: LinkProfile | None) -> dict:
        return {self.more: render("links/more.html", others=_needed(shown).others)}

    def show_change(self, shown: LinkProfile | None) -> dict:
        """Show the nearest entities without and with each relation."""
        return {self.table: render("links/change.html", profile=_needed(shown))}

    def show_quality(self, shown: LinkProfile | None) -> dict:
        trust = _needed(shown).reliability
        rows = [(name.replace("_", " "), counts) for name, counts in trust.by_relation.items()] if trust else []
        return {self.figures: render("links/quality.html", trust=trust, rows=rows)}

    def show_papers(self) -> dict:
        rows = scoreboard.link_rows(scoreboard.read_link_scores())
        return {self.metrics: render("links/papers.html", rows=rows, note=scoreboard.RERANKED_NOTE)}

    def show_exports(self, shown: LinkProfile | None) -> dict:
        profile = _needed(shown)
        best = profile.answers[0]
        graph = best.graph if best.graph in self.graphs else "your table of triples, or the folder of your tables"
        call = [("model", profile.model.name), ("head", profile.entity), ("relation", best.relation)]
        python = export.python_call("predict_links", [*call, ("direction", best.direction), ("graph", graph)])
        return {self.hand_out: export.offer(profile, link=_link(profile), python=python, file="links.csv")}

    # ---- endpoint ----------------------------------------------------------------------------------------------------
    def api_predict_links(
        self, entity: str, relation: str, model: str, inverse: bool = False, k: int = 10, graph: str = EVERYDAY
    ) -> dict[str, Any]:
        """Rank the entities of a graph as answers to (entity, relation, ?) or (?, relation, entity).

        Args:
            entity: Id, label or name, any other text, or a question such as "What does a bee produce?".
            relation: Id or text; "inverse" in front of a text is the same as `inverse`; "" for a question.
            model: Name of a model of links, or as /models lists it, except cross-encoders.
            inverse: Ask for heads: which entities have this relation to the entity.
            k: Number of answers, from 1 to 100.
            graph: "everyday", or "wn18rr" and "fb15k237" where their files are on the server.

        Returns:
            {"question", "answers", "known", "fit", "familiar", "guess", "told", ...}: the k best, and all answers that
            the graph holds, with score, rank, filtered rank and the part of the graph they come from.
        """
        if graph not in self.graphs:
            raise DataError(f"There is no graph {str(graph)[:60]!r} here. Graphs: {', '.join(self.graphs)}.")
        check_count("k", k, 1, 100)
        options = {"direction": "head" if inverse else "tail", "graph": graph, "k": k}
        return self._pool(model).run(condviz.predict_links, model, entity, relation, **options).result().to_dict()

    # ---- graphs and models -------------------------------------------------------------------------------------------
    def _graph(self, key: str) -> Graph:
        if key in self.graphs:
            return load_graph(key)
        if (graph := self._uploads.get(key)) is None:
            raise DataError(
                f"The graph {str(key)[:60]!r} is not here. Graphs on this machine: {', '.join(self.graphs)}. An "
                "uploaded graph is kept only for a while: upload it again."
            )
        return graph

    def _pool(self, model: str) -> ModelPool:
        for name in registry.link_models():
            self.trained.add(name)  # one may have been trained since the start
        return self.trained if model in self.trained.names else self.page.pool

    def _choices(self, graph: str) -> list[tuple[str, str]]:
        """Return the models that can answer: those trained on the graph, then encoders of sentences."""
        try:
            scores = {item.model: item.figures()[0] or 0 for item in scoreboard.read_link_scores()}
        except DataError:  # a damaged file leaves the order open
            scores = {}
        names = sorted(registry.link_models(graph), key=lambda name: -scores.get(name, 0))
        own = [(f"{registry.describe(name).title.partition(':')[0]} (this graph)", name) for name in names]
        infos = [info for info in self.page.pool.infos() if info.trained and info.answers_links]
        infos.sort(key=lambda info: info.name != self.page.pool.default)
        return [*own, *((f"{info.title} (sentences)", info.name) for info in infos)]

    @staticmethod
    def _names(graph: Graph) -> list[str]:
        # The menu lists the names that contain what was typed: the owl has to stand before the bowl.
        names = sorted((item.label for item in graph.entities), key=lambda name: (len(name), name))
        return names if graph.num_entities <= ALL_LISTED else []

    @staticmethod
    def _label(graph: Graph, text: str) -> str:
        """Return the label of an entity by its id; any other text as it is."""
        try:
            return graph.entities[graph.find_entity(text)].label
        except DataError:
            return text

    # ---- pictures ----------------------------------------------------------------------------------------------------
    def _picture(self, profile: LinkProfile, *, first: bool = False) -> str:
        """Render a profile; `first` is the stored one, which nobody asked for."""
        drawn = {"headline": picture.headline(profile), "cards": picture.cards(profile.answers, active=True)}
        drawn["neighbourhood"] = picture.neighbourhood(profile)
        return render("links/result.html", profile=profile, link=_link(profile), asked=not first, **drawn)


_needed = partial(needed, message="Nothing has been asked yet. Press Ask first.")


def _examples(graph: Graph) -> Sequence[str]:
    """Return entities to try, those of the first triples where none are chosen."""
    heads = list(dict.fromkeys(graph.triples[:, 0].tolist()))[:5]
    return TRIES.get(graph.name) or [graph.entities[number].label for number in heads]


def _tries(names: Sequence[str]) -> str:
    return tries(((name, name) for name in names), "entity")


def _link(profile: LinkProfile) -> str:
    best = profile.answers[0]
    pairs = [("lg", best.graph), ("lm", profile.model.name), ("le", best.entity_id or profile.entity)]
    if profile.asked:  # by a click, or by a question that was typed
        pairs += [("lr", best.relation), ("li", "1" if best.direction == "head" else "")]
    return write_link("links", pairs)


TAB = Tab("links", "Links", LinksTab)
