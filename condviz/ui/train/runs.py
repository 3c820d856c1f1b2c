"""The trainings of the Train tab: the one that is shown, as it goes; all of them; and the model that one has made."""

from __future__ import annotations

import hmac
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from condviz.errors import CondvizError, DataError
from condviz.evaluation.metrics import LEAST_CORRELATED
from condviz.models.hub import refusals
from condviz.training.job import is_shared
from condviz.training.jobs import Jobs
from condviz.ui.events import connect, publish
from condviz.ui.imports import RATED, Reading, inspect
from condviz.ui.limits import Counts, Newest
from condviz.ui.markup import html, notice, render
from condviz.ui.page import Page, section
from condviz.ui.requests import KEPT
from condviz.ui.state import write_link
from condviz.ui.train import view as views

TICK_SECONDS = 1.5
NOTHING: Mapping[str, Any] = {"run": None, "replay": None, "drawn": None, "over": (), "operator": False}
"""What is shown before anything was chosen."""
OPERATOR = "CONDVIZ_OPERATOR"
"""Environment variable: the password of whoever runs the page, and may see all trainings."""
TRIES = 10
"""Of that password within a minute, by all visitors together."""
MOST_OVER = 8
"""Curves beside the one that is shown."""
_OPENED: Newest[str, str] = Newest(100)
"""Training -> the token of its kept-back rows in Errors."""
SCRIPT = "condviz.train(element, watch, (data) => trigger('act', data));"


