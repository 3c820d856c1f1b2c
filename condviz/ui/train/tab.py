"""The Train tab: your data, quick or better, train. What becomes of it is in `runs.py`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import gradio as gr
from markupsafe import Markup

from condviz.errors import ConfigError, DataError
from condviz.evaluation.metrics import COUNTED, condition_pairs
from condviz.training.jobs import Jobs, is_enabled
from condviz.training.worker import prepare_probe
from condviz.ui.events import PRIVATE, connect, follow, publish
from condviz.ui.imports import FILE_TYPES, TRAINED, Import, Reading
from condviz.ui.markup import html, notice, render
from condviz.ui.page import Page, Tab, section, stop_button
from condviz.ui.pool import Work
from condviz.ui.requests import KEPT
from condviz.ui.state import MAX_TEXT, Values, first
from condviz.ui.train import recipe as recipes
from condviz.ui.train import view as views
from condviz.ui.train.runs import Runs, token_of

NEEDED = render("train/upload_help.html")
"""What a table needs."""
NO_TABLE = "No table yet: upload one, or choose the example."
NONE = "none"
"""How links name the pretrained encoder as the start."""
SPACE_GUIDE = "https://huggingface.co/docs/hub/spaces-overview#duplicating-a-space"
_IN_TURN: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "train-form"}


class TrainTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool, self.jobs, self.enabled = page, page.pool, Jobs(), is_enabled()
        if not self.enabled:
            space = os.environ.get("SPACE_ID", "")
            href = f"https://huggingface.co/spaces/{space}?duplicate=true" if space else SPACE_GUIDE
            html(render("train/off.html", href=href), elem_id="cv-train-off")
        with gr.Row(elem_classes="cv-split"):
            with gr.Column(elem_classes="cv-form cv-inputs", elem_id="cv-train-form", scale=0, min_width=320):
                self._steps()
            with gr.Column(elem_classes="cv-output", scale=1, min_width=320):
                # Beside the form: in its narrow column a table cannot be read, and Start would be pushed out of sight.
                with gr.Column(elem_id="cv-train-own") as self.own_box:
                    self.sample = html("", elem_id="cv-train-table")
                    self.own = Import(self.upload, TRAINED, "cv-train")
                self.runs = Runs(page, self.jobs)
        with section("Advanced: all settings, recipes of the papers", elem_id="cv-train-advanced"):
            self._advanced()
        self.runs.sections()
        self.owner, self.takes, self.table = page.owner, gr.State({}), gr.State(None)
        self._connect()

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _steps(self) -> None:
        self.notice = html("", elem_id="cv-train-notice", render=False)
        html(render("train/step.html", number=1, title="Your data"), elem_id="cv-train-step1")
        choices = [("My table", "table"), ("Example", "example")]
        self.source = gr.Radio(choices, value="table", show_label=False, label="Data", elem_id="cv-train-data")
        with gr.Column(elem_classes="cv-train-box") as self.upload_box:
            files = {"file_types": FILE_TYPES, "elem_id": "cv-train-upload"}
            self.upload = gr.File(label="Table of rated pairs", height=70, **files)
            self.help = html(NEEDED, elem_id="cv-train-upload-help")
        html(render("train/step.html", number=2, title="How to train"), elem_id="cv-train-step2")
        said: dict[str, Any] = {"label": "Start from", "info": "and how many of people’s pairs it orders right"}
        self.best = recipes.best_start()  # describes every model: once, not at each edit
        self.begins = gr.Dropdown(recipes.starts(self.pool.infos()), value=self.best, elem_id="cv-train-from", **said)
        plain = {"show_label": False, "label": "Thoroughness", "elem_id": "cv-train-quality"}
        self.quality = gr.Radio(views.label_qualities({}), value="quick", **plain)
        html(render("train/step.html", number=3, title="Name and train"), elem_id="cv-train-step3")
        self.name = gr.Textbox(recipes.NAME, label="Name of the model", max_lines=1, elem_id="cv-train-name")
        with gr.Row(elem_classes="cv-actions"):
            able: dict[str, Any] = {"interactive": self.enabled}
            start: dict[str, Any] = {"variant": "primary", "elem_id": "cv-train-start", "min_width": 120}
            self.start = gr.Button("Start training", **start, **able)
            self.check = gr.Button("Check", elem_id="cv-train-check", min_width=80, **able)
            self.stop = stop_button(elem_id="cv-train-stop")
        self.notice.render()
        self.found = html("", elem_id="cv-train-check-result")
        self.noted = html("", elem_id="cv-train-noted")

    def _advanced(self) -> None:
        shipped = sorted(path.stem for path in recipes.RECIPES.glob("*.toml"))
        presets = [("Quick", "quick"), ("Better", "better")]
        presets += [(name, name) for name in shipped if name not in recipes.QUALITIES]
        self.preset = gr.Dropdown(presets, value="quick", label="Recipe", elem_id="cv-train-preset")
        self.share = gr.Number(20, label="Validation share, %", minimum=5, maximum=50, precision=0)
        text = recipes.compose("quick", recipes.NAME, recipes.WAITING)
        values = recipes.read_fields(text)
        self.fields: dict[str, Any] = {}
        with gr.Row(elem_classes="cv-train-columns"):
            for key, (_, label, kind) in recipes.FIELDS.items():
                options = {"label": label, "elem_id": f"cv-train-{key}", "min_width": 130, "value": values[key]}
                if isinstance(kind, list):
                    self.fields[key] = gr.Dropdown(kind, **options)
                else:
                    self.fields[key] = (gr.Textbox if isinstance(kind, str) else gr.Number)(**options)
        tall = {"lines": 8, "max_lines": 24, "elem_id": "cv-train-recipe"}
        self.recipe = gr.Textbox(text, label="Recipe (TOML): every other setting", **tall)
        # What the server has written last: the text in the browser is older while an answer is on its way.
        self.written = gr.State(text)

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        form = {"notice": self.notice, **_IN_TURN}
        quiet: dict[str, Any] = {"notice": self.runs.model.notice}
        texts = [self.recipe, self.written]
        filled = [*texts, self.found, self.name, *self.fields.values(), self.preset]
        made = [self.source, self.quality, self.name, self.table, self.begins]
        read = [self.upload, self.own.reading, self.share, self.quality, self.name, self.begins, self.written]
        table = [self.sample, self.table, self.help, self.own.told, *filled]
        arrived = gr.on([self.own.reading.change, self.share.input], lambda: None, queue=False, **PRIVATE)  # see below
        connect(arrived.then, self.read_table, read, table, **form)
        chosen = [*filled, self.upload_box, self.own_box, self.begins]
        connect(self.source.input, self.choose_source, made, chosen, **form)
        connect(self.begins.input, self.choose, made, chosen, **form)
        thorough = connect(self.quality.input, self.choose, made, chosen, **form)
        connect(self.preset.input, self.choose, [self.source, self.preset, *made[2:]], filled, **form)
        connect(self.recipe.blur, self.edit, [self.recipe], filled, **form)
        for key, field in [("name", self.name), *self.fields.items()]:
            events = [field.blur, field.submit] if isinstance(field, gr.Textbox) else field.input
            path = ("name",) if key == "name" else recipes.FIELDS[key][0]

            def set_field(text: str, value: object, path: tuple[str, ...] = path) -> dict:
                changed = recipes.write_field(text, path, recipes.hyphenate(value) if path == ("name",) else value)
                return {self.recipe: changed, self.written: changed, self.found: ""}

            connect(events, set_field, [self.written, field], [*texts, self.found], **form)
        asked = [self.source, self.table, self.written]
        checked = [*asked, self.quality, self.preset, self.takes]
        main = {"notice": self.notice, "stop": self.stop}
        tried = [self.found, self.quality, self.takes]
        # The last field may still be on its way when a button is pressed: its turn comes first.
        check, start = (button.click(lambda: None, **PRIVATE, **_IN_TURN) for button in (self.check, self.start))
        for asked_by, look in ((check.then, self.look), (thorough.then, self.estimate)):
            connect(asked_by, look, checked, tried, **main, concurrency_limit=1)
        other = [self.source.input, self.table.change]
        connect(other, self.forget_times, None, [self.quality, self.takes], queue=False, **quiet)
        seen, painted = [self.runs.shown, self.owner], [*self.runs.painted, self.sample]
        once: dict[str, Any] = {"trigger_mode": "once"}  # a double click is one
        connect(
            start.then, self.begin, [*asked, *seen], [*painted, self.own.box, self.found, self.owner], **main, **once
        )
        self.runs.connect(self.notice)
        linked = list(dict.fromkeys([*painted, self.source, self.quality, *chosen, *self.own.shown]))
        told = {"notice": self.notice, "otherwise": lambda shown, owner, *_: self.runs.refresh(shown, owner)}
        self.page.on_link(self.open_link, [*seen, self.name, self.table, self.begins], linked, heavy=False, **told)
        # The menus that are filled in the same answer have their values only once it has arrived.
        changed = [self.written.change, self.source.change, self.quality.change, self.preset.change]
        filled_in = gr.on(changed, lambda: None, queue=False, **PRIVATE)
        form = [self.source, self.quality, self.preset, self.table, self.begins, self.written]
        connect(filled_in.then, self.note, form, [self.noted], queue=False, **quiet)
        # A visitor owns trainings by a secret that is kept in the browser.
        own = {"queue": False, **PRIVATE}
        self.page.opened(lambda owner: owner or secrets.token_urlsafe(16), self.owner, self.owner, **own)
        self.page.opened(self._opened, None, None, **own)
        self.page.on_models(self.begins, lambda: recipes.starts(self.pool.infos()))
        publish(self.api_train, "train", heavy=False)

    # ---- the form ----------------------------------------------------------------------------------------------------
    def read_table(
        self, file: str | None, reading: Reading | None, share: float, quality: str, name: str,
        start: str | None = None, written: str = "",
    ) -> dict:  # fmt: skip
        """Take the rated rows of an uploaded table, and keep its two parts for training.

        Of one that comes again with its link, what the link has changed stays as it is `written`.
        """
        # Without a table that can be used, the recipe must not name the one before.
        bare = self._compose(quality, name, recipes.WAITING, start)
        empty = {self.table: None, self.sample: "", **self._fill(bare, quality)}
        # Of a table that a link opens again, the browser has not heard yet.
        if not (file := file or (reading and reading.path)):
            return {**empty, self.help: NEEDED}
        from condviz.training.data import divide, read_rated, store_parts

        part = float(share or 0) / 100
        try:
            reading = self.own.current(file, reading)
            table = read_rated(pairs := reading.pairs(), reading.name)
            train, held = divide(table, part)
        except DataError as error:
            return {**empty, self.table: {"refused": str(error)}, self.help: "", self.own.told: notice("", str(error))}
        facts = {"table": None, "batching": table.batching, "rows": len(table.rows)}
        if self.enabled:
            self.jobs.remove_old_uploads()
            facts["table"] = [str(path) for path in store_parts(table, part, self.jobs.uploads)]
        again = written and not reading.new
        text = self._compose(quality, recipes.NAME if again else name, facts, start)
        if again:
            changes = recipes.read_changes(written, self._base("table", quality, None, start))
            text = recipes.apply_changes(text, changes)
        filled = self._fill(text, quality)
        ordered = sum(held[one].label != held[other].label for one, other in condition_pairs(held))
        counts = {"train": len(train), "held": len(held), "ordered": ordered, "enough": COUNTED}
        view = render("train/table.html", table=table, told=pairs.notes, **counts)
        kept = Markup('<span data-own="own={}"></span>').format(KEPT.add(reading, file))
        return {self.help: kept, self.sample: view, self.table: facts, **filled}

    def choose(self, source: str, preset: str, name: str, table: dict | None, start: str | None = None) -> dict:
        """Compose the recipe for other data, another start or another thoroughness, or take a shipped recipe."""
        return self._fill(self._base(source, preset, table, start, name), preset)

    def choose_source(self, source: str, quality: str, name: str, table: dict | None, *_: str) -> dict:
        """Take the visitor's table, or the example: shipped models have learnt from it, so it starts without them."""
        mine = source == "table"
        start = self.best if mine else recipes.PRETRAINED
        filled = self.choose(source, quality, name, table, start)
        begins = gr.update(value=start, interactive=mine)
        shown = gr.update(visible=mine)
        return {**filled, self.upload_box: shown, self.own_box: shown, self.begins: begins}

    def edit(self, text: str) -> dict:
        return self._fill(text, None)

    def _fill(self, text: str, preset: str | None) -> dict:
        values = {self.fields[key]: value for key, value in recipes.read_fields(text).items()}
        chosen: dict[Any, Any] = {self.preset: preset} if preset else {}
        try:
            chosen[self.name] = str(recipes.parse(text).get("name", ""))
        except ConfigError as error:
            chosen[self.notice] = notice("", str(error))
        return {self.recipe: text, self.written: text, self.found: "", **values, **chosen}

    # ---- check and start ---------------------------------------------------------------------------------------------
    def look(
        self, source: str, table: dict | None, text: str, quality: str, preset: str, takes: Mapping[str, float]
    ) -> Iterator[dict]:
        """Read the data and try a few steps: what the training takes, and the problems that block it."""
        _need_table(source, table, text)
        work = Work(lambda progress: self.jobs.check(self._read(text), progress=progress))
        try:
            said = "Reading the data, then trying a few steps."
            found = yield from follow(work, said, self.notice, self.stop)
        finally:
            self._prepare()  # whoever has checked will change something and check again
        if found.minutes is not None and preset == quality:
            takes = {**takes, quality: found.minutes}
        yield {
            self.found: views.render_check(found),
            self.quality: gr.update(choices=views.label_qualities(takes)),
            self.takes: takes,
        }

    def forget_times(self) -> dict:
        """Take the times out of the labels: they were measured on other data."""
        return {self.quality: gr.update(choices=views.label_qualities({})), self.takes: {}}

    def estimate(self, source: str, table: dict | None, text: str, quality: str, *rest: Any) -> Iterator[dict]:  # noqa: ANN401
        """Measure how long the longer training takes, as soon as it is chosen."""
        if quality == "better" and self.enabled and (source == "example" or _usable(table)):
            yield from self.look(source, table, text, quality, *rest)

    def begin(self, source: str, table: dict | None, text: str, shown: Mapping[str, Any], owner: str) -> Iterator[dict]:
        _need_table(source, table, text)
        owner = owner or secrets.token_urlsafe(16)
        work = Work(lambda progress: self._submit(text, owner))
        job = yield from follow(work, "Reading the data.", self.notice, self.stop)
        view = self.runs.refresh({**shown, "run": job.id, "replay": None}, owner, focus=True)
        folded = {self.sample: "", self.own.box: gr.update(open=False)}
        yield {**view, **folded, self.found: "", self.owner: owner}

    def _submit(self, text: str, owner: str) -> Any:  # noqa: ANN401 - a Job
        return self.jobs.submit(self._read(text), text=text, owner=owner)

    def _read(self, text: str) -> Any:  # noqa: ANN401 - a Recipe; its module imports pydantic
        from condviz.training.recipes import from_dict

        return from_dict(recipes.parse(text))

    def open_link(
        self, values: Values, shown: Mapping[str, Any], owner: str, name: str, table: dict | None,
        start: str | None = None,
    ) -> dict:  # fmt: skip
        """Show the training that a link names, and the form with the data and thoroughness that it names."""
        run, data, quality, preset, own = (first(values, key) for key in ("run", "data", "quality", "preset", "own"))
        changes = {key: first(values, key) for key in ("name", "recipe", *recipes.FIELDS) if key in values}
        asked = first(values, "from")
        start = recipes.PRETRAINED if asked == NONE else asked or start
        if run and not self.jobs.get(run).may_change(token_of(shown, owner)):  # `get` tells of one that was deleted
            raise DataError("This training belongs to somebody else, and only their browser shows it.")
        filled = bool(data or quality or preset or changes or own in KEPT or "from" in values)
        found = self.runs.refresh({**shown, "run": run or shown["run"]}, owner, asked=bool(run) or filled)
        if not filled:
            return found
        data = "example" if data == "example" else "table"
        quality = quality if quality in recipes.QUALITIES else "quick"
        name = recipes.NAME if changes else name
        if kept := KEPT.find(own, Reading):  # that it is read again fills in the recipe
            found |= self.own.restore(kept)
            found[self.own.box] = gr.update(visible=True, open=bool(kept.problem))  # the run is to be in sight
        found |= self.choose_source(data, quality, name, table) | {self.source: data, self.quality: quality}
        if data == "table" and start is not None:
            found |= self.choose(data, quality, name, table, start) | {self.begins: start}
        if preset or changes:
            preset = preset or quality
            found |= self._fill(recipes.apply_changes(self._base(data, preset, table, start), changes), preset)
        return found

    def note(self, source: str, quality: str, preset: str, table: dict | None, start: str | None, text: str) -> dict:
        """Keep in the address of the page what differs from the form as it opens."""
        changes = recipes.read_changes(text, self._base(source, preset, table, start))
        values = dict.fromkeys(recipes.LINK_KEYS, "") | changes
        values["data"] = source if source == "example" else ""
        values["quality"] = quality if quality != "quick" else ""
        values["preset"] = preset if preset != quality else ""
        values["from"] = "" if source == "example" or start in (None, self.best) else start or NONE
        if long := len(values["recipe"]) > MAX_TEXT:
            values["recipe"] = ""
        return {self.noted: render("train/noted.html", noted=urlencode(values), long=long, most=MAX_TEXT)}

    def _base(
        self, source: str, preset: str, table: dict | None, start: str | None = None, name: str = recipes.NAME
    ) -> str:
        """Return the recipe that a choice of data, start and thoroughness, or a shipped recipe, fills in."""
        if preset not in recipes.QUALITIES:
            return recipes.read_preset(preset)
        return self._compose(preset, name, (_usable(table) or recipes.WAITING) if source == "table" else None, start)

    def _compose(self, quality: str, name: str, table: Mapping[str, Any] | None, start: str | None = None) -> str:
        """Compose a recipe; a name that is taken is counted on."""
        return recipes.compose(quality, self.jobs.free_name(name) if name else "", table, start)

    def _prepare(self) -> None:
        """Let what a check needs be imported before it is asked for."""
        if self.enabled:
            prepare_probe()

    def _opened(self) -> None:
        self._prepare()
        if self.enabled:
            self.jobs.remove_old_uploads()

    # ---- endpoint ----------------------------------------------------------------------------------------------------
    def api_train(self, recipe: str, owner: str = "") -> dict[str, Any]:
        """Queue a training.

        Args:
            recipe: The text of a recipe in TOML, as in assets/recipes.
            owner: A secret of yours; on a Space only who knows it may stop the training.

        Returns:
            The training, as /train_status returns it.
        """
        return views.view_job(self._submit(recipe, owner), owner).to_dict()


def _need_table(source: str, table: Mapping[str, Any] | None, text: str) -> None:
    if source == "table" and not _usable(table) and recipes.parse(text).get("train") == [recipes.AWAITED["train"]]:
        refused = table and "refused" in table
        raise DataError("The table cannot be used yet: mend what is said beside it." if refused else NO_TABLE)


def _usable(table: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what a recipe says about a table; None where there is none, or a training cannot use it."""
    return table if table and "refused" not in table else None


TAB = Tab("train", "Train", TrainTab)
