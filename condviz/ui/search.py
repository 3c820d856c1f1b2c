"""The Search page: a query under two or three conditions side by side, in the sentences that ship or in one's own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

import condviz
from condviz.analysis.answers import Hit, Hits
from condviz.analysis.groups import group_by
from condviz.analysis.search import search
from condviz.data.texts import check_conditions, check_sentence
from condviz.errors import CondvizError, DataError
from condviz.evaluation.scoreboard import best_encoder
from condviz.methods.catalog import CATALOG
from condviz.plots import search as plots
from condviz.spec import takes
from condviz.types import ModelInfo
from condviz.ui import corpora, export
from condviz.ui.corpora import FILTERS, HITS, SCENES, Searches
from condviz.ui.events import PRIVATE, connect, follow, publish
from condviz.ui.export import show_first
from condviz.ui.imports import FILE_TYPES, TEXTS, Import, Reading
from condviz.ui.limits import Newest
from condviz.ui.markup import dimmed, explained, html, notice, render
from condviz.ui.page import Fields, Page, Section, Tab, closed, model_row, needed, section, text_box, tries
from condviz.ui.plotly_panel import panel_update, plotly_panel
from condviz.ui.pool import Outcome
from condviz.ui.speed import CONDITIONS, TASKS, Budget
from condviz.ui.state import Values, conditions_of, first, joined, lines, number, pair_link, place

SHIPPED = "Examples, favourably chosen"
OWN, OWN_TITLE = "own", "Your own texts …"
"""An entry of the menu that opens the section where they are given."""
BUDGET = Budget(3.0, "many", share=4.0)  # a new condition, under which every sentence that ships is encoded
MOST_HITS = 50
MAX_CONDITIONS = 3
"""Columns that can be read side by side."""
KEPT_UPLOADS = 10
TRIES = (
    ("Two women are playing tennis in the rain.", ("the number of people", "the weather")),
    ("Late at night, a boy walks his dog through the snow.", ("the time of day", "the animal")),
    ("A grandmother carries a red umbrella across the square.", ("the colour of the object", "the age of the person")),
)


class SearchTab:
    """Widgets and events of the page."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        infos = [info for info in self.pool.infos() if _separable(info)]
        trained = [info for info in infos if info.trained]
        self.vectors = best_encoder(infos) or next((info.name for info in trained or infos), self.pool.default)
        self._uploads: Newest[str, corpora.Texts] = Newest(KEPT_UPLOADS)
        with gr.Row(elem_classes="cv-split"):
            with gr.Column(elem_classes="cv-form cv-inputs", scale=0, min_width=320):
                self._form()
            with gr.Column(elem_classes="cv-output", scale=1, min_width=320):
                self.result = html("", elem_id="cv-search-result")
                script = "condviz.examples(element, (data) => trigger('example', data));"
                chips = [(str(number), query) for number, (query, _) in enumerate(TRIES)]
                self.tries = html(
                    tries(chips, carried="Your first sentence from Compare"), elem_id="cv-search-tries", script=script
                )
        self.shown, self.used = gr.State(None), gr.State(None)
        self._sections()
        self._connect()
        page.site.first.append(partial(show_first, self, Searches, partial(_picture, asked=False)))
        page.site.warm_up.append(self._prepare)

    @property
    def default(self) -> str:
        return self.pool.choose(BUDGET, lambda info: info.conditional)

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self) -> None:
        query, conditions = TRIES[0]
        boxed = {"lines": 2, "max_lines": 5, "elem_classes": "cv-sentence-box"}
        self.query = text_box(query, "A sentence like those you want", "cv-search-query", **boxed)
        label = f"Conditions, one per line, up to {MAX_CONDITIONS}"
        self.conditions = text_box("\n".join(conditions), label, "cv-search-conditions", lines=2, max_lines=4)
        choices = [(SHIPPED, SCENES), (OWN_TITLE, OWN)]
        self.corpus = gr.Dropdown(choices, value=SCENES, label="Search in", elem_id="cv-search-corpus")
        self.model, self.run, self.stop = model_row("cv-search", "Search")
        self.notice = html("", elem_id="cv-search-notice")

    def _sections(self) -> None:
        with section("Filters and number of hits", elem_id="cv-search-filters"), gr.Row():
            self.filters = Fields(search, FILTERS, prefix="cv-search")
            self.k = gr.Slider(1, MOST_HITS, HITS, step=1, label="Hits in each column", min_width=160)
        title, shown = "Groups: how does the first condition divide these texts?", [self.shown]
        with Section(self.page, "groups", title, self.show_groups, shown) as self.groups:
            with gr.Row():
                self.grouping = Fields(group_by, prefix="cv-search")
            method, count = self.grouping.components.values()
            self.groups.ask(method)
            self.groups.ask(count, event="release")
            self.grouped = html("", elem_id="cv-search-grouped")
            with gr.Column(visible=False) as self.group_box:
                label = "The texts under the condition: first two principal components, coloured by group"
                self.group_map = plotly_panel(elem_id="cv-search-group-map", label=label, height=360)
        title = "Cross-table: how do the groups under the first two conditions overlap?"
        divided = [*shown, *self.grouping.components.values()]
        with Section(self.page, "crossed", title, self.show_crossing, divided) as self.crossed:
            self.crossing = html("", elem_id="cv-search-crossing")
            with gr.Column(visible=False) as self.flow_box:
                label = "Groups under both conditions; a ribbon is as wide as there are texts in both"
                self.flows = plotly_panel(elem_id="cv-search-flows", label=label, height=360)
        title = "Twins: alike under the first condition, different under the second"
        with Section(self.page, "twins", title, self.show_twins, shown) as self.twins:
            self.pairs = html("", elem_id="cv-search-pairs")
        title = "Which conditions sort these texts?"
        with Section(self.page, "sorting", title, self.show_sorting, shown) as self.sorting:
            self.sorted = html("", elem_id="cv-search-sorted")
        with section("Your own texts", elem_id="cv-search-own") as self.own_box:
            self._own()
        with Section(self.page, "export", "Link, JSON, CSV, Python", self.show_exports, shown, heavy=False):
            self.hand_out = html("", elem_id="cv-search-hand-out")

    def _own(self) -> None:
        space = bool(os.environ.get("SPACE_ID"))
        html(render("search/own.html", texts=corpora.MAX_UPLOADED_TEXTS, space=space), elem_id="cv-search-own-help")
        files = {"file_types": FILE_TYPES, "elem_id": "cv-search-file", "visible": not space}
        self.file = gr.File(label="CSV, TSV, JSONL or TXT file", height=90, **files)
        self.own = Import(self.file, TEXTS, "cv-search", "Use these texts")
        with gr.Row(elem_classes="cv-actions", visible=not space):
            boxed = {"lines": 3, "max_lines": 8, "scale": 4}
            self.pasted = text_box("", "Or paste them, one per line", "cv-search-pasted", **boxed)
            self.use_pasted = gr.Button("Use these lines", scale=0, min_width=140, elem_id="cv-search-use-pasted")
        self.own_notice = html("", elem_id="cv-search-own-notice")
        self.sample = html("", elem_id="cv-search-sample")

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        filters: list[Any] = list(self.filters.components.values())
        contains, where = filters
        self.form = form = [self.query, self.conditions, self.corpus, self.model, *filters, self.k]
        asked, done = [*form, self.shown], [self.result, self.shown, *self.page.folded]
        main = {"notice": self.notice, "stop": self.stop, "heavy": True}
        connect([self.model.input, contains.submit, where.submit], self.search, asked, done, **main)
        connect(self.corpus.input, self.choose, asked, [self.corpus, self.model, self.own_box, *done], **main)
        to_own = f"(corpus) => {{ if (corpus === '{OWN}') document.querySelector('#cv-search-own').scrollIntoView(); }}"
        self.corpus.input(None, self.corpus, js=to_own, **PRIVATE)
        connect(self.tries.example, self.example, [self.model, self.shown], [*form, *done], **main)
        self.page.on_link(self.open_link, [self.shown], [*form, *done], needs=["q", "s1", "c"], **main)
        self.page.on_models(self.model, self.choices)
        filled = [self.query, self.conditions, self.corpus, self.model, *filters, self.used, *done]
        chosen = [self.file, self.own.reading]
        connect(self.run.click, self.search_here, [self.used, *chosen, *asked], filled, **main)
        connect(self.own.use.click, self.upload, [*chosen, *asked], filled, **main)
        connect(self.use_pasted.click, self.paste, [self.pasted, *asked], filled, **main)
        to_hits = "() => document.querySelector('#cv-search-result').scrollIntoView({ block: 'center' })"
        for button in (self.own.use, self.use_pasted):
            button.click(None, js=to_hits, **PRIVATE)
        timed = [*chosen, self.query, self.conditions, self.model]
        connect(self.own.reading.change, self.estimate, timed, [self.sample], notice=self.own_notice, heavy=True)
        publish(self.api_search, "search")

    def choose(
        self, query: str, conditions: str, corpus: str, model: str, *rest: Any  # noqa: ANN401 - as `search`
    ) -> Iterator[dict]:  # fmt: skip
        """Search other texts, or open the section where a visitor's own are given."""
        if corpus != OWN:
            model = self._fitting(model, corpus)
            yield {self.model: model}
            yield from self.search(query, conditions, corpus, model, *rest)
            return
        shown: Searches | None = rest[-1]
        before = shown.corpus if shown and shown.corpus in self._uploads else SCENES
        yield {self.corpus: self._menu(before), self.own_box: gr.Accordion(open=True)}

    def search(self, query: str, conditions: str, corpus: str, model: str, *fields: Any) -> Iterator[dict]:  # noqa: ANN401
        """Search under each condition, then look for the words that carry each hit."""
        *filters, k, shown = fields
        yield {self.result: _dimmed(shown), self.stop: gr.update(visible=True)}
        chosen = conditions_of(conditions) or ("",)
        if len(chosen) > MAX_CONDITIONS:
            told = f"There are {len(chosen)} conditions; at most {MAX_CONDITIONS} fit side by side. Leave some out."
            raise DataError(told)
        check_sentence(query, "the query")
        if any(chosen):
            check_conditions(list(chosen))
        options = {"k": int(k), **self.filters.check(filters)}
        names, texts = self._names(model), self._texts(corpus)
        yield from follow(self.pool.run(corpora.opened, names, texts), "Encoding the texts, once.", self.notice)
        work = self.pool.run(corpora.search_all, names, texts, query, chosen, options)
        results = yield from follow(work, f"Searching with {self.pool.info(model).title}.", self.notice)
        found = Searches(corpus, results, int(k))
        yield {self.result: _picture(found), self.shown: found, **closed(self.page.folded)}
        work = self.pool.run(corpora.add_words, names, results, patient=True)
        results = yield from follow(work, "Looking for the words that carry each hit.", self.notice)
        found = replace(found, results=results)
        yield {self.result: _picture(found), self.shown: found}

    def search_here(
        self, used: Reading | None, file: str | None, reading: Reading | None, *asked: Any,  # noqa: ANN401 - as `search`
    ) -> Iterator[dict]:  # fmt: skip
        """Search the texts of a file that has been chosen and not used yet, else those of the menu."""
        waits = file and not (reading and reading == used and reading.path == file)
        yield from self.upload(file, reading, *asked) if waits else self.search(*asked)

    def example(self, event: gr.EventData, model: str, shown: Searches | None) -> Iterator[dict]:
        index = place(event.id, len(TRIES))
        if index is None:
            raise DataError("This example does not exist any more. Reload the page.")
        query, conditions = TRIES[index]
        yield from self._fill((query, "\n".join(conditions), SCENES, model, "", "", HITS), shown)

    def open_link(self, values: Values, shown: Searches | None) -> Iterator[dict]:
        named, corpus = first(values, "m"), first(values, "in") or SCENES
        model = named if named in {name for _, name in self.choices()} else self.default
        conditions = joined(values.get("c", [])[:MAX_CONDITIONS])
        k = number(values, "k", HITS, low=1, high=MOST_HITS)
        query = first(values, "q") or first(values, "s1")  # of a pair from Compare
        form = query, conditions, corpus, model, *self.filters.read(values).values(), k
        yield from self._fill(form, shown)

    def _fill(self, form: tuple, shown: Searches | None) -> Iterator[dict]:
        """Fill the form and search."""
        corpus = form[2]
        yield dict(zip(self.form, form, strict=True)) | {self.corpus: self._menu(corpus), self.result: _dimmed(shown)}
        if corpus not in (SCENES, *self._uploads):
            raise DataError(
                "This link was made with somebody's own texts, which a link cannot carry. Load them under Your own "
                "texts, or press Search to search the example sentences."
            )
        yield from self.search(*form, shown)

    # ---- one's own texts ---------------------------------------------------------------------------------------------
    def estimate(
        self, file: str | None, reading: Reading | None, query: str, conditions: str, model: str
    ) -> Iterator[dict]:
        """Tell how long a search of the texts of a file takes: some of them are encoded."""
        if not file or (reading and reading.problem):  # the assistant tells it
            yield {self.sample: "", self.own_notice: "" if file else gr.skip()}
            return
        texts, columns, _ = corpora.read_texts(self.own.current(file, reading))
        asked = lines(conditions)[:MAX_CONDITIONS]
        shown = {"count": len(texts), "asked": asked, "columns": list(columns)}
        work = self.pool.run(corpora.measure_seconds, self._names(model), texts, query, asked)
        seconds = yield from follow(work, f"Timing {min(corpora.TIMED, len(texts))} of them.", self.own_notice)
        yield {self.sample: render("search/sample.html", **shown, seconds=seconds)}

    def upload(self, file: str | None, reading: Reading | None, *values: Any) -> Iterator[dict]:  # noqa: ANN401
        if os.environ.get("SPACE_ID"):
            raise DataError("Files are not taken on this shared server. Run CondViz on your own machine for that.")
        own = self.own.current(file, reading)
        texts, columns, notes = corpora.read_texts(own)
        yield {self.used: own}
        yield from self._take(corpora.Texts(Path(own.path).name, texts, columns), notes, values)

    def paste(self, pasted: str, *values: Any) -> Iterator[dict]:  # noqa: ANN401 - as `search`
        """Search lines that were pasted."""
        texts = [check_sentence(line, f"line {number}") for number, line in enumerate(lines(pasted), start=1)]
        if not 1 < len(texts) <= corpora.MAX_UPLOADED_TEXTS:
            told = f"2 to {corpora.MAX_UPLOADED_TEXTS:,} lines are searched here, got {len(texts):,}."
            raise DataError(f"{told} Write one text a line.")
        yield from self._take(corpora.Texts("Your lines", texts, {}), (), values)

    def _take(self, own: corpora.Texts, notes: Sequence[str], values: Sequence[Any]) -> Iterator[dict]:
        """Search texts of a visitor, unless the form still asks what is about other texts."""
        query, conditions, _, model, *rest = values
        key = f"upload-{secrets.token_hex(16)}"
        self._uploads[key] = own
        told = ["These are your texts."]
        if (chosen := self._fitting(model, key)) != model:
            model = chosen
            told.append(f"{self.pool.info(model).title} suits their number.")
        yield {self.corpus: self._menu(key), self.model: model}
        shown, filters = rest[-1], dict(zip(FILTERS, rest, strict=False))
        if shown and filters == {name: getattr(shown.results[0], name) for name in FILTERS}:  # of the texts before
            rest[: len(FILTERS)] = [""] * len(FILTERS)
            yield dict.fromkeys(self.filters.components.values(), "")
        if asks := dict(TRIES).get(query.strip()):  # which is about other texts
            asked = "" if tuple(lines(conditions)) == asks else conditions
            yield {self.query: "", self.conditions: asked, self.result: _dimmed(rest[-1])}
            told.append("Write a sentence like those you look for, and what to compare, then press Search.")
        else:
            yield from self.search(query, conditions, key, model, *rest)
        yield {self.notice: notice("", " ".join([*told, *notes]), tone="info")}

    # ---- sections, each computed when it is opened -------------------------------------------------------------------
    def show_groups(self, shown: Searches | None, *fields: Any) -> Iterator[dict]:  # noqa: ANN401
        options = self.grouping.check(fields)
        found = yield from self._run(self.groups, shown, group_by, 1, "Grouping the texts.", options)
        yield _drawn(found, plots.plot_groups, self.grouped, self.group_box, self.group_map)

    def show_crossing(self, shown: Searches | None, *fields: Any) -> Iterator[dict]:  # noqa: ANN401
        """Divide the corpus by the first two conditions, as Groups does, and show how the groups meet."""
        options = self.grouping.check(fields)
        found = yield from self._run(self.crossed, shown, condviz.cross_table, 2, "Grouping the texts twice.", options)
        yield _drawn(found, plots.plot_flows, self.crossing, self.flow_box, self.flows)

    def show_twins(self, shown: Searches | None) -> Iterator[dict]:
        found = yield from self._run(self.twins, shown, condviz.find_twins, 2, "Comparing the texts.")
        yield {self.pairs: explained(plots.to_html(found))}

    def show_sorting(self, shown: Searches | None) -> Iterator[dict]:
        message = "Trying the library of conditions."
        found = yield from self._run(self.sorting, shown, condviz.rank_sorting_conditions, 0, message)
        yield {self.sorted: explained(plots.to_html(found))}

    def _run(
        self, part: Section, shown: Searches | None, function: Callable[..., Outcome], count: int, message: str,
        options: dict[str, Any] | None = None,
    ) -> Generator[dict, None, Outcome]:  # fmt: skip
        """Run a function of the corpus and the first conditions: yield steps of progress, return its result."""
        found = _needed(shown)
        asked = [result.condition for result in found.results if result.condition]
        if len(asked) < count:
            raise DataError(f"This needs {count} condition{'s' * (count > 1)}. Add one above, and search again.")
        names = self._names(found.results[0].model.name)
        if not count or not self.pool.info(names[0]).encodes:  # a whole library is asked of stored vectors only
            names = names[-1:]
        work = self.pool.run(
            corpora.of_corpus, names, function, self._texts(found.corpus), asked[:count], options or {}
        )
        return (yield from part.follow(work, message))

    def show_exports(self, shown: Searches | None) -> dict:
        found = _needed(shown)
        script = found.script(self._names(found.results[0].model.name)[-1])
        return {self.hand_out: export.offer(found, link=found.link, python=script, file="search.csv")}

    # ---- endpoint ----------------------------------------------------------------------------------------------------
    @takes(condviz.search)
    def api_search(self, query: str, condition: str, model: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        """Search the sentences that ship under a condition.

        Args:
            query: Query text.
            condition: For instance "the sport"; "" for a plain search.
            model: Name as /models lists it.

        Returns:
            {"hits": [{"rank", "row", "text", "score", "percentile", "plain_rank", "good", "cells", "words"}], ...}.
        """
        work = self.pool.run(corpora.search_all, self._names(model), SCENES, query, [condition], options)
        return work.result()[0].to_dict()

    def _prepare(self) -> None:
        """Search the example once, so that the first visitor of the page need not wait until the texts are encoded."""
        query, conditions = TRIES[0]
        if not self.pool.forks:  # a forked process keeps nothing
            with suppress(CondvizError):
                names = self._names(self.default)
                self.pool.run(
                    corpora.search_all, names, SCENES, query, conditions, {"words": True}, patient=True
                ).result()

    # ---- helpers -----------------------------------------------------------------------------------------------------
    def choices(self) -> list[tuple[str, str]]:
        return self.pool.choices(lambda info: info.conditional, BUDGET)

    def _fitting(self, model: str, corpus: str) -> str:
        """Return the best model that reads texts in time, unless a visitor has chosen one that no texts begin with."""

        def begins(texts: int) -> str:
            share = texts * MAX_CONDITIONS / (TASKS["many"] * CONDITIONS)
            return self.pool.choose(replace(BUDGET, share=share), lambda info: info.conditional)

        if model not in (self.default, begins(1)):
            return model
        return begins(len(self._uploads[corpus].texts)) if corpus in self._uploads else self.default

    def _names(self, model: str) -> list[str]:
        """Return the model, and behind it the one whose vectors it re-ranks where it has none of its own."""
        return [model] if _separable(self.pool.info(model)) else [model, self.vectors]

    def _menu(self, key: str) -> gr.Dropdown:
        """Choose a corpus; an upload is offered, too."""
        own = self._uploads.get(key)
        mine = [(f"{own.name[:40]} ({len(own.texts):,})", key)] if own else []
        choices = [(SHIPPED, SCENES), *mine, (OWN_TITLE, OWN)]
        return gr.Dropdown(choices, value=key if own else SCENES)

    def _texts(self, key: str) -> str | corpora.Texts:
        if key == SCENES:
            return SCENES
        if (texts := self._uploads.get(key)) is None:
            raise DataError("These texts are not here any more: they stay for a while only. Upload them again.")
        return texts


def _picture(found: Searches, *, asked: bool = True) -> str:
    """Render the hits side by side; `asked` says whether a visitor asked for them."""
    first_one = found.results[0]
    drawn = {
        "headline": plots.headline(found.results, english=not asked),
        "columns": plots.columns(found.results, open_hit=_open_hit),
    }
    own, separable = found.corpus if found.corpus != SCENES else "", CATALOG[first_one.model.method].separable
    about = {"own": own, "first": first_one, "asked": asked, "by_vectors": separable}
    return render("search/result.html", link=found.link, **about, **drawn)


def _dimmed(shown: Searches | None) -> str:
    return dimmed(_picture(shown) if shown else render("search/empty.html"))


def _open_hit(hit: Hit, result: Hits) -> list[tuple[str, str]]:
    fields = (result.query, hit.text), [result.condition or ""], result.model.name
    tabs = [("Compare", "compare"), *([("Words", "words")] if result.condition else [])]
    return [(name, pair_link(tab, *fields)) for name, tab in tabs]


def _drawn(found: Any, plot: Callable, text: gr.HTML, box: gr.Column, panel: gr.HTML) -> dict:  # noqa: ANN401 - what `plot` draws
    shown = gr.update(visible=True)
    return {text: explained(plots.to_html(found)), box: shown, panel: panel_update(figure=plot(found))}


def _separable(info: ModelInfo) -> bool:
    return CATALOG[info.method].separable and info.conditional and not info.graph


_needed = partial(needed, message="Nothing has been searched yet. Press Search first.")


TAB = Tab("search", "Search", SearchTab)