class Runs:
    """Widgets and events of the trainings; call in the column of results, and `sections` below it.

    Args:
        page: Of the tab.
        jobs: The trainings of this machine.
    """

    def __init__(self, page: Page, jobs: Jobs) -> None:
        self.page, self.pool, self.jobs, self._tries = page, page.pool, jobs, Counts(60)
        start = views.replay()
        self.run = html(views.render_run(start) if start else "", elem_id="cv-train-run", script=SCRIPT)
        self.curve = html(views.render_curve(start, ()) if start else "", elem_id="cv-train-curve")
        self.learned = html("", elem_id="cv-train-learned")
        self.shown, self.timer = gr.State(dict(NOTHING)), gr.Timer(TICK_SECONDS, active=False)

    def sections(self) -> None:
        """Lay out what may be unfolded below."""
        with section("Loss", elem_id="cv-train-losses") as losses:
            self.loss = html("", elem_id="cv-train-loss")
        title = "Your training runs" if is_shared() else "All training runs on this machine"
        with section(title, elem_id="cv-train-runs") as runs:
            self.listed = html("", elem_id="cv-train-history", script=SCRIPT)
            with gr.Row(visible=is_shared() and bool(os.environ.get(OPERATOR))):
                self.password = gr.Textbox(label="Password of whoever runs this page", type="password", max_lines=1)
                self.all = gr.Button("Show all training runs", scale=0, min_width=140)
        with section("The model: download it, or upload it to Hugging Face", elem_id="cv-train-model"):
            self.model = Share(self.jobs)
        with section("Log", elem_id="cv-train-log") as log:
            self.log = html("", elem_id="cv-train-log-text", script=SCRIPT)
        self.redrawn = losses, runs, log
        self.painted = [
            self.run, self.curve, self.learned, self.listed, self.log, self.loss, self.timer, self.shown,
            self.model.none, self.model.box, self.page.models_changed,
        ]  # fmt: skip

    def connect(self, notice: gr.HTML) -> None:
        """Connect buttons, timer and endpoints; messages about what is done to a training go to this notice."""
        quiet: dict[str, Any] = {"notice": self.model.notice}
        seen, painted = [self.shown, self.page.owner], self.painted
        once: dict[str, Any] = {"trigger_mode": "once"}  # a double click is one
        for part in (self.run, self.listed):
            connect(part.act, self.act, seen, painted, notice=notice, **once)
        connect([self.all.click, self.password.submit], self.unlock, [self.password, *seen], painted, **quiet)
        connect(self.timer.tick, self.refresh, seen, painted, **quiet, **once)
        connect([part.expand for part in self.redrawn], self.redraw, seen, painted, **quiet)
        self.notice = notice
        self.page.site.on_open.append(self._add_models)
        self.model.connect(self.shown, self.page.owner)
        publish(self.api_status, "train_status", heavy=False)
        publish(self.api_stop, "train_stop", heavy=False)

    def refresh(self, shown: Mapping[str, Any], owner: str, *, focus: bool = False, asked: bool = False) -> dict:
        """Show the chosen training, else the newest of this browser, else the recorded one.

        It is in `focus` once it was started.
        """
        token = token_of(shown, owner)
        jobs = [job for job in self.jobs.list() if job.may_change(token)]
        # Others of the same machine are listed; those of the command line have no owner.
        own = (job for job in jobs if token is None or not job.status.owner or job.was_started_by(token))
        newest = next(own, None) if shown["run"] != "" else None
        job = next((job for job in jobs if job.id == shown["run"]), newest)
        seconds = None if shown["replay"] is None else time.time() - shown["replay"]
        run = views.view_job(job, token, log=True) if job else views.replay(seconds)
        if run is None:
            return {self.timer: gr.Timer(active=False)}
        moving = run.state in views.ACTIVE or run.left is not None
        ready = run.mine and run.state == "done"
        updates = {
            self.run: views.render_run(run, focus=focus, asked=asked),
            self.timer: gr.Timer(active=moving or any(job.state in ("queued", "running") for job in jobs)),
            self.shown: {**shown, "run": run.id if job else shown["run"], "drawn": run.stamp},
            self.listed: views.render_runs(jobs, run.id, shown["over"], shared=is_shared()),
            self.log: render("train/log.html", log=run.log, mine=run.mine),
            self.model.none: gr.update(visible=not ready),
            self.model.box: gr.update(visible=ready),
        }
        if run.stamp != shown["drawn"]:
            others = [views.view_job(one, token) for one in jobs if one.id in shown["over"] and one.id != run.id]
            updates |= {
                self.curve: views.render_curve(run, others),
                self.loss: views.render_loss(run),
                self.learned: views.render_learned(run, views.find_ratings(run), self._in_errors(run)),
            }
        return updates | ({self.page.models_changed: time.time()} if self._add_models() else {})

    def _in_errors(self, run: views.RunView) -> str:
        """Return the link to the rows that a finished training of one's own table kept back, in Errors."""
        held = [source for source in run.recipe.get("validation", ()) if source["name"] == "csv"]
        if not (run.id and run.mine and run.state == "done" and held and Path(held[0]["path"]).is_file()):
            return ""
        if _OPENED.get(run.id) not in KEPT:
            rows = inspect(RATED, Reading(held[0]["path"])).reading
            _OPENED[run.id] = KEPT.add(replace(rows, title=f"Rows held back from {run.name}"))
        few = run.kept.get("rows", LEAST_CORRELATED) < LEAST_CORRELATED  # there is nothing to draw, but rows to read
        return write_link("errors", [("ed", _OPENED[run.id]), ("ea", run.name), ("open", "rows" if few else "")])

    def redraw(self, shown: Mapping[str, Any], owner: str) -> dict:
        return self.refresh({**shown, "drawn": None}, owner)

    def unlock(self, password: str, shown: Mapping[str, Any], owner: str) -> dict:
        """Show whoever runs the page the trainings of all visitors."""
        wanted = os.environ.get(OPERATOR, "")
        if self._tries["all"] >= TRIES:
            raise DataError("Too many wrong passwords were tried. Wait a minute.")
        if not wanted or not hmac.compare_digest(str(password or "").encode(), wanted.encode()):
            self._tries["all"] += 1
            raise DataError("That is not the password of whoever runs this page.")
        return self.refresh({**shown, "operator": True}, owner)

    def act(self, event: gr.EventData, shown: Mapping[str, Any], owner: str) -> dict:
        action, run = str(event.act), str(event.run)
        if action == "replay":
            return self.refresh({**shown, "run": "", "replay": time.time(), "drawn": None}, owner)
        if action == "delete":
            return self._delete(run, shown, owner)
        if action == "over":  # drawn beside the one that is shown, or no more
            over = tuple(sorted({run} ^ set(shown["over"])))[:MOST_OVER]
            return self.refresh({**shown, "over": over, "drawn": None}, owner)
        if action in ("stop", "resume", "rerun"):
            run = getattr(self.jobs, action)(run, token=token_of(shown, owner)).id
        elif action != "show":
            raise DataError(f"A training cannot {action[:40]!r}. Reload the page.")
        return self.refresh({**shown, "run": run, "replay": None, "drawn": None}, owner, focus=True) | {self.notice: ""}

    def _delete(self, run: str, shown: Mapping[str, Any], owner: str) -> dict:
        from condviz.models.registry import list_models

        name = self.jobs.get(run).name
        self.jobs.delete(run, token=token_of(shown, owner))
        zip_of(name).unlink(missing_ok=True)
        if name not in list_models():
            self.pool.remove(name)
        said = notice("", f"“{name}” is deleted: its log, its uploads, and the model it made.", tone="info")
        view = self.refresh({**shown, "run": None, "replay": None, "drawn": None}, owner)
        return {**view, self.notice: said, self.page.models_changed: time.time()}

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
    def api_status(self, job: str = "", owner: str = "") -> dict[str, Any]:
        """Return where a training stands.

        Args:
            job: Its id; "" lists all that you may see.
            owner: The secret that it was started with; needed where others reach the page.

        Returns:
            {"id", "name", "method", "state", "reason", "phase", "step", "steps", "elapsed", "left", "speed", "created",
            "losses", "evaluations", "probes", "log"}, or {"jobs": [...]} without the last four.
        """
        if job:
            found = self.jobs.get(job)
            if not found.may_change(owner):
                raise DataError("This training belongs to somebody else. Give the secret that it was started with.")
            return views.view_job(found, owner, log=True).to_dict()
        left_out = {"losses", "evaluations", "probes", "log"}
        jobs = [views.view_job(found, owner).to_dict() for found in self.jobs.list() if found.may_change(owner)]
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


