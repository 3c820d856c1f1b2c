"""A job: one training in processes of its own, the folder that tells all about it, and why it ended. Loads no torch.

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

import errno
import hashlib
import hmac
import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from condviz.data.files import write_text
from condviz.errors import CondvizError, DataError, first_line

State = Literal["queued", "running", "stopping", "stopped", "failed", "done", "dead"]
UNFINISHED = ("queued", "running", "stopping")
RESUMABLE = ("stopped", "failed", "dead")
SHARED = ("SPACE_ID", "CONDVIZ_PASSWORD", "CONDVIZ_HOSTS")
"""Settings of a page that is meant for others."""
LOG_BYTES = 64 * 1024
"""How much of the end of a log is shown."""
SAME_BIRTH_S = 5.0
"""Systems compute the time of birth anew whenever they are asked, and clocks are put right now and then."""
OUT_OF_MEMORY = (
    "Out of memory. Halve batch_size and double accumulation, which keeps the size of a step; or tune less "
    '(tuning = "lora" or "frozen"), or take a smaller encoder. Then start again: a resumed job has the same recipe.'
)
DISK = "The disk is full. Free some space and resume: what was saved before is kept."
GONE = "The process is gone: the machine was restarted, or it was killed from outside."
_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory")
_DISK_SIGNS = ("no space left", "disk quota exceeded", "pytorchstreamwriter failed", "file write failed")
RESERVE_BYTES = 64 * 1024
"""Kept free for the last word of a training that has filled the disk."""


@dataclass(frozen=True)
class Process:
    """A process, by its number and its time of birth: it cannot be mistaken for a later one with the same number."""

    pid: int
    born: float


@dataclass(frozen=True)
class Status:
    """What is settled about a job. Times are Unix times; started and ended are of the newest attempt.

    The state is never "stopping", which is running with a request to stop. `probes` are (sentence1, sentence2,
    condition) that are scored along the way; `spent` are the seconds of earlier attempts; `owner` is the SHA-256 of the
    token of the visitor who started it, "" if it was started on the machine itself.
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
    owner: str = ""


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life: when, in which phase ("preparing", "training" or "finishing"), and how far.

    Steps are those of the optimizer, 0 while not known; `seconds_left` counts evaluations in; both figures that are
    None are not known yet.
    """

    time: float = 0.0
    phase: str = "preparing"
    step: int = 0
    steps: int = 0
    seconds_left: float | None = None
    tokens_per_second: float | None = None
    worker: Process | None = None


# Keys that other versions write are ignored, and those that they lack get their defaults.
_STATUS, _HEARTBEAT = TypeAdapter(Status), TypeAdapter(Heartbeat)


@dataclass(frozen=True)
class Job:
    """A job as it is now; "dead" where the processes are gone without a word. `recipe` is `Recipe.to_dict()`."""

    id: str
    folder: Path
    recipe: Mapping[str, Any]
    status: Status
    heartbeat: Heartbeat
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
    def seconds_left(self) -> float | None:
        """Seconds until the training ends; None while not known, or if it does not run."""
        return self.heartbeat.seconds_left if self.state == "running" else None

    @property
    def saved_step(self) -> int | None:
        """Step of the newest whole state, from which `Jobs.resume` goes on; None begins anew."""
        states = (path.parent.name.rpartition("-")[2] for path in self.folder.glob("run/checkpoint-*/complete"))
        return max(map(int, states), default=None)

    def may_change(self, token: str | None) -> bool:
        """Whether the holder of a token may see, stop, resume and delete it.

        Where others reach the page, only who started it; else everybody works on the same machine. None stands for
        the owner of the machine, at its command line.
        """
        return token is None or not is_shared() or self.was_started_by(token)

    def was_started_by(self, token: str) -> bool:
        """Whether the holder of a token has started it."""
        return bool(self.status.owner) and hmac.compare_digest(self.status.owner, hash_token(token))

    @property
    def can_resume(self) -> bool:
        """Whether it ended without a model."""
        return self.state in RESUMABLE

    def records(self) -> list[dict[str, Any]]:
        """Read the measurements, see `read_records`."""
        return read_records(self.folder / "run" / "log.jsonl")

    def log(self) -> str:
        """Read the end of the output, at most `LOG_BYTES`; it may hold anything, so escape it."""
        try:
            with (self.folder / "log.txt").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""


def is_shared() -> bool:
    """Whether the page is meant for others than those who sit at this machine."""
    listens = os.environ.get("GRADIO_SERVER_NAME", "")
    return any(map(os.environ.get, SHARED)) or listens not in ("", "localhost", "127.0.0.1", "::1")


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read the log of a run, without the steps that were lost in a crash and done again. What is not a number is None.

    "event" is "start", "step" (loss, learning_rate, tokens_per_second), "evaluation" or "end"; all have "step", all but
    the end "steps", and all but the start "seconds": what they took. Start and evaluations have the figures of the
    validation rows: of sentences spearman, pearson and pair_accuracy, times 100, rows, and probes, the scores of
    `Status.probes`; of links MRR, MR, hits@1 ... in [0, 1], and temperature.
    """
    found: list[dict[str, Any]] = []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
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


