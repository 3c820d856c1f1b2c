"""The endpoints /train, /train_status and /train_stop: what the Train tab does, as plain JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import gradio as gr

from condviz.ui.exports import finite
from condviz.ui.guard import api_error
from condviz.ui.train_run import RunView
from condviz.ui.train_service import TrainService


def add_train_api(service: TrainService) -> None:
    """Add the endpoints to the page; call inside gr.Blocks.

    Args:
        service: Jobs and checks.
    """

    @api_error
    def train(recipe: str) -> dict[str, Any]:
        """Put a training into the queue.

        Args:
            recipe: The text of a recipe in TOML, as in assets/recipes.

        Returns:
            The job, as /train_status gives it.
        """
        return _plain(service.start(recipe))

    @api_error
    def train_status(job: str = "") -> dict[str, Any]:
        """Say where a training stands.

        Args:
            job: Its id; nothing lists all jobs.

        Returns:
            {"id", "name", "method", "state", "reason", "phase", "step", "steps", "elapsed", "idle", "left", "speed",
            "created", "losses", "evaluations", "probes", "log"}, or {"jobs": [...]} without the last four.
        """
        if job:
            return _plain(service.run(job))
        left_out = {"losses", "evaluations", "probes", "log"}
        jobs = [_plain(run) for run in service.runs()]
        return {"jobs": [{key: value for key, value in one.items() if key not in left_out} for one in jobs]}

    @api_error
    def train_stop(job: str) -> dict[str, Any]:
        """Ask a training to save its state and stop; /train_status tells when it has.

        Args:
            job: Its id.

        Returns:
            The job, as /train_status gives it.
        """
        service.act("stop", job)
        return _plain(service.run(job))

    gr.api(train, api_name="train")
    gr.api(train_status, api_name="train_status")
    gr.api(train_stop, api_name="train_stop")


def _plain(run: RunView) -> dict[str, Any]:
    """Give a run without its recipe: clients of gradio take every "path" in it for a file to download, and fail."""
    return finite({key: value for key, value in asdict(run).items() if key != "recipe"})
