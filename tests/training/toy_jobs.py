"""Jobs whose trainings are pretended."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from condviz.training.job import Job, find_process, write_status
from condviz.training.jobs import Jobs


def pretend_jobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Give jobs that start no process: the test itself counts as the one that watches them."""

    def pretend(self: Jobs, job: Job) -> None:
        started = replace(job.status, state="running", started=job.status.created, supervisor=find_process())
        write_status(job.folder, started)

    monkeypatch.setattr(Jobs, "_start", pretend)
    monkeypatch.setattr("condviz.training.jobs.kill", lambda process: None)
    monkeypatch.delenv("SPACE_ID", raising=False)
    return Jobs(folder / "jobs", checkpoints=folder / "checkpoints", roots=[folder])


def end(jobs: Jobs, job: Job, state: str = "done", reason: str = "") -> None:
    """Let a training say its last word, and be gone."""
    (job.folder / "end.json").write_text(json.dumps({"state": state, "reason": reason}))
    jobs.settle(job.id, code=0)
