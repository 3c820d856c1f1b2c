"""A job: one training in processes of its own, and the folder that tells all about it. Loads no torch.

    recipe.json      what is trained; recipe.toml the same as it was written, where it came as text
    status.json      what is settled: queued, running, or how it ended
    heartbeat.json   written by the training every second: step, speed, its process
    end.json         the last word of the training
    stop             asks it to stop
    log.txt          output of the processes
    run/             states to go on from, and one line of measurements per record

Every file is written whole or not at all. Who changes status.json holds the lock of the folder of all jobs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from condviz.data.files import write_text
from condviz.errors import DataError

State = Literal["queued", "running", "stopping", "stopped", "failed", "done", "dead"]
UNFINISHED = ("queued", "running", "stopping")
RESUMABLE = ("stopped", "failed", "dead")
LOG_BYTES = 64 * 1024
"""How much of the end of a log is shown."""
SAME_BIRTH_S = 5.0
"""Systems compute the time of birth anew whenever they are asked, and clocks are put right now and then."""
RESERVE_BYTES = 64 * 1024
"""Kept free for the last word of a training that has filled the disk."""


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with the same number.

    Attributes:
        pid: Its number.
        born: When it was created, as the system tells it.
    """

    pid: int
    born: float


@dataclass(frozen=True)
class Status:
    """What is settled about a job.

    Attributes:
        state: Never "stopping", which is running with a request to stop.
        created, started, ended: Unix times; started and ended are of the newest attempt.
        device: "cpu", "cuda" or "mps".
        processes: How many take part in the training.
        out: Folder of the finished model.
        probes: Pairs (sentence1, sentence2, condition) that are scored along the way.
        spent: Seconds of earlier attempts.
        reason: Why it ended, for people.
        supervisor: The process that watches it.
    """

    state: State
    created: float
    device: str
    processes: int
    out: str
    probes: tuple[tuple[str, str, str], ...] = ()
    started: float | None = None
    ended: float | None = None
    spent: float = 0.0
    reason: str = ""
    supervisor: Process | None = None


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life.

    Attributes:
        time: When.
        phase: "preparing", "training" or "finishing".
        step, steps: Steps of the optimizer, done and in all.
        seconds_left: Of the training, evaluations included; None while not known.
        tokens_per_second: Of the last steps that were logged.
        worker: The process.
    """

    time: float
    phase: str = "preparing"
    step: int = 0
    steps: int = 0
    seconds_left: float | None = None
    tokens_per_second: float | None = None
    worker: Process | None = None


@dataclass(frozen=True)
class Job:
    """A job as it stands now.

    Attributes:
        id: Name of its folder.
        folder: The folder.
        recipe: `TrainRecipe.to_dict()`.
        status: What is settled.
        heartbeat: The last sign of life, or None before the first.
        state: "queued", "running", "stopping", "stopped", "failed", "done", or "dead": the processes are gone without
            a word.
    """

    id: str
    folder: Path
    recipe: Mapping[str, Any]
    status: Status
    heartbeat: Heartbeat | None
    state: State

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.recipe["name"])

    @property
    def reason(self) -> str:
        """Why it ended, for people; "" while there is nothing to say."""
        return self.status.reason

    @property
    def out(self) -> Path:
        """Folder of the finished model."""
        return Path(self.status.out)

    @property
    def elapsed(self) -> float:
        """Seconds of work, all attempts together, without the time in the queue."""
        if self.status.started is None:
            return self.status.spent
        end = self.status.ended if self.state not in UNFINISHED and self.status.ended else time.time()
        return self.status.spent + end - self.status.started

    @property
    def phase(self) -> str:
        """What a running job does: "preparing" (packages, data, encoder), "training" or "finishing"."""
        return self.heartbeat.phase if self.heartbeat else "preparing"

    @property
    def updated(self) -> float:
        """Unix time of the last sign of life."""
        times = (self.status.created, self.status.started, self.status.ended, self.heartbeat and self.heartbeat.time)
        return max(moment for moment in times if moment)

    @property
    def step(self) -> int:
        """Steps done."""
        return self.heartbeat.step if self.heartbeat else 0

    @property
    def steps(self) -> int:
        """Steps in all; 0 while not known."""
        return self.heartbeat.steps if self.heartbeat else 0

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the training ends; None while not known, or if it does not run."""
        return self.heartbeat.seconds_left if self.heartbeat and self.state == "running" else None

    @property
    def tokens_per_second(self) -> float | None:
        """Speed of the last steps that were logged; None before."""
        return self.heartbeat.tokens_per_second if self.heartbeat else None

    @property
    def saved_step(self) -> int | None:
        """Step of the newest whole state, from which `Jobs.resume` goes on; None begins anew."""
        states = (path.parent.name.rpartition("-")[2] for path in self.folder.glob("run/checkpoint-*/complete"))
        return max(map(int, states), default=None)

    @property
    def can_resume(self) -> bool:
        """Whether it ended without a model."""
        return self.state in RESUMABLE

    def records(self) -> list[dict[str, Any]]:
        """Give the measurements, without those of steps that were lost and done again.

        Returns:
            "event" is "start", "step" (loss, learning_rate, tokens_per_second), "evaluation" (spearman, pearson,
            pair_accuracy, times 100; rows; probes, the scores of `status.probes`) or "end"; "step" and "steps"
            are in all. What is not a number is None.
        """
        found: list[dict[str, Any]] = []
        for line in _lines(self.folder / "run" / "log.jsonl"):
            try:
                record = json.loads(line)
            except ValueError:  # being written, or cut off
                continue
            if record["event"] == "start":
                found = [earlier for earlier in found if earlier["step"] <= record["step"]]
                if found:  # going on: no second start
                    continue
            found.append(record)
        return found

    def log(self) -> str:
        """Give the end of the output, at most `LOG_BYTES`; it may hold anything, so escape it."""
        try:
            with (self.folder / "log.txt").open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - LOG_BYTES))
                content = file.read()
        except OSError:
            return ""
        return content.decode("utf-8", "replace")


