"""Jobs without processes: the same interface as condviz.training.jobs, moved on by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from condviz.errors import TrainingError
from condviz.training.recipes import from_dict
from condviz.ui.train_engine import TrainEngine

PROBES = (("a man rides a bike", "a cat", "the sport"), ("two dogs run", "a cat", "the number of animals"))
RECORDS = (
    {"event": "start", "step": 0, "steps": 20},
    {"event": "evaluation", "step": 0, "steps": 20, "spearman": 2.0, "pearson": 3.0, "pair_accuracy": 50.0,
     "probes": [0.1, 0.5]},
    {"event": "step", "step": 10, "steps": 20, "loss": 0.9, "tokens_per_second": 1200},
    {"event": "evaluation", "step": 10, "steps": 20, "spearman": 31.0, "pearson": None, "pair_accuracy": 71.0,
     "probes": [0.3, 0.2]},
)  # fmt: skip


@dataclass
class FakeJob:
    """As condviz.training.job.Job, with values in place of files."""

    id: str
    recipe: dict[str, Any]
    folder: Path
    state: str = "running"
    reason: str = ""
    phase: str = "training"
    step: int = 10
    steps: int = 20
    elapsed: float = 65.0
    updated: float = 0.0
    seconds_left: float | None = 30.0
    tokens_per_second: float | None = 1200.0
    kept: list[dict[str, Any]] = field(default_factory=lambda: [dict(record) for record in RECORDS])

    @property
    def name(self) -> str:
        return self.recipe["name"]

    @property
    def status(self) -> Any:
        return SimpleNamespace(created=0.0, probes=PROBES, state=self.state)

    @property
    def out(self) -> Path:
        return self.folder / "models" / self.name

    def records(self) -> list[dict[str, Any]]:
        return self.kept

    def log(self) -> str:
        return "began\n<b>not bold</b>"


class FakeJobs:
    """As condviz.training.jobs.Jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.uploads, self.jobs = folder, folder / "uploads", []

    def submit(self, recipe: Any, *, text: str = "") -> FakeJob:
        job = FakeJob(f"job-{len(self.jobs) + 1}", recipe.to_dict(), self.folder)
        self.jobs.insert(0, job)
        return job

    def list(self) -> list[FakeJob]:
        return list(self.jobs)

    def get(self, id: str) -> FakeJob:
        found = next((job for job in self.jobs if job.id == id), None)
        if found is None:
            raise TrainingError(f"There is no job {id!r}.")
        return found

    def stop(self, id: str) -> FakeJob:
        self.get(id).state = "stopped"
        return self.get(id)

    def resume(self, id: str) -> FakeJob:
        self.get(id).state = "running"
        return self.get(id)

    def rerun(self, id: str) -> FakeJob:
        job = replace(self.get(id), id=f"job-{len(self.jobs) + 1}")
        self.jobs.insert(0, job)
        return job

    def delete(self, id: str) -> None:
        self.jobs.remove(self.get(id))


def make_preflight(recipe: Any, **changes: Any) -> Any:
    """As condviz.training.preflight.check, without a try."""
    fields = {
        "device": "cpu", "precision": "float32", "rows": 240, "validation_rows": 60, "dropped": 3, "steps": 20,
        "minutes": 1.5, "memory": 10**9, "available": 8 * 10**9, "problems": (), "advice": ("Rows are few.",),
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **changes})


def make_train_engine(folder: Path, **changes: Any) -> TrainEngine:
    """Give an engine over fake jobs."""
    jobs = FakeJobs(folder)
    fields = {
        "jobs": lambda: jobs, "enabled": lambda: True, "read": from_dict, "check": make_preflight,
        "has_csts": lambda: False,
    }  # fmt: skip
    return TrainEngine(**{**fields, **changes})