class Share:
    """Widgets and events of the section; call inside it."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.notice = html("", elem_id="cv-train-model-notice")
        none = "A training of yours that is done has a model. The one that is shown has none."
        self.none = html(render("train/none.html", text=none), elem_id="cv-train-model-none")
        with gr.Column(visible=False) as self.box:
            with gr.Row(elem_classes="cv-actions"):
                self.pack = gr.Button("Pack as zip", elem_id="cv-train-pack", min_width=110, scale=0)
                self.zip = gr.DownloadButton("Save", visible=False, elem_id="cv-train-zip", min_width=110, scale=0)
            with gr.Row(elem_classes="cv-train-columns"):
                self.repository = gr.Textbox(label="Repository", placeholder="owner/name")
                self.hub_token = gr.Textbox(label="Token with write access", type="password")
                self.private = gr.Checkbox(True, label="Private repository")
            self.push = gr.Button("Upload to Hugging Face", min_width=140)

    def connect(self, shown: gr.State, owner: gr.BrowserState) -> None:
        """Connect the buttons; they act on the training that is shown, for whoever has the secret of its owner."""
        connect(self.pack.click, self.make_zip, [shown, owner], [self.zip], notice=self.notice)
        sent = [self.repository, self.hub_token, self.private, shown, owner]
        connect(self.push.click, self.send, sent, [self.hub_token], notice=self.notice, trigger_mode="once")

    def make_zip(self, shown: Mapping[str, Any], owner: str) -> dict:
        folder = self._model(shown, owner)
        target = zip_of(folder.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Somebody else may be saving the same model: it takes the place of the file before in one step.
        packed = shutil.make_archive(f"{target}.{secrets.token_hex(4)}", "zip", folder.parent, folder.name)
        os.replace(packed, target)
        return {self.zip: gr.DownloadButton(value=str(target), visible=True)}

    def send(self, repository: str, token: str, private: bool, shown: Mapping[str, Any], owner: str) -> dict:
        """Push the finished model to the hub. The token is used once and kept nowhere."""
        folder, repository, token = self._model(shown, owner), str(repository or "").strip(), str(token or "").strip()
        if not token:
            raise DataError("A token with write access is missing: hf.co/settings/tokens makes one.")
        from condviz.models.registry import load

        with refusals(repository, token):
            model = load(folder, device="cpu", precision="float32")
            address = model.push_to_hub(repository, token=token, private=bool(private))
        return {self.hub_token: "", self.notice: notice("Uploaded", address, tone="info")}

    def _model(self, shown: Mapping[str, Any], owner: str) -> Path:
        if not shown["run"]:
            raise DataError("There is no model yet. Train one first.")
        job = self.jobs.get(shown["run"])
        if not job.may_change(token_of(shown, owner)):
            raise DataError("This model was trained by somebody else: only they can pack or upload it.")
        if job.state != "done" or not job.out.is_dir():
            raise DataError(f"Training {job.name} is {job.state}: it has no model.")
        return job.out


def zip_of(name: str) -> Path:
    """Return where a packed model is written: one file a model, of which gradio makes a short-lived copy."""
    user = getattr(os, "getuid", lambda: 0)()
    return Path(tempfile.gettempdir()) / f"condviz-packed-{user}" / f"{name}.zip"


def token_of(shown: Mapping[str, Any], owner: str) -> str | None:
    """Return what a visitor may change trainings with; None, which opens all, for whoever runs the page."""
    return None if shown.get("operator") else owner