def read_job(folder: Path) -> Job:
    """Read a job.

    Raises:
        DataError: If the folder holds none.
    """
    try:
        recipe = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
        status = _build_status(json.loads((folder / "status.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{folder} holds no job that can be read ({error}). Delete the folder.") from error
    stopping = status.state == "running" and (folder / "stop").exists()
    return Job(folder.name, folder, recipe, status, read_heartbeat(folder), "stopping" if stopping else status.state)


def write_status(folder: Path, status: Status) -> None:
    """Write what is settled.

    Raises:
        DataError: If the disk does not take it.
    """
    write_text(folder / "status.json", json.dumps(asdict(status), indent=2) + "\n")


def read_heartbeat(folder: Path) -> Heartbeat | None:
    """Give the last sign of life, if there is one."""
    content = read_json(folder / "heartbeat.json")
    if content is None:
        return None
    known = {field.name for field in fields(Heartbeat)}
    values = {key: value for key, value in content.items() if key in known}
    return Heartbeat(**values | {"worker": _build_process(content.get("worker"))})


def read_json(path: Path) -> dict[str, Any] | None:
    """Read an object; None if it is not there."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def this_process() -> Process:
    """Give the process that asks."""
    import psutil

    own = psutil.Process()
    return Process(own.pid, own.create_time())


def is_alive(process: Process | None) -> bool:
    """Tell whether a process is still there."""
    import psutil

    if process is None:
        return False
    try:
        found = psutil.Process(process.pid)
        return abs(found.create_time() - process.born) < SAME_BIRTH_S and found.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def kill(process: Process | None) -> None:
    """End a process and all that it started, at once."""
    import psutil

    if process is None or not is_alive(process):
        return
    root = psutil.Process(process.pid)
    try:
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=5)


def _build_status(content: Mapping[str, Any]) -> Status:
    supervisor = _build_process(content.get("supervisor"))
    probes = tuple(tuple(probe) for probe in content.get("probes", ()))
    return Status(**{**content, "probes": probes, "supervisor": supervisor})


def _build_process(content: Mapping[str, Any] | None) -> Process | None:
    return None if content is None else Process(**content)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
