"""The Compare tab: two sentences, some conditions, one bar for each; other models and the words behind it on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np

import condviz
from condviz.data.examples import Example, load_examples
from condviz.data.texts import check_condition, check_conditions, check_sentence, is_foreign
from condviz.errors import DataError
from condviz.plots import similarity
from condviz.spec import takes
from condviz.types import Comparison, Pair
from condviz.ui import export, limits
from condviz.ui.events import connect, follow, publish
from condviz.ui.export import show_first
from condviz.ui.imports import FILE_TYPES, PAIRS, Import, Reading
from condviz.ui.markup import busy, dimmed, html, noted, render
from condviz.ui.page import Page, Section, Tab, closed, model_row, needed, section, stop_button, text_box, tries
from condviz.ui.pool import score_rows
from condviz.ui.requests import KEPT
from condviz.ui.speed import Budget
from condviz.ui.state import Values, conditions_of, first, joined, lines, pair_link

if TYPE_CHECKING:
    import pandas as pd

BUDGET = Budget(1.0)
MAX_WORD_SCORES = 300
"""The words behind the bars are looked for at once while they cost at most so many scores; else when asked for."""
MAX_SENTENCES = 100
LISTED = 200
"""Rows of a scored table that the page shows; the file holds all."""
RANKED = 8
"""Conditions of the library on each side."""
TRIED = 6
"""Examples offered beside the result; all of them are in a section of their own."""
_CLICKS = "condviz.examples(element, (data) => trigger('example', data));"


@dataclass(frozen=True)
class Scored:
    """A table that was scored: the file of all rows, those that the page shows, and what is to be said of it."""

    file: Path
    rows: pd.DataFrame
    told: str
    """In HTML: how many rows there are, and what the columns mean."""


class CompareTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        self._asked: limits.Newest[int, bool] = limits.Newest(1_000)
        """Stamps of the readings whose scores were asked for."""
        self.choices = partial(self.pool.choices, budget=BUDGET)
        self.examples = {example.id: example for example in load_examples()}
        self.works = [example for example in self.examples.values() if not example.fails]
        self.fails = [example for example in self.examples.values() if example.fails]
        with gr.Row(elem_classes="cv-split"):
            with gr.Column(elem_classes="cv-form cv-inputs", scale=0, min_width=320):
                self._form(next(iter(self.examples.values()), None))
            with gr.Column(elem_classes="cv-output", scale=1, min_width=320):
                self.result = html("", elem_id="cv-result", script="condviz.bars(element, watch);")
                chips = [(one.id, one.title) for one in self.works[: TRIED - 1]]
                chips += [(one.id, f"{one.title} (it fails)") for one in self.fails[:1]]
                self.tries = html(tries(chips), elem_id="cv-tries", script=_CLICKS)
        self.shown = gr.State(None)
        self._sections()
        self._connect()
        page.site.first.append(partial(show_first, self, Comparison, partial(self._picture, first=True)))
        page.site.warm_up.append(partial(is_foreign, ""))

    @property
    def default(self) -> str:
        return self.pool.choose(BUDGET)

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self, start: Example | None) -> None:
        boxed = {"lines": 2, "max_lines": 4, "elem_classes": "cv-sentence-box"}
        self.sentence1, self.sentence2 = (
            text_box(getattr(start, f"sentence{n}", ""), f"Sentence {n}", f"cv-sentence{n}", **boxed) for n in (1, 2)
        )
        conditions = "\n".join(start.conditions) if start else ""
        self.conditions = text_box(conditions, "Conditions, one per line", "cv-conditions", lines=3, max_lines=8)
        self.model, self.run, self.stop = model_row("cv", "Compare")
        # The script clicks it when typing pauses; "hidden" keeps it in the page.
        self.auto = gr.Button("Score after typing", elem_id="cv-auto", visible="hidden")
        self.notice = html("", elem_id="cv-notice")

    def _sections(self) -> None:
        shown = [self.shown]
        with Section(self.page, "words", "Words: why this score?", self.explain, shown) as self.words:
            self.words_view = html("", elem_id="cv-words")
        with Section(self.page, "models", "Compare models", self.all_models, shown) as self.models:
            self.untrained = gr.Checkbox(False, label="Show further untrained models, too", container=False)
            self.models.ask(self.untrained)
            self.matrix = html("", elem_id="cv-matrix")
        title = "Find conditions: what do they share, and what not?"
        with Section(self.page, "finder", title, self.find, shown) as self.finder:
            script = "condviz.finder(element, (data) => trigger('adopt', data));"
            self.ranking = html("", elem_id="cv-ranking", script=script)
        with section("Examples, and where it fails", elem_id="cv-compare-examples"):
            groups = {"Where it works": self.works, "Where it fails": self.fails}
            self.cards = html(render("compare/gallery.html", groups=groups), elem_id="cv-cards", script=_CLICKS)
        with section("Score a table", elem_id="cv-compare-table"):
            html(render("compare/table_help.html", rows=limits.TABLE_ROWS), elem_id="cv-table-help")
            files = {"file_types": FILE_TYPES, "elem_id": "cv-compare-upload"}
            self.file = gr.File(label="CSV or TSV file", height=90, **files)
            self.own = Import(self.file, PAIRS, "cv-compare", "Score the table")
            self.table_stop = stop_button()
            self.table_notice = html("", elem_id="cv-table-notice")
            self.table_told = html("", elem_id="cv-table-told")
            table = {"interactive": False, "wrap": True, "max_height": 420}
            self.rows = gr.Dataframe(visible=False, elem_id="cv-table-rows", **table)
            label = "Download with scores (CSV)"
            self.download = gr.DownloadButton(label, visible=False, elem_id="cv-table-download")
        with Section(self.page, "export", "Link, JSON, CSV, Python", self.show_exports, shown, heavy=False):
            self.hand_out = html("", elem_id="cv-export")

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        self.form = form = [self.sentence1, self.sentence2, self.conditions, self.model]
        done = [self.result, self.shown, self.stop, *self.page.folded]
        main = {"notice": self.notice, "stop": self.stop}
        run = {**main, "heavy": True}
        connect([self.run.click, self.auto.click, self.model.input], self.compare, [*form, self.shown], done, **run)
        for component in (self.tries, self.cards):
            connect(component.example, self.example, [self.model, self.shown], [*form, *done], **run)
        connect(self.ranking.adopt, self.adopt, [*form, self.shown], [*form, *done], **run)
        table = [self.table_told, self.rows, self.download]
        filled, keys = [*form, self.untrained, *table, *done], ("s1", "s2", "c", "table")
        self.page.on_link(self.open_link, [self.model, self.shown], filled, needs=keys, **main)
        self.page.on_models(self.model, self.choices)
        told = {"notice": self.table_notice, "stop": self.table_stop, "heavy": True}
        asked = [self.file, self.own.reading, self.model]
        connect(self.own.use.click, self.table, asked, table, **told)
        connect(
            self.own.reading.change, self.forget, [self.own.reading], table, by_itself=True, notice=self.table_notice
        )
        publish(self.api_compare, "compare")
        publish(self.api_score, "score")
        publish(self.api_attribution, "attribution")
        publish(self.api_applies, "applies")

    def compare(
        self, sentence1: str, sentence2: str, conditions: str, model: str, shown: Comparison | None
    ) -> Iterator[dict]:
        """Score the pair, then look for the words that carry each score."""
        # Dimmed at once, so that an error does not leave the old result looking current.
        yield {
            self.notice: busy(f"Scoring with {self.pool.info(model).title}."),
            self.result: dimmed(self._picture(shown) if shown else ""),
            self.stop: gr.update(visible=True),
        }
        from condviz.analysis.compare import add_words, compare, word_cost  # seconds, in a server that has just started

        work = self.pool.run(compare, [model], sentence1, sentence2, conditions_of(conditions))
        for _ in work.steps():
            yield {}
        comparison = work.result()
        before = _before(comparison, shown)
        yield {self.result: self._picture(comparison, before), self.shown: comparison, **closed(self.page.folded)}
        if 0 < word_cost(comparison) <= MAX_WORD_SCORES and self.pool.info(model).conditional:
            work = self.pool.run(add_words, model, comparison, patient=True)
            comparison = yield from follow(work, "Looking for the words behind each score.", self.notice)
            yield {self.result: self._picture(comparison, before), self.shown: comparison}

    def example(self, event: gr.EventData, model: str, shown: Comparison | None) -> Iterator[dict]:
        example = self.examples.get(str(event.id))
        if example is None:
            raise DataError("This example does not exist any more. Reload the page.")
        yield from self._fill(example.sentence1, example.sentence2, "\n".join(example.conditions), model, shown)

    def adopt(
        self, event: gr.EventData, sentence1: str, sentence2: str, conditions: str, model: str, shown: Comparison | None
    ) -> Iterator[dict]:
        """Add a condition of the finder and score."""
        condition = str(event.condition)
        if condition in lines(conditions):
            raise DataError(f"The condition {condition!r} is already in the list.")
        yield from self._fill(sentence1, sentence2, "\n".join([*lines(conditions), condition]), model, shown)

    def open_link(self, values: Values, model: str, shown: Comparison | None) -> Iterator[dict]:
        known = [name for name in values.get("m", []) if name in self.pool.names]
        conditions = joined(values.get("c", []))
        # Links of the first edition name several models; the best of them leads.
        chosen = self.pool.default if self.pool.default in known else next(iter(known), model)
        yield {self.untrained: "untrained" in values, **self._show_table(first(values, "table"))}
        if shown and not any(values.get(key) for key in ("s1", "s2", "c")):
            yield {self.result: self._picture(shown)}
            return
        yield from self._fill(first(values, "s1"), first(values, "s2"), conditions, chosen, shown)

    def _fill(self, *values: Any) -> Iterator[dict]:  # noqa: ANN401 - as `compare` takes them
        yield dict(zip(self.form, values, strict=False))
        yield from self.compare(*values)

    # ---- sections, each computed when it is opened -------------------------------------------------------------------
    def explain(self, shown: Comparison | None) -> Iterator[dict]:
        from condviz.analysis.compare import add_words

        comparison = _needed(shown)
        if not comparison.words:
            work = self.pool.run(add_words, comparison.models[0].name, comparison)
            comparison = yield from self.words.follow(work, "Leaving out each word once.")
        pair = comparison.sentence1, comparison.sentence2
        pictures = [similarity.attribution(item, *pair) for item in comparison.words]
        yield {self.words_view: render("compare/words.html", pictures=pictures)}

    def all_models(self, shown: Comparison | None, untrained: bool) -> Iterator[dict]:
        comparison = _needed(shown)
        infos = [info for info in self.pool.infos() if info.trained or untrained or info.name == "minilm"]
        infos.sort(key=lambda info: info.name != comparison.models[0].name)
        states = self.pool.states()  # of a model that has been removed meanwhile there is none
        known = [info for info in infos if info.name in states]
        failed = [info for info in known if states[info.name].phase in ("failed", "absent")]
        missing = {info.title: states[info.name].reason for info in failed}
        names = [info.name for info in known if info not in failed]
        pair = comparison.sentence1, comparison.sentence2
        work = self.pool.run(condviz.compare, names, *pair, comparison.conditions)
        table = yield from self.models.follow(work, f"Scoring with {len(names)} models.")
        matrix = similarity.matrix(table)
        view = render("compare/models.html", headline=similarity.agreement(table), matrix=matrix, missing=missing)
        yield {self.matrix: noted(view, untrained="1" if untrained else "")}

    def find(self, shown: Comparison | None) -> Iterator[dict]:
        from condviz.analysis.compare import rank_conditions

        comparison = _needed(shown)
        model = comparison.models[0]
        work = self.pool.run(rank_conditions, model.name, comparison.sentence1, comparison.sentence2)
        ranked = yield from self.finder.follow(work, "Trying the library of conditions.")
        high = sum(row.change > 0 for row in ranked)  # the highest come first
        sides = {"most": ranked[:high][:RANKED], "least": ranked[high:][::-1][:RANKED]}
        view = render("compare/ranking.html", **sides, count=len(ranked), model=model)
        yield {self.ranking: view}

    def show_exports(self, shown: Comparison | None) -> dict:
        comparison = _needed(shown)
        texts = [("sentence1", comparison.sentence1), ("sentence2", comparison.sentence2)]
        call = [("models", comparison.models[0].name), *texts, ("conditions", list(comparison.conditions))]
        python = export.python_call("compare", call)
        return {self.hand_out: export.offer(comparison, link=_link(comparison), python=python, file="comparison.csv")}

    def table(self, file: str | None, reading: Reading | None, model: str) -> Iterator[dict]:
        """Score the rows of an uploaded table."""
        from condviz.data.files import write_text
        from condviz.data.pairs import format_predictions

        # Hidden at once: scores of the table before would look like those of this one.
        yield self.forget(reading)
        if reading:
            self._asked[reading.stamp] = True
        own = self.own.current(file, reading)
        table = own.pairs()
        if len(table.pairs) > limits.TABLE_ROWS:
            raise DataError(
                f"The table has {len(table.pairs):,} rows; at most {limits.TABLE_ROWS:,} are scored here. For more "
                "use: python -m condviz score - < table.csv"
            )
        count = len(table.pairs)
        work = self.pool.run(_score_table, model, table.pairs, rows=count)
        scores, places = yield from follow(work, f"Scoring {count:,} rows.", self.table_notice, self.table_stop)
        info = self.pool.info(model)
        meant = {"rating": info.rate(scores), "percentile": places}
        if info.calibration is None:
            del meant["rating"]
        # gradio gives equal uploads one folder: neither the upload nor another model's scores may be written over.
        target = Path(own.path).with_name(f"{Path(own.path).stem}-{model}.csv")
        named = {f"{name}_{model}": values for name, values in meant.items()}
        write_text(target, format_predictions(table, {model: scores}, named))
        first_rows = table.to_frame().head(LISTED)
        for name, values, digits in [*((name, meant[name], 1) for name in meant), ("score", scores, 3)]:
            first_rows[f"model {name}"] = values[:LISTED].astype(float).round(digits)
        told = render("compare/scored.html", count=count, listed=LISTED, model=info, rated="rating" in meant)
        yield self._show_table(KEPT.add(Scored(target, first_rows, told), own.path))

    def forget(self, reading: Reading | None) -> dict:
        """Hide the scores of the table before, and what was wrong with it, where another one has come.

        On a busy server this can come after the scores of the other one, which it has to leave.
        """
        if reading is None or self._asked.get(reading.stamp):
            return {self.table_notice: gr.skip()}
        return {self.table_told: "", self.rows: gr.update(visible=False), self.download: gr.update(visible=False)}

    def _show_table(self, token: str) -> dict:
        """Show a scored table of this sitting, and keep where it lies with the page; one that is gone is told."""
        scored = KEPT.find(token, Scored)
        if scored is None or not scored.file.is_file():
            gone = "The scored table is not on this server any more. Choose the file and score it again."
            return {self.table_told: render("compare/table.html", token="", told=gone)} if token else {}
        return {
            self.table_told: render("compare/table.html", token=token, told=scored.told),
            self.rows: gr.Dataframe(scored.rows, visible=True),
            self.download: gr.DownloadButton(value=str(scored.file), visible=True),
        }

    # ---- endpoints ---------------------------------------------------------------------------------------------------
    @takes(condviz.compare)
    def api_compare(
        self, sentence1: str, sentence2: str, conditions: list[str], models: list[str], **options: Any,  # noqa: ANN401
    ) -> dict[str, Any]:  # fmt: skip
        """Score one pair under every condition with every model.

        Args:
            sentence1: First sentence.
            sentence2: Second sentence.
            conditions: One to twenty conditions.
            models: Names as /models lists them.

        Returns:
            {"models", "conditions", "scores", "unconditional", "percentiles", ...}; missing numbers are null.
        """
        return self.pool.run(condviz.compare, models, sentence1, sentence2, conditions, **options).result().to_dict()

    def api_score(
        self, sentences1: list[str], sentences2: list[str], conditions: list[str], model: str
    ) -> dict[str, list[float]]:
        """Score many rows with one model.

        Args:
            sentences1: The first sentence of each row.
            sentences2: The second sentence of each row.
            conditions: The condition of each row, or one for all.
            model: Name as /models lists it.

        Returns:
            {"scores": one number for each row, higher is more similar}.
        """
        if len(conditions) == 1:
            conditions = conditions * len(sentences1)
        counts = tuple(map(len, (sentences1, sentences2, conditions)))
        if len(set(counts)) > 1 or not 1 <= counts[0] <= limits.TABLE_ROWS:
            raise DataError(
                f"There are {counts[0]:,} first sentences, {counts[1]:,} second sentences, {counts[2]:,} conditions. "
                f"Send 1 to {limits.TABLE_ROWS:,} of each, or one condition for all."
            )
        rows = [
            Pair(
                check_sentence(first, f"row {row}, sentence 1"),
                check_sentence(second, f"row {row}, sentence 2"),
                check_condition(condition, f"row {row}, condition"),
            )
            for row, (first, second, condition) in enumerate(zip(sentences1, sentences2, conditions, strict=True), 1)
        ]
        return {"scores": self.pool.run(score_rows, model, rows, rows=len(rows)).result().tolist()}

    def api_attribution(self, sentence1: str, sentence2: str, condition: str, model: str) -> dict[str, Any]:
        """Return the effect of every word on the score of one model.

        Args:
            sentence1: First sentence.
            sentence2: Second sentence.
            condition: A condition, or "" for the score without one.
            model: Name as /models lists it.
        """
        from condviz.analysis.words import leave_one_word_out

        return self.pool.run(leave_one_word_out, model, sentence1, sentence2, condition or None).result().to_dict()

    def api_applies(self, sentences: list[str], conditions: list[str]) -> dict[str, Any]:
        """Estimate whether each sentence tells what each condition asks for: below 0.5 it may not.

        Args:
            sentences: One to a hundred sentences.
            conditions: One to twenty conditions.

        Returns:
            {"applies": a row for each sentence, with a number in [0, 1] for each condition}.
        """
        if not 1 <= len(sentences) <= MAX_SENTENCES:
            raise DataError(f"Give 1 to {MAX_SENTENCES} sentences, got {len(sentences):,}.")
        texts = [check_sentence(text, f"sentence {number}") for number, text in enumerate(sentences, start=1)]
        return {"applies": self.pool.run(_applies, self.pool.default, texts, check_conditions(conditions)).result()}

    # ---- pictures ----------------------------------------------------------------------------------------------------
    def _picture(self, comparison: Comparison, before: dict[str, float] | None = None, *, first: bool = False) -> str:
        """Render a comparison; `first` is the stored one, in English, which nobody asked for."""
        return render(
            "compare/result.html", comparison=comparison, link=_link(comparison), asked=not first,
            headline=similarity.headline(comparison, english=first), bars=similarity.bars(comparison, before=before),
            unnamed="" if first or comparison.words or similarity.unread(comparison) else _why_unnamed(comparison),
        )  # fmt: skip


def _why_unnamed(comparison: Comparison) -> str:
    """Say why no words are named below the bars, where the texts are too long for that."""
    from condviz.analysis.compare import MAX_WORDS, word_cost

    cost = word_cost(comparison)
    if not cost:
        return f"No words are named: together the texts have more than the {MAX_WORDS} that can be left out one by one."
    long = "These are many words to leave out one by one: open “Words: why this score?” below to see what each does."
    return long if cost > MAX_WORD_SCORES else ""


def _score_table(model: Any, pairs: Any, *, progress: Any = None) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401
    """Score pairs, and find the percentiles of the scores."""
    from condviz.analysis.reference import percentile, reference_scores

    scores = score_rows(model, pairs, progress=progress)
    return scores, percentile(scores, reference_scores(model))


def _applies(model: Any, sentences: list[str], conditions: list[str]) -> list:  # noqa: ANN401 - a loaded model
    return model.applies(sentences, conditions).tolist()


_needed = partial(needed, message="Nothing has been compared yet. Press Compare first.")


def _link(comparison: Comparison) -> str:
    pair = comparison.sentence1, comparison.sentence2
    return pair_link("compare", pair, comparison.conditions, comparison.models[0].name)


def _before(comparison: Comparison, shown: Comparison | None) -> dict[str, float]:
    """Return the percentiles before an edit of one sentence, under the same model and condition."""
    if shown is None or shown.models[0].name != comparison.models[0].name:
        return {}
    if (shown.sentence1 == comparison.sentence1) == (shown.sentence2 == comparison.sentence2):
        return {}
    old = dict(zip(shown.conditions, shown.percentiles[0].tolist(), strict=True))
    new = dict(zip(comparison.conditions, comparison.percentiles[0].tolist(), strict=True))
    return {condition: place for condition, place in old.items() if abs(place - new.get(condition, place)) >= 1}


TAB = Tab("compare", "Compare", CompareTab)
