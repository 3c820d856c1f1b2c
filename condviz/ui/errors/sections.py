"""The folded sections of the Errors tab, each computed when it is opened."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr

from condviz.analysis.errors.filters import RULES
from condviz.analysis.errors.findings import Remark, find_errors, format_csv, rows_frame
from condviz.analysis.errors.measures import worst_conditions
from condviz.analysis.errors.rewrites import nearest_rows, rewrite, scene_training_rows
from condviz.analysis.errors.study import Study
from condviz.evaluation.dataset import COLUMN_HELP
from condviz.plots import errors as pictures
from condviz.spec import given_options
from condviz.ui import export, limits
from condviz.ui.errors import view
from condviz.ui.errors.desk import Choice, Desk, needed, read_groups, resamples_for, write_groups
from condviz.ui.events import connect, follow
from condviz.ui.markup import busy, html, noted, render
from condviz.ui.page import Page, Section, section, stop_button
from condviz.ui.pool import score_rows
from condviz.ui.state import Values, first

LISTED = 500
"""Rows of the table of rows."""
WORST = 20
MAX_REMARKS, MAX_NOTE = 20_000, 2_000
_NUMBERS = itertools.count()
"""The browser hears of a file only where its markup differs from the one before."""
EXAMPLES = (
    "right == 0 and negation",
    'condition in ("the mood", "the sport") and not seen',
    "abs(error) - abs(error_b) > 1",
    '"two" in words and numerals_differ',
)


def presses(name: str, event: str = "press") -> str:
    """Return the script of a component whose buttons with these data fire an event."""
    return f"condviz.errors(element, ['{name}'], (data) => trigger('{event}', data));"


class Sections:
    """Widgets and events of the sections."""

    def __init__(self, page: Page, desk: Desk, choice: gr.State) -> None:
        self.desk, self.pool, needs = desk, desk.pool, [choice]
        light: dict[str, Any] = {"heavy": False}
        with Section(page, "rows", "Rows of the slice", self.show_rows, needs, **light):
            self.rows = gr.Dataframe(interactive=False, max_height=420, wrap=True, elem_id="cv-err-rows")
        with Section(page, "worst", "Worst conditions", self.show_worst, needs, **light) as self.worst_part:
            self.column = gr.Dropdown([], label="Group by", min_width=160, elem_id="cv-err-column")
            self.worst_part.ask(self.column)
            self.worst = html("", elem_id="cv-err-worst", script=presses("filter"))
            with gr.Row(elem_classes="cv-actions", visible=False) as self.grouping:
                said: dict[str, Any] = {"label": "Conditions that may mean the same, a line a group", "lines": 2}
                said |= {"placeholder": "taste: the flavour; how it tastes", "elem_id": "cv-err-groups"}
                self.groups = gr.Textbox(max_lines=8, **said)
                self.regroup = gr.Button("Group like this", elem_id="cv-err-regroup", min_width=120, scale=0)
        with Section(page, "follow", "Does the model follow the condition?", self.show_follow, needs, **light):
            self.follow = html("", elem_id="cv-err-follow")
        with section("Rewrite the slice and score it again", elem_id="cv-errors-rewrite"):
            with gr.Row(elem_classes="cv-actions"):
                rules = [(title, name) for name, title in RULES.items()]
                self.rule = gr.Dropdown(rules, value="number", label="Rule", elem_id="cv-err-rule", min_width=220)
                self.old = gr.Textbox(label="Word", placeholder="red", visible=False, min_width=100)
                self.new = gr.Textbox(label="Replace with", placeholder="blue", visible=False, min_width=100)
                rewrite = gr.Button("Rewrite and score", elem_id="cv-err-rewrite", min_width=120)
                self.rewrite_stop = stop_button()
            self.rewrite_notice = html("", elem_id="cv-err-rewrite-notice")
            self.effect = html("", elem_id="cv-err-effect")
            typed: list[Any] = [self.old, self.new]
            told: dict[str, Any] = {"notice": self.rewrite_notice}
            connect(self.rule.input, self.choose_rule, [self.rule], typed, queue=False, **told)
            asked, told = [self.rule, *typed, choice], {**told, "stop": self.rewrite_stop, "heavy": True}
            connect(rewrite.click, self.change, asked, [self.effect], **told)
        with Section(page, "near", "Training rows most like this row", self.show_near, needs) as self.near_part:
            self.near = html("", elem_id="cv-err-near")
        title = "Report, rows, link, JSON, Python"
        with Section(page, "export", title, self.show_exports, needs, **light) as self.exports:
            save = html(render("errors/save.html"), elem_id="cv-err-save", script=presses("save"))
            self.file = html("", elem_id="cv-err-file", script="condviz.errorFile(element, watch);")
            self.hand_out = html("", elem_id="cv-err-hand-out")
            connect(save.press, self.hand_over, needs, [self.file], notice=self.exports.notice, heavy=True)
        with section("What a table needs, and how filters are written", elem_id="cv-errors-help"):
            text = render("errors/help.html", rows=limits.ERROR_ROWS, examples=EXAMPLES, columns=COLUMN_HELP)
            html(text, elem_id="cv-err-help")
        self.linked = [self.column, self.rule, self.old, self.new]

    def choose_rule(self, rule: str) -> dict:
        """Show the boxes for words with the rule that needs them."""
        return dict.fromkeys((self.old, self.new), gr.update(visible=rule == "word"))

    def restore(self, values: Values) -> dict:
        """Return updates of the fields that a link names; what follows from them is computed in their sections."""
        column, rule = first(values, "col"), first(values, "rule")
        typed: dict[str, Any] = {"visible": rule == "word"}
        return {
            self.column: gr.Dropdown([column], value=column) if column else gr.skip(),
            self.rule: rule if rule in RULES else gr.skip(),
            self.old: gr.update(value=first(values, "old"), **typed),
            self.new: gr.update(value=first(values, "new"), **typed),
        }

    # ---- sections, each computed when it is opened -------------------------------------------------------------------
    def show_rows(self, choice: Choice | None) -> dict:
        found = self.desk.found(needed(choice))
        errors = {f"error_{one.model}": f"error of {one.title}" for one in found.study.judged}
        names = ["row", "sentence1", "sentence2", "condition", "label", *errors]
        frame = rows_frame(found.study, found.rows[:LISTED]).loc[:, names].round(2)
        named = frame.rename(columns={"label": "rating", **errors})
        shown = named.style.format("{:g}", subset=["rating"], na_rep="")
        shown.format(pictures.signed, subset=list(errors.values()), na_rep="")
        widths: list[str | int] = ["70px", "30%", "30%", "20%", *["90px"] * (1 + len(errors))]
        return {self.rows: gr.Dataframe(shown, column_widths=widths)}

    def show_worst(self, choice: Choice | None, column: str | None) -> dict:
        found = self.desk.found(needed(choice))
        study = found.study
        most = len(study.dataset.pairs) / 2
        texts = {name: cells for name in study.dataset.extra if (cells := study.columns[name]).dtype == object}
        extra = [name for name, cells in texts.items() if len(set(cells)) <= most]
        asks = ["asks"] if (study.columns["asks"] != study.columns["condition"]).any() else []
        first_ones = ("aspect", "asks", "condition")
        columns = sorted([*extra, *asks, "condition"], key=lambda name: (name not in first_ones, name))
        column = column if column in columns else columns[0]
        groups = worst_conditions(study, column=column, mask=found.mask)[:WORST]
        shown = noted(view.worst(column, groups, found), col="" if column == columns[0] else column)
        choices = [(pictures.plain_name(name), name) for name in columns]
        return {
            self.column: gr.Dropdown(choices, value=column, visible=len(columns) > 1),
            self.worst: shown,
            self.grouping: gr.update(visible="aspect" not in extra and len(set(study.columns["condition"])) > 1),
            self.groups: needed(choice).groups or write_groups(study),
        }

    def show_follow(self, choice: Choice | None) -> dict:
        """Return whether scores follow the condition, and how ratings and predictions match."""
        found = pictures.sections(self.desk.found(needed(choice)))
        parts = {name: found[name] for name in ("blindness", "confusions")}
        return {self.follow: render("errors/follow.html", **parts)}

    def show_near(self, choice: Choice | None) -> Iterator[dict]:
        choice = needed(choice)
        row = int(self.desk.found(choice).rows[0]) if choice.row is None else choice.row
        study = self.desk.study(choice)
        work = self.pool.run(_nearest, self.desk.scorer(choice.first), study.dataset.pairs[row])
        found = yield from self.near_part.follow(work, "Encoding training rows.")
        yield {self.near: render("errors/neighbours.html", found=found, model=study.first.title)}

    def change(self, rule: str, old: str, new: str, choice: Choice | None) -> Iterator[dict]:
        """Rewrite the slice by a rule and score it again."""
        found = self.desk.found(needed(choice))
        study = found.study
        words: dict[str, Any] = {"old": old or "", "new": new or ""}
        rewritten = rewrite(study, found.mask, rule, **words)
        scored = []
        for judged in study.judged:
            work = self.pool.run(score_rows, self.desk.scorer(judged.model), rewritten.pairs)
            message = f"{judged.title} scores {len(rewritten.pairs)} changed rows."
            scores = yield from follow(work, message, self.rewrite_notice, self.rewrite_stop)
            scored.append(scores)
        words = words if rule == "word" else dict.fromkeys(words, "")
        yield {self.effect: noted(view.effects(study, rewritten, scored), rule=rule, **words)}

    def show_exports(self, choice: Choice | None) -> dict:
        choice = needed(choice)
        resamples, source = resamples_for(self.desk.study(choice)), choice.source.name or choice.source.key
        found = self.desk.found(choice, resamples=resamples)  # as the figures on the page
        call = [("models", list(choice.names)), ("data", source), *given_options(find_errors, vars(choice)).items()]
        call += [("selected", list(choice.selected))] if choice.selected else []
        call += [("wordings", read_groups(choice.groups, found.study.columns["condition"]))] if choice.groups else []
        python = export.python_call("find_errors", call)
        return {self.hand_out: export.offer(found, link=choice.link, python=python)}

    def hand_over(self, event: gr.EventData, choice: Choice | None) -> Iterator[dict]:
        """Hand the report, or the rows with tags and notes of this browser, to the page, which saves it."""
        choice = needed(choice)
        study = self.desk.study(choice)
        remarks = read_remarks(event.remarks, study)
        if event.value == "report":
            yield {self.exports.notice: busy("Writing the report.")}
            found = self.desk.found(choice, resamples=resamples_for(study))
            known = {name: self.pool.info(name).revision for name in choice.names if name in self.pool.names}
            report = pictures.render_report(replace(found, revisions=known), remarks=remarks)
            name, content = "condviz-errors.html", report
        else:
            rows = self.desk.found(choice).mask.nonzero()[0]
            name, content = "condviz-errors.csv", format_csv(study, rows, remarks)
        yield {self.file: render("errors/file.html", name=name, content=content, number=next(_NUMBERS))}


def _nearest(model: Any, pair: Any) -> Any:  # noqa: ANN401
    return nearest_rows(model, pair, scene_training_rows())


def read_remarks(value: Any, study: Study) -> dict[int, Remark]:  # noqa: ANN401 - from the browser
    """Read what the browser has stored: number of the row -> tags and note; anything damaged is left out."""
    try:
        entries = json.loads(value or "{}")
    except (TypeError, ValueError):
        return {}
    places = {str(number): place for place, number in enumerate(study.dataset.numbers.tolist())}
    remarks = {}
    for number, entry in list(entries.items())[:MAX_REMARKS] if isinstance(entries, dict) else ():
        if number in places and isinstance(entry, dict):
            tags = entry.get("tags")
            tags = tags if isinstance(tags, list) else []
            note = str(entry.get("note") or "")[:MAX_NOTE]
            remarks[places[number]] = Remark(tuple(tag for tag in view.TAGS if tag in tags), note)
    return remarks
