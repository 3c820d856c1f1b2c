"""The model that a training has made: as a zip, or on the hub."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from condviz.errors import DataError
from condviz.models.hub import refusals
from condviz.training.jobs import Jobs
from condviz.ui.events import connect
from condviz.ui.markup import html, notice


class Share:
    """Widgets and events of the section; call inside it."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.notice = html("", elem_id="cv-train-model-notice")
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
        if not job.may_change(None if shown.get("operator") else owner):
            raise DataError("This model was trained by somebody else: only they can pack or upload it.")
        if job.state != "done" or not job.out.is_dir():
            raise DataError(f"Training {job.name} is {job.state}: it has no model.")
        return job.out


def zip_of(name: str) -> Path:
    """Return where a packed model is written: one file a model, of which gradio makes a short-lived copy."""
    user = getattr(os, "getuid", lambda: 0)()
    return Path(tempfile.gettempdir()) / f"condviz-packed-{user}" / f"{name}.zip"
