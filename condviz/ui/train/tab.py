"""The Train tab: your data, quick or better, train; and every training of this machine as it goes."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import gradio as gr

from condviz.errors import CondvizError, ConfigError, DataError
from condviz.training.jobs import Jobs, is_enabled
from condviz.ui.events import PRIVATE, connect, follow, publish
from condviz.ui.imports import FILE_TYPES, TRAINED, Import, Reading
from condviz.ui.markup import html, notice, render
from condviz.ui.page import Page, Tab, section, stop_button
from condviz.ui.plotly_panel import panel_update, plotly_panel
from condviz.ui.pool import Work
from condviz.ui.state import MAX_TEXT, Values, first
from condviz.ui.train import recipe as recipes
from condviz.ui.train import view as views
from condviz.ui.train.share import Share, zip_of

TICK_SECONDS = 1.5
SPACE_GUIDE = "https://huggingface.co/docs/hub/spaces-overview#duplicating-a-space"
_IN_TURN: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "train-form"}


class TrainTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        """Lay out and connect."""
        self.page, self.pool, self.jobs, self.enabled = page, page.pool, Jobs(), is_enabled()
        start = views.replay()
        if not self.enabled:
            space = os.environ.get("SPACE_ID", "")
            href = f"https://huggingface.co/spaces/{space}?duplicate=true" if space else SPACE_GUIDE
            html(render("train/off.html", href=href), elem_id="cv-train-off")
        with gr.Row(elem_classes="cv-split"):
            with gr.Column(elem_classes="cv-form cv-inputs", elem_id="cv-train-form", scale=0, min_width=320):
                self._steps()
            with gr.Column(elem_classes="cv-output", scale=1, min_width=320):
                self.sample = html("", elem_id="cv-train-table")
                script = "condviz.train(element, watch, (data) => trigger('act', data));"
                self.run = html(views.render_run(start) if start else "", elem_id="cv-train-run", script=script)
                self.curve = plotly_panel(elem_id="cv-train-curve", label="Held-back rows over the steps", height=260)
                self.learned = html("", elem_id="cv-train-learned")
        self._sections(script)
        self.owner = gr.BrowserState("", storage_key="condviz-trainings", secret="condviz")
        self.takes = gr.State({})
        self.table, self.shown = gr.State(None), gr.State({"run": None, "replay": None, "drawn": None})
        self.timer = gr.Timer(TICK_SECONDS, active=False)
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
            self.help = html(render("train/upload_help.html"), elem_id="cv-train-upload-help")
            self.own = Import(self.upload, TRAINED, "cv-train", self.notice)
        html(render("train/step.html", number=2, title="How thorough?"), elem_id="cv-train-step2")
        plain = {"show_label": False, "label": "Thoroughness", "elem_id": "cv-train-quality"}
        self.quality = gr.Radio(views.label_qualities({}), value="quick", **plain)
        html(render("train/step.html", number=3, title="Name and train"), elem_id="cv-train-step3")
        self.name = gr.Textbox(recipes.NAME, label="Name of the model", max_lines=1, elem_id="cv-train-name")
        with gr.Row(elem_classes="cv-actions"):
            able = {"interactive": self.enabled}
            start = {"variant": "primary", "elem_id": "cv-train-start", "min_width": 120}
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
        text = recipes.compose("quick", recipes.NAME, None)
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

    def _sections(self, script: str) -> None:
        with section("Advanced: all settings, recipes of the papers", elem_id="cv-train-advanced"):
            self._advanced()
        with section("Loss", elem_id="cv-train-losses") as self.loss_part:
            self.loss = plotly_panel(elem_id="cv-train-loss", label="Training loss over the steps", height=260)
        with section("All trainings on this machine", elem_id="cv-train-runs") as self.runs_part:
            self.runs = html("", elem_id="cv-train-history", script=script)
        with section("The model: download it, or upload it to Hugging Face", elem_id="cv-train-model"):
            self.share_model = Share(self.jobs)
        with section("Log", elem_id="cv-train-log") as self.log_part:
            self.log = html("", elem_id="cv-train-log-text", script=script)

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        form = {"notice": self.notice, **_IN_TURN}
        quiet = {"notice": self.share_model.notice}
        texts = [self.recipe, self.written]
        filled = [*texts, self.found, self.name, *self.fields.values(), self.preset]
        made = [self.source, self.quality, self.name, self.table]
        read = [self.upload, self.own.reading, self.share, self.quality, self.name]
        table = [self.sample, self.table, self.help, *filled]
        connect([self.own.reading.change, self.share.input], self.read_table, read, table, **form)
        chosen = [*filled, self.upload_box, self.sample]
        connect(self.source.input, self.choose, made, chosen, **form)
        thorough = connect(self.quality.input, self.choose, made, chosen, **form)
        preset = [self.preset, self.name, self.source, self.table]
        connect(self.preset.input, self.choose_preset, preset, filled, **form)
        connect(self.recipe.blur, self.edit, [self.recipe], filled, **form)
        for key, field in [("name", self.name), *self.fields.items()]:
            events = [field.blur, field.submit] if isinstance(field, gr.Textbox) else field.input
            path = ("name",) if key == "name" else recipes.FIELDS[key][0]

            def set_field(text: str, value: object, path: tuple[str, ...] = path) -> dict:
                changed = recipes.write_field(text, path, value)
                return {self.recipe: changed, self.written: changed, self.found: ""}

            connect(events, set_field, [self.written, field], [*texts, self.found], **form)
        asked = [self.source, self.table, self.written]
        checked = [*asked, self.quality, self.preset, self.takes]
        main = {"notice": self.notice, "stop": self.stop}
        tried = [self.found, self.curve, self.quality, self.takes]
        # The last field may still be on its way when a button is pressed: its turn comes first.
        check, start = (button.click(lambda: None, **PRIVATE, **_IN_TURN) for button in (self.check, self.start))
        for asked_by, look in ((check.then, self.look), (thorough.then, self.estimate)):
            run = connect(asked_by, look, checked, tried, **main, concurrency_limit=1)
            # A stopped check must not leave its progress on the picture.
            run.failure(lambda: panel_update(message=""), None, self.curve, queue=False, **PRIVATE)
        other = [self.source.input, self.table.change]
        connect(other, self.forget_times, None, [self.quality, self.takes], queue=False, **quiet)
        painted = [
            self.run, self.curve, self.learned, self.sample, self.runs, self.log, self.loss, self.timer, self.shown,
            self.page.models_changed,
        ]  # fmt: skip
        seen = [self.shown, self.owner]
        once = {"trigger_mode": "once"}  # a double click is one
        connect(start.then, self.begin, [*asked, *seen], [*painted, self.found, self.owner], **main, **once)
        for part in (self.run, self.runs):
            connect(part.act, self.act, seen, painted, notice=self.notice, **once)
        connect(self.timer.tick, self.refresh, seen, painted, **quiet, **once)
        for part in (self.loss_part, self.runs_part, self.log_part):
            connect(part.expand, self.redraw, seen, painted, **quiet)
        linked = [*painted, self.source, self.quality, *filled, self.upload_box]
        told = {"notice": self.notice, "heavy": False, "otherwise": lambda shown, owner, *_: self.refresh(shown, owner)}
        self.page.on_link(self.open_link, [*seen, self.name, self.table], linked, **told)
        # The menus that are filled in the same answer have their values only once it has arrived.
        changed = [self.written.change, self.source.change, self.quality.change, self.preset.change]
        filled_in = gr.on(changed, lambda: None, queue=False, **PRIVATE)
        form = [self.source, self.quality, self.preset, self.table, self.written]
        connect(filled_in.then, self.note, form, [self.noted], queue=False, **quiet)
        # A visitor owns trainings by a secret that is kept in the browser.
        own = {"queue": False, **PRIVATE}
        self.page.opened(lambda owner: owner or secrets.token_urlsafe(16), self.owner, self.owner, **own)
        self.page.opened(self._opened, None, None, **own)
        self.page.site.on_open.append(self._add_models)
        self.share_model.connect(self.shown, self.owner)
        publish(self.api_train, "train", heavy=False)
        publish(self.api_status, "train_status", heavy=False)
        publish(self.api_stop, "train_stop", heavy=False)

    # ---- the form ----------------------------------------------------------------------------------------------------
    def read_table(self, file: str | None, reading: Reading | None, share: float, quality: str, name: str) -> dict:
        """Take the rated rows of an uploaded table, and keep its two parts for training."""
        # Without a table that can be used, the recipe must not name the one before.
        empty = {self.table: None, self.sample: "", **self._fill(recipes.compose(quality, name, None), quality)}
        if not file:
            return {**empty, self.help: render("train/upload_help.html")}
        from condviz.training.tables import divide, read_rated, store

        part = float(share or 0) / 100
        try:
            reading = self.own.current(file, reading)
            table = read_rated(reading.pairs(), reading.name)
            train, held = divide(table, part)
        except DataError as error:
            return {**empty, self.help: "", self.notice: notice("", str(error))}
        facts = {"table": None, "batching": table.batching, "rows": len(table.rows)}
        if self.enabled:
            self.jobs.remove_old_uploads()
            facts["table"] = [str(path) for path in store(table, part, self.jobs.uploads)]
        view = render("train/table.html", table=table, train=len(train), held=len(held))
        return {
            self.help: "",
            self.sample: view,
            self.table: facts,
            **self._fill(recipes.compose(quality, name, facts), quality),
        }

    def choose(self, source: str, quality: str, name: str, table: dict | None) -> dict:
        """Compose the recipe for other data or another thoroughness."""
        text = recipes.compose(quality, name, table if source == "table" else None)
        filled = self._fill(text, quality)
        if self.enabled and source == "example":  # whoever chooses it is about to check or to train
            from condviz.training import preflight

            preflight.read(self._read(text))
        return {**filled, self.upload_box: gr.update(visible=source == "table")}

    def choose_preset(self, preset: str, name: str, source: str, table: dict | None) -> dict:
        """Fill in a shipped recipe; those for tables get the visitor's data and name."""
        return self._fill(self._base(source, preset, table, name), preset)

    def edit(self, text: str) -> dict:
        """Show a recipe that was edited by hand in the fields."""
        return self._fill(text, None)

    def _fill(self, text: str, preset: str | None) -> dict:
        values = {self.fields[key]: value for key, value in recipes.read_fields(text).items()}
        chosen = {self.preset: preset} if preset else {}
        try:
            chosen[self.name] = str(recipes.parse(text).get("name", ""))
        except ConfigError as error:
            chosen[self.notice] = notice("", str(error))
        return {self.recipe: text, self.written: text, self.found: "", **values, **chosen}

    # ---- check and start ---------------------------------------------------------------------------------------------
    def look(
        self, source: str, table: dict | None, text: str, quality: str, preset: str, takes: Mapping[str, float]
    ) -> Iterator[dict]:
        """Read the data and try a few steps: what the training takes, and what stands in its way."""
        _need_table(source, table, text)
        work = Work(lambda progress: self.jobs.check(self._read(text), progress=progress))
        began = time.monotonic()
        try:
            for _ in work.steps():
                doing = f"Reading the data, then trying a few steps: {time.monotonic() - began:.0f} s"
                shown = {self.curve: panel_update(message=doing, tone="busy"), self.stop: gr.update(visible=True)}
                yield {**shown, self.found: "", self.notice: gr.skip()}
            found = work.result()
        except Exception:
            yield {self.curve: panel_update(message="")}
            raise
        finally:
            self._prepare()  # whoever has checked will change something and check again
        if found.minutes is not None and preset == quality:
            takes = {**takes, quality: found.minutes}
        yield {
            self.found: views.render_check(found),
            self.curve: panel_update(message=""),
            self.stop: gr.update(visible=False),
            self.quality: gr.update(choices=views.label_qualities(takes)),
            self.takes: takes,
        }

    def forget_times(self) -> dict:
        """Take the times out of the labels: they were measured on other data."""
        return {self.quality: gr.update(choices=views.label_qualities({})), self.takes: {}}

    def estimate(
        self, source: str, table: dict | None, text: str, quality: str, preset: str, takes: Mapping[str, float]
    ) -> Iterator[dict]:
        """Measure how long the longer training takes, as soon as it is chosen."""
        if quality == "better" and self.enabled and (source == "example" or table):
            yield from self.look(source, table, text, quality, preset, takes)

    def begin(self, source: str, table: dict | None, text: str, shown: Mapping[str, Any], owner: str) -> Iterator[dict]:
        """Queue the training, and show it."""
        _need_table(source, table, text)
        owner = owner or secrets.token_urlsafe(16)
        work = Work(lambda progress: self._submit(text, owner))
        job = yield from follow(work, "Reading the data.", self.notice, self.stop)
        view = self.refresh({**shown, "run": job.id, "replay": None}, owner, focus=True)
        yield {**view, self.found: "", self.sample: "", self.owner: owner, self.stop: gr.update(visible=False)}

    def _submit(self, text: str, owner: str) -> Any:  # noqa: ANN401 - a Job
        return self.jobs.submit(self._read(text), text=text, owner=owner)

    def _read(self, text: str) -> Any:  # noqa: ANN401 - a Recipe; its module imports pydantic
        from condviz.training.recipes import from_dict

        return from_dict(recipes.parse(text))

    # ---- runs --------------------------------------------------------------------------------------------------------
    def refresh(self, shown: Mapping[str, Any], owner: str, *, focus: bool = False, asked: bool = False) -> dict:
        """Show the chosen training, else the newest, else the recorded one, as it stands now.

        Args:
            shown: What is shown.
            owner: The secret of the visitor.
            focus: Bring it into view: it has just been started.
            asked: A link asked for it.
        """
        jobs = self.jobs.list()
        job = next((job for job in jobs if job.id == shown["run"]), jobs[0] if jobs and shown["run"] != "" else None)
        seconds = None if shown["replay"] is None else time.time() - shown["replay"]
        run = views.view_job(job, owner, log=True) if job else views.replay(seconds)
        if run is None:
            return {self.timer: gr.Timer(active=False)}
        moving = run.state in views.ACTIVE or run.left is not None
        updates = {
            self.run: views.render_run(run, focus=focus, asked=asked),
            self.timer: gr.Timer(active=moving or any(job.state in ("queued", "running") for job in jobs)),
            self.shown: {**shown, "run": run.id if job else shown["run"], "drawn": run.stamp},
            self.runs: views.render_runs(jobs, run.id),
            self.log: render("train/log.html", log=run.log, mine=run.mine),
        }
        if run.stamp != shown["drawn"]:
            updates |= self._draw(run)
        return updates | ({self.page.models_changed: time.time()} if self._add_models() else {})

    def redraw(self, shown: Mapping[str, Any], owner: str) -> dict:
        """Fill a section that was opened: figures are not drawn where nobody sees them."""
        return self.refresh({**shown, "drawn": None}, owner)

    def _draw(self, run: views.RunView) -> dict:
        from condviz.plots.training import plot_curve

        waiting = "" if run.measured else "The first measurement on the held-back rows comes in a moment."
        curve = plot_curve(run.curve()).update_layout(uirevision=str(run.stamp))
        return {
            self.curve: panel_update(figure=curve, message=waiting),
            self.loss: panel_update(figure=plot_curve(run.loss_curve(), "loss", digits=4)),
            self.learned: views.render_learned(run, views.find_ratings(run)),
        }

    def act(self, event: gr.EventData, shown: Mapping[str, Any], owner: str) -> dict:
        """Stop, resume, rerun, delete, show or replay a training."""
        action, run = str(event.act), str(event.run)
        if action == "replay":
            return self.refresh({"run": "", "replay": time.time(), "drawn": None}, owner)
        if action == "delete":
            return self._delete(run, owner)
        if action in ("stop", "resume", "rerun"):
            run = getattr(self.jobs, action)(run, token=owner).id
        elif action != "show":
            raise DataError(f"A training cannot {action[:40]!r}. Reload the page.")
        return self.refresh({"run": run, "replay": None, "drawn": None}, owner, focus=True) | {self.notice: ""}

    def _delete(self, run: str, owner: str) -> dict:
        from condviz.models.registry import list_models

        name = self.jobs.get(run).name
        self.jobs.delete(run, token=owner)
        zip_of(name).unlink(missing_ok=True)
        if name not in list_models():
            self.pool.remove(name)
        said = notice("", f"“{name}” is deleted: its log, its uploads, and the model it made.", tone="info")
        view = self.refresh({"run": None, "replay": None, "drawn": None}, owner)
        return {**view, self.notice: said, self.page.models_changed: time.time()}

    def open_link(self, values: Values, shown: Mapping[str, Any], owner: str, name: str, table: dict | None) -> dict:
        """Show the training that a link names, and the form with the data and thoroughness that it names."""
        run, data, quality, preset = (first(values, key) for key in ("run", "data", "quality", "preset"))
        changes = {key: first(values, key) for key in ("name", "recipe", *recipes.FIELDS) if key in values}
        if run:
            self.jobs.get(run)  # says that it may have been deleted
        filled = bool(data or quality or preset or changes)
        found = self.refresh({**shown, "run": run or shown["run"]}, owner, asked=bool(run) or filled)
        if not filled:
            return found
        data = "example" if data == "example" else "table"
        quality = quality if quality in recipes.QUALITIES else "quick"
        found |= self.choose(data, quality, recipes.NAME if changes else name, table)
        found |= {self.source: data, self.quality: quality}
        if preset or changes:
            preset = preset or quality
            found |= self._fill(recipes.apply_changes(self._base(data, preset, table), changes), preset)
        return found

    def note(self, source: str, quality: str, preset: str, table: dict | None, text: str) -> dict:
        """Keep in the address of the page what differs from the form as it opens."""
        changes = recipes.read_changes(text, self._base(source, preset, table))
        values = dict.fromkeys(recipes.LINK_KEYS, "") | changes
        values["data"] = source if source == "example" else ""
        values["quality"] = quality if quality != "quick" else ""
        values["preset"] = preset if preset != quality else ""
        if long := len(values["recipe"]) > MAX_TEXT:
            values["recipe"] = ""
        return {self.noted: render("train/noted.html", noted=urlencode(values), long=long, most=MAX_TEXT)}

    def _base(self, source: str, preset: str, table: dict | None, name: str = recipes.NAME) -> str:
        """Return the recipe that a choice of data and thoroughness, or a shipped recipe, fills in."""
        if preset not in recipes.QUALITIES:
            return recipes.read_preset(preset)
        return recipes.compose(preset, name, table if source == "table" else None)

    def _prepare(self) -> None:
        """Let what a check needs be imported before it is asked for."""
        if self.enabled:
            from condviz.training import spare

            spare.prepare()

    def _opened(self) -> None:
        self._prepare()
        if self.enabled:
            self.jobs.remove_old_uploads()

    def _add_models(self) -> list[str]:
        """Take models that were trained since the start into the pool, and load them in the background."""
        from condviz.models.registry import list_models

        def load(name: str) -> None:
            with suppress(CondvizError):  # its state tells
                self.pool.get(name)

        added = [name for name in list_models() if name not in self.pool.names]
        for name in added:
            self.pool.add(name)
            threading.Thread(target=load, args=(name,), name=f"condviz-load-{name}", daemon=True).start()
        return added

    # ---- endpoints ---------------------------------------------------------------------------------------------------
    def api_train(self, recipe: str, owner: str = "") -> dict[str, Any]:
        """Queue a training.

        Args:
            recipe: The text of a recipe in TOML, as in assets/recipes.
            owner: A secret of yours; on a Space only who knows it may stop the training.

        Returns:
            The training, as /train_status returns it.
        """
        return views.view_job(self._submit(recipe, owner), owner).to_dict()

    def api_status(self, job: str = "", owner: str = "") -> dict[str, Any]:
        """Return where a training stands.

        Args:
            job: Its id; "" lists all.
            owner: The secret that it was started with; needed on a Space to read its log.

        Returns:
            {"id", "name", "method", "state", "reason", "phase", "step", "steps", "elapsed", "left", "speed", "created",
            "losses", "evaluations", "probes", "log"}, or {"jobs": [...]} without the last four.
        """
        if job:
            return views.view_job(self.jobs.get(job), owner, log=True).to_dict()
        left_out = {"losses", "evaluations", "probes", "log"}
        jobs = [views.view_job(found, owner).to_dict() for found in self.jobs.list()]
        return {"jobs": [{key: job[key] for key in job if key not in left_out} for job in jobs]}

    def api_stop(self, job: str, owner: str = "") -> dict[str, Any]:
        """Ask a training to save its state and stop; /train_status tells when it has.

        Args:
            job: Its id.
            owner: The secret that it was started with; needed on a Space.

        Returns:
            The training, as /train_status returns it.
        """
        return views.view_job(self.jobs.stop(job, token=owner), owner).to_dict()


def _need_table(source: str, table: Mapping[str, Any] | None, text: str) -> None:
    if source == "table" and table is None and recipes.parse(text).get("train") == recipes.EXAMPLE["train"]:
        raise DataError("No table yet: upload one, or choose the example.")


TAB = Tab("train", "Train", TrainTab)