def read_job(folder: Path) -> Job:
    """Read a job; raises DataError if the folder holds none."""
    try:
        recipe = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
        status = _STATUS.validate_json((folder / "status.json").read_bytes())
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{folder} holds no job that can be read ({error}). Delete the folder.") from error
    try:
        heartbeat = _HEARTBEAT.validate_json((folder / "heartbeat.json").read_bytes())
    except (OSError, ValueError):
        heartbeat = Heartbeat()
    stopping = status.state == "running" and (folder / "stop").exists()
    return Job(folder.name, folder, recipe, status, heartbeat, "stopping" if stopping else status.state)


def write_status(folder: Path, status: Status) -> None:
    """Store what is settled."""
    write_text(folder / "status.json", _STATUS.dump_json(status, indent=2).decode() + "\n")


def paths_of(recipe: Mapping[str, Any]) -> list[str]:
    """List what a stored recipe reads by name or path: tables, graph, models, but for the encoder."""
    tables = [source["path"] for part in ("train", "validation") for source in recipe.get(part, ())]
    models = recipe.get("init"), *recipe.get("teacher", ())
    return [path for path in (*tables, recipe.get("graph"), *models) if path]


def read_json(path: Path) -> dict[str, Any] | None:
    """Read an object; None if it is not there."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def hash_token(token: str) -> str:
    """Hash the token of a visitor, so that the folder of a job does not hold it; "" stays ""."""
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


def find_process(pid: int | None = None) -> Process:
    """Return the process with a number, or, with None, the one that asks."""
    import psutil

    found = psutil.Process(pid)
    return Process(found.pid, found.create_time())


def is_alive(process: Process | None) -> bool:
    """Whether a process is still there."""
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
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        family = [root, *root.children(recursive=True)]
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family, timeout=5)


# Why a training ended


def explain(error: BaseException) -> str:
    """Explain an error; an unknown one is named, and the log has the rest."""
    causes, cause = [], error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    texts = [str(cause).lower() for cause in causes]
    short = any(isinstance(cause, MemoryError) for cause in causes)
    if short or any(sign in text for sign in _MEMORY_SIGNS for text in texts):
        return OUT_OF_MEMORY
    full = any(isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT) for cause in causes)
    if full or any(sign in text for sign in _DISK_SIGNS for text in texts):
        return DISK
    if isinstance(error, CondvizError):
        return str(error)
    return f"Unexpected {type(error).__name__}: {first_line(error)}. The end of the log tells where."


def explain_exit(code: int, log: str) -> str:
    """Explain an exit code (as `subprocess` has it: negative for a signal) by the end of the output."""
    if any(sign in log.lower()[-4000:] for sign in _MEMORY_SIGNS):
        return OUT_OF_MEMORY
    killed = -code if code < 0 else code - 128
    if code < 0 or killed == 9:
        name = signal.Signals(killed).name if killed in set(signal.Signals) else f"signal {killed}"
        memory = " Systems do that when memory runs out: if it comes again, halve batch_size." if killed == 9 else ""
        return f"The training was killed from outside ({name}).{memory} Resume goes on from what was saved."
    last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "the log is empty")
    return f"The training ended with code {code} before it could say why. Last line of the log: {last[:300]}"
